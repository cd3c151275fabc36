//! IPsec's Encapsulating Security Payload: fields enter, 8 bytes leave (RFC 4303). What follows is opaque.

/// Bytes of the header.
pub const LENGTH: usize = 8;

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The security association's number.
    pub spi: u32,
    /// Sequence number.
    pub sequence: u32,
}

impl Header {
    /// The bytes of this header.
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&self.spi.to_be_bytes());
        bytes[4..].copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }

    /// Reads the header at the start of `bytes`; `None` when they are too few.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [spi @ .., _, _, _, _] = *bytes.first_chunk::<LENGTH>()?;
        let sequence = *bytes.get(4..)?.first_chunk()?;
        Some(Self { spi: u32::from_be_bytes(spi), sequence: u32::from_be_bytes(sequence) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_association_stands_before_the_sequence_number() {
        let header = Header { spi: 0x0102_0304, sequence: 0x0506_0708 };
        assert_eq!(header.emit(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(Header::parse(&header.emit()), Some(header));
        assert_eq!(Header::parse(&header.emit()[1..]), None);
    }
}
