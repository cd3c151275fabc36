//! fastpath: a router that moves vectors of packets through a graph of nodes, so that each packet costs the
//! less the more there are.
//!
//! ```text
//! device ──► Worker: vector ──► Graph: node ─► node ─► … ──► device      dataplane
//!                                        ▲                │
//!                              fib, forwarding, frames   events
//!                                        │                ▼
//! routes, interfaces, neighbours ──────► Router ◄─────────┘             control
//! ```
//!
//! What both planes use stands beside them: devices, the table of routes, events, publication.

pub mod clock;
pub mod control;
pub mod dataplane;
pub mod device;
pub mod events;
pub mod fib;
pub mod publish;
pub mod subnet;
mod sync;

pub use control::{client, config, daemon, kernel, router, show, snapshot, threads};
pub use dataplane::{
    acl, bridge, counters, flow, forwarding, graph, handoff, icmp6, node, punt, states, trace, vector, worker,
};
