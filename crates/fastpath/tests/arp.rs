//! Neighbours of IPv4: what a router asks and answers by ARP, byte by byte, and what it learns.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use fastpath::counters::Reason;
use fastpath::events::Event;
use fastpath::fib::Prefix;
use fastpath::punt::Kernel;
use fastpath::router::{Error, Hop};
use wire::{MacAddress, arp, ethernet};

use crate::common::{OURS, THEIRS, Taken, Two, frame};

const US: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const THEM: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 9);

/// [`Two`], whose second interface has the address [`US`], in a subnet of 24 bits.
fn two() -> Two {
    let mut two = Two::new(1024);
    two.router.add_address(1, US.into(), 24).unwrap();
    two
}

fn packet(to: MacAddress, from: MacAddress, packet: arp::Header) -> Vec<u8> {
    let header = ethernet::Header { destination: to, source: from, ethertype: ethernet::ARP };
    [&header.emit()[..], &packet.emit()].concat()
}

/// Who has `target`? `sender` asks.
fn request(sender: Ipv4Addr, target: Ipv4Addr) -> arp::Header {
    let target_mac = MacAddress([0; 6]);
    arp::Header { operation: arp::REQUEST, sender_mac: THEIRS[1], sender, target_mac, target }
}

/// `sender` has `mac`; told to us.
fn reply(sender: Ipv4Addr, mac: MacAddress) -> arp::Header {
    arp::Header { operation: arp::REPLY, sender_mac: mac, sender, target_mac: OURS[1], target: US }
}

fn from_them(header: arp::Header) -> Vec<u8> {
    packet(MacAddress::BROADCAST, THEIRS[1], header)
}

#[test]
fn a_request_for_our_address_is_answered_where_it_lies() {
    let mut two = two();
    let mut asked = from_them(request(THEM, US));
    asked.resize(60, 0x5a);
    two.wires[1].put(asked);
    two.run();
    let mut expected = packet(
        THEIRS[1],
        OURS[1],
        arp::Header {
            operation: arp::REPLY,
            sender_mac: OURS[1],
            sender: US,
            target_mac: THEIRS[1],
            target: THEM,
        },
    );
    expected.resize(60, 0x5a);
    assert_eq!(two.wires[1].take().unwrap(), expected);
    assert_eq!((two.wires[0].take(), two.wires[1].take(), two.counters.made.get()), (None, None, 0));
    assert_eq!(two.router.poll(), 1);
    assert!(two.router.neighbours().any(|found| found == (1, THEM.into(), THEIRS[1])));
}

#[test]
fn an_answer_is_no_longer_than_a_frame_needs_to_be() {
    let mut two = two();
    let mut asked = from_them(request(THEM, US));
    asked.resize(1852, 0x5a);
    two.wires[1].put(asked);
    two.run();
    assert_eq!(two.wires[1].take().unwrap().len(), 60);
}

#[test]
fn an_answer_keeps_the_vlan_of_the_question() {
    let mut two = two();
    let tagged = two.router.add_vlan(1, 7).unwrap();
    two.router.add_address(tagged, IpAddr::from([10, 7, 0, 1]), 24).unwrap();
    let mut asked = from_them(request(Ipv4Addr::new(10, 7, 0, 9), Ipv4Addr::new(10, 7, 0, 1)));
    asked.splice(12..12, [0x81, 0, 0, 7]);
    two.wires[1].put(asked.clone());
    two.run();
    let answer = two.wires[1].take().unwrap();
    assert_eq!(answer[12..18], [0x81, 0, 0, 7, 8, 6]);
    let answer = arp::Header::parse(&answer[18..]).unwrap();
    assert_eq!((answer.operation, answer.target), (arp::REPLY, Ipv4Addr::new(10, 7, 0, 9)));
    asked.drain(12..16);
    two.wires[1].put(asked);
    two.run();
    assert_eq!((two.wires[1].take(), two.dropped(Reason::ArpSubnet)), (None, 1));
}

