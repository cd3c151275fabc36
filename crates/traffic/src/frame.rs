//! One frame of a stream: its number enters, its headers and its table row leave.

use std::net::{Ipv4Addr, Ipv6Addr};

use wire::checksum::{self, Sum};
use wire::{MacAddress, esp, ethernet, gre, icmp, ipv4, ipv6, pppoe, signature, size, tcp, udp, vlan};

use crate::field::Field;
use crate::stream::{Gre, Network, Stream, Transport};
use crate::table::{Checksum, FrameTable, Row};

/// The Ethernet addresses of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The tester's port that the frames leave by.
    pub source: MacAddress,
    /// The device's port that they go to.
    pub destination: MacAddress,
}

/// Where frames go in each direction: 0 leaves by port 0, 1 by port 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints(pub [Endpoint; 2]);

/// Which directions a table sends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    /// Only port 0 → port 1.
    Forward,
    /// Both at once, frame by frame in turn.
    Both,
}

/// Headers written one after the other.
struct Headers {
    bytes: [u8; FrameTable::MAX_HEADER],
    length: usize,
}

impl Headers {
    /// Appends `header`. What would exceed [`FrameTable::MAX_HEADER`] is dropped; [`Stream::check`] refuses such
    /// streams.
    fn push(&mut self, header: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.length..self.length + header.len()) {
            room.copy_from_slice(header);
            self.length += header.len();
        }
    }
}

/// What layers 3 and 4 share: lengths, and the sums that a checksum is made of.
struct Lengths {
    /// Layer-4 header and payload.
    transport: u16,
    /// Payload before the signature.
    fill: usize,
}

/// Writes the headers of frame number `frame` into `slot`, which holds `fill`, and the
/// signature as far as `slot` reaches; returns the row but for its stream and direction, which are zero.
///
/// The stream must have passed [`Stream::check`].
pub(crate) fn emit(stream: &Stream, frame: u64, endpoint: &Endpoint, fill: u8, slot: &mut [u8]) -> Row {
    let length = (stream.size.at(frame) as u16).saturating_sub(size::FCS);
    let mut headers = Headers { bytes: [0; FrameTable::MAX_HEADER], length: 0 };
    let before_transport = stream.link_length() + stream.network.length();
    let payload = usize::from(length).saturating_sub(stream.header_length());
    let lengths = Lengths {
        transport: length.saturating_sub(before_transport as u16),
        fill: payload.saturating_sub(signature::LENGTH),
    };
    emit_link(stream, frame, endpoint, &lengths, &mut headers);
    let pseudo = emit_network(stream, frame, &lengths, &mut headers);
    let sum = pseudo.repeated(fill, lengths.fill);
    let odd = lengths.fill % 2 == 1;
    let sum = if odd { sum.bytes_at_odd(&signature::MAGIC) } else { sum.bytes(&signature::MAGIC) };
    let checksum = emit_transport(stream, frame, &lengths, sum, &mut headers);

    fill_slot(slot, &headers.bytes[..headers.length], usize::from(length));
    Row {
        length,
        stream: 0,
        direction: 0,
        checksum: checksum.map(|(offset, zero_is_ffff)| Checksum {
            offset: (before_transport + offset) as u16,
            swapped: odd,
            zero_is_ffff,
        }),
    }
}

/// Ethernet, VLAN tags and PPPoE.
fn emit_link(stream: &Stream, frame: u64, endpoint: &Endpoint, lengths: &Lengths, headers: &mut Headers) {
    let address =
        |field: &Option<Field>, default| field.as_ref().map_or(default, |field| mac(field.at(frame)));
    let (network, ppp) = match stream.network {
        Network::V4(_) => (ethernet::IPV4, pppoe::IPV4),
        Network::V6(_) => (ethernet::IPV6, pppoe::IPV6),
    };
    let carried = if stream.pppoe.is_some() { pppoe::SESSION } else { network };
    let ethernet = ethernet::Header {
        destination: address(&stream.ethernet.destination, endpoint.destination),
        source: address(&stream.ethernet.source, endpoint.source),
        ethertype: match stream.vlan.len() {
            0 => carried,
            1 => vlan::CUSTOMER,
            _ => vlan::SERVICE,
        },
    };
    headers.push(&ethernet.emit());
    for (index, tag) in stream.vlan.iter().enumerate() {
        let last = index + 1 == stream.vlan.len();
        let ethertype = if last { carried } else { vlan::CUSTOMER };
        let (id, priority) = (tag.id.at(frame) as u16, tag.priority.at(frame) as u8);
        headers.push(&vlan::Tag { id, priority, ethertype }.emit());
    }
    if let Some(session) = &stream.pppoe {
        let length = stream.network.length() as u16 + lengths.transport;
        headers.push(&pppoe::Header { session: session.at(frame) as u16, length, protocol: ppp }.emit());
    }
}

