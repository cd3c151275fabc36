//! ip4-icmp-error: IPv4 packets that go no further enter, with the reason, and are dropped. What their sender
//! is to know of it leaves to ip4-lookup as a packet of the router's own (RFC 792; RFC 1812, 4.3.2 and 5.2.7).

use std::net::{IpAddr, Ipv4Addr};

use wire::checksum::Sum;
use wire::{ethernet, ipv4};

use super::{LIFE, Node};
use crate::clock::clocks;
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::Interface;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

/// The longest error, with its header (RFC 1812, 4.3.2.3).
const MOST: usize = 576;
/// Bytes of an error before what it quotes.
const HEADER: usize = 8;
/// Errors have precedence over what other packets carry: internetwork control (RFC 1812, 4.3.2.5).
const TOS: u8 = 6 << 5;

/// Types of errors.
const UNREACHABLE: u8 = 3;
const EXCEEDED: u8 = 11;

/// The type and code of the error that tells of a reason, if one does.
pub(super) fn message(reason: Reason) -> Option<(u8, u8)> {
    match reason {
        Reason::Ip4NoRoute => Some((UNREACHABLE, 0)),
        Reason::Ip4Unreachable | Reason::Ip4NoAnswer => Some((UNREACHABLE, 1)),
        Reason::Ip4TooBig => Some((UNREACHABLE, 4)),
        Reason::Ip4Prohibited => Some((UNREACHABLE, 13)),
        Reason::Ip4Expired => Some((EXCEEDED, 0)),
        _ => None,
    }
}

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    let now = clocks();
    for &index in vector {
        tell(context, packets, index, now);
    }
    next.fill(Node::ErrorDrop);
}

/// Makes the error about a packet, if there may be one. `None` says that there may not.
fn tell(context: &mut Context, packets: &mut Packets, index: Index, now: u64) -> Option<()> {
    let (kind, code) = message(packets.reason[index])?;
    let arrived = packets.arrived[index];
    let interface = context.forwarding.interfaces.get(usize::from(arrived))?;
    let packet = packets.packet(index);
    let receiver = receiver(interface, packets.bytes(index), packet)?;
    let sender = interface.sender(receiver.into()).or_else(|| any_address(context))?;
    let IpAddr::V4(sender) = sender else { return None };
    let adjacency = context.forwarding.adjacencies.get(packets.adjacency[index] as usize);
    // The MTU of the next hop (RFC 1191, section 4).
    let mtu = adjacency.filter(|_| packets.reason[index] == Reason::Ip4TooBig).map_or(0, |found| found.mtu);
    let length = super::ip4_length(packet);
    let quoted = packet.get(..length.min(MOST - ipv4::LENGTH - HEADER)).unwrap_or(packet);
    // Before it is built, as that is the most of the work.
    if !context.errors.allow(arrived, packets.reason[index] == Reason::Ip4TooBig, now) {
        return None;
    }
    let error = error(sender, receiver, [kind, code], mtu, quoted);
    let made = context.make(packets, ethernet::LENGTH + error.len(), arrived, Node::Ip4Lookup)?;
    packets.set_network(made, ethernet::LENGTH as u8);
    packets.packet_mut(made).copy_from_slice(&error);
    Some(())
}

/// Who is told of a packet. Nobody is of those that were for several hosts or came from no single one, of
/// fragments but the first, and of errors (RFC 1122, 3.2.2; RFC 1812, 4.3.2.7).
fn receiver(interface: &Interface, frame: &[u8], packet: &[u8]) -> Option<Ipv4Addr> {
    let header = packet.first_chunk::<{ ipv4::LENGTH }>()?;
    let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *header;
    let (source, destination) = (Ipv4Addr::new(s0, s1, s2, s3), Ipv4Addr::new(d0, d1, d2, d3));
    let to_group = frame.first()? & 1 == 1 || destination.is_multicast() || destination.is_broadcast();
    let subnet = interface.subnet_of(source.into());
    let no_host = source.is_unspecified()
        || source.is_loopback()
        || source.octets()[0] >= 224
        || subnet.is_some_and(|subnet| !subnet.is_host(source.into()));
    let later_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x1fff != 0;
    let length = usize::from(header[0] & 0xf) * 4;
    let an_error = header[9] == ipv4::ICMP && packet.get(length).is_none_or(|kind| !is_query(*kind));
    (!to_group && !no_host && !later_fragment && !an_error).then_some(source)
}

/// Whether an ICMP message of this type asks or answers: echo, router discovery, time stamp, information and
/// address mask (RFC 1122, 3.2.2).
fn is_query(kind: u8) -> bool {
    matches!(kind, 0 | 8..=10 | 13..=18)
}

/// An address of the router, for interfaces that have none (RFC 1812, 4.3.2.4).
fn any_address(context: &Context) -> Option<IpAddr> {
    let mut addresses = context.forwarding.interfaces.iter().flat_map(|interface| &interface.addresses);
    addresses.find(|subnet| subnet.address.is_ipv4()).map(|subnet| subnet.address)
}

/// The packet of an error.
fn error(sender: Ipv4Addr, receiver: Ipv4Addr, kind: [u8; 2], mtu: u16, quoted: &[u8]) -> Vec<u8> {
    let mut message = [0; HEADER];
    message[..2].copy_from_slice(&kind);
    message[6..].copy_from_slice(&mtu.to_be_bytes());
    let checksum = Sum::default().bytes(&message).bytes(quoted).checksum();
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    let header = ipv4::Header {
        tos: TOS,
        total_length: (ipv4::LENGTH + HEADER + quoted.len()) as u16,
        identification: 0,
        ttl: LIFE,
        protocol: ipv4::ICMP,
        source: sender,
        destination: receiver,
    };
    [&header.emit(), &message[..], quoted].concat()
}
