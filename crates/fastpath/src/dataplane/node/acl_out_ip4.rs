//! acl-plugin-out-ip4-fa: IPv4 packets enter whose adjacency leads out by an interface with an access list for what
//! leaves; those that it permits leave to ip4-rewrite.

use super::Node;
use super::acl::{self, Ip4, Output};
use crate::dataplane::counters::Reason;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    acl::process::<Ip4, Output>(context, packets, (vector, next), Reason::AclOutputIp4, |_, _, _| {
        Node::Ip4Rewrite
    });
}
