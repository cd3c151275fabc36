//! The control of a router: interfaces, addresses, neighbours and routes enter; what workers forward by
//! leaves. One thread owns it; it never waits for a worker.

mod addresses;
mod neighbours;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use wire::{MacAddress, ethernet, vlan};

use self::neighbours::Neighbour;
use crate::bridge;
use crate::counters::{INTERFACES, Reason};
use crate::events::{self, EVENTS, Event, Injections, Injector};
use crate::fib::{self, Address, Capacity, Fib, NextHop, Prefix, Reader};
pub use crate::forwarding::Hop;
use crate::forwarding::{Adjacency, Device, Forwarding, Interface, Role};
use crate::node::Node;
use crate::publish::{Publisher, Subscriber};
use crate::punt::Kernel;
use crate::subnet::Subnet;
use crate::trace::{Tracer, Traces};

/// What cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A table of routes refuses.
    #[error(transparent)]
    Fib(#[from] fib::Error),
    /// There are too many interfaces.
    #[error("a router has at most {INTERFACES} interfaces: use fewer devices or VLANs")]
    Interfaces,
    /// There is no such interface.
    #[error("there is no interface of number {0}")]
    NoInterface(u16),
    /// The tag is not one, or is taken.
    #[error("VLAN {0} is taken on this device, or is not between 1 and {most}", most = vlan::MAX_ID)]
    Vlan(u16),
    /// Packets of one kind cannot go to neighbours of the other.
    #[error("{0} is not of the same kind as the prefix: name a next hop of the prefix's kind")]
    Family(IpAddr),
    /// No interface can have the address.
    #[error("{0}/{1} cannot be an interface's address: give one that a host of that subnet may have")]
    Address(IpAddr, u8),
    /// The address belongs to an interface already.
    #[error("{0} is an interface's address already: remove it there first")]
    AddressTaken(IpAddr),
    /// The interface does not have the address.
    #[error("the interface does not have the address {0}")]
    NoAddress(IpAddr),
    /// Nobody knows where the gateway is.
    #[error("gateway {0} is on no interface's subnet: name its interface, or give that an address there")]
    Gateway(IpAddr),
}

/// A kind of address that the router has routes to: `u32` is IPv4, `u128` is IPv6.
pub trait Family: Address {
    /// The table of its routes.
    fn fib(router: &mut Router) -> &mut Fib<Self>;

    /// Whether `address` is such a one.
    fn has(address: IpAddr) -> bool;
}

impl Family for u32 {
    fn fib(router: &mut Router) -> &mut Fib<Self> {
        &mut router.ip4
    }

    fn has(address: IpAddr) -> bool {
        address.is_ipv4()
    }
}

impl Family for u128 {
    fn fib(router: &mut Router) -> &mut Fib<Self> {
        &mut router.ip6
    }

    fn has(address: IpAddr) -> bool {
        address.is_ipv6()
    }
}

/// A router without its workers.
pub struct Router {
    ip4: Fib<u32>,
    ip6: Fib<u128>,
    forwarding: Forwarding,
    publisher: Publisher<Forwarding>,
    /// The adjacency of each next hop.
    hops: HashMap<Hop, NextHop>,
    neighbours: HashMap<(u16, IpAddr), Neighbour>,
    /// What workers tell.
    events: Receiver<Event>,
    /// For workers to come.
    sender: SyncSender<Event>,
    /// By worker.
    injectors: Vec<Injector>,
    /// How bridges are set, where it is not as usual, by domain.
    bridges: HashMap<u16, bridge::Settings>,
    /// When the last tick was.
    now: Duration,
    /// What workers noted of packets.
    traces: Arc<Traces>,
}

/// What ties a worker to its router.
pub struct Attachment {
    pub(crate) updates: Subscriber<Forwarding>,
    pub(crate) ip4: Reader<u32>,
    pub(crate) ip6: Reader<u128>,
    pub(crate) events: SyncSender<Event>,
    pub(crate) injections: Injections,
    pub(crate) trace: Tracer,
}

