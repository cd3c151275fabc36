//! VLAN tags: an identifier enters, 4 bytes leave (IEEE 802.1Q, section 9).
//!
//! A tag stands where the EtherType stood. The type before it names the kind of tag: a
//! frame with one tag says [`CUSTOMER`]; one with two (802.1ad, "QinQ") says [`SERVICE`] before
//! the outer tag and [`CUSTOMER`] before the inner one.

/// Bytes of a tag.
pub const LENGTH: usize = 4;

/// The EtherType of a customer tag (802.1Q), the only or the inner one.
pub const CUSTOMER: u16 = 0x8100;
/// The EtherType of a service tag (802.1ad), the outer one of two.
pub const SERVICE: u16 = 0x88a8;
/// The largest VLAN identifier; 4095 is reserved.
pub const MAX_ID: u16 = 4094;

/// A tag, without the EtherType before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The VLAN, 0 (no VLAN, only a priority) to [`MAX_ID`].
    pub id: u16,
    /// The priority code point, 0 to 7.
    pub priority: u8,
    /// What follows: an EtherType, or [`CUSTOMER`] before an inner tag.
    pub ethertype: u16,
}

impl Tag {
    /// The bytes of this tag; bits of `id` and `priority` that do not fit are cut off.
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH] {
        let control = (u16::from(self.priority & 7) << 13) | (self.id & 0xfff);
        let ([a, b], [c, d]) = (control.to_be_bytes(), self.ethertype.to_be_bytes());
        [a, b, c, d]
    }

    /// Reads the tag at the start of `bytes`; `None` when they are too few.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, d] = *bytes.first_chunk::<LENGTH>()?;
        let control = u16::from_be_bytes([a, b]);
        Some(Self { id: control & 0xfff, priority: a >> 5, ethertype: u16::from_be_bytes([c, d]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::SingleVlanHeader;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn etherparse_reads_what_we_emit(id in 0..=MAX_ID, priority in 0u8..8, ethertype: u16) {
            let tag = Tag { id, priority, ethertype };
            let bytes = tag.emit();
            let (theirs, _) = SingleVlanHeader::from_slice(&bytes).unwrap();
            prop_assert_eq!(theirs.vlan_id.value(), id);
            prop_assert_eq!(theirs.pcp.value(), priority);
            prop_assert!(!theirs.drop_eligible_indicator);
            prop_assert_eq!(theirs.ether_type.0, ethertype);
            prop_assert_eq!(Tag::parse(&bytes), Some(tag));
            prop_assert_eq!(Tag::parse(&bytes[1..]), None);
        }
    }
}