/// Layer 3; returns the sum of its pseudo-header.
fn emit_network(stream: &Stream, frame: u64, lengths: &Lengths, headers: &mut Headers) -> Sum {
    let protocol = match (&stream.transport, &stream.network) {
        (Transport::Udp(_), _) => ipv4::UDP,
        (Transport::Tcp(_), _) => ipv4::TCP,
        (Transport::Icmp(_), Network::V4(_)) => ipv4::ICMP,
        (Transport::Icmp(_), Network::V6(_)) => ipv6::ICMP,
        (Transport::Gre(_), _) => ipv4::GRE,
        (Transport::Esp(_), _) => ipv4::ESP,
    };
    match &stream.network {
        Network::V4(ip) => {
            let source = Ipv4Addr::from_bits(ip.source.at(frame) as u32);
            let destination = Ipv4Addr::from_bits(ip.destination.at(frame) as u32);
            let header = ipv4::Header {
                tos: ip.tos.at(frame) as u8,
                total_length: ipv4::LENGTH as u16 + lengths.transport,
                identification: ip.identification.at(frame) as u16,
                ttl: ip.ttl.at(frame) as u8,
                protocol,
                source,
                destination,
            };
            headers.push(&header.emit());
            match stream.transport {
                Transport::Icmp(_) => Sum::default(),
                _ => checksum::pseudo_ipv4(source, destination, protocol, lengths.transport),
            }
        }
        Network::V6(ip) => {
            let source = Ipv6Addr::from_bits(ip.source.at(frame));
            let destination = Ipv6Addr::from_bits(ip.destination.at(frame));
            let header = ipv6::Header {
                traffic_class: ip.traffic_class.at(frame) as u8,
                flow_label: ip.flow_label.at(frame) as u32,
                payload_length: lengths.transport,
                next_header: protocol,
                hop_limit: ip.hop_limit.at(frame) as u8,
                source,
                destination,
            };
            headers.push(&header.emit());
            checksum::pseudo_ipv6(source, destination, protocol, lengths.transport)
        }
    }
}

/// Layer 4, with `sum` over all that its checksum covers beside it. Returns where the checksum
/// stands in this header and whether zero is sent as 0xffff, if there is one.
fn emit_transport(
    stream: &Stream,
    frame: u64,
    lengths: &Lengths,
    sum: Sum,
    headers: &mut Headers,
) -> Option<(usize, bool)> {
    match &stream.transport {
        Transport::Udp(udp) => {
            let mut header = udp::Header {
                source: udp.source.at(frame) as u16,
                destination: udp.destination.at(frame) as u16,
                length: lengths.transport,
                checksum: 0,
            };
            if udp.checksum {
                // Zero would mean that there is no checksum (RFC 768).
                header.checksum = match sum.bytes(&header.emit()).checksum() {
                    0 => 0xffff,
                    checksum => checksum,
                };
            }
            headers.push(&header.emit());
            udp.checksum.then_some((udp::CHECKSUM_OFFSET, true))
        }
        Transport::Tcp(tcp) => {
            let mut header = tcp::Header {
                source: tcp.source.at(frame) as u16,
                destination: tcp.destination.at(frame) as u16,
                sequence: tcp.sequence.at(frame) as u32,
                acknowledgment: tcp.acknowledgment.at(frame) as u32,
                flags: tcp.flags,
                window: tcp.window.at(frame) as u16,
                checksum: 0,
            };
            header.checksum = sum.bytes(&header.emit()).checksum();
            headers.push(&header.emit());
            Some((tcp::CHECKSUM_OFFSET, false))
        }
        Transport::Icmp(icmp) => {
            let kind = match stream.network {
                Network::V4(_) => icmp::ECHO_REQUEST,
                Network::V6(_) => icmp::ECHO_REQUEST_V6,
            };
            let (identifier, sequence) = (icmp.identifier.at(frame) as u16, icmp.sequence.at(frame) as u16);
            let mut header = icmp::Header { kind, checksum: 0, identifier, sequence };
            header.checksum = sum.bytes(&header.emit()).checksum();
            headers.push(&header.emit());
            Some((icmp::CHECKSUM_OFFSET, false))
        }
        Transport::Gre(inner) => {
            emit_tunnel(inner, frame, lengths, headers);
            None
        }
        Transport::Esp(esp) => {
            let (spi, sequence) = (esp.spi.at(frame) as u32, esp.sequence.at(frame) as u32);
            headers.push(&esp::Header { spi, sequence }.emit());
            None
        }
    }
}

/// GRE, and the headers of the packet in it.
fn emit_tunnel(inner: &Gre, frame: u64, lengths: &Lengths, headers: &mut Headers) {
    let total_length = lengths.transport.saturating_sub(gre::LENGTH as u16);
    let ip = ipv4::Header {
        tos: 0,
        total_length,
        identification: 1,
        ttl: 64,
        protocol: ipv4::UDP,
        source: Ipv4Addr::from_bits(inner.source.at(frame) as u32),
        destination: Ipv4Addr::from_bits(inner.destination.at(frame) as u32),
    };
    let length = total_length.saturating_sub(ipv4::LENGTH as u16);
    let udp = udp::Header { source: 1025, destination: 12, length, checksum: 0 };
    headers.push(&gre::Header { protocol: ethernet::IPV4 }.emit());
    headers.push(&ip.emit());
    headers.push(&udp.emit());
}

/// Puts headers, and what of the signature reaches into it, into `slot`.
pub(crate) fn fill_slot(slot: &mut [u8], headers: &[u8], length: usize) {
    for (to, from) in slot.iter_mut().zip(headers) {
        *to = *from;
    }
    for (at, to) in slot.iter_mut().skip(length.saturating_sub(signature::LENGTH)).enumerate() {
        *to = signature::MAGIC.get(at).copied().unwrap_or(0);
    }
}

/// A MAC address from the lowest 48 bits.
fn mac(value: u128) -> MacAddress {
    let [.., a, b, c, d, e, f] = value.to_be_bytes();
    MacAddress([a, b, c, d, e, f])
}
