//! Where a device under test lives: namespaces, links, CPU placement.
//!
//! A [`Config`] enters, a running [`Lab`] with two [`Port`]s leaves; or the names of two real
//! interfaces enter and [`RealPorts`] leave. Nothing of a lab outlives its process.

mod cable;
mod capabilities;
mod configuration;
mod device;
mod error;
mod forgotten;
pub mod holder;
mod interface_counters;
mod lab;
mod namespace;
pub mod napi;
mod neighbour;
pub mod netlink;
mod offloads;
pub mod pass;
pub mod placement;
pub mod plan;
mod ports;
mod session;
pub mod settings;
mod stand_in;
mod tap;
pub mod tracked;

pub use cable::Cable;
pub use capabilities::{Check, Level, check_machine, give_up_the_rest, without_precedence};
pub use device::{
    Addressing, Attachment, BURST_LENGTHS, Bursts, Counters, Device, Queues, ReadCounters, Running, Site,
    Workers,
};
pub use error::{Error, HolderError, Needs, PortsError, Result};
pub use interface_counters::{InterfaceCounters, read as interface_counters};
pub use lab::{Config, Lab, Unmerged, bring_up, quiet_namespace};
pub use namespace::{Namespace, own_mounts};
pub use napi::NapiThread;
pub use placement::Placement;
pub use plan::{SIDES, Side};
pub use ports::{Destination, Port, RealPorts, open_port, refuse_names_in_use};
pub use stand_in::{Stack, StandIn};
