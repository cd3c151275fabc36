//! l2-flood: frames of bridges enter; they leave to every port but the one that they arrived at. Where a
//! port's frames have another VLAN tag, it gets a copy of its own; the others share the bytes.

use super::Node;
use crate::dataplane::bridge::Bridge;
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::Forwarding;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    let (mut made, mut lost) = (0, 0);
    for (&index, next) in vector.iter().zip(next) {
        let arrived = packets.arrived[index];
        let forwarding = &context.forwarding;
        let Some((first, bridge)) =
            forwarding.bridge(arrived).and_then(|bridge| Some((first(forwarding, bridge, arrived)?, bridge)))
        else {
            *next = packets.drop(index, Reason::L2NoPort);
            continue;
        };
        packets.output[index] = first;
        *next = Node::L2Output;
        for &port in bridge.ports.iter().filter(|&&port| port != arrived && port != first) {
            made += 1;
            let same = forwarding.vlan(port) == forwarding.vlan(arrived);
            match if same { packets.share(index) } else { packets.copy(index) } {
                Some(further) => {
                    packets.output[further] = port;
                    context.beside.push((further, Node::L2Output));
                }
                // It counts as made, and as dropped.
                None => {
                    lost += 1;
                    context.counters.interface(arrived).dropped.add(1);
                }
            }
        }
    }
    context.counters.made.add(made);
    context.counters.reason(Reason::L2NoCopy).add(lost);
}

/// The port that gets the frame itself. A frame whose bytes are shared must keep its tag, so this is a port
/// with the same tag where there is one.
fn first(forwarding: &Forwarding, bridge: &Bridge, arrived: u16) -> Option<u16> {
    let mut others = bridge.ports.iter().copied().filter(|&port| port != arrived);
    let same = |port: &u16| forwarding.vlan(*port) == forwarding.vlan(arrived);
    others.clone().find(same).or_else(|| others.next())
}
