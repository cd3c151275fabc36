//! The receiving end of a queue: frames are lent in place and given back.

use std::sync::Arc;

use crate::config::Role;
use crate::frame::Frame;
use crate::queue::{Attached, Link, Shared};
use crate::ring::is_chained;

/// The receiving end of a queue, for one thread. It outlives connections; without one it has no frames.
#[repr(align(128))] // two workers' do not share cache lines
pub struct Receiver {
    attached: Attached,
    /// The next index to look at.
    next: u16,
    /// The first that was not given back.
    released: u16,
    /// How far the peer had filled the ring when it was last looked at.
    filled: u16,
    /// Frames that are lent.
    lent: usize,
    /// Whether the rest of a chain is to be skipped.
    in_chain: bool,
}

/// What a burst adds to the counters.
#[derive(Default)]
struct Burst {
    frames: usize,
    bytes: u64,
    chained: u64,
    malformed: u64,
    too_long: u64,
}

impl Receiver {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let attached = Attached::new(shared);
        Self { attached, next: 0, released: 0, filled: 0, lent: 0, in_chain: false }
    }

    /// Whether there is a connection with this queue.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        !self.attached.is_stale() && self.attached.link().is_some()
    }

    /// Fills `frames` from the front with frames that have arrived; returns how many.
    ///
    /// They lie in the ring's memory. They may be read, rewritten in place and lengthened up to their
    /// capacity, until [`Self::release`] or the end of this receiver, even when their connection ends.
    /// Further calls lend further frames.
    #[inline]
    pub fn receive(&mut self, frames: &mut [Frame]) -> usize {
        let most = frames.len();
        let mut places = frames.iter_mut();
        self.receive_each(most, |frame| {
            if let Some(place) = places.next() {
                *place = frame;
            }
        })
    }

    /// As [`Self::receive`], handing `most` frames over one by one.
    #[inline]
    pub fn receive_each(&mut self, most: usize, mut lend: impl FnMut(Frame)) -> usize {
        if self.attached.is_stale() {
            // Lent frames keep their memory, and so their connection, until they are given back.
            if self.lent > 0 {
                return 0;
            }
            self.renew();
        }
        let Some(link) = self.attached.link() else { return 0 };
        let mut available = self.filled.wrapping_sub(self.next);
        if usize::from(available) < most {
            let filled = link.ring.load(link.theirs());
            available = filled.wrapping_sub(self.next);
            if available > link.ring.size() - self.next.wrapping_sub(self.released) {
                return self.give_up();
            }
            self.filled = filled;
        }
        if available == 0 {
            return 0;
        }
        let longest = self.attached.shared.longest();
        let mut burst = Burst::default();
        while burst.frames < most && self.next != self.filled {
            let index = self.next;
            self.next = index.wrapping_add(1);
            if let Some(frame) = take(link, index, longest, &mut self.in_chain, &mut burst) {
                prefetch::to_read(frame.start());
                burst.bytes += frame.length() as u64;
                burst.frames += 1;
                lend(frame);
            }
        }
        let counters = &self.attached.shared.counters;
        counters.frames.add(burst.frames as u64);
        counters.bytes.add(burst.bytes);
        counters.chained.add(burst.chained);
        counters.malformed.add(burst.malformed);
        counters.too_long.add(burst.too_long);
        self.lent += burst.frames;
        if self.lent == 0 {
            // Nobody will give back what only was skipped.
            self.release();
        }
        burst.frames
    }

    /// Gives all lent frames back.
    #[inline]
    pub fn release(&mut self) {
        self.lent = 0;
        if let Some(link) = self.attached.link() {
            give_back(link, self.released, self.next);
        }
        self.released = self.next;
        if self.attached.is_stale() {
            self.renew();
        }
    }

    #[cold]
    fn renew(&mut self) {
        (self.next, self.released, self.filled, self.in_chain) = (0, 0, 0, false);
        self.attached.renew();
    }

    /// The peer's index cannot be.
    #[cold]
    fn give_up(&mut self) -> usize {
        if self.lent == 0 {
            self.attached.give_up();
        }
        0
    }
}

/// The frame at `index`; `None` where it is skipped, and counted.
#[inline]
fn take(link: &Link, index: u16, longest: u32, in_chain: &mut bool, burst: &mut Burst) -> Option<Frame> {
    let descriptor = link.ring.descriptor(index);
    let goes_on = is_chained(descriptor);
    if goes_on || *in_chain {
        burst.chained += u64::from(!*in_chain);
        *in_chain = goes_on;
        return None;
    }
    if descriptor.length > longest {
        burst.too_long += 1;
        return None;
    }
    match link.buffers.filled(&link.ring, index, descriptor) {
        Some(buffer) if descriptor.length > 0 => Some(Frame::within(buffer, descriptor.length)),
        _ => {
            burst.malformed += 1;
            None
        }
    }
}

/// Gives the buffers from `first` to before `end` back: a client offers them anew, a server says that it
/// has read them.
#[inline]
fn give_back(link: &Link, first: u16, end: u16) {
    if first == end {
        return;
    }
    match link.role {
        Role::Client => {
            let mut index = first;
            while index != end {
                link.buffers.reset(&link.ring, index);
                index = index.wrapping_add(1);
            }
            link.ring.publish(link.ours(), end.wrapping_add(link.ring.size()));
        }
        Role::Server => link.ring.publish(link.ours(), end),
    }
}
