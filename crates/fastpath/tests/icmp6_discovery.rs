//! Neighbour discovery (IPv6): messages go to a router between devices in ordinary memory, what it answers is
//! looked at byte by byte.

use std::time::Duration;

use crate::common::{OURS, THEIRS, Two};
use fastpath::counters::Reason;
use fastpath::events::Event;
use fastpath::fib::Prefix;
use fastpath::router::Hop;
use wire::{MacAddress, icmp, ipv4, ipv6, neighbour};

use crate::common::icmp6::{
    HOST, THEM, US, advertisement, discovery, icmp6, ip, is_right, learned, link_local, packet, reason_of,
    solicitation, two, udp, v6,
};

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
fn a_station_that_wants_the_routers_address_is_told_that_it_is_taken() {
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
    // A host that is on none of our subnets is answered, but not noted.
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
