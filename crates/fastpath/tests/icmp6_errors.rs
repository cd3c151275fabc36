//! Echoes and errors of IPv6, and what goes to the kernel: messages go to a router between devices in ordinary
//! memory, what it answers is looked at byte by byte.

use std::sync::{Arc, Mutex};

use crate::common::{OURS, THEIRS, Two, damaged};
use fastpath::counters::Reason;
use fastpath::fib::Prefix;
use fastpath::punt::{Kernel, Punt};
use fastpath::router::Hop;
use proptest::prelude::*;
use wire::{MacAddress, ethernet, icmp, ipv4, ipv6, neighbour};

use crate::common::icmp6::{
    GATEWAY, HOST, THEM, US, advertisement, icmp6, ip, is_right, learned, link_local, packet, reason_of, two,
    udp, v6,
};

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
                let frame = icmp6(macs, (addresses[from], addresses[to]), hop_limit, &message);
                two.wires[port].put(damaged(frame, changes, cut));
                put += 1;
            }
            two.run();
            two.router.poll();
        }
        let balance = two.check(put);
        let sent: Vec<_> = two.wires.iter().flat_map(|wire| std::iter::from_fn(|| wire.take())).collect();
        prop_assert_eq!(sent.len() as u64, balance.sent);
        for frame in sent {
            // What was forwarded has had one hop more.
            let of_us = [64, 255].contains(&frame[14 + 7]);
            prop_assert!(!of_us || is_right(&frame), "{frame:x?}");
        }
    }
}
