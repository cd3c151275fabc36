//! Ports of DPDK: the engine in user space on them, and what else is sent and received by them.

pub mod build_rate;
mod engine;
mod ports;
pub mod replay;
mod setup;
pub mod stream;

pub use dpdk::{Dpdk, Memory};
pub use engine::{DpdkEngine, DpdkPorts, listen};
pub use ports::PortsWatch;
pub use setup::{Opened, port_config, start, wait_for_links};

use crate::Error;

impl From<dpdk::Error> for Error {
    fn from(error: dpdk::Error) -> Self {
        match error {
            _ if error.needs_root() => Self::Failed(error.to_string()),
            dpdk::Error::Device { .. } => Self::Port(error.to_string()),
            dpdk::Error::Port { .. } | dpdk::Error::TooMany { .. } | dpdk::Error::NoHugepages { .. } => {
                Self::Refused(error.to_string())
            }
            _ => Self::Failed(error.to_string()),
        }
    }
}
