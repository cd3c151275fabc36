//! UDP: fields enter, 8 bytes leave (RFC 768).

/// Bytes of the header.
pub const LENGTH: usize = 8;

/// Where the checksum stands in the header.
pub const CHECKSUM_OFFSET: usize = 6;

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Bytes of this header and its payload.
    pub length: u16,
    /// The checksum; 0 means none, which only IPv4 allows.
    pub checksum: u16,
}

impl Header {
    /// The bytes of this header.
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..2].copy_from_slice(&self.source.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.destination.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.length.to_be_bytes());
        bytes[6..].copy_from_slice(&self.checksum.to_be_bytes());
        bytes
    }

    /// Reads the header at the start of `bytes`; `None` when they are too few.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, d, e, f, g, h] = *bytes.first_chunk::<LENGTH>()?;
        Some(Self {
            source: u16::from_be_bytes([a, b]),
            destination: u16::from_be_bytes([c, d]),
            length: u16::from_be_bytes([e, f]),
            checksum: u16::from_be_bytes([g, h]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::UdpHeader;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn etherparse_reads_what_we_emit(source: u16, destination: u16, length: u16, checksum: u16) {
            let header = Header { source, destination, length, checksum };
            let bytes = header.emit();
            let (theirs, _) = UdpHeader::from_slice(&bytes).unwrap();
            prop_assert_eq!(
                theirs,
                UdpHeader { source_port: source, destination_port: destination, length, checksum }
            );
            prop_assert_eq!(&bytes[CHECKSUM_OFFSET..], checksum.to_be_bytes());
            prop_assert_eq!(Header::parse(&bytes), Some(header));
            prop_assert_eq!(Header::parse(&bytes[1..]), None);
        }
    }
}
