//! What users see of a router: snapshots and plain facts enter, plain data leaves, which is printed as a
//! table or as JSON. The columns are those that users of VPP know.

pub mod acl;
pub mod bridge;
pub mod cpu;
pub mod errors;
pub mod fib;
pub mod flows;
pub mod graph;
pub mod hardware;
pub mod interfaces;
pub mod metrics;
pub mod neighbours;
pub mod runtime;
pub mod runtime_max;
mod table;
pub mod threads;
pub mod trace;

#[cfg(test)]
mod tests;
