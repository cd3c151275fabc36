//! A worker: it asks its receive queues for frames in turn, and sends each vector through the graph.

use std::sync::Arc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use wire::vlan;

use crate::clock::clocks;
use crate::control::router::{Attachment, Turns};
use crate::dataplane::bucket::{Bucket, Buckets, Errors, MILLISECOND};
use crate::dataplane::counters::Counters;
use crate::dataplane::graph::{Context, Graph};
use crate::dataplane::handoff::Handoff;
use crate::dataplane::node::Node;
use crate::dataplane::punt::Limits;
use crate::dataplane::states::{self, States};
use crate::dataplane::throttle::Throttle;
use crate::dataplane::vector::{Packets, VECTOR};
use crate::device::{Input, Output};
use crate::events::{Injected, Injections};

/// Bytes of a frame before its tag: both link addresses.
const ADDRESSES: usize = 12;

/// Events of an interface that nobody asked for which the router is told at once; then it is one in about a
/// millisecond.
const TOLD: u32 = 256;

/// Packets that it is told of because the kernel might forward the next ones by itself, at once; then it is one in about a
/// quarter of a millisecond.
const FORWARDED: u32 = 64;

/// A receive queue that a worker serves.
pub struct Receive {
    /// The device that it is of.
    pub device: u16,
    /// The queue.
    pub input: Box<dyn Input>,
    /// How its frames are dealt out to workers; by default the one that polls has them all.
    pub handoff: Option<Handoff>,
}

impl Receive {
    /// A queue of `device` whose frames are all the worker's that polls it.
    #[must_use]
    pub fn new(device: u16, input: Box<dyn Input>) -> Self {
        Self { device, input, handoff: None }
    }
}

/// A worker, of one thread.
pub struct Worker {
    context: Context,
    graph: Graph,
    packets: Box<Packets>,
    inputs: Vec<Receive>,
    injections: Injections,
    turns: Arc<Turns>,
    /// When the last turn ended.
    clock: u64,
    /// When states of flows were last aged.
    aged: u64,
}

impl Worker {
    /// One of the router of `attachment` that serves `inputs`, and sends by `outputs`, of which there is
    /// one for each device.
    #[must_use]
    pub fn new(
        inputs: Vec<Receive>,
        outputs: Vec<Box<dyn Output>>,
        attachment: Attachment,
        counters: Arc<Counters>,
    ) -> Self {
        let Attachment { mut updates, ip4, ip6, events, injections, turns, trace, mailbox, worker } =
            attachment;
        let forwarding = updates.news().unwrap_or_default();
        let (beside, now) = (Vec::new(), clocks());
        let context = Context {
            forwarding,
            updates,
            ip4,
            ip6,
            events,
            throttle: Throttle::new(now),
            errors: Errors::new(now),
            told: Buckets::new(Bucket::new(now, TOLD, MILLISECOND)),
            forwarded: Bucket::new(now, FORWARDED, MILLISECOND / 4),
            punts: Limits::new(now),
            states: States::take(&mailbox),
            mailbox,
            counters,
            outputs,
            device: 0,
            handoff: None,
            beside,
            scratch: Box::default(),
            trace,
            worker,
        };
        let (graph, packets) = (Graph::default(), Packets::new());
        Self { context, graph, packets, inputs, injections, turns, clock: now, aged: now }
    }

    /// Asks each receive queue once, and forwards what it has, after the frames that were injected.
    /// Returns how many frames there were.
    pub fn turn(&mut self) -> usize {
        self.turn_before_nodes(&mut |_, _| {})
    }

    /// As [`Self::turn`]; before each node, `before` may do to the bytes of lent frames what another process may
    /// do that has the memory, too. Tests do.
    pub fn turn_before_nodes(&mut self, before: &mut impl FnMut(Node, &mut Packets)) -> usize {
        self.context.update();
        let begin = self.clock;
        let mut received = if self.injections.waiting() { self.send_injected(before) } else { 0 };
        for receive in &mut self.inputs {
            let count = receive.input.receive(self.packets.lent());
            if count == 0 {
                continue;
            }
            received += count;
            self.context.device = receive.device;
            std::mem::swap(&mut self.context.handoff, &mut receive.handoff);
            self.packets.begin(count);
            let begins = (Node::DeviceInput, count);
            self.clock = self.graph.run(&mut self.context, &mut self.packets, begins, self.clock, before);
            self.packets.end();
            receive.input.release();
            std::mem::swap(&mut self.context.handoff, &mut receive.handoff);
        }
        self.turns.end();
        if self.context.states.is_some() && self.clock.wrapping_sub(self.aged) >= MILLISECOND {
            self.age_states();
        }
        let counters = &self.context.counters;
        counters.loops.add(1);
        if received == 0 {
            self.clock = clocks();
            counters.idle_loops.add(1);
            counters.idle_clocks.add(self.clock.wrapping_sub(begin));
        }
        received
    }

    /// Waits until a device has frames, but not longer than `most`; says whether all of its devices can wake it. If not, it
    /// returns at once.
    pub fn wait(&self, most: Duration) -> bool {
        let readable = self.inputs.iter().map(|receive| receive.input.readable());
        let Some(readable) = readable.collect::<Option<Vec<_>>>() else { return false };
        let mut waited: Vec<_> = readable.iter().map(|file| PollFd::new(*file, PollFlags::POLLIN)).collect();
        let woken = ppoll(&mut waited, Some(TimeSpec::from_duration(most)), None);
        // One whose interface is gone would wake it again and again.
        let is_sound = |file: &PollFd| file.revents().is_none_or(|events| PollFlags::POLLIN.contains(events));
        woken.is_ok() && !waited.is_empty() && waited.iter().all(is_sound)
    }

