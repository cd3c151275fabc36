//! ip4-local: IPv4 packets for the router's own addresses enter, and are dropped.

use super::Node;
use crate::counters::Reason;
use crate::graph::Context;
use crate::vector::{Index, Packets};

pub(super) fn process(_: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    packets.drop_all(vector, Reason::Ip4Unserved, next);
}
