//! ip4-input: packets with an IPv4 header enter; those whose header is as RFC 1812, section 5.2.2, demands
//! go on to ip4-lookup, and to punt with a router alert (RFC 2113).

use super::Node;
use crate::counters::Reason;
use crate::graph::Context;
use crate::vector::{Index, Packets};
use wire::ipv4;

pub(super) fn process(_: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    for (&index, next) in vector.iter().zip(next) {
        *next = match check(packets.packet(index)) {
            Ok(node) => node,
            Err(reason) => packets.drop(index, reason),
        };
    }
}

/// Version 4, and a header of five words.
const PLAIN: u8 = 0x45;

#[inline(always)]
fn check(packet: &[u8]) -> Result<Node, Reason> {
    let Some(header) = packet.first_chunk::<{ ipv4::LENGTH }>() else { return Err(Reason::Ip4Truncated) };
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let mut next = Node::Ip4Lookup;
    if header[0] == PLAIN {
        if fold(sum(header)) != u16::MAX {
            return Err(Reason::Ip4Checksum);
        }
        if length < ipv4::LENGTH {
            return Err(Reason::Ip4HeaderLength);
        }
    } else {
        next = check_options(packet, header[0], length)?;
    }
    if length > packet.len() {
        return Err(Reason::Ip4Truncated);
    }
    if is_no_source(header[12]) {
        return Err(Reason::Ip4MartianSource);
    }
    Ok(next)
}

/// Whether no host may send from addresses that begin so: this network, loopback, multicast, reserved and
/// broadcast (RFC 1812, 5.3.7).
#[inline(always)]
fn is_no_source(first: u8) -> bool {
    (first == 0) | (first == 127) | (first >= 224)
}

/// As [`check`] of a header with options.
#[cold]
fn check_options(packet: &[u8], first: u8, length: usize) -> Result<Node, Reason> {
    let header_length = usize::from(first & 0xf) * 4;
    if first >> 4 != 4 {
        return Err(Reason::Ip4Version);
    }
    if header_length < ipv4::LENGTH || length < header_length {
        return Err(Reason::Ip4HeaderLength);
    }
    let header = packet.get(..header_length).ok_or(Reason::Ip4Truncated)?;
    let correct = header.chunks_exact(4).map(word).sum();
    if fold(correct) != u16::MAX {
        return Err(Reason::Ip4Checksum);
    }
    next_by_options(&header[ipv4::LENGTH..])
}

/// The end of options, and one that fills (RFC 791, 3.1).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
/// Loose and strict source routes.
const LOOSE: u8 = 131;
const STRICT: u8 = 137;
/// Routers on the way should look at the packet (RFC 2113).
const ROUTER_ALERT: u8 = 148;

/// Where the options of a packet have it go.
fn next_by_options(mut options: &[u8]) -> Result<Node, Reason> {
    while let [kind, rest @ ..] = options {
        match *kind {
            END => break,
            NO_OPERATION => options = rest,
            LOOSE | STRICT => return Err(Reason::Ip4SourceRoute),
            ROUTER_ALERT => return Ok(Node::Punt),
            _ => {
                let length = rest.first().map_or(0, |length| usize::from(*length));
                options = options.get(length.max(2)..).unwrap_or_default();
            }
        }
    }
    Ok(Node::Ip4Lookup)
}

#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

#[inline(always)]
fn sum(header: &[u8; ipv4::LENGTH]) -> u64 {
    word(&header[..4])
        + word(&header[4..8])
        + word(&header[8..12])
        + word(&header[12..16])
        + word(&header[16..])
}

/// The ones' complement sum of 16 bits; in whichever byte order the words were (RFC 1071, 2B).
#[inline(always)]
fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}
