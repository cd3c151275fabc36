//! An interface's address and its subnet: which addresses are on it, and which of them nobody has.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{MacAddress, ipv6};

/// An address of an interface, and how many bits of it those on its link have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subnet {
    /// The interface's own address.
    pub address: IpAddr,
    /// Bits of the prefix.
    pub length: u8,
}

impl Subnet {
    /// That of an interface on its link alone, by its link address (RFC 4291, 2.5.6).
    #[must_use]
    pub fn link_local(mac: MacAddress) -> Self {
        Self { address: ipv6::link_local(mac).into(), length: 64 }
    }

    /// Whether an address is on it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(other)) => (ours.to_bits() ^ other.to_bits()) & self.mask4() == 0,
            (IpAddr::V6(ours), IpAddr::V6(other)) => (ours.to_bits() ^ other.to_bits()) & self.mask6() == 0,
            _ => false,
        }
    }

    /// Whether an address is on it, and one that a host may have.
    #[must_use]
    pub fn is_host(&self, address: IpAddr) -> bool {
        self.contains(address) && Some(address) != self.broadcast() && self.zero() != Some(address)
    }

    /// Its first address.
    #[must_use]
    pub fn network(&self) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() & self.mask4()).into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & self.mask6()).into(),
        }
    }

    /// The address of all its stations: of IPv4, with room for it (RFC 919; RFC 3021, 2.2).
    #[must_use]
    pub fn broadcast(&self) -> Option<IpAddr> {
        match self.address {
            IpAddr::V4(address) if self.length < 31 => {
                Some(Ipv4Addr::from_bits(address.to_bits() | !self.mask4()).into())
            }
            _ => None,
        }
    }

    /// The first address, where it is nobody's: once the address of all stations, now of none (RFC 1812,
    /// 4.2.3.1). Of IPv6 it is the routers' (RFC 4291, 2.6.1), and no other host's.
    #[must_use]
    pub fn zero(&self) -> Option<IpAddr> {
        self.broadcast().map(|_| self.network())
    }

    fn mask4(&self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.length.min(32))).unwrap_or(0)
    }

    fn mask6(&self) -> u128 {
        u128::MAX.checked_shl(128 - u32::from(self.length.min(128))).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet(address: &str, length: u8) -> Subnet {
        Subnet { address: address.parse().unwrap(), length }
    }

    #[test]
    fn subnets_end_where_their_length_says() {
        let subnet_24 = subnet("10.1.2.3", 24);
        for (address, on, host) in [
            ("10.1.2.0", true, false),
            ("10.1.2.9", true, true),
            ("10.1.2.255", true, false),
            ("10.1.3.0", false, false),
            ("::", false, false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!((subnet_24.contains(address), subnet_24.is_host(address)), (on, host), "{address}");
        }
        assert!(subnet("10.1.2.3", 0).is_host("99.0.0.1".parse().unwrap()));
        assert!(subnet("2001:db8::1", 64).is_host("2001:db8::ffff:ffff:ffff:ffff".parse().unwrap()));
        assert!(!subnet("2001:db8::1", 64).contains("2001:db8:0:1::".parse().unwrap()));
    }

    #[test]
    fn a_link_of_two_has_no_broadcast() {
        for length in [31, 32] {
            assert_eq!(
                (subnet("10.0.0.1", length).broadcast(), subnet("10.0.0.1", length).zero()),
                (None, None)
            );
        }
        assert!(subnet("10.0.0.1", 31).is_host("10.0.0.0".parse().unwrap()));
    }
}
