//! Access lists that keep states, of a router between devices in ordinary memory: what belongs to a flow that a rule has
//! let begin passes in both directions, and nothing else does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{OURS, THEIRS, Two, changed, frame};
use fastpath::acl::{AccessList, Action, Addresses, Carried, Filters, Rule};
use fastpath::counters::Reason;
use fastpath::fib::Prefix;
use fastpath::node::Node;
use fastpath::router::{Hop, Router};
use fastpath::states::{Kind, Mailbox, Settings, Timeouts};
use wire::{ethernet, ipv4, ipv6};

const SYN: u8 = 2;
const ACK: u8 = 16;
const RST: u8 = 4;

/// A host behind the first interface and one behind the second, of either version.
const WITHIN: u8 = 16;
const BEYOND: u8 = 48;

fn rule(action: Action, carried: Carried) -> Rule {
    Rule { action, addresses: Addresses::Any, carried }
}

fn keeping(carried: Carried) -> Arc<AccessList> {
    AccessList::new("to-beyond", vec![rule(Action::KeepState, carried)])
}

fn nothing() -> Arc<AccessList> {
    AccessList::new("from-beyond", Vec::new())
}

/// The router of a house: what leaves by its second interface may begin flows, and nothing that arrives there may.
fn house(list: &Arc<AccessList>) -> Two {
    house_with(list, Settings::default())
}

fn house_with(list: &Arc<AccessList>, settings: Settings) -> Two {
    let mut router = Router::new().unwrap();
    router.set_states(settings);
    let (wires, queues): (Vec<_>, Vec<_>) =
        (0..2).map(|_| fastpath::device::simulated::Wire::device(1024)).unzip();
    let mut two = Two { wires, ..Two::of(router, queues) };
    for number in 0..2u16 {
        let neighbour = IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 2));
        two.router.set_neighbour(number, neighbour, THEIRS[usize::from(number)]).unwrap();
        let prefix = Prefix::new(address6([WITHIN, BEYOND][usize::from(number)]).to_bits(), 64).unwrap();
        two.router.add_route(prefix, &[Hop::Neighbour(number, neighbour)]).unwrap();
    }
    two.router.set_filters(1, Filters { input: Some(nothing()), output: Some(Arc::clone(list)) }).unwrap();
    two
}

fn address6(host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, u16::from(host) << 8, 0, 0, 0, 0, 0)
}

/// A packet out of the house or into it.
fn packet(is_ip6: bool, out: bool, protocol: u8, carried: &[u8]) -> Vec<u8> {
    let (at, source, destination) = if out { (0, WITHIN, BEYOND) } else { (1, BEYOND, WITHIN) };
    let ethertype = if is_ip6 { ethernet::IPV6 } else { ethernet::IPV4 };
    let link = ethernet::Header { destination: OURS[at], source: THEIRS[at], ethertype }.emit();
    let header = if is_ip6 {
        let header = ipv6::Header {
            traffic_class: 0,
            flow_label: 0,
            payload_length: carried.len() as u16,
            next_header: protocol,
            hop_limit: 64,
            source: address6(source),
            destination: address6(destination),
        };
        header.emit().to_vec()
    } else {
        let header = ipv4::Header {
            source: Ipv4Addr::new(source, 0, 0, 1),
            destination: Ipv4Addr::new(destination, 0, 0, 1),
            ttl: 64,
            protocol,
            total_length: (ipv4::LENGTH + carried.len()) as u16,
            tos: 0,
            identification: 0,
        };
        header.emit().to_vec()
    };
    [&link[..], &header, carried].concat()
}

/// A segment of TCP between a port of the house and port 80.
fn tcp(is_ip6: bool, out: bool, port: u16, flags: u8) -> Vec<u8> {
    let mut segment = ports(out, port, 80).to_vec();
    segment.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
    packet(is_ip6, out, ipv4::TCP, &segment)
}

fn udp(is_ip6: bool, out: bool, port: u16) -> Vec<u8> {
    let datagram = [&ports(out, port, 53)[..], &[0, 8, 0, 0]].concat();
    packet(is_ip6, out, ipv4::UDP, &datagram)
}

fn ports(out: bool, within: u16, beyond: u16) -> [u8; 4] {
    let (source, destination) = if out { (within, beyond) } else { (beyond, within) };
    let ([s0, s1], [d0, d1]) = (source.to_be_bytes(), destination.to_be_bytes());
    [s0, s1, d0, d1]
}

