//! Cross connects and bridges between devices in ordinary memory: what goes in comes out, byte by byte.

use std::sync::Arc;
use std::time::Duration;

use fastpath::bridge::Settings;
use fastpath::counters::{Counters, Reason};
use fastpath::device::simulated::Wire;
use fastpath::forwarding::Role;
use fastpath::node::Node;
use fastpath::router::Router;
use fastpath::worker::{Receive, Worker};
use proptest::prelude::*;
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
            inputs.extend(queues.inputs.into_iter().map(|input| Receive::new(device, input)));
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

const ALL: u8 = 0xff;

/// A frame from a station to another, or to [`ALL`], with some payload.
fn talk(from: u8, to: u8) -> Vec<u8> {
    let mut frame = frame(to, from, &[8, 0, 1, 2, 3, 4]);
    if to == ALL {
        frame[..6].fill(0xff);
    }
    frame
}

/// Four devices, of which three are a bridge.
fn bridge() -> Net {
    let mut net = Net::new(4);
    for port in 0..3 {
        net.role(port, Role::Bridge(1));
    }
    net
}

#[test]
fn a_bridge_floods_until_it_has_learned() {
    let mut net = bridge();
    let one = || vec![talk(1, 2)];
    assert_eq!(net.run(0, &one()), [vec![], one(), one(), vec![]]);
    assert_eq!(net.run(1, &[talk(2, 1)]), sent_by(0, 4, vec![talk(2, 1)]));
    assert_eq!(net.run(0, &one()), sent_by(1, 4, one()));
    assert_eq!(net.run(0, &[talk(1, ALL)]), [vec![], vec![talk(1, ALL)], vec![talk(1, ALL)], vec![]]);
    assert_eq!(net.counters.made.get(), 2);
    // Station 3 is where station 1 is: nothing goes back there.
    assert_eq!(net.run(0, &[talk(3, 1)]), sent_by(0, 4, vec![]));
    assert_eq!(net.dropped(Reason::L2SameInterface), 1);
    // Station 1 moves, and is found.
    net.run(2, &[talk(1, ALL)]);
    assert_eq!(net.dropped(Reason::L2StationMoved), 1);
    assert_eq!(net.run(1, &[talk(2, 1)]), sent_by(2, 4, vec![talk(2, 1)]));
    let known = net.router.forwarding().bridges[0].stations.list();
    let mut known: Vec<_> = known.iter().map(|station| (station.mac.0[5], station.interface)).collect();
    known.sort_unstable();
    assert_eq!(known, [(1, 2), (2, 1), (3, 0)]);
}

#[test]
fn stations_are_forgotten_with_time_and_with_their_port() {
    let mut net = bridge();
    net.router.tick(Duration::from_secs(5000));
    net.run(0, &[talk(1, ALL)]);
    net.router.tick(Duration::from_secs(5300));
    assert_eq!(net.run(1, &[talk(2, 1)]), sent_by(0, 4, vec![talk(2, 1)]));
    net.router.tick(Duration::from_secs(5301));
    assert_eq!(net.run(1, &[talk(2, 1)]), [vec![talk(2, 1)], vec![], vec![talk(2, 1)], vec![]]);
    net.router.set_interface(1, |interface| interface.up = false).unwrap();
    assert_eq!(net.router.forwarding().bridges[0].stations.known(), 0);
    assert_eq!(net.run(0, &[talk(1, 2)]), sent_by(2, 4, vec![talk(1, 2)]));
    net.role(2, Role::Router);
    net.run(0, &[talk(1, ALL)]);
    assert_eq!(net.dropped(Reason::L2NoPort), 1);
}

#[test]
fn a_full_table_is_counted_and_floods() {
    let mut net = bridge();
    net.router.set_bridge(1, Settings { stations: 2, ..Settings::default() });
    net.run(0, &[talk(1, ALL), talk(2, ALL), talk(3, ALL)]);
    assert_eq!(net.dropped(Reason::L2TableFull), 1);
    assert_eq!(net.run(1, &[talk(2, 3)]), [vec![talk(2, 3)], vec![], vec![talk(2, 3)], vec![]]);
}

