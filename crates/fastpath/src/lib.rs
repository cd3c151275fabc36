//! fastpath: a router that moves vectors of packets through a graph of nodes, so that each packet costs the
//! less the more there are.
//!
//! ```text
//! device ──► Worker: vector ──► Graph: node ─► node ─► … ──► device
//!                                        ▲                │
//!                              fib, forwarding, frames   events
//!                                        │                ▼
//! routes, interfaces, neighbours ──────► Router ◄─────────┘
//! ```

pub mod bridge;
mod bucket;
pub mod client;
pub mod clock;
pub mod config;
pub mod control;
pub mod counters;
pub mod daemon;
pub mod device;
pub mod events;
pub mod fib;
pub mod flow;
pub mod forwarding;
pub mod graph;
pub mod handoff;
pub mod icmp6;
pub mod kernel;
pub mod node;
pub mod publish;
pub mod punt;
pub mod router;
pub mod show;
pub mod snapshot;
pub mod subnet;
pub mod threads;
mod throttle;
pub mod trace;
pub mod vector;
pub mod worker;