/// An echo's request or reply.
fn echo(is_ip6: bool, out: bool, asks: bool, identifier: u8) -> Vec<u8> {
    let (protocol, kind) = match (is_ip6, asks) {
        (false, true) => (ipv4::ICMP, 8),
        (false, false) => (ipv4::ICMP, 0),
        (true, true) => (ipv6::ICMP, 128),
        (true, false) => (ipv6::ICMP, 129),
    };
    packet(is_ip6, out, protocol, &[kind, 0, 0, 0, 0, identifier, 0, 1])
}

/// An error that somebody beyond sends about a packet that has left the house.
fn error(about: &[u8]) -> Vec<u8> {
    let is_ip6 = about[12..14] == ethernet::IPV6.to_be_bytes();
    let (protocol, kind) = if is_ip6 { (ipv6::ICMP, 1) } else { (ipv4::ICMP, 3) };
    let mut error = packet(is_ip6, false, protocol, &[&[kind, 3, 0, 0, 0, 0, 0, 0], &about[14..]].concat());
    // Not from the host that the packet was for.
    if is_ip6 {
        error[14 + 23] = 9;
    } else {
        error = changed(error, |frame| frame[14 + 15] = 9);
    }
    error
}

/// Whether a frame passes, of which the Ethernet header says the interface.
fn passes(two: &mut Two, frame: &[u8]) -> bool {
    let at = usize::from(frame[..6] == OURS[1].0);
    two.wires[at].put(frame);
    two.run();
    let left = std::iter::from_fn(|| two.wires[1 - at].take()).count();
    assert!(two.wires[at].take().is_none() && left < 2);
    left == 1
}

fn mailbox(two: &Two) -> Arc<Mailbox> {
    Arc::clone(&two.router.states()[0])
}

#[test]
fn what_was_asked_for_comes_in_and_nothing_else_does() {
    let list = keeping(Carried::Any);
    let mut two = house(&list);
    let mut passed = 0;
    for is_ip6 in [false, true] {
        let unasked = [udp(is_ip6, false, 7), echo(is_ip6, false, false, 7), error(&udp(is_ip6, true, 7))];
        assert!(unasked.iter().all(|frame| !passes(&mut two, frame)));
        for frame in
            [udp(is_ip6, true, 7), udp(is_ip6, false, 7), udp(is_ip6, false, 7), udp(is_ip6, true, 7)]
        {
            assert!(passes(&mut two, &frame));
        }
        assert!(!passes(&mut two, &udp(is_ip6, false, 8)), "to another port");
        assert!(passes(&mut two, &error(&udp(is_ip6, true, 7))), "about a packet of the flow");
        assert!(!passes(&mut two, &error(&udp(is_ip6, true, 8))), "about one that has never been");
        // Somebody beyond says that he is the host within.
        let mut forged = udp(is_ip6, true, 7);
        forged[..6].copy_from_slice(&OURS[1].0);
        forged[6..12].copy_from_slice(&THEIRS[1].0);
        two.wires[1].put(forged);
        two.run();
        assert_eq!(two.wires[1].take(), None);

        assert!(passes(&mut two, &echo(is_ip6, true, true, 7)));
        assert!(passes(&mut two, &echo(is_ip6, false, false, 7)));
        assert!(!passes(&mut two, &echo(is_ip6, false, true, 7)), "who was asked may not ask");
        assert!(!passes(&mut two, &echo(is_ip6, false, false, 8)));
        assert!(passes(&mut two, &packet(is_ip6, true, 47, &[0; 8])));
        assert!(passes(&mut two, &packet(is_ip6, false, 47, &[0; 8])));
        assert!(!passes(&mut two, &packet(is_ip6, false, 50, &[0; 8])));
        // What passed, at the rule that let its flow begin; the forged one and the others at that of the other list.
        passed += 4 + 1 + 2 + 2;
        assert_eq!(list.counts(), [passed, 0]);
    }
    let mailbox = mailbox(&two);
    let known = [Kind::Tcp, Kind::Udp, Kind::Icmp, Kind::Other].map(|kind| mailbox.tally.of(kind).known());
    assert_eq!(known, [0, 2, 2, 2]);
}

