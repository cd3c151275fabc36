//! A flow as an interface sees it: the end beyond the interface and the end within the router, whichever way a packet
//! goes.

use std::net::IpAddr;

use wire::{icmp, ipv6};

use crate::dataplane::acl::classifier::Key;
use crate::dataplane::acl::key::{NO_PORT, has_ports, has_type, service};
use crate::dataplane::flow::member::{Asker, Member};

/// A flow: five words, which are equal where flows are. The first two are the address beyond the interface, the next two
/// the one within; the last one has interface, protocol, two bits, and both ports. The bits say whether it is of IPv6, and
/// whether an echo is asked from beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow([u64; 5]);

/// Bits of a byte of the last word.
const IP6: u8 = 1;
/// Of an echo: the end beyond the interface asks.
const ASKED_FROM_BEYOND: u8 = 2;

/// The first packet of a flow, as rules look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// Of IPv4.
    Ip4(Key<u32>),
    /// Of IPv6.
    Ip6(Key<u128>),
}

impl Flow {
    /// None.
    pub const NONE: Self = Self([0; 5]);

    /// That of a packet which leaves by an interface or arrives there.
    #[must_use]
    #[inline(always)]
    pub fn of(member: &Member, interface: u16, leaves: bool) -> Self {
        let (source, destination) =
            ((member.source, member.source_port), (member.destination, member.destination_port));
        let (beyond, within) = if leaves { (destination, source) } else { (source, destination) };
        let asked_from_beyond = match member.asker {
            Asker::None => false,
            Asker::Source => !leaves,
            Asker::Destination => leaves,
        };
        let kind = (u8::from(member.is_ip6) * IP6) | (u8::from(asked_from_beyond) * ASKED_FROM_BEYOND);
        let ([i0, i1], [b0, b1], [w0, w1]) =
            (interface.to_be_bytes(), beyond.1.to_be_bytes(), within.1.to_be_bytes());
        let last = u64::from_be_bytes([i0, i1, member.protocol, kind, b0, b1, w0, w1]);
        let [beyond, within] = [beyond.0, within.0];
        Self([(beyond >> 64) as u64, beyond as u64, (within >> 64) as u64, within as u64, last])
    }

    /// Whether it is the same: as ==, for which the compiler calls a function.
    #[must_use]
    #[inline(always)]
    pub fn is(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
    }

    /// Its words.
    #[must_use]
    #[inline(always)]
    pub fn words(&self) -> &[u64; 5] {
        &self.0
    }

    /// The interface.
    #[must_use]
    pub fn interface(&self) -> u16 {
        let [i0, i1, ..] = self.last();
        u16::from_be_bytes([i0, i1])
    }

    /// The protocol.
    #[must_use]
    #[inline(always)]
    pub fn protocol(&self) -> u8 {
        self.last()[2]
    }

    /// The end beyond the interface: its address, and its port or the identifier of an echo.
    #[must_use]
    pub fn beyond(&self) -> (IpAddr, u16) {
        let ([high, low, ..], [.., p0, p1, _, _]) = (self.0, self.last());
        (self.address(high, low), u16::from_be_bytes([p0, p1]))
    }

    /// As [`Self::beyond`] of the end within the router.
    #[must_use]
    pub fn within(&self) -> (IpAddr, u16) {
        let ([_, _, high, low, _], [.., p0, p1]) = (self.0, self.last());
        (self.address(high, low), u16::from_be_bytes([p0, p1]))
    }

