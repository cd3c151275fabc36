//! Access lists of a router between devices in ordinary memory: what they permit leaves as it would without them, and
//! what they deny is counted by its reason and by its rule.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use fastpath::acl::{AccessList, Action, Addresses, Carried, Filters, Rule};
use fastpath::counters::Reason;
use fastpath::fib::Prefix;
use fastpath::node::Node;
use fastpath::punt::Kernel;
use fastpath::router::Hop;
use wire::{ethernet, ipv4, ipv6};

use crate::common::icmp6::{self, THEM, US, solicitation};
use crate::common::{OURS, THEIRS, Taken, Two, changed, frame, ping};

fn rule(action: Action, carried: Carried) -> Rule {
    Rule { action, addresses: Addresses::Any, carried }
}

fn permit_all() -> Rule {
    rule(Action::Permit, Carried::Any)
}

/// To a port of UDP.
fn to_port(action: Action, port: u16) -> Rule {
    rule(action, Carried::Ports { protocol: ipv4::UDP, source: 0..=u16::MAX, destination: port..=port })
}

/// Packets to this prefix.
fn to(action: Action, address: [u8; 4], length: u8) -> Rule {
    let (source, destination) =
        (Prefix::new(0, 0).unwrap(), Prefix::new(u32::from_be_bytes(address), length).unwrap());
    Rule { action, addresses: Addresses::Ip4 { source, destination }, carried: Carried::Any }
}

fn input(list: &Arc<AccessList>) -> Filters {
    Filters { input: Some(Arc::clone(list)), output: None }
}

fn output(list: &Arc<AccessList>) -> Filters {
    Filters { input: None, output: Some(Arc::clone(list)) }
}

/// A packet to a host behind the second neighbour, from and to these ports.
fn udp(to: u8, port: u16) -> Vec<u8> {
    let mut frame = frame(OURS[0], [48, 0, 0, to], 64, 46);
    frame[34..36].copy_from_slice(&1000u16.to_be_bytes());
    frame[36..38].copy_from_slice(&port.to_be_bytes());
    frame
}

/// Has frames arrive at the first interface; returns how many leave by the second.
fn through(two: &mut Two, frames: impl IntoIterator<Item = Vec<u8>>) -> usize {
    frames.into_iter().for_each(|frame| two.wires[0].put(frame));
    two.run();
    std::iter::from_fn(|| two.wires[1].take()).count()
}

fn calls(two: &Two, node: Node) -> u64 {
    two.counters.nodes[node as usize].calls.get()
}

#[test]
fn the_first_rule_that_matches_decides_and_counts() {
    let mut two = Two::new(1024);
    let list = AccessList::new(
        "list",
        vec![to_port(Action::Permit, 53), to(Action::Deny, [48, 0, 0, 8], 29), to_port(Action::Permit, 80)],
    );
    two.router.set_filters(0, input(&list)).unwrap();
    // Any port of nine hosts, of which the last eight are denied all but one.
    let sent = through(&mut two, (7..16).flat_map(|host| [53, 80, 443].map(|port| udp(host, port))));
    assert_eq!(sent, 9 + 1);
    assert_eq!(list.counts(), [9, 16, 1, 1]);
    assert_eq!(two.dropped(Reason::AclInputIp4), 17);
    two.check(27);
}

#[test]
fn what_is_permitted_leaves_as_without_a_list() {
    let list = AccessList::new("list", vec![permit_all()]);
    let [plain, input, output] = [Filters::default(), input(&list), output(&list)].map(|filters| {
        let mut two = Two::new(1024);
        let at = u16::from(filters.output.is_some());
        two.router.set_filters(at, filters).unwrap();
        for length in 20..60 {
            two.wires[0].put(frame(OURS[0], [48, 0, 0, 1], 64, length));
        }
        two.run();
        std::iter::from_fn(|| two.wires[1].take()).collect::<Vec<_>>()
    });
    assert_eq!(plain.len(), 40);
    assert!(plain == input && plain == output);
    assert_eq!(list.counts(), [80, 0]);
}

