//! worker-handoff: frames enter that a device has lent to this worker; those of its own flows leave to
//! ethernet-input, the others are copied to the rings of the workers that their flows belong to. They count
//! as received there, and here if there was no room.

use super::Node;
use crate::dataplane::counters::Reason;
use crate::dataplane::graph::Context;
use crate::dataplane::handoff::Handed;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], _: &mut [Node]) {
    let Context { handoff, beside, .. } = context;
    let Some(handoff) = handoff else { return };
    let mut full = false;
    for &index in vector {
        match handoff.hand(packets.bytes(index)) {
            Handed::Kept => beside.push((index, Node::EthernetInput)),
            Handed::Over => {}
            Handed::Full => {
                full = true;
                beside.push((index, packets.drop(index, Reason::Congestion)));
            }
        }
    }
    handoff.publish();
    if full {
        count_received(context, packets);
    }
}

/// Counts those that are dropped here as received, by the device's interface of untagged frames.
#[cold]
fn count_received(context: &Context, packets: &mut Packets) {
    let device = context.forwarding.devices.get(usize::from(context.device));
    let interface = device.map_or(0, |device| device.untagged);
    let counters = context.counters.interface(interface);
    for (index, _) in context.beside.iter().filter(|(_, node)| *node == Node::ErrorDrop) {
        packets.arrive(*index, interface, 0);
        counters.received.add(1);
        counters.received_bytes.add(packets.bytes(*index).len() as u64);
    }
}