#[test]
fn a_connection_begins_with_a_syn_and_is_over_once_it_is_closed() {
    let mut two = house(&keeping(Carried::Any));
    for is_ip6 in [false, true] {
        assert!(!passes(&mut two, &tcp(is_ip6, false, 7, SYN)));
        // Of a connection that nobody knows.
        let before = two.dropped(Reason::AclNoState);
        assert!(!passes(&mut two, &tcp(is_ip6, true, 7, ACK)));
        assert!(!passes(&mut two, &tcp(is_ip6, true, 7, SYN | ACK)));
        assert_eq!(two.dropped(Reason::AclNoState), before + 2);
        for (out, flags) in [(true, SYN), (false, SYN | ACK), (true, ACK), (false, ACK), (true, ACK)] {
            assert!(passes(&mut two, &tcp(is_ip6, out, 7, flags)), "{out} {flags}");
        }
        assert!(passes(&mut two, &error(&tcp(is_ip6, true, 7, ACK))));
        // It may be closed, and what was on its way arrives; a new one is for the rules again.
        for (out, flags) in [(false, RST), (true, ACK)] {
            assert!(passes(&mut two, &tcp(is_ip6, out, 7, flags)), "{out} {flags}");
        }
        assert!(!passes(&mut two, &tcp(is_ip6, false, 7, SYN)));
        for (out, flags) in [(true, SYN), (false, SYN | ACK), (true, ACK)] {
            assert!(passes(&mut two, &tcp(is_ip6, out, 7, flags)), "{out} {flags}");
        }
    }
    let mailbox = mailbox(&two);
    assert_eq!((mailbox.tally.of(Kind::Tcp).known(), mailbox.tally.closed.get()), (2, 2));
}

#[test]
fn replies_are_followed_where_they_are_held_against_no_list() {
    let timeouts = Timeouts { tcp_opening: 1, ..Timeouts::default() };
    let mut two = house_with(&keeping(Carried::Any), Settings { timeouts, ..Settings::default() });
    let output = two.router.interface(1).unwrap().filters.output.clone();
    two.router.set_filters(1, Filters { input: None, output }).unwrap();
    for (out, flags) in [(true, SYN), (false, SYN | ACK), (true, ACK)] {
        assert!(passes(&mut two, &tcp(false, out, 7, flags)));
    }
    // So that the connection is established, and has more time than one that is not.
    std::thread::sleep(Duration::from_millis(1200));
    assert!(passes(&mut two, &tcp(false, true, 7, ACK)));
    assert!(passes(&mut two, &udp(false, false, 7)), "nothing that arrives is held against a list");
    assert_eq!(mailbox(&two).tally.of(Kind::Udp).known(), 0);
}

#[test]
fn a_flow_of_which_nothing_comes_for_its_time_is_forgotten() {
    let timeouts = Timeouts { udp: 1, ..Timeouts::default() };
    let mut two = house_with(&keeping(Carried::Any), Settings { timeouts, ..Settings::default() });
    assert!(passes(&mut two, &udp(false, true, 7)));
    assert!(passes(&mut two, &echo(false, true, true, 7)));
    let mailbox = mailbox(&two);
    std::thread::sleep(Duration::from_millis(1200));
    assert!(!passes(&mut two, &udp(false, false, 7)));
    assert!(passes(&mut two, &echo(false, false, false, 7)), "it has more time");
    assert_eq!((mailbox.tally.of(Kind::Udp).known(), mailbox.tally.expired.get()), (0, 1));
    // Without a packet, too.
    assert!(passes(&mut two, &udp(false, true, 7)));
    until("it is forgotten", &mut two, || mailbox.tally.expired.get() == 2);
}

/// Lets the worker turn until `condition` holds.
fn until(what: &str, two: &mut Two, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "never came to that: {what}");
        two.run();
    }
}

#[test]
fn a_flow_ends_when_no_rule_lets_it_begin_any_more() {
    let port =
        |port: u16| Carried::Ports { protocol: ipv4::UDP, source: 0..=u16::MAX, destination: port..=port };
    let other = rule(Action::Deny, Carried::Protocol(9));
    for (rules, lives_on) in [
        (vec![other.clone(), rule(Action::KeepState, Carried::Any)], true),
        (vec![rule(Action::KeepState, port(53))], true),
        (vec![rule(Action::KeepState, port(54)), rule(Action::Permit, Carried::Any)], false),
        (vec![rule(Action::Deny, port(53)), rule(Action::KeepState, Carried::Any)], false),
        (vec![other], false),
    ] {
        let mut two = house(&keeping(Carried::Any));
        assert!(passes(&mut two, &udp(false, true, 7)) && passes(&mut two, &udp(false, false, 7)));
        let new = AccessList::new("to-beyond", rules.clone());
        two.router.replace_access_list(&new).unwrap();
        assert_eq!(passes(&mut two, &udp(false, false, 7)), lives_on, "{rules:?}");
        let mailbox = mailbox(&two);
        if lives_on {
            // It counts at the rule that is in force.
            assert_eq!((new.counts().iter().sum::<u64>(), mailbox.tally.revoked.get()), (1, 0));
        } else {
            // By its packet, or by ageing where no list keeps states any more.
            until("it is revoked", &mut two, || mailbox.tally.revoked.get() == 1);
        }
    }
    // Without a packet, and with the whole list.
    let mut two = house(&keeping(Carried::Any));
    assert!(passes(&mut two, &udp(false, true, 7)));
    two.router.set_filters(1, Filters { input: Some(nothing()), output: None }).unwrap();
    assert!(!passes(&mut two, &udp(false, false, 7)));
    let mailbox = mailbox(&two);
    until("it is revoked", &mut two, || mailbox.tally.revoked.get() == 1);
}

