//! The router's neighbours: what is set by hand or learned from them enters; adjacencies and routes to those
//! on subnets of an interface leave. Those that were learned are asked again when they have said nothing for
//! long, and forgotten when they do not answer (RFC 1122, 2.3.2.1; RFC 4861, 7.3.3), or when others need their
//! room. One for whose route there is none is forgotten, too, so that it is learned again when there may be.

use std::net::IpAddr;
use std::time::Duration;

use wire::{MacAddress, arp, ethernet, ipv6};

use super::addresses::{is_link_local, width};
use super::known::{Neighbour, Place, Room};
use super::{Error, Hop, Router, Source};
use crate::dataplane::icmp6;
use crate::events::{EVENTS, Event};

/// How long a neighbour is believed that says nothing.
const BELIEVED: Duration = Duration::from_secs(300);
/// How often it is asked then, and how long it may take to answer each time (RFC 4861, section 10).
const PROBES: u32 = 3;
const PATIENCE: Duration = Duration::from_secs(1);
/// How many are asked at a tick: half of what waits for a worker, the rest of which is for the kernel's frames.
const ASKED: usize = 512;

/// What happened to neighbours since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeighbourCounts {
    /// Those that were forgotten because others needed their room.
    pub evicted: u64,
    /// Those that were not learned, as there was no room.
    pub refused: u64,
    /// Those that were not learned, as the table of routes was full.
    pub without_route: u64,
    /// Those that said another link address than before.
    pub moved: u64,
}

impl Router {
    /// Handles the events that workers have told, as many as there are room for at most; says how many. A
    /// neighbour for whose route there is no room is not learned, which [`Self::neighbour_counts`] tells.
    pub fn poll(&mut self) -> usize {
        let events: Vec<_> = self.events.try_iter().take(EVENTS).collect();
        // What fails is counted.
        let _ = self.batch(|router| {
            events.iter().for_each(|&event| _ = router.handle(event));
            Ok(())
        });
        events.len()
    }

    /// What happened to neighbours since the start.
    #[must_use]
    pub fn neighbour_counts(&self) -> NeighbourCounts {
        self.neighbour_counts
    }

    /// Takes notice of what a worker tells. What neighbours say of addresses that are on no subnet of their
    /// interface, or were set by hand, is passed over.
    ///
    /// # Errors
    /// [`Error::Fib`] when there is no room for a neighbour's route.
    pub fn handle(&mut self, event: Event) -> Result<(), Error> {
        let (interface, address, mac) = match event {
            Event::Neighbour { interface, address, mac }
            | Event::Answer { interface, address, mac }
            | Event::Offer { interface, address, mac }
            | Event::Announcement { interface, address, mac } => (interface, address, mac),
            Event::Forwarded { interface, destination } => {
                self.note_forwarded(interface, destination);
                return Ok(());
            }
        };
        let known = self.neighbours.get(&(interface, address)).copied();
        let on_link = self.interface(interface).is_ok_and(|found| found.subnet_of(address).is_some());
        let answers = matches!(event, Event::Answer { .. });
        let noted = match known {
            Some(neighbour) => {
                neighbour.learned && (neighbour.mac == mac || !matches!(event, Event::Offer { .. }))
            }
            None => !matches!(event, Event::Announcement { .. }),
        };
        if !noted || !on_link || (known.is_none() && !self.make_room(interface, answers)) {
            return Ok(());
        }
        self.neighbour_counts.moved += u64::from(known.is_some_and(|known| known.mac != mac));
        let asked_for = answers || known.is_some_and(|known| known.asked_for);
        let neighbour = Neighbour { mac, learned: true, asked_for, heard: self.now, probes: 0 };
        self.note(interface, address, neighbour)
    }

    /// Has room for one more that is learned at an interface, if there may be.
    fn make_room(&mut self, interface: u16, asked_for: bool) -> bool {
        match self.neighbours.room(interface, asked_for) {
            Room::Free => true,
            Room::Instead((interface, address)) => {
                self.neighbour_counts.evicted += 1;
                self.forget(interface, address)
            }
            Room::Full => {
                self.neighbour_counts.refused += 1;
                false
            }
        }
    }

    /// Sets the link address of a neighbour by hand.
    ///
    /// # Errors
    /// [`Error::NoInterface`]; [`Error::Fib`] when there is no room for its route.
    pub fn set_neighbour(&mut self, interface: u16, address: IpAddr, mac: MacAddress) -> Result<(), Error> {
        self.interface(interface)?;
        let neighbour = Neighbour { mac, learned: false, asked_for: false, heard: self.now, probes: 0 };
        self.note(interface, address, neighbour)
    }

    /// Forgets a neighbour: who sends to it has to ask again. Says whether it was known.
    ///
    /// # Errors
    /// [`Error::NoInterface`].
    pub fn remove_neighbour(&mut self, interface: u16, address: IpAddr) -> Result<bool, Error> {
        self.interface(interface)?;
        Ok(self.forget(interface, address))
    }

