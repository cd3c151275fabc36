//! icmp6-neighbor-advertisement: neighbour advertisements enter, and the router is told what they say (RFC
//! 4861, 7.2.5). Valid ones go on to punt where the kernel has a part in their interface, since it may have
//! asked; all others are dropped.

use std::net::IpAddr;
use std::sync::Arc;

use wire::neighbour;

use super::Node;
use crate::dataplane::counters::Reason;
use crate::dataplane::graph::Context;
use crate::dataplane::icmp6::Discovery;
use crate::dataplane::vector::{Index, Packets};
use crate::events::Event;

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    for (&index, next) in vector.iter().zip(next) {
        *next = learn(context, packets, index).unwrap_or_else(|reason| packets.drop(index, reason));
    }
}

fn learn(context: &mut Context, packets: &Packets, index: Index) -> Result<Node, Reason> {
    let number = packets.arrived[index];
    let forwarding = Arc::clone(&context.forwarding);
    let interface = forwarding.interfaces.get(usize::from(number)).ok_or(Reason::InputDown)?;
    let said = Discovery::read(packets.packet(index), neighbour::ADVERTISEMENT)?;
    let address = IpAddr::from(said.target);
    if interface.has(address) {
        return Err(Reason::NeighbourDuplicate);
    }
    interface.subnet_of(address).ok_or(Reason::NeighbourSubnet)?;
    let has = |flag| said.flags & flag != 0;
    match (said.mac, has(neighbour::SOLICITED), has(neighbour::OVERRIDE)) {
        (Some(mac), true, true) if context.throttle.is_answer(number, u128::from(said.target)) => {
            context.tell(Event::Answer { interface: number, address, mac });
        }
        (Some(mac), true, true) => context.tell(Event::Neighbour { interface: number, address, mac }),
        (Some(mac), true, false) => context.tell(Event::Offer { interface: number, address, mac }),
        (Some(mac), false, true) => context.tell(Event::Announcement { interface: number, address, mac }),
        // Nobody has asked, and what is known may be better; or it says nothing new.
        _ => {}
    }
    if interface.kernel.is_some() { Ok(Node::Punt) } else { Err(Reason::NeighbourAdvertised) }
}
