use std::sync::Arc;
use std::time::Duration;

use wire::MacAddress;

use super::*;
use crate::control::snapshot::Snapshot;
use crate::dataplane::acl::Filters;
use crate::dataplane::counters::{Counters, Reason};
use crate::dataplane::forwarding::{Forwarding, Interface, Role};
use crate::dataplane::node::Node;

/// A router's one interface, which has these access lists.
fn routed(name: &str, filters: Filters) -> Forwarding {
    let interface = Interface {
        name: name.into(),
        device: 0,
        vlan: None,
        mac: MacAddress([2, 0, 0, 0, 0, 1]),
        mtu: 1500,
        up: true,
        role: Role::Router,
        addresses: Vec::new(),
        kernel: None,
        filters,
    };
    Forwarding { interfaces: vec![interface], ..Forwarding::default() }
}

/// Ten seconds of a worker that had 1000 packets in 100 vectors: 900 left, 100 had no route.
fn counted() -> Snapshot {
    let counters = Counters::default();
    for (node, vectors, clocks) in [
        (Node::DeviceInput, 1000, 2000),
        (Node::EthernetInput, 1000, 30_000),
        (Node::Ip4Lookup, 1000, 40_000),
        (Node::Tx, 900, 18_000),
        (Node::ErrorDrop, 100, 1000),
    ] {
        let counters = &counters.nodes[node as usize];
        counters.calls.add(100);
        counters.vectors.add(vectors);
        counters.clocks.add(clocks);
        counters.dearest.note(clocks / 5, vectors as usize / 25);
    }
    counters.loops.add(50_000);
    counters.idle_loops.add(49_900);
    counters.idle_clocks.add(4_990_000);
    counters.reasons[Reason::Ip4NoRoute as usize].add(99);
    counters.reasons[Reason::OtherStation as usize].add(1);
    let interfaces = &counters.interfaces;
    interfaces[0].received.add(1000);
    interfaces[0].received_bytes.add(60_000);
    interfaces[0].dropped.add(100);
    interfaces[1].sent.add(900);
    interfaces[1].no_room.add(7);
    interfaces[1].sent_bytes.add(54_000);
    Snapshot::of(&counters)
}

#[test]
fn runtime_has_the_columns_that_users_know() {
    let thread = runtime::thread(1, "worker 0", 3, 10.0, &counted());
    let most = runtime_max::RuntimeMax { threads: vec![runtime_max::thread(thread.clone(), &counted())] };
    insta::assert_snapshot!("runtime_max", most);
    insta::assert_snapshot!("runtime_max_json", serde_json::to_string_pretty(&most).unwrap());
    let cost = thread.clocks_per_packet.unwrap();
    assert_eq!((cost.with_polling, cost.without_polling), (5081.0, 89.0));
    let idle = runtime::thread(2, "worker 1", 4, 0.0, &Snapshot::of(&Counters::default()));
    let runtime = runtime::Runtime { threads: vec![thread, idle] };
    insta::assert_snapshot!(runtime);
    insta::assert_snapshot!("runtime_json", serde_json::to_string_pretty(&runtime).unwrap());
}

#[test]
fn interfaces_show_what_was_counted() {
    let interface = |name: &str, up, role| Interface {
        name: name.into(),
        device: 0,
        vlan: None,
        mac: MacAddress([2, 0, 0, 0, 0, 1]),
        mtu: 1500,
        up,
        role,
        addresses: Vec::new(),
        kernel: None,
        filters: Default::default(),
    };
    let forwarding = Forwarding {
        interfaces: vec![
            interface("lan", true, Role::Router),
            interface("wan", true, Role::CrossConnect(2)),
            interface("dmz", false, Role::Bridge(0)),
        ],
        ..Forwarding::default()
    };
    let interfaces = interfaces::interfaces(&forwarding, &counted());
    insta::assert_snapshot!(interfaces);
    insta::assert_snapshot!("interfaces_json", serde_json::to_string_pretty(&interfaces).unwrap());
}

