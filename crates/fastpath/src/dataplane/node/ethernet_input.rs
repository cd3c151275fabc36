//! ethernet-input: frames enter; packets leave to the node that understands them, with the interface that
//! they arrived at.

use wire::{MacAddress, ethernet, vlan};

use super::Node;
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::{Device, Forwarding, Interface, Role};
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Index, Packets};
use crate::subnet::Subnet;
use std::net::Ipv4Addr;

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Node]) {
    let forwarding = &context.forwarding;
    let Some(device) = forwarding.devices.get(usize::from(context.device)) else {
        return packets.drop_all(vector, Reason::InputDown, next);
    };
    let Some(interface) = forwarding.interfaces.get(usize::from(device.untagged)) else {
        return packets.drop_all(vector, Reason::InputDown, next);
    };
    if interface.up && interface.role != Role::Router && device.tagged.is_empty() {
        return all_to_layer_2(context, device.untagged, packets, vector, next);
    }
    let plain = interface.up && interface.role == Role::Router;
    let mac = number(&interface.mac.0);
    let (mut count, mut bytes) = (0, 0);
    for (&index, next) in vector.iter().zip(next) {
        let frame = packets.bytes(index);
        let header = frame.first_chunk::<{ ethernet::LENGTH }>();
        let node =
            header.filter(|header| plain && header.first_chunk().map(number) == Some(mac)).and_then(carried);
        *next = if let Some(node) = node {
            count += 1;
            bytes += frame.len() as u64;
            packets.arrive(index, device.untagged, ethernet::LENGTH as u8);
            node
        } else {
            other(context, forwarding, device, packets, index)
        };
    }
    let counters = context.counters.interface(device.untagged);
    counters.received.add(count);
    counters.received_bytes.add(bytes);
}

/// All frames of a device go to layer 2: nothing is read of them but their lengths.
fn all_to_layer_2(
    context: &Context,
    interface: u16,
    packets: &mut Packets,
    vector: &[Index],
    next: &mut [Node],
) {
    let (mut bytes, mut shortest) = (0, usize::MAX);
    for &index in vector {
        let length = packets.frame(index).len();
        bytes += length as u64;
        shortest = shortest.min(length);
        packets.arrive(index, interface, ethernet::LENGTH as u8);
    }
    next.fill(Node::L2Input);
    if shortest < ethernet::LENGTH {
        for (&index, next) in vector.iter().zip(next) {
            if packets.frame(index).len() < ethernet::LENGTH {
                *next = packets.drop(index, Reason::Runt);
            }
        }
    }
    let counters = context.counters.interface(interface);
    counters.received.add(vector.len() as u64);
    counters.received_bytes.add(bytes);
}

/// The node of the packets that most frames carry.
#[inline(always)]
fn carried(header: &[u8; ethernet::LENGTH]) -> Option<Node> {
    match u16::from_be_bytes([header[12], header[13]]) {
        ethernet::IPV4 => Some(Node::Ip4Input),
        ethernet::IPV6 => Some(Node::Ip6Input),
        _ => None,
    }
}

/// An address as a number.
#[inline(always)]
fn number(mac: &[u8; 6]) -> u64 {
    let mut word = [0; 8];
    word[..6].copy_from_slice(mac);
    u64::from_le_bytes(word)
}

/// A frame that is not what most are.
#[cold]
#[inline(never)]
fn other(
    context: &Context,
    forwarding: &Forwarding,
    device: &Device,
    packets: &mut Packets,
    index: Index,
) -> Node {
    let found = match read(packets.bytes(index), device) {
        // Frames that no VLAN of the device claims are the main interface's, tags and all, where it does
        // not look beyond layer 2.
        Err(Reason::UnknownVlan) if forwarding.is_layer_2(device.untagged) => {
            Ok(Found { interface: device.untagged, network: ethernet::LENGTH as u8, carries: 0 })
        }
        found => found,
    };
    let (number, network) = found.map_or((device.untagged, 0), |found| (found.interface, found.network));
    packets.arrive(index, number, network);
    let counters = context.counters.interface(number);
    counters.received.add(1);
    counters.received_bytes.add(packets.bytes(index).len() as u64);
    let decided = found.and_then(|found| {
        let interface = forwarding.interfaces.get(usize::from(number)).ok_or(Reason::InputDown)?;
        decide(interface, packets.bytes(index), &found)
    });
    decided.unwrap_or_else(|reason| packets.drop(index, reason))
}

/// What a frame's header says.
#[derive(Clone, Copy)]
struct Found {
    interface: u16,
    network: u8,
    /// An EtherType.
    carries: u16,
}

fn read(frame: &[u8], device: &Device) -> Result<Found, Reason> {
    let header = ethernet::Header::parse(frame).ok_or(Reason::Runt)?;
    let carries = header.ethertype;
    if carries != vlan::CUSTOMER && carries != vlan::SERVICE {
        return Ok(Found { interface: device.untagged, network: ethernet::LENGTH as u8, carries });
    }
    let tag = frame.get(ethernet::LENGTH..).and_then(vlan::Tag::parse).ok_or(Reason::Runt)?;
    // A tag of number 0 has a priority alone (IEEE 802.1Q, 9.6).
    let interface = if tag.id == 0 { Some(device.untagged) } else { device.tagged(tag.id) };
    Ok(Found {
        interface: interface.ok_or(Reason::UnknownVlan)?,
        network: (ethernet::LENGTH + vlan::LENGTH) as u8,
        carries: tag.ethertype,
    })
}

fn decide(interface: &Interface, frame: &[u8], found: &Found) -> Result<Node, Reason> {
    if !interface.up {
        return Err(Reason::InputDown);
    }
    if interface.role != Role::Router {
        return Ok(Node::L2Input);
    }
    let to = frame.first_chunk().map(|mac| MacAddress(*mac)).ok_or(Reason::Runt)?;
    let group = to.0[0] & 1 == 1;
    if to != interface.mac && !group {
        return Err(Reason::OtherStation);
    }
    match found.carries {
        ethernet::IPV4 if group && !is_for_several(interface, frame, found) => Err(Reason::Ip4LinkBroadcast),
        ethernet::IPV4 => Ok(Node::Ip4Input),
        ethernet::IPV6 => Ok(Node::Ip6Input),
        ethernet::ARP => Ok(Node::ArpInput),
        _ => Err(Reason::UnknownType),
    }
}

/// Whether an IPv4 packet is for a group or for all stations of one of the interface's subnets; what is too
/// short to say is not held against it here.
fn is_for_several(interface: &Interface, frame: &[u8], found: &Found) -> bool {
    let address = frame.get(usize::from(found.network) + 16..).and_then(|bytes| bytes.first_chunk::<4>());
    address.is_none_or(|address| {
        let address = Ipv4Addr::from(*address);
        let of_subnet = |subnet: &Subnet| subnet.broadcast() == Some(address.into());
        address.is_multicast() || address.is_broadcast() || interface.addresses.iter().any(of_subnet)
    })
}
