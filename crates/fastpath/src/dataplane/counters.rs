//! What a worker counts: it alone writes, anyone reads.
//!
//! Every packet that arrives or is made ends in one of three ways: sent, dropped for a [`Reason`], or
//! punted to the kernel. So `received + made = sent + dropped + punted` between passes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::dataplane::node::Node;

/// The most interfaces of a router.
pub const INTERFACES: usize = 256;

/// A number that one thread counts up and others read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts `more`. For one thread alone.
    #[inline(always)]
    pub fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    /// How much was counted.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A call of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// Clocks of the time stamp counter.
    pub clocks: u64,
    /// Packets that it had.
    pub vectors: u64,
}

/// The dearest call since it was cleared: one word, so that clocks and packets are those of one call. One
/// thread notes, any may read and clear; a call that ends just then may be the one that stays.
#[derive(Debug, Default)]
pub struct Dearest(AtomicU64);

impl Dearest {
    /// Bits for packets, of which a call has fewer; above them are the clocks, enough for hours.
    const VECTORS: u32 = 16;

    /// Notes a call, if it was dearer than any before.
    #[inline(always)]
    pub fn note(&self, clocks: u64, vectors: usize) {
        if clocks > self.0.load(Relaxed) >> Self::VECTORS {
            let clocks = clocks.min(u64::MAX >> Self::VECTORS);
            self.0.store(clocks << Self::VECTORS | vectors as u64, Relaxed);
        }
    }

    /// The dearest call; one of nothing if there was none.
    #[must_use]
    pub fn get(&self) -> Call {
        let noted = self.0.load(Relaxed);
        Call { clocks: noted >> Self::VECTORS, vectors: noted & ((1 << Self::VECTORS) - 1) }
    }

    /// Begins anew.
    pub fn clear(&self) {
        self.0.store(0, Relaxed);
    }
}

/// How a packet's end is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// As it should be.
    Information,
    /// Something is wrong with the packet, or with its sender.
    Error,
}

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident = $node:ident, $severity:ident, $text:literal;)+) => {
        /// Why a packet was dropped or punted, or what was done instead of forwarding it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Reason {
            /// All of them, in the order of the nodes.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The node that finds it.
            #[must_use]
            pub const fn node(self) -> Node {
                match self { $(Self::$name => Node::$node,)+ }
            }

            /// In words.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// How it is to be taken.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)+ }
            }
        }
    };
}

