//! ip4-input: packets with an IPv4 header enter; those whose header is as RFC 1812, section 5.2.2, demands
//! go on to ip4-lookup without what the link put behind them, and with a router alert (RFC 2113) to punt, where
//! the kernel has a part in their interface; before that to the interface's access list, if it has one.

use wire::ipv4;

use super::Node;
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::Forwarding;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    for (&index, next) in vector.iter().zip(&mut *next) {
        let packet = packets.packet(index);
        *next = match packet.first_chunk() {
            Some(header) if is_good(header, packet.len()) => Node::Ip4Lookup,
            _ => other(&context.forwarding, packets, index),
        };
    }
    if context.forwarding.is_filtered(context.device) {
        super::acl::divert(&context.forwarding, packets, (vector, next), Node::AclInIp4);
    }
}

/// Where a packet that was checked goes from behind the access list.
#[inline(always)]
pub(super) fn onward(forwarding: &Forwarding, packets: &mut Packets, index: Index) -> Node {
    match packets.packet(index).first() {
        Some(&ipv4::PLAIN) => Node::Ip4Lookup,
        _ => onward_by_options(forwarding, packets, index),
    }
}

#[cold]
fn onward_by_options(forwarding: &Forwarding, packets: &mut Packets, index: Index) -> Node {
    let packet = packets.packet(index);
    let header = packet.get(..packet.first().map_or(0, |first| usize::from(first & 0xf) * 4));
    match next_by_options(header.and_then(|header| header.get(ipv4::LENGTH..)).unwrap_or_default()) {
        Ok(next) => to_kernel_if_any(forwarding, packets, index, next),
        Err(reason) => packets.drop(index, reason),
    }
}

/// A packet that its frame is longer than, as short ones' frames are, or that is not as nearly all are.
#[inline(never)]
fn other(forwarding: &Forwarding, packets: &mut Packets, index: Index) -> Node {
    let packet = packets.packet(index);
    let Some(header) = packet.first_chunk() else { return packets.drop(index, Reason::Ip4Truncated) };
    let length = length(header);
    let next = if is_sound(header) && length <= packet.len() { Ok(Node::Ip4Lookup) } else { check(packet) };
    match next {
        Ok(next) => {
            packets.trim(index, length);
            to_kernel_if_any(forwarding, packets, index, next)
        }
        Err(reason) => packets.drop(index, reason),
    }
}

/// Where a packet goes that options have go to `next`: where nobody looks at those with a router alert, they go on as
/// any other.
fn to_kernel_if_any(forwarding: &Forwarding, packets: &Packets, index: Index, next: Node) -> Node {
    let interface = || forwarding.interfaces.get(usize::from(packets.arrived[index]));
    match next {
        Node::Punt if interface().is_none_or(|interface| interface.kernel.is_none()) => Node::Ip4Lookup,
        next => next,
    }
}

/// Whether a header without options is as it should be, of a packet that ends with its frame, which has so many
/// bytes for it: the whole of [`check`] for nearly all packets, from three loads and without a branch.
#[inline(always)]
fn is_good(header: &[u8; ipv4::LENGTH], available: usize) -> bool {
    is_sound(header) & (length(header) == available)
}

/// The length that a header says its packet has.
#[inline(always)]
fn length(header: &[u8; ipv4::LENGTH]) -> usize {
    words(header).map_or(0, |(first, ..)| usize::from(((first >> 16) as u16).swap_bytes()))
}

/// As [`is_good`] of a packet that need not end with its frame.
#[inline(always)]
fn is_sound(header: &[u8; ipv4::LENGTH]) -> bool {
    let Some((first, second, third)) = words(header) else { return false };
    let (sum, carry) = first.overflowing_add(second);
    let (sum, more) = sum.overflowing_add(u64::from(third) + u64::from(carry));
    // A carry out of 64 bits weighs as much as 1 (RFC 1071, 2B).
    let sum = (sum & 0xffff_ffff) + (sum >> 32) + u64::from(more);
    (first as u8 == ipv4::PLAIN)
        & (fold(sum) == u16::MAX)
        & (length(header) >= ipv4::LENGTH)
        & !is_no_source((second >> 32) as u8)
}

/// A header as three words. There is always one: the compiler knows it, and leaves the question out.
#[inline(always)]
fn words(header: &[u8; ipv4::LENGTH]) -> Option<(u64, u64, u32)> {
    let (first, rest) = header.split_first_chunk()?;
    let (second, rest) = rest.split_first_chunk()?;
    let third = rest.first_chunk()?;
    Some((u64::from_le_bytes(*first), u64::from_le_bytes(*second), u32::from_le_bytes(*third)))
}

/// Where a packet goes, or what is wrong with it.
#[cold]
#[inline(never)]
fn check(packet: &[u8]) -> Result<Node, Reason> {
    let Some(header) = packet.first_chunk::<{ ipv4::LENGTH }>() else { return Err(Reason::Ip4Truncated) };
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let next = check_header(packet, header[0], length)?;
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

/// The same of the header alone, which may have options.
fn check_header(packet: &[u8], first: u8, length: usize) -> Result<Node, Reason> {
    let header_length = usize::from(first & 0xf) * 4;
    if first >> 4 != 4 {
        return Err(Reason::Ip4Version);
    }
    if header_length < ipv4::LENGTH || length < header_length {
        return Err(Reason::Ip4HeaderLength);
    }
    let header = packet.get(..header_length).ok_or(Reason::Ip4Truncated)?;
    let (words, _) = header.as_chunks();
    let correct = words.iter().map(|word| u64::from(u32::from_le_bytes(*word))).sum();
    if fold(correct) != u16::MAX {
        return Err(Reason::Ip4Checksum);
    }
    next_by_options(header.get(ipv4::LENGTH..).unwrap_or_default())
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

/// The ones' complement sum of 16 bits; in whichever byte order the words were (RFC 1071, 2B).
#[inline(always)]
fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}
