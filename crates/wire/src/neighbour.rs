//! Neighbour discovery of IPv6: a target and flags enter, 24 bytes leave, and 8 more for a link address
//! (RFC 4861, sections 4.3, 4.4 and 4.6.1).
//!
//! Solicitations ("who has this address?") and advertisements ("I have") share the layout; only the type
//! and the flags differ.

use std::net::Ipv6Addr;

use crate::MacAddress;

/// Bytes of the header.
pub const LENGTH: usize = 24;

/// Bytes of the option with an Ethernet address.
pub const OPTION_LENGTH: usize = 8;

/// The type of a solicitation.
pub const SOLICITATION: u8 = 135;
/// The type of an advertisement.
pub const ADVERTISEMENT: u8 = 136;

/// The sender is a router. Flags are an advertisement's alone.
pub const ROUTER: u8 = 0x80;
/// The advertisement answers a solicitation.
pub const SOLICITED: u8 = 0x40;
/// What the advertisement says replaces what was known.
pub const OVERRIDE: u8 = 0x20;

/// The option with the link address of who sends a solicitation.
pub const SOURCE_LINK_ADDRESS: u8 = 1;
/// The option with the link address of an advertisement's target.
pub const TARGET_LINK_ADDRESS: u8 = 2;

/// The header of a message. Its code is always zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// [`SOLICITATION`] or [`ADVERTISEMENT`].
    pub kind: u8,
    /// The checksum.
    pub checksum: u16,
    /// Any of [`ROUTER`], [`SOLICITED`] and [`OVERRIDE`].
    pub flags: u8,
    /// Whose link address it is about.
    pub target: Ipv6Addr,
}

impl Header {
    /// The bytes of this header.
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[0] = self.kind;
        bytes[2..4].copy_from_slice(&self.checksum.to_be_bytes());
        bytes[4] = self.flags;
        bytes[8..].copy_from_slice(&self.target.octets());
        bytes
    }

    /// Reads the header at the start of `bytes`; `None` when they are too few or no such message. What is
    /// reserved is not looked at.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<LENGTH>()?;
        let message = matches!(bytes[0], SOLICITATION | ADVERTISEMENT) && bytes[1] == 0;
        let mut target = [0; 16];
        target.copy_from_slice(&bytes[8..]);
        message.then_some(Self {
            kind: bytes[0],
            checksum: u16::from_be_bytes([bytes[2], bytes[3]]),
            flags: bytes[4],
            target: target.into(),
        })
    }
}

/// The bytes of the option of this kind with an Ethernet address.
#[must_use]
pub fn emit_link_address(kind: u8, address: MacAddress) -> [u8; OPTION_LENGTH] {
    let [a, b, c, d, e, f] = address.0;
    [kind, 1, a, b, c, d, e, f]
}

/// An option has a length of zero, or goes beyond the end of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an option of a neighbour discovery message has a wrong length: its sender is at fault")]
pub struct OptionLength;

