//! Packet trace: a wish for the next N packets enters, what every node saw of each and where it sent it
//! leaves (`trace add`, `show trace`).
//!
//! A worker notes raw facts of a packet after each node that had it; what they mean is told later, on the
//! router's side. While nothing is wished for, that costs a worker one branch for each node's call. While
//! something is, a worker takes a lock at the end of a pass. Packets are captured ([`crate::dataplane::capture`]) at the
//! same places, by the same branch.

mod format;

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::clock::clocks;
use crate::dataplane::capture::Capture;
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::Forwarding;
use crate::dataplane::node::Node;
use crate::dataplane::vector::{Index, Packets};

/// The most packets that are kept; further wishes are cut to it.
pub const MOST: u32 = 1000;

/// Says beside the number of wishes that packets are captured.
const CAPTURING: u32 = 1 << 31;

/// Bytes of a packet that are noted at every node.
const NOTED: usize = 96;

/// What became of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traced {
    /// The worker that had it, from 0.
    pub worker: u16,
    /// The nodes that it went through, in their order.
    pub steps: Vec<Step>,
}

/// What a node saw of a packet, and what it decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The node, by its name.
    pub node: String,
    /// Clocks of the time stamp counter since the packet arrived, when the node was done.
    pub clocks: u64,
    /// In words.
    pub saw: String,
    /// The node that it went to; none where its way ended.
    pub next: Option<String>,
}

impl fmt::Display for Traced {
    /// As `show trace` prints it, a line for each node.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "worker {}", self.worker)?;
        for step in &self.steps {
            writeln!(f, "  {:>10}: {}: {}", step.clocks, step.node, step.saw)?;
        }
        Ok(())
    }
}

/// What a worker notes of a packet after a node.
#[derive(Clone, Copy)]
struct Note {
    node: Node,
    next: Option<Node>,
    clock: u64,
    device: u16,
    arrived: u16,
    output: u16,
    adjacency: u32,
    reason: Reason,
    network: usize,
    length: usize,
    bytes: [u8; NOTED],
}

/// A traced packet of a worker.
struct Notes {
    worker: u16,
    began: u64,
    notes: Vec<Note>,
}

/// Where workers put what they noted, and the router finds it.
#[derive(Default)]
pub struct Traces {
    /// How many packets are wished for, and [`CAPTURING`].
    wanted: AtomicU32,
    noted: Mutex<Vec<Notes>>,
    capture: Mutex<Option<Arc<Capture>>>,
}

impl Traces {
    /// Has the next `count` packets that arrive anywhere traced, too.
    pub fn add(&self, count: u32) {
        let kept = self.noted().len() as u32;
        let more = |wanted: u32| {
            let count = (wanted & !CAPTURING).saturating_add(count).min(MOST.saturating_sub(kept));
            Some(wanted & CAPTURING | count)
        };
        let _ = self.wanted.fetch_update(Relaxed, Relaxed, more);
    }

    /// Forgets all traces and wishes.
    pub fn clear(&self) {
        self.wanted.fetch_and(CAPTURING, Relaxed);
        self.noted().clear();
    }

    /// Has packets captured from now on, or no more.
    pub fn capture(&self, capture: Option<Capture>) {
        let bit = if capture.is_some() { CAPTURING } else { 0 };
        *self.capture.lock().unwrap_or_else(PoisonError::into_inner) = capture.map(Arc::new);
        let _ = self.wanted.fetch_update(Relaxed, Relaxed, |wanted| Some(wanted & !CAPTURING | bit));
    }

    /// Whether workers are to note or to copy packets.
    #[must_use]
    pub fn on(&self) -> bool {
        self.wanted.load(Relaxed) != 0
    }

    /// How many packets are still waited for.
    #[must_use]
    pub fn wanted(&self) -> u32 {
        self.wanted.load(Relaxed) & !CAPTURING
    }

