//! l2-fwd: frames of bridges enter; those to a station that is known leave with its interface, all others
//! to all ports.

use wire::MacAddress;

use super::Node;
use crate::dataplane::bridge::Bridge;
use crate::dataplane::counters::Reason;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    let forwarding = &context.forwarding;
    for (&index, next) in vector.iter().zip(next) {
        let bridge = forwarding.bridge(packets.arrived[index]);
        let destination = packets.bytes(index).first_chunk().map(|bytes| MacAddress(*bytes));
        *next =
            match bridge.zip(destination).ok_or(Reason::L2NoBridge).and_then(|(bridge, to)| find(bridge, to))
            {
                Ok(Some(port)) => {
                    packets.output[index] = port;
                    Node::L2Output
                }
                Ok(None) => Node::L2Flood,
                Err(reason) => packets.drop(index, reason),
            };
    }
}

/// The port of a station; none where all are meant, or it is not known.
#[inline(always)]
fn find(bridge: &Bridge, to: MacAddress) -> Result<Option<u16>, Reason> {
    if to.0[0] & 1 == 1 {
        return if is_reserved(to) { Err(Reason::L2Reserved) } else { Ok(None) };
    }
    // A worker that does not know yet that a port has left may have learned it once more.
    Ok(bridge.stations.find(to).filter(|port| bridge.ports.contains(port)))
}

/// Whether no bridge passes on frames to this group (802.1Q, 8.6.3 and table 8-1).
fn is_reserved(to: MacAddress) -> bool {
    matches!(to.0, [0x01, 0x80, 0xc2, 0, 0, 0..=0x0f])
}
