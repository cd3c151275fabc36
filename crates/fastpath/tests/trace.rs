//! What a trace tells of packets on their way through a router.

use std::net::IpAddr;
use std::sync::Arc;

use fastpath::counters::Counters;
use fastpath::device::simulated::Wire;
use fastpath::fib::Prefix;
use fastpath::forwarding::Role;
use fastpath::node::Node;
use fastpath::router::{Hop, Router};
use fastpath::trace::{MOST, Traced};
use fastpath::worker::{Receive, Worker};
use wire::{MacAddress, ethernet, ipv4};

const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const THEIRS: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

fn set_up() -> (Router, Vec<Wire>, Worker) {
    let mut router = Router::new().unwrap();
    let (mut wires, mut inputs, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
    for device in 0..3u16 {
        let (wire, queues) = Wire::device(1);
        router.add_device(&format!("memif{device}"), OURS, 1500).unwrap();
        wires.push(wire);
        inputs.extend(queues.inputs.into_iter().map(|input| Receive::new(device, input)));
        outputs.extend(queues.outputs);
    }
    let neighbour = IpAddr::from([10, 1, 0, 2]);
    router.set_neighbour(1, neighbour, THEIRS).unwrap();
    router.add_route(Prefix::new(48u32 << 24, 8).unwrap(), &[Hop::Neighbour(1, neighbour)]).unwrap();
    let worker = Worker::new(inputs, outputs, router.attach(), Arc::new(Counters::default()));
    (router, wires, worker)
}

fn frame(ttl: u8) -> Vec<u8> {
    let ethernet = ethernet::Header { destination: OURS, source: THEIRS, ethertype: ethernet::IPV4 };
    let header = ipv4::Header {
        source: [16, 0, 0, 1].into(),
        destination: [48, 0, 0, 1].into(),
        ttl,
        protocol: ipv4::UDP,
        total_length: 46,
        tos: 0,
        identification: 0,
    };
    let mut frame = [&ethernet.emit()[..], &header.emit(), &[0x04, 0x01, 0, 9]].concat();
    frame.resize(60, 0);
    frame
}

/// What nodes saw, without the clocks.
fn lines(traced: &Traced) -> Vec<String> {
    traced.steps.iter().map(|step| format!("{}: {}", step.node, step.saw)).collect()
}

#[test]
fn a_trace_tells_what_every_node_saw_and_decided() {
    let (router, wires, mut worker) = set_up();
    let traced = |router: &Router| router.traces().list(router.forwarding());
    wires[0].put(frame(64));
    worker.turn();
    assert_eq!(traced(&router), []);
    let _ = wires[1].take();

    router.traces().add(3);
    let mut wrong = frame(64);
    wrong[14 + 8] = 65;
    for frame in [frame(64), wrong, frame(63), frame(62)] {
        wires[0].put(frame);
    }
    worker.turn();
    let found = traced(&router);
    let mut adjacencies = router.forwarding().adjacencies.iter();
    let adjacency = adjacencies.position(|adjacency| adjacency.next == Node::Ip4Rewrite).unwrap();
    let ip = |ttl: u8| format!("UDP 16.0.0.1 port 1025 -> 48.0.0.1 port 9, ttl {ttl}, length 46");
    let begin = |ttl| {
        let (frame, ip) = ("02:00:00:00:00:02 -> 02:00:00:00:00:01, IPv4", ip(ttl));
        vec![
            "device-input: memif0, 60 bytes".to_owned(),
            format!("ethernet-input: memif0: {frame}"),
            format!("ip4-input: {ip}"),
            format!("ip4-lookup: fib 0, adjacency {adjacency}: {ip}"),
        ]
    };
    let out = "02:00:00:00:00:01 -> 02:00:00:00:00:02";
    let mut forwarded = begin(64);
    forwarded.extend([
        format!("ip4-rewrite: adjacency {adjacency}, memif1: {out}, IPv4; {}", ip(63)),
        "interface-output: memif1".to_owned(),
        "tx: memif1, 60 bytes".to_owned(),
    ]);
    assert_eq!(lines(&found[0]), forwarded);
    let mut refused = begin(65);
    refused[3] = "error-drop: ip4-input: IPv4 header checksum wrong".to_owned();
    assert_eq!(lines(&found[1]), refused);
    // There is room for one frame at the device.
    let end = &lines(&found[2])[6..];
    assert_eq!(end, ["tx: memif1: not taken", "error-drop: tx: TX ring full"]);
    let next: Vec<_> = found[1].steps.iter().map(|step| step.next.as_deref().unwrap_or("-")).collect();
    assert_eq!(next, ["ethernet-input", "ip4-input", "error-drop", "-"]);
    assert!(found[0].steps.is_sorted_by_key(|step| step.clocks));
    assert!(found[0].to_string().contains(&format!(": ip4-lookup: fib 0, adjacency {adjacency}: UDP")));
    assert_eq!((found.len(), router.traces().wanted()), (3, 0));

    router.traces().add(u32::MAX);
    assert_eq!(router.traces().wanted(), MOST - 3);
    router.traces().clear();
    assert_eq!((traced(&router), router.traces().wanted()), (Vec::new(), 0));
}

#[test]
fn a_trace_follows_frames_of_bridges() {
    let (mut router, wires, mut worker) = set_up();
    let seven = router.add_vlan(2, 7).unwrap();
    for port in [0, 1, seven] {
        router.set_interface(port, |interface| interface.role = Role::Bridge(5)).unwrap();
    }
    router.traces().add(1);
    wires[0].put(frame(64));
    worker.turn();
    let mut reserved = frame(64);
    reserved[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 0]);
    router.traces().add(1);
    wires[1].put(reserved);
    worker.turn();
    let found = router.traces().list(router.forwarding());
    let between = "02:00:00:00:00:02 -> 02:00:00:00:00:01, IPv4";
    assert_eq!(
        lines(&found[0]),
        [
            "device-input: memif0, 60 bytes".to_owned(),
            format!("ethernet-input: memif0: {between}"),
            format!("l2-input: memif0: {between}"),
            format!("l2-learn: memif0: {between}"),
            format!("l2-fwd: {between}: to all ports of bridge 5"),
            "l2-flood: this one to memif1".to_owned(),
            format!("l2-output: memif1: {between}"),
            "tx: memif1, 60 bytes".to_owned(),
        ]
    );
    assert_eq!(
        lines(&found[1])[4..],
        [
            "l2-fwd: 02:00:00:00:00:02 -> 01:80:c2:00:00:00, IPv4",
            "error-drop: l2-fwd: destination reserved for bridges",
        ]
    );
}
