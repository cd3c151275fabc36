//! ip4-frag: IPv4 packets enter that are longer than their next hop takes and may be cut, and are dropped;
//! their fragments leave to ip4-rewrite (RFC 791, 3.2; RFC 1812, 4.2.2.7 and 5.2.6).

use wire::checksum::Sum;
use wire::{ethernet, ipv4};

use super::Node;
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::LINK_HEADER;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, MADE, Packets};

/// More fragments follow.
const MORE: u16 = 0x2000;
/// Where a fragment begins, in units of eight bytes.
const OFFSET: u16 = 0x1fff;

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    for (&index, next) in vector.iter().zip(next) {
        let reason = cut(context, packets, index).err().unwrap_or(Reason::Ip4Fragmented);
        *next = packets.drop(index, reason);
    }
}

/// Makes all fragments of a packet, or none.
fn cut(context: &mut Context, packets: &mut Packets, index: Index) -> Result<(), Reason> {
    let (adjacency, arrived) = (packets.adjacency[index], packets.arrived[index]);
    let found = context.forwarding.adjacencies.get(adjacency as usize).ok_or(Reason::OutputDown)?;
    let fragments = fragments(packets.packet(index), usize::from(found.mtu))?;
    if packets.room() < fragments.len() {
        return Err(Reason::Ip4NoFragments);
    }
    for fragment in fragments {
        let length = ethernet::LENGTH + fragment.len();
        let made = context.make(packets, length, arrived, Node::Ip4Rewrite).ok_or(Reason::Ip4NoFragments)?;
        packets.set_network(made, ethernet::LENGTH as u8);
        packets.packet_mut(made).copy_from_slice(&fragment);
        packets.adjacency[made] = adjacency;
    }
    Ok(())
}

/// The header of a packet and what it carries; `None` when its lengths cannot be.
fn parts(packet: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = packet.first_chunk::<{ ipv4::LENGTH }>()?;
    let length = usize::from(u16::from_be_bytes([first[2], first[3]]));
    let parts = packet.get(..length)?.split_at_checked(usize::from(first[0] & 0xf) * 4)?;
    (parts.0.len() >= ipv4::LENGTH).then_some(parts)
}

/// The fragments of a packet that is longer than `mtu` bytes, of at most so many each.
fn fragments(packet: &[u8], mtu: usize) -> Result<Vec<Vec<u8>>, Reason> {
    // Its lengths were checked, and found too long, before it came here.
    let parts = parts(packet).filter(|(header, payload)| header.len() + payload.len() > mtu);
    let (header, payload) = parts.ok_or(Reason::Rewritten)?;
    let room = mtu.min(MADE - LINK_HEADER).saturating_sub(header.len()) & !7;
    if room == 0 {
        return Err(Reason::Ip4TooBig);
    }
    let later = later_header(header);
    let fixed = header.first_chunk::<{ ipv4::LENGTH }>().ok_or(Reason::Rewritten)?;
    let place = u16::from_be_bytes([fixed[6], fixed[7]]);
    // Behind the end of the longest packet offsets would begin anew, and a late fragment become a first one.
    if usize::from(place & OFFSET) * 8 + payload.len() > usize::from(u16::MAX) {
        return Err(Reason::Ip4BeyondEnd);
    }
    let fragment = |(number, part): (usize, &[u8])| {
        let mut fragment = if number == 0 { header.to_vec() } else { later.clone() };
        let more = if (number + 1) * room < payload.len() { MORE } else { place & MORE };
        let offset = (place & OFFSET) + (number * room / 8) as u16;
        let length = (fragment.len() + part.len()) as u16;
        put(&mut fragment, 2, length);
        put(&mut fragment, 6, more | offset & OFFSET);
        put(&mut fragment, 10, 0);
        let checksum = Sum::default().bytes(&fragment).checksum();
        put(&mut fragment, 10, checksum);
        fragment.extend_from_slice(part);
        fragment
    };
    Ok(payload.chunks(room).enumerate().map(fragment).collect())
}

