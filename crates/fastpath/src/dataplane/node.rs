//! The nodes of the graph. Each takes a vector of packets and says of each to which node it goes next.
//!
//! ```text
//! device-input ─► worker-handoff ─► ethernet-input, where flows are spread over workers; otherwise
//! device-input ─► ethernet-input ─► ip4-input ─► ip4-lookup ─► ip4-rewrite ─► interface-output ─► tx
//!                        │                            │                ├─► ip4-frag, and back to ip4-rewrite
//!                        │                            ├────────────────┴─► ip4-icmp-error, and back to ip4-lookup
//!                        │                            ├─► ip4-arp ─► interface-output
//!                        │                            └─► ip4-local ─► punt, or back to ip4-lookup
//!                        ├─► arp-input ─► interface-output
//!                        ├─► ip6-input ─► ip6-lookup ─► ip6-rewrite ─► interface-output
//!                        │                            │             └─► ip6-icmp-error ─► ip6-lookup
//!                        │                            ├─► ip6-discover-neighbor ─► interface-output
//!                        │                            └─► ip6-local ─► icmp6-neighbor-…, or as ip4-local
//!                        ├─► l2-input ─► l2-learn ─► l2-fwd ─► l2-flood ─► l2-output ─► tx
//!                        └───────────────┴────────────┴─────────────┴────────────────┴─► error-drop
//!
//! ip4-input ─► acl-plugin-in-ip4-fa ─► ip4-lookup ─► acl-plugin-out-ip4-fa ─► ip4-rewrite, and the same of IPv6,
//! where interfaces have access lists: packets of others never come to these nodes
//! ```
//!
//! A node's file has one public function, `process`. The nodes stand in the order in which packets go
//! through them, so that a vector that reaches a node holds all that is on its way there; only packets
//! that nodes make go back.

mod acl;
mod acl_in_ip4;
mod acl_in_ip6;
mod acl_out_ip4;
mod acl_out_ip6;
mod arp_input;
mod device_input;
pub mod drawing;
mod error_drop;
mod ethernet_input;
mod icmp6_neighbour_advertisement;
mod icmp6_neighbour_solicitation;
mod interface_output;
mod ip4_arp;
mod ip4_frag;
mod ip4_icmp_error;
mod ip4_input;
mod ip4_local;
mod ip4_lookup;
mod ip4_rewrite;
mod ip6_discover_neighbour;
mod ip6_icmp_error;
mod ip6_input;
mod ip6_local;
mod ip6_lookup;
mod ip6_rewrite;
mod l2_flood;
mod l2_fwd;
mod l2_input;
mod l2_learn;
mod l2_output;
mod punt;
mod tx;
mod worker_handoff;

use std::net::IpAddr;

use wire::{MacAddress, ethernet};

use crate::clock::clocks;
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::{Adjacency, Interface, LINK_HEADER};
use crate::dataplane::graph::Context;
use crate::dataplane::icmp6;
use crate::dataplane::vector::{Index, Packets};
use crate::events::Event;

/// What a node does with the packets of a vector: it writes to `next`, which is as long, where each goes.
/// Of a node that ends the way of its packets, `next` is not read.
type Process = fn(&mut Context, &mut Packets, &[Index], &mut [Node]);

macro_rules! nodes {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal, $process:expr, [$($next:ident),*];)+) => {
        /// A node.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Node {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Node {
            /// All of them, in the order in which packets go through them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// As users of VPP know it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// The nodes that packets may go to from here.
            #[must_use]
            pub const fn next(self) -> &'static [Self] {
                match self { $(Self::$name => &[$(Self::$next),*],)+ }
            }

            #[inline(always)]
            pub(crate) fn process(
                self, context: &mut Context, packets: &mut Packets, vector: &[Index], next: &mut [Self],
            ) {
                let process: Process = match self { $(Self::$name => $process,)+ };
                process(context, packets, vector, next);
            }
        }
    };
}