    /// Its first packet, which came from beyond the interface or from within.
    #[must_use]
    pub fn first(&self, from_beyond: bool) -> First {
        let (source, destination) =
            if from_beyond { (self.beyond(), self.within()) } else { (self.within(), self.beyond()) };
        let protocol = self.protocol();
        let (source_port, port) = if has_ports(protocol) {
            (u32::from(source.1), u32::from(destination.1))
        } else if has_type(protocol) {
            let asks = if protocol == ipv6::ICMP { icmp::ECHO_REQUEST_V6 } else { icmp::ECHO_REQUEST };
            (NO_PORT, u32::from(asks))
        } else {
            (NO_PORT, NO_PORT)
        };
        let service = service(protocol, port);
        match (source.0, destination.0) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => First::Ip4(Key {
                source: source.to_bits(),
                destination: destination.to_bits(),
                service,
                source_port,
            }),
            (source, destination) => {
                let [source, destination] = [source, destination].map(|address| match address {
                    IpAddr::V6(address) => address.to_bits(),
                    IpAddr::V4(address) => u128::from(address.to_bits()),
                });
                First::Ip6(Key { source, destination, service, source_port })
            }
        }
    }

    fn address(&self, high: u64, low: u64) -> IpAddr {
        if self.last()[3] & IP6 == 0 {
            IpAddr::V4((low as u32).into())
        } else {
            IpAddr::V6((u128::from(high) << 64 | u128::from(low)).into())
        }
    }

    #[inline(always)]
    fn last(&self) -> [u8; 8] {
        self.0[4].to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use wire::ipv4;

    use super::*;
    use crate::dataplane::flow::member::Part;

    const MEMBER: Member = Member {
        part: Part::Begins,
        is_ip6: false,
        protocol: ipv4::TCP,
        flags: 2,
        asker: Asker::None,
        source: 0x0a00_0001,
        destination: 0x0a00_0002,
        source_port: 1024,
        destination_port: 80,
    };

    /// The packet that answers.
    fn back(member: Member) -> Member {
        let asker = if member.asker == Asker::Source { Asker::Destination } else { member.asker };
        let (source, destination) = (member.destination, member.source);
        let (source_port, destination_port) = (member.destination_port, member.source_port);
        Member { source, destination, source_port, destination_port, asker, ..member }
    }

    #[test]
    fn both_directions_of_a_flow_are_one_and_everything_else_is_another() {
        let echo =
            Member { protocol: 1, asker: Asker::Source, source_port: 7, destination_port: 7, ..MEMBER };
        for member in [MEMBER, Member { is_ip6: true, source: 1 << 127, ..MEMBER }, echo] {
            let flow = Flow::of(&member, 3, true);
            assert_eq!(flow, Flow::of(&back(member), 3, false));
            for other in [
                // As if it came from where it goes to: somebody beyond has made its source up.
                Flow::of(&member, 3, false),
                Flow::of(&back(member), 3, true),
                Flow::of(&member, 4, true),
                Flow::of(&Member { protocol: ipv4::UDP, ..member }, 3, true),
                Flow::of(&Member { source_port: 9, ..member }, 3, true),
                Flow::of(&Member { destination: 0, ..member }, 3, true),
                Flow::of(&Member { is_ip6: !member.is_ip6, ..member }, 3, true),
            ] {
                assert_ne!(flow, other);
            }
        }
        assert_ne!(
            Flow::of(&echo, 3, true),
            Flow::of(&Member { asker: Asker::Destination, ..echo }, 3, true)
        );
    }

    #[test]
    fn its_first_packet_is_what_rules_looked_at() {
        let flow = Flow::of(&MEMBER, 3, false);
        let key =
            Key { source: 0x0a00_0001, destination: 0x0a00_0002, service: service(6, 80), source_port: 1024 };
        assert_eq!((flow.interface(), flow.first(true)), (3, First::Ip4(key)));
        assert_eq!(flow.beyond(), ([10, 0, 0, 1].into(), 1024));
        assert_eq!(flow.within(), ([10, 0, 0, 2].into(), 80));
        let echo = Member { is_ip6: true, protocol: 58, asker: Asker::Source, ..MEMBER };
        let (source, destination) = (0x0a00_0001, 0x0a00_0002);
        let key = Key { source, destination, service: service(58, 128), source_port: NO_PORT };
        assert_eq!(Flow::of(&echo, 3, true).first(false), First::Ip6(key));
    }
}
