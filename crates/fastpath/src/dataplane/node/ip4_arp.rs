//! ip4-arp: IPv4 packets enter whose next hop's link address is not known; they are dropped, and an ARP
//! request for it leaves to interface-output, if none did just before (RFC 1122, 2.3.2.1). Where none has been
//! answered for long, they go to ip4-icmp-error (RFC 1812, 5.2.7.1).

use std::net::{IpAddr, Ipv4Addr};

use wire::{MacAddress, arp, ethernet};

use super::Node;
use crate::clock::clocks;
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::{Hop, Interface};
use crate::dataplane::graph::Context;
use crate::dataplane::throttle::Wanted;
use crate::dataplane::vector::{Index, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    let now = clocks();
    for (&index, next) in vector.iter().zip(next) {
        let reason = ask(context, packets, index, now).err().unwrap_or(Reason::Ip4NoNeighbour);
        *next = super::refuse(packets, index, reason);
    }
}

/// Asks for the next hop of a packet.
fn ask(context: &mut Context, packets: &mut Packets, index: Index, now: u64) -> Result<(), Reason> {
    let adjacency = packets.adjacency[index] as usize;
    let hop = context.forwarding.adjacencies.get(adjacency).map(|adjacency| adjacency.hop);
    let destination = packets.packet(index).get(16..20).and_then(|bytes| bytes.first_chunk::<4>());
    let (number, target, is_gateway) = match (hop, destination) {
        (Some(Hop::Neighbour(number, IpAddr::V4(address))), _) => (number, address, true),
        (Some(Hop::Glean(number, _)), Some(&address)) => (number, Ipv4Addr::from(address), false),
        _ => return Err(Reason::OutputDown),
    };
    let interface = context.forwarding.interfaces.get(usize::from(number)).ok_or(Reason::OutputDown)?;
    let sender = interface.sender(target.into()).ok_or(Reason::ArpNoAddress)?;
    let IpAddr::V4(sender) = sender else { return Err(Reason::ArpNoAddress) };
    let address = u128::from(u32::from(target));
    let arrived = packets.arrived[index];
    if context.throttle.allows(&Wanted { interface: number, address, is_gateway, arrived }, now) {
        let frame = request(interface, sender, target);
        if let Some(made) = context.make(packets, frame.len(), number, Node::InterfaceOutput) {
            packets.bytes_mut(made).copy_from_slice(&frame);
            packets.output[made] = number;
        }
    }
    if context.throttle.is_silent(number, address, now) { Err(Reason::Ip4NoAnswer) } else { Ok(()) }
}

/// The frame of a request to all stations.
fn request(interface: &Interface, sender: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let (header, length) = interface.link_header(MacAddress::BROADCAST, ethernet::ARP);
    let request = arp::Header {
        operation: arp::REQUEST,
        sender_mac: interface.mac,
        sender,
        target_mac: MacAddress([0; 6]),
        target,
    };
    let mut frame = header.get(..usize::from(length)).unwrap_or_default().to_vec();
    frame.extend(request.emit());
    frame
}
