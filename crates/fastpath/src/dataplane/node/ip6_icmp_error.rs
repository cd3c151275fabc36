//! ip6-icmp-error: IPv6 packets that go no further enter, with the reason, and are dropped; an ICMPv6 error
//! about each leaves to its source, by ip6-lookup or back over its link, unless there may be none, or there
//! were too many (RFC 4443, 2.4).

use std::net::{IpAddr, Ipv6Addr};

use wire::{ethernet, ipv6};

use super::{LIFE, Node};
use crate::clock::clocks;
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::{Forwarding, Interface};
use crate::dataplane::graph::Context;
use crate::dataplane::icmp6::Problem;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    let now = clocks();
    for &index in vector {
        report(context, packets, index, now);
    }
    next.fill(Node::ErrorDrop);
}

/// Has an error about a packet leave, if it may.
fn report(context: &mut Context, packets: &mut Packets, index: Index, now: u64) -> Option<()> {
    let adjacency = context.forwarding.adjacencies.get(packets.adjacency[index] as usize);
    let problem = Problem::of(packets.reason[index], adjacency.map_or(0, |found| found.mtu))?;
    let to_group = packets.bytes(index).first()? & 1 == 1;
    let packet = packets.packet(index);
    let header = ipv6::Header::parse(packet)?;
    // Without what the link put behind the packet.
    let about = packet.get(..ipv6::LENGTH + usize::from(header.payload_length))?;
    if !problem.may_be_told(&header, about.get(ipv6::LENGTH..).unwrap_or_default(), to_group) {
        return None;
    }
    let number = packets.arrived[index];
    let interface = context.forwarding.interfaces.get(usize::from(number))?;
    let source = source(&context.forwarding, interface, header.source)?;
    let on_link = header.source.is_unicast_link_local();
    let (link, link_length) = interface.link_header(super::sender(packets, index).ok()?, ethernet::IPV6);
    let is_too_big = packets.reason[index] == Reason::Ip6TooBig;
    if !context.errors.allow(number, is_too_big, now) {
        return None;
    }
    let mut error = vec![0; Problem::length(about.len())];
    let (life, node) = if on_link { (LIFE - 1, Node::InterfaceOutput) } else { (LIFE, Node::Ip6Lookup) };
    problem.write(&mut error, (source, header.source), life, about);
    let link_length = usize::from(link_length);
    let made = context.make(packets, link_length + error.len(), number, node)?;
    packets.set_network(made, link_length as u8);
    packets.packet_mut(made).copy_from_slice(&error);
    super::write_header(packets, made, &link, link_length, number).ok()
}

/// Our address that an error to a source comes from: one that the source can answer to (RFC 4443, 2.2).
fn source(forwarding: &Forwarding, interface: &Interface, to: Ipv6Addr) -> Option<Ipv6Addr> {
    if to.is_unicast_link_local() {
        return Some(ipv6::link_local(interface.mac));
    }
    // Those of its interface come first, and of these the one on its subnet.
    let subnets = interface.addresses.iter().filter(|subnet| subnet.contains(to.into()));
    let others = forwarding.interfaces.iter().flat_map(|interface| &interface.addresses);
    let mut addresses = subnets.chain(&interface.addresses).chain(others).map(|subnet| subnet.address);
    addresses.find_map(|address| match address {
        IpAddr::V6(address) if !address.is_unicast_link_local() => Some(address),
        _ => None,
    })
}
