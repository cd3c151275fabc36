//! What of a frame a device leaves as it is: a frame enters, a number that stands for it leaves.

use std::hash::{DefaultHasher, Hash, Hasher};

use wire::{ethernet, ipv4, ipv6, vlan};

/// A number for all of `frame` (without FCS) that routers and bridges leave as it is: of IP, what stands
/// behind addresses of Ethernet and tags, without padding, time to live and the checksum over it; of all
/// else, what stands behind the addresses, without zeros at its end. Frames of one content have one
/// number; others hardly ever.
#[must_use]
pub fn key(frame: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut rest = frame.get(12..).unwrap_or_default();
    while let Some((&[high, low, ..], behind)) = rest.split_at_checked(vlan::LENGTH)
        && matches!(u16::from_be_bytes([high, low]), vlan::CUSTOMER | vlan::SERVICE)
    {
        rest = behind;
    }
    let ethertype = rest.first_chunk().map(|bytes| u16::from_be_bytes(*bytes));
    let packet = rest.get(2..).unwrap_or_default();
    match (ethertype, packet.len()) {
        (Some(ethernet::IPV4), ipv4::LENGTH..) => {
            let packet = up_to(packet, 2, 0);
            (&packet[..8], packet[9], &packet[12..]).hash(&mut hasher);
        }
        (Some(ethernet::IPV6), ipv6::LENGTH..) => {
            let packet = up_to(packet, 4, ipv6::LENGTH);
            (&packet[..7], &packet[8..]).hash(&mut hasher);
        }
        _ => {
            let end = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            rest[..end].hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// `packet` without what stands behind the length that it says at `field`, to which `header` is added;
/// at least its header.
fn up_to(packet: &[u8], field: usize, header: usize) -> &[u8] {
    let said = packet.get(field..).and_then(|rest| rest.first_chunk());
    let length = said.map_or(0, |bytes| usize::from(u16::from_be_bytes(*bytes))) + header;
    let least = if header == 0 { ipv4::LENGTH } else { header };
    packet.get(..length.max(least)).unwrap_or(packet)
}
