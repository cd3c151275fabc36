//! A router of two interfaces with addresses of IPv6, and the messages that stations send to it.

use std::net::{IpAddr, Ipv6Addr};

use etherparse::{Icmpv6Slice, SlicedPacket};
use fastpath::counters::Reason;
use fastpath::fib::Prefix;
use fastpath::router::Hop;
use wire::{MacAddress, checksum, ethernet, ipv4, ipv6, neighbour};

use crate::common::{OURS, THEIRS, Two};

/// The router's address at the second interface, and a station there.
pub const US: &str = "2001:db8:1::1";
pub const THEM: &str = "2001:db8:1::9";
/// A host behind the neighbour at the first interface.
pub const HOST: &str = "2001:db8:10::1";
pub const GATEWAY: &str = "2001:db8::2";

/// A router with an address of each of its interfaces, and a route to where [`HOST`] is.
pub fn two() -> Two {
    addressed(Two::new(1024))
}

/// Gives a router the same.
pub fn addressed(mut two: Two) -> Two {
    for (number, address) in [(0, "2001:db8::1"), (1, US)] {
        two.router.add_address(number, ip(address), 64).unwrap();
    }
    two.router.set_neighbour(0, ip(GATEWAY), THEIRS[0]).unwrap();
    let behind = Prefix::new(u128::from(v6("2001:db8:10::")), 48).unwrap();
    two.router.add_route(behind, &[Hop::Neighbour(0, ip(GATEWAY))]).unwrap();
    two
}

pub fn v6(address: &str) -> Ipv6Addr {
    address.parse().unwrap()
}

pub fn ip(address: &str) -> IpAddr {
    v6(address).into()
}

pub fn link_local(mac: MacAddress) -> String {
    ipv6::link_local(mac).to_string()
}

pub fn packet(
    (to, from): (MacAddress, MacAddress),
    (source, destination): (&str, &str),
    (next_header, hop_limit): (u8, u8),
    payload: &[u8],
) -> Vec<u8> {
    let header = ipv6::Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: payload.len() as u16,
        next_header,
        hop_limit,
        source: v6(source),
        destination: v6(destination),
    };
    let ethernet = ethernet::Header { destination: to, source: from, ethertype: ethernet::IPV6 };
    [&ethernet.emit()[..], &header.emit(), payload].concat()
}

/// A packet with an ICMPv6 message, whose checksum is written here.
pub fn icmp6(
    macs: (MacAddress, MacAddress),
    (source, destination): (&str, &str),
    hop_limit: u8,
    message: &[u8],
) -> Vec<u8> {
    let mut message = message.to_vec();
    message[2..4].fill(0);
    let pseudo = checksum::pseudo_ipv6(v6(source), v6(destination), ipv6::ICMP, message.len() as u16);
    let sum = pseudo.bytes(&message).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    packet(macs, (source, destination), (ipv6::ICMP, hop_limit), &message)
}

pub fn discovery(kind: u8, flags: u8, target: &str, option: Option<MacAddress>) -> Vec<u8> {
    let mut message = neighbour::Header { kind, checksum: 0, flags, target: v6(target) }.emit().to_vec();
    let which = if kind == neighbour::SOLICITATION { 1 } else { 2 };
    message.extend(option.iter().flat_map(|mac| neighbour::emit_link_address(which, *mac)));
    message
}

/// A solicitation for `target` from the station at the second interface.
pub fn solicitation(source: &str, target: &str, option: Option<MacAddress>) -> Vec<u8> {
    let group = ipv6::solicited_node(v6(target));
    let message = discovery(neighbour::SOLICITATION, 0, target, option);
    icmp6((ipv6::group_mac(group), THEIRS[1]), (source, &group.to_string()), 255, &message)
}

/// An advertisement from the station at the second interface.
pub fn advertisement(destination: &str, target: &str, flags: u8, option: Option<MacAddress>) -> Vec<u8> {
    icmp6(
        (OURS[1], THEIRS[1]),
        (THEM, destination),
        255,
        &discovery(neighbour::ADVERTISEMENT, flags, target, option),
    )
}

/// A UDP packet from [`HOST`].
pub fn udp(destination: &str, hop_limit: u8, length: usize) -> Vec<u8> {
    packet((OURS[0], THEIRS[0]), (HOST, destination), (ipv4::UDP, hop_limit), &vec![0xab; length - 40])
}

/// Whether etherparse finds the packet whole, and its ICMPv6 checksum right.
pub fn is_right(frame: &[u8]) -> bool {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(etherparse::NetSlice::Ipv6(packet)) = sliced.net else { return false };
    let header = packet.header();
    let message = Icmpv6Slice::from_slice(packet.payload().payload).unwrap();
    message.is_checksum_valid(header.source(), header.destination())
}

/// Has a frame arrive, and finds the reason why it or nothing was dropped.
pub fn reason_of(two: &mut Two, interface: usize, frame: Vec<u8>) -> Option<Reason> {
    let count = |two: &Two| Reason::ALL.iter().map(|&reason| two.dropped(reason)).collect::<Vec<_>>();
    let before = count(two);
    two.wires[interface].put(frame);
    two.run();
    let after = count(two);
    let mut changed =
        Reason::ALL.iter().zip(before.iter().zip(&after)).filter(|(_, (before, after))| before != after);
    let (reason, (before, after)) = changed.next()?;
    assert_eq!((after - before, changed.next()), (1, None));
    Some(*reason)
}

pub fn learned(two: &mut Two) -> Vec<(u16, IpAddr, MacAddress)> {
    two.router.poll();
    let mut found: Vec<_> =
        two.router.neighbours().filter(|found| found.1.is_ipv6() && found.1 != ip(GATEWAY)).collect();
    found.sort_by_key(|found| (found.0, found.1));
    found
}
