//! The kernel's messages as plain values: bytes enter; routes of the main table, addresses, neighbours
//! and what else matters leave.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{DecodeError, NLM_F_APPEND, NLM_F_REPLACE, NlasIterator, Parseable};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkFlags, LinkHeader};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteNextHop, RouteNextHopFlags,
    RouteType, RouteVia,
};
use nix::libc;
use wire::MacAddress;

use super::candidates::Place;
use super::netlink::Message;
use super::{Hop, Path};
use crate::fib::{Address, Prefix};

// Of linux/rtnetlink.h and linux/nexthop.h.
const RTM_NEWNEXTHOP: u16 = 104;
const RTM_DELNEXTHOP: u16 = 105;
const NEXTHOP_HEADER: usize = 8;
const NHA_ID: u16 = 1;

/// What the kernel told.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    Route4(Route<u32>),
    Route6(Route<u128>),
    Address(Presence, InterfaceAddress),
    Neighbour(Neighbour),
    /// An interface is up, or is not (any more).
    Link {
        interface: u32,
        up: bool,
    },
    /// A nexthop object came, changed or went.
    NextHopObject(u32),
    /// Something that does not matter here.
    Nothing,
}

/// Whether something is there or has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    There,
    Gone,
}

/// A route that came or went.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Route<A> {
    pub prefix: Prefix<A>,
    pub metric: u32,
    pub path: Path,
    /// Where it stands among its like; `None` if it went.
    pub place: Option<Place>,
    /// The nexthop object that it goes by.
    pub object: Option<u32>,
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct InterfaceAddress {
    pub interface: u32,
    pub address: IpAddr,
    pub length: u8,
}

/// What is known of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbour {
    pub interface: u32,
    pub address: IpAddr,
    /// Its MAC address, and whether that never expires; `None` if it is not known (any more).
    pub mac: Option<(MacAddress, bool)>,
}

/// Reads one message.
pub(super) fn read(message: &Message) -> Result<Told, DecodeError> {
    let bytes = message.payload();
    match message.message_type() {
        kind @ (libc::RTM_NEWROUTE | libc::RTM_DELROUTE) => {
            let flags = (kind == libc::RTM_NEWROUTE).then(|| message.flags());
            Ok(route(&RouteMessage::parse(bytes)?, flags))
        }
        libc::RTM_NEWADDR => Ok(address(&AddressMessage::parse(bytes)?, Presence::There)),
        libc::RTM_DELADDR => Ok(address(&AddressMessage::parse(bytes)?, Presence::Gone)),
        libc::RTM_NEWNEIGH => Ok(neighbour(&NeighbourMessage::parse(bytes)?, Presence::There)),
        libc::RTM_DELNEIGH => Ok(neighbour(&NeighbourMessage::parse(bytes)?, Presence::Gone)),
        kind @ (libc::RTM_NEWLINK | libc::RTM_DELLINK) => {
            let header = LinkHeader::parse(bytes)?;
            // Bridges tell of their ports with messages of another family.
            if header.interface_family != AddressFamily::Unspec {
                return Ok(Told::Nothing);
            }
            let up = kind == libc::RTM_NEWLINK && header.flags.contains(LinkFlags::Up);
            Ok(Told::Link { interface: header.index, up })
        }
        RTM_NEWNEXTHOP | RTM_DELNEXTHOP => {
            let attributes = NlasIterator::new(bytes.get(NEXTHOP_HEADER..).unwrap_or_default());
            let id = attributes.flatten().find(|attribute| attribute.kind() == NHA_ID);
            let id = id.and_then(|id| id.value().try_into().ok()).map(u32::from_ne_bytes);
            Ok(id.map_or(Told::Nothing, Told::NextHopObject))
        }
        _ => Ok(Told::Nothing),
    }
}

/// A route, if it is of the main table and for all packets to its destinations. `flags` are those of
/// the message if the route came.
fn route(message: &RouteMessage, flags: Option<u16>) -> Told {
    let header = &message.header;
    let (mut destination, mut metric, mut object) = (None, 0, None);
    let mut table = u32::from(header.table);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => destination = ip(address),
            RouteAttribute::Priority(priority) => metric = *priority,
            RouteAttribute::Table(number) => table = *number,
            RouteAttribute::NhId(id) => object = Some(*id),
            _ => {}
        }
    }
    let for_all = header.tos == 0 && header.source_prefix_length == 0;
    let remembered = header.flags.contains(RouteFlags::Cloned);
    if table != u32::from(RouteHeader::RT_TABLE_MAIN) || !for_all || remembered {
        return Told::Nothing;
    }
    let Some(path) = path(message, flags.is_some()) else { return Told::Nothing };
    let has = |flag| flags.is_some_and(|flags| flags & flag != 0);
    let place = |otherwise| {
        flags?;
        Some(if has(NLM_F_REPLACE) { Place::Replace } else { otherwise })
    };
    let length = header.destination_prefix_length;
    match (header.address_family, destination) {
        (AddressFamily::Inet, None | Some(IpAddr::V4(_))) => {
            let place = place(if has(NLM_F_APPEND) { Place::Last } else { Place::First });
            let address = v4(destination);
            told(address.into(), length, |prefix| Told::Route4(Route { prefix, metric, path, place, object }))
        }
        (AddressFamily::Inet6, None | Some(IpAddr::V6(_))) => {
            let address = v6(destination);
            // No router forwards to these.
            if address.is_unicast_link_local() || address.is_multicast() {
                return Told::Nothing;
            }
            let place = place(Place::Join);
            told(address.into(), length, |prefix| Told::Route6(Route { prefix, metric, path, place, object }))
        }
        _ => Told::Nothing,
    }
}

