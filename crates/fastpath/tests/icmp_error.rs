//! What senders are told of IPv4 packets that go no further, byte by byte, and of what nobody is told.

use std::net::Ipv4Addr;

use etherparse::{Icmpv4Slice, Ipv4HeaderSlice};
use fastpath::counters::Reason;
use fastpath::fib::Prefix;
use fastpath::router::Hop;
use wire::MacAddress;
use wire::checksum::Sum;

use crate::common::{OURS, THEIRS, Two, changed, frame, ping};

/// [`Two`], whose first interface has an address; the sender of [`frame`] is behind the first neighbour.
fn two() -> Two {
    let mut two = Two::new(1024);
    two.router.add_address(0, [10, 0, 0, 1].into(), 24).unwrap();
    two
}

/// The error about `packet`: its type and code, its second word, and what it quotes.
fn told(two: &mut Two, packet: &[u8]) -> Option<([u8; 2], [u8; 4], Vec<u8>)> {
    two.wires[0].put(packet);
    two.run();
    let error = two.wires[0].take()?;
    assert_eq!(error[..14], [&THEIRS[0].0[..], &OURS[0].0, &[8, 0]].concat());
    let header = Ipv4HeaderSlice::from_slice(&error[14..]).unwrap();
    assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
    assert_eq!((header.source(), header.destination()), ([10, 0, 0, 1], [16, 0, 0, 1]));
    assert_eq!(
        (header.ttl(), header.dcp().value(), error.len()),
        (64, 48, 14 + usize::from(header.total_len()))
    );
    let message = Icmpv4Slice::from_slice(&error[34..]).unwrap();
    assert_eq!(message.checksum(), message.icmp_type().calc_checksum(message.payload()));
    let message = &error[34..];
    Some(([message[0], message[1]], message[4..8].try_into().unwrap(), message[8..].to_vec()))
}

fn prefix(first: u8) -> Prefix<u32> {
    Prefix::new(u32::from(Ipv4Addr::new(first, 0, 0, 0)), 8).unwrap()
}

#[test]
fn senders_are_told_why_their_packets_go_no_further() {
    let mut two = two();
    two.router.add_route(prefix(60), &[Hop::Drop(Reason::Ip4Unreachable)]).unwrap();
    two.router.add_route(prefix(61), &[Hop::Drop(Reason::Ip4Prohibited)]).unwrap();
    two.router.set_interface(1, |interface| interface.mtu = 1000).unwrap();
    let whole = changed(frame(OURS[0], [48, 0, 0, 1], 64, 1001), |frame| frame[20] = 0x40);
    let cases = [
        (Reason::Ip4Expired, frame(OURS[0], [48, 0, 0, 1], 1, 46), [11, 0], [0; 4]),
        (Reason::Ip4NoRoute, frame(OURS[0], [99, 0, 0, 1], 64, 46), [3, 0], [0; 4]),
        (Reason::Ip4Unreachable, frame(OURS[0], [60, 0, 0, 1], 64, 46), [3, 1], [0; 4]),
        (Reason::Ip4Prohibited, frame(OURS[0], [61, 0, 0, 1], 64, 46), [3, 13], [0; 4]),
        (Reason::Ip4TooBig, whole, [3, 4], [0, 0, 0x3, 0xe8]),
    ];
    for (reason, packet, kind, word) in cases {
        // As much as fits 576 bytes; what pads a frame is not of the packet.
        let quoted = packet[14..packet.len().min(14 + 548)].to_vec();
        let padded = [&packet[..], &[0xee; 9]].concat();
        assert_eq!(told(&mut two, &padded), Some((kind, word, quoted)), "{reason:?}");
        assert_eq!(two.dropped(reason), 1);
    }
    assert_eq!(two.counters.made.get(), 5);
}