#[test]
fn what_is_no_question_to_us_ends_under_its_reason() {
    let mut two = two();
    let far = Ipv4Addr::new(10, 2, 0, 9);
    let zero = Ipv4Addr::UNSPECIFIED;
    let bytes = |change: fn(&mut Vec<u8>)| {
        let mut frame = from_them(request(THEM, US));
        change(&mut frame);
        frame
    };
    let cases = [
        (Reason::ArpTruncated, bytes(|frame| frame.truncate(14 + 27))),
        (Reason::ArpFormat, bytes(|frame| frame[15] = 6)),
        (Reason::ArpFormat, bytes(|frame| frame[21] = 3)),
        (Reason::ArpSender, bytes(|frame| frame[22] = 1)),
        (Reason::ArpSender, from_them(reply(THEM, MacAddress([0; 6])))),
        (Reason::ArpSender, from_them(request(Ipv4Addr::new(10, 1, 0, 255), US))),
        (Reason::ArpSender, from_them(request(Ipv4Addr::new(10, 1, 0, 0), US))),
        (Reason::ArpSubnet, from_them(request(far, US))),
        (Reason::ArpSubnet, from_them(reply(zero, THEIRS[1]))),
        (Reason::ArpDuplicate, from_them(request(US, US))),
        (Reason::ArpDuplicate, from_them(reply(US, THEIRS[1]))),
        (Reason::ArpOthers, from_them(request(THEM, Ipv4Addr::new(10, 1, 0, 3)))),
        (Reason::ArpOthers, from_them(request(zero, THEM))),
        (Reason::ArpAnnouncement, from_them(request(THEM, THEM))),
        (Reason::ArpReply, from_them(reply(THEM, THEIRS[1]))),
    ];
    for (reason, frame) in cases {
        let before = two.dropped(reason);
        two.wires[1].put(frame);
        two.run();
        assert_eq!(two.dropped(reason), before + 1, "{reason:?}");
        assert_eq!(two.wires[1].take(), None, "{reason:?}");
    }
    // A host that probes whether our address is taken hears that it is.
    two.wires[1].put(from_them(request(zero, US)));
    two.run();
    assert!(two.wires[1].take().is_some());
    two.router.poll();
    let learned: Vec<_> = two.router.neighbours().filter(|(interface, ..)| *interface == 1).collect();
    assert!(learned.contains(&(1, THEM.into(), THEIRS[1])) && learned.len() == 2, "{learned:?}");
}

#[test]
fn the_kernel_hears_what_it_may_have_asked() {
    let mut two = two();
    let kernel = Taken::new(10);
    two.router.set_kernel(1, Some(Kernel::new(kernel.clone()))).unwrap();
    let answer = packet(OURS[1], THEIRS[1], reply(THEM, THEIRS[1]));
    two.wires[1].put(from_them(request(THEM, US)));
    two.wires[1].put(answer.clone());
    two.run();
    assert_eq!(kernel.take(), [answer]);
    assert_eq!((two.router.poll(), two.counters.balance().punted), (2, 1));
}

