//! Neighbour discovery, echoes and errors of IPv6: messages go to a router between devices in ordinary
//! memory, what it answers is looked at byte by byte.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{OURS, THEIRS, Two};
use etherparse::{Icmpv6Slice, SlicedPacket};
use fastpath::counters::Reason;
use fastpath::events::Event;
use fastpath::fib::Prefix;
use fastpath::punt::{Kernel, Punt};
use fastpath::router::Hop;
use proptest::prelude::*;
use wire::{MacAddress, checksum, ethernet, icmp, ipv4, ipv6, neighbour};

/// The router's address at the second interface, and a station there.
const US: &str = "2001:db8:1::1";
const THEM: &str = "2001:db8:1::9";
/// A host behind the neighbour at the first interface.
const HOST: &str = "2001:db8:10::1";
const GATEWAY: &str = "2001:db8::2";

/// A router with an address of each of its interfaces, and a route to where [`HOST`] is.
fn two() -> Two {
    let mut two = Two::new(1024);
    for (number, address) in [(0, "2001:db8::1"), (1, US)] {
        two.router.add_address(number, ip(address), 64).unwrap();
    }
    two.router.set_neighbour(0, ip(GATEWAY), THEIRS[0]).unwrap();
    let behind = Prefix::new(u128::from(v6("2001:db8:10::")), 48).unwrap();
    two.router.add_route(behind, &[Hop::Neighbour(0, ip(GATEWAY))]).unwrap();
    two
}

fn v6(address: &str) -> Ipv6Addr {
    address.parse().unwrap()
}

fn ip(address: &str) -> IpAddr {
    v6(address).into()
}

fn link_local(mac: MacAddress) -> String {
    ipv6::link_local(mac).to_string()
}

