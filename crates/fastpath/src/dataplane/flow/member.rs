//! What a packet is to a flow: a packet enters; both ends of its flow leave, in the order in which it goes from one to
//! the other, and whether it may begin the flow.
//!
//! An error of ICMP belongs to the flow of the packet that it quotes. A fragment, the first one too, belongs to no flow:
//! those behind it show no ports, so that nobody could tell whose they are.

use wire::{icmp, ipv4, ipv6};

use crate::dataplane::acl::key::{has_ports, has_type, ip6_carries};

/// Bytes of an ICMP error before the packet that it quotes.
const QUOTED: usize = 8;
/// The protocol of IPv6 packets that carry nothing (RFC 8200, 4.7).
const NO_NEXT_HEADER: u8 = 59;
/// Where TCP has its flags.
const FLAGS: usize = 13;

/// Flags of TCP (RFC 9293, 3.1).
pub const FIN: u8 = 0x01;
/// As [`FIN`].
pub const SYN: u8 = 0x02;
/// As [`FIN`].
pub const RST: u8 = 0x04;
/// As [`FIN`].
pub const ACK: u8 = 0x10;

/// Which part of its flow a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The flow may begin with it: a SYN of TCP, an echo request, any packet of UDP and of protocols without a
    /// beginning.
    Begins,
    /// A flow that has begun has it: all else of TCP, an echo reply.
    Continues,
    /// An error about a packet of the flow.
    Related,
    /// It belongs to no flow.
    Apart,
}

/// Which end of an echo's flow asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// It is no echo.
    None,
    /// The end that the packet comes from.
    Source,
    /// The end that it goes to.
    Destination,
}

/// A packet as a part of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which part it is.
    pub part: Part,
    /// Whether it is of IPv6.
    pub is_ip6: bool,
    /// What it carries.
    pub protocol: u8,
    /// The flags of TCP; 0 of all others.
    pub flags: u8,
    /// Which end asks.
    pub asker: Asker,
    /// The address that it comes from, of IPv4 in the low 32 bits. Of an error, here and in what follows: as if the flow
    /// had gone on instead, so that the source of the quoted packet is the destination.
    pub source: u128,
    /// The address that it goes to.
    pub destination: u128,
    /// Its port, the identifier of an echo, or 0.
    pub source_port: u16,
    /// As [`Self::source_port`].
    pub destination_port: u16,
}

/// A packet's addresses, its protocol, and what it carries; `None` for a fragment.
type Read<'a> = (Member, Option<&'a [u8]>);

/// That of an IPv4 packet.
#[must_use]
#[inline(always)]
pub fn of_ip4(packet: &[u8]) -> Member {
    match ip4(packet) {
        (member, Some(carried)) => member.carrying(carried, ip4),
        (member, None) => member,
    }
}

/// That of an IPv6 packet.
#[must_use]
#[inline(always)]
pub fn of_ip6(packet: &[u8]) -> Member {
    match ip6(packet) {
        (member, Some(carried)) => member.carrying(carried, ip6),
        (member, None) => member,
    }
}

#[inline(always)]
fn ip4(packet: &[u8]) -> Read<'_> {
    let Some(header) = packet.first_chunk::<{ ipv4::LENGTH }>() else { return (Member::NONE, None) };
    let [first, _, l0, l1, _, _, f0, f1, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = *header;
    let address = |bytes| u128::from(u32::from_be_bytes(bytes));
    let (source, destination) = (address([s0, s1, s2, s3]), address([d0, d1, d2, d3]));
    let member = Member { source, destination, protocol, ..Member::NONE };
    // More fragments, and where this one begins.
    let is_whole = u16::from_be_bytes([f0, f1]) & 0x3fff == 0;
    let end = usize::from(u16::from_be_bytes([l0, l1])).min(packet.len());
    (member, packet.get(usize::from(first & 0xf) * 4..end).filter(|_| is_whole))
}

#[inline(always)]
fn ip6(packet: &[u8]) -> Read<'_> {
    let Some((header, _)) = packet.split_first_chunk::<{ ipv6::LENGTH }>() else {
        return (Member::NONE, None);
    };
    let &[_, s0, s1, d0, d1] = header.as_chunks::<8>().0 else { return (Member::NONE, None) };
    let address =
        |high, low| u128::from(u64::from_be_bytes(high)) << 64 | u128::from(u64::from_be_bytes(low));
    let member =
        Member { is_ip6: true, source: address(s0, s1), destination: address(d0, d1), ..Member::NONE };
    match ip6_carries(packet) {
        Some(carries) => (
            Member { protocol: carries.protocol, ..member },
            Some(carries.bytes).filter(|_| !carries.is_fragment),
        ),
        None => (member, None),
    }
}

