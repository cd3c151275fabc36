//! interface-output: packets with the interface that they leave by enter; those whose interface is up go on.

use super::Node;
use crate::dataplane::counters::Reason;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    let interfaces = &context.forwarding.interfaces;
    for (&index, next) in vector.iter().zip(next) {
        let output = usize::from(packets.output[index]);
        *next = match interfaces.get(output) {
            Some(interface) if interface.up => Node::Tx,
            _ => packets.drop(index, Reason::OutputDown),
        };
    }
}
