//! Ethernet II: two addresses and a type enter, 14 bytes leave (IEEE 802.3, section 3.2).

use crate::MacAddress;

/// Bytes of the header.
pub const LENGTH: usize = 14;

/// ARP follows.
pub const ARP: u16 = 0x0806;
/// IPv4 follows.
pub const IPV4: u16 = 0x0800;
/// IPv6 follows.
pub const IPV6: u16 = 0x86dd;

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Who receives the frame.
    pub destination: MacAddress,
    /// Who sends it.
    pub source: MacAddress,
    /// What follows: [`IPV4`], [`IPV6`], or a tag of [`crate::vlan`].
    pub ethertype: u16,
}

impl Header {
    /// The bytes of this header.
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..6].copy_from_slice(&self.destination.0);
        bytes[6..12].copy_from_slice(&self.source.0);
        bytes[12..].copy_from_slice(&self.ethertype.to_be_bytes());
        bytes
    }

    /// Reads the header at the start of `bytes`; `None` when they are too few.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, d, e, f, g, h, i, j, k, l, high, low] = *bytes.first_chunk::<LENGTH>()?;
        Some(Self {
            destination: MacAddress([a, b, c, d, e, f]),
            source: MacAddress([g, h, i, j, k, l]),
            ethertype: u16::from_be_bytes([high, low]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{EtherType, Ethernet2Header};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn etherparse_reads_what_we_emit(destination: [u8; 6], source: [u8; 6], ethertype: u16) {
            let header = Header { destination: MacAddress(destination), source: MacAddress(source), ethertype };
            let (theirs, rest) = Ethernet2Header::from_slice(&header.emit()).map(|(h, r)| (h, r.len())).unwrap();
            prop_assert_eq!(theirs, Ethernet2Header { destination, source, ether_type: EtherType(ethertype) });
            prop_assert_eq!(rest, 0);
            prop_assert_eq!(Header::parse(&header.emit()), Some(header));
            prop_assert_eq!(Header::parse(&header.emit()[1..]), None);
        }
    }
}
