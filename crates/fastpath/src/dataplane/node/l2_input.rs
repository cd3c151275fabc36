//! l2-input: frames of interfaces that do not route enter; those of a cross connect leave with the interface
//! that they leave by, those of a bridge to have their sender learned.

use super::Node;
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::{Forwarding, Role};
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    let Some(&first) = vector.first() else { return };
    // Most vectors are of one interface: it is looked at once, and again where another follows.
    let mut arrived = packets.arrived[first];
    let mut way = way_of(&context.forwarding, arrived);
    for (&index, next) in vector.iter().zip(next) {
        let at = packets.arrived[index];
        if at != arrived {
            arrived = at;
            way = way_of(&context.forwarding, at);
        }
        *next = match way {
            Way::To(output) => {
                packets.output[index] = output;
                Node::L2Output
            }
            Way::Bridge => Node::L2Learn,
            Way::None => packets.drop(index, Reason::L2NoBridge),
        };
    }
}

/// Where the frames of an interface go.
enum Way {
    To(u16),
    Bridge,
    None,
}

fn way_of(forwarding: &Forwarding, arrived: u16) -> Way {
    match forwarding.interfaces.get(usize::from(arrived)).map(|interface| interface.role) {
        Some(Role::CrossConnect(output)) => Way::To(output),
        Some(Role::Bridge(_)) => Way::Bridge,
        Some(Role::Router) | None => Way::None,
    }
}
