//! arp-input: ARP packets for IPv4 enter (RFC 826); requests for our addresses leave as replies to
//! interface-output, replies to us go to punt, as the kernel may have asked, and all others are dropped. The
//! router is told what they say of neighbours.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use wire::{arp, ethernet};

use super::Node;
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::Interface;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};
use crate::events::Event;

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    for (&index, next) in vector.iter().zip(next) {
        *next = answer(context, packets, index).unwrap_or_else(|reason| packets.drop(index, reason));
    }
}

/// Makes a reply of a request for one of our addresses; says where a packet goes, or why it ends here.
fn answer(context: &mut Context, packets: &mut Packets, index: Index) -> Result<Node, Reason> {
    let number = packets.arrived[index];
    let forwarding = Arc::clone(&context.forwarding);
    let interface = forwarding.interfaces.get(usize::from(number)).ok_or(Reason::InputDown)?;
    let packet = packets.packet(index);
    if packet.len() < arp::LENGTH {
        return Err(Reason::ArpTruncated);
    }
    let packet = arp::Header::parse(packet).ok_or(Reason::ArpFormat)?;
    let for_us = interface.has(packet.target.into());
    if !matches!(packet.operation, arp::REQUEST | arp::REPLY) {
        return Err(Reason::ArpFormat);
    }
    // A host that probes whether an address is taken has none yet, so that there is nothing to learn
    // (RFC 5227, 2.1.1).
    if packet.sender != Ipv4Addr::UNSPECIFIED || packet.operation != arp::REQUEST {
        learn(context, interface, number, &packet, for_us)?;
    }
    match (for_us, packet.operation) {
        (true, arp::REQUEST) => reply(packets, index, number, interface, &packet),
        (true, _) if interface.kernel.is_some() => Ok(Node::Punt),
        (true, _) => Err(Reason::ArpReply),
        (false, _) if packet.sender == packet.target => Err(Reason::ArpAnnouncement),
        (false, _) => Err(Reason::ArpOthers),
    }
}

/// Tells the router what a packet says of its sender. Only those who have to do with us are noted if they
/// are not known yet (RFC 826, "Packet Reception").
fn learn(
    context: &mut Context,
    interface: &Interface,
    number: u16,
    packet: &arp::Header,
    for_us: bool,
) -> Result<(), Reason> {
    let (address, mac) = (IpAddr::from(packet.sender), packet.sender_mac);
    if mac.0[0] & 1 == 1 || mac.0 == [0; 6] {
        return Err(Reason::ArpSender);
    }
    if interface.has(address) {
        return Err(Reason::ArpDuplicate);
    }
    let subnet = interface.subnet_of(address).ok_or(Reason::ArpSubnet)?;
    if !subnet.is_host(address) {
        return Err(Reason::ArpSender);
    }
    let was_asked = for_us
        && packet.operation == arp::REPLY
        && context.throttle.is_answer(number, u128::from(u32::from(packet.sender)));
    context.tell(match for_us {
        true if was_asked => Event::Answer { interface: number, address, mac },
        true => Event::Neighbour { interface: number, address, mac },
        false => Event::Announcement { interface: number, address, mac },
    });
    Ok(())
}

/// Writes the reply over the request, and cuts what follows it: it may be longer than the MTU. The reply goes back
/// where the request came from.
fn reply(
    packets: &mut Packets,
    index: Index,
    number: u16,
    interface: &Interface,
    request: &arp::Header,
) -> Result<Node, Reason> {
    let reply = arp::Header {
        operation: arp::REPLY,
        sender_mac: interface.mac,
        sender: request.target,
        target_mac: request.sender_mac,
        target: request.sender,
    };
    if let Some(place) = packets.packet_mut(index).first_chunk_mut() {
        *place = reply.emit();
    }
    packets.trim(index, arp::LENGTH);
    let (header, length) = interface.link_header(request.sender_mac, ethernet::ARP);
    super::write_header(packets, index, &header, usize::from(length), number)?;
    Ok(Node::InterfaceOutput)
}