#[test]
fn packets_of_interfaces_without_a_list_never_come_to_its_nodes() {
    let mut two = Two::new(1024);
    let nodes = [Node::AclInIp4, Node::AclOutIp4, Node::AclInIp6, Node::AclOutIp6];
    assert_eq!(through(&mut two, [udp(1, 53)]), 1);
    // Nothing that arrives at the first interface is to be held against a list of the second for what arrives.
    let none = AccessList::new("none", Vec::new());
    two.router.set_filters(1, input(&none)).unwrap();
    assert_eq!(through(&mut two, [udp(1, 53)]), 1);
    two.router.set_filters(0, output(&none)).unwrap();
    assert_eq!(through(&mut two, [udp(1, 53)]), 1);
    assert_eq!(nodes.map(|node| calls(&two, node)), [0; 4]);
    two.router.set_filters(1, output(&none)).unwrap();
    assert_eq!(through(&mut two, [udp(1, 53)]), 0);
    assert_eq!((two.dropped(Reason::AclOutputIp4), calls(&two, Node::AclOutIp4)), (1, 1));
    two.router.set_filters(0, Filters::default()).unwrap();
    two.router.set_filters(1, Filters::default()).unwrap();
    assert_eq!(through(&mut two, [udp(1, 53)]), 1);
    assert_eq!(calls(&two, Node::AclOutIp4), 1);
}

#[test]
fn each_vlan_of_a_device_has_its_own_list() {
    let mut two = Two::new(1024);
    let vlan = two.router.add_vlan(0, 7).unwrap();
    let list = AccessList::new("list", vec![to_port(Action::Permit, 53)]);
    two.router.set_filters(vlan, input(&list)).unwrap();
    let tagged = |port| {
        let mut frame = udp(1, port);
        frame.splice(12..12, [0x81, 0, 0, 7]);
        frame
    };
    // One after the other, so that a vector has packets of both by turns.
    let frames = (0..50).flat_map(|_| [udp(1, 80), tagged(80), udp(1, 53), tagged(53)]);
    assert_eq!(through(&mut two, frames), 150);
    assert_eq!(list.counts(), [50, 50]);
}

#[test]
fn fragments_but_the_first_match_no_rule_with_ports() {
    let fragment =
        |offset: u16| changed(udp(1, 53), |frame| frame[20..22].copy_from_slice(&offset.to_be_bytes()));
    let (first, second) = (fragment(0x2000), fragment(0x2001));
    for (rules, leave) in [
        (vec![to_port(Action::Permit, 53)], [1, 0]),
        (vec![to_port(Action::Deny, 53), permit_all()], [0, 1]),
        (vec![rule(Action::Permit, Carried::Protocol(ipv4::UDP))], [1, 1]),
        (vec![to(Action::Permit, [48, 0, 0, 0], 8)], [1, 1]),
    ] {
        let mut two = Two::new(1024);
        two.router.set_filters(0, input(&AccessList::new("list", rules.clone()))).unwrap();
        let left = [&first, &second].map(|frame| through(&mut two, [frame.clone()]));
        assert_eq!(left, leave, "{rules:?}");
    }
}

#[test]
fn packets_for_the_router_and_for_the_kernel_are_held_against_it_too() {
    let mut two = Two::new(1024);
    two.router.add_address(0, [10, 0, 0, 1].into(), 24).unwrap();
    let kernel = Taken::new(9);
    two.router.set_kernel(0, Some(Kernel::new(kernel.clone()))).unwrap();
    let echo = ping([10, 0, 0, 9].into(), [10, 0, 0, 1].into(), 64, b"payload");
    // A router alert, which has a packet go to the kernel whatever its destination.
    let alert = |port: u16| {
        let mut frame = udp(1, port);
        frame[14] = 0x46;
        frame.splice(34..34, [148, 4, 0, 0]);
        let length = (frame.len() - 14) as u16;
        frame[16..18].copy_from_slice(&length.to_be_bytes());
        changed(frame, |_| {})
    };
    let list = AccessList::new("list", vec![to_port(Action::Permit, 53)]);
    two.router.set_filters(0, input(&list)).unwrap();
    assert_eq!(through(&mut two, [echo, alert(80), alert(53)]), 0);
    assert_eq!(kernel.take().len(), 1);
    assert_eq!((two.wires[0].take(), two.dropped(Reason::AclInputIp4)), (None, 2));
}

