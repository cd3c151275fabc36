//! The user-space engine: frames are built in this process, and sent and received by DPDK.

//!
//! A frame table and two ports enter; counts per interval leave. A worker is a thread on a core of its
//! own: it sends (`sender`), receives (`receiver`) or both, reads loads from a `board`, and counts in a
//! `tally` that nobody else writes.

mod board;
pub mod build_rate;
mod ports;
mod receiver;
pub mod replay;
mod sender;
mod setup;
pub mod stream;
mod tally;
mod workers;

pub use dpdk::{Dpdk, Memory};
pub use ports::{PortCounted, PortsWatch};
pub use setup::{Opened, port_config, room, socket_name, start, wait_for_links};
pub use workers::{Config, DpdkEngine, MAX_FRAME, Workers};

use crate::Error;

impl From<dpdk::Error> for Error {
    fn from(error: dpdk::Error) -> Self {
        match error {
            _ if error.needs_root() => Self::Failed(error.to_string()),
            dpdk::Error::Device { .. } => Self::Port(error.to_string()),
            dpdk::Error::Port { .. } | dpdk::Error::TooMany { .. } => Self::Refused(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}
