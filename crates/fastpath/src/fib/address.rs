//! Addresses as numbers, and prefixes of them.

use std::fmt::{self, Debug, Display, Formatter};
use std::hash::Hash;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::Error;

/// An address as a number, first bit first: `u32` for IPv4, `u128` for IPv6; with how a table of such
/// addresses is built.
pub trait Address: Copy + Eq + Hash + Ord + Debug + Send + Sync + 'static {
    /// Bits of an address.
    const WIDTH: u8;
    /// Bits that the root of the table is indexed by.
    const ROOT: u8;
    /// Bits that each node below it is indexed by.
    const STRIDE: u8;
    /// How many nodes are plenty.
    const NODES: u32;

    /// The `count` bits from `offset` on, with zeros for those beyond the last one.
    /// `offset` is below [`Self::WIDTH`]; `count` is 1 to 32.
    fn bits(self, offset: u8, count: u8) -> usize;

    /// The first 64 bits, followed by zeros where there are fewer.
    fn head(self) -> u64;

    /// The first `length` bits, and zeros.
    #[must_use]
    fn network(self, length: u8) -> Self;

    /// As people write it.
    ///
    /// # Errors
    /// Those of the formatter.
    fn write(self, formatter: &mut Formatter) -> fmt::Result;
}

/// Nearly all routes to the Internet have at most 24 bits, so that one load finds them. A node holds
/// the 256 addresses below. The root is painted for milliseconds when a table is made: a fuzzer, which makes
/// one for each input, has a small root and more levels of nodes.
impl Address for u32 {
    const WIDTH: u8 = 32;
    const ROOT: u8 = if cfg!(feature = "fuzzing") { 8 } else { 24 };
    const STRIDE: u8 = 8;
    const NODES: u32 = 1 << 18;

    #[inline(always)]
    fn bits(self, offset: u8, count: u8) -> usize {
        ((self << offset) >> (Self::WIDTH - count)) as usize
    }

    #[inline(always)]
    fn head(self) -> u64 {
        u64::from(self) << 32
    }

    fn network(self, length: u8) -> Self {
        self & Self::MAX.checked_shl(u32::from(Self::WIDTH - length)).unwrap_or(0)
    }

    fn write(self, formatter: &mut Formatter) -> fmt::Result {
        Display::fmt(&Ipv4Addr::from(self), formatter)
    }
}

/// Strides of 8 bits look up 1.2 times as fast, for 2.3 times the memory; a root of 24 bits is hardly
/// faster, and a default route fills all of it. Prefixes of 48 bits end at a node's last bit.
impl Address for u128 {
    const WIDTH: u8 = 128;
    const ROOT: u8 = 18;
    const STRIDE: u8 = 6;
    const NODES: u32 = 1 << 21;

    #[inline(always)]
    fn bits(self, offset: u8, count: u8) -> usize {
        ((self << offset) >> (Self::WIDTH - count)) as usize
    }

    #[inline(always)]
    fn head(self) -> u64 {
        (self >> 64) as u64
    }

    fn network(self, length: u8) -> Self {
        self & Self::MAX.checked_shl(u32::from(Self::WIDTH - length)).unwrap_or(0)
    }

    fn write(self, formatter: &mut Formatter) -> fmt::Result {
        Display::fmt(&Ipv6Addr::from(self), formatter)
    }
}

/// All addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix<A> {
    address: A,
    length: u8,
}

impl<A: Address> Prefix<A> {
    /// The addresses whose first `length` bits are those of `address`.
    ///
    /// # Errors
    /// [`Error::Length`] when an address has fewer bits; [`Error::HostBits`] when bits after them are set.
    pub fn new(address: A, length: u8) -> Result<Self, Error> {
        if length > A::WIDTH {
            return Err(Error::Length { length, most: A::WIDTH });
        }
        let prefix = Self { address: address.network(length), length };
        if prefix.address == address {
            Ok(prefix)
        } else {
            let written = Self { address, length }.to_string();
            Err(Error::HostBits { written, network: prefix.to_string() })
        }
    }

    /// The first of its addresses.
    #[must_use]
    pub fn address(self) -> A {
        self.address
    }

    /// How many bits its addresses have in common.
    #[must_use]
    pub fn length(self) -> u8 {
        self.length
    }
}

impl<A: Address> Display for Prefix<A> {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        self.address.write(formatter)?;
        write!(formatter, "/{}", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_has_no_bits_beyond_its_length() {
        let ten = u32::from(Ipv4Addr::new(10, 0, 0, 0));
        assert_eq!(Prefix::new(ten, 8).unwrap().to_string(), "10.0.0.0/8");
        assert_eq!(Prefix::new(0u128, 0).unwrap().to_string(), "::/0");
        let error = Prefix::new(ten + 1, 8).unwrap_err().to_string();
        assert!(error.contains("10.0.0.1/8") && error.contains("10.0.0.0/8"), "{error}");
        assert!(matches!(Prefix::new(ten, 33), Err(Error::Length { length: 33, most: 32 })));
    }

    #[test]
    fn bits_are_counted_from_the_first() {
        assert_eq!(0x0102_0304u32.bits(0, 24), 0x01_0203);
        assert_eq!(0x0102_0304u32.bits(24, 8), 4);
        assert_eq!((0x2001_0db8u128 << 96).bits(24, 8), 0xb8);
        assert_eq!(0x13u128.bits(126, 4), 0b1100);
    }
}
