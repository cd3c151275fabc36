//! TRex stateless servers as testers: a frame table and loads enter, calls to one server or several leave; their
//! counters enter, exact counts leave.
//!
//! ```text
//! FrameTable ──► streams ──► add_stream ──┐
//! Load ──► start_traffic (so many seconds) ├──► client ──► Transport ──► server
//! Counts ◄── get_port_stats, once it is quiet ◄┘
//! ```

mod apart;
mod client;
mod engine;
mod server;
mod streams;

pub use apart::Apart;
pub use client::{Client, TesterError, Transport};
pub use engine::{Clock, TesterEngine};
pub use server::{PortOf, Server, VersionOf};
