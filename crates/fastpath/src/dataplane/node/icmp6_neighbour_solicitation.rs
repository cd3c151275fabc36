//! icmp6-neighbor-solicitation: neighbour solicitations enter (RFC 4861, 7.2.3); those for our addresses
//! leave as advertisements to interface-output (7.2.4), all others are dropped. The router is told who
//! asked.

use std::net::IpAddr;
use std::sync::Arc;

use wire::{ethernet, ipv6, neighbour};

use super::Node;
use crate::dataplane::counters::Reason;
use crate::dataplane::graph::Context;
use crate::dataplane::icmp6::{self, Discovery};
use crate::dataplane::vector::{Index, Packets};
use crate::events::Event;

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    for (&index, next) in vector.iter().zip(next) {
        *next = match answer(context, packets, index) {
            Ok(()) => Node::InterfaceOutput,
            Err(reason) => packets.drop(index, reason),
        };
    }
}

fn answer(context: &mut Context, packets: &mut Packets, index: Index) -> Result<(), Reason> {
    let number = packets.arrived[index];
    let forwarding = Arc::clone(&context.forwarding);
    let interface = forwarding.interfaces.get(usize::from(number)).ok_or(Reason::InputDown)?;
    let asked = Discovery::read(packets.packet(index), neighbour::SOLICITATION)?;
    let address = IpAddr::from(asked.source);
    if !interface.has(asked.target.into()) {
        return Err(Reason::NeighbourOthers);
    }
    if interface.has(address) {
        return Err(Reason::NeighbourDuplicate);
    }
    if let Some(mac) = asked.mac
        && interface.subnet_of(address).is_some()
    {
        context.tell(Event::Neighbour { interface: number, address, mac });
    }
    let to = if asked.source.is_unspecified() {
        ipv6::group_mac(ipv6::ALL_NODES)
    } else {
        asked.mac.map_or_else(|| super::sender(packets, index), Ok)?
    };
    let length = packets.network(index) + icmp6::NEIGHBOUR_LENGTH;
    if !packets.resize(index, length) {
        return Err(Reason::NoRoom);
    }
    icmp6::advertise(packets.packet_mut(index), &asked, interface.mac);
    let (header, length) = interface.link_header(to, ethernet::IPV6);
    super::write_header(packets, index, &header, usize::from(length), number)
}
