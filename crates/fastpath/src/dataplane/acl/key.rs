//! What access lists look at in a packet: its bytes from the IP header on enter; addresses, protocol and ports leave.

use std::ops::RangeInclusive;

use wire::{ipv4, ipv6};

use super::classifier::Packet;

/// The port of packets that show none, behind all ports.
pub const NO_PORT: u32 = 1 << 16;
/// All ports, and none.
pub const ANY_PORT: RangeInclusive<u32> = 0..=NO_PORT;
/// All services of packets that can be read.
pub const ANY_SERVICE: RangeInclusive<u32> = 0..=service(u8::MAX, NO_PORT);
/// The service of packets of which it cannot be read what they carry, behind all others: no rule holds these.
pub const UNREADABLE: u32 = u32::MAX;

/// Where a fragment begins, among the bits beside it (RFC 791, 3.1).
const OFFSET: u16 = 0x1fff;

/// SCTP (RFC 9260).
pub const SCTP: u8 = 132;

/// Headers between that of IPv6 and what it carries, of which one says where the next begins (RFC 8200, section 4;
/// RFC 4302).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
/// The most of them that are read: hosts send each once, and destination options twice (RFC 8200, 4.1).
const HEADERS: usize = 8;

/// A protocol and the port that packets of it go to, in one number; of ICMP their type stands for the port.
#[must_use]
pub const fn service(protocol: u8, port: u32) -> u32 {
    (protocol as u32) << 17 | port
}

/// Whether packets of this protocol have ports.
#[must_use]
pub const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, ipv4::TCP | ipv4::UDP | SCTP)
}

/// Whether packets of this protocol have a type.
#[must_use]
pub const fn has_type(protocol: u8) -> bool {
    matches!(protocol, ipv4::ICMP | ipv6::ICMP)
}

/// An IPv4 packet. Fragments but the first show no ports.
#[derive(Clone, Copy, Debug)]
pub struct Ip4<'a>(pub &'a [u8]);

impl Ip4<'_> {
    /// Its address that begins there.
    #[inline(always)]
    fn address(self, at: usize) -> u32 {
        let bytes = self.0.get(at..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    /// As [`Packet::shown`], of any packet.
    #[inline(never)]
    fn shown_by_any(self) -> (u32, u32) {
        let Some(header) = self.0.first_chunk::<{ ipv4::LENGTH }>() else { return (NO_PORT, UNREADABLE) };
        let begins = usize::from(header[0] & 0xf) * 4;
        let ends = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let is_first = u16::from_be_bytes([header[6], header[7]]) & OFFSET == 0;
        let carried = if is_first { self.0.get(begins..ends).unwrap_or_default() } else { &[] };
        shown(header[9], carried)
    }
}

impl Packet<u32> for Ip4<'_> {
    #[inline(always)]
    fn source(self) -> u32 {
        self.address(12)
    }

    #[inline(always)]
    fn destination(self) -> u32 {
        self.address(16)
    }

    /// Of nearly all packets from one place, after one question.
    #[inline(always)]
    fn shown(self) -> (u32, u32) {
        const LENGTH: usize = ipv4::LENGTH + 4;
        let Some(head) = self.0.first_chunk::<LENGTH>() else { return self.shown_by_any() };
        let [first, _, l0, l1, _, _, f0, f1, _, protocol, .., s0, s1, d0, d1] = *head;
        let is_whole = usize::from(u16::from_be_bytes([l0, l1])) >= LENGTH;
        let is_first = u16::from_be_bytes([f0, f1]) & OFFSET == 0;
        if !((first == ipv4::PLAIN) & is_whole & is_first & has_ports(protocol)) {
            return self.shown_by_any();
        }
        let [source, destination] = [[s0, s1], [d0, d1]].map(|port| u32::from(u16::from_be_bytes(port)));
        (source, service(protocol, destination))
    }

    #[inline(always)]
    fn is_readable(self) -> bool {
        self.0.len() >= ipv4::LENGTH
    }
}

/// An IPv6 packet, which is read as far as its extension headers can be read and are not more than a few. Fragments but
/// the first show no ports; their protocol is what the fragment header says.
#[derive(Clone, Copy, Debug)]
pub struct Ip6<'a>(pub &'a [u8]);

impl Ip6<'_> {
    /// Its address that begins there.
    #[inline(always)]
    fn address(self, at: usize) -> u128 {
        let bytes = self.0.get(at..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| u128::from_be_bytes(*bytes))
    }
}