#[test]
fn bridges_show_their_stations() {
    let interface = |name: &str, role| Interface {
        name: name.into(),
        device: 0,
        vlan: None,
        mac: MacAddress([2, 0, 0, 0, 0, 1]),
        mtu: 1500,
        up: true,
        role,
        addresses: Vec::new(),
        kernel: None,
        filters: Default::default(),
    };
    let settings = crate::dataplane::bridge::Settings { stations: 10, ..Default::default() };
    let stations = crate::dataplane::bridge::Stations::new(settings, Duration::from_secs(5));
    for (last, interface) in [(9, 1), (3, 0), (4, 0)] {
        stations.learn(MacAddress([2, 0, 0, 0, 0, last]), interface);
    }
    stations.tick(Duration::from_secs(47));
    let bridge = |domain, ports, stations| crate::dataplane::bridge::Bridge {
        domain,
        ports,
        stations: Arc::new(stations),
    };
    let empty = crate::dataplane::bridge::Stations::new(
        crate::dataplane::bridge::Settings::default(),
        Duration::ZERO,
    );
    let forwarding = Forwarding {
        interfaces: vec![interface("lan", Role::Bridge(0)), interface("wan", Role::Bridge(0))],
        bridges: vec![bridge(0, vec![0, 1], stations), bridge(1, vec![], empty)],
        ..Forwarding::default()
    };
    let name = |number: u16| ["office", "yard"][usize::from(number)].to_owned();
    let bridges = bridge::bridges(&forwarding, name, 2);
    insta::assert_snapshot!("bridges", bridges);
    insta::assert_snapshot!("bridges_json", serde_json::to_string_pretty(&bridges).unwrap());
}

#[test]
fn errors_are_those_that_occurred() {
    let errors = errors::errors(&counted());
    insta::assert_snapshot!(errors);
    insta::assert_snapshot!("errors_json", serde_json::to_string_pretty(&errors).unwrap());
    assert_eq!(errors::errors(&Snapshot::of(&Counters::default())).errors, []);
}

#[test]
fn a_thread_is_what_the_kernel_says_of_it() {
    // As Linux 6.18 wrote it.
    let text = "4242 (worker) 0 R) R 1 4242 4242 0 -1 4194368 91 0 0 0 5 3 0 0 -21 0 3 0 77 0 0 \
                18446744073709551615 0 0 0 0 0 0 0 4096 0 0 0 0 17 1 20 1 0 0 0 0 0 0 0 0 0 0 0";
    let stat = threads::Stat::parse(text).unwrap();
    let expected = threads::Stat {
        name: "worker) 0 R".into(),
        state: "running".into(),
        processor: 1,
        policy: "fifo (priority 20)".into(),
    };
    assert_eq!(stat, expected);
    for wrong in ["", "1 (x) R", "1 x R 1"] {
        assert_eq!(threads::Stat::parse(wrong), None);
    }
    let row = |id, name: &str, kind: &str, core| threads::Row {
        id,
        name: name.into(),
        kind: kind.into(),
        lwp: 4242,
        policy: "other (nice 0)".into(),
        lcore: id,
        core,
        socket: core.map(|_| 0),
        state: "running".into(),
    };
    let threads = vec![row(0, "fastpath", "main", Some(0)), row(1, "worker 0", "worker", None)];
    insta::assert_snapshot!(threads::Threads { threads });
}

#[test]
fn a_processor_is_what_the_kernel_says_of_the_first_one() {
    let text = "processor\t: 0\nvendor_id\t: X\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Y @ 2.5GHz\n\
                stepping\t: 7\nflags\t\t: fpu avx2 hypervisor\n\nprocessor\t: 1\nmodel name\t: Z\n";
    insta::assert_snapshot!(cpu::cpu(text, 2_500_000_123.0));
    assert_eq!(cpu::cpu("", 1e9).model, None);
}

#[test]
fn hardware_says_who_serves_which_queue() {
    let device = |name: &str, index, link| hardware::Device {
        name: name.into(),
        index,
        driver: "null".into(),
        copying: None,
        shortcuts: None,
        link,
        placement: vec![1, 2],
        transmit_queues: 2,
        handoffs: Vec::new(),
        lost: None,
    };
    let down = hardware::Link::Down("the peer has gone".into());
    let mut devices = vec![device("lan", 0, hardware::Link::Up), device("wan", 1, down)];
    insta::assert_snapshot!(hardware::Hardware { devices: devices.clone(), taps: Vec::new() });
    let (name, kernel_index) = ("lan".into(), 7);
    let tap = hardware::Tap { name, kernel_index, to_kernel: 12, refused: 1, from_kernel: 345, lost: 2 };
    insta::assert_snapshot!("taps", hardware::Hardware { devices: devices.clone(), taps: vec![tap] });
    let handoff = |queue, from, to| hardware::Handoff { queue, from, to, frames: 12345, congestion_drops: 6 };
    devices[0].handoffs = vec![handoff(0, 1, 2), handoff(1, 2, 1)];
    insta::assert_snapshot!("handoffs", hardware::Hardware { devices: devices.clone(), taps: Vec::new() });
    devices[0].handoffs.clear();
    devices[1].lost = Some(hardware::Lost { missed: 3, no_buffer: 4, errors: 0, unsent: 1_000_000 });
    insta::assert_snapshot!("lost", hardware::Hardware { devices: devices.clone(), taps: Vec::new() });
    // What is known of copies is beside, in JSON too.
    let reason = Some("the driver has no zero copy".to_owned());
    devices[0].copying = Some(hardware::Copying { zero_copy: false, reason, busy_polls: true });
    let text = serde_json::to_string(&devices).unwrap();
    assert!(text.contains("\"zero_copy\":false,\"why_copies\":\"the driver has no zero copy\""), "{text}");
    assert_eq!(serde_json::from_str::<Vec<hardware::Device>>(&text).unwrap(), devices);
    let shown = hardware::Hardware { devices, taps: Vec::new() }.to_string();
    assert!(shown.contains("null: copy (the driver has no zero copy), busy polling"), "{shown}");
}

