//! ip6-lookup: packets with an IPv6 header enter; they leave with the adjacency that the longest route to
//! their destination leads to.

use super::Node;
use crate::dataplane::counters::Reason;
use crate::dataplane::flow;
use crate::dataplane::forwarding::Adjacency;
use crate::dataplane::graph::{Context, Scratch};
use crate::dataplane::vector::{Index, Packets};
use crate::fib::NextHop;

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    let Scratch { ip6: destinations, hops, .. } = &mut *context.scratch;
    for (&index, destination) in vector.iter().zip(&mut *destinations) {
        let address = packets.packet(index).get(24..40).and_then(|bytes| bytes.first_chunk());
        *destination = address.map_or(0, |bytes| u128::from_be_bytes(*bytes));
    }
    let flow = |at: usize| vector.get(at).map_or(0, |&index| flow::of_ip6(packets.packet(index)));
    let destinations = destinations.get(..vector.len()).unwrap_or_default();
    context.ip6.pass().lookup_bulk(destinations, flow, hops);
    // A route that was just found may lead to an adjacency that was just made.
    context.update();
    let adjacencies = &context.forwarding.adjacencies;
    for ((&index, next), &hop) in vector.iter().zip(next).zip(&context.scratch.hops) {
        *next = match adjacencies.get(hop.index() as usize) {
            Some(adjacency) if hop != NextHop::NONE && adjacency.next != Node::ErrorDrop => {
                packets.adjacency[index] = hop.index();
                adjacency.next
            }
            adjacency => go_nowhere(packets, index, hop, adjacency),
        };
    }
}

/// Drops a packet that no route leads on: [`NextHop::NONE`] has the adjacency of IPv4.
#[cold]
fn go_nowhere(packets: &mut Packets, index: Index, hop: NextHop, adjacency: Option<&Adjacency>) -> Node {
    let found = adjacency.filter(|_| hop != NextHop::NONE);
    super::refuse_ip6(packets, index, found.map_or(Reason::Ip6NoRoute, |adjacency| adjacency.reason))
}
