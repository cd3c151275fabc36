//! punt: packets enter with the frames that they arrived in, and go to the kernel's side of the interface
//! that they arrived at, without its VLAN tag; what that does not take is dropped, and so is what exceeds the
//! limit of its kind, as the kernel's work with it is this worker's time.

use wire::{ethernet, vlan};

use super::Node;
use crate::clock::clocks;
use crate::dataplane::counters::Reason;
use crate::dataplane::graph::Context;
use crate::dataplane::punt::Kind;
use crate::dataplane::vector::{Index, Packets};

/// Bytes of a frame before its tag: both link addresses.
const ADDRESSES: usize = 12;

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], _: &mut [Node]) {
    for &index in vector {
        match punt(context, packets, index) {
            Ok(()) => {
                context.counters.interface(packets.arrived[index]).punted.add(1);
            }
            Err(reason) => context.beside.push((index, packets.drop(index, reason))),
        }
    }
}

fn punt(context: &mut Context, packets: &mut Packets, index: Index) -> Result<(), Reason> {
    let arrived = usize::from(packets.arrived[index]);
    let Context { forwarding, punts, .. } = context;
    let interface = forwarding.interfaces.get(arrived).ok_or(Reason::InputDown)?;
    let kernel = interface.kernel.as_ref().ok_or(Reason::PuntNowhere)?;
    if !punts.allow(Kind::of(packets.bytes(index), packets.network(index)), clocks()) {
        return Err(Reason::PuntLimited);
    }
    let tag = if packets.network(index) > ethernet::LENGTH { vlan::LENGTH } else { 0 };
    let frame = packets.bytes_mut(index);
    if tag > 0 && frame.len() >= ethernet::LENGTH + tag {
        frame.copy_within(..ADDRESSES, tag);
    }
    if kernel.punt(frame.get(tag..).unwrap_or_default()) { Ok(()) } else { Err(Reason::PuntFull) }
}
