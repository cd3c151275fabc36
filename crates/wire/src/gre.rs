//! Generic Routing Encapsulation without options: a protocol enters, 4 bytes leave (RFC 2784).

/// Bytes of the header.
pub const LENGTH: usize = 4;

/// The header. No checksum, no key, no sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What follows, as an Ethertype.
    pub protocol: u16,
}

impl Header {
    /// The bytes of this header.
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH] {
        let [high, low] = self.protocol.to_be_bytes();
        [0, 0, high, low]
    }

    /// Reads the header at the start of `bytes`; `None` when they are too few or it has options.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        match *bytes.first_chunk::<LENGTH>()? {
            [0, 0, high, low] => Some(Self { protocol: u16::from_be_bytes([high, low]) }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_without_options_is_a_protocol_behind_zeros() {
        let header = Header { protocol: crate::ethernet::IPV4 };
        assert_eq!(header.emit(), [0, 0, 8, 0]);
        assert_eq!(Header::parse(&header.emit()), Some(header));
        assert_eq!(Header::parse(&[0x20, 0, 8, 0, 0, 0, 0, 1]), None, "it has a key");
        assert_eq!(Header::parse(&[0, 0, 8]), None);
    }
}
