//! The router's neighbours: what is set by hand or learned from them enters; adjacencies and routes to those
//! on subnets of an interface leave.

use std::net::IpAddr;

use wire::MacAddress;

use super::addresses::{is_link_local, width};
use super::{Error, Hop, Router};
use crate::events::{EVENTS, Event};

/// What is known of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbour {
    pub mac: MacAddress,
    /// Whether it said so itself, and may say otherwise.
    pub learned: bool,
}

impl Router {
    /// Handles the events that workers have told, as many as there are room for at most; says how many.
    ///
    /// # Errors
    /// [`Error::Fib`] when there is no room for a neighbour's route.
    pub fn poll(&mut self) -> Result<usize, Error> {
        let events: Vec<_> = self.events.try_iter().take(EVENTS).collect();
        for &event in &events {
            self.handle(event)?;
        }
        Ok(events.len())
    }

    /// Takes notice of what a worker tells. What neighbours say of addresses that are on no subnet of their
    /// interface, or were set by hand, is passed over.
    ///
    /// # Errors
    /// [`Error::Fib`] when there is no room for a neighbour's route.
    pub fn handle(&mut self, event: Event) -> Result<(), Error> {
        let (interface, address, mac) = match event {
            Event::Neighbour { interface, address, mac }
            | Event::Offer { interface, address, mac }
            | Event::Announcement { interface, address, mac } => (interface, address, mac),
        };
        let known = self.neighbours.get(&(interface, address));
        let on_link = self.interface(interface).is_ok_and(|found| found.subnet_of(address).is_some());
        let noted = match known {
            Some(neighbour) => neighbour.learned && !matches!(event, Event::Offer { .. }),
            None => !matches!(event, Event::Announcement { .. }),
        };
        if noted && on_link {
            self.note(interface, address, Neighbour { mac, learned: true })?;
        }
        Ok(())
    }

    /// Sets the link address of a neighbour by hand.
    ///
    /// # Errors
    /// [`Error::NoInterface`]; [`Error::Fib`] when there is no room for its route.
    pub fn set_neighbour(&mut self, interface: u16, address: IpAddr, mac: MacAddress) -> Result<(), Error> {
        self.interface(interface)?;
        self.note(interface, address, Neighbour { mac, learned: false })
    }

    /// Forgets a neighbour: who sends to it has to ask again. Says whether it was known.
    ///
    /// # Errors
    /// [`Error::Fib`] when there is no room.
    pub fn remove_neighbour(&mut self, interface: u16, address: IpAddr) -> Result<bool, Error> {
        let known = self.neighbours.remove(&(interface, address)).is_some();
        if known {
            self.remake_adjacency(Hop::Neighbour(interface, address));
            self.disconnect_neighbour(interface, address)?;
        }
        Ok(known)
    }

    /// All neighbours: their interfaces, addresses and link addresses, in no order.
    pub fn neighbours(&self) -> impl Iterator<Item = (u16, IpAddr, MacAddress)> + '_ {
        self.neighbours.iter().map(|(&(interface, address), neighbour)| (interface, address, neighbour.mac))
    }

    fn note(&mut self, interface: u16, address: IpAddr, neighbour: Neighbour) -> Result<(), Error> {
        let before = self.neighbours.insert((interface, address), neighbour);
        if before.map(|before| before.mac) != Some(neighbour.mac) {
            self.remake_adjacency(Hop::Neighbour(interface, address));
        }
        if before.is_none() { self.connect_neighbour(interface, address) } else { Ok(()) }
    }

    /// The addresses of an interface's neighbours.
    pub(super) fn neighbours_of(&self, interface: u16) -> Vec<IpAddr> {
        let neighbours = self.neighbours.keys().filter(|(of, _)| *of == interface);
        neighbours.map(|(_, address)| *address).collect()
    }

    /// Has packets to a neighbour on a subnet of its interface go there straight. Addresses that are known
    /// on their link alone have no route.
    pub(super) fn connect_neighbour(&mut self, interface: u16, address: IpAddr) -> Result<(), Error> {
        let found = self.interface(interface)?;
        let ours = self.forwarding.interfaces.iter().any(|interface| interface.has(address));
        if ours
            || is_link_local(address)
            || !found.subnet_of(address).is_some_and(|subnet| subnet.is_host(address))
        {
            return Ok(());
        }
        self.set_route(address, width(address), Hop::Neighbour(interface, address))
    }

    /// Undoes [`Self::connect_neighbour`], and forgets the neighbour if it was learned.
    pub(super) fn disconnect_neighbour(&mut self, interface: u16, address: IpAddr) -> Result<(), Error> {
        let hop = Hop::Neighbour(interface, address);
        if self.neighbours.get(&(interface, address)).is_some_and(|neighbour| neighbour.learned) {
            self.neighbours.remove(&(interface, address));
            self.remake_adjacency(hop);
        }
        if self.leads_to(address, hop)? {
            self.unset_route(address, width(address))?;
        }
        Ok(())
    }
}
