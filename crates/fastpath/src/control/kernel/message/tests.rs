//! Messages as the kernel would write them.

use netlink_packet_core::{Emitable, NLM_F_CREATE, NetlinkBuffer};
use netlink_packet_route::route::{RouteLwEnCapType, RouteLwTunnelEncap, RouteMplsIpTunnel};
use proptest::prelude::*;

use super::*;

/// Reads a message of this kind.
fn told(kind: u16, flags: u16, payload: &[u8]) -> Result<Told, DecodeError> {
    let mut bytes = vec![0; 16 + payload.len()];
    bytes[16..].copy_from_slice(payload);
    let mut message = NetlinkBuffer::new(&mut bytes);
    message.set_length(16 + payload.len() as u32);
    message.set_message_type(kind);
    message.set_flags(flags);
    read(&NetlinkBuffer::new_checked(bytes.as_slice()).unwrap())
}

/// A route to 10.0.0.0/8 of the main table.
fn ten(kind: RouteType, attributes: Vec<RouteAttribute>) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = AddressFamily::Inet;
    message.header.destination_prefix_length = 8;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.kind = kind;
    message.attributes = attributes;
    message.attributes.push(RouteAttribute::Destination(RouteAddress::Inet(Ipv4Addr::new(10, 0, 0, 0))));
    message
}

fn read_route(message: &RouteMessage, kind: u16, flags: u16) -> Told {
    let mut payload = vec![0; message.buffer_len()];
    message.emit(&mut payload);
    told(kind, flags, &payload).unwrap()
}

fn path_of(message: &RouteMessage) -> Option<Path> {
    match read_route(message, libc::RTM_NEWROUTE, NLM_F_CREATE) {
        Told::Route4(route) => Some(route.path),
        Told::Nothing => None,
        told => panic!("{told:?}"),
    }
}

#[test]
fn a_route_is_read() {
    let gateway = Ipv4Addr::new(192, 0, 2, 1);
    let attributes = vec![
        RouteAttribute::Oif(7),
        RouteAttribute::Gateway(RouteAddress::Inet(gateway)),
        RouteAttribute::Priority(20),
        RouteAttribute::NhId(9),
    ];
    let message = ten(RouteType::Unicast, attributes);
    for (kind, flags, place) in [
        (libc::RTM_NEWROUTE, NLM_F_CREATE, Some(Place::First)),
        (libc::RTM_NEWROUTE, NLM_F_CREATE | NLM_F_APPEND, Some(Place::Last)),
        (libc::RTM_NEWROUTE, NLM_F_REPLACE, Some(Place::Replace)),
        (libc::RTM_DELROUTE, 0, None),
    ] {
        let prefix = Prefix::new(10 << 24, 8).unwrap();
        let path = Path::through(vec![Hop { interface: 7, gateway: Some(gateway.into()), weight: 1 }]);
        let route = Route { prefix, metric: 20, path, place, object: Some(9) };
        assert_eq!(read_route(&message, kind, flags), Told::Route4(route));
    }
}

#[test]
fn what_no_router_forwards_by_is_left_out() {
    let mut elsewhere = ten(RouteType::Unicast, vec![RouteAttribute::Oif(7)]);
    elsewhere.attributes.push(RouteAttribute::Table(1000));
    let mut for_some = ten(RouteType::Unicast, vec![RouteAttribute::Oif(7)]);
    for_some.header.tos = 16;
    let mut link_local = ten(RouteType::Unicast, vec![RouteAttribute::Oif(7)]);
    link_local.header.address_family = AddressFamily::Inet6;
    link_local.attributes[1] =
        RouteAttribute::Destination(RouteAddress::Inet6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)));
    for message in [elsewhere, for_some, link_local, ten(RouteType::Unicast, vec![])] {
        assert_eq!(path_of(&message), None, "{message:?}");
    }
}

#[test]
fn a_route_that_only_the_kernel_can_take_is_left_to_it() {
    let labelled = vec![
        RouteAttribute::Oif(7),
        RouteAttribute::EncapType(RouteLwEnCapType::Mpls),
        RouteAttribute::Encap(vec![RouteLwTunnelEncap::Mpls(RouteMplsIpTunnel::Ttl(64))]),
    ];
    for message in [ten(RouteType::Unicast, labelled), ten(RouteType::Local, vec![RouteAttribute::Oif(1)])] {
        assert_eq!(path_of(&message), Some(Path::Kernel));
    }
}

#[test]
fn dead_next_hops_are_left_out_of_a_route_that_came() {
    let hop = |interface, flags| {
        let mut hop = RouteNextHop::default();
        (hop.interface_index, hop.flags, hop.hops) = (interface, flags, 2);
        hop
    };
    let hops = vec![hop(1, RouteNextHopFlags::Dead), hop(2, RouteNextHopFlags::Linkdown)];
    let message = ten(RouteType::Unicast, vec![RouteAttribute::MultiPath(hops)]);
    let alive = Hop { interface: 2, gateway: None, weight: 3 };
    assert_eq!(path_of(&message), Some(Path::through(vec![alive])));
    let Told::Route4(gone) = read_route(&message, libc::RTM_DELROUTE, 0) else { panic!("no route") };
    assert_eq!(gone.path.hops().len(), 2);
}

#[test]
fn a_gateway_of_the_other_family_is_one() {
    let gateway = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    let via = RouteAttribute::Via(RouteVia::Inet6(gateway));
    let message = ten(RouteType::Unicast, vec![RouteAttribute::Oif(7), via]);
    let hop = Hop { interface: 7, gateway: Some(gateway.into()), weight: 1 };
    assert_eq!(path_of(&message), Some(Path::through(vec![hop])));
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange(kind in 0..120u16, flags: u16, payload: Vec<u8>) {
        let _ = told(kind, flags, &payload);
    }
}