/// The Ethernet address in the first option of this kind among `options`, which follow the header.
///
/// # Errors
/// [`OptionLength`]: the message is to be discarded (RFC 4861, section 4.6).
pub fn link_address(kind: u8, mut options: &[u8]) -> Result<Option<MacAddress>, OptionLength> {
    let mut found = None;
    while let [this, units, ..] = *options {
        let length = usize::from(units) * OPTION_LENGTH;
        let (option, rest) = options.split_at_checked(length).filter(|_| units > 0).ok_or(OptionLength)?;
        if this == kind && length == OPTION_LENGTH && found.is_none() {
            found = option.last_chunk().map(|address| MacAddress(*address));
        }
        options = rest;
    }
    if options.is_empty() { Ok(found) } else { Err(OptionLength) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::pseudo_ipv6;
    use crate::ipv6;
    use etherparse::icmpv6::{Icmpv6PayloadSlice, NdpOptionSlice};
    use etherparse::{Icmpv6Slice, Icmpv6Type};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn etherparse_reads_what_we_emit(
            solicits: bool, flags: u8, source: [u8; 16], destination: [u8; 16], target: [u8; 16], mac: [u8; 6],
        ) {
            let (kind, option) =
                if solicits { (SOLICITATION, SOURCE_LINK_ADDRESS) } else { (ADVERTISEMENT, TARGET_LINK_ADDRESS) };
            let flags = if solicits { 0 } else { flags & (ROUTER | SOLICITED | OVERRIDE) };
            let mut header = Header { kind, checksum: 0, flags, target: target.into() };
            let message = |header: Header| [&header.emit()[..], &emit_link_address(option, MacAddress(mac))].concat();
            let zero = pseudo_ipv6(source.into(), destination.into(), ipv6::ICMP, 32).bytes(&message(header));
            header.checksum = zero.checksum();
            let bytes = message(header);

            let theirs = Icmpv6Slice::from_slice(&bytes).unwrap();
            prop_assert!(theirs.is_checksum_valid(source, destination));
            let (of, mut options) = match theirs.payload_slice().unwrap() {
                Icmpv6PayloadSlice::NeighborSolicitation(said) => (said.target_address(), said.options_iterator()),
                Icmpv6PayloadSlice::NeighborAdvertisement(said) => (said.target_address(), said.options_iterator()),
                other => return Err(TestCaseError::fail(format!("{other:?}"))),
            };
            prop_assert_eq!(of, Ipv6Addr::from(target));
            if let Icmpv6Type::NeighborAdvertisement(said) = theirs.icmp_type() {
                let said = (said.router, said.solicited, said.r#override);
                prop_assert_eq!(said, (flags & ROUTER != 0, flags & SOLICITED != 0, flags & OVERRIDE != 0));
            }
            let address = match options.next().unwrap().unwrap() {
                NdpOptionSlice::SourceLinkLayerAddress(said) => (SOURCE_LINK_ADDRESS, said.link_layer_address()),
                NdpOptionSlice::TargetLinkLayerAddress(said) => (TARGET_LINK_ADDRESS, said.link_layer_address()),
                other => return Err(TestCaseError::fail(format!("{other:?}"))),
            };
            prop_assert_eq!(address, (option, &mac[..]));
            prop_assert_eq!(Header::parse(&bytes), Some(header));
            prop_assert_eq!(Header::parse(&bytes[..LENGTH - 1]), None);
            prop_assert_eq!(link_address(option, &bytes[LENGTH..]), Ok(Some(MacAddress(mac))));
            prop_assert_eq!(link_address(3 - option, &bytes[LENGTH..]), Ok(None));
        }

        #[test]
        fn options_of_any_bytes_end(options in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = link_address(SOURCE_LINK_ADDRESS, &options);
        }
    }

    #[test]
    fn options_of_wrong_length_are_refused_and_others_passed_over() {
        let ours = emit_link_address(SOURCE_LINK_ADDRESS, MacAddress([2, 0, 0, 0, 0, 9]));
        let nonce = [14, 1, 1, 2, 3, 4, 5, 6];
        let long = [SOURCE_LINK_ADDRESS, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let find = |options: &[&[u8]]| link_address(SOURCE_LINK_ADDRESS, &options.concat());
        assert_eq!(find(&[&nonce, &long, &ours]), Ok(Some(MacAddress([2, 0, 0, 0, 0, 9]))));
        assert_eq!(find(&[]), Ok(None));
        for wrong in [&[1, 0, 0, 0, 0, 0, 0, 0][..], &[1, 2, 0, 0, 0, 0, 0, 0], &[1], &[1, 1, 0]] {
            assert_eq!(find(&[&ours, wrong]), Err(OptionLength), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_no_message_is_not_read() {
        let mut bytes =
            Header { kind: SOLICITATION, checksum: 0, flags: 0, target: Ipv6Addr::LOCALHOST }.emit();
        assert!(Header::parse(&bytes).is_some());
        bytes[1] = 1;
        assert_eq!(Header::parse(&bytes), None);
        bytes[..2].copy_from_slice(&[134, 0]);
        assert_eq!(Header::parse(&bytes), None);
    }
}
