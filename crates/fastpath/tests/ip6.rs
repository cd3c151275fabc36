//! IPv6 through a router between devices in ordinary memory: frames go in, what comes out is looked at byte
//! by byte, and nothing vanishes.

use std::net::{IpAddr, Ipv6Addr};

use crate::common::{OURS, THEIRS, Two, damaged};
use fastpath::counters::Reason;
use fastpath::fib::Prefix;
use fastpath::router::{Error, Hop};
use proptest::prelude::*;
use wire::{MacAddress, ethernet, ipv4, ipv6};

const HOST: &str = "2001:db8:10::1";
const BEYOND: &str = "2001:db8:30::1";

/// A router behind whose neighbours are 2001:db8:10::/48 and 2001:db8:30::/48.
fn two(room: usize) -> Two {
    let mut two = Two::new(room);
    for number in 0..2u16 {
        two.router.set_neighbour(number, neighbour(number), THEIRS[usize::from(number)]).unwrap();
        let behind = Ipv6Addr::new(0x2001, 0xdb8, 0x10 + 0x20 * number, 0, 0, 0, 0, 0);
        two.router.add_route(prefix(behind, 48), &[Hop::Neighbour(number, neighbour(number))]).unwrap();
    }
    two
}

fn neighbour(interface: u16) -> IpAddr {
    Ipv6Addr::new(0x2001, 0xdb8, interface, 0, 0, 0, 0, 2).into()
}

fn prefix(address: Ipv6Addr, length: u8) -> Prefix<u128> {
    Prefix::new(u128::from(address), length).unwrap()
}

/// A UDP packet of `length` bytes from a host behind the first interface's neighbour.
fn frame(to: MacAddress, destination: &str, hop_limit: u8, length: usize) -> Vec<u8> {
    frame_from(HOST, to, destination, hop_limit, length)
}

fn frame_from(source: &str, to: MacAddress, destination: &str, hop_limit: u8, length: usize) -> Vec<u8> {
    let ethernet = ethernet::Header { destination: to, source: THEIRS[0], ethertype: ethernet::IPV6 };
    let header = ipv6::Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: (length - ipv6::LENGTH) as u16,
        next_header: ipv4::UDP,
        hop_limit,
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    };
    let mut frame = ethernet.emit().to_vec();
    frame.extend(header.emit());
    frame.resize(ethernet::LENGTH + length, 0xab);
    frame
}

#[test]
fn a_packet_leaves_by_its_route_with_one_hop_less_to_go() {
    let mut two = two(1024);
    two.wires[0].put(frame(OURS[0], BEYOND, 64, 60));
    two.run();
    let mut expected = frame(THEIRS[1], BEYOND, 63, 60);
    expected[6..12].copy_from_slice(&OURS[1].0);
    assert_eq!(two.wires[1].take().unwrap(), expected);
    assert_eq!((two.wires[0].take(), two.wires[1].take()), (None, None));
}

#[test]
fn every_packet_that_cannot_be_forwarded_is_counted_under_its_reason() {
    let mut two = two(1024);
    let unresolved = Hop::Neighbour(1, Ipv6Addr::LOCALHOST.into());
    for (destination, hop) in
        [("2001:db8:40::", unresolved), ("2001:db8:50::", Hop::Drop(Reason::Ip6Blackhole))]
    {
        two.router.add_route(prefix(destination.parse().unwrap(), 48), &[hop]).unwrap();
    }
    let good = frame(OURS[0], BEYOND, 64, 60);
    let broken = |change: fn(&mut Vec<u8>)| {
        let mut frame = good.clone();
        change(&mut frame);
        frame
    };
    let to = |destination| frame(OURS[0], destination, 64, 60);
    let from = |source| frame_from(source, OURS[0], BEYOND, 64, 60);
    let cases = [
        (Reason::OtherStation, frame(THEIRS[0], BEYOND, 64, 60)),
        (Reason::Ip6Truncated, broken(|frame| frame.truncate(14 + 39))),
        (Reason::Ip6Truncated, broken(|frame| frame.truncate(14 + 59))),
        (Reason::Ip6Version, broken(|frame| frame[14] = 0x45)),
        (Reason::Ip6MartianSource, from("::")),
        (Reason::Ip6MartianSource, from("::1")),
        (Reason::Ip6MartianSource, from("::ffff:192.0.2.1")),
        (Reason::Ip6MartianSource, from("ff02::1")),
        (Reason::Ip6MartianDestination, to("::")),
        (Reason::Ip6MartianDestination, to("::1")),
        (Reason::Ip6MartianDestination, to("::ffff:192.0.2.1")),
        (Reason::Ip6Multicast, to("ff0e::1")),
        (Reason::Ip6LinkLocal, to("fe80::1")),
        (Reason::Ip6NoRoute, to("2001:db8:99::1")),
        (Reason::Ip6NoNeighbour, to("2001:db8:40::1")),
        (Reason::Ip6Blackhole, to("2001:db8:50::1")),
        (Reason::Ip6BeyondScope, from("fe80::1")),
        (Reason::Ip6BeyondScope, from("febf::1")),
        (Reason::Ip6Expired, frame(OURS[0], BEYOND, 1, 60)),
        (Reason::Ip6Expired, frame(OURS[0], BEYOND, 0, 60)),
        (Reason::Ip6TooBig, frame(OURS[0], BEYOND, 64, 1501)),
    ];
    for (reason, frame) in cases {
        let before = two.dropped(reason);
        two.wires[0].put(frame);
        two.run();
        assert_eq!(two.dropped(reason), before + 1, "{reason:?}");
    }
    // None of them went on: what left is solicitations and errors.
    let balance = two.counters.balance();
    assert!(balance.made > 0 && balance.made == balance.sent, "{balance:?}");
    while two.wires[1].take().is_some() {}
    for source in ["fec0::1", "64:ff9b::1", "::2:0:0:1"] {
        two.wires[0].put(from(source));
        two.run();
        assert!(two.wires[1].take().is_some(), "{source}");
    }
    two.wires[0].put(frame(OURS[0], BEYOND, 2, 1500));
    two.run();
    assert_eq!(two.wires[1].take().unwrap().len(), 1514);
}

