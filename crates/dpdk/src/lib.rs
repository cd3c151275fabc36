//! DPDK behind safe types: a machine's memory and devices enter, ports that send and receive
//! bursts of frames leave.
//!
//! ```text
//! Dpdk::start ──► Pool ─────────► Burst ──► TxQueue
//!      ├────────► Port::probe ──► start ──► RxQueue ──► Burst
//!      └────────► Fib4, Fib6: DPDK's own tables of routes, to measure others by
//! ```
//!
//! Empty without the feature `dpdk`, so that all else builds where DPDK is not installed. What DPDK
//! says goes to memory, and its last lines into the errors; never to standard output.

#[cfg(feature = "dpdk")]
mod af_xdp;
#[cfg(feature = "dpdk")]
mod burst;
#[cfg(feature = "dpdk")]
mod environment;
#[cfg(feature = "dpdk")]
mod error;
#[cfg(feature = "dpdk")]
mod fib;
#[cfg(feature = "dpdk")]
mod log;
#[cfg(feature = "dpdk")]
mod pool;
#[cfg(feature = "dpdk")]
mod port;
#[cfg(feature = "dpdk")]
mod queue;
#[cfg(feature = "dpdk")]
mod running;
#[cfg(feature = "dpdk")]
mod shim;

#[cfg(feature = "dpdk")]
pub use self::{
    burst::Burst,
    environment::{Config, Dpdk, Memory, RegisteredThread},
    error::Error,
    fib::{Fib4, Fib6},
    pool::Pool,
    port::{Counter, Facts, Link, Port, PortConfig, Stats, Watch},
    queue::{Queues, RxQueue, TxQueue},
};
