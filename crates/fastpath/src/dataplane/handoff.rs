//! Hand-over of frames between workers (RSS in software): what one worker receives enters, and lies before
//! the worker that its flow belongs to.
//!
//! A device lends frames until the pass over them ends, and only to the worker that polls it. So a frame for
//! another worker is copied, once, to a ring between the two; from there it is lent again, as by a device.

mod positions;
mod ring;

use std::sync::Arc;

use crate::dataplane::flow::rss::Rss;
use crate::device::Input;

pub use self::ring::Meter;
use self::ring::{Receiver, Sender};

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handed {
    /// Its flow belongs to this worker.
    Kept,
    /// It lies before another worker.
    Over,
    /// There was no room before the other worker.
    Full,
}

/// How the frames of a receive queue are dealt out, at the worker that polls it.
pub struct Handoff {
    rss: Arc<Rss>,
    /// By worker; none for the one that polls.
    to: Vec<Option<Sender>>,
}

/// A way from the worker that polls a queue to another one.
pub struct Way {
    /// The other worker, from 0.
    pub to: usize,
    /// From which it takes what is handed to it.
    pub input: Box<dyn Input>,
    /// What went by it.
    pub meter: Meter,
}

impl Handoff {
    /// Of a queue that worker `polls`, of so many that `rss` deals out to; and the ways to the others.
    #[must_use]
    pub fn new(rss: Arc<Rss>, polls: usize, workers: usize) -> (Self, Vec<Way>) {
        let mut ways = Vec::new();
        let mut way = |to| {
            let (sender, receiver) = ring::ring();
            let input: Box<Receiver> = Box::new(receiver);
            ways.push(Way { to, input, meter: sender.meter() });
            sender
        };
        let to = (0..workers).map(|to| (to != polls).then(|| way(to))).collect();
        (Self { rss, to }, ways)
    }

    /// Hands a frame to the worker of its flow, which sees it after [`Self::publish`].
    #[inline]
    pub(crate) fn hand(&mut self, frame: &[u8]) -> Handed {
        match self.to.get_mut(self.rss.worker(frame)) {
            Some(Some(sender)) => {
                if sender.push(frame) {
                    Handed::Over
                } else {
                    Handed::Full
                }
            }
            Some(None) | None => Handed::Kept,
        }
    }

    /// Has the other workers see what was handed to them.
    pub(crate) fn publish(&mut self) {
        self.to.iter_mut().flatten().for_each(Sender::publish);
    }
}
