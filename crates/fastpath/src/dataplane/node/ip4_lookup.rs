//! ip4-lookup: packets with an IPv4 header enter; they leave with the adjacency that the longest route to
//! their destination leads to, to the node that this says.

use super::Node;
use crate::dataplane::flow;
use crate::dataplane::forwarding::Adjacency;
use crate::dataplane::graph::{Context, Scratch};
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    let Scratch { ip4: destinations, hops, .. } = &mut *context.scratch;
    for (&index, destination) in vector.iter().zip(&mut *destinations) {
        let address = packets.packet(index).get(16..20).and_then(|bytes| bytes.first_chunk());
        *destination = address.map_or(0, |bytes| u32::from_be_bytes(*bytes));
    }
    let flow = |at: usize| vector.get(at).map_or(0, |&index| flow::of_ip4(packets.packet(index)));
    let destinations = destinations.get(..vector.len()).unwrap_or_default();
    context.ip4.pass().lookup_bulk(destinations, flow, hops);
    // A route that was just found may lead to an adjacency that was just made.
    context.update();
    let adjacencies = &context.forwarding.adjacencies;
    for ((&index, next), hop) in vector.iter().zip(next).zip(&context.scratch.hops) {
        let hop = hop.index();
        *next = match adjacencies.get(hop as usize) {
            Some(Adjacency { next: Node::ErrorDrop, reason, .. }) => super::refuse(packets, index, *reason),
            Some(adjacency) => {
                packets.adjacency[index] = hop;
                adjacency.next
            }
            None => super::refuse(packets, index, crate::dataplane::counters::Reason::Ip4NoRoute),
        };
    }
}
