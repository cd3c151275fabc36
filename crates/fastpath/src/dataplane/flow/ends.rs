//! The hash by which flows are dealt out to workers: a frame enters; the Toeplitz hash of its flow's ends leaves.
//!
//! Of a packet, the end with the lower address enters first, where cards have its source first: so both directions of
//! a flow have the same hash, and with it the same worker. To read both ends from a packet takes about 20 clocks beside
//! the hash's own.

use wire::toeplitz::{INPUT, KEY, Toeplitz};
use wire::{ethernet, vlan};

use super::member::{self, Member};

/// VLAN tags of a frame that are passed over; one with more is no IP packet's.
const TAGS: usize = 2;

/// The hash of flows under one key, the same in both directions.
pub struct Ends {
    toeplitz: Toeplitz,
}

impl Ends {
    /// The hash under `key`.
    #[must_use]
    pub fn new(key: &[u8; KEY]) -> Self {
        Self { toeplitz: Toeplitz::new(key) }
    }

    /// The hash of a frame's flow: of the addresses of both ends and, as far as its packets show them, their ports
    /// (see [`Member`]); the same in both directions, and of errors about it. Frames that are not IP have 0.
    #[must_use]
    pub fn of_frame(&self, frame: &[u8]) -> u32 {
        let Some(header) = ethernet::Header::parse(frame) else { return 0 };
        let (mut carries, mut at) = (header.ethertype, ethernet::LENGTH);
        for _ in 0..TAGS {
            if !matches!(carries, vlan::CUSTOMER | vlan::SERVICE) {
                break;
            }
            let Some(tag) = frame.get(at..).and_then(vlan::Tag::parse) else { return 0 };
            (carries, at) = (tag.ethertype, at + vlan::LENGTH);
        }
        let packet = frame.get(at..).unwrap_or_default();
        match carries {
            ethernet::IPV4 => self.of_ip4(packet),
            ethernet::IPV6 => self.of_ip6(packet),
            _ => 0,
        }
    }

    /// The hash of an IPv4 packet's flow.
    #[must_use]
    #[inline]
    pub fn of_ip4(&self, packet: &[u8]) -> u32 {
        let (ends, ports) = ends(&member::of_ip4(packet));
        let [first, second] = ends.map(|address| (address as u32).to_be_bytes());
        let mut input = [0; 12];
        input[..4].copy_from_slice(&first);
        input[4..8].copy_from_slice(&second);
        input[8..].copy_from_slice(&ports);
        self.toeplitz.hash(&input)
    }

    /// The hash of an IPv6 packet's flow.
    #[must_use]
    #[inline]
    pub fn of_ip6(&self, packet: &[u8]) -> u32 {
        let (ends, ports) = ends(&member::of_ip6(packet));
        let [first, second] = ends.map(u128::to_be_bytes);
        let mut input = [0; INPUT];
        input[..16].copy_from_slice(&first);
        input[16..32].copy_from_slice(&second);
        input[32..].copy_from_slice(&ports);
        self.toeplitz.hash(&input)
    }
}

