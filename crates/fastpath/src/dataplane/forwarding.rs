//! What workers need to know besides routes: interfaces and adjacencies. The router makes it anew when
//! either changes; workers take it up before their next pass.

use std::net::IpAddr;

use wire::{MacAddress, ethernet, vlan};

use crate::dataplane::acl::Filters;
use crate::dataplane::bridge::Bridge;
use crate::dataplane::counters::Reason;
use crate::dataplane::node::Node;
use crate::dataplane::punt::Kernel;
use crate::dataplane::states::Timeouts;
use crate::subnet::Subnet;

/// The most bytes of a link header: Ethernet with two tags.
pub const LINK_HEADER: usize = 22;

/// Bytes of a link header with one VLAN tag.
const TAGGED: usize = ethernet::LENGTH + vlan::LENGTH;

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
    /// Its addresses of IPv4 and IPv6.
    pub addresses: Vec<Subnet>,
    /// Where what it does not handle itself goes.
    pub kernel: Option<Kernel>,
    /// Its access lists; where it does not route, nothing is held against them.
    pub filters: Filters,
}

impl Interface {
    /// Whether an address is its own.
    #[must_use]
    pub fn has(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|subnet| subnet.address == address)
    }

    /// The smallest of its subnets that an address is on.
    #[must_use]
    pub fn subnet_of(&self, address: IpAddr) -> Option<&Subnet> {
        self.addresses.iter().filter(|subnet| subnet.contains(address)).max_by_key(|subnet| subnet.length)
    }

    /// Its own address to speak from to `address`: the one on that subnet, or its first of that kind.
    #[must_use]
    pub fn sender(&self, address: IpAddr) -> Option<IpAddr> {
        let of_kind = |subnet: &&Subnet| subnet.address.is_ipv4() == address.is_ipv4();
        let subnet = self.subnet_of(address).or_else(|| self.addresses.iter().find(of_kind));
        subnet.map(|subnet| subnet.address)
    }

    /// The link header of its frames to a neighbour, of packets of an EtherType, and its length.
    #[must_use]
    pub fn link_header(&self, to: MacAddress, carries: u16) -> ([u8; LINK_HEADER], u8) {
        let mut header = [0; LINK_HEADER];
        let ethertype = if self.vlan.is_some() { vlan::CUSTOMER } else { carries };
        let ethernet = ethernet::Header { destination: to, source: self.mac, ethertype };
        header[..ethernet::LENGTH].copy_from_slice(&ethernet.emit());
        let Some(id) = self.vlan else { return (header, ethernet::LENGTH as u8) };
        let tag = vlan::Tag { id, priority: 0, ethertype: carries };
        header[ethernet::LENGTH..TAGGED].copy_from_slice(&tag.emit());
        (header, TAGGED as u8)
    }
}

/// Where packets go next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hop {
    /// To a neighbour at an interface.
    Neighbour(u16, IpAddr),
    /// To the host on an interface's subnet that has their destination; the address is the interface's there.
    Glean(u16, IpAddr),
    /// To the router itself, at this address of an interface.
    Local(u16, IpAddr),
    /// To the router itself or nowhere: what is of the link that it came from.
    Link,
    /// To the kernel.
    Punt,
    /// Nowhere, for a reason.
    Drop(Reason),
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
    pub reason: Reason,
    /// The next hop that it is of.
    pub hop: Hop,
}

/// One cache line for each packet.
const _: () = assert!(size_of::<Adjacency>() == 64);

impl Adjacency {
    /// Drops for `reason`.
    #[must_use]
    pub fn drop(reason: Reason) -> Self {
        Self { reason, ..Self::to(Node::ErrorDrop, 0, Hop::Drop(reason)) }
    }

    /// Goes to a node that needs no link header.
    #[must_use]
    pub fn to(next: Node, interface: u16, hop: Hop) -> Self {
        let reason = Reason::OutputDown;
        Self { next, header_length: 0, interface, mtu: 0, header: [0; LINK_HEADER], reason, hop }
    }
}

/// A device as the workers see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// The interface of frames without a tag.
    pub untagged: u16,
    /// The interfaces of tagged frames, by tag.
    pub tagged: Vec<(u16, u16)>,
    /// Whether one of these interfaces has an access list that what arrives is held against.
    pub filtered: bool,
    /// Whether the kernel can forward packets from it and to it by itself, where it is told how.
    pub shortcuts: bool,
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
    /// How long states of flows stay.
    pub timeouts: Timeouts,
}

impl Forwarding {
    /// Whether an interface passes frames on without looking beyond layer 2.
    #[must_use]
    pub fn is_layer_2(&self, interface: u16) -> bool {
        self.interfaces.get(usize::from(interface)).is_some_and(|interface| interface.role != Role::Router)
    }

    /// Whether what arrives at a device may have to be held against an access list.
    #[must_use]
    #[inline(always)]
    pub(crate) fn is_filtered(&self, device: u16) -> bool {
        self.devices.get(usize::from(device)).is_some_and(|device| device.filtered)
    }

    /// Whether the router wants to know of packets of a device that were forwarded.
    #[must_use]
    #[inline(always)]
    pub(crate) fn has_shortcuts(&self, device: u16) -> bool {
        self.devices.get(usize::from(device)).is_some_and(|device| device.shortcuts)
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
