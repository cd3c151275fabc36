//! ip6-local: IPv6 packets for the router itself or for groups of a link enter. Requests for an echo leave
//! as replies (RFC 4443, section 4.2), to ip6-lookup or back over their link; neighbour discovery goes to
//! its nodes; all else goes to punt.

use wire::{icmp, ipv6, neighbour};

use super::{LIFE, Node};
use crate::dataplane::counters::Reason;
use crate::dataplane::graph::Context;
use crate::dataplane::icmp6;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    for (&index, next) in vector.iter().zip(next) {
        *next = take(context, packets, index).unwrap_or_else(|reason| packets.drop(index, reason));
    }
}

fn take(context: &Context, packets: &mut Packets, index: Index) -> Result<Node, Reason> {
    let number = packets.arrived[index];
    let interface = context.forwarding.interfaces.get(usize::from(number)).ok_or(Reason::InputDown)?;
    let packet = packets.packet(index);
    let header = ipv6::Header::parse(packet).ok_or(Reason::Ip6Truncated)?;
    // What is of a link is of this one (RFC 4007, section 6).
    if header.destination.is_unicast_link_local() && !interface.has(header.destination.into()) {
        return Err(Reason::Ip6LinkLocal);
    }
    if header.next_header != ipv6::ICMP {
        return Ok(Node::Punt);
    }
    let message = icmp6::message(packet, &header)?;
    match *message {
        [neighbour::SOLICITATION, ..] => Ok(Node::Icmp6NeighbourSolicitation),
        [neighbour::ADVERTISEMENT, ..] => Ok(Node::Icmp6NeighbourAdvertisement),
        [icmp::ECHO_REQUEST_V6, 0, ..] if !header.destination.is_multicast() => {
            // Who is known on its link alone is found by its link address.
            if header.source.is_unicast_link_local() {
                icmp6::answer_echo(packets.packet_mut(index), LIFE - 1);
                super::send_back(packets, index, interface)
            } else {
                icmp6::answer_echo(packets.packet_mut(index), LIFE);
                Ok(Node::Ip6Lookup)
            }
        }
        _ => Ok(Node::Punt),
    }
}