nodes! {
    /// Takes frames from a device.
    DeviceInput = "device-input", device_input::process, [WorkerHandoff, EthernetInput];
    /// Hands frames to the workers that their flows belong to.
    WorkerHandoff = "worker-handoff", worker_handoff::process, [EthernetInput, ErrorDrop];
    /// Tells what a frame carries, and to whom.
    EthernetInput = "ethernet-input", ethernet_input::process, [L2Input, ArpInput, Ip4Input, Ip6Input, ErrorDrop];
    /// Tells frames of cross connects from those of bridges.
    L2Input = "l2-input", l2_input::process, [L2Learn, L2Output, ErrorDrop];
    /// Notes where the senders of a bridge's frames are.
    L2Learn = "l2-learn", l2_learn::process, [L2Fwd];
    /// Finds the port of a frame's destination.
    L2Fwd = "l2-fwd", l2_fwd::process, [L2Flood, L2Output, ErrorDrop];
    /// Sends a frame to all ports.
    L2Flood = "l2-flood", l2_flood::process, [L2Output, ErrorDrop];
    /// Gives a frame the tag of the interface that it leaves by.
    L2Output = "l2-output", l2_output::process, [Tx, ErrorDrop];
    /// Answers those who ask for our link address, and learns theirs.
    ArpInput = "arp-input", arp_input::process, [InterfaceOutput, Punt, ErrorDrop];
    /// Checks the IPv4 header.
    Ip4Input = "ip4-input", ip4_input::process, [AclInIp4, Ip4Lookup, Punt, ErrorDrop];
    /// Holds packets against the access list of the interface that they arrived at.
    AclInIp4 = "acl-plugin-in-ip4-fa", acl_in_ip4::process, [Ip4Lookup, Punt, ErrorDrop];
    /// Finds the next hop.
    Ip4Lookup = "ip4-lookup", ip4_lookup::process,
        [AclOutIp4, Ip4Local, Ip4Arp, Ip4Rewrite, Ip4IcmpError, Punt, ErrorDrop];
    /// Holds packets against the access list of the interface that they are to leave by.
    AclOutIp4 = "acl-plugin-out-ip4-fa", acl_out_ip4::process, [Ip4Rewrite, ErrorDrop];
    /// Takes packets for the router itself.
    Ip4Local = "ip4-local", ip4_local::process, [Ip4Lookup, Punt, ErrorDrop];
    /// Asks for the link address of a next hop.
    Ip4Arp = "ip4-arp", ip4_arp::process, [InterfaceOutput, Ip4IcmpError, ErrorDrop];
    /// Cuts packets that are longer than their next hop takes.
    Ip4Frag = "ip4-frag", ip4_frag::process, [Ip4Rewrite, ErrorDrop];
    /// Counts down the time to live, and writes the link header.
    Ip4Rewrite = "ip4-rewrite", ip4_rewrite::process, [InterfaceOutput, Ip4Frag, Ip4IcmpError, ErrorDrop];
    /// Tells senders why their packets go no further.
    Ip4IcmpError = "ip4-icmp-error", ip4_icmp_error::process, [Ip4Lookup, ErrorDrop];
    /// Checks the IPv6 header.
    Ip6Input = "ip6-input", ip6_input::process, [AclInIp6, Ip6Lookup, ErrorDrop];
    /// Holds packets against the access list of the interface that they arrived at.
    AclInIp6 = "acl-plugin-in-ip6-fa", acl_in_ip6::process, [Ip6Lookup, ErrorDrop];
    /// Finds the next hop.
    Ip6Lookup = "ip6-lookup", ip6_lookup::process,
        [AclOutIp6, Ip6Local, Ip6DiscoverNeighbour, Ip6Rewrite, Ip6IcmpError, ErrorDrop];
    /// Holds packets against the access list of the interface that they are to leave by.
    AclOutIp6 = "acl-plugin-out-ip6-fa", acl_out_ip6::process, [Ip6Rewrite, ErrorDrop];
    /// Takes packets for the router itself, and answers echoes.
    Ip6Local = "ip6-local", ip6_local::process,
        [Icmp6NeighbourSolicitation, Icmp6NeighbourAdvertisement, Ip6Lookup, InterfaceOutput, Punt, ErrorDrop];
    /// Answers those who ask for our link address, and learns theirs.
    Icmp6NeighbourSolicitation = "icmp6-neighbor-solicitation", icmp6_neighbour_solicitation::process,
        [InterfaceOutput, ErrorDrop];
    /// Learns neighbours' link addresses.
    Icmp6NeighbourAdvertisement = "icmp6-neighbor-advertisement", icmp6_neighbour_advertisement::process,
        [Punt, ErrorDrop];
    /// Asks for the link address of a next hop.
    Ip6DiscoverNeighbour = "ip6-discover-neighbor", ip6_discover_neighbour::process,
        [InterfaceOutput, Ip6IcmpError, ErrorDrop];
    /// Counts down the hop limit, and writes the link header.
    Ip6Rewrite = "ip6-rewrite", ip6_rewrite::process, [InterfaceOutput, Ip6IcmpError, ErrorDrop];
    /// Tells sources why their packets went no further.
    Ip6IcmpError = "ip6-icmp-error", ip6_icmp_error::process, [Ip6Lookup, InterfaceOutput, ErrorDrop];
    /// Looks whether the interface can send.
    InterfaceOutput = "interface-output", interface_output::process, [Tx, ErrorDrop];
    /// Hands frames to their devices.
    Tx = "tx", tx::process, [ErrorDrop];
    /// Hands packets to the kernel.
    Punt = "punt", punt::process, [ErrorDrop];
    /// Counts why packets go no further.
    ErrorDrop = "error-drop", error_drop::process, [];
}

