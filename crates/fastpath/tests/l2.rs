//! Cross connects between devices in ordinary memory: what goes in comes out, byte by byte.

#![allow(clippy::unwrap_used)] // a test may panic

use std::sync::Arc;

use fastpath::counters::{Counters, Reason};
use fastpath::device::simulated::Wire;
use fastpath::forwarding::Role;
use fastpath::node::Node;
use fastpath::router::Router;
use fastpath::worker::{Receive, Worker};
use wire::MacAddress;

/// A router with some devices, numbered as their interfaces.
struct Net {
    router: Router,
    wires: Vec<Wire>,
    worker: Worker,
    counters: Arc<Counters>,
}

impl Net {
    fn new(devices: u16) -> Self {
        let mut router = Router::new().unwrap();
        let (mut wires, mut inputs, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        for device in 0..devices {
            let (wire, queues) = Wire::device(4096);
            let mac = MacAddress([2, 0, 0, 0, 0, device as u8]);
            assert_eq!(router.add_device(&format!("memif{device}"), mac, 1500).unwrap(), device);
            wires.push(wire);
            inputs.extend(queues.inputs.into_iter().map(|input| Receive { device, input }));
            outputs.extend(queues.outputs);
        }
        let counters = Arc::new(Counters::default());
        let worker = Worker::new(inputs, outputs, router.attach(), Arc::clone(&counters));
        Self { router, wires, worker, counters }
    }

    fn role(&mut self, interface: u16, role: Role) {
        self.router.set_interface(interface, |interface| interface.role = role).unwrap();
    }

    fn cross_connect(&mut self, one: u16, other: u16) {
        self.role(one, Role::CrossConnect(other));
        self.role(other, Role::CrossConnect(one));
    }

    /// Has frames arrive, and forwards them. Returns what every device sent.
    fn run(&mut self, device: usize, frames: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
        for frame in frames {
            self.wires[device].put(frame.clone());
        }
        while self.worker.turn() > 0 {}
        assert!(self.counters.balance().holds(), "{:?}", self.counters.balance());
        self.wires.iter().map(|wire| std::iter::from_fn(|| wire.take()).collect()).collect()
    }

    fn dropped(&self, reason: Reason) -> u64 {
        self.counters.reasons[reason as usize].get()
    }
}

/// A frame between two stations, with `rest` from its EtherType on.
fn frame(to: u8, from: u8, rest: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 1, to, 2, 0, 0, 0, 1, from][..], rest].concat()
}

fn sent_by(device: usize, devices: usize, frames: Vec<Vec<u8>>) -> Vec<Vec<Vec<u8>>> {
    let mut sent = vec![Vec::new(); devices];
    sent[device] = frames;
    sent
}

#[test]
fn a_cross_connect_passes_every_frame_unchanged() {
    let mut net = Net::new(2);
    net.cross_connect(0, 1);
    let frames: Vec<Vec<u8>> = vec![
        frame(1, 2, &[8, 0, 0x45, 0, 0, 20]),
        frame(1, 2, &[0x81, 0, 0, 7, 8, 0, 1, 2, 3]),
        frame(1, 2, &[0x81, 0]),
        frame(1, 2, &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 8, 0]),
        [&[0x01, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 1, 1][..], &[0, 3, 0x42, 0x42, 3]].concat(),
        [&[0xff; 6][..], &[2, 0, 0, 0, 1, 1, 8, 6]].concat(),
        vec![0; 1522],
    ];
    for (from, to) in [(0, 1), (1, 0)] {
        assert_eq!(net.run(from, &frames), sent_by(to, 2, frames.clone()));
    }
    let many: Vec<_> = (0..600u16).map(|n| frame(1, 2, &n.to_be_bytes())).collect();
    assert_eq!(net.run(0, &many), sent_by(1, 2, many));
    assert_eq!(net.counters.nodes[Node::EthernetInput as usize].calls.get(), 2 + 3);
}

