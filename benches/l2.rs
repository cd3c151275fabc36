//! What frames cost fastpath that do not go through its IP nodes, and what spreading flows over workers costs:
//! `cargo bench -p fastpath --bench l2`, on an otherwise idle machine.
//!
//! Frames of 64 bytes with FCS lie in 2,048 buffers, which a device in memory lends 256 at a time; what is sent
//! is thrown away. Clocks are those of the time stamp counter. All rows take turns; figures are medians of the
//! turns.

#![allow(clippy::unwrap_used)] // a benchmark may end at its first error

#[path = "nodes/turn.rs"]
mod turn;

use std::hint::black_box;
use std::sync::Arc;

use fastpath::clock::clocks;
use fastpath::counters::Counters;
use fastpath::device::{Input, Output};
use fastpath::flow::ends::Ends;
use fastpath::flow::rss::Rss;
use fastpath::flow::{of_ip4, of_ip6};
use fastpath::forwarding::Role;
use fastpath::handoff::Handoff;
use fastpath::node::Node;
use fastpath::router::Router;
use fastpath::vector::{Frame, VECTOR};
use fastpath::worker::{Receive, Worker};
use wire::MacAddress;

use crate::turn::{Nowhere, TURNS, median, turn};

const BUFFERS: usize = 2048;
/// Bytes of a buffer, of which the frame has the first 60.
const BUFFER: usize = 2048;
const FRAME: usize = 60;
/// The nodes in the way of a frame, in their order; a cross connect leaves out the middle ones.
const NODES: [Node; 7] = [
    Node::DeviceInput,
    Node::EthernetInput,
    Node::L2Input,
    Node::L2Learn,
    Node::L2Fwd,
    Node::L2Output,
    Node::Tx,
];

fn main() {
    nodes();
    hashes();
    handoff();
}

/// A table of clocks a frame by node.
fn nodes() {
    let cases = [
        ("cross connect", Role::CrossConnect(1), 1),
        ("bridge, 2 stations", Role::Bridge(1), 1),
        ("bridge, 8 k stations", Role::Bridge(1), 4096),
    ];
    let mut rows: Vec<_> =
        cases.iter().map(|&(name, role, stations)| (name, set_up(role, stations), Vec::new())).collect();
    for _ in 0..TURNS {
        for (_, (worker, counters, _router), turns) in &mut rows {
            turns.push(turn(worker, counters, NODES));
        }
    }
    let names: Vec<&str> = NODES.iter().map(|node| node.name()).collect();
    println!("| case | {} | all | Mpps |\n|---|{}", names.join(" | "), "---|".repeat(NODES.len() + 2));
    for (name, _, turns) in &rows {
        let cells: Vec<_> = (0..NODES.len()).map(|node| median(turns, |turn| turn.clocks[node])).collect();
        let all = median(turns, |turn| turn.clocks.iter().sum());
        let cells: Vec<_> = cells.iter().map(|clocks| format!("{clocks:.1}")).collect();
        println!("| {name} | {} | {all:.1} | {:.1} |", cells.join(" | "), median(turns, |turn| turn.mpps));
    }
}

/// Two devices between which so many stations on each side talk.
fn set_up(role: Role, stations: usize) -> (Worker, Arc<Counters>, Router) {
    let mut router = Router::new().unwrap();
    for device in 0..2 {
        router.add_device(&format!("memory{device}"), MacAddress([2, 0, 0, 0, 0, device]), 1500).unwrap();
    }
    router.set_interface(0, |interface| interface.role = role).unwrap();
    let back = if role == Role::CrossConnect(1) { Role::CrossConnect(0) } else { role };
    router.set_interface(1, |interface| interface.role = back).unwrap();
    if let Some(bridge) = router.forwarding().bridges.first() {
        (0..stations).for_each(|station| _ = bridge.stations.learn(mac(1, station), 1));
    }
    let counters = Arc::new(Counters::default());
    let inputs = vec![Receive::new(0, Box::new(Memory::new(stations)))];
    let outputs: Vec<Box<dyn Output>> = vec![Box::new(Nowhere), Box::new(Nowhere)];
    let worker = Worker::new(inputs, outputs, router.attach(), Arc::clone(&counters));
    (worker, counters, router)
}

/// A station of a side.
fn mac(side: u8, number: usize) -> MacAddress {
    MacAddress([2, side, 0, 0, (number >> 8) as u8, number as u8])
}

/// A device that lends frames between ever other stations.
struct Memory {
    buffers: Box<[u8]>,
    at: usize,
}

impl Memory {
    fn new(stations: usize) -> Self {
        let mut buffers = vec![0; BUFFERS * BUFFER].into_boxed_slice();
        for (number, buffer) in buffers.chunks_exact_mut(BUFFER).enumerate() {
            buffer[..6].copy_from_slice(&mac(1, number * 7 % stations).0);
            buffer[6..12].copy_from_slice(&mac(0, number * 5 % stations).0);
            buffer[12..14].copy_from_slice(&[0x88, 0xb5]);
        }
        Self { buffers, at: 0 }
    }

    /// With frames of so many flows of UDP.
    fn of_flows(flows: usize) -> Self {
        let mut memory = Self::new(1);
        for (number, buffer) in memory.buffers.chunks_exact_mut(BUFFER).enumerate() {
            let [high, low] = ((number % flows) as u16).to_be_bytes();
            let header = [0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 16, 0, 0, 1, 48, 0, high, low];
            buffer[12..14].copy_from_slice(&[8, 0]);
            buffer[14..34].copy_from_slice(&header);
            buffer[34..38].copy_from_slice(&[4, low, 0, 9]);
        }
        memory
    }
}

