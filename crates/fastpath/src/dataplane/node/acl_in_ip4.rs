//! acl-plugin-in-ip4-fa: IPv4 packets enter that arrived at an interface with an access list for these; those that
//! it permits leave to ip4-lookup, or to punt where they have a router alert.

use super::acl::{self, Input, Ip4};
use super::{Node, ip4_input};
use crate::dataplane::counters::Reason;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    acl::process::<Ip4, Input>(context, packets, (vector, next), Reason::AclInputIp4, ip4_input::onward);
}
