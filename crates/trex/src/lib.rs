//! TRex's stateless protocol, as its own clients speak it: their messages enter, replies leave, and an
//! [`Engine`](engine::Engine) sends what their streams describe.
//!
//! ```text
//! message ──► framing ──► rpc ──► Server ──► streams, programs ──► plan ──► FrameTable ──► Tester's engine
//! reply   ◄── framing ◄── rpc ◄── Server ◄── statistics, events ◄────────── counts   ◄─────────┘
//! ```
//!
//! The other way round, [`testers`] is a client: an [`Engine`](engine::Engine) that consists of such servers.
//!
//! There is no input or output here and no clock: a caller moves messages (see [`Server::handle`]), says what
//! time it is, and brings a [`Tester`]. What enters is bounded in size, and no message makes it panic.

pub mod framing;
pub mod testers;

mod captures;
mod commands;
mod course;
mod events;
mod filter;
mod groups;
mod multiplier;
mod plan;
mod port;
mod profile;
mod program;
mod repeated;
mod rpc;
mod sending;
mod server;
mod service;
mod statistics;
mod steering;
mod stream;

pub use profile::profile;
pub use rpc::Failure;
pub use sending::{PortFacts, Tester};
pub use server::{Server, Version};
pub use statistics::Counters;