reasons! {
    /// The worker that its flow belongs to has not kept up.
    Congestion = WorkerHandoff, Error, "congestion drop: handoff queue of the flow's worker full";
    /// The frame is shorter than an Ethernet header.
    Runt = EthernetInput, Error, "frame shorter than its Ethernet header";
    /// The frame is for somebody else's address.
    OtherStation = EthernetInput, Information, "destination MAC address of another station";
    /// It is for one host, and was sent to all or several stations (RFC 1812, 5.3.4).
    Ip4LinkBroadcast = EthernetInput, Error, "IPv4 unicast in a frame to a group of stations";
    /// Nothing here understands this kind of packet.
    UnknownType = EthernetInput, Information, "unknown EtherType";
    /// No interface has this VLAN tag.
    UnknownVlan = EthernetInput, Error, "unknown VLAN";
    /// The interface that it arrived at is down.
    InputDown = EthernetInput, Error, "interface is down";
    /// The interface belongs to no bridge.
    L2NoBridge = L2Input, Error, "interface without a bridge";
    /// There is no room for a station in the bridge's table; its frame goes on.
    L2TableFull = L2Learn, Error, "station not learned: the bridge's table is full";
    /// A station is at another interface than it was; its frame goes on.
    L2StationMoved = L2Learn, Information, "station moved to another interface";
    /// Frames to this group stay on their link (IEEE 802.1Q, 8.6.3).
    L2Reserved = L2Fwd, Information, "destination reserved for bridges";
    /// The bridge has no other port that is up.
    L2NoPort = L2Flood, Information, "no other port of the bridge is up";
    /// A copy for a further port was not made: there was no room for it.
    L2NoCopy = L2Flood, Error, "no buffer for a flood copy";
    /// The frame would leave by the interface that it arrived at.
    L2SameInterface = L2Output, Information, "would leave by the interface that it arrived at";
    /// It is longer than the interface that it should leave by takes.
    L2TooBig = L2Output, Error, "frame longer than the MTU of the output interface";
    /// There was no room for its VLAN tag.
    L2NoRoom = L2Output, Error, "insufficient headroom for the VLAN tag";
    /// The frame ends before the packet does.
    ArpTruncated = ArpInput, Error, "ARP packet truncated";
    /// It is not for IPv4 over Ethernet, or neither request nor reply.
    ArpFormat = ArpInput, Error, "ARP packet of unknown kind";
    /// No station may have the sender's address or link address.
    ArpSender = ArpInput, Error, "ARP sender that no station may be";
    /// Another station has our address.
    ArpDuplicate = ArpInput, Error, "another station has our IPv4 address";
    /// The sender's address is on none of the interface's subnets.
    ArpSubnet = ArpInput, Error, "ARP sender of no subnet of the interface";
    /// It was an answer for us.
    ArpReply = ArpInput, Information, "ARP reply";
    /// A station told everybody its link address.
    ArpAnnouncement = ArpInput, Information, "ARP announcement";
    /// It was about others.
    ArpOthers = ArpInput, Information, "ARP about other stations";
    /// The frame ends before the packet does.
    Ip4Truncated = Ip4Input, Error, "IPv4 packet truncated";
    /// The version is not 4.
    Ip4Version = Ip4Input, Error, "IPv4 version is not 4";
    /// The header is shorter than it may be, or longer than the packet.
    Ip4HeaderLength = Ip4Input, Error, "IPv4 header length out of range";
    /// Its sender wants it to go a certain way, which routers no longer do (RFC 7126, 4.3 and 4.4).
    Ip4SourceRoute = Ip4Input, Information, "IPv4 source route";
    /// The sum of the header is wrong.
    Ip4Checksum = Ip4Input, Error, "IPv4 header checksum wrong";
    /// No host may have this source address (RFC 1812, 5.3.7).
    Ip4MartianSource = Ip4Input, Error, "IPv4 martian source address";
    /// The access list of the interface that it arrived at denies it.
    AclInputIp4 = AclInIp4, Information, "IPv4 denied by the input access list";
    /// It can begin no flow, and is of none that is known.
    AclNoState = AclInIp4, Information, "denied by a keep-state rule: packet of no known flow";
    /// It would begin a flow, for which the table of states has no room.
    AclStatesFull = AclInIp4, Error, "denied: table of states full";
    /// No packet may have this destination address.
    Ip4MartianDestination = Ip4Lookup, Error, "IPv4 martian destination address";
    /// No route leads there.
    Ip4NoRoute = Ip4Lookup, Error, "no IPv4 route";
    /// A route says that the host cannot be reached.
    Ip4Unreachable = Ip4Lookup, Information, "IPv4 route says that the host cannot be reached";
    /// A route says that it may not pass.
    Ip4Prohibited = Ip4Lookup, Information, "IPv4 route prohibits";
    /// A route discards it.
    Ip4Blackhole = Ip4Lookup, Information, "IPv4 route discards";
    /// The access list of the interface that it should leave by denies it.
    AclOutputIp4 = AclOutIp4, Information, "IPv4 denied by the output access list";
    /// It is for all stations of a subnet where it did not come from.
    Ip4DirectedBroadcast = Ip4Local, Information, "IPv4 broadcast for a subnet from elsewhere";
    /// An echo request ends before its header does.
    IcmpTruncated = Ip4Local, Error, "ICMP message truncated";
    /// The sum of an echo request is wrong.
    IcmpChecksum = Ip4Local, Error, "ICMP checksum wrong";
    /// Nobody has told the link address of its next hop yet, which has been asked for.
    Ip4NoNeighbour = Ip4Arp, Information, "IPv4 next hop not resolved";
    /// Its next hop has been asked for its link address for seconds.
    Ip4NoAnswer = Ip4Arp, Information, "IPv4 next hop does not answer";
    /// Nobody can be asked for a link address by an interface without an address.
    ArpNoAddress = Ip4Arp, Error, "output interface without an IPv4 address cannot ask for its neighbours";
    /// It was too long, and left in fragments.
    Ip4Fragmented = Ip4Frag, Information, "IPv4 packet sent in fragments";
    /// It is a fragment that ends behind the longest packet.
    Ip4BeyondEnd = Ip4Frag, Error, "IPv4 fragment ends behind the longest packet";
    /// It was too long, and there was no room for its fragments.
    Ip4NoFragments = Ip4Frag, Error, "no buffer for the fragments of an IPv4 packet";
    /// It was here too often.
    Ip4Expired = Ip4Rewrite, Error, "IPv4 time to live expired";
    /// It is too long, and may not be cut.
    Ip4TooBig = Ip4Rewrite, Error, "IPv4 packet longer than the MTU, and may not be fragmented";
    /// The frame ends before the packet does.
    Ip6Truncated = Ip6Input, Error, "IPv6 packet truncated";
    /// The version is not 6.
    Ip6Version = Ip6Input, Error, "IPv6 version is not 6";
    /// No host may have this source address.
    Ip6MartianSource = Ip6Input, Error, "IPv6 martian source address";
    /// The access list of the interface that it arrived at denies it.
    AclInputIp6 = AclInIp6, Information, "IPv6 denied by the input access list";
    /// No packet may have this destination address.
    Ip6MartianDestination = Ip6Lookup, Error, "IPv6 martian destination address";
    /// It is for a group that the router has no part in.
    Ip6Multicast = Ip6Lookup, Information, "IPv6 multicast to a group of others";
    /// No route leads there.
    Ip6NoRoute = Ip6Lookup, Error, "no IPv6 route";
    /// A route discards it.
    Ip6Blackhole = Ip6Lookup, Information, "IPv6 route discards";
    /// A route says that the host cannot be reached.
    Ip6Unreachable = Ip6Lookup, Information, "IPv6 route says that the host cannot be reached";
    /// A route says that it may not pass.
    Ip6Prohibited = Ip6Lookup, Information, "IPv6 route prohibits";
    /// The access list of the interface that it should leave by denies it.
    AclOutputIp6 = AclOutIp6, Information, "IPv6 denied by the output access list";
    /// It is for an address of the link that it came from, which is not the router's.
    Ip6LinkLocal = Ip6Local, Error, "IPv6 link-local destination address of another station";
    /// The packet ends before its message does.
    Icmp6Truncated = Ip6Local, Error, "ICMPv6 message truncated";
    /// The sum of the message is wrong.
    Icmp6Checksum = Ip6Local, Error, "ICMPv6 checksum wrong";
    /// The message is not as RFC 4861, 7.1, demands.
    NeighbourInvalid = Icmp6NeighbourSolicitation, Error, "invalid neighbour discovery message";
    /// It asks for another station.
    NeighbourOthers = Icmp6NeighbourSolicitation, Information, "neighbour solicitation for another station";
    /// Another station has our address.
    NeighbourDuplicate = Icmp6NeighbourSolicitation, Error, "another station has our IPv6 address";
    /// Its frame says that a group sent it.
    GroupSource = Icmp6NeighbourSolicitation, Error, "frame from a group";
    /// The target's address is on none of the interface's subnets.
    NeighbourSubnet = Icmp6NeighbourAdvertisement, Error, "neighbour advertisement of no subnet of the interface";
    /// A station told its link address.
    NeighbourAdvertised = Icmp6NeighbourAdvertisement, Information, "neighbour advertisement";
    /// Nobody has told the link address of its next hop yet, which has been asked for.
    Ip6NoNeighbour = Ip6DiscoverNeighbour, Information, "IPv6 next hop not resolved";
    /// Its next hop has been asked for its link address for seconds.
    Ip6NoAnswer = Ip6DiscoverNeighbour, Information, "IPv6 next hop does not answer";
    /// Its source address is known on the link that it came from alone.
    Ip6BeyondScope = Ip6Rewrite, Error, "beyond scope of the IPv6 source address";
    /// It has no hops left.
    Ip6Expired = Ip6Rewrite, Error, "IPv6 hop limit expired";
    /// It is too long; routers do not fragment IPv6.
    Ip6TooBig = Ip6Rewrite, Error, "IPv6 packet longer than the MTU";
    /// There was no room for its new link header.
    NoRoom = Ip4Rewrite, Error, "insufficient headroom for the link header";
    /// The interface that it should leave by is down or gone.
    OutputDown = InterfaceOutput, Error, "output interface is down";
    /// It is for the kernel, to which no way leads from its interface.
    PuntNowhere = Punt, Information, "punt to the kernel failed: interface unknown there";
    /// It is for the kernel, which took no more.
    PuntFull = Punt, Error, "punt to the kernel failed: queue full";
    /// It is for the kernel, which has had enough of its kind from this worker for now.
    PuntLimited = Punt, Error, "punt to the kernel refused: too many of this kind";
    /// It is longer than the buffers of the device that it should leave by.
    TooLong = Tx, Error, "frame longer than the buffers of the device";
    /// The device took no more.
    Full = Tx, Error, "TX ring full";
    /// It is not as the node before found it, or goes round and round: somebody who has its memory, too, writes
    /// to it.
    Rewritten = ErrorDrop, Error, "packet modified by the memif peer while in use";
}