#[test]
fn access_lists_show_what_each_rule_matched() {
    use crate::dataplane::acl::{AccessList, Action, Addresses, Carried, Rule};
    let ten = crate::fib::Prefix::new(0x0a00_0000, 8).unwrap();
    let all = crate::fib::Prefix::new(0, 0).unwrap();
    let rule = |action, addresses, carried| Rule { action, addresses, carried };
    let web = Carried::Ports { protocol: 6, source: 0..=u16::MAX, destination: 80..=443 };
    let list = AccessList::new(
        "from-lan",
        vec![
            rule(Action::Permit, Addresses::Ip4 { source: ten, destination: all }, web),
            rule(Action::Deny, Addresses::Ip4 { source: all, destination: all }, Carried::Protocol(89)),
            rule(Action::Permit, Addresses::Any, Carried::Type { protocol: 58, kind: 128 }),
        ],
    );
    list.counters(0)[0].add(12);
    list.counters(1)[0].add(30);
    list.counters(1)[3].add(7);
    let forwarding = routed("lan", Filters { input: Some(Arc::clone(&list)), output: None });
    let shown = acl::access_lists([&list], &forwarding, 2);
    insta::assert_snapshot!("acl", shown);
    insta::assert_snapshot!("acl_json", serde_json::to_string_pretty(&shown).unwrap());
    let none = acl::access_lists([], &forwarding, 2);
    assert_eq!(none.to_string(), "there are no access lists\n");
}

#[test]
fn flows_show_what_workers_know() {
    use crate::dataplane::flow::member::{Asker, Member, Part};
    use crate::dataplane::states::{self, Flow, Kind, State, Tally, Terms, Timeouts};
    let member = |protocol, ports: (u16, u16), asker| Member {
        part: Part::Begins,
        is_ip6: false,
        protocol,
        flags: if protocol == 6 { 2 } else { 0 },
        asker,
        source: 0x0a00_0005,
        destination: 0xc000_0209,
        source_port: ports.0,
        destination_port: ports.1,
    };
    let (filters, timeouts, now) = (Filters::default(), Timeouts::default(), states::now());
    let terms = Terms::new(&filters, &timeouts, now);
    let state = |member: &Member, input: bool| {
        let mut state = State::first(Flow::of(member, 0, !input), member.flags, (input, 1, 0), &terms);
        // Not by the clock.
        state.expires = now.wrapping_add(1_000_000);
        state
    };
    let listed = vec![
        state(&member(6, (4711, 443), Asker::None), false),
        state(&member(17, (53, 53), Asker::None), true),
        state(&member(1, (7, 7), Asker::Source), false),
        state(&member(47, (0, 0), Asker::None), true),
    ];
    let tally = Tally::default();
    for (kind, opened, ended) in
        [(Kind::Tcp, 5, 2), (Kind::Udp, 20, 19), (Kind::Icmp, 1, 0), (Kind::Other, 1, 0)]
    {
        tally.of(kind).opened.add(opened);
        tally.of(kind).ended.add(ended);
    }
    tally.expired.add(20);
    tally.revoked.add(1);
    tally.refused.add(3);
    let forwarding = routed("wan", Filters::default());
    let mut shown = flows::flows([("worker 0".to_owned(), &tally, listed)], 1000, &forwarding, 4);
    assert_eq!((shown.total, shown.flows.len()), (6, 4));
    assert!(shown.flows.iter().all(|flow| (63_900..=64_000).contains(&flow.seconds)), "{shown:?}");
    shown.flows.iter_mut().for_each(|flow| flow.seconds = 64_000);
    insta::assert_snapshot!("flows", shown);
    insta::assert_snapshot!("flows_json", serde_json::to_string_pretty(&shown.flows[3]).unwrap());
    let none = flows::flows([], 1000, &forwarding, 4);
    assert_eq!(none.to_string(), "no access list keeps states\n");
}