impl Node {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Whether the way of its packets ends there, so that it writes nothing to `next`; of those that go on it
    /// says so beside.
    #[must_use]
    pub const fn ends(self) -> bool {
        matches!(self, Self::WorkerHandoff | Self::Tx | Self::Punt | Self::ErrorDrop)
    }
}

/// The time to live of the router's own packets (RFC 1700, "IP TIME TO LIVE"), and one more, which
/// ip4-rewrite counts down.
const LIFE: u8 = 65;

/// The station that sent a frame.
fn sender(packets: &Packets, index: Index) -> Result<MacAddress, Reason> {
    let header = ethernet::Header::parse(packets.bytes(index)).ok_or(Reason::Runt)?;
    if header.source.0[0] & 1 == 0 { Ok(header.source) } else { Err(Reason::GroupSource) }
}

/// The length that an IPv4 header says its packet has; 0 where it ends before it says so.
fn ip4_length(packet: &[u8]) -> usize {
    let bytes = packet.get(2..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| usize::from(u16::from_be_bytes(*bytes)))
}

/// Sends an IPv6 packet back to the station that its frame came from.
fn send_back(packets: &mut Packets, index: Index, interface: &Interface) -> Result<Node, Reason> {
    let (header, length) = interface.link_header(sender(packets, index)?, ethernet::IPV6);
    let number = packets.arrived[index];
    write_header(packets, index, &header, usize::from(length), number)?;
    Ok(Node::InterfaceOutput)
}

/// Where a packet of IPv6 goes that goes no further for `reason`.
#[cold]
fn refuse_ip6(packets: &mut Packets, index: Index, reason: Reason) -> Node {
    let node = packets.drop(index, reason);
    if icmp6::Problem::of(reason, 0).is_some() { Node::Ip6IcmpError } else { node }
}

