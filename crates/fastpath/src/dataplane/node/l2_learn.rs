//! l2-learn: frames of bridges enter; where their senders are is noted, and all go on.

use wire::{MacAddress, ethernet};

use super::Node;
use crate::dataplane::bridge::Learned;
use crate::dataplane::counters::Reason;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    let (mut moved, mut full) = (0, 0);
    // Most frames come from where the one before came from.
    let mut last = None;
    for &index in vector {
        let arrived = packets.arrived[index];
        let source = ethernet::Header::parse(packets.bytes(index)).map_or(MacAddress([0; 6]), |it| it.source);
        if last == Some((source, arrived)) {
            continue;
        }
        last = Some((source, arrived));
        let Some(bridge) = context.forwarding.bridge(arrived) else { continue };
        match bridge.stations.learn(source, arrived) {
            Learned::Known | Learned::New => {}
            Learned::Moved => moved += 1,
            Learned::Full => full += 1,
        }
    }
    next.fill(Node::L2Fwd);
    context.counters.reason(Reason::L2StationMoved).add(moved);
    context.counters.reason(Reason::L2TableFull).add(full);
}