#[test]
fn a_list_takes_the_place_of_another_at_all_interfaces_at_once() {
    let mut two = Two::new(1024);
    let list = AccessList::new("list", vec![permit_all()]);
    two.router.set_filters(0, input(&list)).unwrap();
    two.router.set_filters(1, output(&list)).unwrap();
    assert_eq!(through(&mut two, [udp(1, 53)]), 1);
    let new = AccessList::new("list", vec![to_port(Action::Deny, 53), permit_all()]);
    two.router.replace_access_list(&new).unwrap();
    assert_eq!(through(&mut two, [udp(1, 53), udp(1, 80)]), 1);
    assert_eq!((list.counts(), new.counts()), (vec![2, 0], vec![1, 2, 0]));
}

/// A packet of IPv6 to a host behind the second neighbour, with these headers.
fn ip6(first: u8, rest: &[u8]) -> Vec<u8> {
    let ethernet = ethernet::Header { destination: OURS[0], source: THEIRS[0], ethertype: ethernet::IPV6 };
    let header = ipv6::Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: rest.len() as u16,
        next_header: first,
        hop_limit: 64,
        source: Ipv6Addr::new(0x2001, 0xdb8, 16, 0, 0, 0, 0, 1),
        destination: Ipv6Addr::new(0x2001, 0xdb8, 48, 0, 0, 0, 0, 1),
    };
    [&ethernet.emit()[..], &header.emit(), rest].concat()
}

/// A router that has a route of IPv6 by the second neighbour.
fn with_ip6() -> Two {
    let mut two = Two::new(1024);
    let neighbour = IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2));
    two.router.set_neighbour(1, neighbour, THEIRS[1]).unwrap();
    let prefix = Prefix::new(0x2001_0db8_0030_u128 << 80, 48).unwrap();
    two.router.add_route(prefix, &[Hop::Neighbour(1, neighbour)]).unwrap();
    two
}

#[test]
fn ip6_is_held_against_rules_behind_its_extension_headers() {
    let ports = [3, 0xe8, 0, 53, 0, 8, 0, 0];
    let options = |next: u8, count: usize| {
        let mut headers = vec![[60, 0, 1, 4, 0, 0, 0, 0]; count];
        headers[count - 1][0] = next;
        [headers.as_flattened(), &ports].concat()
    };
    let second = [&[ipv4::UDP, 0, 0, 8, 0, 0, 0, 7], &ports[..]].concat();
    let frames = || {
        [
            ip6(ipv4::UDP, &ports),
            ip6(60, &options(ipv4::UDP, 8)),
            ip6(60, &options(ipv4::UDP, 9)),
            ip6(44, &second),
        ]
    };
    for (rules, leave) in [
        (vec![to_port(Action::Permit, 53)], [1, 1, 0, 0]),
        // What cannot be read is denied, though all that can be is permitted.
        (vec![to_port(Action::Deny, 53), permit_all()], [0, 0, 0, 1]),
        (vec![rule(Action::Permit, Carried::Protocol(ipv4::UDP))], [1, 1, 0, 1]),
        (vec![to(Action::Permit, [0; 4], 0)], [0; 4]),
    ] {
        for at in 0..2 {
            let mut two = with_ip6();
            let list = AccessList::new("list", rules.clone());
            let filters = if at == 0 { input(&list) } else { output(&list) };
            two.router.set_filters(at, filters).unwrap();
            assert_eq!(frames().map(|frame| through(&mut two, [frame])), leave, "{rules:?} at {at}");
            let denied = [Reason::AclInputIp6, Reason::AclOutputIp6].map(|reason| two.dropped(reason));
            assert_eq!(denied[usize::from(at)], 4 - leave.iter().sum::<usize>() as u64);
        }
    }
}

#[test]
fn neighbour_discovery_passes_unless_a_rule_denies_it() {
    for (rules, answers) in [(vec![], 1), (vec![rule(Action::Deny, Carried::Any)], 0)] {
        let mut two = icmp6::two();
        let list = AccessList::new("list", rules);
        two.router.set_filters(1, input(&list)).unwrap();
        two.wires[1].put(solicitation(THEM, US, Some(THEIRS[1])));
        two.run();
        assert_eq!(std::iter::from_fn(|| two.wires[1].take()).count(), answers);
        assert_eq!(two.dropped(Reason::AclInputIp6), 1 - answers as u64);
    }
}
