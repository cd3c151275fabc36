//! IPv4 packets for the router itself: echo requests come back, byte by byte, and all else goes to the kernel
//! as it arrived.

use std::net::Ipv4Addr;

use etherparse::{Icmpv4Slice, Icmpv4Type, Ipv4HeaderSlice};
use fastpath::counters::Reason;
use fastpath::punt::Kernel;
use proptest::prelude::*;
use wire::checksum::Sum;
use wire::{MacAddress, icmp};

use crate::common::{OURS, THEIRS, Taken, Two, changed, frame, ping};

const US: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THEM: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// [`Two`], whose first interface has the address [`US`].
fn two() -> Two {
    let mut two = Two::new(1024);
    two.router.add_address(0, US.into(), 24).unwrap();
    two
}

#[test]
fn an_echo_request_comes_back_as_its_reply() {
    let mut two = two();
    // Even with one hop left, since it has arrived.
    two.wires[0].put(ping(THEM, US, 1, b"what is sent comes back"));
    two.run();
    let reply = two.wires[0].take().unwrap();
    let mut expected = ping(US, THEM, 64, b"what is sent comes back");
    expected[..6].copy_from_slice(&THEIRS[0].0);
    expected[6..12].copy_from_slice(&OURS[0].0);
    expected[34] = icmp::ECHO_REPLY;
    expected[36..38].fill(0);
    let sum = Sum::default().bytes(&expected[34..]).checksum();
    expected[36..38].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(reply, expected);
    assert_eq!((two.wires[0].take(), two.counters.made.get()), (None, 0));
}

#[test]
fn what_is_for_the_router_goes_to_the_kernel_as_it_arrived() {
    let mut two = two();
    let tagged = two.router.add_vlan(0, 7).unwrap();
    two.router.add_address(tagged, [10, 7, 0, 1].into(), 24).unwrap();
    let kernel = Taken::new(1000);
    two.router.set_kernel(0, Some(Kernel::new(kernel.clone()))).unwrap();
    let of_vlan = Taken::new(1000);
    two.router.set_kernel(tagged, Some(Kernel::new(of_vlan.clone()))).unwrap();

    let to_all = |frame: Vec<u8>| [&MacAddress::BROADCAST.0, &frame[6..]].concat();
    let option = |kind: u8| {
        changed(frame(OURS[0], [48, 0, 0, 1], 64, 46), |frame| {
            frame[14] = 0x46;
            frame[34..38].copy_from_slice(&[kind, 4, 0, 0]);
        })
    };
    let frames = [
        frame(OURS[0], US.octets(), 64, 46),
        changed(ping(THEM, US, 64, b"part"), |frame| frame[20] = 0x20),
        changed(ping(THEM, US, 64, b"part"), |frame| frame[21] = 1),
        to_all(frame(OURS[0], [255; 4], 64, 46)),
        to_all(frame(OURS[0], [10, 0, 0, 255], 64, 46)),
        frame(MacAddress([1, 0, 0x5e, 0, 0, 5]), [224, 0, 0, 5], 1, 46),
        option(148),
    ];
    for frame in &frames {
        two.wires[0].put(frame.clone());
    }
    let mut in_vlan = frame(OURS[0], [10, 7, 0, 1], 64, 46);
    let untagged = in_vlan.clone();
    in_vlan.splice(12..12, [0x81, 0, 0, 7]);
    two.wires[0].put(in_vlan);
    two.run();
    // Each node hands its own over.
    let (mut taken, mut frames) = (kernel.take(), frames);
    taken.sort();
    frames.sort();
    assert_eq!(taken, frames);
    assert_eq!(of_vlan.take(), [untagged]);
    assert_eq!(two.counters.balance().punted, 8);
    assert_eq!(two.counters.interfaces[usize::from(tagged)].punted.get(), 1);
    // Options that are nothing to routers do not stop a packet.
    two.wires[0].put(option(7));
    two.run();
    assert!(two.wires[1].take().is_some());
}

#[test]
fn what_nobody_takes_ends_under_its_reason() {
    let mut two = two();
    two.router.add_address(1, [10, 1, 0, 1].into(), 24).unwrap();
    two.router.set_kernel(1, Some(Kernel::new(Taken::new(0)))).unwrap();
    let broadcast = MacAddress::BROADCAST;
    let source_route = changed(frame(OURS[0], [48, 0, 0, 1], 64, 46), |frame| {
        frame[14] = 0x46;
        frame[34..38].copy_from_slice(&[1, 131, 3, 4]);
    });
    let short = changed(ping(THEM, US, 64, b""), |frame| frame[17] = 24);
    let mut wrong = ping(THEM, US, 64, b"sum");
    wrong[44] ^= 1;
    let cases = [
        (0, Reason::PuntNowhere, frame(OURS[0], US.octets(), 64, 46)),
        (1, Reason::PuntFull, frame(OURS[1], US.octets(), 64, 46)),
        (0, Reason::Ip4DirectedBroadcast, frame(OURS[0], [10, 1, 0, 255], 64, 46)),
        (0, Reason::Ip4LinkBroadcast, frame(broadcast, US.octets(), 64, 46)),
        (0, Reason::Ip4LinkBroadcast, frame(broadcast, [48, 0, 0, 1], 64, 46)),
        (0, Reason::Ip4LinkBroadcast, frame(broadcast, [10, 1, 0, 255], 64, 46)),
        (0, Reason::Ip4SourceRoute, source_route),
        (0, Reason::IcmpTruncated, short),
        (0, Reason::IcmpChecksum, wrong),
    ];
    for (port, reason, frame) in cases {
        let before = two.dropped(reason);
        two.wires[port].put(frame);
        two.run();
        assert_eq!(two.dropped(reason), before + 1, "{reason:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    /// Sums are put right whatever an echo holds.
    #[test]
    fn replies_are_what_others_hold_for_right(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 50),
    ) {
        let mut two = two();
        for payload in payloads {
            two.wires[0].put(ping(THEM, US, 64, &payload));
            two.run();
            let reply = two.wires[0].take().unwrap();
            let header = Ipv4HeaderSlice::from_slice(&reply[14..]).unwrap();
            prop_assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
            let message = Icmpv4Slice::from_slice(&reply[34..]).unwrap();
            let kind = message.icmp_type();
            prop_assert!(matches!(kind, Icmpv4Type::EchoReply(echo) if (echo.id, echo.seq) == (7, 9)));
            prop_assert_eq!(message.checksum(), kind.calc_checksum(&payload));
            prop_assert_eq!(message.payload(), &payload[..]);
        }
    }
}
