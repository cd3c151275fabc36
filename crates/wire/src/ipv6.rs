//! IPv6 without extension headers: fields enter, 40 bytes leave (RFC 8200).

use std::net::Ipv6Addr;

/// Bytes of the header.
pub const LENGTH: usize = 40;

/// The next-header number of ICMPv6; TCP and UDP have those of [`crate::ipv4`].
pub const ICMP: u8 = 58;
/// The largest flow label: 20 bits.
pub const MAX_FLOW_LABEL: u32 = 0xf_ffff;

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// Flow label, 0 to [`MAX_FLOW_LABEL`].
    pub flow_label: u32,
    /// Bytes that follow this header.
    pub payload_length: u16,
    /// What follows: [`ICMP`], [`crate::ipv4::TCP`] or [`crate::ipv4::UDP`].
    pub next_header: u8,
    /// Hops left.
    pub hop_limit: u8,
    /// Who sends it.
    pub source: Ipv6Addr,
    /// Who receives it.
    pub destination: Ipv6Addr,
}

impl Header {
    /// The bytes of this header; bits of the flow label that do not fit are cut off.
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH] {
        let first = (6 << 28) | (u32::from(self.traffic_class) << 20) | (self.flow_label & MAX_FLOW_LABEL);
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&first.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.payload_length.to_be_bytes());
        bytes[6] = self.next_header;
        bytes[7] = self.hop_limit;
        bytes[8..24].copy_from_slice(&self.source.octets());
        bytes[24..].copy_from_slice(&self.destination.octets());
        bytes
    }

    /// Reads the header at the start of `bytes`; `None` when they are too few or not IPv6.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<LENGTH>()?;
        let first = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        if first >> 28 != 6 {
            return None;
        }
        let (mut source, mut destination) = ([0; 16], [0; 16]);
        source.copy_from_slice(&bytes[8..24]);
        destination.copy_from_slice(&bytes[24..]);
        Some(Self {
            traffic_class: (first >> 20) as u8,
            flow_label: first & MAX_FLOW_LABEL,
            payload_length: u16::from_be_bytes([bytes[4], bytes[5]]),
            next_header: bytes[6],
            hop_limit: bytes[7],
            source: source.into(),
            destination: destination.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::Ipv6Header;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn etherparse_reads_what_we_emit(
            traffic_class: u8, flow_label in 0..=MAX_FLOW_LABEL, payload_length: u16, next_header: u8,
            hop_limit: u8, source: [u8; 16], destination: [u8; 16],
        ) {
            let header = Header {
                traffic_class, flow_label, payload_length, next_header, hop_limit,
                source: source.into(), destination: destination.into(),
            };
            let bytes = header.emit();
            let (theirs, _) = Ipv6Header::from_slice(&bytes).unwrap();
            prop_assert_eq!(theirs.traffic_class, traffic_class);
            prop_assert_eq!(theirs.flow_label.value(), flow_label);
            prop_assert_eq!(theirs.payload_length, payload_length);
            prop_assert_eq!(theirs.next_header.0, next_header);
            prop_assert_eq!(theirs.hop_limit, hop_limit);
            prop_assert_eq!((theirs.source, theirs.destination), (source, destination));
            prop_assert_eq!(Header::parse(&bytes), Some(header));
            prop_assert_eq!(Header::parse(&bytes[..39]), None);
        }
    }
}
