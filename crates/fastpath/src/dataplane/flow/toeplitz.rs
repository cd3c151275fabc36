//! The Toeplitz hash, as network cards spread flows over queues (Microsoft, "RSS hashing functions"): a key
//! and the addresses and ports of a packet enter, 32 bits leave.
//!
//! Bit *i* of the input, if set, adds the 32 bits of the key from its bit *i* on, without carry. What a byte
//! adds stands in a table: for the addresses and ports of IPv4 that takes 12 clocks, where products without carry
//! (`PCLMULQDQ`) took 16. To read both ends of a flow from a packet takes about 20 more.
//!
//! Of a packet, the end with the lower address enters first, where cards have its source first: so both directions of
//! a flow have the same hash, and with it the same worker.

use wire::{ethernet, vlan};

use super::member::{self, Member};

/// Bytes of a key.
pub const KEY: usize = 40;

/// The longest input: two IPv6 addresses and two ports.
pub const INPUT: usize = 36;

/// VLAN tags of a frame that are passed over; one with more is no IP packet's.
const TAGS: usize = 2;

/// The key that Microsoft's specification verifies with, and most cards come with.
pub const MICROSOFT: [u8; KEY] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
    0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
    0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// The hash under one key.
pub struct Toeplitz {
    /// For each byte of input and each of its values what it adds.
    tables: Box<[[u32; 256]]>,
}

impl Toeplitz {
    /// The hash under `key`.
    #[must_use]
    pub fn new(key: &[u8; KEY]) -> Self {
        let sum = |byte: usize, value: usize| {
            let set = (0..8).filter(|at| value << at & 0x80 != 0);
            set.fold(0, |sum, at| sum ^ window(key, byte * 8 + at))
        };
        let table = |byte| std::array::from_fn(|value| sum(byte, value));
        Self { tables: (0..INPUT).map(table).collect() }
    }

