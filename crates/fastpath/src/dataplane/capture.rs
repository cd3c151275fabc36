//! Packet capture (`pcap trace`): which packets are wanted enters; copies of their first bytes leave to the main thread.
//!
//! Workers note packets that arrived after ethernet-input, and packets that were sent after tx. They never wait: with no
//! room for a copy they count a packet as missed. While nothing is wanted, it costs them what the trace costs
//! then, whose branch it shares.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, SystemTime};

use crate::dataplane::node::Node;
use crate::dataplane::vector::{Index, Packets};

/// The most copies that wait for the main thread.
const WAITING: usize = 4096;

/// Which way a packet went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It arrived.
    Received,
    /// It was sent.
    Sent,
}

/// Which packets are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Those that arrive.
    pub received: bool,
    /// Those that are sent.
    pub sent: bool,
    /// By the number of an interface: whether its packets are.
    pub interfaces: Vec<bool>,
    /// How many bytes of each, from the Ethernet header on.
    pub bytes: usize,
}

/// A packet as a worker saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When, since 1970.
    pub at: Duration,
    /// Where.
    pub interface: u16,
    /// Which way it went.
    pub way: Way,
    /// Bytes that it had, without FCS.
    pub length: usize,
    /// The first of them.
    pub bytes: Box<[u8]>,
}

/// The workers' end.
pub struct Capture {
    wanted: Wanted,
    copies: SyncSender<Captured>,
    missed: Arc<AtomicU64>,
}

/// The main thread's end.
pub struct Copies {
    /// What workers noted.
    pub copies: Receiver<Captured>,
    /// How many packets found no room.
    pub missed: Arc<AtomicU64>,
}

impl Capture {
    /// One of these packets, and where copies of them come out.
    #[must_use]
    pub fn new(wanted: Wanted) -> (Self, Copies) {
        let (sender, receiver) = sync_channel(WAITING);
        let missed = Arc::new(AtomicU64::new(0));
        let copies = Copies { copies: receiver, missed: Arc::clone(&missed) };
        (Self { wanted, copies: sender, missed }, copies)
    }

    /// A node is done with a vector. `beside` are those of its packets that went another way: from tx, those that were
    /// not sent.
    pub(crate) fn note(&self, node: Node, packets: &Packets, vector: &[Index], beside: &[(Index, Node)]) {
        let way = match node {
            Node::EthernetInput if self.wanted.received => Way::Received,
            Node::Tx if self.wanted.sent => Way::Sent,
            _ => return,
        };
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        for &index in vector {
            let interface = match way {
                Way::Received => packets.arrived[index],
                Way::Sent => packets.output[index],
            };
            let is_wanted = self.wanted.interfaces.get(usize::from(interface)).is_some_and(|wanted| *wanted);
            let is_unsent = way == Way::Sent && beside.iter().any(|(other, _)| *other == index);
            if !is_wanted || is_unsent {
                continue;
            }
            let (frame, most) = (packets.bytes(index), self.wanted.bytes);
            let bytes = frame.get(..most).unwrap_or(frame).into();
            let copy = Captured { at, interface, way, length: frame.len(), bytes };
            if self.copies.try_send(copy).is_err() {
                self.missed.fetch_add(1, Relaxed);
            }
        }
    }
}
