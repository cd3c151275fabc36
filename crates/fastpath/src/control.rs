//! The control plane: a configuration, the kernel's routes, what peers said and what users ask enter; tables
//! that workers read, and answers, leave. Nothing here touches a packet.

pub mod capture;
pub mod client;
pub mod config;
pub mod daemon;
pub mod kernel;
pub mod log;
mod place;
pub mod protocol;
pub mod router;
pub mod server;
pub mod show;
pub mod snapshot;
pub mod threads;

pub use self::capture::Pcap;
pub use self::protocol::{Answer, Clear, Hop, IpVersion, Reply, Request, Set, Show, To, Version};
