//! What a note of a trace means, in words: one function for each kind of node.

use std::fmt::Write;

use wire::{ethernet, ipv4, ipv6, vlan};

use super::Note;
use crate::dataplane::forwarding::Forwarding;
use crate::dataplane::node::Node;

/// What a node saw of a packet, and what it decided.
pub(super) fn saw(note: &Note, forwarding: &Forwarding) -> String {
    let name = |interface: u16| name(forwarding, interface);
    let refused = note.next == Some(Node::ErrorDrop);
    match note.node {
        Node::DeviceInput => {
            let device = forwarding.devices.get(usize::from(note.device));
            format!(
                "{}, {} bytes",
                device.map_or_else(String::new, |device| name(device.untagged)),
                note.length
            )
        }
        Node::WorkerHandoff if refused => "handoff queue of its flow's worker full".into(),
        Node::WorkerHandoff if note.next.is_none() => "to the worker of its flow".into(),
        Node::WorkerHandoff => "of a flow of this worker".into(),
        Node::EthernetInput | Node::L2Input | Node::L2Learn => {
            format!("{}: {}", name(note.arrived), link(note))
        }
        Node::L2Fwd | Node::L2Flood if refused => link(note),
        Node::L2Fwd if note.next == Some(Node::L2Flood) => {
            format!("{}: to all ports of {}", link(note), bridge(note, forwarding))
        }
        Node::L2Fwd => format!("{}: in {} at {}", link(note), bridge(note, forwarding), name(note.output)),
        Node::L2Flood => format!("this one to {}", name(note.output)),
        Node::Ip4Lookup | Node::Ip6Lookup if refused => network(note),
        Node::Ip4Lookup | Node::Ip6Lookup => {
            format!("fib 0, adjacency {}: {}", note.adjacency, network(note))
        }
        Node::Ip4Rewrite | Node::Ip6Rewrite if note.next == Some(Node::InterfaceOutput) => {
            format!("adjacency {}, {}: {}; {}", note.adjacency, name(note.output), link(note), network(note))
        }
        Node::L2Output => format!("{}: {}", name(note.output), link(note)),
        Node::InterfaceOutput => name(note.output),
        Node::Tx if refused => format!("{}: not taken", name(note.output)),
        Node::Tx => format!("{}, {} bytes", name(note.output), note.length),
        Node::ErrorDrop => format!("{}: {}", note.reason.node().name(), note.reason.text()),
        Node::ArpInput => link(note),
        _ => network(note),
    }
}

fn name(forwarding: &Forwarding, interface: u16) -> String {
    let found = forwarding.interfaces.get(usize::from(interface));
    found.map_or_else(|| format!("interface {interface}"), |interface| interface.name.clone())
}

fn bridge(note: &Note, forwarding: &Forwarding) -> String {
    let found = forwarding.bridge(note.arrived);
    found.map_or_else(|| "no bridge".to_owned(), |bridge| format!("bridge {}", bridge.domain))
}

fn bytes(note: &Note) -> &[u8] {
    note.bytes.get(..note.length).unwrap_or(&note.bytes)
}

/// Addresses, tags and what the frame carries.
fn link(note: &Note) -> String {
    let bytes = bytes(note);
    let Some(header) = ethernet::Header::parse(bytes) else { return format!("{} bytes", note.length) };
    let mut text = format!("{} -> {}", header.source, header.destination);
    let (mut carries, mut at) = (header.ethertype, ethernet::LENGTH);
    while matches!(carries, vlan::CUSTOMER | vlan::SERVICE) {
        let Some(tag) = bytes.get(at..).and_then(vlan::Tag::parse) else { break };
        let _ = write!(text, ", VLAN {} priority {}", tag.id, tag.priority);
        (carries, at) = (tag.ethertype, at + vlan::LENGTH);
    }
    let _ = match carries {
        ethernet::IPV4 => write!(text, ", IPv4"),
        ethernet::IPV6 => write!(text, ", IPv6"),
        0x0806 => write!(text, ", ARP"),
        other => write!(text, ", type 0x{other:04x}"),
    };
    text
}

/// What an IPv4 or IPv6 header says, and the ports behind it.
fn network(note: &Note) -> String {
    let packet = bytes(note).get(note.network..).unwrap_or_default();
    match packet.first().map(|first| (first >> 4, first & 0xf)) {
        Some((4, words)) => {
            let Some(header) = ipv4::Header::parse(packet) else { return "truncated".to_owned() };
            let ports = packet.get(usize::from(words) * 4..).unwrap_or_default();
            let (from, to) = ends(header.protocol, ports);
            format!(
                "{} {}{from} -> {}{to}, ttl {}, length {}",
                protocol(header.protocol),
                header.source,
                header.destination,
                header.ttl,
                header.total_length
            )
        }
        Some((6, _)) => {
            let Some(header) = ipv6::Header::parse(packet) else { return "truncated".to_owned() };
            let (from, to) = ends(header.next_header, packet.get(ipv6::LENGTH..).unwrap_or_default());
            format!(
                "{} {}{from} -> {}{to}, hop limit {}, payload {}",
                protocol(header.next_header),
                header.source,
                header.destination,
                header.hop_limit,
                header.payload_length
            )
        }
        _ => "no IP header".to_owned(),
    }
}

fn protocol(number: u8) -> String {
    match number {
        ipv4::ICMP => "ICMP".to_owned(),
        ipv4::TCP => "TCP".to_owned(),
        ipv4::UDP => "UDP".to_owned(),
        ipv6::ICMP => "ICMPv6".to_owned(),
        other => format!("protocol {other}"),
    }
}

/// The ports, to be written after addresses.
fn ends(protocol: u8, header: &[u8]) -> (String, String) {
    match (protocol, header) {
        (ipv4::TCP | ipv4::UDP, &[a, b, c, d, ..]) => {
            let port = |high, low| format!(" port {}", u16::from_be_bytes([high, low]));
            (port(a, b), port(c, d))
        }
        _ => (String::new(), String::new()),
    }
}