impl Member {
    const NONE: Self = Self {
        part: Part::Apart,
        is_ip6: false,
        protocol: 0,
        flags: 0,
        asker: Asker::None,
        source: 0,
        destination: 0,
        source_port: 0,
        destination_port: 0,
    };

    /// This one, which carries these bytes.
    #[inline(always)]
    fn carrying(self, carried: &[u8], read: fn(&[u8]) -> Read<'_>) -> Self {
        let is_error = match self.protocol {
            ipv4::ICMP => matches!(carried.first(), Some(3 | 11 | 12)),
            ipv6::ICMP => matches!(carried.first(), Some(1..=4)),
            _ => false,
        };
        if is_error { self.about(carried, read) } else { self.of(carried) }
    }

    /// This one, which is no error.
    #[inline(always)]
    fn of(mut self, carried: &[u8]) -> Self {
        if has_ports(self.protocol) {
            let Some(&[s0, s1, d0, d1]) = carried.first_chunk() else { return self };
            (self.source_port, self.destination_port) =
                (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
            self.part = Part::Begins;
            if self.protocol == ipv4::TCP {
                self.flags = carried.get(FLAGS).copied().unwrap_or(0);
                if self.flags & (SYN | ACK | RST | FIN) != SYN {
                    self.part = Part::Continues;
                }
            }
        } else if has_type(self.protocol) {
            self.echo(carried);
        } else if self.protocol != NO_NEXT_HEADER {
            self.part = Part::Begins;
        }
        self
    }

    fn echo(&mut self, carried: &[u8]) {
        let Some(&[kind, _, _, _, high, low]) = carried.first_chunk() else { return };
        (self.part, self.asker) = match (self.protocol, kind) {
            (ipv4::ICMP, icmp::ECHO_REQUEST) | (ipv6::ICMP, icmp::ECHO_REQUEST_V6) => {
                (Part::Begins, Asker::Source)
            }
            (ipv4::ICMP, icmp::ECHO_REPLY) | (ipv6::ICMP, icmp::ECHO_REPLY_V6) => {
                (Part::Continues, Asker::Destination)
            }
            _ => return,
        };
        let identifier = u16::from_be_bytes([high, low]);
        (self.source_port, self.destination_port) = (identifier, identifier);
    }

    /// This one, an error, as a part of the flow that it is about: it must go to the sender of the packet that it quotes.
    #[cold]
    fn about(self, carried: &[u8], read: fn(&[u8]) -> Read<'_>) -> Self {
        let (quoted, Some(carried)) = read(carried.get(QUOTED..).unwrap_or_default()) else { return self };
        let quoted = quoted.of(carried);
        if quoted.part == Part::Apart || quoted.source != self.destination {
            return self;
        }
        let asker = match quoted.asker {
            Asker::None => Asker::None,
            Asker::Source => Asker::Destination,
            Asker::Destination => Asker::Source,
        };
        Self {
            part: Part::Related,
            flags: 0,
            asker,
            source: quoted.destination,
            destination: quoted.source,
            source_port: quoted.destination_port,
            destination_port: quoted.source_port,
            ..quoted
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A packet of IPv4 from 10.0.0.1 to 10.0.0.2, or back.
    fn packet4(back: bool, protocol: u8, fragment: u16, carried: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 20 + carried.len() as u8, 0, 0];
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, protocol, 0, 0]);
        let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
        packet.extend(ends[usize::from(back)]);
        packet.extend(ends[usize::from(!back)]);
        packet.extend(carried);
        packet
    }

