//! The sending end of a socket: room for frames leaves, built frames enter, and what became of each is told.
//!
//! In copy mode the kernel sends inside the system call that wakes it, and nowhere else: what it took has left by
//! then, or it says that the driver dropped it. Without copies the driver takes frames when it likes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::BURST;
use crate::frames::Share;
use crate::ring::{Consumer, Descriptor, Producer};

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
}

/// When the kernel is woken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waking {
    /// Whether it copies: it sends while it is awake, and at no other time.
    pub copies: bool,
    /// Whether the driver works only when it is asked to (busy polling).
    pub polls: bool,
}

/// What became of frames in front of those that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// So many of the first were taken.
    pub taken: usize,
    /// Those of the taken that the driver dropped: bit `i` is frame `i`. They did not leave. Their number is
    /// exact; which of a burst they were, only on kernels that publish the index at once (Linux 6.12 and newer).
    pub dropped: u64,
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

fn add(counter: &AtomicU64, amount: u64) {
    // Nobody else writes.
    counter.store(counter.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
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
                self.reap();
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
        self.reap();
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
        if self.state == Woken::Gone || (self.waking.copies && !self.is_unsure) {
            // The kernel reads a descriptor when it is woken, by this thread alone: until then it can be changed.
            for ahead in 0..self.submitted {
                let index = self.told.wrapping_add(self.void).wrapping_add(ahead as u32);
                self.transmit.rewrite(index, Descriptor { address: u64::MAX, length: 0, options: 0 });
                self.share.returned(self.share.address(self.waiting[ahead].0));
            }
            self.void += self.submitted as u32;
            add(&self.counters.recalled, self.submitted as u64);
            recalled += self.submitted;
            (self.submitted, self.dropped) = (0, 0);
        }
        for place in self.submitted..self.placed {
            self.share.give_back(self.waiting[place].0);
        }
        self.placed = self.submitted;
        recalled
    }

    /// Takes frames that the kernel is done with.
    #[inline]
    fn reap(&mut self) {
        let available = self.completion.available();
        for ahead in 0..available {
            if let Some(frame) = self.share.returned(self.completion.address(ahead)) {
                self.share.give_back(frame);
            }
        }
        if available > 0 {
            self.completion.release(available);
        }
    }

    /// Puts the frames up to `count` that are not there into the ring.
    #[inline]
    fn submit(&mut self, count: usize) {
        let room = self.transmit.room() as usize;
        let end = count.min(self.submitted + room);
        if end <= self.submitted {
            return;
        }
        for (frame, length) in &self.waiting[self.submitted..end] {
            let address = self.share.address(*frame);
            self.transmit.write(Descriptor { address, length: *length, options: 0 });
            self.share.lend(*frame);
        }
        self.transmit.publish();
        self.submitted = end;
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
        // A call takes 16 frames or more, if it takes any; one that drops a frame may take no other.
        let (mut calls, mut drops) = (2 + self.submitted / 16, BURST);
        let mut position = (u64::BITS - self.dropped.leading_zeros()) as usize;
        while calls > 0 && drops > 0 {
            let woken = self.wake.wake_to_send();
            self.state = woken;
            match woken {
                Woken::Down | Woken::Gone => return,
                Woken::Dropped => {
                    drops -= 1;
                    position = self.taken().max(position + 1).min(self.submitted.max(1));
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

    /// Submitted frames that the kernel says it has taken.
    fn taken(&self) -> usize {
        let entries = self.transmit.consumed().wrapping_sub(self.told);
        (entries.saturating_sub(self.void) as usize).min(self.submitted)
    }

    /// Forgets what was taken, and tells it.
    #[inline]
    fn settle(&mut self) -> Sent {
        let entries = self.transmit.consumed().wrapping_sub(self.told);
        let taken = self.taken();
        self.void -= entries.min(self.void);
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
mod tests {
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;
    use crate::frames::Memory;
    use crate::ring::simulated::ring;

    /// What the kernel does when it is woken next.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// Takes up to so many frames; they complete at once.
        Take(u32),
        /// Takes up to so many, and drops the last.
        Drop(u32),
        Down,
    }

    /// A kernel that copies.
    struct Simulated {
        rings: Mutex<(Consumer, Producer)>,
        steps: Mutex<Vec<Step>>,
        /// The first byte of each frame that left, and its length.
        left: Mutex<Vec<(u64, u32)>>,
        invalid: Mutex<u64>,
        lost: Mutex<u64>,
    }

    impl Wake for Simulated {
        fn wake_to_send(&self) -> Woken {
            let (transmit, completion) = &mut *self.rings.lock().unwrap();
            let step = self.steps.lock().unwrap().pop().unwrap_or(Step::Take(u32::MAX));
            let (most, drops) = match step {
                Step::Down => return Woken::Down,
                Step::Take(most) => (most, false),
                Step::Drop(most) => (most.max(1), true),
            };
            let mut taken = 0;
            while taken < most && transmit.available() > 0 {
                let descriptor = transmit.descriptor(0);
                transmit.release(1);
                if descriptor.length == 0 {
                    *self.invalid.lock().unwrap() += 1;
                    continue;
                }
                taken += 1;
                completion.write_address(descriptor.address);
                completion.publish();
                if drops && (taken == most || transmit.available() == 0) {
                    *self.lost.lock().unwrap() += 1;
                    return Woken::Dropped;
                }
                self.left.lock().unwrap().push((descriptor.address / 2048, descriptor.length));
            }
            if transmit.available() > 0 { Woken::Again } else { Woken::Done }
        }

        fn wake_to_receive(&self) {}
    }

    fn sender(start: u32, steps: Vec<Step>) -> (Sender, Arc<Simulated>) {
        let (transmit, taken) = ring(128, 2, start);
        let (completed, completion) = ring(128, 1, start);
        let kernel = Arc::new(Simulated {
            rings: Mutex::new((taken, completed)),
            steps: Mutex::new(steps),
            left: Mutex::default(),
            invalid: Mutex::default(),
            lost: Mutex::default(),
        });
        let memory = Arc::new(Memory::new(100, 2048, 0).unwrap());
        let share = Share::new(&memory, 0, 100);
        (
            Sender::new(
                Arc::clone(&kernel) as Arc<dyn Wake>,
                share,
                transmit,
                completion,
                Waking { copies: true, polls: false },
            ),
            kernel,
        )
    }

    fn place(sender: &mut Sender, from: usize, count: usize) {
        for index in from..from + count {
            assert!(sender.place(index, 60 + index).is_some());
        }
    }

    #[test]
    fn a_burst_leaves_in_one_call_and_its_frames_come_back() {
        let (mut sender, kernel) = sender(u32::MAX - 10, Vec::new());
        for round in 0..10 {
            place(&mut sender, 0, BURST);
            assert_eq!(sender.send(BURST), Sent { taken: BURST, dropped: 0 }, "{round}");
        }
        assert_eq!(kernel.left.lock().unwrap().len(), 10 * BURST);
        assert_eq!(sender.counters.sent.load(Ordering::Relaxed), 640);
    }

    #[test]
    fn what_the_driver_drops_is_told_and_no_other() {
        // The last step comes first.
        let (mut sender, kernel) = sender(0, vec![Step::Drop(1), Step::Take(2), Step::Drop(3)]);
        place(&mut sender, 0, 8);
        assert_eq!(sender.send(8), Sent { taken: 8, dropped: 0b10_0100 });
        let lengths: Vec<u32> = kernel.left.lock().unwrap().iter().map(|(_, length)| *length).collect();
        assert_eq!(lengths, [60, 61, 63, 64, 66, 67]);
    }

    #[test]
    fn what_waits_while_the_interface_is_down_is_taken_back_and_never_leaves() {
        let (mut sender, kernel) = sender(0, vec![Step::Down]);
        place(&mut sender, 0, 5);
        assert_eq!(sender.send(5), Sent::default());
        assert!(!sender.is_up());
        assert_eq!(sender.recall(5), 5);
        place(&mut sender, 0, 2);
        assert_eq!(sender.send(2), Sent::default(), "it is only now known to be up again");
        assert_eq!(sender.send(2), Sent { taken: 2, dropped: 0 });
        assert_eq!((kernel.left.lock().unwrap().len(), *kernel.invalid.lock().unwrap()), (2, 5));
        // No frame was lost on the way.
        place(&mut sender, 0, BURST);
        assert_eq!(sender.send(BURST).taken, BURST);
        sender.reap();
        assert_eq!(sender.share.free(), 100);
    }

    #[test]
    fn what_the_kernel_may_have_taken_is_not_taken_back() {
        let (mut sender, _) = sender(0, vec![Step::Take(0); 8]);
        place(&mut sender, 0, 5);
        assert_eq!(sender.send(3), Sent::default());
        assert_eq!(sender.recall(5), 2, "three are in the ring");
        assert!(sender.place(0, 60).is_none() && sender.place(3, 60).is_some());
    }

    #[test]
    fn a_frame_longer_than_a_buffer_has_no_room() {
        let (mut sender, _) = sender(0, Vec::new());
        assert!(sender.place(0, 2049).is_none() && sender.place(0, 2048).is_some());
        assert!(sender.place(2, 60).is_none(), "numbers come one after the other");
    }

    proptest! {
        #[test]
        fn every_frame_leaves_once_is_dropped_or_is_taken_back(
            start in any::<u32>(),
            steps in prop::collection::vec(prop_oneof![
                (0_u32..40).prop_map(Step::Take), (1_u32..20).prop_map(Step::Drop), Just(Step::Down)
            ], 0..60),
            rounds in prop::collection::vec((1_usize..=BURST, any::<bool>()), 1..30),
        ) {
            let (mut sender, kernel) = sender(start, steps);
            let (mut offered, mut taken, mut dropped, mut recalled) = (0, 0, 0, 0);
            let mut waits = 0;
            for (count, gives_up) in rounds {
                while waits < count && sender.place(waits, 60).is_some() {
                    waits += 1;
                    offered += 1;
                }
                let sent = sender.send(waits);
                prop_assert_eq!(sent.dropped & (u64::MAX.checked_shl(sent.taken as u32).unwrap_or(0)), 0);
                taken += sent.taken;
                dropped += u64::from(sent.dropped.count_ones());
                waits -= sent.taken;
                if gives_up {
                    let back = sender.recall(waits);
                    recalled += back;
                    waits -= back;
                }
            }
            kernel.steps.lock().unwrap().clear();
            for _ in 0..3 {
                let sent = sender.send(waits);
                taken += sent.taken;
                dropped += u64::from(sent.dropped.count_ones());
                waits -= sent.taken;
            }
            prop_assert_eq!((waits, offered), (0, taken + recalled));
            prop_assert_eq!(dropped, *kernel.lost.lock().unwrap());
            prop_assert_eq!(kernel.left.lock().unwrap().len() as u64, taken as u64 - dropped);
            sender.reap();
            prop_assert_eq!(sender.share.free(), 100);
        }
    }
}