    /// All neighbours: their interfaces, addresses and link addresses, in no order.
    pub fn neighbours(&self) -> impl Iterator<Item = (u16, IpAddr, MacAddress)> + '_ {
        self.neighbours.iter().map(|(&(interface, address), neighbour)| (interface, address, neighbour.mac))
    }

    /// Asks neighbours that have said nothing for long, and forgets those that do not answer.
    pub(super) fn age_neighbours(&mut self) {
        let now = self.now;
        let due = |neighbour: &Neighbour| {
            neighbour.learned && now >= neighbour.heard + BELIEVED + PATIENCE * neighbour.probes
        };
        let due = self.neighbours.iter().filter(|(_, neighbour)| due(neighbour));
        let due = due.map(|(&place, &neighbour)| (place, neighbour));
        let (silent, due): (Vec<_>, Vec<_>) = due.partition(|(_, neighbour)| neighbour.probes == PROBES);
        for (place, neighbour) in due.into_iter().take(ASKED) {
            if self.probe(place.0, place.1, neighbour.mac) {
                self.neighbours.probed(&place);
            }
        }
        if !silent.is_empty() {
            let batch = std::mem::replace(&mut self.batch, true);
            silent.iter().for_each(|&((interface, address), _)| _ = self.forget(interface, address));
            self.batch = batch;
            self.change();
        }
    }

    /// Has a worker ask a neighbour whether it is still there; says whether one does.
    fn probe(&self, number: u16, address: IpAddr, mac: MacAddress) -> bool {
        let Ok(interface) = self.interface(number) else { return false };
        let frame = match (address, interface.sender(address)) {
            (IpAddr::V4(target), Some(IpAddr::V4(sender))) => {
                let header =
                    ethernet::Header { destination: mac, source: interface.mac, ethertype: ethernet::ARP };
                let target_mac = MacAddress([0; 6]);
                let (operation, sender_mac) = (arp::REQUEST, interface.mac);
                let request = arp::Header { operation, sender_mac, sender, target_mac, target };
                [&header.emit()[..], &request.emit()].concat()
            }
            (IpAddr::V6(target), _) => {
                let destination = ipv6::group_mac(ipv6::solicited_node(target));
                let header =
                    ethernet::Header { destination, source: interface.mac, ethertype: ethernet::IPV6 };
                let mut packet = [0; icmp6::NEIGHBOUR_LENGTH];
                icmp6::solicit(&mut packet, target, (ipv6::link_local(interface.mac), interface.mac));
                [&header.emit()[..], &packet].concat()
            }
            _ => return false,
        };
        self.injectors.iter().any(|injector| injector.inject(number, &frame))
    }

    fn note(&mut self, interface: u16, address: IpAddr, neighbour: Neighbour) -> Result<(), Error> {
        let before = self.neighbours.insert((interface, address), neighbour);
        if before.map(|before| before.mac) != Some(neighbour.mac) {
            self.remake_adjacency(Hop::Neighbour(interface, address));
        }
        match before {
            Some(_) => Ok(()),
            None if self.batch => {
                self.unconnected.push((interface, address));
                Ok(())
            }
            None => self.connect_or_forget((interface, address)),
        }
    }

    /// As [`Self::connect_neighbour`]; forgets one that was learned if there is no room for its route, so that
    /// packets to it ask for it again.
    pub(super) fn connect_or_forget(&mut self, (interface, address): Place) -> Result<(), Error> {
        let connected = self.connect_neighbour(interface, address);
        let learned = self.neighbours.get(&(interface, address)).is_some_and(|neighbour| neighbour.learned);
        if connected.is_err() && learned {
            self.neighbour_counts.without_route += 1;
            self.forget(interface, address);
        }
        connected
    }

    fn forget(&mut self, interface: u16, address: IpAddr) -> bool {
        let known = self.neighbours.remove(&(interface, address)).is_some();
        if known {
            self.remake_adjacency(Hop::Neighbour(interface, address));
            self.disconnect_neighbour(interface, address);
        }
        known
    }

    /// The addresses of an interface's neighbours.
    pub(super) fn neighbours_of(&self, interface: u16) -> Vec<IpAddr> {
        let neighbours = self.neighbours.iter().map(|(place, _)| place);
        neighbours.filter(|(of, _)| *of == interface).map(|(_, address)| *address).collect()
    }

    /// Has packets to a neighbour on a subnet of its interface go there straight. Addresses that are known
    /// on their link alone have no route.
    pub(super) fn connect_neighbour(&mut self, interface: u16, address: IpAddr) -> Result<(), Error> {
        let found = self.interface(interface)?;
        if is_link_local(address)
            || self.neighbours.get(&(interface, address)).is_none()
            || !found.subnet_of(address).is_some_and(|subnet| subnet.is_host(address))
        {
            return Ok(());
        }
        self.set_route(Source::Neighbour, (address, width(address)), Hop::Neighbour(interface, address))
    }

    /// Undoes [`Self::connect_neighbour`], and forgets the neighbour if it was learned.
    pub(super) fn disconnect_neighbour(&mut self, interface: u16, address: IpAddr) {
        let hop = Hop::Neighbour(interface, address);
        if self.neighbours.get(&(interface, address)).is_some_and(|neighbour| neighbour.learned) {
            self.neighbours.remove(&(interface, address));
            self.remake_adjacency(hop);
        }
        if self.leads_to(Source::Neighbour, address, hop) {
            // Only what is reserved can take its place, for which there was room.
            let _ = self.unset_route(Source::Neighbour, (address, width(address)));
        }
    }
}