    /// The traced packets, in the order in which their passes ended. Interfaces are called as in
    /// `forwarding`.
    #[must_use]
    pub fn list(&self, forwarding: &Forwarding) -> Vec<Traced> {
        let step = |notes: &Notes, note: &Note| Step {
            node: note.node.name().to_owned(),
            clocks: note.clock.wrapping_sub(notes.began),
            saw: format::saw(note, forwarding),
            next: note.next.map(|node| node.name().to_owned()),
        };
        let traced = |notes: &Notes| Traced {
            worker: notes.worker,
            steps: notes.notes.iter().map(|note| step(notes, note)).collect(),
        };
        self.noted().iter().map(traced).collect()
    }

    fn noted(&self) -> MutexGuard<'_, Vec<Notes>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of `count` packets, how many are wished for; the wish is thereby granted.
    fn take(&self, count: usize) -> usize {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let less = |wanted: u32| Some(wanted & CAPTURING | (wanted & !CAPTURING).saturating_sub(count));
        let before = self.wanted.fetch_update(Relaxed, Relaxed, less);
        before.map_or(0, |wanted| (wanted & !CAPTURING).min(count) as usize)
    }
}

/// A worker's side.
pub(crate) struct Tracer {
    traces: Arc<Traces>,
    worker: u16,
    /// The traced packets of this pass: its first ones.
    traced: Vec<Notes>,
    /// What captures packets of this pass.
    capture: Option<Arc<Capture>>,
    /// Whether there is any of that.
    on: bool,
}

impl Tracer {
    /// For the worker of this number.
    pub fn new(traces: Arc<Traces>, worker: u16) -> Self {
        Self { traces, worker, traced: Vec::new(), capture: None, on: false }
    }

    /// Whether a packet of this pass is traced, or captured.
    #[inline(always)]
    pub fn on(&self) -> bool {
        self.on
    }

    /// A pass over `count` packets that have arrived begins.
    #[inline(always)]
    pub fn begin(&mut self, count: usize) {
        if self.traces.wanted.load(Relaxed) != 0 {
            self.choose(count);
        }
    }

    #[cold]
    fn choose(&mut self, count: usize) {
        let (worker, began) = (self.worker, clocks());
        let notes = || Notes { worker, began, notes: Vec::new() };
        self.traced = std::iter::repeat_with(notes).take(self.traces.take(count)).collect();
        // A capture that begins or ends right now begins or ends with the next pass.
        self.capture = self.traces.capture.try_lock().ok().and_then(|capture| capture.clone());
        self.on = !self.traced.is_empty() || self.capture.is_some();
    }

    /// A node is done with a vector: notes what is to be seen of the traced packets in it. `beside` is as in
    /// [`crate::dataplane::graph::Context`].
    #[cold]
    pub fn note(
        &mut self,
        node: Node,
        device: u16,
        packets: &Packets,
        vector: &[Index],
        next: &[Node],
        beside: &[(Index, Node)],
    ) {
        if let Some(capture) = &self.capture {
            capture.note(node, packets, vector, beside);
        }
        if self.traced.is_empty() {
            return;
        }
        let clock = clocks();
        for (&index, &next) in vector.iter().zip(next) {
            let Some(traced) = self.traced.get_mut(usize::from(index)) else { continue };
            let besides = || beside.iter().find(|(packet, _)| *packet == index).map(|(_, node)| *node);
            let mut note = Note {
                node,
                next: if node.ends() { besides() } else { Some(next) },
                clock,
                device,
                arrived: packets.arrived[index],
                output: packets.output[index],
                adjacency: packets.adjacency[index],
                reason: packets.reason[index],
                network: packets.network(index),
                length: packets.frame(index).len(),
                bytes: [0; NOTED],
            };
            note.bytes.iter_mut().zip(packets.bytes(index)).for_each(|(place, byte)| *place = *byte);
            traced.notes.push(note);
        }
    }

    /// The pass has ended.
    #[inline(always)]
    pub fn end(&mut self) {
        if self.on() {
            self.hand_over();
        }
    }

    #[cold]
    fn hand_over(&mut self) {
        self.on = false;
        self.capture = None;
        if !self.traced.is_empty() {
            self.traces.noted().append(&mut self.traced);
        }
    }
}
