//! Runs of known nodes enter; what is made of them is looked at.

use results::fixtures::Scenario;

use super::*;

/// A node that did nothing before.
fn node(thread: &str, name: &str, calls: u64, vectors: u64, clocks: f64) -> Node {
    Node {
        thread: thread.to_owned(),
        name: name.to_owned(),
        before: NodeRuntime::default(),
        after: NodeRuntime { calls, vectors, suspends: 0, clocks },
    }
}

/// A record of which only the nodes matter.
fn nothing_came_back() -> Record {
    Record { samples: Vec::new(), ..Scenario::default().record() }
}

/// The article's figures of VPP at 10 Mpps asked for: one thread, a second.
fn full() -> Record {
    const RATE: u64 = 5_014_260;
    let mut record = nothing_came_back();
    record.nodes = [
        ("TenGigabitEthernet3/0/1-output", 14.1),
        ("TenGigabitEthernet3/0/1-tx", 123.0),
        ("dpdk-input", 79.5),
        ("ethernet-input", 67.4),
        ("ip4-input-no-checksum", 39.5),
        ("ip4-load-balance", 25.4),
        ("ip4-lookup", 41.2),
        ("ip4-rewrite", 47.8),
    ]
    .map(|(name, clocks)| node("vpp_wk_0", name, RATE / 256, RATE, clocks))
    .into();
    record.nodes_s = Some(1.0);
    record
}

#[test]
fn nodes_stand_in_the_order_in_which_packets_pass_them() {
    let mut record = full();
    record.nodes.push(node("vpp_wk_0", "error-drop", 1, 60_000, 9.0));
    record.nodes.push(node("vpp_wk_0", "nat44-in2out", 1, 60_000, 9.0));
    let costs = Costs::of(&record).unwrap();
    let names: Vec<&str> = costs.nodes.iter().map(|node| node.name).collect();
    let expected = [
        "dpdk-input",
        "ethernet-input",
        "ip4-input-no-checksum",
        "ip4-lookup",
        "ip4-load-balance",
        "ip4-rewrite",
        "nat44-in2out",
        "TenGigabitEthernet3/0/1-output",
        "TenGigabitEthernet3/0/1-tx",
        "error-drop",
    ];
    assert_eq!(names, expected);
}

#[test]
fn the_sums_and_the_clock_are_those_of_the_literature() {
    let record = full();
    let costs = Costs::of(&record).unwrap();
    assert!((costs.with_polling - 437.9).abs() < 0.1, "{costs:?}");
    assert!((costs.without_polling - 358.4).abs() < 0.1, "{costs:?}");
    assert!((costs.forwarding - 235.4).abs() < 0.1, "{costs:?}");
    assert!((costs.clock_hz.unwrap() / 2.196e9 - 1.0).abs() < 0.001, "{costs:?}");
    assert!((costs.node("ip4-lookup").unwrap().vectors_per_call() - 256.0).abs() < 0.05);
}

#[test]
fn threads_that_forward_are_added_up_and_others_left_out() {
    let mut record = full();
    for node in record.nodes.clone() {
        record.nodes.push(Node { thread: "vpp_wk_1".to_owned(), ..node });
    }
    record.nodes.push(node("vpp_main", "unix-epoll-input", 900, 0, 2e6));
    record.nodes.push(node("vpp_main", "ip6-lookup", 4, 4, 9e3));
    let (one, two) = (full(), Costs::of(&record).unwrap());
    let one = Costs::of(&one).unwrap();
    assert_eq!(two.packets, 2 * one.packets);
    assert!((two.with_polling - one.with_polling).abs() < 1e-6);
    assert_eq!(two.nodes.len(), one.nodes.len());
    assert!((two.clock_hz.unwrap() - one.clock_hz.unwrap()).abs() < 1.0);
}

#[test]
fn what_a_worker_hands_over_to_another_came_in_once() {
    let mut record = nothing_came_back();
    record.nodes = vec![
        node("worker 0", "device-input", 10, 1_000, 50.0),
        node("worker 0", "worker-handoff", 10, 1_000, 12.0),
        node("worker 0", "ethernet-input", 10, 500, 10.0),
        node("worker 1", "device-input", 10, 500, 50.0),
        node("worker 1", "ethernet-input", 10, 500, 10.0),
    ];
    let costs = Costs::of(&record).unwrap();
    assert_eq!(costs.packets, 1_000);
    assert!((costs.without_polling - (12.0 + 10.0)).abs() < 1e-9, "{costs:?}");
}

#[test]
fn where_ways_part_each_packet_is_counted_once() {
    let mut record = nothing_came_back();
    record.nodes = vec![
        node("w", "device-input", 10, 1_000, 50.0),
        node("w", "ethernet-input", 10, 1_000, 10.0),
        node("w", "ip4-lookup", 10, 500, 20.0),
        node("w", "ip6-lookup", 10, 500, 40.0),
        node("w", "ip4-icmp-error", 2, 2, 900.0),
    ];
    let costs = Costs::of(&record).unwrap();
    assert_eq!(costs.packets, 1_000);
    // The rare ones are in the sum, but have no row.
    assert!((costs.forwarding - (10.0 + 10.0 + 20.0 + 1.8)).abs() < 1e-9, "{costs:?}");
    assert!(costs.node("ip4-icmp-error").is_none() && costs.node("ip6-lookup").is_some());
    assert_eq!(costs.clock_hz, None);
}

#[test]
fn a_device_without_nodes_or_packets_has_no_costs() {
    let mut record = nothing_came_back();
    assert!(Costs::of(&record).is_none());
    record.nodes = vec![node("w", "device-input", 1_000, 0, 50.0)];
    assert!(Costs::of(&record).is_none());
    record.nodes[0].before.calls = 2_000;
    assert!(Costs::of(&record).is_none());
}

#[test]
fn of_a_device_whose_kernel_forwards_beside_its_nodes_they_tell_no_costs() {
    let mut record = Scenario::default().record();
    let forwarded = record.forwarded();
    assert!(forwarded > 2);
    record.nodes = vec![node("w", "device-input", 1_000, forwarded / 2 - 1, 50.0)];
    assert!(Costs::of(&record).is_none());
    record.nodes = vec![node("w", "device-input", 1_000, forwarded / 2, 50.0)];
    assert!(Costs::of(&record).is_some());
}
