//! The Toeplitz hash, as network cards spread flows over queues (Microsoft, "RSS hashing functions"): a key
//! and the addresses and ports of a packet enter, 32 bits leave.
//!
//! Bit *i* of the input, if set, adds the 32 bits of the key from its bit *i* on, without carry. What a byte
//! adds stands in a table: that takes 12 clocks for IPv4, where products without carry (`PCLMULQDQ`) took 16.

use wire::{ethernet, ipv4, ipv6, vlan};

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

/// A key by which both directions of a flow have the same hash, since it repeats after 16 bits (Woo and Park,
/// "Scalable TCP Session Monitoring with Symmetric Receive-side Scaling", 2012).
#[expect(clippy::indexing_slicing, reason = "it is evaluated by the compiler")]
pub const SYMMETRIC: [u8; KEY] = {
    let mut key = [0x5a; KEY];
    let mut at = 0;
    while at < KEY {
        key[at] = 0x6d;
        at += 2;
    }
    key
};

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

    /// The hash of a frame's flow: of the addresses of an IP packet and, where it is TCP or UDP and no
    /// fragment, its ports. Other frames have 0.
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
        let Some(header) = packet.first_chunk::<{ ipv4::LENGTH }>() else { return 0 };
        let whole = u16::from_be_bytes([header[6], header[7]]) & 0x3fff == 0;
        let has_ports = whole && matches!(header[9], ipv4::TCP | ipv4::UDP);
        match packet.get(usize::from(header[0] & 0xf) * 4..).and_then(<[u8]>::first_chunk::<4>) {
            Some(ports) if has_ports => {
                let mut input = [0; 12];
                input[..8].copy_from_slice(&header[12..]);
                input[8..].copy_from_slice(ports);
                self.hash(&input)
            }
            _ => self.hash(&header[12..]),
        }
    }

    /// The hash of an IPv6 packet's flow; ports count where they follow the header.
    #[must_use]
    #[inline]
    pub fn of_ip6(&self, packet: &[u8]) -> u32 {
        let Some(header) = packet.first_chunk::<{ ipv6::LENGTH }>() else { return 0 };
        let has_ports = matches!(header[6], ipv4::TCP | ipv4::UDP);
        let end = if has_ports && packet.len() >= ipv6::LENGTH + 4 { ipv6::LENGTH + 4 } else { ipv6::LENGTH };
        // Addresses and ports stand next to each other.
        self.hash(packet.get(8..end).unwrap_or_default())
    }
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
            for (protocol, tagged, hash) in
                [(ipv4::UDP, false, ports), (ipv4::TCP, true, ports), (ipv4::ICMP, true, addresses)]
            {
                let frame = frame((from, from_port), (to, to_port), protocol, tagged);
                assert_eq!(toeplitz.of_frame(&frame), hash, "{from} -> {to}, a frame");
            }
        }
    }

    #[test]
    fn two_tags_are_passed_over_and_a_frame_of_more_is_not_walked() {
        let toeplitz = Toeplitz::new(&MICROSOFT);
        let (one, other) = (Ipv4Addr::new(66, 9, 149, 187).into(), Ipv4Addr::new(161, 142, 100, 80).into());
        let plain = frame((one, 2794), (other, 1766), ipv4::UDP, false);
        for (tags, hash) in [(0, 0x51cc_c178), (1, 0x51cc_c178), (2, 0x51cc_c178), (3, 0), (10_000, 0)] {
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
        fn both_directions_hash_the_same_under_the_symmetric_key(
            one: [u8; 16], other: [u8; 16], port: u16, other_port: u16,
        ) {
            let toeplitz = Toeplitz::new(&SYMMETRIC);
            let one = (IpAddr::from(Ipv6Addr::from(one)), port);
            let other = (IpAddr::from(Ipv6Addr::from(other)), other_port);
            prop_assert_eq!(
                toeplitz.of_frame(&frame(one, other, ipv4::TCP, false)),
                toeplitz.of_frame(&frame(other, one, ipv4::TCP, false)),
            );
        }

        #[test]
        fn any_bytes_have_a_hash(frame in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Toeplitz::new(&MICROSOFT).of_frame(&frame);
        }
    }
}
