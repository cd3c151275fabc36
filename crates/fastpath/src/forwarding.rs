//! What workers need to know besides routes: interfaces and adjacencies. The router makes it anew when
//! either changes; workers take it up before their next pass.

use wire::MacAddress;

use crate::bridge::Bridge;
use crate::node::Node;

/// The most bytes of a link header: Ethernet with two tags.
pub const LINK_HEADER: usize = 22;

/// What an interface does with what arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It routes.
    Router,
    /// All frames leave by this other interface (`l2 xconnect`).
    CrossConnect(u16),
    /// It is a port of this learning bridge.
    Bridge(u16),
}

/// An interface as the workers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The device that it sends by; several interfaces may share one by VLAN tags.
    pub device: u16,
    /// The VLAN tag of its frames, outermost; `None` for untagged ones.
    pub vlan: Option<u16>,
    /// Its address.
    pub mac: MacAddress,
    /// Bytes that a packet may have, without link header.
    pub mtu: u16,
    /// Whether it takes and sends packets.
    pub up: bool,
    /// What it does.
    pub role: Role,
}

/// What becomes of packets to a next hop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct Adjacency {
    /// The node that they go to.
    pub next: Node,
    /// The length of the link header.
    pub header_length: u8,
    /// The interface that they leave by.
    pub interface: u16,
    /// Bytes that a packet may have.
    pub mtu: u16,
    /// The link header that they get.
    pub header: [u8; LINK_HEADER],
    /// Why they are dropped or punted, where they are.
    pub reason: crate::counters::Reason,
}

impl Adjacency {
    /// Drops for `reason`.
    #[must_use]
    pub fn drop(reason: crate::counters::Reason) -> Self {
        Self {
            next: Node::ErrorDrop,
            header_length: 0,
            interface: 0,
            mtu: 0,
            header: [0; LINK_HEADER],
            reason,
        }
    }
}

/// A device as the workers see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// The interface of frames without a tag.
    pub untagged: u16,
    /// The interfaces of tagged frames, by tag.
    pub tagged: Vec<(u16, u16)>,
}

impl Device {
    /// The interface of frames with this tag.
    #[must_use]
    pub fn tagged(&self, tag: u16) -> Option<u16> {
        self.tagged.iter().find(|(of, _)| *of == tag).map(|(_, interface)| *interface)
    }
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forwarding {
    /// By number.
    pub interfaces: Vec<Interface>,
    /// By number.
    pub devices: Vec<Device>,
    /// By the index of the next hop of routes; the first is that of packets without a route.
    pub adjacencies: Vec<Adjacency>,
    /// By domain.
    pub bridges: Vec<Bridge>,
}

impl Forwarding {
    /// Whether an interface passes frames on without looking beyond layer 2.
    #[must_use]
    pub fn is_layer_2(&self, interface: u16) -> bool {
        self.interfaces.get(usize::from(interface)).is_some_and(|interface| interface.role != Role::Router)
    }

    /// The bridge that an interface is a port of.
    #[must_use]
    #[inline]
    pub fn bridge(&self, interface: u16) -> Option<&Bridge> {
        match self.interfaces.get(usize::from(interface))?.role {
            Role::Bridge(domain) => self.bridges.iter().find(|bridge| bridge.domain == domain),
            Role::Router | Role::CrossConnect(_) => None,
        }
    }

    /// The VLAN tag of an interface's frames.
    #[must_use]
    pub fn vlan(&self, interface: u16) -> Option<u16> {
        self.interfaces.get(usize::from(interface))?.vlan
    }
}
