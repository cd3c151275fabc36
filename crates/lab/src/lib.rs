//! Where a device under test lives: namespaces, links, CPU placement, and the devices.
//!
//! A [`Config`] enters, a running [`Lab`] with two [`Port`]s leaves; or the names of two real
//! interfaces enter and [`RealPorts`] leave. Nothing of a lab outlives its process.

mod cable;
mod capabilities;
mod configuration;
pub mod dut;
mod error;
mod ethtool;
mod forgotten;
pub mod holder;
mod interface_counters;
mod lab;
mod namespace;
pub mod napi;
mod neighbour;
mod netlink;
pub mod placement;
mod plan;
mod ports;
mod session;
mod settings;

pub use cable::Cable;
pub use capabilities::{Check, Level, check_machine};
pub use dut::{Counters, DutSpec};
pub use error::{Error, Needs, Result};
pub use interface_counters::{InterfaceCounters, read as interface_counters};
pub use lab::{Config, Lab, Unmerged};
pub use namespace::Namespace;
pub use napi::NapiThread;
pub use placement::Placement;
pub use plan::{SIDES, Side};
pub use ports::{Destination, Port, PortsError, RealPorts, open_port};
