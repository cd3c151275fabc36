//! The graph at work: the packets of a pass enter at a node, and go from node to node in vectors until
//! each has left, was dropped or went to the kernel.

use std::mem;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use crate::clock::clocks;
use crate::dataplane::bucket::{Bucket, Buckets, Errors};
use crate::dataplane::counters::{Counters, Reason};
use crate::dataplane::forwarding::Forwarding;
use crate::dataplane::handoff::Handoff;
use crate::dataplane::node::Node;
use crate::dataplane::punt::Limits;
use crate::dataplane::states::{Mailbox, States};
use crate::dataplane::throttle::Throttle;
use crate::dataplane::trace::Tracer;
use crate::dataplane::vector::{Frame, Index, List, PACKETS, Packets};
use crate::device::Output;
use crate::events::Event;
use crate::fib::{NextHop, Reader};
use crate::publish::Subscriber;

/// The most calls of nodes in a pass: several times as many as any takes whose packets nobody rewrites. Who does
/// rewrite them in shared memory at the right moments could have one go round for ever: an answer becomes a
/// request again.
const CALLS: usize = 8 * Node::COUNT;

/// What the nodes of a worker work with.
pub struct Context {
    pub(crate) forwarding: Arc<Forwarding>,
    pub(crate) updates: Subscriber<Forwarding>,
    pub(crate) ip4: Reader<u32>,
    pub(crate) ip6: Reader<u128>,
    pub(crate) events: SyncSender<Event>,
    pub(crate) counters: Arc<Counters>,
    /// By device.
    pub(crate) outputs: Vec<Box<dyn Output>>,
    /// The device that the packets of this pass arrived at.
    pub(crate) device: u16,
    /// How they are dealt out to workers, if they are.
    pub(crate) handoff: Option<Handoff>,
    /// How often neighbours are asked for their link addresses.
    pub(crate) throttle: Throttle,
    /// How many ICMP errors are sent.
    pub(crate) errors: Errors,
    /// How often the router is told what neighbours say of themselves.
    pub(crate) told: Buckets,
    /// How often it is told of packets that were forwarded.
    pub(crate) forwarded: Bucket,
    /// How many packets go to the kernel.
    pub(crate) punts: Limits,
    /// The states of flows, since an access list kept any.
    pub(crate) states: Option<Box<States>>,
    /// Where their table comes.
    pub(crate) mailbox: Arc<Mailbox>,
    /// The packets of which the node at work says beside its vector where they go: those that it made,
    /// and those of its own that do not end there as the others do.
    pub(crate) beside: Vec<(Index, Node)>,
    /// Where nodes put what they need for a moment: made once, as clearing it would cost a short vector
    /// more than its work.
    pub(crate) scratch: Box<Scratch>,
    pub(crate) trace: Tracer,
    /// The worker's number.
    pub(crate) worker: u16,
}

/// Room for a number of each kind by packet.
pub(crate) struct Scratch {
    pub ip4: [u32; PACKETS],
    pub ip6: [u128; PACKETS],
    pub hops: [NextHop; PACKETS],
    /// Rules of access lists.
    pub rules: [u32; PACKETS],
    pub frames: [Frame; PACKETS],
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            ip4: [0; PACKETS],
            ip6: [0; PACKETS],
            hops: [NextHop::NONE; PACKETS],
            rules: [0; PACKETS],
            frames: [Frame::NONE; PACKETS],
        }
    }
}

impl Context {
    /// Takes up what the router has published.
    #[inline(always)]
    pub(crate) fn update(&mut self) {
        if let Some(forwarding) = self.updates.news() {
            self.forwarding = forwarding;
            self.states = self.states.take().or_else(|| States::take(&self.mailbox));
        }
    }

    /// Tells the router, if it has room for one more event, and the interface has not told too much that nobody
    /// asked for.
    #[cold]
    pub(crate) fn tell(&mut self, event: Event) {
        // Answers were asked for, and of packets the nodes tell no more than they may.
        let may = matches!(event, Event::Answer { .. } | Event::Forwarded { .. })
            || self.told.take(event.interface(), clocks());
        if !may || self.events.try_send(event).is_err() {
            self.counters.events_lost.add(1);
        }
    }

    /// A further packet of `length` bytes of zeros, as if it had arrived at `interface`, which goes to
    /// `node` when the node at work is done; `None` when there is no room.
    pub(crate) fn make(
        &mut self,
        packets: &mut Packets,
        length: usize,
        interface: u16,
        node: Node,
    ) -> Option<Index> {
        let index = packets.make(length, interface)?;
        self.counters.made.add(1);
        self.beside.push((index, node));
        Some(index)
    }
}