/// Where a packet of IPv4 goes that goes no further for `reason`.
#[cold]
fn refuse(packets: &mut Packets, index: Index, reason: Reason) -> Node {
    let dropped = packets.drop(index, reason);
    ip4_icmp_error::message(reason).map_or(dropped, |_| Node::Ip4IcmpError)
}

/// Has each packet rewritten for its adjacency, and go on to interface-output, or where `turn_away` says.
#[inline(always)]
fn rewrite_each(
    context: &Context,
    packets: &mut Packets,
    (vector, next): (&[Index], &mut [Node]),
    rewrite: impl Fn(&mut Packets, Index, &Adjacency) -> Result<(), Reason>,
    turn_away: impl Fn(&mut Packets, Index, Reason) -> Node,
) {
    let adjacencies = &context.forwarding.adjacencies;
    for (&index, next) in vector.iter().zip(next) {
        let found = adjacencies.get(packets.adjacency[index] as usize);
        *next = match found.ok_or(Reason::OutputDown).and_then(|found| rewrite(packets, index, found)) {
            Ok(()) => Node::InterfaceOutput,
            Err(reason) => turn_away(packets, index, reason),
        };
    }
}

/// Tells the router of one packet of a vector that was rewritten, where the kernel can forward the next ones to its
/// `destination` by itself. Another place of the vector is looked at each time, so that none goes unseen for ever.
#[inline(always)]
fn tell_forwarded(
    context: &mut Context,
    packets: &Packets,
    forwarded: (&[Index], &[Node]),
    destination: impl Fn(&[u8]) -> Option<IpAddr>,
) {
    if context.forwarding.has_shortcuts(context.device) {
        tell_one(context, packets, forwarded, destination);
    }
}

#[cold]
fn tell_one(
    context: &mut Context,
    packets: &Packets,
    (vector, next): (&[Index], &[Node]),
    destination: impl Fn(&[u8]) -> Option<IpAddr>,
) {
    let now = clocks();
    if vector.is_empty() || !context.forwarded.take(now) {
        return;
    }
    let at = now as usize % vector.len();
    let (Some(&index), Some(Node::InterfaceOutput)) = (vector.get(at), next.get(at)) else { return };
    let Some(destination) = destination(packets.packet(index)) else { return };
    let interface = packets.arrived[index];
    context.tell(Event::Forwarded { interface, destination });
}

/// Puts a link header before a packet, and settles the interface that it leaves by.
fn write_header(
    packets: &mut Packets,
    index: Index,
    header: &[u8; LINK_HEADER],
    length: usize,
    interface: u16,
) -> Result<(), Reason> {
    if !packets.make_room(index, length) {
        return Err(Reason::NoRoom);
    }
    copy_header(packets.bytes_mut(index), header, length)?;
    packets.output[index] = interface;
    Ok(())
}

/// Copies so many bytes of a link header to the beginning of a frame.
fn copy_header(frame: &mut [u8], header: &[u8; LINK_HEADER], length: usize) -> Result<(), Reason> {
    let place = frame.get_mut(..length).ok_or(Reason::NoRoom)?;
    place.copy_from_slice(header.get(..length).ok_or(Reason::NoRoom)?);
    Ok(())
}

/// Puts the link header of an adjacency before a packet, and settles the interface that it leaves by.
#[inline(always)]
fn write_link_header(packets: &mut Packets, index: Index, adjacency: &Adjacency) -> Result<(), Reason> {
    let length = usize::from(adjacency.header_length);
    if !packets.make_room(index, length) {
        return Err(Reason::NoRoom);
    }
    let frame = packets.bytes_mut(index);
    if length == ethernet::LENGTH {
        let (Some(place), Some(header)) =
            (frame.first_chunk_mut::<{ ethernet::LENGTH }>(), adjacency.header.first_chunk())
        else {
            return Err(Reason::NoRoom);
        };
        *place = *header;
    } else {
        copy_header(frame, &adjacency.header, length)?;
    }
    packets.output[index] = adjacency.interface;
    Ok(())
}
