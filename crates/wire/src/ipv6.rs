//! IPv6 without extension headers: fields enter, 40 bytes leave (RFC 8200).

use std::net::Ipv6Addr;

use crate::MacAddress;

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

/// All nodes of a link (RFC 4291, section 2.7.1).
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The address that an interface has on its link by its MAC address (RFC 4291, 2.5.6 and appendix A).
#[must_use]
pub fn link_local(mac: MacAddress) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

/// The group of a link that a node with `address` is in (RFC 4291, section 2.7.1).
#[must_use]
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

/// The MAC address of a group (RFC 2464, section 7).
#[must_use]
pub fn group_mac(group: Ipv6Addr) -> MacAddress {
    let [.., a, b, c, d] = group.octets();
    MacAddress([0x33, 0x33, a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::Ipv6Header;
    use proptest::prelude::*;

    #[test]
    fn addresses_follow_from_others_as_the_examples_of_the_standards_do() {
        // RFC 4291, appendix A: 34-56-78-9A-BC-DE becomes 36-56-78-FF-FE-9A-BC-DE.
        let mac = MacAddress([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde]);
        assert_eq!(link_local(mac).to_string(), "fe80::3656:78ff:fe9a:bcde");
        // RFC 4291, section 2.7.1.
        let group = solicited_node("4037::1:800:200e:8c6c".parse().unwrap());
        assert_eq!(group.to_string(), "ff02::1:ff0e:8c6c");
        assert_eq!(group_mac(group).to_string(), "33:33:ff:0e:8c:6c");
        assert_eq!(group_mac(ALL_NODES).to_string(), "33:33:00:00:00:01");
    }

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
