//! What the kernel forgets of interfaces that go down: a namespace enters, its routes, permanent
//! neighbours and IPv6 addresses leave, and are there again afterwards, no matter who added them.

use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::route::{RouteAttribute, RouteMessage, RouteProtocol};
use rtnetlink::packet_core::{NLM_F_ACK, NLM_F_CREATE};

use crate::error::Result;
use crate::netlink::{Neighbour, Netlink};

/// The part of a namespace's configuration that goes with its interfaces.
#[derive(Debug)]
pub(crate) struct Forgotten {
    /// Interface, address and prefix.
    addresses: Vec<(u32, IpAddr, u8)>,
    neighbours: Vec<Neighbour>,
    /// Those that lead to a gateway after those that the gateway is reached by.
    routes: Vec<RouteMessage>,
}

impl Forgotten {
    /// All there is, while the interfaces are up.
    pub fn read(netlink: &Netlink) -> Result<Self> {
        let mut routes = netlink.route_messages()?;
        routes.retain(is_added);
        routes.sort_by_key(|route| route.attributes.iter().any(is_gateway));
        let mut neighbours = netlink.neighbours()?;
        neighbours.retain(|neighbour| neighbour.permanent);
        Ok(Self { addresses: addresses(netlink)?, neighbours, routes })
    }

    /// Brings back what is missing, the interfaces being up again.
    pub fn restore(&self, netlink: &Netlink) -> Result<()> {
        let there = addresses(netlink)?;
        for (interface, address, prefix) in self.addresses.iter().filter(|address| !there.contains(address)) {
            netlink.add_address(*interface, *address, *prefix)?;
        }
        for neighbour in &self.neighbours {
            netlink.add_neighbour(neighbour.interface, neighbour.address, neighbour.mac)?;
        }
        let there: Vec<RouteMessage> = netlink.route_messages()?.iter().map(lasting).collect();
        for route in self.routes.iter().map(lasting).filter(|route| !there.contains(route)) {
            let message = RouteNetlinkMessage::NewRoute(route);
            netlink.change("cannot restore a route of the device", message, NLM_F_ACK | NLM_F_CREATE)?;
        }
        Ok(())
    }
}

/// The addresses of IPv6: those of IPv4 stay.
fn addresses(netlink: &Netlink) -> Result<Vec<(u32, IpAddr, u8)>> {
    let message = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    let answers = netlink.dump("cannot list the addresses", message)?;
    let address = |answer: &RouteNetlinkMessage| {
        let RouteNetlinkMessage::NewAddress(message) = answer else { return None };
        let address = message.attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Address(address) if address.is_ipv6() => Some(*address),
            _ => None,
        })?;
        Some((message.header.index, address, message.header.prefix_len))
    };
    Ok(answers.iter().filter_map(address).collect())
}

/// Whether somebody added it; the kernel makes its own from the addresses.
fn is_added(route: &RouteMessage) -> bool {
    route.header.protocol != RouteProtocol::Kernel
}

fn is_gateway(attribute: &RouteAttribute) -> bool {
    matches!(attribute, RouteAttribute::Gateway(_) | RouteAttribute::Via(_) | RouteAttribute::MultiPath(_))
}

/// A route without what changes while it is used.
fn lasting(route: &RouteMessage) -> RouteMessage {
    let mut route = route.clone();
    route.attributes.retain(|attribute| !matches!(attribute, RouteAttribute::CacheInfo(_)));
    route
}
