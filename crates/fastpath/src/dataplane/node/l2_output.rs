//! l2-output: frames with the interface that they leave by enter; they leave with its VLAN tag.
//!
//! The tag of an interface is its own: it is taken off what arrives there and put on what leaves there, as
//! `set interface l2 tag-rewrite … pop 1` on every VLAN interface has it. So from VLAN to VLAN a tag is
//! translated: its number changes, its priority stays (IEEE 802.1Q, 6.9). A tag that is put on has priority
//! 0. Tags further in are of no concern.

use wire::{ethernet, vlan};

use super::Node;
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::{Interface, LINK_HEADER};
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    let interfaces = &context.forwarding.interfaces;
    let Some(&first) = vector.first() else { return };
    let ends = |packets: &Packets, index: Index| (packets.arrived[index], packets.output[index]);
    // Most vectors go one way: it is looked at once, and again where another follows.
    let mut between = ends(packets, first);
    let mut way = Way::between(interfaces, between);
    for (&index, next) in vector.iter().zip(next) {
        let ends = ends(packets, index);
        if ends != between {
            between = ends;
            way = Way::between(interfaces, ends);
        }
        *next = match way.as_ref().map_err(|reason| *reason).and_then(|way| way.go(packets, index)) {
            Ok(()) => Node::Tx,
            Err(reason) => packets.drop(index, reason),
        };
    }
}

/// What is done with frames from one interface to another.
struct Way {
    /// The longest that the other takes: its MTU, and two tags.
    longest: usize,
    /// The tags of the one and of the other, where they differ.
    tags: Option<(Option<u16>, Option<u16>)>,
}

impl Way {
    /// The way, or why there is none. It is here that an interface which is down is noticed: its record is at
    /// hand, and interface-output need not look at it once more.
    fn between(interfaces: &[Interface], (from, to): (u16, u16)) -> Result<Self, Reason> {
        if from == to {
            return Err(Reason::L2SameInterface);
        }
        match (interfaces.get(usize::from(from)), interfaces.get(usize::from(to))) {
            (Some(from), Some(to)) if to.up => Ok(Self {
                longest: usize::from(to.mtu) + LINK_HEADER,
                tags: (from.vlan != to.vlan).then_some((from.vlan, to.vlan)),
            }),
            _ => Err(Reason::OutputDown),
        }
    }

    #[inline(always)]
    fn go(&self, packets: &mut Packets, index: Index) -> Result<(), Reason> {
        if packets.frame(index).len() > self.longest {
            return Err(Reason::L2TooBig);
        }
        match self.tags {
            None => Ok(()),
            Some((from, to)) => retag(packets, index, from, to).ok_or(Reason::L2NoRoom),
        }
    }
}

/// Bytes of the two addresses, which stand before the tag.
const ADDRESSES: usize = 12;
/// Bytes of a header with a tag.
const TAGGED: usize = ethernet::LENGTH + vlan::LENGTH;

/// Takes the tag `from` off a frame and puts the tag `to` on. `None` when there is no room.
#[inline(never)]
fn retag(packets: &mut Packets, index: Index, from: Option<u16>, to: Option<u16>) -> Option<()> {
    let header = if from.is_some() { TAGGED } else { ethernet::LENGTH };
    packets.set_network(index, header as u8);
    match (from, to) {
        (Some(_), Some(id)) => {
            let header = packets.bytes_mut(index).first_chunk_mut::<TAGGED>()?;
            let tag = vlan::Tag { id, ..vlan::Tag::parse(&header[ethernet::LENGTH..])? };
            let eligible = header[ethernet::LENGTH] & 0x10;
            header[ADDRESSES..ethernet::LENGTH].copy_from_slice(&vlan::CUSTOMER.to_be_bytes());
            header[ethernet::LENGTH..].copy_from_slice(&tag.emit());
            header[ethernet::LENGTH] |= eligible;
        }
        (Some(_), None) => {
            packets.bytes_mut(index).first_chunk_mut::<TAGGED>()?.copy_within(..ADDRESSES, vlan::LENGTH);
            packets.make_room(index, ethernet::LENGTH).then_some(())?;
        }
        (None, Some(id)) => {
            packets.make_room(index, TAGGED).then_some(())?;
            let header = packets.bytes_mut(index).first_chunk_mut::<TAGGED>()?;
            let ethertype = u16::from_be_bytes([header[ADDRESSES], header[ADDRESSES + 1]]);
            header[ADDRESSES..ethernet::LENGTH].copy_from_slice(&vlan::CUSTOMER.to_be_bytes());
            header[ethernet::LENGTH..].copy_from_slice(&vlan::Tag { id, priority: 0, ethertype }.emit());
        }
        (None, None) => {}
    }
    Some(())
}