    /// The same of IPv6, from ::1 to ::2.
    fn packet6(back: bool, next: u8, carried: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, carried.len() as u8, next, 64];
        packet.extend((1 + u128::from(back)).to_be_bytes());
        packet.extend((2 - u128::from(back)).to_be_bytes());
        packet.extend(carried);
        packet
    }

    fn tcp(flags: u8) -> Vec<u8> {
        let mut segment = vec![0x04, 0, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, flags];
        segment.resize(20, 0);
        segment
    }

    #[test]
    fn a_syn_alone_begins_a_connection() {
        for (flags, part) in [
            (SYN, Part::Begins),
            (SYN | 0xc0, Part::Begins),
            (SYN | ACK, Part::Continues),
            (SYN | FIN, Part::Continues),
            (SYN | RST, Part::Continues),
            (ACK, Part::Continues),
            (0, Part::Continues),
        ] {
            for member in [
                of_ip4(&packet4(false, ipv4::TCP, 0x4000, &tcp(flags))),
                of_ip6(&packet6(false, ipv4::TCP, &tcp(flags))),
            ] {
                assert_eq!((member.part, member.flags), (part, flags));
                assert_eq!((member.source_port, member.destination_port), (1024, 80));
            }
        }
    }

    #[test]
    fn fragments_and_what_cannot_be_read_belong_to_no_flow() {
        let udp = [4, 0, 0, 53, 0, 8, 0, 0];
        assert_eq!(of_ip4(&packet4(false, ipv4::UDP, 0, &udp)).part, Part::Begins);
        for packet in [
            packet4(false, ipv4::UDP, 0x2000, &udp),
            packet4(false, ipv4::UDP, 0x0001, &udp),
            packet4(false, ipv4::UDP, 0, &udp[..3]),
            packet4(false, ipv4::ICMP, 0, &[13, 0, 0, 0, 0, 1]),
            Vec::new(),
        ] {
            let member = of_ip4(&packet);
            assert_eq!((member.part, member.source_port), (Part::Apart, 0), "{packet:?}");
        }
        let fragment = [&[ipv4::UDP, 0, 0, 1, 0, 0, 0, 7], &udp[..]].concat();
        assert_eq!(of_ip6(&packet6(false, 44, &fragment)).part, Part::Apart);
        assert_eq!(of_ip6(&packet6(false, NO_NEXT_HEADER, &[])).part, Part::Apart);
        let behind = [&[ipv4::UDP, 0, 1, 4, 0, 0, 0, 0], &udp[..]].concat();
        let member = of_ip6(&packet6(false, 60, &behind));
        assert_eq!((member.part, member.protocol, member.destination_port), (Part::Begins, ipv4::UDP, 53));
    }

    #[test]
    fn an_echo_belongs_to_who_asks() {
        let echo = |kind: u8| [kind, 0, 0, 0, 0x12, 0x34, 0, 1];
        let asks = of_ip4(&packet4(false, ipv4::ICMP, 0, &echo(8)));
        let answers = of_ip4(&packet4(true, ipv4::ICMP, 0, &echo(0)));
        assert_eq!((asks.part, asks.asker, asks.source_port), (Part::Begins, Asker::Source, 0x1234));
        assert_eq!((answers.part, answers.asker), (Part::Continues, Asker::Destination));
        let asks = of_ip6(&packet6(false, ipv6::ICMP, &echo(128)));
        let answers = of_ip6(&packet6(true, ipv6::ICMP, &echo(129)));
        assert_eq!((asks.asker, answers.asker), (Asker::Source, Asker::Destination));
        assert_eq!((asks.source, answers.destination), (1, 1));
    }

    #[test]
    fn an_error_belongs_to_the_flow_that_it_quotes_where_its_receiver_sent_that() {
        let udp = [4, 0, 0, 53, 0, 8, 0, 0];
        let flow = of_ip4(&packet4(true, ipv4::UDP, 0, &[0, 53, 4, 0, 0, 8, 0, 0]));
        let quoted = |header: [u8; 8], packet: &[u8]| [&header[..], packet].concat();
        let unreachable = quoted([3, 3, 0, 0, 0, 0, 0, 0], &packet4(false, ipv4::UDP, 0, &udp));
        let error = of_ip4(&packet4(true, ipv4::ICMP, 0, &unreachable));
        assert_eq!(error, Member { part: Part::Related, ..flow });
        // To somebody else; about a fragment; one that quotes too little; no error.
        let others = of_ip4(&packet4(false, ipv4::ICMP, 0, &unreachable));
        let fragment = quoted([3, 3, 0, 0, 0, 0, 0, 0], &packet4(false, ipv4::UDP, 0x2000, &udp));
        let fragment = of_ip4(&packet4(true, ipv4::ICMP, 0, &fragment));
        let short = of_ip4(&packet4(true, ipv4::ICMP, 0, &unreachable[..20]));
        let redirect = quoted([5, 1, 0, 0, 0, 0, 0, 0], &packet4(false, ipv4::UDP, 0, &udp));
        let redirect = of_ip4(&packet4(true, ipv4::ICMP, 0, &redirect));
        for member in [others, fragment, short, redirect] {
            assert_eq!((member.part, member.protocol), (Part::Apart, ipv4::ICMP), "{member:?}");
        }
        let echo = packet6(false, ipv6::ICMP, &[128, 0, 0, 0, 0, 7, 0, 1]);
        let too_big = quoted([2, 0, 0, 0, 0, 0, 5, 0], &echo);
        let error = of_ip6(&packet6(true, ipv6::ICMP, &too_big));
        assert_eq!((error.part, error.asker, error.source_port), (Part::Related, Asker::Destination, 7));
    }

    proptest! {
        #[test]
        fn any_bytes_are_something_to_a_flow(packet in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = (of_ip4(&packet), of_ip6(&packet));
        }
    }
}