#[test]
fn a_neighbour_is_asked_for_its_link_address_and_then_gets_its_packets() {
    let mut two = two();
    let waiting = frame(OURS[0], THEM.octets(), 64, 46);
    for _ in 0..3 {
        two.wires[0].put(waiting.clone());
    }
    two.run();
    let mut asked = request(US, THEM);
    asked.sender_mac = OURS[1];
    assert_eq!(two.wires[1].take().unwrap(), packet(MacAddress::BROADCAST, OURS[1], asked));
    assert_eq!((two.wires[1].take(), two.dropped(Reason::Ip4NoNeighbour)), (None, 3));
    assert_eq!(two.counters.made.get(), 1);

    two.wires[1].put(packet(OURS[1], THEIRS[1], reply(THEM, THEIRS[1])));
    two.run();
    two.router.poll();
    two.wires[0].put(waiting);
    two.run();
    let mut expected = frame(THEIRS[1], THEM.octets(), 63, 46);
    expected[6..12].copy_from_slice(&OURS[1].0);
    assert_eq!(two.wires[1].take().unwrap(), expected);

    // It moves, and tells everybody.
    let mut moved = request(THEM, THEM);
    moved.sender_mac = MacAddress([2, 9, 9, 9, 9, 9]);
    two.wires[1].put(packet(MacAddress::BROADCAST, moved.sender_mac, moved));
    two.run();
    two.router.poll();
    two.wires[0].put(frame(OURS[0], THEM.octets(), 64, 46));
    two.run();
    assert_eq!(two.wires[1].take().unwrap()[..6], moved.sender_mac.0);
    assert_eq!(two.router.neighbour_counts().moved, 1);
}

#[test]
fn a_gateway_is_asked_for_and_found_again_when_it_was_forgotten() {
    let mut two = two();
    let hop = two.router.gateway(THEM.into()).unwrap();
    assert_eq!(hop, Hop::Neighbour(1, THEM.into()));
    assert!(matches!(two.router.gateway(IpAddr::from([10, 2, 0, 1])), Err(Error::Gateway(_))));
    let prefix = Prefix::new(u32::from(Ipv4Addr::new(99, 0, 0, 0)), 8).unwrap();
    two.router.add_route(prefix, &[hop]).unwrap();
    let through = frame(OURS[0], [99, 0, 0, 1], 64, 46);
    two.wires[0].put(through.clone());
    two.run();
    let asked = two.wires[1].take().unwrap();
    assert_eq!(arp::Header::parse(&asked[14..]).unwrap().target, THEM);
    two.router.handle(Event::Neighbour { interface: 1, address: THEM.into(), mac: THEIRS[1] }).unwrap();
    two.wires[0].put(through.clone());
    two.run();
    assert_eq!(two.wires[1].take().unwrap()[..6], THEIRS[1].0);

    assert!(two.router.remove_neighbour(1, THEM.into()).unwrap());
    two.wires[0].put(through.clone());
    two.run();
    assert_eq!(two.dropped(Reason::Ip4NoNeighbour), 2);
    assert!(two.router.withdraw_route(prefix).unwrap());
    two.wires[0].put(through);
    two.run();
    assert_eq!(two.dropped(Reason::Ip4NoRoute), 1);
}

#[test]
fn only_neighbours_that_were_learned_change_by_what_they_say() {
    let mut two = two();
    let (fixed, stranger, far) = ([10, 1, 0, 2].into(), [10, 1, 0, 3].into(), [10, 2, 0, 3].into());
    for address in [fixed, stranger, far] {
        two.router.handle(Event::Announcement { interface: 1, address, mac: OURS[0] }).unwrap();
    }
    for address in [fixed, far] {
        two.router.handle(Event::Neighbour { interface: 1, address, mac: OURS[0] }).unwrap();
    }
    let neighbours: Vec<_> = two.router.neighbours().filter(|(interface, ..)| *interface == 1).collect();
    assert_eq!(neighbours, [(1, fixed, THEIRS[1])]);
}