/// The addresses and ports of both ends of a packet's flow, the lower end first, whichever way the packet goes. Ports
/// that there are none of add nothing to a hash.
#[inline(always)]
fn ends(member: &Member) -> ([u128; 2], [u8; 4]) {
    let (source, destination) =
        ((member.source, member.source_port), (member.destination, member.destination_port));
    let (first, second) = if source <= destination { (source, destination) } else { (destination, source) };
    let ([f0, f1], [s0, s1]) = (first.1.to_be_bytes(), second.1.to_be_bytes());
    ([first.0, second.0], [f0, f1, s0, s1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use wire::ipv4;
    use wire::toeplitz::MICROSOFT;

    /// An address and a port.
    type End = (&'static str, u16);

    /// Two of the specification's flows: destination and source.
    const FLOWS: [(End, End); 2] = [
        (("161.142.100.80", 1766), ("66.9.149.187", 2794)),
        (("3ffe:2501:200:3::1", 1766), ("3ffe:2501:200:1fff::7", 2794)),
    ];

    fn octets(address: IpAddr) -> Vec<u8> {
        match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        }
    }

    /// A frame, with a VLAN tag or without.
    fn frame(source: (IpAddr, u16), destination: (IpAddr, u16), protocol: u8, tagged: bool) -> Vec<u8> {
        let mut frame = vec![0; 12];
        if tagged {
            frame.extend([0x81, 0, 0, 7]);
        }
        match (source.0, destination.0) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let header = ipv4::Header {
                    tos: 0,
                    total_length: 28,
                    identification: 0,
                    ttl: 64,
                    protocol,
                    source,
                    destination,
                };
                frame.extend(ethernet::IPV4.to_be_bytes());
                frame.extend(header.emit());
            }
            _ => {
                frame.extend(ethernet::IPV6.to_be_bytes());
                frame.extend([0x60, 0, 0, 0, 0, 8, protocol, 64]);
                frame.extend(octets(source.0));
                frame.extend(octets(destination.0));
            }
        }
        frame.extend([source.1, destination.1, 8, 0].map(u16::to_be_bytes).as_flattened());
        frame
    }

    /// The hash of what the specification would have of the lower end as the source.
    fn of_lower_first(one: (IpAddr, u16), other: (IpAddr, u16), ports: bool) -> u32 {
        let [first, second] = if one <= other { [one, other] } else { [other, one] };
        let mut input = [octets(first.0), octets(second.0)].concat();
        if ports {
            input.extend([first.1, second.1].map(u16::to_be_bytes).as_flattened());
        }
        Toeplitz::new(&MICROSOFT).hash(&input)
    }

    #[test]
    fn a_frame_has_the_hash_of_its_flow_in_both_directions() {
        let ends = Ends::new(&MICROSOFT);
        for ((to, to_port), (from, from_port)) in FLOWS {
            let from: (IpAddr, u16) = (from.parse().unwrap(), from_port);
            let to: (IpAddr, u16) = (to.parse().unwrap(), to_port);
            for (protocol, tagged, ports) in
                [(ipv4::UDP, false, true), (ipv4::TCP, true, true), (89, true, false)]
            {
                let hash = of_lower_first(from, to, ports);
                assert_eq!(ends.of_frame(&frame(from, to, protocol, tagged)), hash, "{from:?} -> {to:?}");
                assert_eq!(ends.of_frame(&frame(to, from, protocol, tagged)), hash, "{to:?} -> {from:?}");
            }
        }
    }

    #[test]
    fn two_tags_are_passed_over_and_a_frame_of_more_is_not_walked() {
        let ends = Ends::new(&MICROSOFT);
        let (one, other) = (Ipv4Addr::new(66, 9, 149, 187).into(), Ipv4Addr::new(161, 142, 100, 80).into());
        let plain = frame((one, 2794), (other, 1766), ipv4::UDP, false);
        let known = 0x51cc_c178;
        for (tags, hash) in [(0, known), (1, known), (2, known), (3, 0), (10_000, 0)] {
            let tagged = [&plain[..12], &[0x81, 0, 0, 7].repeat(tags)[..], &plain[12..]].concat();
            assert_eq!(ends.of_frame(&tagged), hash, "{tags} tags");
        }
    }

    #[test]
    fn fragments_go_where_their_addresses_say() {
        let hash = Ends::new(&MICROSOFT);
        let ends =
            ((Ipv4Addr::new(66, 9, 149, 187).into(), 2794), (Ipv4Addr::new(161, 142, 100, 80).into(), 1766));
        let mut frame = frame(ends.0, ends.1, ipv4::UDP, false);
        frame[14 + 6] = 0x20;
        assert_eq!(hash.of_frame(&frame), 0x323e_8fc2);
        assert_eq!(hash.of_frame(&[0; 60]), 0);
    }

    proptest! {
        #[test]
        fn both_directions_and_errors_hash_the_same(
            one: [u8; 16], other: [u8; 16], teller: [u8; 16], port: u16, other_port: u16,
        ) {
            let ends = Ends::new(&MICROSOFT);
            let ip = |octets| IpAddr::from(Ipv6Addr::from(octets));
            let (one, other) = ((ip(one), port), (ip(other), other_port));
            let there = frame(one, other, ipv4::TCP, false);
            let hash = ends.of_frame(&there);
            prop_assert_eq!(ends.of_frame(&frame(other, one, ipv4::TCP, false)), hash);
            // A router that tells the sender that the packet was too big quotes it.
            let mut error = frame((ip(teller), 0), one, 58, false);
            error.truncate(54);
            error.extend([2, 0, 0, 0, 0, 0, 5, 0]);
            error.extend(&there[14..]);
            error[18..20].copy_from_slice(&(there.len() as u16 - 14 + 8).to_be_bytes());
            prop_assert_eq!(ends.of_frame(&error), hash);
        }

        #[test]
        fn any_bytes_have_a_hash(frame in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Ends::new(&MICROSOFT).of_frame(&frame);
        }
    }
}
