//! What is said of the kernel's tables, as plain values.

use std::net::IpAddr;
use std::sync::Arc;

use wire::MacAddress;

use super::Path;
use crate::fib::Prefix;

/// One change of what the kernel holds. Interfaces are named by the kernel's index of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An IPv4 route came, changed or went.
    Route4(RouteChange<u32>),
    /// An IPv6 route came, changed or went.
    Route6(RouteChange<u128>),
    /// An interface got an address.
    Address {
        /// The interface.
        interface: u32,
        /// The address.
        address: IpAddr,
        /// Bits that its network has in common.
        length: u8,
    },
    /// An interface lost an address.
    AddressRemoved {
        /// The interface.
        interface: u32,
        /// The address.
        address: IpAddr,
        /// Bits that its network has in common.
        length: u8,
    },
    /// The MAC address of a neighbour became known, or changed.
    Neighbour {
        /// The interface that it is reached by.
        interface: u32,
        /// Its address.
        address: IpAddr,
        /// Its MAC address.
        mac: MacAddress,
        /// Whether somebody set it, so that it never expires.
        permanent: bool,
    },
    /// The MAC address of a neighbour is no longer known.
    NeighbourRemoved {
        /// The interface that it was reached by.
        interface: u32,
        /// Its address.
        address: IpAddr,
    },
    /// All that the kernel held a moment ago has been said.
    Synchronised,
    /// The kernel refused to be followed, and why. It is tried again; what has changed meanwhile is said then.
    Interrupted(String),
}

/// The route of a prefix: of several that the kernel holds, the one it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteChange<A> {
    /// Of which destinations.
    pub prefix: Prefix<A>,
    /// Where its packets go now; `None` if it has no route any more.
    pub path: Option<Arc<Path>>,
}