    /// The hash of an input; of what exceeds [`INPUT`], nothing.
    #[must_use]
    #[inline]
    pub fn hash(&self, input: &[u8]) -> u32 {
        let added = |table: &[u32; 256], byte: u8| table.get(usize::from(byte)).copied().unwrap_or(0);
        self.tables.iter().zip(input).fold(0, |sum, (table, &byte)| sum ^ added(table, byte))
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
        self.hash(&input)
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
        self.hash(&input)
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

/// The 32 bits of a key from a bit on.
fn window(key: &[u8; KEY], from: usize) -> u32 {
    let bytes = std::array::from_fn(|at| key.get(from / 8 + at).copied().unwrap_or(0));
    ((u64::from_be_bytes(bytes) << (from % 8)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use wire::ipv4;

    /// An address and a port.
    type End = (&'static str, u16);

    /// The verification suite of the specification: destination, source, the hash of the addresses, and the
    /// hash with the ports.
    const SUITE: [(End, End, u32, u32); 8] = [
        (("161.142.100.80", 1766), ("66.9.149.187", 2794), 0x323e_8fc2, 0x51cc_c178),
        (("65.69.140.83", 4739), ("199.92.111.2", 14230), 0xd718_262a, 0xc626_b0ea),
        (("12.22.207.184", 38024), ("24.19.198.95", 12898), 0xd2d0_a5de, 0x5c2b_394a),
        (("209.142.163.6", 2217), ("38.27.205.30", 48228), 0x8298_9176, 0xafc7_327f),
        (("202.188.127.2", 1303), ("153.39.163.191", 44251), 0x5d18_09c5, 0x10e8_28a2),
        (("3ffe:2501:200:3::1", 1766), ("3ffe:2501:200:1fff::7", 2794), 0x2cc1_8cd5, 0x4020_7d3d),
        (("ff02::1", 4739), ("3ffe:501:8::260:97ff:fe40:efab", 14230), 0x0f0c_461c, 0xdde5_1bbf),
        (
            ("fe80::200:f8ff:fe21:67cf", 38024),
            ("3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251),
            0x4b61_e985,
            0x02d1_feef,
        ),
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

    #[test]
    fn the_published_vectors_hold() {
        let toeplitz = Toeplitz::new(&MICROSOFT);
        for ((to, to_port), (from, from_port), addresses, ports) in SUITE {
            let (from, to): (IpAddr, IpAddr) = (from.parse().unwrap(), to.parse().unwrap());
            let mut input = [octets(from), octets(to)].concat();
            assert_eq!(toeplitz.hash(&input), addresses, "{from} -> {to}");
            input.extend([from_port, to_port].map(u16::to_be_bytes).as_flattened());
            assert_eq!(toeplitz.hash(&input), ports, "{from} -> {to}, ports");
        }
    }

    /// The hash of what the specification would have of the lower end as the source.
    fn of_lower_first(toeplitz: &Toeplitz, one: (IpAddr, u16), other: (IpAddr, u16), ports: bool) -> u32 {
        let [first, second] = if one <= other { [one, other] } else { [other, one] };
        let mut input = [octets(first.0), octets(second.0)].concat();
        if ports {
            input.extend([first.1, second.1].map(u16::to_be_bytes).as_flattened());
        }
        toeplitz.hash(&input)
    }

    #[test]
    fn a_frame_has_the_hash_of_its_flow_in_both_directions() {
        let toeplitz = Toeplitz::new(&MICROSOFT);
        for ((to, to_port), (from, from_port), ..) in SUITE {
            let from: (IpAddr, u16) = (from.parse().unwrap(), from_port);
            let to: (IpAddr, u16) = (to.parse().unwrap(), to_port);
            for (protocol, tagged, ports) in
                [(ipv4::UDP, false, true), (ipv4::TCP, true, true), (89, true, false)]
            {
                let hash = of_lower_first(&toeplitz, from, to, ports);
                assert_eq!(toeplitz.of_frame(&frame(from, to, protocol, tagged)), hash, "{from:?} -> {to:?}");
                assert_eq!(toeplitz.of_frame(&frame(to, from, protocol, tagged)), hash, "{to:?} -> {from:?}");
            }
        }
    }

    #[test]
    fn two_tags_are_passed_over_and_a_frame_of_more_is_not_walked() {
        let toeplitz = Toeplitz::new(&MICROSOFT);
        let (one, other) = (Ipv4Addr::new(66, 9, 149, 187).into(), Ipv4Addr::new(161, 142, 100, 80).into());
        let plain = frame((one, 2794), (other, 1766), ipv4::UDP, false);
        let known = 0x51cc_c178;
        for (tags, hash) in [(0, known), (1, known), (2, known), (3, 0), (10_000, 0)] {
            let tagged = [&plain[..12], &[0x81, 0, 0, 7].repeat(tags)[..], &plain[12..]].concat();
            assert_eq!(toeplitz.of_frame(&tagged), hash, "{tags} tags");
        }
    }

    #[test]
    fn fragments_go_where_their_addresses_say() {
        let toeplitz = Toeplitz::new(&MICROSOFT);
        let ends =
            ((Ipv4Addr::new(66, 9, 149, 187).into(), 2794), (Ipv4Addr::new(161, 142, 100, 80).into(), 1766));
        let mut frame = frame(ends.0, ends.1, ipv4::UDP, false);
        frame[14 + 6] = 0x20;
        assert_eq!(toeplitz.of_frame(&frame), 0x323e_8fc2);
        assert_eq!(toeplitz.of_frame(&[0; 60]), 0);
    }

    proptest! {
        /// As the specification has it, bit by bit.
        #[test]
        fn bit_by_bit_it_is_the_same(mut key: [u8; KEY], input in prop::collection::vec(any::<u8>(), 0..INPUT)) {
            let toeplitz = Toeplitz::new(&key);
            let mut hash = 0;
            for at in 0..input.len() * 8 {
                if input[at / 8] << (at % 8) & 0x80 != 0 {
                    hash ^= u32::from_be_bytes([key[0], key[1], key[2], key[3]]);
                }
                for byte in 0..KEY {
                    key[byte] = key[byte] << 1 | key.get(byte + 1).map_or(0, |next| next >> 7);
                }
            }
            prop_assert_eq!(toeplitz.hash(&input), hash);
        }

        #[test]
        fn both_directions_and_errors_hash_the_same(
            one: [u8; 16], other: [u8; 16], teller: [u8; 16], port: u16, other_port: u16,
        ) {
            let toeplitz = Toeplitz::new(&MICROSOFT);
            let ip = |octets| IpAddr::from(Ipv6Addr::from(octets));
            let (one, other) = ((ip(one), port), (ip(other), other_port));
            let there = frame(one, other, ipv4::TCP, false);
            let hash = toeplitz.of_frame(&there);
            prop_assert_eq!(toeplitz.of_frame(&frame(other, one, ipv4::TCP, false)), hash);
            // A router that tells the sender that the packet was too big quotes it.
            let mut error = frame((ip(teller), 0), one, 58, false);
            error.truncate(54);
            error.extend([2, 0, 0, 0, 0, 0, 5, 0]);
            error.extend(&there[14..]);
            error[18..20].copy_from_slice(&(there.len() as u16 - 14 + 8).to_be_bytes());
            prop_assert_eq!(toeplitz.of_frame(&error), hash);
        }

        #[test]
        fn any_bytes_have_a_hash(frame in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Toeplitz::new(&MICROSOFT).of_frame(&frame);
        }
    }
}
