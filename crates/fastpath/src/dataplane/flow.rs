//! The hash of a packet's flow: addresses, protocol and ports enter, a number leaves by which one of several
//! paths is chosen, the same for all packets of a flow.

pub mod ends;
pub mod member;
pub mod rss;

use wire::{ipv4, ipv6};

/// The hash of an IPv4 packet's flow. Fragments have no ports: all of a packet's go one way.
#[must_use]
pub fn of_ip4(packet: &[u8]) -> u32 {
    let Some(header) = packet.first_chunk::<{ ipv4::LENGTH }>() else { return 0 };
    let (words, _) = header.as_chunks::<4>();
    let &[_, place, _, source, destination] = words else { return 0 };
    let length = usize::from(header[0] & 0xf) * 4;
    let has_ports = matches!(header[9], ipv4::TCP | ipv4::UDP) && u32::from_be_bytes(place) & 0x3fff == 0;
    let ports = packet.get(length..).and_then(<[u8]>::first_chunk).filter(|_| has_ports);
    let [source, destination, ports] = [source, destination, ports.copied().unwrap_or_default()]
        .map(|word| u64::from(u32::from_be_bytes(word)));
    mix(source << 32 | destination, ports << 8 | u64::from(header[9]))
}

/// The hash of an IPv6 packet's flow: by its label, where its source labels flows (RFC 6438, section 3), and
/// by its ports otherwise, where they follow the header.
#[must_use]
pub fn of_ip6(packet: &[u8]) -> u32 {
    let Some(header) = packet.first_chunk::<{ ipv6::LENGTH }>() else { return 0 };
    let (words, _) = header.as_chunks::<8>();
    let &[first, source, source_low, destination, destination_low] = words else { return 0 };
    let [first, source, source_low, destination, destination_low] =
        [first, source, source_low, destination, destination_low].map(u64::from_be_bytes);
    let label = (first >> 32) as u32 & ipv6::MAX_FLOW_LABEL;
    let has_ports = matches!(header[6], ipv4::TCP | ipv4::UDP);
    let ports = packet.get(ipv6::LENGTH..).and_then(<[u8]>::first_chunk).filter(|_| has_ports);
    let which = if label == 0 { ports.map_or(0, |ports| u32::from_be_bytes(*ports)) } else { label };
    let ends = mix(source ^ u64::from(mix(source_low, 0)), destination ^ u64::from(mix(destination_low, 0)));
    mix(u64::from(ends), u64::from(which) << 8 | u64::from(header[6]))
}

/// Mixes two words well enough for all bits of the result (the finish of `SplitMix64`, Steele and others,
/// OOPSLA 2014).
fn mix(one: u64, other: u64) -> u32 {
    let mut mixed = one ^ other.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) as u32
}
