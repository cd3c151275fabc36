//! l2-input: frames of interfaces that do not route enter; those of a cross connect leave with the
//! interface that they leave by.

use super::Node;
use crate::counters::Reason;
use crate::forwarding::{Forwarding, Role};
use crate::graph::Context;
use crate::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    let Some(&first) = vector.first() else { return };
    // Most vectors are of one interface: it is looked at once, and again where another follows.
    let mut arrived = packets.arrived[usize::from(first)];
    let mut output = output_of(&context.forwarding, arrived);
    for (&index, next) in vector.iter().zip(next) {
        let at = packets.arrived[usize::from(index)];
        if at != arrived {
            arrived = at;
            output = output_of(&context.forwarding, at);
        }
        *next = match output {
            Ok(output) => {
                packets.output[usize::from(index)] = output;
                Node::L2Output
            }
            Err(reason) => packets.drop(index, reason),
        };
    }
}

/// Where the frames of an interface go.
fn output_of(forwarding: &Forwarding, arrived: u16) -> Result<u16, Reason> {
    match forwarding.interfaces.get(usize::from(arrived)).map(|interface| interface.role) {
        Some(Role::CrossConnect(output)) => Ok(output),
        _ => Err(Reason::L2NoBridge),
    }
}
