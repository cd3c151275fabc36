//! The data plane: frames enter, frames leave, and what concerns the control plane becomes an event. A worker
//! moves vectors of packets through the graph of nodes; it never waits.
//!
//! What peers send decides where bytes are read. So no index here can be beyond the end: modules read by `get`,
//! `first_chunk` and patterns, and the few tables that are indexed are as long as their index can be large.

#![deny(clippy::indexing_slicing)]

pub mod acl;
pub mod bridge;
pub(crate) mod bucket;
pub mod capture;
pub mod counters;
pub mod flow;
pub mod forwarding;
pub mod graph;
pub mod handoff;
pub mod icmp6;
pub mod node;
pub mod punt;
pub(crate) mod seeded;
pub mod states;
pub(crate) mod throttle;
pub mod trace;
pub mod vector;
pub mod worker;
