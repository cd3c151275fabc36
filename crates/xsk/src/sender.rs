//! The sending end of a socket: room for frames leaves, built frames enter, and what became of each is told.
//!
//! In copy mode the kernel sends inside the system call that wakes it, and nowhere else: what it took has left by
//! then, or it says that the driver dropped it. Without copies the driver takes frames when it likes.

use std::sync::Arc;

use crate::BURST;
use crate::frames::Share;
use crate::poster::Poster;
use crate::ring::{Consumer, Descriptor, Producer};
use crate::wake::{SendCounters, Wake, Waking, Woken, add};

/// What became of frames in front of those that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// So many of the first were taken.
    pub taken: usize,
    /// Those of the taken that the driver dropped: bit `i` is frame `i`. They did not leave. Their number is
    /// exact; which of a burst they were, only on kernels that publish the index at once (Linux 6.12 and newer).
    pub dropped: u64,
}

/// What the kernel has taken off the ring.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// Entries in front that were taken back before.
    void: u32,
    /// Those and all of whole frames.
    entries: u32,
    /// Whole frames.
    frames: usize,
    /// Whether it has a part of the next.
    is_partial: bool,
}

/// The sending end of a socket, for one thread.
pub struct Sender {
    wake: Arc<dyn Wake>,
    share: Share,
    transmit: Producer,
    completion: Consumer,
    waking: Waking,
    /// Frames that wait, and their lengths: the first `submitted` are in the ring, up to `placed` have room.
    waiting: [(u32, u32); BURST],
    placed: usize,
    submitted: usize,
    /// Of the submitted, those that the driver dropped, and that were not yet told.
    dropped: u64,
    /// Entries in the ring, before the submitted ones, that were taken back.
    void: u32,
    /// The index in the transmit ring up to which all is told.
    told: u32,
    /// Whether the kernel may have taken some of the submitted without saying so.
    is_unsure: bool,
    state: Woken,
    counters: Arc<SendCounters>,
}

impl Sender {
    pub(crate) fn new(
        wake: Arc<dyn Wake>,
        share: Share,
        transmit: Producer,
        completion: Consumer,
        waking: Waking,
    ) -> Self {
        let told = transmit.consumed();
        Self {
            wake,
            share,
            transmit,
            completion,
            waking,
            waiting: [(0, 0); BURST],
            placed: 0,
            submitted: 0,
            dropped: 0,
            void: 0,
            told,
            is_unsure: false,
            state: Woken::Done,
            counters: Arc::default(),
        }
    }

    /// The same end for who sends copies and forgets them. What waits here is not sent.
    #[must_use]
    pub fn into_poster(mut self) -> Poster {
        self.recall(self.placed);
        let rings = (self.transmit, self.completion);
        Poster::new(self.wake, self.share, rings, self.waking, self.counters)
    }

    pub(crate) fn counters(&self) -> Arc<SendCounters> {
        Arc::clone(&self.counters)
    }

    /// Whether the interface is up, as far as the last call knows.
    #[must_use]
    pub fn is_up(&self) -> bool {
        !matches!(self.state, Woken::Down | Woken::Gone)
    }

    /// Room for frame number `index` of those that wait, which has `length` bytes without FCS: a whole buffer.
    /// Numbers come one after the other. `None` when there is none for now, or never for that length.
    #[inline]
    pub fn place(&mut self, index: usize, length: usize) -> Option<&mut [u8]> {
        if index < self.submitted || index > self.placed || index >= BURST {
            return None;
        }
        if index == self.placed {
            if self.share.free() == 0 {
                self.share.reap(&mut self.completion);
            }
            self.waiting[index].0 = self.share.take()?;
            self.placed += 1;
        }
        let (frame, kept) = &mut self.waiting[index];
        let bytes = self.share.bytes_mut(*frame)?;
        if length > bytes.len() {
            return None;
        }
        #[allow(clippy::cast_possible_truncation)] // no more than a buffer
        let length = length as u32;
        *kept = length;
        Some(bytes)
    }

    /// Offers the first `count` frames that wait to the kernel, and says what became of them. Those that were
    /// not taken are in front then, and go on waiting.
    #[inline]
    pub fn send(&mut self, count: usize) -> Sent {
        self.share.reap(&mut self.completion);
        if self.is_up() {
            self.submit(count.min(self.placed));
        }
        self.wake();
        self.settle()
    }

