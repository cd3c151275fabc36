//! acl-plugin-in-ip6-fa: IPv6 packets enter that arrived at an interface with an access list for these; those that
//! it permits leave to ip6-lookup, and so does neighbour discovery that no rule matches.

use super::Node;
use super::acl::{self, Input, Ip6};
use crate::dataplane::counters::Reason;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    acl::process::<Ip6, Input>(context, packets, (vector, next), Reason::AclInputIp6, |_, _, _| {
        Node::Ip6Lookup
    });
}