impl Router {
    /// One without interfaces.
    ///
    /// # Errors
    /// [`Error::Fib`] when there is no memory for the tables.
    pub fn new() -> Result<Self, Error> {
        // The first adjacency is that of packets without a route.
        let forwarding =
            Forwarding { adjacencies: vec![Adjacency::drop(Reason::Ip4NoRoute)], ..Forwarding::default() };
        let (sender, events) = sync_channel(EVENTS);
        let mut router = Self {
            ip4: Fib::new(Capacity::of::<u32>())?,
            ip6: Fib::new(Capacity::of::<u128>())?,
            publisher: Publisher::new(forwarding.clone()),
            forwarding,
            hops: HashMap::new(),
            neighbours: HashMap::new(),
            events,
            sender,
            injectors: Vec::new(),
            bridges: HashMap::new(),
            now: Duration::ZERO,
            traces: Arc::default(),
        };
        router.discard_what_nobody_may_send_to()?;
        Ok(router)
    }

    /// For one more worker.
    #[must_use]
    pub fn attach(&mut self) -> Attachment {
        let (injector, injections) = events::injections();
        self.injectors.push(injector);
        Attachment {
            updates: self.publisher.subscribe(),
            ip4: self.ip4.reader(),
            ip6: self.ip6.reader(),
            events: self.sender.clone(),
            injections,
            trace: Tracer::new(Arc::clone(&self.traces), (self.injectors.len() - 1) as u16),
        }
    }

    /// By which workers can be given frames to send, in the order in which they were attached.
    #[must_use]
    pub fn injectors(&self) -> &[Injector] {
        &self.injectors
    }

    /// Traces of packets; interfaces in them are called as [`Self::forwarding`] has them.
    #[must_use]
    pub fn traces(&self) -> &Traces {
        &self.traces
    }

    /// For one more reader: the IPv4 routes.
    #[must_use]
    pub fn ip4(&self) -> Reader<u32> {
        self.ip4.reader()
    }

    /// For one more reader: the IPv6 routes.
    #[must_use]
    pub fn ip6(&self) -> Reader<u128> {
        self.ip6.reader()
    }

    /// What workers forward by, as it is now.
    #[must_use]
    pub fn forwarding(&self) -> &Forwarding {
        &self.forwarding
    }

    /// A device and its interface of untagged frames, up and routing. Devices are numbered as they come,
    /// and so are interfaces.
    ///
    /// # Errors
    /// [`Error::Interfaces`].
    pub fn add_device(&mut self, name: &str, mac: MacAddress, mtu: u16) -> Result<u16, Error> {
        let device = self.forwarding.devices.len() as u16;
        let interface = Interface {
            name: name.to_owned(),
            device,
            vlan: None,
            mac,
            mtu,
            up: true,
            role: Role::Router,
            addresses: vec![Subnet::link_local(mac)],
            kernel: None,
        };
        let number = self.add_interface(interface)?;
        self.forwarding.devices.push(Device { untagged: number, tagged: Vec::new() });
        self.publish();
        Ok(number)
    }

    /// The interface of frames with a VLAN tag, by the device of `parent`.
    ///
    /// # Errors
    /// [`Error::NoInterface`], [`Error::Vlan`], [`Error::Interfaces`].
    pub fn add_vlan(&mut self, parent: u16, tag: u16) -> Result<u16, Error> {
        let parent = self.interface(parent)?.clone();
        let device = usize::from(parent.device);
        if tag == 0 || tag > vlan::MAX_ID || self.forwarding.devices[device].tagged(tag).is_some() {
            return Err(Error::Vlan(tag));
        }
        let name = format!("{}.{tag}", parent.name);
        let (vlan, role, addresses) = (Some(tag), Role::Router, vec![Subnet::link_local(parent.mac)]);
        let kernel = None;
        let number = self.add_interface(Interface { name, vlan, role, addresses, kernel, ..parent })?;
        self.forwarding.devices[device].tagged.push((tag, number));
        self.publish();
        Ok(number)
    }

    /// An interface.
    ///
    /// # Errors
    /// [`Error::NoInterface`].
    pub fn interface(&self, number: u16) -> Result<&Interface, Error> {
        self.forwarding.interfaces.get(usize::from(number)).ok_or(Error::NoInterface(number))
    }

    /// Changes an interface.
    ///
    /// # Errors
    /// [`Error::NoInterface`].
    pub fn set_interface(&mut self, number: u16, change: impl FnOnce(&mut Interface)) -> Result<(), Error> {
        let interface =
            self.forwarding.interfaces.get_mut(usize::from(number)).ok_or(Error::NoInterface(number))?;
        let before = interface.mac;
        change(interface);
        if interface.mac != before {
            let [before, now] = [before, interface.mac].map(Subnet::link_local);
            interface.addresses.retain(|subnet| *subnet != before);
            interface.addresses.push(now);
        }
        self.remake_bridges();
        self.remake_adjacencies();
        Ok(())
    }

