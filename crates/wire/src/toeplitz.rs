//! The Toeplitz hash, as network cards spread flows over queues (Microsoft, "RSS hashing functions"): a key
//! and the addresses and ports of a packet enter, 32 bits leave.
//!
//! Bit *i* of the input, if set, adds the 32 bits of the key from its bit *i* on, without carry. What a byte
//! adds stands in a table: for the addresses and ports of IPv4 that takes 12 clocks, where products without carry
//! (`PCLMULQDQ`) took 16.

/// Bytes of a key.
pub const KEY: usize = 40;

/// The longest input: two IPv6 addresses and two ports.
pub const INPUT: usize = 36;

/// Entries of the indirection table, as cards have it: the low bits of a hash choose one, which names a queue.
pub const INDIRECTION: usize = 128;

/// The key that Microsoft's specification verifies with, and most cards come with.
pub const MICROSOFT: [u8; KEY] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
    0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
    0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// The key with which both directions of a flow have the same hash, since it repeats after 16 bits (Woo and Park, 2012).
/// Its hashes have 16 bits of their own only.
pub const SYMMETRIC: [u8; KEY] = {
    let mut key = [0x6d; KEY];
    let mut at = 1;
    while at < KEY {
        key[at] = 0x5a;
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
}

/// The 32 bits of a key from a bit on.
fn window(key: &[u8; KEY], from: usize) -> u32 {
    let bytes = std::array::from_fn(|at| key.get(from / 8 + at).copied().unwrap_or(0));
    ((u64::from_be_bytes(bytes) << (from % 8)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use proptest::prelude::*;

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
        fn under_the_symmetric_key_both_directions_hash_the_same(one: [u8; 4], other: [u8; 4], ports: [u16; 2]) {
            let toeplitz = Toeplitz::new(&SYMMETRIC);
            let input = |ends: [[u8; 4]; 2], ports: [u16; 2]| {
                toeplitz.hash(&[ends.as_flattened(), ports.map(u16::to_be_bytes).as_flattened()].concat())
            };
            prop_assert_eq!(input([one, other], ports), input([other, one], [ports[1], ports[0]]));
        }
    }
}