impl Input for Memory {
    fn receive(&mut self, frames: &mut [Frame]) -> usize {
        let count = VECTOR.min(frames.len());
        for frame in &mut frames[..count] {
            let buffer = &mut self.buffers[self.at * BUFFER..][..BUFFER];
            self.at = (self.at + 1) % BUFFERS;
            // SAFETY: the buffer has so many bytes, and is touched again only 2,048 frames later.
            *frame = unsafe { Frame::new(buffer.as_mut_ptr(), FRAME as u32, BUFFER as u32) };
        }
        count
    }

    fn release(&mut self) {}
}

/// What a frame costs that is handed to another worker (RSS), and one that is not: two workers in one thread
/// take turns, by 1,024 flows, through a cross connect. Without device-input, whose clocks hold the other
/// worker's turn here.
fn handoff() {
    let mut router = Router::new().unwrap();
    for device in 0..2 {
        router.add_device(&format!("memory{device}"), MacAddress([2, 0, 0, 0, 0, device]), 1500).unwrap();
    }
    router.set_interface(0, |interface| interface.role = Role::CrossConnect(1)).unwrap();
    let (handoff, ways) = Handoff::new(Arc::new(Rss::new(2)), 0, 2);
    let mut polled = Receive::new(0, Box::new(Memory::of_flows(1024)));
    polled.handoff = Some(handoff);
    let mut inputs = vec![vec![polled]];
    inputs.extend(ways.into_iter().map(|way| vec![Receive::new(0, way.input)]));
    let mut workers: Vec<_> = inputs
        .into_iter()
        .map(|inputs| {
            let counters = Arc::new(Counters::default());
            let outputs: Vec<Box<dyn Output>> = vec![Box::new(Nowhere), Box::new(Nowhere)];
            (Worker::new(inputs, outputs, router.attach(), Arc::clone(&counters)), counters)
        })
        .collect();
    let nodes = [Node::WorkerHandoff, Node::EthernetInput];
    // By worker and node: clocks and frames.
    let read = |workers: &[(Worker, Arc<Counters>)]| {
        let of_worker = |counters: &Counters| {
            nodes
                .map(|node| &counters.nodes[node as usize])
                .map(|node| [node.clocks.get(), node.vectors.get()])
        };
        [of_worker(&workers[0].1), of_worker(&workers[1].1)]
    };
    let mut rounds = Vec::new();
    for _ in 0..TURNS {
        let before = read(&workers);
        for _ in 0..20_000 {
            workers.iter_mut().for_each(|(worker, _)| _ = worker.turn());
        }
        let after = read(&workers);
        rounds.push([0, 1].map(|worker| {
            [0, 1].map(|node| {
                let [clocks, frames] =
                    [0, 1].map(|what| after[worker][node][what] - before[worker][node][what]);
                clocks as f64 / frames as f64
            })
        }));
    }
    assert!(
        workers.iter().all(|(_, counters)| counters.balance().holds() && counters.balance().dropped == 0)
    );
    let median = |worker: usize, node: usize| {
        let mut values: Vec<f64> = rounds.iter().map(|round| round[worker][node]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!("\n| worker | worker-handoff | ethernet-input |\n|---|---|---|");
    println!("| polls | {:.1} | {:.1} |", median(0, 0), median(0, 1));
    println!("| is handed half | | {:.1} |", median(1, 1));
}

/// A table of clocks a packet by hash.
fn hashes() {
    let ends = Ends::new(&wire::toeplitz::MICROSOFT);
    let ip4: Vec<Vec<u8>> = (0..1024u16)
        .map(|number| {
            let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 16, 0, 0, 1, 48, 0];
            packet.extend(number.to_be_bytes());
            packet.extend([4, 1, 0, 9, 0, 8, 0, 0]);
            packet
        })
        .collect();
    let ip6: Vec<Vec<u8>> = (0..1024u16)
        .map(|number| {
            let mut packet = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
            packet.extend([0x20; 30]);
            packet.extend(number.to_be_bytes());
            packet.extend([4, 1, 0, 9, 0, 8, 0, 0]);
            packet
        })
        .collect();
    println!("\n| hash | IPv4 | IPv6 |\n|---|---|---|");
    let row = |name: &str, ip4_hash: &dyn Fn(&[u8]) -> u32, ip6_hash: &dyn Fn(&[u8]) -> u32| {
        println!("| {name} | {:.1} | {:.1} |", cost(&ip4, ip4_hash), cost(&ip6, ip6_hash));
    };
    row("mix", &of_ip4, &of_ip6);
    row("Toeplitz", &|packet| ends.of_ip4(packet), &|packet| ends.of_ip6(packet));
}

/// Clocks a packet, of the median round.
fn cost(packets: &[Vec<u8>], hash: &dyn Fn(&[u8]) -> u32) -> f64 {
    let mut rounds: Vec<u64> = (0..1000)
        .map(|_| {
            let begin = clocks();
            packets.iter().for_each(|packet| _ = black_box(hash(packet)));
            clocks() - begin
        })
        .collect();
    rounds.sort_unstable();
    rounds[rounds.len() / 2] as f64 / packets.len() as f64
}
