//! What a queue counts. One thread counts, any may read.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread increases.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds, without an atomic addition: nobody else does.
    #[inline]
    pub fn add(&self, amount: u64) {
        if amount > 0 {
            self.0.store(self.0.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
        }
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a queue counts, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    pub frames: Counter,
    pub bytes: Counter,
    pub chained: Counter,
    pub malformed: Counter,
    pub too_long: Counter,
    pub no_room: Counter,
}

/// What a queue has counted since the interface was opened, over all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStatistics {
    /// Frames that were lent to the receiver, or sent.
    pub frames: u64,
    /// Their bytes, without FCS.
    pub bytes: u64,
    /// Frames that the peer had spread over several buffers; they were skipped.
    pub chained: u64,
    /// Frames (received) or buffers (to send in) that were empty or not inside the peer's regions; they
    /// were skipped.
    pub malformed: u64,
    /// Frames that were longer than the buffer they were to be sent in, or (received) longer than
    /// [`crate::Memif::set_longest_frame`] allows; they were refused or skipped.
    pub too_long: u64,
    /// Frames that found the ring full, each time they did; they were left to the caller.
    pub no_room: u64,
}

impl Counters {
    /// As they are now.
    pub fn read(&self) -> QueueStatistics {
        QueueStatistics {
            frames: self.frames.get(),
            bytes: self.bytes.get(),
            chained: self.chained.get(),
            malformed: self.malformed.get(),
            too_long: self.too_long.get(),
            no_room: self.no_room.get(),
        }
    }
}
