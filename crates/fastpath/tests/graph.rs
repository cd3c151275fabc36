//! A router between devices in ordinary memory: frames go in, what comes out is looked at byte by byte, and
//! nothing vanishes.

use std::net::{IpAddr, Ipv4Addr};

use fastpath::counters::Reason;
use fastpath::fib::Prefix;
use fastpath::router::Hop;
use proptest::prelude::*;
use wire::checksum::Sum;
use wire::{MacAddress, arp, ethernet};

use crate::common::{OURS, THEIRS, Two, changed, damaged, frame, ping};

#[test]
fn a_packet_leaves_by_its_route_with_one_hop_less_to_live() {
    let mut two = Two::new(1024);
    two.wires[0].put(frame(OURS[0], [48, 0, 0, 1], 64, 46));
    two.run();
    let sent = two.wires[1].take().unwrap();
    let mut expected = frame(THEIRS[1], [48, 0, 0, 1], 63, 46);
    expected[6..12].copy_from_slice(&OURS[1].0);
    assert_eq!(sent, expected);
    assert_eq!((two.wires[0].take(), two.wires[1].take()), (None, None));
}

#[test]
fn every_packet_that_cannot_be_forwarded_is_counted_under_its_reason() {
    let mut two = Two::new(2);
    let good = frame(OURS[0], [48, 0, 0, 1], 64, 46);
    let broken = |change: fn(&mut Vec<u8>)| {
        let mut frame = good.clone();
        change(&mut frame);
        frame
    };
    let cases = [
        (Reason::Runt, broken(|frame| frame.truncate(13))),
        (Reason::OtherStation, frame(THEIRS[0], [48, 0, 0, 1], 64, 46)),
        (Reason::UnknownType, broken(|frame| frame[12] = 0x99)),
        (Reason::UnknownVlan, broken(|frame| frame[12..16].copy_from_slice(&[0x81, 0, 0, 7]))),
        (Reason::Ip4Truncated, broken(|frame| frame.truncate(14 + 19))),
        (Reason::Ip4Truncated, broken(|frame| frame.truncate(14 + 45))),
        (Reason::Ip4Version, broken(|frame| frame[14] = 0x65)),
        (Reason::Ip4HeaderLength, broken(|frame| frame[14] = 0x44)),
        (Reason::Ip4Checksum, broken(|frame| frame[24] ^= 1)),
        (Reason::Ip4MartianDestination, frame(OURS[0], [127, 0, 0, 1], 64, 46)),
        (Reason::Ip4NoRoute, frame(OURS[0], [99, 0, 0, 1], 64, 46)),
        (Reason::Ip4Expired, frame(OURS[0], [48, 0, 0, 1], 1, 46)),
        (Reason::Ip4TooBig, changed(frame(OURS[0], [48, 0, 0, 1], 64, 1501), |frame| frame[20] = 0x40)),
    ];
    for (reason, frame) in cases {
        let before = two.dropped(reason);
        two.wires[0].put(frame);
        two.run();
        assert_eq!(two.dropped(reason), before + 1, "{reason:?}");
    }
    for _ in 0..3 {
        two.wires[0].put(good.clone());
    }
    two.run();
    assert_eq!(two.dropped(Reason::Full), 1);
    two.router.set_interface(1, |interface| interface.up = false).unwrap();
    two.wires[0].put(good.clone());
    two.run();
    assert_eq!(two.dropped(Reason::OutputDown), 1);
}

#[test]
fn tags_are_added_and_taken_away() {
    let mut two = Two::new(1024);
    let tagged = two.router.add_vlan(1, 7).unwrap();
    let neighbour = IpAddr::from([10, 7, 0, 2]);
    two.router.set_neighbour(tagged, neighbour, THEIRS[1]).unwrap();
    let prefix = Prefix::new(u32::from(Ipv4Addr::new(49, 0, 0, 0)), 8).unwrap();
    two.router.add_route(prefix, &[Hop::Neighbour(tagged, neighbour)]).unwrap();
    two.wires[0].put(frame(OURS[0], [49, 0, 0, 1], 64, 46));
    two.run();
    let sent = two.wires[1].take().unwrap();
    let untagged = frame(OURS[1], [49, 0, 0, 1], 63, 46);
    assert_eq!((&sent[12..18], &sent[18..]), (&[0x81, 0, 0, 7, 8, 0][..], &untagged[14..]));

    let mut back = sent;
    back[..6].copy_from_slice(&OURS[1].0);
    back[18 + 16] = 16;
    let sum = Sum::default().bytes(&back[18..28]).bytes(&back[30..38]).checksum();
    back[28..30].copy_from_slice(&sum.to_be_bytes());
    two.wires[1].put(back);
    two.run();
    assert_eq!(two.wires[0].take().unwrap()[14..], frame(OURS[1], [16, 0, 0, 1], 62, 46)[14..]);
    assert_eq!(two.counters.interfaces[usize::from(tagged)].received.get(), 1);
}

