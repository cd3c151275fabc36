//! How fast generators send, other people's and this one: a program's name and the size of its datagrams enter; a
//! record of what left and what arrived leaves. [`build_rate`] builds frames without sending them.

mod across;
pub mod build_rate;
pub mod datagram;
pub mod defined;
mod engine;
mod ground;
mod iperf3;
pub mod known;
mod measurement;
mod own;
pub mod program;
mod testpmd;
mod trafgen;
mod user_space;
pub mod waterfall;

pub use measurement::{Beside, Measurement};
