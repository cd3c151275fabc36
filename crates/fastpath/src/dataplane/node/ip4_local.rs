//! ip4-local: IPv4 packets for the router itself enter. Echo requests for its addresses leave as replies
//! (RFC 1122, 3.2.2.6; RFC 1812, 4.3.3.6) to ip4-lookup, all else goes to punt.

use std::net::IpAddr;

use wire::checksum::Sum;
use wire::{icmp, ipv4};

use super::{LIFE, Node};
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::Hop;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

/// More fragments, and where this one begins.
const FRAGMENT: u16 = 0x3fff;

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    for (&index, next) in vector.iter().zip(next) {
        *next = receive(context, packets, index).unwrap_or_else(|reason| packets.drop(index, reason));
    }
}

fn receive(context: &Context, packets: &mut Packets, index: Index) -> Result<Node, Reason> {
    let adjacency = packets.adjacency[index] as usize;
    let hop = context.forwarding.adjacencies.get(adjacency).map(|adjacency| adjacency.hop);
    let Some(Hop::Local(number, address)) = hop else { return Err(Reason::OutputDown) };
    if !is_ours(context, number, address) {
        // It is for all stations of a subnet; from elsewhere it does not get there (RFC 2644).
        let arrived = packets.arrived[index];
        return if arrived == number { Ok(Node::Punt) } else { Err(Reason::Ip4DirectedBroadcast) };
    }
    let packet = packets.packet_mut(index);
    if !is_echo_request(packet) {
        return Ok(Node::Punt);
    }
    reply(packet)?;
    Ok(Node::Ip4Lookup)
}

fn is_ours(context: &Context, interface: u16, address: IpAddr) -> bool {
    context.forwarding.interfaces.get(usize::from(interface)).is_some_and(|interface| interface.has(address))
}

/// Whether it is all of an echo request, without options.
fn is_echo_request(packet: &[u8]) -> bool {
    let Some(header) = packet.first_chunk::<{ ipv4::LENGTH }>() else { return false };
    let whole = u16::from_be_bytes([header[6], header[7]]) & FRAGMENT == 0;
    let echo = packet.get(ipv4::LENGTH..ipv4::LENGTH + 2) == Some(&[icmp::ECHO_REQUEST, 0]);
    header[0] == ipv4::PLAIN && header[9] == ipv4::ICMP && whole && echo
}

/// Makes an echo request its reply.
fn reply(packet: &mut [u8]) -> Result<(), Reason> {
    let length = super::ip4_length(packet);
    let message = packet.get_mut(ipv4::LENGTH..length).ok_or(Reason::Ip4Truncated)?;
    if message.len() < icmp::LENGTH {
        return Err(Reason::IcmpTruncated);
    }
    if Sum::default().bytes(message).checksum() != 0 {
        return Err(Reason::IcmpChecksum);
    }
    let [kind, _, high, low, ..] = message else { return Err(Reason::IcmpTruncated) };
    *kind = icmp::ECHO_REPLY;
    // The sum of what is left lost the type, in the high byte of a word (RFC 1624, equation 3).
    let before = u16::from_be_bytes([*high, *low]);
    let type_gone = Sum::default().word(!before).word(!(u16::from(icmp::ECHO_REQUEST) << 8));
    [*high, *low] = type_gone.checksum().to_be_bytes();
    if let Some(header) = packet.first_chunk_mut::<{ ipv4::LENGTH }>() {
        let [.., a, b, c, d, e, f, g, h] = *header;
        header[12..].copy_from_slice(&[e, f, g, h, a, b, c, d]);
        header[8] = LIFE;
        header[10..12].fill(0);
        let checksum = Sum::default().bytes(header).checksum();
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    Ok(())
}
