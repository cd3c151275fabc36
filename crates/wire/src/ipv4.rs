//! IPv4 without options: fields enter, 20 bytes with their checksum leave (RFC 791).

use std::net::Ipv4Addr;

use crate::checksum::Sum;

/// Bytes of the header.
pub const LENGTH: usize = 20;
/// The first byte of a header without options: version 4, and five words.
pub const PLAIN: u8 = 0x45;

/// The protocol number of ICMP.
pub const ICMP: u8 = 1;
/// The protocol number of TCP.
pub const TCP: u8 = 6;
/// The protocol number of UDP.
pub const UDP: u8 = 17;
/// The protocol number of GRE.
pub const GRE: u8 = 47;
/// The protocol number of ESP.
pub const ESP: u8 = 50;

/// The header. Its checksum is not a field: `emit` writes the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type of service: DSCP and ECN (RFC 2474, RFC 3168).
    pub tos: u8,
    /// Bytes of this header and all that follows it.
    pub total_length: u16,
    /// Identification.
    pub identification: u16,
    /// Time to live.
    pub ttl: u8,
    /// What follows: [`ICMP`], [`TCP`], [`UDP`], [`GRE`] or [`ESP`].
    pub protocol: u8,
    /// Who sends it.
    pub source: Ipv4Addr,
    /// Who receives it.
    pub destination: Ipv4Addr,
}

impl Header {
    /// The bytes of this header: not a fragment, fragmentation allowed.
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[0] = 0x45;
        bytes[1] = self.tos;
        bytes[2..4].copy_from_slice(&self.total_length.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.identification.to_be_bytes());
        bytes[8] = self.ttl;
        bytes[9] = self.protocol;
        bytes[12..16].copy_from_slice(&self.source.octets());
        bytes[16..].copy_from_slice(&self.destination.octets());
        let checksum = Sum::default().bytes(&bytes).checksum();
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// Reads the header at the start of `bytes`; `None` when they are too few, not IPv4, or
    /// the header has options. The checksum is not verified.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<LENGTH>()?;
        if bytes[0] != 0x45 {
            return None;
        }
        let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *bytes;
        Some(Self {
            tos: bytes[1],
            total_length: u16::from_be_bytes([bytes[2], bytes[3]]),
            identification: u16::from_be_bytes([bytes[4], bytes[5]]),
            ttl: bytes[8],
            protocol: bytes[9],
            source: Ipv4Addr::new(s0, s1, s2, s3),
            destination: Ipv4Addr::new(d0, d1, d2, d3),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::Ipv4Header;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn etherparse_reads_what_we_emit(
            tos: u8, total_length in 20u16.., identification: u16, ttl: u8, protocol: u8,
            source: [u8; 4], destination: [u8; 4],
        ) {
            let header = Header {
                tos, total_length, identification, ttl, protocol,
                source: source.into(), destination: destination.into(),
            };
            let bytes = header.emit();
            let (theirs, _) = Ipv4Header::from_slice(&bytes).unwrap();
            prop_assert_eq!((theirs.dscp.value() << 2) | theirs.ecn.value(), tos);
            prop_assert_eq!(theirs.total_len, total_length);
            prop_assert_eq!(theirs.identification, identification);
            prop_assert_eq!(theirs.time_to_live, ttl);
            prop_assert_eq!(theirs.protocol.0, protocol);
            prop_assert_eq!((theirs.source, theirs.destination), (source, destination));
            prop_assert_eq!(theirs.header_checksum, theirs.calc_header_checksum());
            prop_assert!(!theirs.is_fragmenting_payload());
            prop_assert_eq!(Header::parse(&bytes), Some(header));
            prop_assert_eq!(Header::parse(&bytes[..19]), None);
        }
    }
}