#[test]
fn both_kinds_of_packets_pass_in_one_vector_and_in_their_order() {
    let mut two = two(1024);
    let hop = IpAddr::from([10, 1, 0, 2]);
    two.router.set_neighbour(1, hop, THEIRS[1]).unwrap();
    two.router.add_route(Prefix::new(0x3000_0000u32, 8).unwrap(), &[Hop::Neighbour(1, hop)]).unwrap();
    let ip4 = ipv4::Header {
        source: [16, 0, 0, 1].into(),
        destination: [48, 0, 0, 1].into(),
        ttl: 64,
        protocol: ipv4::UDP,
        total_length: 46,
        tos: 0,
        identification: 0,
    };
    for number in 0..100u8 {
        let mut frame = frame(OURS[0], BEYOND, 64, 60);
        if number % 2 == 0 {
            frame[12..14].copy_from_slice(&ethernet::IPV4.to_be_bytes());
            frame[14..34].copy_from_slice(&ip4.emit());
        }
        frame[55] = number;
        two.wires[0].put(frame);
    }
    two.run();
    let sent: Vec<_> = std::iter::from_fn(|| two.wires[1].take()).collect();
    let order: Vec<_> = sent.iter().map(|frame| (frame[12], frame[55])).collect();
    let of = |ethertype: u8, rest| (0..50u8).map(move |half| (ethertype, 2 * half + rest));
    assert_eq!(order.len(), 100);
    for expected in [of(0x08, 0), of(0x86, 1)] {
        let expected: Vec<_> = expected.collect();
        let kind: Vec<_> = order.iter().filter(|(first, _)| *first == expected[0].0).copied().collect();
        assert_eq!(kind, expected);
    }
}

#[test]
fn flows_are_spread_over_the_hops_of_a_route_and_each_keeps_to_one() {
    let mut two = two(1024);
    let hops = [Hop::Neighbour(0, neighbour(0)), Hop::Neighbour(1, neighbour(1))];
    two.router.add_route(prefix("2001:db8:60::".parse().unwrap(), 48), &hops).unwrap();
    let flow = |label: u16, port: u8| {
        let mut frame = frame(OURS[0], "2001:db8:60::1", 64, 60);
        frame[16..18].copy_from_slice(&label.to_be_bytes());
        frame[55] = port;
        frame
    };
    // A label names the flow, and its ports do not matter; without one, they do.
    type Flow = fn(u8) -> (u16, u8);
    let kinds: [(Flow, bool); 3] = [(|_| (7, 9), false), (|at| (7, at), false), (|at| (0, at), true)];
    for (of, spreads) in kinds {
        for at in 0..200 {
            let (label, port) = of(at);
            two.wires[0].put(flow(label, port));
        }
        two.run();
        let [first, second] = [0, 1].map(|port: usize| std::iter::from_fn(|| two.wires[port].take()).count());
        assert_eq!(first + second, 200);
        assert_eq!(first.min(second) > 50, spreads, "{first} {second}");
    }
}

#[test]
fn a_neighbour_of_the_other_kind_is_refused() {
    let mut two = two(1);
    let hop = Hop::Neighbour(0, IpAddr::from([10, 0, 0, 2]));
    let refused = two.router.add_route(prefix(Ipv6Addr::UNSPECIFIED, 0), &[hop]).unwrap_err();
    assert!(matches!(refused, Error::Family(_)) && refused.to_string().contains("10.0.0.2"), "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Good packets with any bytes changed, and of any length, in vectors of any length.
    #[test]
    fn nothing_vanishes(
        vectors in prop::collection::vec(
            prop::collection::vec(
                (0usize..2, any::<bool>(), 40usize..200, any::<u8>(),
                 prop::collection::vec((0usize..80, any::<u8>()), 0..3), 0usize..250),
                0..300),
            1..4),
        room in 0usize..600,
    ) {
        let mut two = two(room);
        let mut put = 0;
        for vector in vectors {
            for (port, beyond, length, hop_limit, changes, cut) in vector {
                let frame = frame(OURS[port], if beyond { BEYOND } else { HOST }, hop_limit, length);
                two.wires[port].put(damaged(frame, changes, cut));
                put += 1;
            }
            two.run();
        }
        let balance = two.check(put);
        let taken: usize = two.wires.iter().map(|wire| std::iter::from_fn(|| wire.take()).count()).sum();
        prop_assert_eq!(taken as u64, balance.sent);
    }
}
