//! ip6-input: packets with an IPv6 header enter; those whose header is as RFC 8200, section 3, demands, and
//! whose source address may be one (RFC 4291, section 2), go on to ip6-lookup without what the link put behind
//! them; before that to the interface's access list, if it has one.
//!
//! The hop limit is not looked at here: the destination of a packet takes it whatever that is (RFC 8200, 3).

use wire::ipv6;

use super::Node;
use crate::dataplane::counters::Reason;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    for (&index, next) in vector.iter().zip(&mut *next) {
        let packet = packets.packet(index);
        let available = packet.len();
        *next = match check(packet) {
            Ok(length) => {
                if length < available {
                    packets.trim(index, length);
                }
                Node::Ip6Lookup
            }
            Err(reason) => packets.drop(index, reason),
        };
    }
    if context.forwarding.is_filtered(context.device) {
        super::acl::divert(&context.forwarding, packets, (vector, next), Node::AclInIp6);
    }
}

/// How all multicast addresses begin.
const MULTICAST: u8 = 0xff;

/// The length of a packet with a sound header.
#[inline(always)]
fn check(packet: &[u8]) -> Result<usize, Reason> {
    let Some(header) = packet.first_chunk::<{ ipv6::LENGTH }>() else { return Err(Reason::Ip6Truncated) };
    if header[0] >> 4 != 6 {
        return Err(Reason::Ip6Version);
    }
    let length = ipv6::LENGTH + usize::from(u16::from_be_bytes([header[4], header[5]]));
    if length > packet.len() {
        return Err(Reason::Ip6Truncated);
    }
    // All unicast addresses that are special begin with zeros.
    if header[8] == MULTICAST || header[8..16] == [0; 8] {
        check_source(header)?;
    }
    Ok(length)
}

/// As [`check`] of a source address that may be none.
#[cold]
fn check_source(header: &[u8; ipv6::LENGTH]) -> Result<(), Reason> {
    let mut source = [0; 16];
    source.copy_from_slice(&header[8..24]);
    let martian = match u128::from_be_bytes(source) {
        // Who has no address yet asks a group about the one it wants (RFC 4862, 5.4.2).
        0 => header[24] != MULTICAST,
        // Loopback (RFC 4291, 2.5.3).
        1 => true,
        // IPv4 addresses within a host (RFC 4291, 2.5.5.2; RFC 6890, table 20).
        address => address >> 32 == 0xffff || source[0] == MULTICAST,
    };
    if martian { Err(Reason::Ip6MartianSource) } else { Ok(()) }
}