#[test]
fn of_some_packets_nobody_is_told() {
    let mut two = two();
    two.router.add_route(prefix(16), &[Hop::Neighbour(0, [10, 0, 0, 2].into())]).unwrap();
    let expired = frame(OURS[0], [48, 0, 0, 1], 1, 46);
    let from = |source: [u8; 4]| changed(expired.clone(), |frame| frame[26..30].copy_from_slice(&source));
    let icmp = |kind: u8| {
        changed(ping([16, 0, 0, 1].into(), [48, 0, 0, 1].into(), 1, b""), |frame| frame[34] = kind)
    };
    let cases = [
        ("a later fragment", changed(expired.clone(), |frame| frame[21] = 1)),
        ("from a subnet's broadcast", from([10, 0, 0, 255])),
        ("from a subnet's first address", from([10, 0, 0, 0])),
        ("unreachable", icmp(3)),
        ("time exceeded", icmp(11)),
        ("of unknown type", icmp(77)),
        ("an error cut short", changed(icmp(3), |frame| frame[17] = 20)),
        ("for a group", frame(MacAddress([1, 0, 0x5e, 0, 0, 5]), [224, 0, 0, 5], 1, 46)),
        ("for no one", frame(OURS[0], [127, 0, 0, 1], 1, 46)),
    ];
    for (name, packet) in cases {
        assert_eq!(told(&mut two, &packet), None, "{name}");
    }
    assert_eq!(two.counters.made.get(), 0);
    // But of these it is.
    assert_eq!(told(&mut two, &icmp(8)).unwrap().0, [11, 0]);
    assert_eq!(told(&mut two, &changed(expired, |frame| frame[20] = 0x20)).unwrap().0, [11, 0]);
}

#[test]
fn errors_are_told_at_a_rate() {
    let mut two = two();
    for _ in 0..2000 {
        two.wires[0].put(frame(OURS[0], [48, 0, 0, 1], 1, 46));
    }
    two.run();
    let told = two.counters.made.get();
    assert!((64..2000).contains(&told), "{told}");
    assert_eq!(two.dropped(Reason::Ip4Expired), 2000);
}

#[test]
fn an_interface_without_an_address_speaks_as_another() {
    let mut two = Two::new(1024);
    two.wires[0].put(frame(OURS[0], [48, 0, 0, 1], 1, 46));
    two.run();
    assert_eq!(two.wires[0].take(), None);
    two.router.add_address(1, [10, 1, 0, 1].into(), 24).unwrap();
    two.wires[0].put(frame(OURS[0], [48, 0, 0, 1], 1, 46));
    two.run();
    assert_eq!(two.wires[0].take().unwrap()[26..30], [10, 1, 0, 1]);
}

#[test]
fn a_packet_too_long_leaves_in_fragments_if_it_may() {
    let mut two = two();
    two.router.set_interface(1, |interface| interface.mtu = 600).unwrap();
    two.wires[0].put(frame(OURS[0], [48, 0, 0, 1], 64, 1400));
    two.run();
    let mut payload = Vec::new();
    for (length, place) in [(596, 0x2000u16), (596, 0x2000 | 72), (248, 144)] {
        let sent = two.wires[1].take().unwrap();
        let mut expected = frame(THEIRS[1], [48, 0, 0, 1], 63, length)[..34].to_vec();
        expected[6..12].copy_from_slice(&OURS[1].0);
        let expected = changed(expected, |frame| frame[20..22].copy_from_slice(&place.to_be_bytes()));
        assert_eq!(sent[..34], expected);
        assert_eq!(Sum::default().bytes(&sent[14..34]).checksum(), 0);
        payload.extend_from_slice(&sent[34..]);
    }
    assert_eq!(payload, [0xab; 1380]);
    assert_eq!((two.wires[1].take(), two.counters.made.get()), (None, 3));
    assert_eq!(two.dropped(Reason::Ip4Fragmented), 1);
    // All of a packet's fragments are made or none: there is room for 256.
    for _ in 0..100 {
        two.wires[0].put(frame(OURS[0], [48, 0, 0, 1], 64, 1400));
    }
    two.run();
    assert_eq!((two.dropped(Reason::Ip4Fragmented), two.dropped(Reason::Ip4NoFragments)), (86, 15));
    assert_eq!(two.counters.made.get(), 3 + 255);
}