#[test]
fn what_a_cross_connect_cannot_pass_is_counted() {
    let mut net = Net::new(2);
    net.cross_connect(0, 1);
    let good = frame(1, 2, &[8, 0]);
    assert_eq!(
        net.run(0, &[good.clone(), good[..13].to_vec(), Vec::new()]),
        sent_by(1, 2, vec![good.clone()])
    );
    assert_eq!(net.dropped(Reason::Runt), 2);
    assert_eq!(net.run(0, &[vec![0; 1523]]), sent_by(1, 2, Vec::new()));
    assert_eq!(net.dropped(Reason::L2TooBig), 1);
    net.router.set_interface(1, |interface| interface.up = false).unwrap();
    net.run(0, std::slice::from_ref(&good));
    assert_eq!(net.dropped(Reason::OutputDown), 1);
    net.run(1, std::slice::from_ref(&good));
    assert_eq!(net.dropped(Reason::InputDown), 1);
    net.role(0, Role::CrossConnect(0));
    net.run(0, std::slice::from_ref(&good));
    assert_eq!(net.dropped(Reason::L2SameInterface), 1);
    net.role(0, Role::CrossConnect(99));
    net.run(0, &[good]);
    assert_eq!(net.dropped(Reason::OutputDown), 2);
}

#[test]
fn a_cross_connect_of_vlans_takes_off_translates_and_puts_on_tags() {
    let mut net = Net::new(3);
    let seven = net.router.add_vlan(0, 7).unwrap();
    let eight = net.router.add_vlan(1, 8).unwrap();
    let nine = net.router.add_vlan(1, 9).unwrap();
    net.cross_connect(seven, eight);
    net.cross_connect(2, nine);
    let plain = frame(1, 2, &[8, 0, 1, 2, 3, 4]);
    let tagged = |high: u8, id: u8| frame(1, 2, &[0x81, 0, high, id, 8, 0, 1, 2, 3, 4]);
    // Translated, with its priority and drop eligibility; a service tag becomes what the interface sends.
    assert_eq!(net.run(0, &[tagged(0xb0, 7)]), sent_by(1, 3, vec![tagged(0xb0, 8)]));
    assert_eq!(net.run(1, &[tagged(0x60, 8)]), sent_by(0, 3, vec![tagged(0x60, 7)]));
    let service = frame(1, 2, &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 5]);
    let customer = frame(1, 2, &[0x81, 0, 0, 8, 0x81, 0, 0, 5]);
    assert_eq!(net.run(0, &[service]), sent_by(1, 3, vec![customer]));
    // Put on, taken off.
    assert_eq!(net.run(2, std::slice::from_ref(&plain)), sent_by(1, 3, vec![tagged(0, 9)]));
    assert_eq!(net.run(1, &[tagged(0xe0, 9)]), sent_by(2, 3, vec![plain.clone()]));
    // What has a tag already gets a second one.
    let double = frame(1, 2, &[0x81, 0, 0, 9, 0x81, 0, 0, 5, 8, 0]);
    let single = frame(1, 2, &[0x81, 0, 0, 5, 8, 0]);
    assert_eq!(net.run(2, std::slice::from_ref(&single)), sent_by(1, 3, vec![double.clone()]));
    assert_eq!(net.run(1, &[double]), sent_by(2, 3, vec![single]));
    // The device itself routes: tags of no VLAN interface are unknown, until it is connected too.
    assert_eq!(net.run(1, &[tagged(0, 5)]), sent_by(0, 3, Vec::new()));
    assert_eq!(net.dropped(Reason::UnknownVlan), 1);
    net.cross_connect(0, 1);
    assert_eq!(net.run(1, &[tagged(0, 5), tagged(0, 8)]), sent_by(0, 3, vec![tagged(0, 5), tagged(0, 7)]));
    assert_eq!(net.counters.interfaces[usize::from(seven)].received.get(), 2);
}
