//! device-input: frames that a device has lent enter; they are on their way into the core's cache.

use super::Node;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    for &index in vector {
        packets.prefetch(index);
    }
    next.fill(if context.handoff.is_some() { Node::WorkerHandoff } else { Node::EthernetInput });
}
