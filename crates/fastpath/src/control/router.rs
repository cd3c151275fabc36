//! The control of a router: interfaces, addresses, neighbours and routes enter; what workers forward by
//! leaves. One thread owns it; it never waits for a worker.

mod addresses;
mod filters;
mod hops;
mod known;
mod listing;
mod neighbours;
mod routes;
mod shortcuts;
mod source;
mod table;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use wire::{MacAddress, ethernet, vlan};

use self::hops::Hops;
pub(crate) use self::hops::Turns;
use self::known::Known;
pub use self::listing::{Asked, Listed, Routes};
pub use self::neighbours::NeighbourCounts;
pub use self::shortcuts::Shortcut;
pub use self::source::Source;
use self::table::Table;
use crate::dataplane::acl::Filters;
use crate::dataplane::bridge;
use crate::dataplane::counters::{INTERFACES, Reason};
pub use crate::dataplane::forwarding::Hop;
use crate::dataplane::forwarding::{Adjacency, Device, Forwarding, Interface, Role};
use crate::dataplane::node::Node;
use crate::dataplane::punt::Kernel;
use crate::dataplane::states::{self, Mailbox};
use crate::dataplane::trace::{Tracer, Traces};
use crate::events::{self, EVENTS, Event, Injections, Injector};
use crate::fib::{self, Address, Capacity, Fib, Reader};
use crate::publish::{Publisher, Subscriber};
use crate::subnet::Subnet;

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
    /// There is no memory for the states of flows.
    #[error("no memory for the states of flows ({0}): write a lower maximum in [states]")]
    States(std::io::Error),
    /// Nobody knows where the gateway is.
    #[error("gateway {0} is on no interface's subnet: name its interface, or give that an address there")]
    Gateway(IpAddr),
}

/// A kind of address that the router has routes to: `u32` is IPv4, `u128` is IPv6.
pub trait Family: Address {
    /// The table of its routes.
    #[doc(hidden)]
    #[allow(private_interfaces)] // of no use to others
    fn table(router: &mut Router) -> &mut Table<Self>;

    /// Whether `address` is such a one.
    fn has(address: IpAddr) -> bool;
}

impl Family for u32 {
    #[allow(private_interfaces)]
    fn table(router: &mut Router) -> &mut Table<Self> {
        &mut router.ip4
    }

    fn has(address: IpAddr) -> bool {
        address.is_ipv4()
    }
}

impl Family for u128 {
    #[allow(private_interfaces)]
    fn table(router: &mut Router) -> &mut Table<Self> {
        &mut router.ip6
    }

    fn has(address: IpAddr) -> bool {
        address.is_ipv6()
    }
}

/// A router without its workers.
pub struct Router {
    ip4: Table<u32>,
    ip6: Table<u128>,
    forwarding: Forwarding,
    publisher: Publisher<Forwarding>,
    /// The adjacency of each next hop.
    hops: Hops,
    neighbours: Known,
    neighbour_counts: NeighbourCounts,
    /// Whether changes are held back, to be published together.
    batch: bool,
    /// Whether workers do not know all yet.
    changed: bool,
    /// Neighbours that are to get their routes when the batch is published.
    unconnected: Vec<(u16, IpAddr)>,
    /// What workers tell.
    events: Receiver<Event>,
    /// For workers to come.
    sender: SyncSender<Event>,
    /// By worker.
    injectors: Vec<Injector>,
    /// By worker: what it has in common with the router of its states of flows.
    mailboxes: Vec<Arc<Mailbox>>,
    /// How these are set.
    states: states::Settings,
    /// Whether workers have tables for them.
    has_tables: bool,
    /// How bridges are set, where it is not as usual, by domain.
    bridges: HashMap<u16, bridge::Settings>,
    /// When the last tick was.
    now: Duration,
    /// What workers noted of packets.
    traces: Arc<Traces>,
    /// What changes with all that packets are forwarded by.
    edition: u64,
    /// Interfaces and destinations of packets that may take shortcuts from now on.
    forwarded: Vec<(u16, IpAddr)>,
}

/// What ties a worker to its router.
pub struct Attachment {
    pub(crate) updates: Subscriber<Forwarding>,
    pub(crate) ip4: Reader<u32>,
    pub(crate) ip6: Reader<u128>,
    pub(crate) events: SyncSender<Event>,
    pub(crate) injections: Injections,
    pub(crate) turns: Arc<Turns>,
    pub(crate) trace: Tracer,
    pub(crate) mailbox: Arc<Mailbox>,
    /// The worker's number.
    pub(crate) worker: u16,
}

impl Router {
    /// One without interfaces.
    ///
    /// # Errors
    /// [`Error::Fib`] when there is no memory for the tables.
    pub fn new() -> Result<Self, Error> {
        Self::with_capacity(Capacity::of::<u32>(), Capacity::of::<u128>())
    }

    /// As [`Self::new`], with tables of these sizes for IPv4 and IPv6.
    ///
    /// # Errors
    /// As there.
    pub fn with_capacity(ip4: Capacity, ip6: Capacity) -> Result<Self, Error> {
        // The first adjacency is that of packets without a route.
        let forwarding =
            Forwarding { adjacencies: vec![Adjacency::drop(Reason::Ip4NoRoute)], ..Forwarding::default() };
        let (sender, events) = sync_channel(EVENTS);
        let mut router = Self {
            ip4: Table::new(Fib::new(ip4)?),
            ip6: Table::new(Fib::new(ip6)?),
            publisher: Publisher::new(forwarding.clone()),
            forwarding,
            hops: Hops::default(),
            neighbours: Known::default(),
            neighbour_counts: NeighbourCounts::default(),
            batch: false,
            changed: false,
            unconnected: Vec::new(),
            events,
            sender,
            injectors: Vec::new(),
            mailboxes: Vec::new(),
            states: states::Settings::default(),
            has_tables: false,
            bridges: HashMap::new(),
            now: Duration::ZERO,
            traces: Arc::default(),
            edition: 1,
            forwarded: Vec::new(),
        };
        router.discard_what_nobody_may_send_to()?;
        Ok(router)
    }