fn told<A: Address>(address: A, length: u8, route: impl FnOnce(Prefix<A>) -> Told) -> Told {
    Prefix::new(address, length).map_or(Told::Nothing, route)
}

/// Where a route leads; `None` if that is nowhere at present. Of a route that went, dead next hops count.
fn path(message: &RouteMessage, came: bool) -> Option<Path> {
    Some(match message.header.kind {
        RouteType::Unicast => match hops(message, came) {
            Some(hops) if hops.is_empty() => return None,
            Some(hops) => Path::through(hops),
            None => Path::Kernel,
        },
        RouteType::BlackHole => Path::Blackhole,
        // After the main table the kernel finds nothing else either.
        RouteType::Unreachable | RouteType::Throw => Path::Unreachable,
        RouteType::Prohibit => Path::Prohibit,
        RouteType::Local | RouteType::Broadcast | RouteType::Anycast | RouteType::Nat => Path::Kernel,
        _ => return None,
    })
}

/// The next hops of a route; `None` if one asks for what only the kernel can do.
fn hops(message: &RouteMessage, came: bool) -> Option<Vec<Hop>> {
    let dead = |flags: RouteNextHopFlags| came && flags.contains(RouteNextHopFlags::Dead);
    for attribute in &message.attributes {
        if let RouteAttribute::MultiPath(hops) = attribute {
            let alive = hops.iter().filter(|hop| !dead(hop.flags));
            return alive.map(multipath_hop).collect();
        }
    }
    if came && message.header.flags.contains(RouteFlags::Dead) {
        return Some(Vec::new());
    }
    let interface = message.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Oif(interface) => Some(*interface),
        _ => None,
    });
    let Some(interface) = interface else { return Some(Vec::new()) };
    Some(vec![Hop { interface, gateway: gateway(&message.attributes)?, weight: 1 }])
}

fn multipath_hop(hop: &RouteNextHop) -> Option<Hop> {
    let gateway = gateway(&hop.attributes)?;
    Some(Hop { interface: hop.interface_index, gateway, weight: u16::from(hop.hops) + 1 })
}

/// The gateway, if there is one; `None` if packets are to be wrapped or labelled.
fn gateway(attributes: &[RouteAttribute]) -> Option<Option<IpAddr>> {
    let mut gateway = None;
    for attribute in attributes {
        match attribute {
            RouteAttribute::Gateway(address) => gateway = Some(ip(address)?),
            RouteAttribute::Via(RouteVia::Inet(address)) => gateway = Some((*address).into()),
            RouteAttribute::Via(RouteVia::Inet6(address)) => gateway = Some((*address).into()),
            RouteAttribute::Via(_) | RouteAttribute::Encap(_) => return None,
            _ => {}
        }
    }
    Some(gateway)
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

fn v4(address: Option<IpAddr>) -> Ipv4Addr {
    if let Some(IpAddr::V4(address)) = address { address } else { Ipv4Addr::UNSPECIFIED }
}

fn v6(address: Option<IpAddr>) -> Ipv6Addr {
    if let Some(IpAddr::V6(address)) = address { address } else { Ipv6Addr::UNSPECIFIED }
}

fn address(message: &AddressMessage, presence: Presence) -> Told {
    let find = |wanted: fn(&AddressAttribute) -> Option<IpAddr>| message.attributes.iter().find_map(wanted);
    // On a point-to-point link the other attribute is the peer's.
    let local = find(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    let any = find(|attribute| match attribute {
        AddressAttribute::Address(address) => Some(*address),
        _ => None,
    });
    let Some(address) = local.or(any) else { return Told::Nothing };
    let (interface, length) = (message.header.index, message.header.prefix_len);
    Told::Address(presence, InterfaceAddress { interface, address, length })
}

fn neighbour(message: &NeighbourMessage, presence: Presence) -> Told {
    let address = message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => Some(IpAddr::V4(*address)),
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => Some(IpAddr::V6(*address)),
        _ => None,
    });
    let Some(address) = address.filter(|address| !address.is_multicast()) else { return Told::Nothing };
    let mac = message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(bytes) => Some(MacAddress(bytes.as_slice().try_into().ok()?)),
        _ => None,
    });
    let state = message.header.state;
    let valid = presence == Presence::There
        && matches!(
            state,
            NeighbourState::Reachable
                | NeighbourState::Stale
                | NeighbourState::Delay
                | NeighbourState::Probe
                | NeighbourState::Permanent
        );
    let mac = mac.filter(|_| valid).map(|mac| (mac, state == NeighbourState::Permanent));
    Told::Neighbour(Neighbour { interface: message.header.ifindex, address, mac })
}

#[cfg(test)]
mod tests;
