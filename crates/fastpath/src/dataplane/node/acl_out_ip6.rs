//! acl-plugin-out-ip6-fa: IPv6 packets enter whose adjacency leads out by an interface with an access list for what
//! leaves; those that it permits leave to ip6-rewrite.

use super::Node;
use super::acl::{self, Ip6, Output};
use crate::dataplane::counters::Reason;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    acl::process::<Ip6, Output>(context, packets, (vector, next), Reason::AclOutputIp6, |_, _, _| {
        Node::Ip6Rewrite
    });
}
