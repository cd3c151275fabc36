//! What each node of fastpath costs, without devices:
//! `cargo bench -p fastpath --bench graph`, on an otherwise idle machine.
//!
//! Frames of 64 bytes with FCS lie in 2,048 buffers, which a device in memory lends 256, 32, 4 or 1 at a
//! time, with their headers written anew; what is sent is thrown away. Clocks are those of the time stamp
//! counter. All rows take turns; figures are medians of the turns.

#![allow(clippy::unwrap_used)] // a benchmark may end at its first error

#[path = "nodes/memory.rs"]
mod memory;
#[path = "fib/tables.rs"]
#[allow(dead_code)] // only the IPv4 table is used
mod tables;
#[path = "forwarding/template.rs"]
mod template;
#[path = "nodes/turn.rs"]
mod turn;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use fastpath::counters::Counters;
use fastpath::fib::Prefix;
use fastpath::node::Node;
use fastpath::router::{Hop, Router};
use fastpath::vector::VECTOR;
use fastpath::worker::{Receive, Worker};
use stats::random::Random;
use wire::MacAddress;

use crate::memory::{Memory, OURS};
use crate::turn::{Nowhere, TURNS, median, turn};

/// A case: its name, the routes, how many destinations, and how many frames at a time.
struct Case {
    name: &'static str,
    routes: usize,
    destinations: usize,
    vector: usize,
}

const CASES: [Case; 8] = [
    Case { name: "1 route, 1 destination", routes: 1, destinations: 1, vector: VECTOR },
    Case { name: "8 routes, 512 k destinations", routes: 8, destinations: 1 << 19, vector: VECTOR },
    Case { name: "1 M routes, 1 k destinations", routes: 1_000_000, destinations: 1000, vector: VECTOR },
    Case { name: "1 M routes, 100 k destinations", routes: 1_000_000, destinations: 100_000, vector: VECTOR },
    Case { name: "1 M routes, 1 M destinations", routes: 1_000_000, destinations: 1_000_000, vector: VECTOR },
    Case { name: "1 destination, vectors of 32", routes: 1, destinations: 1, vector: 32 },
    Case { name: "1 destination, vectors of 4", routes: 1, destinations: 1, vector: 4 },
    Case { name: "1 destination, vectors of 1", routes: 1, destinations: 1, vector: 1 },
];

/// The nodes in the way of a packet, in their order.
const NODES: [Node; 7] = [
    Node::DeviceInput,
    Node::EthernetInput,
    Node::Ip4Input,
    Node::Ip4Lookup,
    Node::Ip4Rewrite,
    Node::InterfaceOutput,
    Node::Tx,
];
/// Those that VPP's figure for forwarding has: ethernet-input to interface-output.
const FORWARDING: std::ops::Range<usize> = 1..6;

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let table = tables::ip4(false);
    let mut rows: Vec<_> = CASES
        .iter()
        .filter(|case| case.name.contains(&wanted))
        .map(|case| (case, set_up(case, &table), Vec::new()))
        .collect();
    for _ in 0..TURNS {
        for (_, (worker, counters, _router), turns) in &mut rows {
            turns.push(turn(worker, counters, NODES));
        }
    }
    let names: Vec<&str> = NODES.iter().map(|node| node.name()).collect();
    println!("| case | {} | forwarding | Mpps |\n|---|{}", names.join(" | "), "---|".repeat(NODES.len() + 2));
    for (case, _, turns) in &rows {
        let of_node = |node: usize| median(turns, |turn| turn.clocks[node]);
        let cells: Vec<String> = (0..NODES.len()).map(|node| format!("{:.1}", of_node(node))).collect();
        let forwarding = median(turns, |turn| turn.clocks[FORWARDING].iter().sum());
        println!(
            "| {} | {} | {forwarding:.1} | {:.1} |",
            case.name,
            cells.join(" | "),
            median(turns, |turn| turn.mpps)
        );
    }
}

fn set_up(case: &Case, table: &tables::Table<u32>) -> (Worker, Arc<Counters>, Router) {
    let mut router = Router::new().unwrap();
    router.add_device("memory0", OURS, 1500).unwrap();
    let neighbours: Vec<_> = (0..16).map(|last| IpAddr::from(Ipv4Addr::new(10, 0, 0, last))).collect();
    for (at, address) in neighbours.iter().enumerate() {
        router.set_neighbour(0, *address, MacAddress([2, 0, 0, 0, 1, at as u8])).unwrap();
    }
    let mut random = Random::new(7);
    let destinations: Vec<u32> = if case.routes > 1000 {
        for &(address, length, hop) in &table.routes[..case.routes] {
            let hop = Hop::Neighbour(0, neighbours[hop as usize % 16]);
            router.add_route(Prefix::new(address, length).unwrap(), &[hop]).unwrap();
        }
        table.destinations[..case.destinations].to_vec()
    } else {
        for at in 0..case.routes as u32 {
            let hop = Hop::Neighbour(0, neighbours[at as usize % 16]);
            router.add_route(Prefix::new((16 + at) << 24, 8).unwrap(), &[hop]).unwrap();
        }
        (0..case.destinations)
            .map(|_| ((16 + random.below(case.routes) as u32) << 24) + random.below(1 << 24) as u32)
            .collect()
    };
    let counters = Arc::new(Counters::default());
    let input = Memory::new(destinations, case.vector);
    let inputs = vec![Receive::new(0, Box::new(input))];
    let worker = Worker::new(inputs, vec![Box::new(Nowhere)], router.attach(), Arc::clone(&counters));
    (worker, counters, router)
}
