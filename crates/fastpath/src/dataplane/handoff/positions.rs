//! Up to where the two threads at a ring have come: what one has written and published, and what the other one has read
//! and released. What lies in the ring is not known here.
//!
//! Positions count lines from the beginning of all time: `released <= lent <= published <= written <= released + size`. The
//! lines from `released` to `published` are the receiver's, all others the sender's.

use crate::sync::atomic::{AtomicUsize, Ordering};

/// A position, in a line of its own, so that who writes one does not disturb who reads another.
#[derive(Default)]
#[repr(align(64))]
struct Position(AtomicUsize);

/// What both threads see.
#[derive(Default)]
pub struct Positions {
    published: Position,
    released: Position,
}

/// The sender's.
#[derive(Default)]
pub struct Writing {
    /// The next line to be written.
    pub written: usize,
    /// As it was when last looked at.
    released: usize,
}

/// The receiver's.
#[derive(Default)]
pub struct Reading {
    /// The next line to be lent.
    pub lent: usize,
}

impl Writing {
    /// Whether so many lines more are the sender's, in a ring of `size` lines.
    #[inline]
    pub fn has_room(&mut self, shared: &Positions, lines: usize, size: usize) -> bool {
        if self.written + lines - self.released > size {
            self.released = shared.released.0.load(Ordering::Acquire);
        }
        self.written + lines - self.released <= size
    }

    /// Gives the receiver what was written.
    #[inline]
    pub fn publish(&self, shared: &Positions) {
        shared.published.0.store(self.written, Ordering::Release);
    }
}

impl Reading {
    /// Up to where lines are the receiver's.
    #[inline]
    pub fn published(&self, shared: &Positions) -> usize {
        shared.published.0.load(Ordering::Acquire)
    }

    /// Gives the sender back what was lent.
    #[inline]
    pub fn release(&self, shared: &Positions) {
        shared.released.0.store(self.lent, Ordering::Release);
    }
}