/// Writes a word of a header.
fn put(header: &mut [u8], at: usize, word: u16) {
    if let Some(place) = header.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = word.to_be_bytes();
    }
}

/// The header of fragments but the first: of the options it has those that say so in their first bit.
fn later_header(header: &[u8]) -> Vec<u8> {
    let (fixed, mut options) = header.split_at_checked(ipv4::LENGTH).unwrap_or((header, &[]));
    let mut later = fixed.to_vec();
    while let Some((kind, rest)) = options.split_first().filter(|(kind, _)| **kind != 0) {
        let length =
            if *kind == 1 { 1 } else { rest.first().map_or(2, |length| usize::from(*length).max(2)) };
        let (option, left) = options.split_at(length.min(options.len()));
        if kind & 0x80 != 0 {
            later.extend_from_slice(option);
        }
        options = left;
    }
    later.resize(later.len().next_multiple_of(4), 0);
    let words = (later.len() / 4) as u8;
    if let Some(first) = later.first_mut() {
        *first = 0x40 | words;
    }
    later
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of `length` bytes with three options, of which fragments keep the second.
    fn packet(length: u16) -> Vec<u8> {
        let mut packet = vec![0; usize::from(length)];
        packet[0] = 0x48;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet[20..32].copy_from_slice(&[7, 3, 4, 1, 130, 4, 5, 6, 68, 3, 5, 0]);
        packet.iter_mut().zip(0u16..).skip(32).for_each(|(byte, at)| *byte = at as u8);
        packet
    }

    fn joined(fragments: &[Vec<u8>]) -> Vec<u8> {
        let mut payload = Vec::new();
        for fragment in fragments {
            let offset = u16::from_be_bytes([fragment[6], fragment[7]]) & OFFSET;
            assert_eq!(usize::from(offset) * 8, payload.len());
            let length = usize::from(fragment[0] & 0xf) * 4;
            assert_eq!(Sum::default().bytes(&fragment[..length]).checksum(), 0);
            payload.extend_from_slice(&fragment[length..]);
        }
        payload
    }

    #[test]
    fn fragments_joined_are_the_packet() {
        for length in 42..200 {
            let whole = packet(length);
            for mtu in 40..90.min(usize::from(length)) {
                let fragments = fragments(&whole, mtu).unwrap();
                assert!(fragments.iter().all(|fragment| fragment.len() <= mtu));
                assert_eq!(joined(&fragments), whole[32..]);
                let more = fragments.iter().filter(|fragment| fragment[6] & 0x20 != 0).count();
                assert_eq!(more, fragments.len() - 1);
            }
        }
        assert_eq!(fragments(&packet(100), 39), Err(Reason::Ip4TooBig));
    }

    #[test]
    fn a_packet_whose_lengths_cannot_be_is_not_cut() {
        for (first, length) in
            [(0x45u8, 100u16), (0x45, 20), (0x4f, 59), (0x44, 1000), (0x45, 1001), (0x45, 0)]
        {
            let mut packet = packet(1000);
            packet[0] = first;
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            assert_eq!(fragments(&packet, 100), Err(Reason::Rewritten), "{first:#x} {length}");
        }
        assert_eq!(fragments(&[0x45; 19], 100), Err(Reason::Rewritten));
    }

    #[test]
    fn later_fragments_have_the_options_that_are_copied() {
        let fragments = fragments(&packet(100), 60).unwrap();
        assert_eq!(fragments[0][20..32], packet(100)[20..32]);
        assert_eq!((fragments[1][0], &fragments[1][20..24]), (0x46, &[130, 4, 5, 6][..]));
    }

    #[test]
    fn a_fragment_is_cut_where_it_stands_in_the_whole() {
        let mut part = packet(100);
        part[6..8].copy_from_slice(&(MORE | 100).to_be_bytes());
        let fragments = fragments(&part, 72).unwrap();
        let places: Vec<_> = fragments.iter().map(|found| u16::from_be_bytes([found[6], found[7]])).collect();
        assert_eq!(places, [MORE | 100, MORE | 105]);
    }
}
