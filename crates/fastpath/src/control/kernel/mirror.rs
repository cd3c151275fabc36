//! The kernel's tables as they are known here: what the kernel told enters, what is new of that leaves.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use wire::MacAddress;

use super::Change;
use super::candidates::{Agreement, Candidates};
use super::hosts::Known;
use super::message::{InterfaceAddress, Neighbour, Presence, Route, Told};
use crate::fib::Address;

/// What is known of the kernel's tables.
pub(super) struct Mirror {
    routes4: Candidates<u32>,
    routes6: Candidates<u128>,
    addresses: Known<InterfaceAddress, ()>,
    neighbours: Known<(u32, IpAddr), (MacAddress, bool)>,
    /// By interface, whether it is up.
    links: HashMap<u32, bool>,
    /// The nexthop objects that routes were seen to go by.
    objects: HashSet<u32>,
}

impl Mirror {
    pub fn new() -> Self {
        Self {
            routes4: Candidates::new(),
            routes6: Candidates::new(),
            addresses: Known::new(),
            neighbours: Known::new(),
            links: HashMap::new(),
            objects: HashSet::new(),
        }
    }

    /// All tables are about to be read.
    pub fn begin_reading(&mut self) {
        self.routes4.begin_reading();
        self.routes6.begin_reading();
        self.addresses.begin_reading();
        self.neighbours.begin_reading();
        self.links.clear();
        self.objects.clear();
    }

    /// This was read in a table.
    pub fn read(&mut self, told: Told, changes: &mut Vec<Change>) {
        match told {
            Told::Route4(route) => {
                self.objects.extend(route.object);
                changes.extend(self.routes4.read(route.prefix, route.metric, route.path).map(Change::Route4));
            }
            Told::Route6(route) => {
                self.objects.extend(route.object);
                changes.extend(self.routes6.read(route.prefix, route.metric, route.path).map(Change::Route6));
            }
            // An entry of any other table says as much as a notification.
            told => {
                self.notified(told, changes);
            }
        }
    }

    /// All tables were read.
    pub fn end_reading(&mut self, changes: &mut Vec<Change>) {
        self.routes4.end_reading(|change| changes.push(Change::Route4(change)));
        self.routes6.end_reading(|change| changes.push(Change::Route6(change)));
        self.addresses.end_reading(|address| changes.push(address_gone(address)));
        self.neighbours.end_reading(|(interface, address)| {
            changes.push(Change::NeighbourRemoved { interface, address });
        });
        changes.push(Change::Synchronised);
    }

    /// The kernel told this by itself. Doubtful is what makes it change routes of which it does not tell:
    /// - an interface went down or up: routes through it go, and come back, unsaid (IPv4 and multipath);
    /// - an IPv4 address went: routes that send from it go unsaid;
    /// - a nexthop object changed or went: so did the routes that go by it.
    pub fn notified(&mut self, told: Told, changes: &mut Vec<Change>) -> Agreement {
        match told {
            Told::Route4(route) => {
                self.objects.extend(route.object);
                change_route(&mut self.routes4, route, |change| changes.push(Change::Route4(change)))
            }
            Told::Route6(route) => {
                self.objects.extend(route.object);
                change_route(&mut self.routes6, route, |change| changes.push(Change::Route6(change)))
            }
            Told::Address(presence, address) => {
                let InterfaceAddress { interface, address: ip, length } = address;
                match presence {
                    Presence::There if self.addresses.set(address, ()) => {
                        changes.push(Change::Address { interface, address: ip, length });
                    }
                    Presence::Gone if self.addresses.unset(address) => {
                        changes.push(address_gone(address));
                        if ip.is_ipv4() {
                            return Agreement::Doubtful;
                        }
                    }
                    _ => {}
                }
                Agreement::Agrees
            }
            Told::Neighbour(neighbour) => {
                changes.extend(self.neighbour(neighbour));
                Agreement::Agrees
            }
            Told::Link { interface, up } => {
                let before = self.links.insert(interface, up);
                if before.unwrap_or(false) == up { Agreement::Agrees } else { Agreement::Doubtful }
            }
            Told::NextHopObject(id) if self.objects.contains(&id) => Agreement::Doubtful,
            Told::NextHopObject(_) | Told::Nothing => Agreement::Agrees,
        }
    }

    fn neighbour(&mut self, neighbour: Neighbour) -> Option<Change> {
        let Neighbour { interface, address, mac } = neighbour;
        match mac {
            Some((mac, permanent)) => self
                .neighbours
                .set((interface, address), (mac, permanent))
                .then_some(Change::Neighbour { interface, address, mac, permanent }),
            None => self
                .neighbours
                .unset((interface, address))
                .then_some(Change::NeighbourRemoved { interface, address }),
        }
    }
}

fn change_route<A: Address>(
    routes: &mut Candidates<A>,
    route: Route<A>,
    changed: impl FnOnce(super::RouteChange<A>),
) -> Agreement {
    let (change, agreement) = match route.place {
        Some(place) => (routes.add(route.prefix, route.metric, route.path, place), Agreement::Agrees),
        None => routes.remove(route.prefix, route.metric, &route.path),
    };
    if let Some(change) = change {
        changed(change);
    }
    agreement
}

fn address_gone(address: InterfaceAddress) -> Change {
    let InterfaceAddress { interface, address, length } = address;
    Change::AddressRemoved { interface, address, length }
}
