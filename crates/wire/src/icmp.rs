//! Echo of ICMP and ICMPv6: fields enter, 8 bytes leave (RFC 792, RFC 4443 section 4).
//!
//! Both versions share the layout; only the type differs. ICMPv6's checksum covers a
//! pseudo-header, ICMP's does not.

/// Bytes of the header.
pub const LENGTH: usize = 8;

/// Where the checksum stands in the header.
pub const CHECKSUM_OFFSET: usize = 2;

/// The type of an ICMP echo request.
pub const ECHO_REQUEST: u8 = 8;
/// The type of an ICMP echo reply.
pub const ECHO_REPLY: u8 = 0;
/// The type of an ICMPv6 echo request.
pub const ECHO_REQUEST_V6: u8 = 128;
/// The type of an ICMPv6 echo reply.
pub const ECHO_REPLY_V6: u8 = 129;

/// The header of an echo. Its code is always zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// One of the types above.
    pub kind: u8,
    /// The checksum.
    pub checksum: u16,
    /// Identifier.
    pub identifier: u16,
    /// Sequence number.
    pub sequence: u16,
}

impl Header {
    /// The bytes of this header.
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[0] = self.kind;
        bytes[2..4].copy_from_slice(&self.checksum.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        bytes[6..].copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }

    /// Reads the header at the start of `bytes`; `None` when they are too few or no echo.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [kind, code, c0, c1, i0, i1, s0, s1] = *bytes.first_chunk::<LENGTH>()?;
        let echo = matches!(kind, ECHO_REQUEST | ECHO_REPLY | ECHO_REQUEST_V6 | ECHO_REPLY_V6);
        (echo && code == 0).then_some(Self {
            kind,
            checksum: u16::from_be_bytes([c0, c1]),
            identifier: u16::from_be_bytes([i0, i1]),
            sequence: u16::from_be_bytes([s0, s1]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{IcmpEchoHeader, Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn etherparse_reads_what_we_emit(reply: bool, checksum: u16, identifier: u16, sequence: u16) {
            let echo = IcmpEchoHeader { id: identifier, seq: sequence };

            let kind = if reply { ECHO_REPLY } else { ECHO_REQUEST };
            let header = Header { kind, checksum, identifier, sequence };
            let bytes = header.emit();
            let (theirs, _) = Icmpv4Header::from_slice(&bytes).unwrap();
            let icmp_type = if reply { Icmpv4Type::EchoReply(echo) } else { Icmpv4Type::EchoRequest(echo) };
            prop_assert_eq!(theirs, Icmpv4Header { icmp_type, checksum });
            prop_assert_eq!(Header::parse(&bytes), Some(header));

            let kind = if reply { ECHO_REPLY_V6 } else { ECHO_REQUEST_V6 };
            let header = Header { kind, checksum, identifier, sequence };
            let bytes = header.emit();
            let (theirs, _) = Icmpv6Header::from_slice(&bytes).unwrap();
            let icmp_type = if reply { Icmpv6Type::EchoReply(echo) } else { Icmpv6Type::EchoRequest(echo) };
            prop_assert_eq!(theirs, Icmpv6Header { icmp_type, checksum });
            prop_assert_eq!(&bytes[CHECKSUM_OFFSET..4], checksum.to_be_bytes());
            prop_assert_eq!(Header::parse(&bytes), Some(header));
            prop_assert_eq!(Header::parse(&bytes[1..]), None);
        }
    }

    #[test]
    fn what_is_no_echo_is_not_read() {
        assert_eq!(Header::parse(&[3, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(Header::parse(&[8, 1, 0, 0, 0, 0, 0, 0]), None);
    }
}