#[test]
fn an_address_brings_its_subnet_and_takes_it_away() {
    let mut two = two();
    let add = |two: &mut Two, address: [u8; 4], length| two.router.add_address(1, address.into(), length);
    for (address, length) in [
        ([0, 1, 1, 1], 8),
        ([224, 0, 0, 5], 24),
        ([127, 0, 0, 1], 8),
        ([10, 3, 0, 0], 24),
        ([10, 3, 0, 1], 33),
    ] {
        assert!(matches!(add(&mut two, address, length), Err(Error::Address(..))), "{address:?}/{length}");
    }
    assert!(matches!(add(&mut two, US.octets(), 24), Err(Error::AddressTaken(_))));
    add(&mut two, [10, 1, 0, 4], 24).unwrap();

    let reasons = |two: &mut Two, last: u8| {
        let count = |two: &Two| Reason::ALL.iter().map(|&reason| two.dropped(reason)).collect::<Vec<_>>();
        let before = count(two);
        two.wires[0].put(frame(OURS[0], [10, 1, 0, last], 64, 46));
        two.run();
        let after = count(two);
        let changed =
            Reason::ALL.iter().zip(before.iter().zip(&after)).find(|(_, (before, after))| before != after);
        changed.map(|(reason, _)| *reason)
    };
    assert_eq!(reasons(&mut two, 1), Some(Reason::PuntNowhere));
    assert_eq!(reasons(&mut two, 4), Some(Reason::PuntNowhere));
    assert_eq!(reasons(&mut two, 255), Some(Reason::Ip4DirectedBroadcast));
    assert_eq!(reasons(&mut two, 0), Some(Reason::Ip4MartianDestination));
    assert_eq!(reasons(&mut two, 200), Some(Reason::Ip4NoNeighbour));
    // The neighbour was there before the address.
    assert_eq!(reasons(&mut two, 2), None);
    // The other address is on the same subnet.
    two.router.remove_address(1, US.into()).unwrap();
    assert_eq!(reasons(&mut two, 1), Some(Reason::Ip4NoNeighbour));
    assert_eq!(reasons(&mut two, 255), Some(Reason::Ip4DirectedBroadcast));
    two.router.handle(Event::Neighbour { interface: 1, address: THEM.into(), mac: THEIRS[1] }).unwrap();
    two.router.remove_address(1, [10, 1, 0, 4].into()).unwrap();
    for last in [0, 1, 2, 4, 9, 200, 255] {
        assert_eq!(reasons(&mut two, last), Some(Reason::Ip4NoRoute), "{last}");
    }
    assert!(matches!(two.router.remove_address(1, US.into()), Err(Error::NoAddress(_))));
    assert!(!two.router.neighbours().any(|(_, address, _)| address == THEM));
}

#[test]
fn an_interface_without_an_address_cannot_ask() {
    let mut two = Two::new(1024);
    let prefix = Prefix::new(u32::from(Ipv4Addr::new(99, 0, 0, 0)), 8).unwrap();
    two.router.add_route(prefix, &[Hop::Neighbour(1, THEM.into())]).unwrap();
    two.wires[0].put(frame(OURS[0], [99, 0, 0, 1], 64, 46));
    two.run();
    assert_eq!((two.dropped(Reason::ArpNoAddress), two.counters.made.get()), (1, 0));
}

#[test]
fn a_silent_neighbour_is_asked_again_and_then_forgotten() {
    let mut two = two();
    let known = |two: &Two| two.router.neighbours().any(|(_, address, _)| address == THEM);
    let at = Duration::from_secs;
    two.router.tick(at(1000));
    two.router.handle(Event::Neighbour { interface: 1, address: THEM.into(), mac: THEIRS[1] }).unwrap();
    two.router.tick(at(1299));
    two.run();
    assert_eq!(two.wires[1].take(), None);
    let mut asked = request(US, THEM);
    asked.sender_mac = OURS[1];
    let asked = packet(THEIRS[1], OURS[1], asked);
    two.router.tick(at(1300));
    two.run();
    assert_eq!(two.wires[1].take().unwrap(), asked);
    // It answers, and is believed.
    two.wires[1].put(packet(OURS[1], THEIRS[1], reply(THEM, THEIRS[1])));
    two.run();
    two.router.poll();
    two.router.tick(at(1599));
    two.run();
    assert_eq!(two.wires[1].take(), None);
    for second in 1600..1603 {
        two.router.tick(at(second));
        two.run();
        assert_eq!(two.wires[1].take().unwrap(), asked);
        assert!(known(&two));
    }
    two.router.tick(at(1603));
    two.run();
    assert_eq!((known(&two), two.wires[1].take()), (false, None));
    // Who sends to it asks anew; those that were set by hand stay.
    two.wires[0].put(frame(OURS[0], THEM.octets(), 64, 46));
    two.run();
    assert_eq!(two.dropped(Reason::Ip4NoNeighbour), 1);
    assert!(two.router.neighbours().any(|(_, address, _)| address == IpAddr::from([10, 1, 0, 2])));
}

