//! ip4-rewrite: IPv4 packets and their adjacencies enter; they leave with one hop less to live and the link
//! header of their next hop to interface-output, or too long to ip4-frag.

use wire::ipv4;

use super::Node;
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::Adjacency;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

/// The flag of packets that may not be cut, in the high byte of their word (RFC 791, 3.1).
const DO_NOT_FRAGMENT: u8 = 0x40;

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    super::rewrite_each(context, packets, (vector, next), rewrite, turn_away);
    super::tell_forwarded(context, packets, (vector, next), |packet| {
        packet.get(16..20)?.first_chunk().map(|address: &[u8; 4]| (*address).into())
    });
}

/// Where a packet goes that cannot be rewritten: too long ones are cut if they may be.
#[cold]
fn turn_away(packets: &mut Packets, index: Index, reason: Reason) -> Node {
    let may_be_cut = packets.packet(index).get(6).is_some_and(|flags| flags & DO_NOT_FRAGMENT == 0);
    if reason == Reason::Ip4TooBig && may_be_cut {
        return Node::Ip4Frag;
    }
    super::refuse(packets, index, reason)
}

#[inline(always)]
fn rewrite(packets: &mut Packets, index: Index, adjacency: &Adjacency) -> Result<(), Reason> {
    let packet = packets.packet_mut(index);
    let length = packet.len();
    let Some(header) = packet.first_chunk_mut::<{ ipv4::LENGTH }>() else { return Err(Reason::Ip4Truncated) };
    if header[8] <= 1 {
        return Err(Reason::Ip4Expired);
    }
    // What leaves, not what the header says by now: ip4-input cut the one to the other.
    if length > usize::from(adjacency.mtu) {
        return Err(Reason::Ip4TooBig);
    }
    // Time to live, protocol and sum, read and written at once. One less in the high byte of a word is one
    // more in the high byte of the sum (RFC 1141), which is the low one in this order (RFC 1071, 2B).
    let word = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    let (sum, carry) = ((word >> 16) as u16).overflowing_add(1);
    let sum = u32::from(sum + u16::from(carry)) << 16;
    let word = sum | (word & 0xff00) | (word as u8).wrapping_sub(1) as u32;
    header[8..12].copy_from_slice(&word.to_le_bytes());
    super::write_link_header(packets, index, adjacency)
}