#[test]
fn injected_frames_leave_by_their_interface_with_its_tag() {
    let mut two = Two::new(1024);
    let tagged = two.router.add_vlan(1, 7).unwrap();
    let sent = frame(THEIRS[1], [48, 0, 0, 1], 64, 46);
    let injector = two.router.injectors()[0].clone();
    assert!(injector.inject(1, &sent) && injector.inject(tagged, &sent) && injector.inject(9, &sent));
    two.run();
    assert_eq!(two.wires[1].take().unwrap(), sent);
    let mut expected = sent;
    expected.splice(12..12, [0x81, 0, 0, 7]);
    assert_eq!(two.wires[1].take().unwrap(), expected);
    assert_eq!((two.counters.made.get(), two.dropped(Reason::OutputDown)), (3, 1));
}

/// A frame of one of several kinds.
fn frame_of(kind: usize, port: usize, destination: [u8; 4], ttl: u8, length: usize) -> Vec<u8> {
    let us = Ipv4Addr::new(10, port as u8, 0, 1);
    let source = Ipv4Addr::from(destination);
    let target_mac = MacAddress([0; 6]);
    let ask = |operation| {
        arp::Header { operation, sender_mac: THEIRS[port], sender: source, target_mac, target: us }.emit()
    };
    let arp = |operation| {
        let to = if operation == arp::REQUEST { MacAddress::BROADCAST } else { OURS[port] };
        let header = ethernet::Header { destination: to, source: THEIRS[port], ethertype: ethernet::ARP };
        [&header.emit()[..], &ask(operation)].concat()
    };
    match kind {
        0 => arp(arp::REQUEST),
        1 => arp(arp::REPLY),
        2 => ping(source, us, ttl, &vec![0x5a; length]),
        3 => frame(OURS[port], destination, ttl, 10 * length),
        _ => frame(OURS[port], destination, ttl, length),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Frames of several kinds, good ones and such with any bytes changed or cut off, in vectors of any length.
    #[test]
    fn nothing_vanishes(
        vectors in prop::collection::vec(
            prop::collection::vec(
                (0usize..2, 0usize..8, any::<[u8; 4]>(), 20usize..200, any::<u8>(),
                 prop::collection::vec((0usize..60, any::<u8>()), 0..3), 0usize..2500),
                0..300),
            1..4),
        room in 0usize..600,
    ) {
        let mut two = Two::new(room);
        for (interface, mtu) in [(0, 1500), (1, 200)] {
            two.router.set_interface(interface, |interface| interface.mtu = mtu).unwrap();
            two.router.add_address(interface, [10, interface as u8, 0, 1].into(), 24).unwrap();
        }
        let mut put = 0;
        for vector in vectors {
            for (port, kind, mut destination, length, ttl, changes, cut) in vector {
                match destination[0] % 4 {
                    0 => destination[0] = 16,
                    1 => destination[0] = 48,
                    // One that is or is not there, ourselves, or all.
                    2 => destination = [10, destination[1] % 2, 0, destination[3]],
                    _ => {}
                }
                let frame = frame_of(kind, port, destination, ttl, length);
                two.wires[port].put(damaged(frame, changes, cut));
                put += 1;
            }
            two.run();
            two.router.poll();
        }
        let balance = two.check(put);
        let mut taken = 0;
        for wire in &two.wires {
            while wire.take().is_some() {
                taken += 1;
            }
        }
        prop_assert_eq!(taken, balance.sent);
    }
}
