//! What both kinds of senders share: how the kernel is woken, what it says then, and what was counted.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the kernel says when it is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// It did what there was to do, or some of it.
    Done,
    /// It could not do all: wake it again.
    Again,
    /// The driver dropped the last frame that it took (copy mode).
    Dropped,
    /// The interface is down: nothing was looked at.
    Down,
    /// The interface is gone.
    Gone,
}

/// What wakes the kernel; a test simulates it.
pub trait Wake: Send + Sync {
    /// Has the kernel look at the transmit ring.
    fn wake_to_send(&self) -> Woken;

    /// Has the kernel look at the fill ring.
    fn wake_to_receive(&self);

    /// What becomes readable when frames have arrived.
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// When the kernel is woken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waking {
    /// Whether it copies: it sends while it is awake, and at no other time.
    pub copies: bool,
    /// Whether the driver works only when it is asked to (busy polling).
    pub polls: bool,
}

/// What a sender has counted. One thread counts, any may read.
#[derive(Debug, Default)]
pub struct SendCounters {
    /// Frames that the driver took.
    pub sent: AtomicU64,
    /// Frames that the driver dropped.
    pub dropped: AtomicU64,
    /// Descriptors that were made invalid on purpose, to take frames back.
    pub recalled: AtomicU64,
}

pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    // Nobody else writes.
    counter.store(counter.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
}
