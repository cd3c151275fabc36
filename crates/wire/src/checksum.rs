//! The Internet checksum (RFC 1071): bytes enter, a one's complement sum leaves.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A running one's complement sum of 16-bit big-endian words, not yet folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// Adds one 16-bit word.
    #[must_use]
    pub fn word(self, word: u16) -> Self {
        Self(self.0 + u64::from(word))
    }

    /// Adds `bytes` that begin at an even distance from the start of the checksummed data.
    /// A last odd byte counts as if a zero followed it.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let sum: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
        let last = rest.first().map_or(0, |byte| u64::from(*byte) << 8);
        Self(self.0 + sum + last)
    }

    /// Adds `bytes` that begin at an odd distance from the start of the checksummed data:
    /// their sum, byte-swapped (RFC 1071, section 2 (B)).
    #[must_use]
    pub fn bytes_at_odd(self, bytes: &[u8]) -> Self {
        self.word(Self::default().bytes(bytes).fold().swap_bytes())
    }

    /// Adds `count` bytes of value `byte` that begin at an even distance.
    #[must_use]
    pub fn repeated(self, byte: u8, count: usize) -> Self {
        let pairs = u64::from(u16::from_be_bytes([byte, byte])) * (count as u64 / 2);
        let last = if count % 2 == 1 { u64::from(byte) << 8 } else { 0 };
        Self(self.0 + pairs + last)
    }

    /// The sum in 16 bits, with end-around carries.
    #[must_use]
    pub fn fold(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// What the checksum field holds: the complement of the folded sum.
    #[must_use]
    pub fn checksum(self) -> u16 {
        !self.fold()
    }
}

/// The pseudo-header of TCP and UDP over IPv4 (RFC 768, RFC 9293 section 3.1).
/// `length` is that of the layer-4 header and its payload.
#[must_use]
pub fn pseudo_ipv4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, length: u16) -> Sum {
    Sum::default().bytes(&source.octets()).bytes(&destination.octets()).word(u16::from(protocol)).word(length)
}

/// The pseudo-header of every layer 4 over IPv6 (RFC 8200, section 8.1).
/// `length` is that of the layer-4 header and its payload.
#[must_use]
pub fn pseudo_ipv6(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, length: u16) -> Sum {
    Sum::default()
        .bytes(&source.octets())
        .bytes(&destination.octets())
        .word(length)
        .word(u16::from(next_header))
}

/// The checksum field after `bytes` replaced zeros (RFC 1624, equation 3, with m = 0).
///
/// `odd` says that the bytes begin at an odd distance from the start of the checksummed data.
#[must_use]
pub fn replace_zeros(field: u16, bytes: &[u8], odd: bool) -> u16 {
    let sum = Sum::default().word(!field);
    if odd { sum.bytes_at_odd(bytes) } else { sum.bytes(bytes) }.checksum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let sum = Sum::default().bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.fold(), 0xddf2);
        assert_eq!(sum.checksum(), 0x220d);
    }

    proptest! {
        #[test]
        fn a_sum_may_be_split_anywhere(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..300) {
            let (first, second) = bytes.split_at(at.min(bytes.len()));
            let sum = Sum::default().bytes(first);
            let sum = if first.len() % 2 == 1 { sum.bytes_at_odd(second) } else { sum.bytes(second) };
            prop_assert_eq!(sum.fold(), Sum::default().bytes(&bytes).fold());
        }

        #[test]
        fn repeated_bytes_are_bytes(byte: u8, count in 0usize..10_000) {
            prop_assert_eq!(
                Sum::default().repeated(byte, count).fold(),
                Sum::default().bytes(&vec![byte; count]).fold()
            );
        }

        #[test]
        fn replacing_zeros_is_summing_again(
            mut bytes in prop::collection::vec(any::<u8>(), 3..300),
            new in prop::collection::vec(any::<u8>(), 1..40),
            at in 2usize..300,
        ) {
            // The first word is not zero, as no pseudo-header's is: only then is zero unambiguous.
            bytes[0] |= 1;
            let at = at.min(bytes.len());
            let mut zeroed = bytes.clone();
            zeroed.splice(at..at, vec![0; new.len()]);
            bytes.splice(at..at, new.iter().copied());
            prop_assert_eq!(
                replace_zeros(Sum::default().bytes(&zeroed).checksum(), &new, at % 2 == 1),
                Sum::default().bytes(&bytes).checksum()
            );
        }
    }
}
