//! TCP without options: fields enter, 20 bytes leave (RFC 9293, section 3.1).

/// Bytes of the header.
pub const LENGTH: usize = 20;

/// Where the checksum stands in the header.
pub const CHECKSUM_OFFSET: usize = 16;

/// The flags by name, with their bits.
pub const FLAGS: [(&str, u8); 8] = [
    ("fin", 0x01),
    ("syn", 0x02),
    ("rst", 0x04),
    ("psh", 0x08),
    ("ack", 0x10),
    ("urg", 0x20),
    ("ece", 0x40),
    ("cwr", 0x80),
];

/// The header. The urgent pointer is always zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number.
    pub acknowledgment: u32,
    /// The bits of [`FLAGS`].
    pub flags: u8,
    /// Window.
    pub window: u16,
    /// The checksum.
    pub checksum: u16,
}

impl Header {
    /// The bytes of this header.
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..2].copy_from_slice(&self.source.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.destination.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.acknowledgment.to_be_bytes());
        bytes[12] = 5 << 4;
        bytes[13] = self.flags;
        bytes[14..16].copy_from_slice(&self.window.to_be_bytes());
        bytes[16..18].copy_from_slice(&self.checksum.to_be_bytes());
        bytes
    }

    /// Reads the header at the start of `bytes`; `None` when they are too few. Options, if
    /// there are any, are not read.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [s0, s1, d0, d1, n0, n1, n2, n3, a0, a1, a2, a3, _, flags, w0, w1, c0, c1, _, _] =
            *bytes.first_chunk::<LENGTH>()?;
        Some(Self {
            source: u16::from_be_bytes([s0, s1]),
            destination: u16::from_be_bytes([d0, d1]),
            sequence: u32::from_be_bytes([n0, n1, n2, n3]),
            acknowledgment: u32::from_be_bytes([a0, a1, a2, a3]),
            flags,
            window: u16::from_be_bytes([w0, w1]),
            checksum: u16::from_be_bytes([c0, c1]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::TcpHeader;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn etherparse_reads_what_we_emit(
            source: u16, destination: u16, sequence: u32, acknowledgment: u32, flags: u8, window: u16, checksum: u16,
        ) {
            let header = Header { source, destination, sequence, acknowledgment, flags, window, checksum };
            let bytes = header.emit();
            let (theirs, _) = TcpHeader::from_slice(&bytes).unwrap();
            prop_assert_eq!((theirs.source_port, theirs.destination_port), (source, destination));
            prop_assert_eq!((theirs.sequence_number, theirs.acknowledgment_number), (sequence, acknowledgment));
            prop_assert_eq!((theirs.window_size, theirs.checksum), (window, checksum));
            prop_assert_eq!((theirs.header_len(), theirs.urgent_pointer), (LENGTH, 0));
            let named = [
                theirs.fin, theirs.syn, theirs.rst, theirs.psh, theirs.ack, theirs.urg, theirs.ece, theirs.cwr,
            ];
            for ((name, bit), theirs) in FLAGS.iter().zip(named) {
                prop_assert_eq!(flags & bit != 0, theirs, "{}", name);
            }
            prop_assert_eq!(&bytes[CHECKSUM_OFFSET..18], checksum.to_be_bytes());
            prop_assert_eq!(Header::parse(&bytes), Some(header));
            prop_assert_eq!(Header::parse(&bytes[1..]), None);
        }
    }
}