fn packet(
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
fn icmp6(
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

fn discovery(kind: u8, flags: u8, target: &str, option: Option<MacAddress>) -> Vec<u8> {
    let mut message = neighbour::Header { kind, checksum: 0, flags, target: v6(target) }.emit().to_vec();
    let which = if kind == neighbour::SOLICITATION { 1 } else { 2 };
    message.extend(option.iter().flat_map(|mac| neighbour::emit_link_address(which, *mac)));
    message
}

/// A solicitation for `target` from the station at the second interface.
fn solicitation(source: &str, target: &str, option: Option<MacAddress>) -> Vec<u8> {
    let group = ipv6::solicited_node(v6(target));
    let message = discovery(neighbour::SOLICITATION, 0, target, option);
    icmp6((ipv6::group_mac(group), THEIRS[1]), (source, &group.to_string()), 255, &message)
}

/// An advertisement from the station at the second interface.
fn advertisement(destination: &str, target: &str, flags: u8, option: Option<MacAddress>) -> Vec<u8> {
    icmp6(
        (OURS[1], THEIRS[1]),
        (THEM, destination),
        255,
        &discovery(neighbour::ADVERTISEMENT, flags, target, option),
    )
}

/// A UDP packet from [`HOST`].
fn udp(destination: &str, hop_limit: u8, length: usize) -> Vec<u8> {
    packet((OURS[0], THEIRS[0]), (HOST, destination), (ipv4::UDP, hop_limit), &vec![0xab; length - 40])
}

/// Whether etherparse finds the packet whole, and its ICMPv6 checksum right.
fn is_right(frame: &[u8]) -> bool {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(etherparse::NetSlice::Ipv6(packet)) = sliced.net else { return false };
    let header = packet.header();
    let message = Icmpv6Slice::from_slice(packet.payload().payload).unwrap();
    message.is_checksum_valid(header.source(), header.destination())
}

/// Has a frame arrive, and finds the reason why it or nothing was dropped.
fn reason_of(two: &mut Two, interface: usize, frame: Vec<u8>) -> Option<Reason> {
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

fn learned(two: &mut Two) -> Vec<(u16, IpAddr, MacAddress)> {
    two.router.poll().unwrap();
    let mut found: Vec<_> =
        two.router.neighbours().filter(|found| found.1.is_ipv6() && found.1 != ip(GATEWAY)).collect();
    found.sort_by_key(|found| (found.0, found.1));
    found
}

const ANSWER: u8 = neighbour::ROUTER | neighbour::SOLICITED | neighbour::OVERRIDE;

#[test]
fn a_solicitation_is_answered_where_it_lies_and_its_sender_noted() {
    let mut two = two();
    two.wires[1].put(solicitation(THEM, US, Some(THEIRS[1])));
    two.run();
    let answer = two.wires[1].take().unwrap();
    let said = discovery(neighbour::ADVERTISEMENT, ANSWER, US, Some(OURS[1]));
    assert_eq!(answer, icmp6((THEIRS[1], OURS[1]), (US, THEM), 255, &said));
    assert!(is_right(&answer));
    assert_eq!((two.wires[0].take(), two.wires[1].take(), two.counters.made.get()), (None, None, 0));
    assert_eq!(learned(&mut two), [(1, ip(THEM), THEIRS[1])]);

    // Without the option, and with more of them, it goes to where the frame came from.
    let mut nonce = discovery(neighbour::SOLICITATION, 0, US, None);
    nonce.extend([14, 1, 1, 2, 3, 4, 5, 6, 253, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for asked in [solicitation(THEM, US, None), icmp6((OURS[1], THEIRS[1]), (THEM, US), 255, &nonce)] {
        two.wires[1].put(asked);
        two.run();
        assert_eq!(two.wires[1].take().unwrap(), answer);
    }
}

#[test]
fn whoever_wants_our_address_hears_that_it_is_taken() {
    let mut two = two();
    two.wires[1].put(solicitation("::", US, None));
    two.run();
    let all = (ipv6::group_mac(ipv6::ALL_NODES), OURS[1]);
    let flags = neighbour::ROUTER | neighbour::OVERRIDE;
    let said = discovery(neighbour::ADVERTISEMENT, flags, US, Some(OURS[1]));
    assert_eq!(two.wires[1].take().unwrap(), icmp6(all, (US, "ff02::1"), 255, &said));
    assert_eq!(learned(&mut two), []);
}

#[test]
fn an_answer_keeps_the_vlan_of_the_question() {
    let mut two = two();
    let tagged = two.router.add_vlan(1, 7).unwrap();
    two.router.add_address(tagged, ip("2001:db8:7::1"), 64).unwrap();
    let mut asked = solicitation("2001:db8:7::9", "2001:db8:7::1", Some(THEIRS[1]));
    asked.splice(12..12, [0x81, 0, 0, 7]);
    two.wires[1].put(asked);
    two.run();
    let said = discovery(neighbour::ADVERTISEMENT, ANSWER, "2001:db8:7::1", Some(OURS[1]));
    let mut expected = icmp6((THEIRS[1], OURS[1]), ("2001:db8:7::1", "2001:db8:7::9"), 255, &said);
    expected.splice(12..12, [0x81, 0, 0, 7]);
    assert_eq!(two.wires[1].take().unwrap(), expected);
    assert_eq!(learned(&mut two), [(tagged, ip("2001:db8:7::9"), THEIRS[1])]);
}

#[test]
fn what_is_no_valid_message_to_us_ends_under_its_reason() {
    let mut two = two();
    let macs = (OURS[1], THEIRS[1]);
    let asked = |option| discovery(neighbour::SOLICITATION, 0, US, option);
    let with = |change: fn(&mut Vec<u8>)| {
        let mut message = asked(Some(THEIRS[1]));
        change(&mut message);
        icmp6(macs, (THEM, US), 255, &message)
    };
    let bytes = |change: fn(&mut Vec<u8>)| {
        let mut frame = solicitation(THEM, US, Some(THEIRS[1]));
        change(&mut frame);
        frame
    };
    let link = link_local(OURS[1]);
    let (mac, solicited) = (Some(THEIRS[1]), neighbour::SOLICITED);
    let cases = [
        (Reason::NeighbourInvalid, icmp6(macs, (THEM, US), 254, &asked(mac))),
        (Reason::Icmp6Checksum, bytes(|frame| frame[56] ^= 1)),
        (Reason::Icmp6Checksum, bytes(|frame| frame[30] ^= 1)),
        (Reason::NeighbourInvalid, with(|message| message[1] = 1)),
        (Reason::NeighbourInvalid, with(|message| message.truncate(23))),
        (Reason::Icmp6Truncated, with(|message| message.truncate(7))),
        (Reason::NeighbourInvalid, with(|message| message[8] = 0xff)),
        (Reason::NeighbourInvalid, with(|message| message[25] = 0)),
        (Reason::NeighbourInvalid, with(|message| message[25] = 2)),
        (Reason::NeighbourInvalid, with(|message| message.truncate(31))),
        (Reason::NeighbourInvalid, with(|message| message[26] |= 1)),
        (Reason::NeighbourInvalid, solicitation("::", US, mac)),
        (Reason::NeighbourInvalid, icmp6(macs, ("::", "ff02::1"), 255, &asked(None))),
        (Reason::Ip6MartianSource, icmp6(macs, ("::", US), 255, &asked(None))),
        (Reason::GroupSource, icmp6((OURS[1], MacAddress([1; 6])), (THEM, US), 255, &asked(None))),
        (Reason::NeighbourOthers, solicitation(THEM, "2001:db8:1::5", mac)),
        (Reason::NeighbourOthers, solicitation(THEM, "2001:db8::1", mac)),
        (Reason::NeighbourOthers, solicitation(THEM, &link_local(OURS[0]), mac)),
        (Reason::NeighbourDuplicate, solicitation(US, US, mac)),
        (Reason::NeighbourDuplicate, advertisement("ff02::1", US, neighbour::OVERRIDE, mac)),
        (Reason::NeighbourDuplicate, advertisement("ff02::1", &link, neighbour::OVERRIDE, mac)),
        (Reason::NeighbourSubnet, advertisement(US, "2001:db8:99::9", solicited, mac)),
        (Reason::NeighbourInvalid, advertisement("ff02::1", THEM, solicited, mac)),
        (Reason::NeighbourAdvertised, advertisement(US, THEM, solicited, None)),
        (Reason::NeighbourAdvertised, advertisement("ff02::1", THEM, neighbour::OVERRIDE, mac)),
    ];
    for (at, (reason, frame)) in cases.into_iter().enumerate() {
        assert_eq!(reason_of(&mut two, 1, frame), Some(reason), "case {at}");
        assert_eq!(two.wires[1].take(), None, "case {at}");
    }
    assert_eq!(learned(&mut two), []);
    // Whoever is on none of our subnets is answered, but not noted.
    two.wires[1].put(solicitation(HOST, US, mac));
    two.run();
    assert!(two.wires[1].take().is_some());
    assert_eq!(learned(&mut two), []);
}

#[test]
fn a_neighbour_is_asked_for_its_link_address_and_then_gets_its_packets() {
    let mut two = two();
    for _ in 0..3 {
        two.wires[0].put(udp(THEM, 64, 60));
    }
    two.run();
    let group = ipv6::solicited_node(v6(THEM));
    let asked = discovery(neighbour::SOLICITATION, 0, THEM, Some(OURS[1]));
    let from_us = link_local(OURS[1]);
    let expected = icmp6((ipv6::group_mac(group), OURS[1]), (&from_us, &group.to_string()), 255, &asked);
    let sent = two.wires[1].take().unwrap();
    assert_eq!(sent, expected);
    assert!(is_right(&sent));
    assert_eq!((two.wires[1].take(), two.dropped(Reason::Ip6NoNeighbour)), (None, 3));
    assert_eq!(two.counters.made.get(), 1);

    two.wires[1].put(advertisement(
        &from_us,
        THEM,
        neighbour::SOLICITED | neighbour::OVERRIDE,
        Some(THEIRS[1]),
    ));
    two.run();
    assert_eq!(learned(&mut two), [(1, ip(THEM), THEIRS[1])]);
    two.wires[0].put(udp(THEM, 64, 60));
    two.run();
    let payload = [0xab; 20];
    let expected = packet((THEIRS[1], OURS[1]), (HOST, THEM), (ipv4::UDP, 63), &payload);
    assert_eq!(two.wires[1].take().unwrap(), expected);
}

#[test]
fn what_is_known_of_a_neighbour_changes_as_its_flags_say() {
    let mut two = two();
    let [first, second, third] = [1, 2, 3].map(|last| MacAddress([2, 9, 9, 9, 9, last]));
    let (s, o) = (neighbour::SOLICITED, neighbour::OVERRIDE);
    let say = |two: &mut Two, to, flags, mac| {
        two.wires[1].put(advertisement(to, THEM, flags, Some(mac)));
        two.run();
        learned(two).first().map(|found| found.2)
    };
    assert_eq!(say(&mut two, "ff02::1", o, first), None, "nobody asked");
    assert_eq!(say(&mut two, US, 0, first), None);
    assert_eq!(say(&mut two, US, s, first), Some(first));
    assert_eq!(say(&mut two, US, s, second), Some(first), "it may not be the best");
    assert_eq!(say(&mut two, US, 0, second), Some(first));
    assert_eq!(say(&mut two, US, s | o, second), Some(second));
    assert_eq!(say(&mut two, "ff02::1", o, third), Some(third));
    two.router.set_neighbour(1, ip(THEM), first).unwrap();
    assert_eq!(say(&mut two, US, s | o, second), Some(first), "it was set by hand");
}

#[test]
fn a_silent_neighbour_is_asked_again_and_believed_when_it_answers() {
    let mut two = two();
    let at = Duration::from_secs;
    let say = |two: &mut Two, flags, last| {
        two.wires[1].put(advertisement(US, THEM, flags, Some(MacAddress([2, 9, 9, 9, 9, last]))));
        two.run();
        learned(two);
    };
    two.router.tick(at(1000));
    say(&mut two, neighbour::SOLICITED | neighbour::OVERRIDE, 1);
    let group = ipv6::solicited_node(v6(THEM));
    let asked = discovery(neighbour::SOLICITATION, 0, THEM, Some(OURS[1]));
    let ends = (&*link_local(OURS[1]), &*group.to_string());
    let asked = icmp6((ipv6::group_mac(group), OURS[1]), ends, 255, &asked);
    let asks = |two: &mut Two, second| {
        two.router.tick(at(second));
        two.run();
        let sent: Vec<_> = std::iter::from_fn(|| two.wires[1].take()).collect();
        assert!(sent.iter().all(|sent| *sent == asked));
        sent.len()
    };
    assert_eq!((asks(&mut two, 1299), asks(&mut two, 1300)), (0, 1));
    // The same again may not be the best, but confirms what is known; another does not.
    say(&mut two, neighbour::SOLICITED, 1);
    assert_eq!((asks(&mut two, 1301), asks(&mut two, 1600)), (0, 1));
    say(&mut two, neighbour::SOLICITED, 2);
    assert_eq!((asks(&mut two, 1601), asks(&mut two, 1602), asks(&mut two, 1603)), (1, 1, 0));
    assert_eq!(learned(&mut two), []);
}

#[test]
fn what_is_of_a_link_stays_on_it() {
    let mut two = two();
    let (us, them) = (link_local(OURS[1]), link_local(THEIRS[1]));
    two.wires[1].put(solicitation(&them, &us, Some(THEIRS[1])));
    two.run();
    let said = discovery(neighbour::ADVERTISEMENT, ANSWER, &us, Some(OURS[1]));
    assert_eq!(two.wires[1].take().unwrap(), icmp6((THEIRS[1], OURS[1]), (&us, &them), 255, &said));
    assert_eq!(learned(&mut two), [(1, ip(&them), THEIRS[1])]);

    // An echo goes back over the link; nobody's link-local address has a route.
    let echo = |kind: u8| [kind, 0, 0, 0, 1, 2, 3, 4, 5];
    let ping = |macs, to: &str| icmp6(macs, (&them, to), 64, &echo(icmp::ECHO_REQUEST_V6));
    two.wires[1].put(ping((OURS[1], THEIRS[1]), &us));
    two.run();
    let answer = icmp6((THEIRS[1], OURS[1]), (&us, &them), 64, &echo(icmp::ECHO_REPLY_V6));
    assert_eq!(two.wires[1].take().unwrap(), answer);
    let others = ping((OURS[1], THEIRS[1]), &link_local(OURS[0]));
    assert_eq!(reason_of(&mut two, 1, others), Some(Reason::Ip6LinkLocal));
    let known = packet((OURS[0], THEIRS[0]), (HOST, &them), (ipv4::UDP, 64), &[0; 8]);
    assert_eq!(reason_of(&mut two, 0, known), Some(Reason::Ip6LinkLocal));

    // An interface with another link address has another one here.
    two.router.set_interface(1, |interface| interface.mac = MacAddress([2, 0, 0, 0, 0, 0x77])).unwrap();
    let gone = ping((MacAddress([2, 0, 0, 0, 0, 0x77]), THEIRS[1]), &us);
    assert_eq!(reason_of(&mut two, 1, gone), Some(Reason::Ip6LinkLocal));
}

#[test]
fn an_echo_is_answered_where_it_lies() {
    let mut two = two();
    for length in [0, 1, 56, 1400] {
        let mut message = vec![icmp::ECHO_REQUEST_V6, 0, 0, 0, 0x12, 0x34, 0, 1];
        message.extend((0..length).map(|at| at as u8));
        // To the address of the other interface.
        two.wires[0].put(icmp6((OURS[0], THEIRS[0]), (HOST, US), 3, &message));
        two.run();
        message[0] = icmp::ECHO_REPLY_V6;
        let answer = two.wires[0].take().unwrap();
        assert_eq!(answer, icmp6((THEIRS[0], OURS[0]), (US, HOST), 64, &message));
        assert!(is_right(&answer));
    }
    assert_eq!((two.counters.made.get(), two.counters.balance().dropped), (0, 0));
    let macs = (OURS[0], THEIRS[0]);
    let cases = [
        icmp6(macs, (HOST, "ff02::1"), 64, &[icmp::ECHO_REQUEST_V6, 0, 0, 0, 0, 0, 0, 0]),
        icmp6(macs, (HOST, US), 64, &[icmp::ECHO_REQUEST_V6, 1, 0, 0, 0, 0, 0, 0]),
        icmp6(macs, (HOST, US), 64, &[icmp::ECHO_REPLY_V6, 0, 0, 0, 0, 0, 0, 0]),
        packet(macs, (HOST, US), (ipv4::TCP, 64), &[0; 20]),
        packet(macs, (HOST, US), (44, 64), &[58, 0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 0]),
        packet(macs, (HOST, "ff02::5"), (89, 1), &[0; 20]),
    ];
    for (at, frame) in cases.into_iter().enumerate() {
        assert_eq!(reason_of(&mut two, 0, frame), Some(Reason::PuntNowhere), "case {at}");
        assert_eq!(two.wires[0].take(), None, "case {at}");
    }
}

/// The error about a frame that came in at the first interface.
fn error(kind: u8, code: u8, value: u32, about: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0];
    message.extend(value.to_be_bytes());
    message.extend(about[ethernet::LENGTH..].iter().take(1280 - 48));
    icmp6((THEIRS[0], OURS[0]), ("2001:db8::1", HOST), 64, &message)
}

#[test]
fn sources_are_told_why_their_packets_went_no_further() {
    let mut two = two();
    two.router.set_neighbour(1, ip(THEM), THEIRS[1]).unwrap();
    for (prefix, reason) in
        [("2001:db8:97::", Reason::Ip6Prohibited), ("2001:db8:98::", Reason::Ip6Unreachable)]
    {
        let prefix = Prefix::new(u128::from(v6(prefix)), 48).unwrap();
        two.router.add_route(prefix, &[Hop::Drop(reason)]).unwrap();
    }
    let mut padded = udp("2001:db8:99::1", 64, 41);
    padded.resize(60, 0);
    let cases = [
        (Reason::Ip6NoRoute, 1, 0, 0, udp("2001:db8:99::1", 64, 60)),
        (Reason::Ip6Prohibited, 1, 1, 0, udp("2001:db8:97::1", 64, 60)),
        (Reason::Ip6Unreachable, 1, 3, 0, udp("2001:db8:98::1", 64, 60)),
        (Reason::Ip6Expired, 3, 0, 0, udp(THEM, 1, 60)),
        (Reason::Ip6Expired, 3, 0, 0, udp(THEM, 0, 1500)),
        (Reason::Ip6TooBig, 2, 0, 1500, udp(THEM, 64, 1501)),
        (Reason::Ip6NoRoute, 1, 0, 0, icmp6((OURS[0], THEIRS[0]), (HOST, "2001:db8:99::1"), 9, &[128; 8])),
    ];
    for (reason, kind, code, value, frame) in cases {
        assert_eq!(reason_of(&mut two, 0, frame.clone()), Some(reason));
        let told = two.wires[0].take().unwrap();
        assert_eq!(told, error(kind, code, value, &frame), "{reason:?}");
        assert!(is_right(&told) && told.len() <= 14 + 1280);
    }
    assert_eq!(reason_of(&mut two, 0, padded.clone()), Some(Reason::Ip6NoRoute));
    assert_eq!(two.wires[0].take().unwrap(), error(1, 0, 0, &padded[..14 + 41]), "without padding");
    assert_eq!((two.counters.made.get(), two.wires[1].take()), (8, None));

    // Who is known on the link alone is told there.
    let them = link_local(THEIRS[0]);
    let beyond = packet((OURS[0], THEIRS[0]), (&them, THEM), (ipv4::UDP, 64), &[7; 8]);
    assert_eq!(reason_of(&mut two, 0, beyond.clone()), Some(Reason::Ip6BeyondScope));
    let told = [&[1, 2, 0, 0, 0, 0, 0, 0], &beyond[14..]].concat();
    let expected = icmp6((THEIRS[0], OURS[0]), (&link_local(OURS[0]), &them), 64, &told);
    assert_eq!(two.wires[0].take().unwrap(), expected);
}

#[test]
fn nobody_is_told_about_errors_and_groups_nor_too_often() {
    let mut two = two();
    let macs = (OURS[0], THEIRS[0]);
    let far = (HOST, "2001:db8:99::1");
    let unreachable = [1, 0, 0, 0, 0, 0, 0, 0];
    let behind = |next: u8, header: [u8; 8]| packet(macs, far, (next, 64), &[header, unreachable].concat());
    let mut to_group = udp("2001:db8:99::1", 64, 60);
    to_group[..6].copy_from_slice(&[0x33, 0x33, 0, 0, 0, 1]);
    let silent = [
        icmp6(macs, far, 64, &unreachable),
        icmp6(macs, far, 64, &[137, 0, 0, 0, 0, 0, 0, 0]),
        behind(0, [58, 0, 1, 4, 0, 0, 0, 0]),
        behind(60, [58, 0, 1, 4, 0, 0, 0, 0]),
        behind(44, [58, 0, 0, 1, 0, 0, 0, 9]),
        to_group.clone(),
    ];
    for (at, frame) in silent.into_iter().enumerate() {
        assert_eq!(reason_of(&mut two, 0, frame), Some(Reason::Ip6NoRoute), "case {at}");
        assert_eq!(two.wires[0].take(), None, "case {at}");
    }
    // Except that a packet to a group was too big; and of later fragments nobody knows what they are.
    two.router.set_neighbour(1, ip(THEM), THEIRS[1]).unwrap();
    let mut too_big = udp(THEM, 64, 1501);
    too_big[..6].copy_from_slice(&to_group[..6]);
    for frame in [too_big, behind(44, [58, 0, 1, 0, 0, 0, 0, 9])] {
        two.wires[0].put(frame);
        two.run();
        assert!(two.wires[0].take().is_some());
    }
    let before = two.counters.made.get();
    for _ in 0..2000 {
        two.wires[0].put(udp(THEM, 1, 60));
    }
    two.run();
    let told = two.counters.made.get() - before;
    assert!((50..1000).contains(&told), "{told}");
    assert_eq!(two.dropped(Reason::Ip6Expired), 2000);
}

#[test]
fn an_error_comes_from_an_address_of_the_router_if_it_has_one() {
    let mut two = Two::new(1024);
    assert_eq!(reason_of(&mut two, 0, udp(THEM, 64, 60)), Some(Reason::Ip6NoRoute));
    assert_eq!((two.wires[0].take(), two.counters.made.get()), (None, 0));
    // That of another one will do.
    two.router.add_address(1, ip(US), 64).unwrap();
    let behind = Prefix::new(u128::from(v6("2001:db8:10::")), 48).unwrap();
    two.router.set_neighbour(0, ip(GATEWAY), THEIRS[0]).unwrap();
    two.router.add_route(behind, &[Hop::Neighbour(0, ip(GATEWAY))]).unwrap();
    assert_eq!(reason_of(&mut two, 0, udp("2001:db8:99::1", 64, 60)), Some(Reason::Ip6NoRoute));
    assert_eq!(two.wires[0].take().unwrap()[22..38], v6(US).octets());
}

/// A kernel that takes all frames.
#[derive(Default)]
struct Taken(Mutex<Vec<Vec<u8>>>);

impl Punt for Taken {
    fn punt(&self, frame: &[u8]) -> bool {
        self.0.lock().unwrap().push(frame.to_vec());
        true
    }
}

#[test]
fn what_the_kernel_may_want_goes_to_it_as_it_arrived() {
    let mut two = two();
    let taken = Arc::new(Taken::default());
    two.router.set_kernel(1, Some(Kernel::new(taken.clone()))).unwrap();
    let macs = (OURS[1], THEIRS[1]);
    let frames = [
        packet(
            (ipv6::group_mac(v6("ff02::5")), THEIRS[1]),
            (&link_local(THEIRS[1]), "ff02::5"),
            (89, 1),
            &[7; 20],
        ),
        packet(macs, (THEM, US), (ipv4::TCP, 64), &[7; 20]),
        icmp6(macs, (THEM, US), 64, &[1, 0, 0, 0, 0, 0, 0, 0]),
        advertisement(US, THEM, neighbour::SOLICITED | neighbour::OVERRIDE, Some(THEIRS[1])),
    ];
    for frame in &frames {
        two.wires[1].put(frame.clone());
        two.run();
    }
    assert_eq!(*taken.0.lock().unwrap(), frames);
    assert_eq!((two.counters.balance().punted, two.counters.balance().dropped), (4, 0));
    assert_eq!(learned(&mut two), [(1, ip(THEM), THEIRS[1])]);
}

#[test]
fn a_gateway_may_be_known_on_its_link_alone() {
    let mut two = two();
    let gateway = ipv6::link_local(THEIRS[1]).into();
    let prefix = Prefix::new(u128::from(v6("2001:db8:30::")), 48).unwrap();
    two.router.add_route(prefix, &[Hop::Neighbour(1, gateway)]).unwrap();
    two.wires[0].put(udp("2001:db8:30::1", 64, 60));
    two.run();
    assert_eq!(two.wires[1].take().unwrap()[62..78], ipv6::link_local(THEIRS[1]).octets());
    two.router.handle(Event::Neighbour { interface: 1, address: gateway, mac: THEIRS[1] }).unwrap();
    two.wires[0].put(udp("2001:db8:30::1", 64, 60));
    two.run();
    assert_eq!(two.wires[1].take().unwrap()[..6], THEIRS[1].0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Messages of any bytes with right checksums, from anyone to anyone, and some bytes changed then.
    #[test]
    fn nothing_vanishes(
        vectors in prop::collection::vec(
            prop::collection::vec(
                ((0usize..2, 0usize..8, 0usize..8), (any::<u8>(), prop::sample::select(vec![0u8, 1, 64, 255])),
                 (prop::sample::select(vec![1u8, 2, 128, 129, 133, 135, 136, 137]), 0u8..2),
                 prop::collection::vec(any::<u8>(), 4..60), 0u8..4,
                 prop::collection::vec((0usize..120, any::<u8>()), 0..2), 0usize..150),
                0..200),
            1..4),
    ) {
        let mut two = two();
        let (ours, theirs) = (link_local(OURS[1]), link_local(THEIRS[1]));
        let addresses = [US, THEM, HOST, &ours, &theirs, "::", "ff02::1", "2001:db8:99::1"];
        let mut put = 0;
        for vector in vectors {
            for ((port, from, to), (mac, hop_limit), (kind, code), mut rest, target, changes, cut) in vector {
                if let (Some(place), Some(target)) = (rest.get_mut(4..20), addresses.get(usize::from(target))) {
                    place.copy_from_slice(&v6(target).octets());
                }
                let message = [&[kind, code, 0, 0][..], &rest].concat();
                let macs = (OURS[port], MacAddress([mac, 0, 0, 0, 0, 0x20]));
                let mut frame = icmp6(macs, (addresses[from], addresses[to]), hop_limit, &message);
                for (at, byte) in changes {
                    if let Some(place) = frame.get_mut(at) {
                        *place = byte;
                    }
                }
                frame.truncate(cut);
                two.wires[port].put(frame);
                put += 1;
            }
            two.run();
            two.router.poll().unwrap();
        }
        let balance = two.counters.balance();
        prop_assert_eq!(balance.received, put);
        let dropped: u64 = two.counters.reasons.iter().map(|counter| counter.get()).sum();
        prop_assert_eq!(dropped, balance.dropped);
        let sent: Vec<_> = two.wires.iter().flat_map(|wire| std::iter::from_fn(|| wire.take())).collect();
        prop_assert_eq!(sent.len() as u64, balance.sent);
        for frame in sent {
            // What was forwarded has had one hop more.
            let of_us = [64, 255].contains(&frame[14 + 7]);
            prop_assert!(!of_us || is_right(&frame), "{frame:x?}");
        }
    }
}
