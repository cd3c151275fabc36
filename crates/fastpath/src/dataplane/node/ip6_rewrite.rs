//! ip6-rewrite: IPv6 packets and their adjacencies enter; they leave with one hop less to go (RFC 8200,
//! section 3) and the link header of their next hop.

use wire::ipv6;

use super::Node;
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::Adjacency;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    super::rewrite_each(context, packets, (vector, next), rewrite, super::refuse_ip6);
    super::tell_forwarded(context, packets, (vector, next), |packet| {
        packet.get(24..40)?.first_chunk().map(|address: &[u8; 16]| (*address).into())
    });
}

#[inline(always)]
fn rewrite(packets: &mut Packets, index: Index, adjacency: &Adjacency) -> Result<(), Reason> {
    let packet = packets.packet_mut(index);
    let length = packet.len();
    let Some(header) = packet.first_chunk_mut::<{ ipv6::LENGTH }>() else { return Err(Reason::Ip6Truncated) };
    if is_of_its_link(header[8], header[9]) {
        return Err(Reason::Ip6BeyondScope);
    }
    if header[7] <= 1 {
        return Err(Reason::Ip6Expired);
    }
    // What leaves, not what the header says by now: ip6-input cut the one to the other.
    if length > usize::from(adjacency.mtu) {
        return Err(Reason::Ip6TooBig);
    }
    header[7] -= 1;
    super::write_link_header(packets, index, adjacency)
}

/// Whether an address that begins so is known on its link alone (RFC 4291, 2.5.6).
#[inline(always)]
fn is_of_its_link(first: u8, second: u8) -> bool {
    (first == 0xfe) & (second & 0xc0 == 0x80)
}
