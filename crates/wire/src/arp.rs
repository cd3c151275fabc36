//! ARP for IPv4 over Ethernet: who asks whom, or answers; 28 bytes leave (RFC 826).

use std::net::Ipv4Addr;

use crate::{MacAddress, ethernet};

/// Bytes of a packet.
pub const LENGTH: usize = 28;

/// The operation of those who ask.
pub const REQUEST: u16 = 1;
/// The operation of those who answer.
pub const REPLY: u16 = 2;

/// The hardware type of Ethernet.
const ETHERNET: u16 = 1;
/// The bytes before the operation: Ethernet and IPv4, and how long their addresses are.
const FORMAT: [u8; 6] = {
    let ([a, b], [c, d]) = (ETHERNET.to_be_bytes(), ethernet::IPV4.to_be_bytes());
    [a, b, c, d, 6, 4]
};

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// [`REQUEST`] or [`REPLY`].
    pub operation: u16,
    /// The link address of its sender.
    pub sender_mac: MacAddress,
    /// The address of its sender.
    pub sender: Ipv4Addr,
    /// The link address of whom it is for; nothing in a request.
    pub target_mac: MacAddress,
    /// The address of whom it is for.
    pub target: Ipv4Addr,
}

impl Header {
    /// The bytes of this packet.
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..6].copy_from_slice(&FORMAT);
        bytes[6..8].copy_from_slice(&self.operation.to_be_bytes());
        bytes[8..14].copy_from_slice(&self.sender_mac.0);
        bytes[14..18].copy_from_slice(&self.sender.octets());
        bytes[18..24].copy_from_slice(&self.target_mac.0);
        bytes[24..].copy_from_slice(&self.target.octets());
        bytes
    }

    /// Reads the packet at the start of `bytes`; `None` when they are too few, or it is for other kinds of
    /// addresses.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<LENGTH>()?;
        if bytes[..6] != FORMAT {
            return None;
        }
        let mac = |at: usize| std::array::from_fn(|byte| bytes[at + byte]);
        let address = |at: usize| Ipv4Addr::from(std::array::from_fn::<u8, 4, _>(|byte| bytes[at + byte]));
        Some(Self {
            operation: u16::from_be_bytes([bytes[6], bytes[7]]),
            sender_mac: MacAddress(mac(8)),
            sender: address(14),
            target_mac: MacAddress(mac(18)),
            target: address(24),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{ArpPacketSlice, EtherType};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn etherparse_reads_what_we_emit(
            operation: u16, sender_mac: [u8; 6], sender: [u8; 4], target_mac: [u8; 6], target: [u8; 4],
        ) {
            let header = Header {
                operation,
                sender_mac: MacAddress(sender_mac), sender: sender.into(),
                target_mac: MacAddress(target_mac), target: target.into(),
            };
            let bytes = header.emit();
            let theirs = ArpPacketSlice::from_slice(&bytes).unwrap();
            prop_assert_eq!(theirs.proto_addr_type(), EtherType::IPV4);
            prop_assert_eq!(theirs.operation().0, operation);
            prop_assert_eq!((theirs.sender_hw_addr(), theirs.sender_protocol_addr()), (&sender_mac[..], &sender[..]));
            prop_assert_eq!((theirs.target_hw_addr(), theirs.target_protocol_addr()), (&target_mac[..], &target[..]));
            prop_assert_eq!(Header::parse(&bytes), Some(header));
            prop_assert_eq!(Header::parse(&bytes[1..]), None);
        }
    }

    #[test]
    fn other_kinds_of_addresses_are_not_read() {
        let mac = MacAddress([2; 6]);
        let any = Ipv4Addr::LOCALHOST;
        let bytes =
            Header { operation: REQUEST, sender_mac: mac, sender: any, target_mac: mac, target: any }.emit();
        for at in 0..6 {
            let mut other = bytes;
            other[at] ^= 1;
            assert_eq!(Header::parse(&other), None);
        }
    }
}