impl Reason {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Whether a packet goes no further for it; others are only noted.
    #[must_use]
    pub const fn ends(self) -> bool {
        !matches!(self, Self::L2TableFull | Self::L2StationMoved)
    }
}

/// What a node did.
#[derive(Debug, Default)]
pub struct NodeCounters {
    /// How often it had packets.
    pub calls: Counter,
    /// How many it had.
    pub vectors: Counter,
    /// Clocks of the time stamp counter for them.
    pub clocks: Counter,
    /// The dearest call.
    pub dearest: Dearest,
}

/// What went through an interface at a worker.
#[derive(Debug, Default)]
pub struct InterfaceCounters {
    /// Packets that arrived.
    pub received: Counter,
    /// Their bytes, without FCS.
    pub received_bytes: Counter,
    /// Packets that the device took.
    pub sent: Counter,
    /// Their bytes, without FCS.
    pub sent_bytes: Counter,
    /// Packets that were to leave there, and found TX ring full: of those dropped, where
    /// they had arrived.
    pub no_room: Counter,
    /// Packets that had arrived there, and were dropped.
    pub dropped: Counter,
    /// Packets that had arrived there, and went to the kernel.
    pub punted: Counter,
}

/// All that a worker counts.
#[derive(Debug)]
pub struct Counters {
    /// By [`Node`].
    pub nodes: [NodeCounters; Node::COUNT],
    /// By [`Reason`].
    pub reasons: [Counter; Reason::COUNT],
    /// By interface.
    pub interfaces: Box<[InterfaceCounters; INTERFACES]>,
    /// Packets that nodes made.
    pub made: Counter,
    /// Events that the router had no room for.
    pub events_lost: Counter,
    /// How often it asked its devices for frames.
    pub loops: Counter,
    /// How often none had any.
    pub idle_loops: Counter,
    /// Clocks of the time stamp counter for those.
    pub idle_clocks: Counter,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            nodes: [(); Node::COUNT].map(|()| NodeCounters::default()),
            reasons: [(); Reason::COUNT].map(|()| Counter::default()),
            interfaces: Box::new([(); INTERFACES].map(|()| InterfaceCounters::default())),
            made: Counter::default(),
            events_lost: Counter::default(),
            loops: Counter::default(),
            idle_loops: Counter::default(),
            idle_clocks: Counter::default(),
        }
    }
}

