//! The way to the kernel: frames that the router does not handle itself enter, and a kernel's interface of
//! the same addresses takes them, so many of each kind.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use wire::{ethernet, ipv4, ipv6};

use crate::dataplane::bucket::{Bucket, MILLISECOND};

/// Takes frames for the kernel, from all workers.
pub trait Punt: Send + Sync {
    /// Takes a frame as it arrived, from its Ethernet header on and without the interface's VLAN tag; says
    /// whether there was room. Never waits.
    fn punt(&self, frame: &[u8]) -> bool;
}

/// The way to the kernel of an interface.
#[derive(Clone)]
pub struct Kernel(Arc<dyn Punt>);

impl Kernel {
    /// By `punt`.
    #[must_use]
    pub fn new(punt: Arc<dyn Punt>) -> Self {
        Self(punt)
    }

    /// As [`Punt::punt`].
    #[must_use]
    pub fn punt(&self, frame: &[u8]) -> bool {
        self.0.punt(frame)
    }
}

impl PartialEq for Kernel {
    /// Whether it is the same one.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Kernel {}

impl Debug for Kernel {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.write_str("Kernel")
    }
}

/// Kinds of packets for the kernel; each has a limit, so that a flood of one keeps the others from nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// ARP and neighbour discovery.
    Neighbours,
    /// Routing protocols: OSPF, BGP, BFD, RIP, PIM, VRRP, LDP, and groups (IGMP, MLD).
    Routing,
    /// The rest.
    Other,
}

/// IGMP, OSPF, PIM and VRRP (IANA, "Protocol Numbers").
const ROUTING: [u8; 4] = [2, 89, 103, 112];
/// BGP, RIP, RIPng, LDP, and BFD of one hop and of several (IANA, "Port Numbers").
const PORTS: [u16; 7] = [179, 520, 521, 646, 3784, 3785, 4784];
/// Types of ICMPv6: neighbour discovery (RFC 4861) and groups (RFC 3810).
const DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;
const GROUPS: [u8; 4] = [130, 131, 132, 143];

impl Kind {
    /// That of a frame whose network header is at `network`.
    pub fn of(frame: &[u8], network: usize) -> Self {
        let ethertype = network.checked_sub(2).and_then(|at| frame.get(at..)?.first_chunk().copied());
        let packet = frame.get(network..).unwrap_or_default();
        let byte = |at: usize| packet.get(at).copied().unwrap_or(0);
        match ethertype.map(u16::from_be_bytes) {
            Some(ethernet::ARP) => Self::Neighbours,
            Some(ethernet::IPV4) => Self::of_transport(byte(9), packet, usize::from(byte(0) & 0xf) * 4),
            Some(ethernet::IPV6) => match (byte(6), byte(ipv6::LENGTH)) {
                (ICMP6, kind) if DISCOVERY.contains(&kind) => Self::Neighbours,
                (ICMP6, kind) if GROUPS.contains(&kind) => Self::Routing,
                (protocol, _) => Self::of_transport(protocol, packet, ipv6::LENGTH),
            },
            _ => Self::Other,
        }
    }

    fn of_transport(protocol: u8, packet: &[u8], at: usize) -> Self {
        let ports = packet.get(at..).and_then(<[u8]>::first_chunk::<4>);
        let has_port = |[a, b, c, d]: &[u8; 4]| {
            PORTS.contains(&u16::from_be_bytes([*a, *b])) || PORTS.contains(&u16::from_be_bytes([*c, *d]))
        };
        let is_transport = matches!(protocol, ipv4::TCP | ipv4::UDP);
        if ROUTING.contains(&protocol) || (is_transport && ports.is_some_and(has_port)) {
            Self::Routing
        } else {
            Self::Other
        }
    }
}

/// ICMP for IPv6.
const ICMP6: u8 = 58;

/// How many packets of each kind a worker gives to the kernel.
#[derive(Debug)]
pub(crate) struct Limits {
    neighbours: Bucket,
    routing: Bucket,
    other: Bucket,
}

impl Limits {
    /// About 2,000, 20,000 and 10,000 a second at 2 GHz, and as many at once as come in about 200 ms.
    pub fn new(now: u64) -> Self {
        let of = |each_millisecond: u32| {
            Bucket::new(now, each_millisecond * 200, MILLISECOND / u64::from(each_millisecond))
        };
        Self { neighbours: of(2), routing: of(20), other: of(10) }
    }

    /// Whether one more may go at `now`, in clocks; it is held to go then.
    pub fn allow(&mut self, kind: Kind, now: u64) -> bool {
        match kind {
            Kind::Neighbours => self.neighbours.take(now),
            Kind::Routing => self.routing.take(now),
            Kind::Other => self.other.take(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of an EtherType with these bytes of its packet.
    fn frame(ethertype: u16, bytes: &[(usize, u8)]) -> Vec<u8> {
        let mut frame = vec![0; 80];
        frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
        bytes.iter().for_each(|(at, byte)| frame[14 + at] = *byte);
        frame
    }

    #[test]
    fn kinds_are_told_by_protocol_and_port() {
        use ethernet::{ARP, IPV4, IPV6};
        for (kind, ethertype, bytes) in [
            (Kind::Neighbours, ARP, vec![]),
            (Kind::Routing, IPV4, vec![(0, 0x45), (9, 89)]),
            (Kind::Routing, IPV4, vec![(0, 0x45), (9, 6), (23, 179)]),
            (Kind::Routing, IPV4, vec![(0, 0x46), (9, 6), (25, 179)]),
            (Kind::Routing, IPV4, vec![(0, 0x45), (9, 17), (22, 0x0e), (23, 0xc8)]),
            (Kind::Other, IPV4, vec![(0, 0x45), (9, 6), (23, 22)]),
            (Kind::Other, IPV4, vec![(0, 0x45), (9, 1), (23, 179)]),
            (Kind::Neighbours, IPV6, vec![(6, 58), (40, 136)]),
            (Kind::Routing, IPV6, vec![(6, 58), (40, 143)]),
            (Kind::Other, IPV6, vec![(6, 58), (40, 128)]),
            (Kind::Routing, IPV6, vec![(6, 6), (41, 179)]),
            (Kind::Other, 0x88cc, vec![(9, 89)]),
        ] {
            assert_eq!(Kind::of(&frame(ethertype, &bytes), 14), kind, "{ethertype:x} {bytes:?}");
        }
        for length in 0..60 {
            for network in [0, 1, 14, 18, 255] {
                let _ = Kind::of(&frame(IPV6, &[(6, 6)])[..length], network);
            }
        }
    }

    #[test]
    fn a_flood_of_one_kind_leaves_the_others_theirs() {
        let mut limits = Limits::new(7);
        let allowed = |limits: &mut Limits, kind| (0..100_000).filter(|_| limits.allow(kind, 7)).count();
        assert_eq!(allowed(&mut limits, Kind::Other), 2000);
        assert!(!limits.allow(Kind::Other, 7));
        assert_eq!(allowed(&mut limits, Kind::Routing), 4000);
        assert_eq!(allowed(&mut limits, Kind::Neighbours), 400);
        assert!(limits.allow(Kind::Other, 7 + MILLISECOND));
    }
}
