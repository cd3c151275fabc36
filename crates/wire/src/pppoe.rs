//! PPP over Ethernet, in a session: fields enter, 8 bytes with the protocol of PPP leave (RFC 2516).

/// Bytes of the header, PPP's protocol included.
pub const LENGTH: usize = 8;

/// The Ethertype of a session's frames.
pub const SESSION: u16 = 0x8864;

/// PPP's protocol number of IPv4.
pub const IPV4: u16 = 0x0021;

/// PPP's protocol number of IPv6.
pub const IPV6: u16 = 0x0057;

/// Bytes of what is counted in the length: PPP's protocol.
const PROTOCOL: u16 = 2;

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The session.
    pub session: u16,
    /// Bytes of what PPP carries, after its protocol.
    pub length: u16,
    /// What PPP carries: [`IPV4`] or [`IPV6`].
    pub protocol: u16,
}

impl Header {
    /// The bytes of this header.
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH] {
        let [session, length, protocol] =
            [self.session, self.length.saturating_add(PROTOCOL), self.protocol].map(u16::to_be_bytes);
        [0x11, 0, session[0], session[1], length[0], length[1], protocol[0], protocol[1]]
    }

    /// Reads the header at the start of `bytes`; `None` when they are too few or not of a session.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [0x11, 0, a, b, c, d, e, f] = *bytes.first_chunk::<LENGTH>()? else { return None };
        Some(Self {
            session: u16::from_be_bytes([a, b]),
            length: u16::from_be_bytes([c, d]).checked_sub(PROTOCOL)?,
            protocol: u16::from_be_bytes([e, f]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_counts_the_protocol_of_ppp() {
        let header = Header { session: 0x0102, length: 46, protocol: IPV4 };
        assert_eq!(header.emit(), [0x11, 0, 1, 2, 0, 48, 0, 0x21]);
        assert_eq!(Header::parse(&header.emit()), Some(header));
        assert_eq!(Header::parse(&[0x11, 0, 0, 1, 0, 1, 0, 0x21]), None, "shorter than its protocol");
        assert_eq!(Header::parse(&[0x12, 0, 0, 1, 0, 9, 0, 0x21]), None, "another version");
    }
}