impl Counters {
    /// What a node did.
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "there is one for each node")]
    pub(crate) fn node(&self, node: Node) -> &NodeCounters {
        &self.nodes[node as usize]
    }

    /// How many packets ended so.
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "there is one for each reason")]
    pub(crate) fn reason(&self, reason: Reason) -> &Counter {
        &self.reasons[reason as usize]
    }

    /// What went through an interface; a router has none beyond [`INTERFACES`].
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "the remainder is an index")]
    pub(crate) fn interface(&self, number: u16) -> &InterfaceCounters {
        &self.interfaces[usize::from(number) % INTERFACES]
    }

    /// Packets that arrived, that nodes made, that were sent, dropped and punted.
    #[must_use]
    pub fn balance(&self) -> Balance {
        let sum = |what: fn(&InterfaceCounters) -> &Counter| {
            self.interfaces.iter().map(|interface| what(interface).get()).sum()
        };
        Balance {
            received: sum(|interface| &interface.received),
            made: self.made.get(),
            sent: sum(|interface| &interface.sent),
            dropped: sum(|interface| &interface.dropped),
            punted: sum(|interface| &interface.punted),
        }
    }
}

/// What became of the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// They arrived.
    pub received: u64,
    /// Nodes made them.
    pub made: u64,
    /// A device took them.
    pub sent: u64,
    /// They were dropped.
    pub dropped: u64,
    /// They went to the kernel.
    pub punted: u64,
}

impl Balance {
    /// Whether nothing vanished, and nothing came from nowhere.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.received + self.made == self.sent + self.dropped + self.punted
    }
}