    /// Has some states of flows end that should; no node's time.
    #[cold]
    fn age_states(&mut self) {
        let Context { states, forwarding, .. } = &mut self.context;
        if let Some(states) = states {
            states.age(forwarding, states::now());
        }
        self.clock = clocks();
        self.aged = self.clock;
    }

    /// Sends frames that were injected, each by its interface and with its VLAN tag.
    #[cold]
    fn send_injected(&mut self, before: &mut impl FnMut(Node, &mut Packets)) -> usize {
        self.packets.begin(0);
        for Injected { interface, frame } in self.injections.take(VECTOR) {
            let found = self.context.forwarding.interfaces.get(usize::from(interface));
            let tag = found.and_then(|interface| interface.vlan).map(|id| [vlan::CUSTOMER, id]);
            let (addresses, rest) = frame.split_at_checked(ADDRESSES).unwrap_or((&frame, &[]));
            let tag = tag.into_iter().flatten().flat_map(u16::to_be_bytes);
            let frame: Vec<u8> = addresses.iter().copied().chain(tag).chain(rest.iter().copied()).collect();
            if let Some(index) = self.packets.make(frame.len(), interface) {
                self.packets.bytes_mut(index).copy_from_slice(&frame);
                self.packets.output[index] = interface;
            }
        }
        let count = self.packets.len();
        self.context.counters.made.add(count as u64);
        let begins = (Node::InterfaceOutput, count);
        self.clock = self.graph.run(&mut self.context, &mut self.packets, begins, self.clock, before);
        self.packets.end();
        count
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use wire::{MacAddress, ethernet, ipv4, ipv6};

    use super::*;
    use crate::control::router::Router;
    use crate::dataplane::counters::Reason;
    use crate::device::simulated::Wire;

    const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const THEIRS: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    /// A worker with one interface, whose address is `ours`, and one neighbour, `theirs`.
    fn one(ours: IpAddr, theirs: IpAddr, length: u8) -> (Wire, Worker, Arc<Counters>) {
        let mut router = Router::new().unwrap();
        let (wire, queues) = Wire::device(9);
        router.add_device("memif0", OURS, 1500).unwrap();
        router.add_address(0, ours, length).unwrap();
        router.set_neighbour(0, theirs, THEIRS).unwrap();
        let inputs = queues.inputs.into_iter().map(|input| Receive::new(0, input)).collect();
        let counters = Arc::new(Counters::default());
        let worker = Worker::new(inputs, queues.outputs, router.attach(), Arc::clone(&counters));
        (wire, worker, counters)
    }

    /// Has a frame arrive; returns what the device sends then.
    fn send(worker: &mut Worker, wire: &Wire, frame: &[u8]) -> Vec<Vec<u8>> {
        wire.put(frame);
        while worker.turn() > 0 {}
        assert!(worker.context.counters.balance().holds());
        std::iter::from_fn(|| wire.take()).collect()
    }

    /// Time is moved here, since no test should wait for seconds.
    #[test]
    fn who_sends_to_an_ip4_neighbour_that_never_answers_is_told_so() {
        let address = |last| Ipv4Addr::new(10, 0, 0, last);
        let (wire, mut worker, counters) = one(address(1).into(), address(2).into(), 24);
        let header = ipv4::Header {
            tos: 0,
            total_length: 20,
            identification: 0,
            ttl: 64,
            protocol: ipv4::UDP,
            source: address(2),
            destination: address(9),
        };
        let ethernet = ethernet::Header { destination: OURS, source: THEIRS, ethertype: ethernet::IPV4 };
        let frame = [&ethernet.emit()[..], &header.emit()].concat();
        for _ in 0..2 {
            let sent = send(&mut worker, &wire, &frame);
            assert_eq!((sent.len(), &sent[0][12..14]), (1, &ethernet::ARP.to_be_bytes()[..]));
            worker.context.throttle.age(1 << 32);
        }
        let sent = send(&mut worker, &wire, &frame);
        assert_eq!((sent.len(), &sent[1][34..36], &sent[1][42..]), (2, &[3, 1][..], &frame[14..]));
        let dropped = |reason: Reason| counters.reasons[reason as usize].get();
        assert_eq!((dropped(Reason::Ip4NoNeighbour), dropped(Reason::Ip4NoAnswer)), (2, 1));
    }

    #[test]
    fn who_sends_to_an_ip6_neighbour_that_never_answers_is_told_so() {
        let address = |last| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last);
        let (wire, mut worker, counters) = one(address(1).into(), address(2).into(), 64);
        let header = ipv6::Header {
            traffic_class: 0,
            flow_label: 0,
            payload_length: 0,
            next_header: ipv4::UDP,
            hop_limit: 64,
            source: address(2),
            destination: address(9),
        };
        let ethernet = ethernet::Header { destination: OURS, source: THEIRS, ethertype: ethernet::IPV6 };
        let frame = [&ethernet.emit()[..], &header.emit()].concat();
        // The types and codes of what leaves then.
        let send = |worker: &mut Worker| {
            let sent = send(worker, &wire, &frame);
            sent.iter().map(|frame| [frame[54], frame[55]]).collect::<Vec<_>>()
        };
        assert_eq!(send(&mut worker), [[135, 0]]);
        worker.context.throttle.age(1 << 32);
        assert_eq!(send(&mut worker), [[135, 0]]);
        worker.context.throttle.age(1 << 32);
        assert_eq!(send(&mut worker), [[135, 0], [1, 3]]);
        let dropped = |reason: Reason| counters.reasons[reason as usize].get();
        assert_eq!((dropped(Reason::Ip6NoNeighbour), dropped(Reason::Ip6NoAnswer)), (2, 1));
    }
}