impl Packet<u128> for Ip6<'_> {
    #[inline(always)]
    fn source(self) -> u128 {
        self.address(8)
    }

    #[inline(always)]
    fn destination(self) -> u128 {
        self.address(24)
    }

    #[inline(always)]
    fn shown(self) -> (u32, u32) {
        carried(self.0).unwrap_or((NO_PORT, UNREADABLE))
    }
}

/// What an IPv6 packet carries.
pub(crate) struct Carries<'a> {
    /// The protocol.
    pub protocol: u8,
    /// Its bytes; none in fragments but the first.
    pub bytes: &'a [u8],
    /// Whether the packet is a fragment.
    pub is_fragment: bool,
}

/// What an IPv6 packet carries behind its extension headers, as far as they can be read; of one that a packet quotes,
/// as much as there is.
#[inline(always)]
pub(crate) fn ip6_carries(packet: &[u8]) -> Option<Carries<'_>> {
    let (header, rest) = packet.split_first_chunk::<{ ipv6::LENGTH }>()?;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let rest = rest.get(..length).unwrap_or(rest);
    match header[6] {
        protocol if has_ports(protocol) || has_type(protocol) => {
            Some(Carries { protocol, bytes: rest, is_fragment: false })
        }
        next => behind_headers(next, rest),
    }
}

/// The source port and the service of what a whole IPv6 packet carries.
#[inline(always)]
fn carried(packet: &[u8]) -> Option<(u32, u32)> {
    let header = packet.first_chunk::<{ ipv6::LENGTH }>()?;
    let length = ipv6::LENGTH + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let carries = ip6_carries(packet).filter(|_| packet.len() >= length)?;
    Some(shown(carries.protocol, carries.bytes))
}

/// As [`ip6_carries`] of a packet that goes on with a header of kind `next`.
#[cold]
fn behind_headers(mut next: u8, mut rest: &[u8]) -> Option<Carries<'_>> {
    let mut is_fragment = false;
    for _ in 0..=HEADERS {
        let length = match next {
            HOP_BY_HOP | ROUTING | DESTINATION => 8 * (1 + usize::from(*rest.get(1)?)),
            AUTHENTICATION => 4 * (2 + usize::from(*rest.get(1)?)),
            FRAGMENT => {
                let [following, _, high, low, ..] = *rest else { return None };
                if u16::from_be_bytes([high, low]) & !7 != 0 {
                    return Some(Carries { protocol: following, bytes: &[], is_fragment: true });
                }
                is_fragment = true;
                8
            }
            protocol => return Some(Carries { protocol, bytes: rest, is_fragment }),
        };
        next = *rest.first()?;
        rest = rest.get(length..)?;
    }
    None
}

