//! ip6-discover-neighbor: IPv6 packets enter whose next hop's link address is not known; they are dropped,
//! and a solicitation for it leaves to interface-output (RFC 4861, 7.2.2), if none did just before. Where it has
//! not been answered for long, they go to ip6-icmp-error.

use std::net::{IpAddr, Ipv6Addr};

use wire::{ethernet, ipv6};

use super::Node;
use crate::clock::clocks;
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::Hop;
use crate::dataplane::graph::Context;
use crate::dataplane::icmp6;
use crate::dataplane::throttle::Wanted;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    let now = clocks();
    for (&index, next) in vector.iter().zip(next) {
        *next = match ask(context, packets, index, now) {
            Ok(()) => packets.drop(index, Reason::Ip6NoNeighbour),
            Err(reason) => super::refuse_ip6(packets, index, reason),
        };
    }
}

/// Asks for the next hop of a packet.
fn ask(context: &mut Context, packets: &mut Packets, index: Index, now: u64) -> Result<(), Reason> {
    let adjacency = packets.adjacency[index] as usize;
    let hop = context.forwarding.adjacencies.get(adjacency).map(|adjacency| adjacency.hop);
    let header = ipv6::Header::parse(packets.packet(index)).ok_or(Reason::Ip6Truncated)?;
    let (number, target, is_gateway) = match hop {
        Some(Hop::Neighbour(number, IpAddr::V6(address))) => (number, address, true),
        Some(Hop::Glean(number, _)) => (number, header.destination, false),
        _ => return Err(Reason::OutputDown),
    };
    // What may not go there need not know the way (RFC 4291, 2.5.6).
    if header.source.is_unicast_link_local() {
        return Err(Reason::Ip6BeyondScope);
    }
    let (address, arrived) = (u128::from(target), packets.arrived[index]);
    if context.throttle.allows(&Wanted { interface: number, address, is_gateway, arrived }, now) {
        // Without room there is none this time.
        let _ = solicit(context, packets, number, target);
    }
    if context.throttle.is_silent(number, address, now) { Err(Reason::Ip6NoAnswer) } else { Ok(()) }
}

/// Has a solicitation leave by an interface.
fn solicit(context: &mut Context, packets: &mut Packets, number: u16, target: Ipv6Addr) -> Option<()> {
    let interface = context.forwarding.interfaces.get(usize::from(number))?;
    let to = ipv6::group_mac(ipv6::solicited_node(target));
    let (header, length) = interface.link_header(to, ethernet::IPV6);
    let (mac, length) = (interface.mac, usize::from(length));
    let made = context.make(packets, length + icmp6::NEIGHBOUR_LENGTH, number, Node::InterfaceOutput)?;
    packets.set_network(made, length as u8);
    icmp6::solicit(packets.packet_mut(made), target, (ipv6::link_local(mac), mac));
    super::write_header(packets, made, &header, length, number).ok()
}