/// Which packets wait for which nodes.
struct Waiting {
    /// In boxes, which change hands as they are: to copy a few packets from list to list is a call, and costs as
    /// much as what a node does with them.
    packets: [Box<List>; Node::COUNT],
    /// A bit for every node that has packets.
    nodes: u64,
}

impl Waiting {
    /// Those that wait for a node.
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "there is a list for each node")]
    fn at(&mut self, node: Node) -> &mut Box<List> {
        &mut self.packets[node as usize]
    }

    /// The first node that has packets.
    #[inline(always)]
    fn first(&self) -> Option<Node> {
        Node::ALL.get(self.nodes.trailing_zeros() as usize).copied()
    }

    /// The first `count` packets wait for a node, and no others for any.
    #[inline(always)]
    fn begin(&mut self, node: Node, count: usize) {
        self.at(node).number(count);
        self.nodes = u64::from(count > 0) << node as u8;
    }

    /// Exchanges the packets of a node for `vector`, which is cleared.
    #[inline(always)]
    fn take(&mut self, node: Node, vector: &mut Box<List>) {
        self.nodes &= !(1 << node as u8);
        vector.clear();
        mem::swap(self.at(node), vector);
    }

    #[inline(always)]
    fn enqueue(&mut self, packet: Index, node: Node) {
        if self.at(node).push(packet) {
            self.nodes |= 1 << node as u8;
        }
    }

    /// Sends the packets of a vector on; what is left in it afterwards is of no use.
    #[inline(always)]
    fn distribute(&mut self, vector: &mut Box<List>, next: &[Node]) {
        let Some(&first) = next.first() else { return };
        if next.iter().fold(0, |others, &node| others | (node as u8 ^ first as u8)) == 0 {
            let waiting = self.at(first);
            if waiting.items().is_empty() {
                mem::swap(waiting, vector);
            } else {
                waiting.extend(vector.items());
            }
            self.nodes |= 1 << first as u8;
        } else {
            for (&packet, &node) in vector.items().iter().zip(next) {
                self.enqueue(packet, node);
            }
        }
    }
}

/// The packets of a pass on their way.
pub struct Graph {
    waiting: Waiting,
    /// The vector that is being worked on, and where its packets go.
    vector: Box<List>,
    next: Box<[Node; PACKETS]>,
}

impl Default for Graph {
    fn default() -> Self {
        Self {
            waiting: Waiting { packets: std::array::from_fn(|_| Box::new(List::EMPTY)), nodes: 0 },
            vector: Box::new(List::EMPTY),
            next: Box::new([Node::ErrorDrop; PACKETS]),
        }
    }
}

impl Graph {
    /// Sends the first `count` packets of a pass through the graph from `node` on, until none is left.
    /// `clock` is when that began; returns when it ended. Before each node, `before` has the packets.
    #[inline(always)]
    pub(crate) fn run(
        &mut self,
        context: &mut Context,
        packets: &mut Packets,
        (node, count): (Node, usize),
        mut clock: u64,
        before: &mut impl FnMut(Node, &mut Packets),
    ) -> u64 {
        // What was injected has no way to trace, but leaves to be captured.
        context.trace.begin(if node == Node::DeviceInput { count } else { 0 });
        self.waiting.begin(node, count);
        let mut calls = 0;
        loop {
            calls += 1;
            if calls > CALLS {
                self.turn_away(packets);
            }
            let Some(node) = self.waiting.first() else { break };
            self.waiting.take(node, &mut self.vector);
            let vector = self.vector.items();
            let (count, next) = (vector.len(), self.next.get_mut(..vector.len()).unwrap_or_default());
            before(node, packets);
            node.process(context, packets, vector, next);
            if context.trace.on() {
                let Context { trace, device, beside, .. } = context;
                trace.note(node, *device, packets, vector, next, beside);
            }
            if !node.ends() {
                self.waiting.distribute(&mut self.vector, next);
            }
            for (packet, node) in context.beside.drain(..) {
                self.waiting.enqueue(packet, node);
            }
            let now = clocks();
            let counters = context.counters.node(node);
            counters.calls.add(1);
            counters.vectors.add(count as u64);
            let clocks = now.wrapping_sub(clock);
            counters.clocks.add(clocks);
            counters.dearest.note(clocks, count);
            clock = now;
        }
        context.trace.end();
        clock
    }

    /// Drops all packets that wait for a node that could send them on.
    #[cold]
    fn turn_away(&mut self, packets: &mut Packets) {
        for &node in Node::ALL.iter().filter(|node| !node.ends()) {
            self.waiting.take(node, &mut self.vector);
            for &packet in self.vector.items() {
                let dropped = packets.drop(packet, Reason::Rewritten);
                self.waiting.enqueue(packet, dropped);
            }
        }
    }
}
