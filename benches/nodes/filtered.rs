//! A router of benchmarks whose interfaces have access lists: lists and a number of flows enter; a worker that forwards
//! leaves.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use fastpath::acl::Filters;
use fastpath::counters::Counters;
use fastpath::fib::Prefix;
use fastpath::node::Node;
use fastpath::router::{Hop, Router};
use fastpath::states::Settings;
use fastpath::vector::VECTOR;
use fastpath::worker::{Receive, Worker};
use stats::random::Random;
use wire::MacAddress;

use crate::memory::{Memory, OURS};
use crate::turn::Nowhere;

/// The nodes in the way of a packet, in their order.
pub const NODES: [Node; 9] = [
    Node::DeviceInput,
    Node::EthernetInput,
    Node::Ip4Input,
    Node::AclInIp4,
    Node::Ip4Lookup,
    Node::AclOutIp4,
    Node::Ip4Rewrite,
    Node::InterfaceOutput,
    Node::Tx,
];
/// Those that VPP's figure for forwarding has: ethernet-input to interface-output.
pub const FORWARDING: std::ops::Range<usize> = 1..8;

/// A router with 8 routes, to which frames for so many destinations come at its first interface, which leave by the second. Both
/// have these lists.
pub fn set_up(filters: [Filters; 2], destinations: usize) -> (Worker, Arc<Counters>, Router) {
    let mut router = Router::new().unwrap();
    router.set_states(Settings { maximum: 1 << 20, ..Settings::default() });
    for name in ["memory0", "memory1"] {
        router.add_device(name, OURS, 1500).unwrap();
    }
    let neighbour = IpAddr::from(Ipv4Addr::new(10, 0, 0, 2));
    router.set_neighbour(1, neighbour, MacAddress([2, 0, 0, 0, 1, 2])).unwrap();
    for at in 0..8 {
        let prefix = Prefix::new((16u32 + at) << 24, 8).unwrap();
        router.add_route(prefix, &[Hop::Neighbour(1, neighbour)]).unwrap();
    }
    for (interface, filters) in (0..).zip(filters) {
        router.set_filters(interface, filters).unwrap();
    }
    let mut random = Random::new(7);
    let all: Vec<u32> = (0..destinations)
        .map(|_| ((16 + random.below(8) as u32) << 24) + random.below(1 << 24) as u32)
        .collect();
    let counters = Arc::new(Counters::default());
    let inputs = vec![Receive::new(0, Box::new(Memory::new(all, VECTOR)))];
    let mut worker = Worker::new(
        inputs,
        vec![Box::new(Nowhere), Box::new(Nowhere)],
        router.attach(),
        Arc::clone(&counters),
    );
    // Each destination has been there once.
    for _ in 0..destinations.div_ceil(VECTOR) {
        worker.turn();
    }
    (worker, counters, router)
}