/// The source port and the service of a packet of `protocol` that carries these bytes.
#[inline(always)]
fn shown(protocol: u8, carried: &[u8]) -> (u32, u32) {
    let none = (NO_PORT, service(protocol, NO_PORT));
    if has_ports(protocol) {
        let ports = carried.first_chunk();
        ports.map_or(none, |&[s0, s1, d0, d1]| {
            let [source, destination] = [[s0, s1], [d0, d1]].map(|port| u32::from(u16::from_be_bytes(port)));
            (source, service(protocol, destination))
        })
    } else if has_type(protocol) {
        carried.first().map_or(none, |kind| (NO_PORT, service(protocol, u32::from(*kind))))
    } else {
        none
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of IPv4 with a header of so many words, which carries a protocol's bytes at an offset of fragments.
    fn ip4(words: u8, protocol: u8, fragment: u16, carried: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; usize::from(words) * 4];
        packet[0] = 0x40 | words;
        let length = (packet.len() + carried.len()) as u16;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet[9] = protocol;
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(carried);
        packet
    }

    /// One of IPv6 with a chain of headers, each with the kind of the next and its bytes.
    fn ip6(first: u8, rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; ipv6::LENGTH];
        packet[0] = 0x60;
        packet[4..6].copy_from_slice(&(rest.len() as u16).to_be_bytes());
        packet[6] = first;
        packet[23] = 1;
        packet[39] = 2;
        packet.extend(rest);
        packet
    }

    const PORTS: [u8; 4] = [0x12, 0x34, 0, 80];

    #[test]
    fn ports_are_read_behind_options_and_of_the_first_fragment_alone() {
        for (packet, ports) in [
            (ip4(5, ipv4::TCP, 0, &PORTS), (0x1234, service(ipv4::TCP, 80))),
            (ip4(15, ipv4::UDP, 0x4000, &PORTS), (0x1234, service(ipv4::UDP, 80))),
            (ip4(5, ipv4::UDP, 0x2000, &PORTS), (0x1234, service(ipv4::UDP, 80))),
            (ip4(5, ipv4::UDP, 0x2001, &PORTS), (NO_PORT, service(ipv4::UDP, NO_PORT))),
            (ip4(5, ipv4::TCP, 0, &PORTS[..3]), (NO_PORT, service(ipv4::TCP, NO_PORT))),
            (ip4(5, ipv4::ICMP, 0, &[8]), (NO_PORT, service(ipv4::ICMP, 8))),
            (ip4(5, ipv4::ICMP, 1, &[8]), (NO_PORT, service(ipv4::ICMP, NO_PORT))),
            (ip4(5, 89, 0, &PORTS), (NO_PORT, service(89, NO_PORT))),
        ] {
            let read = Ip4(&packet);
            assert_eq!((read.source(), read.destination()), (0x0a00_0001, 0x0a00_0002));
            assert_eq!((read.source_port(), read.service()), ports, "{packet:?}");
            assert_eq!(read.shown_by_any(), ports);
        }
        // What fills a short frame is no port.
        let mut filled = ip4(5, ipv4::TCP, 0, &[]);
        filled.extend(PORTS);
        assert_eq!(Ip4(&filled).source_port(), NO_PORT);
    }

    #[test]
    fn extension_headers_are_walked_and_fragments_but_the_first_show_no_ports() {
        let options = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
        let behind = |headers: &[[u8; 8]]| [headers.as_flattened(), &PORTS].concat();
        let tcp = (0x1234, service(ipv4::TCP, 80));
        let no_ports = |protocol| (NO_PORT, service(protocol, NO_PORT));
        for (packet, ports) in [
            (ip6(ipv4::TCP, &PORTS), tcp),
            (ip6(HOP_BY_HOP, &behind(&[options(DESTINATION), options(ipv4::TCP)])), tcp),
            (ip6(FRAGMENT, &behind(&[[ipv4::TCP, 0, 0, 1, 0, 0, 0, 7]])), tcp),
            (ip6(FRAGMENT, &behind(&[[ipv4::TCP, 0, 0, 8, 0, 0, 0, 7]])), no_ports(ipv4::TCP)),
            (
                ip6(AUTHENTICATION, &behind(&[[ipv4::TCP, 1, 0, 0, 0, 0, 0, 0], [0; 8]])),
                (0, service(ipv4::TCP, 0)),
            ),
            (ip6(ipv6::ICMP, &[128, 0]), (NO_PORT, service(ipv6::ICMP, 128))),
            (ip6(89, &PORTS), no_ports(89)),
            (ip6(59, &[]), no_ports(59)),
        ] {
            let read = Ip6(&packet);
            assert_eq!((read.source(), read.destination()), (1, 2));
            assert_eq!((read.source_port(), read.service()), ports, "{packet:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_of_no_service() {
        let options = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
        let many = |count: usize| {
            let mut headers = vec![options(DESTINATION); count];
            *headers.last_mut().unwrap() = options(ipv4::TCP);
            [headers.as_flattened(), &PORTS].concat()
        };
        assert_eq!(Ip6(&ip6(DESTINATION, &many(HEADERS))).source_port(), 0x1234);
        for packet in [
            ip6(DESTINATION, &many(HEADERS + 1)),
            ip6(DESTINATION, &[ipv4::TCP, 9, 1, 4, 0, 0, 0, 0]),
            ip6(FRAGMENT, &[ipv4::TCP, 0, 0]),
            ip6(ipv4::TCP, &PORTS)[..42].to_vec(),
            Vec::new(),
        ] {
            assert!(!Ip6(&packet).is_readable(), "{packet:?}");
        }
        assert!(!ANY_SERVICE.contains(&UNREADABLE));
        for length in 0..60 {
            let (packet4, packet6) = (ip4(15, 6, 0, &PORTS), ip6(FRAGMENT, &many(9)));
            let (cut4, cut6) = (Ip4(&packet4[..length]), Ip6(&packet6[..length]));
            assert_eq!(cut4.is_readable(), cut4.service() != UNREADABLE);
            let _ = (cut4.source(), cut4.destination(), cut6.source(), cut6.destination(), cut6.service());
        }
    }
}