    /// Takes the last frames of the `count` that wait back, and says how many. The kernel may still send the
    /// others.
    pub fn recall(&mut self, count: usize) -> usize {
        let count = count.min(self.placed).max(self.submitted);
        let mut recalled = count - self.submitted;
        if self.state == Woken::Gone || (self.waking.copies && !self.is_unsure && !self.taken().is_partial) {
            // The kernel reads a descriptor when it is woken, by this thread alone: until then it can be changed.
            let entries: u32 = (0..self.submitted).map(|place| self.entries(place)).sum();
            for ahead in 0..entries {
                let index = self.told.wrapping_add(self.void).wrapping_add(ahead);
                self.transmit.rewrite(index, Descriptor { address: u64::MAX, length: 0, options: 0 });
            }
            for (frame, _) in &self.waiting[..self.submitted] {
                self.share.take_back(*frame);
            }
            self.void += entries;
            add(&self.counters.recalled, u64::from(entries));
            recalled += self.submitted;
            (self.submitted, self.dropped) = (0, 0);
        }
        for place in self.submitted..self.placed {
            self.share.give_back(self.waiting[place].0);
        }
        self.placed = self.submitted;
        recalled
    }

    /// Puts the frames up to `count` that are not there into the ring.
    #[inline]
    fn submit(&mut self, count: usize) {
        if count <= self.submitted {
            return;
        }
        let mut room = self.transmit.room();
        for place in self.submitted..count {
            let (frame, length) = self.waiting[place];
            let entries = self.share.chunks(length);
            if entries > room {
                break;
            }
            room -= entries;
            self.share.write(frame, length, &mut self.transmit);
            self.share.lend(frame, entries);
            self.submitted = place + 1;
        }
        self.transmit.publish();
    }

    /// Entries of the ring that the frame at `place` of those that wait takes.
    #[inline]
    fn entries(&self, place: usize) -> u32 {
        self.share.chunks(self.waiting[place].1)
    }

    /// Has the kernel take what is in the ring.
    #[inline]
    fn wake(&mut self) {
        if !self.waking.copies {
            if self.waking.polls || self.transmit.needs_wakeup() || !self.is_up() {
                self.state = self.wake.wake_to_send();
            }
            return;
        }
        if self.submitted == 0 && self.void == 0 && self.is_up() {
            return;
        }
        // A call takes 16 entries or more, if it takes any; one that drops a frame may take no other.
        let waiting = self.transmit.next().wrapping_sub(self.transmit.consumed()) as usize;
        let (mut calls, mut drops) = (2 + waiting.max(self.submitted) / 16, BURST);
        let mut position = (u64::BITS - self.dropped.leading_zeros()) as usize;
        while calls > 0 && drops > 0 {
            let woken = self.wake.wake_to_send();
            self.state = woken;
            match woken {
                Woken::Down | Woken::Gone => return,
                Woken::Dropped => {
                    drops -= 1;
                    position = self.taken().frames.max(position + 1).min(self.submitted.max(1));
                    self.dropped |= 1_u64 << (position - 1);
                }
                Woken::Done | Woken::Again => calls -= 1,
            }
            if self.transmit.consumed() == self.transmit.next() {
                self.is_unsure = false;
                return;
            }
            self.is_unsure = true;
        }
    }

    /// What the kernel says it has taken, and was not yet told.
    #[inline]
    fn taken(&self) -> Taken {
        let entries = self.transmit.consumed().wrapping_sub(self.told);
        let void = entries.min(self.void);
        let (mut frames, mut rest) = (0, entries - void);
        if self.share.has_single_chunks() {
            frames = (rest as usize).min(self.submitted);
            rest -= frames as u32;
        }
        while rest > 0 && frames < self.submitted {
            let needs = self.entries(frames);
            if needs > rest {
                break;
            }
            rest -= needs;
            frames += 1;
        }
        Taken { void, entries: entries - rest, frames, is_partial: rest > 0 && frames < self.submitted }
    }

    /// Forgets what was taken, and tells it.
    #[inline]
    fn settle(&mut self) -> Sent {
        let Taken { void, entries, frames: taken, .. } = self.taken();
        self.void -= void;
        self.told = self.told.wrapping_add(entries);
        if taken == 0 {
            return Sent::default();
        }
        let mask = if taken >= 64 { u64::MAX } else { (1_u64 << taken) - 1 };
        let dropped = self.dropped & mask;
        self.dropped = if taken >= 64 { 0 } else { self.dropped >> taken };
        self.waiting.copy_within(taken..self.placed, 0);
        self.placed -= taken;
        self.submitted -= taken;
        add(&self.counters.sent, taken as u64 - u64::from(dropped.count_ones()));
        add(&self.counters.dropped, u64::from(dropped.count_ones()));
        Sent { taken, dropped }
    }
}

#[cfg(test)]
mod tests;