    /// Has what an interface does not handle itself go to the kernel by `kernel`; nowhere without one.
    ///
    /// # Errors
    /// [`Error::NoInterface`].
    pub fn set_kernel(&mut self, number: u16, kernel: Option<Kernel>) -> Result<(), Error> {
        self.set_interface(number, |interface| interface.kernel = kernel)
    }

    /// Sets a bridge, which forgets its stations if that changes it.
    pub fn set_bridge(&mut self, domain: u16, settings: bridge::Settings) {
        self.bridges.insert(domain, settings);
        self.remake_bridges();
        self.publish();
    }

    /// It is `now` since any fixed moment: what has had its time is forgotten. Wanted about every second.
    pub fn tick(&mut self, now: Duration) {
        self.now = now;
        for bridge in &self.forwarding.bridges {
            bridge.stations.tick(now);
        }
    }

    /// Has packets to a prefix go to one of `hops` each, chosen by flow where there are several.
    ///
    /// # Errors
    /// [`Error::Fib`] when there is no room, or no hop; [`Error::Family`].
    pub fn add_route<A: Family>(&mut self, prefix: Prefix<A>, hops: &[Hop]) -> Result<(), Error> {
        let other = hops.iter().find_map(|hop| match *hop {
            Hop::Neighbour(_, address) if !A::has(address) => Some(address),
            _ => None,
        });
        if let Some(address) = other {
            return Err(Error::Family(address));
        }
        let hops: Vec<_> = hops.iter().map(|&hop| self.next_hop(hop)).collect::<Result<_, _>>()?;
        let fib = A::fib(self);
        match hops[..] {
            [hop] => fib.insert(prefix, hop)?,
            _ => {
                let group = fib.add_group(&hops)?;
                fib.insert(prefix, group)?
            }
        };
        Ok(())
    }

    /// Takes the route of a prefix away. Says whether there was one.
    pub fn withdraw_route<A: Family>(&mut self, prefix: Prefix<A>) -> bool {
        A::fib(self).withdraw(prefix).is_some()
    }

    /// As [`Self::add_route`], of one hop and either kind.
    fn set_route(&mut self, address: IpAddr, length: u8, hop: Hop) -> Result<(), Error> {
        match address {
            IpAddr::V4(address) => self.add_route(Prefix::new(address.to_bits(), length)?, &[hop]),
            IpAddr::V6(address) => self.add_route(Prefix::new(address.to_bits(), length)?, &[hop]),
        }
    }

    /// As [`Self::withdraw_route`], of either kind.
    fn unset_route(&mut self, address: IpAddr, length: u8) -> Result<bool, Error> {
        Ok(match address {
            IpAddr::V4(address) => self.withdraw_route(Prefix::new(address.to_bits(), length)?),
            IpAddr::V6(address) => self.withdraw_route(Prefix::new(address.to_bits(), length)?),
        })
    }

    /// Whether an address has a route of its own, to `hop` alone.
    fn leads_to(&self, address: IpAddr, hop: Hop) -> Result<bool, Error> {
        let via = match address {
            IpAddr::V4(address) => self.ip4.get(Prefix::new(address.to_bits(), 32)?),
            IpAddr::V6(address) => self.ip6.get(Prefix::new(address.to_bits(), 128)?),
        };
        Ok(via.is_some() && via.and_then(fib::Via::next_hop) == self.hops.get(&hop).copied())
    }

    fn add_interface(&mut self, interface: Interface) -> Result<u16, Error> {
        let number = self.forwarding.interfaces.len();
        if number == INTERFACES {
            return Err(Error::Interfaces);
        }
        self.forwarding.interfaces.push(interface);
        Ok(number as u16)
    }

