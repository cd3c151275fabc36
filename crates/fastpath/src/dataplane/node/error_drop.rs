//! error-drop: packets enter, and are counted under the reason why they go no further.

use super::Node;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], _: &mut [Node]) {
    let counters = &context.counters;
    for &index in vector {
        counters.reason(packets.reason[index]).add(1);
        counters.interface(packets.arrived[index]).dropped.add(1);
    }
}