    /// For one more worker.
    #[must_use]
    pub fn attach(&mut self) -> Attachment {
        let (injector, injections) = events::injections();
        let worker = self.injectors.len() as u16;
        self.injectors.push(injector);
        Attachment {
            updates: self.publisher.subscribe(),
            ip4: self.ip4.fib.reader(),
            ip6: self.ip6.fib.reader(),
            events: self.sender.clone(),
            injections,
            turns: self.hops.attach(),
            trace: Tracer::new(Arc::clone(&self.traces), worker),
            mailbox: self.new_mailbox(),
            worker,
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
        self.ip4.fib.reader()
    }

    /// For one more reader: the IPv6 routes.
    #[must_use]
    pub fn ip6(&self) -> Reader<u128> {
        self.ip6.fib.reader()
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
            filters: Filters::default(),
        };
        let number = self.add_interface(interface)?;
        self.forwarding.devices.push(Device { untagged: number, ..Device::default() });
        self.change();
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
        let (kernel, filters) = (None, Filters::default());
        let new = Interface { name, vlan, role, addresses, kernel, filters, ..parent };
        let number = self.add_interface(new)?;
        self.forwarding.devices[device].tagged.push((tag, number));
        self.change();
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
        self.note_filters();
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
        self.change();
    }

    /// It is `now` since any fixed moment: what has had its time is forgotten, or asked whether it is still there. Wanted about every
    /// second.
    pub fn tick(&mut self, now: Duration) {
        self.now = now;
        for bridge in &self.forwarding.bridges {
            bridge.stations.tick(now);
        }
        self.age_neighbours();
    }

    fn add_interface(&mut self, interface: Interface) -> Result<u16, Error> {
        let number = self.forwarding.interfaces.len();
        if number == INTERFACES {
            return Err(Error::Interfaces);
        }
        self.forwarding.interfaces.push(interface);
        Ok(number as u16)
    }

    fn remake_bridges(&mut self) {
        let Forwarding { interfaces, bridges, .. } = &mut self.forwarding;
        *bridges = bridge::of(interfaces, bridges, &self.bridges, self.now);
    }

    /// Makes the adjacency of a hop anew, if it has one.
    fn remake_adjacency(&mut self, hop: Hop) {
        if let Some(index) = self.hops.get(hop) {
            self.forwarding.adjacencies[index.index() as usize] = self.adjacency(hop);
            self.change();
        }
    }

    fn remake_adjacencies(&mut self) {
        for (hop, index) in self.hops.iter() {
            self.forwarding.adjacencies[index.index() as usize] = self.adjacency(hop);
        }
        self.change();
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
                let neighbour = self.neighbours.get(&(number, address));
                let interface = self.forwarding.interfaces.get(usize::from(number));
                let Some((neighbour, interface)) = neighbour.zip(interface) else {
                    return Self::unresolved(hop, number, address);
                };
                let (next, carries) = match (address, interface.filters.look_at_output()) {
                    (IpAddr::V4(_), false) => (Node::Ip4Rewrite, ethernet::IPV4),
                    (IpAddr::V4(_), true) => (Node::AclOutIp4, ethernet::IPV4),
                    (IpAddr::V6(_), false) => (Node::Ip6Rewrite, ethernet::IPV6),
                    (IpAddr::V6(_), true) => (Node::AclOutIp6, ethernet::IPV6),
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

    /// Workers are to know what has changed, at the end of the batch if one is under way.
    fn change(&mut self) {
        self.changed = true;
        if !self.batch {
            self.publish();
        }
    }

    fn publish(&mut self) {
        self.edition += 1;
        self.publisher.publish(self.forwarding.clone());
        self.hops.published();
        self.changed = false;
    }

    /// Makes many changes of routes through `hops`, of which workers hear once, before the first change; each route
    /// through an unknown hop would publish it by itself.
    ///
    /// # Errors
    /// [`Error::Fib`] when there is no room for so many next hops; nothing has changed then.
    pub fn with_next_hops<T>(
        &mut self,
        hops: &[Hop],
        changes: impl FnOnce(&mut Self) -> T,
    ) -> Result<T, Error> {
        let mut held = Vec::with_capacity(hops.len());
        let all = hops.iter().try_for_each(|&hop| self.hold(hop).map(|index| held.push(index)));
        if all.is_ok() && self.changed {
            self.publish();
        }
        let result = all.map(|()| changes(self));
        self.release(&held);
        Ok(result?)
    }

    /// Makes many changes of interfaces and neighbours, of which workers hear at its end. Each publication
    /// costs a copy of all adjacencies.
    ///
    /// # Errors
    /// Those of `changes`, of which those before the first error stay; [`Error::Fib`] when there is no room
    /// for a neighbour's route.
    pub fn batch<T>(&mut self, changes: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.batch {
            return changes(self);
        }
        self.batch = true;
        let result = changes(self);
        self.batch = false;
        // Held until they have their routes, so that all are published at once.
        let unconnected = std::mem::take(&mut self.unconnected);
        let hops = unconnected.iter().map(|&(interface, address)| Hop::Neighbour(interface, address));
        let held: Vec<_> = hops.map_while(|hop| self.hold(hop).ok()).collect();
        if self.changed {
            self.publish();
        }
        let mut connected = Ok(());
        for (interface, address) in unconnected {
            connected = connected.and(self.connect_or_forget((interface, address)));
        }
        self.release(&held);
        connected.and(result)
    }
}