#[test]
fn a_port_that_makes_addresses_up_leaves_room_for_others() {
    let mut net = bridge();
    net.router.set_bridge(1, Settings { stations: 64, ..Settings::default() });
    let made_up: Vec<_> = (10..250).map(|station| talk(station, ALL)).collect();
    net.run(0, &made_up);
    let known = |net: &Net| net.router.forwarding().bridges[0].stations.known();
    assert!((40..=56).contains(&known(&net)), "{}", known(&net));
    net.run(1, &[talk(1, ALL)]);
    assert_eq!(net.run(2, &[talk(2, 1)]), sent_by(1, 4, vec![talk(2, 1)]));
}

#[test]
fn frames_to_bridges_stay_on_their_link() {
    let mut net = bridge();
    let to_group = |last: u8| {
        let mut frame = talk(1, ALL);
        frame[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, last]);
        frame
    };
    let frames: Vec<_> = (0..0x11).map(to_group).collect();
    let passed = || vec![to_group(0x10)];
    assert_eq!(net.run(0, &frames), [vec![], passed(), passed(), vec![]]);
    assert_eq!(net.dropped(Reason::L2Reserved), 16);
}

#[test]
fn ports_of_a_bridge_may_be_vlans() {
    let mut net = Net::new(3);
    let seven = net.router.add_vlan(0, 7).unwrap();
    let eight = net.router.add_vlan(0, 8).unwrap();
    let also_seven = net.router.add_vlan(1, 7).unwrap();
    for port in [seven, eight, also_seven, 2] {
        net.role(port, Role::Bridge(9));
    }
    let tagged = |from: u8, to: u8, id: u8| {
        let mut frame = talk(from, to);
        frame.splice(12..12, [0x81, 0, 0, id]);
        frame
    };
    // From a tagged port: the same bytes for the same tag, copies for others.
    assert_eq!(
        net.run(0, &[tagged(1, ALL, 7)]),
        [vec![tagged(1, ALL, 8)], vec![tagged(1, ALL, 7)], vec![talk(1, ALL)],]
    );
    // From an untagged one, no other of which has the same.
    assert_eq!(
        net.run(2, &[talk(2, ALL)]),
        [vec![tagged(2, ALL, 7), tagged(2, ALL, 8)], vec![tagged(2, ALL, 7)], vec![],]
    );
    assert_eq!(net.run(0, &[tagged(3, 2, 8)]), sent_by(2, 3, vec![talk(3, 2)]));
    assert_eq!(net.run(0, &[tagged(1, 3, 7)]), sent_by(0, 3, vec![tagged(1, 3, 8)]));
}

#[test]
fn copies_for_which_there_is_no_room_are_counted() {
    let mut net = bridge();
    net.role(3, Role::Bridge(1));
    let frames = vec![talk(1, ALL); 256];
    let sent = net.run(0, &frames);
    // 256 arrived, and as many can be made in a pass; each has three ways to go.
    assert_eq!(sent.iter().map(Vec::len).sum::<usize>(), 512);
    assert_eq!(net.dropped(Reason::L2NoCopy), 256);
    assert_eq!(net.counters.made.get(), 512);
}

#[test]
fn two_bridges_know_nothing_of_each_other() {
    let mut net = Net::new(4);
    for (port, domain) in [(0, 1), (1, 1), (2, 2), (3, 2)] {
        net.role(port, Role::Bridge(domain));
    }
    assert_eq!(net.run(0, &[talk(1, ALL)]), sent_by(1, 4, vec![talk(1, ALL)]));
    assert_eq!(net.run(2, &[talk(2, 1)]), sent_by(3, 4, vec![talk(2, 1)]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A bridge against one that is a map: every frame leaves where it should, and by no other port.
    #[test]
    fn as_a_plain_bridge(talks in prop::collection::vec((0usize..3, 1u8..8, 1u8..10), 1..120)) {
        let mut net = bridge();
        let mut known = std::collections::HashMap::new();
        for (port, from, to) in talks {
            known.insert(from, port);
            let frame = talk(from, to);
            let mut expected = vec![Vec::new(); 4];
            for out in (0..3).filter(|&out| out != port) {
                if known.get(&to).is_none_or(|&at| at == out) {
                    expected[out].push(frame.clone());
                }
            }
            prop_assert_eq!(net.run(port, &[frame]), expected);
        }
    }
}