#[test]
fn a_full_table_refuses_new_flows_and_keeps_those_that_it_has() {
    let mut two = house_with(&keeping(Carried::Any), Settings { maximum: 2, ..Settings::default() });
    assert!(passes(&mut two, &udp(false, true, 1)) && passes(&mut two, &udp(true, true, 2)));
    assert!(!passes(&mut two, &udp(false, true, 3)) && !passes(&mut two, &tcp(false, true, 3, SYN)));
    assert!(passes(&mut two, &udp(false, false, 1)) && passes(&mut two, &udp(true, false, 2)));
    let mailbox = mailbox(&two);
    assert_eq!((mailbox.tally.refused.get(), two.dropped(Reason::AclStatesFull)), (2, 2));
}

#[test]
fn a_fragment_is_of_no_flow_and_is_up_to_the_rules() {
    let mut two = house(&keeping(Carried::Any));
    assert!(passes(&mut two, &udp(false, true, 7)));
    for offset in [0x2000u16, 0x0001] {
        let fragment =
            |out| changed(udp(false, out, 7), |frame| frame[20..22].copy_from_slice(&offset.to_be_bytes()));
        assert!(passes(&mut two, &fragment(true)), "the rule permits it");
        assert!(!passes(&mut two, &fragment(false)), "the other list does not");
    }
    assert_eq!(mailbox(&two).tally.of(Kind::Udp).opened.get(), 1);
}

#[test]
fn a_vector_of_new_and_known_flows_is_decided_packet_by_packet() {
    let list = AccessList::new(
        "to-beyond",
        vec![rule(Action::Deny, Carried::Protocol(9)), rule(Action::KeepState, Carried::Protocol(17))],
    );
    let mut two = house(&list);
    for round in 0..2u16 {
        for port in 0..100 {
            two.wires[0].put(udp(false, true, port));
            two.wires[0].put(tcp(false, true, port, SYN));
            // Twice, so that the second is of a flow that begins in this vector.
            two.wires[0].put(udp(false, true, port));
            two.wires[1].put(udp(false, false, port + 50));
        }
        two.run();
        let left = [0, 1].map(|at| std::iter::from_fn(|| two.wires[at].take()).count());
        // The second time those come in that went out the first time.
        assert_eq!(left[1], 200);
        assert!(left[0] >= 50 * usize::from(round), "{left:?}");
    }
    assert_eq!(mailbox(&two).tally.of(Kind::Udp).known(), 100);
}

#[test]
fn what_is_held_against_lists_without_states_never_asks_for_them() {
    let mut two = Two::new(1024);
    let list = AccessList::new("list", vec![rule(Action::Permit, Carried::Any)]);
    two.router.set_filters(0, Filters { input: Some(list), output: None }).unwrap();
    two.wires[0].put(frame(OURS[0], [48, 0, 0, 1], 64, 46));
    two.run();
    assert!(two.router.states().is_empty());
    let calls = |node: Node| two.counters.nodes[node as usize].calls.get();
    assert_eq!((calls(Node::AclInIp4), calls(Node::AclOutIp4)), (1, 0));
}

#[test]
fn some_flows_are_listed_when_they_are_asked_for() {
    let mut two = house(&keeping(Carried::Any));
    for port in 0..200 {
        assert!(passes(&mut two, &udp(false, true, port)));
    }
    let mailbox = mailbox(&two);
    assert!(mailbox.told().is_none());
    mailbox.ask();
    let listed = std::cell::RefCell::new(Vec::new());
    until("they are listed", &mut two, || {
        listed.borrow_mut().extend(mailbox.told().into_iter().flatten());
        !listed.borrow().is_empty()
    });
    let listed = listed.into_inner();
    assert_eq!(listed.len(), 100);
    let (beyond, within) = (Ipv4Addr::new(BEYOND, 0, 0, 1), Ipv4Addr::new(WITHIN, 0, 0, 1));
    for (state, port) in listed.iter().zip(0..) {
        assert_eq!((state.flow.beyond(), state.flow.within()), ((beyond.into(), 53), (within.into(), port)));
        assert!(!state.input && state.flow.interface() == 1 && state.flow.protocol() == ipv4::UDP);
    }
}