    /// Of IPv4 this network, loopback, and what is reserved (RFC 1812, 4.2.2.11 and 5.3.7); what is for groups
    /// or for all stations is the kernel's. Of IPv6 the
    /// unspecified address, loopback, addresses of IPv4 within a host, groups, and what never leaves its
    /// link (RFC 4291, 2.5 and 2.7; RFC 6890, table 20).
    fn discard_what_nobody_may_send_to(&mut self) -> Result<(), Error> {
        let martian = Hop::Drop(Reason::Ip6MartianDestination);
        for (first, length, hop) in [
            ([0, 0, 0, 0, 0, 0, 0, 0], 128, martian),
            ([0, 0, 0, 0, 0, 0, 0, 1], 128, martian),
            ([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, martian),
            ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, Hop::Link),
            ([0xff02, 0, 0, 0, 0, 0, 0, 0], 16, Hop::Link),
            ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, Hop::Drop(Reason::Ip6Multicast)),
        ] {
            let prefix = Prefix::new(u128::from(Ipv6Addr::from(first)), length)?;
            self.add_route(prefix, &[hop])?;
        }
        for (address, length) in [([0, 0, 0, 0], 8), ([127, 0, 0, 0], 8), ([240, 0, 0, 0], 4)] {
            let prefix = Prefix::new(u32::from(Ipv4Addr::from(address)), length)?;
            self.add_route(prefix, &[Hop::Drop(Reason::Ip4MartianDestination)])?;
        }
        for (address, length) in [(Ipv4Addr::new(224, 0, 0, 0), 4), (Ipv4Addr::BROADCAST, 32)] {
            self.add_route(Prefix::new(address.to_bits(), length)?, &[Hop::Punt])?;
        }
        Ok(())
    }

    /// The index of the adjacency of `hop`, which is published before a route can lead to it.
    fn next_hop(&mut self, hop: Hop) -> Result<NextHop, Error> {
        if let Some(&found) = self.hops.get(&hop) {
            return Ok(found);
        }
        let index = NextHop::new(self.forwarding.adjacencies.len() as u32)?;
        self.forwarding.adjacencies.push(self.adjacency(hop));
        self.hops.insert(hop, index);
        self.publish();
        Ok(index)
    }

    fn remake_bridges(&mut self) {
        let Forwarding { interfaces, bridges, .. } = &mut self.forwarding;
        *bridges = bridge::of(interfaces, bridges, &self.bridges, self.now);
    }

    /// Makes the adjacency of a hop anew, if it has one.
    fn remake_adjacency(&mut self, hop: Hop) {
        if let Some(index) = self.hops.get(&hop) {
            self.forwarding.adjacencies[index.index() as usize] = self.adjacency(hop);
            self.publish();
        }
    }

    fn remake_adjacencies(&mut self) {
        for (&hop, index) in &self.hops {
            self.forwarding.adjacencies[index.index() as usize] = self.adjacency(hop);
        }
        self.publish();
    }

    fn adjacency(&self, hop: Hop) -> Adjacency {
        match hop {
            Hop::Drop(reason) => Adjacency::drop(reason),
            Hop::Punt => Adjacency::to(Node::Punt, 0, hop),
            Hop::Local(number, IpAddr::V4(_)) => Adjacency::to(Node::Ip4Local, number, hop),
            Hop::Local(number, IpAddr::V6(_)) => Adjacency::to(Node::Ip6Local, number, hop),
            Hop::Link => Adjacency::to(Node::Ip6Local, 0, hop),
            Hop::Glean(number, address) => Self::unresolved(hop, number, address),
            Hop::Neighbour(number, address) => {
                let (next, carries) = match address {
                    IpAddr::V4(_) => (Node::Ip4Rewrite, ethernet::IPV4),
                    IpAddr::V6(_) => (Node::Ip6Rewrite, ethernet::IPV6),
                };
                let neighbour = self.neighbours.get(&(number, address));
                let interface = self.forwarding.interfaces.get(usize::from(number));
                let Some((neighbour, interface)) = neighbour.zip(interface) else {
                    return Self::unresolved(hop, number, address);
                };
                let (header, header_length) = interface.link_header(neighbour.mac, carries);
                Adjacency { header_length, mtu: interface.mtu, header, ..Adjacency::to(next, number, hop) }
            }
        }
    }

    /// That of packets whose next hop has to be asked for its link address.
    fn unresolved(hop: Hop, interface: u16, address: IpAddr) -> Adjacency {
        match address {
            IpAddr::V4(_) => Adjacency::to(Node::Ip4Arp, interface, hop),
            IpAddr::V6(_) => Adjacency::to(Node::Ip6DiscoverNeighbour, interface, hop),
        }
    }

    fn publish(&self) {
        self.publisher.publish(self.forwarding.clone());
    }
}
