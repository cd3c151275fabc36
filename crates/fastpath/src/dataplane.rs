//! The data plane: frames enter, frames leave, and what concerns the control plane becomes an event. A worker
//! moves vectors of packets through the graph of nodes; it never waits.

pub mod bridge;
pub(crate) mod bucket;
pub mod counters;
pub mod flow;
pub mod forwarding;
pub mod graph;
pub mod handoff;
pub mod icmp6;
pub mod node;
pub mod punt;
pub(crate) mod seeded;
pub(crate) mod throttle;
pub mod trace;
pub mod vector;
pub mod worker;