#[test]
fn many_neighbours_are_learned_and_forgotten_at_once() {
    let mut two = Two::new(1024);
    two.router.add_address(1, [10, 1, 0, 1].into(), 16).unwrap();
    let before = two.router.forwarding().adjacencies.len();
    let address = |number: u16| IpAddr::from([10, 1, (number >> 8) as u8 + 1, number as u8]);
    let mac = |number: u16| MacAddress([2, 7, 0, 0, (number >> 8) as u8, number as u8]);
    for round in 0..3 {
        two.router
            .batch(|router| {
                (0..5000).try_for_each(|number| {
                    router.handle(Event::Neighbour {
                        interface: 1,
                        address: address(number),
                        mac: mac(number),
                    })
                })
            })
            .unwrap();
        for number in [0, 2500, 4999] {
            let IpAddr::V4(to) = address(number) else { unreachable!() };
            two.wires[0].put(frame(OURS[0], to.octets(), 64, 46));
            two.run();
            assert_eq!(two.wires[1].take().unwrap()[..6], mac(number).0);
        }
        two.router
            .batch(|router| {
                (0..5000).try_for_each(|number| router.remove_neighbour(1, address(number)).map(|_| ()))
            })
            .unwrap();
        // The worker has ended its turn, so that their places are free.
        two.run();
        let adjacencies = two.router.forwarding().adjacencies.len();
        assert_eq!(adjacencies, before + 5000, "round {round}");
    }
}

#[test]
fn routes_of_the_same_hops_share_a_group_as_long_as_one_is_there() {
    let mut two = two();
    let hop = |last: u8| Hop::Neighbour(1, [10, 1, 0, last].into());
    let prefix = |number: u32| Prefix::new(99 << 24 | number << 8, 24).unwrap();
    let count = two.router.forwarding().adjacencies.len();
    // More than there is room for groups.
    for number in 0..5000 {
        two.router.add_route(prefix(number), &[hop(3), hop(4)]).unwrap();
    }
    for number in 0..5000u32 {
        let other = (number % 200) as u8 + 20;
        two.router.add_route(prefix(number), &[hop(2), hop(other)]).unwrap();
        two.run();
    }
    for number in 0..5000 {
        assert!(two.router.withdraw_route(prefix(number)).unwrap());
        assert!(!two.router.withdraw_route(prefix(number)).unwrap());
    }
    two.run();
    // What was let go is used again.
    let most = two.router.forwarding().adjacencies.len();
    assert!(most <= count + 2 + 201, "{count}, {most}");
    for number in 0..200 {
        two.router.add_route(prefix(number), &[hop(number as u8 + 20)]).unwrap();
    }
    assert_eq!(two.router.forwarding().adjacencies.len(), most);
    // Those that fail leave nothing.
    let none = two.router.add_route(prefix(0), &[]);
    assert!(none.is_err());
    let many: Vec<_> = (0..300u32).map(|number| Hop::Neighbour(1, Ipv4Addr::from(number).into())).collect();
    assert!(two.router.add_route(prefix(0), &many).is_err());
    two.run();
    two.router.add_route(prefix(0), &[hop(20)]).unwrap();
    let grown = two.router.forwarding().adjacencies.len();
    assert!(two.router.add_route(prefix(0), &many).is_err());
    assert_eq!(two.router.forwarding().adjacencies.len(), grown);
}
