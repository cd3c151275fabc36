//! The receiving end of a socket: frames are lent where they arrived, and given back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::libc::XDP_PKT_CONTD;

use crate::BURST;
use crate::frames::Share;
use crate::ring::{Consumer, Producer};
use crate::sender::Wake;

/// What a receiver has counted. One thread counts, any may read.
#[derive(Debug, Default)]
pub struct ReceiveCounters {
    /// Frames that were lent.
    pub received: AtomicU64,
    /// Descriptors that named no frame which the kernel had.
    pub malformed: AtomicU64,
}

/// A frame that is lent.
#[derive(Clone, Copy, Debug, Default)]
struct Lent {
    frame: u32,
    address: u64,
    length: usize,
    /// Whether it is all of a frame, and not one of several pieces.
    is_whole: bool,
}

/// The receiving end of a socket, for one thread.
pub struct Receiver {
    wake: Arc<dyn Wake>,
    share: Share,
    receive: Consumer,
    fill: Producer,
    /// Whether the kernel is to be asked each time (busy polling).
    polls: bool,
    lent: [Lent; BURST],
    count: usize,
    /// Whether the next descriptor goes on with the frame of the last.
    in_pieces: bool,
    counters: Arc<ReceiveCounters>,
}

impl Receiver {
    pub(crate) fn new(
        wake: Arc<dyn Wake>,
        share: Share,
        receive: Consumer,
        fill: Producer,
        polls: bool,
    ) -> Self {
        let mut receiver = Self {
            wake,
            share,
            receive,
            fill,
            polls,
            lent: [Lent::default(); BURST],
            count: 0,
            in_pieces: false,
            counters: Arc::default(),
        };
        receiver.refill();
        receiver
    }

    pub(crate) fn counters(&self) -> Arc<ReceiveCounters> {
        Arc::clone(&self.counters)
    }

    /// How many frames have arrived, up to [`BURST`]; they are there until they are released, which this does
    /// first.
    #[inline]
    pub fn receive(&mut self) -> usize {
        self.release();
        if self.polls {
            self.wake.wake_to_receive();
        }
        let available = (self.receive.available() as usize).min(BURST);
        if available == 0 {
            if self.fill.needs_wakeup() {
                self.wake.wake_to_receive();
            }
            return 0;
        }
        let mut malformed = 0;
        for ahead in 0..available {
            let descriptor = self.receive.descriptor(ahead as u32);
            let goes_on = descriptor.options & XDP_PKT_CONTD != 0;
            let is_whole = !goes_on && !self.in_pieces;
            self.in_pieces = goes_on;
            let Some(frame) = self.share.returned(descriptor.address) else {
                malformed += 1;
                continue;
            };
            let length = descriptor.length as usize;
            self.lent[self.count] = Lent { frame, address: descriptor.address, length, is_whole };
            self.count += 1;
        }
        self.receive.release(available as u32);
        let counters = &self.counters;
        let add = |counter: &AtomicU64, amount: u64| {
            counter.store(counter.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
        };
        add(&counters.received, self.count as u64);
        if malformed > 0 {
            add(&counters.malformed, malformed);
        }
        self.count
    }

    /// Frame `index` of those, without FCS; `None` if it is in several pieces.
    #[inline]
    #[must_use]
    pub fn frame(&self, index: usize) -> Option<&[u8]> {
        let lent = self.lent[..self.count].get(index).filter(|lent| lent.is_whole)?;
        self.share.bytes(lent.address, lent.length)
    }

    /// Gives all of them back.
    #[inline]
    pub fn release(&mut self) {
        if self.count == 0 {
            return;
        }
        for lent in &self.lent[..self.count] {
            self.share.give_back(lent.frame);
        }
        self.count = 0;
        self.refill();
    }

    /// Gives the kernel all frames that nobody uses.
    #[inline]
    fn refill(&mut self) {
        let mut room = self.fill.room();
        while room > 0
            && let Some(frame) = self.share.take()
        {
            self.fill.write_address(self.share.address(frame));
            self.share.lend(frame);
            room -= 1;
        }
        self.fill.publish();
        if self.fill.needs_wakeup() {
            self.wake.wake_to_receive();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frames::Memory;
    use crate::ring::Descriptor;
    use crate::ring::simulated::ring;
    use crate::sender::Woken;

    struct Nobody;

    impl Wake for Nobody {
        fn wake_to_send(&self) -> Woken {
            Woken::Done
        }

        fn wake_to_receive(&self) {}
    }

    /// A receiver of 16 frames from number 4, and the kernel's sides of its rings.
    fn receiver(start: u32) -> (Receiver, Consumer, Producer) {
        let (arrived, receive) = ring(16, 2, start);
        let (fill, filled) = ring(16, 1, start);
        let memory = Arc::new(Memory::new(20, 2048, 0).unwrap());
        let share = Share::new(&memory, 4, 16);
        (Receiver::new(Arc::new(Nobody), share, receive, fill, false), filled, arrived)
    }

    #[test]
    fn frames_are_lent_and_given_back() {
        let (mut receiver, mut filled, mut arrived) = receiver(u32::MAX - 5);
        assert_eq!(filled.available(), 16);
        for round in 0..10_u32 {
            for _ in 0..3 {
                let address = filled.address(0) + 256;
                filled.release(1);
                arrived.write(Descriptor { address, length: 60 + round, options: 0 });
            }
            arrived.publish();
            assert_eq!(receiver.receive(), 3);
            assert_eq!(receiver.frame(2).map(<[u8]>::len), Some(60 + round as usize));
            assert!(receiver.frame(3).is_none());
            assert_eq!(filled.available(), 13);
            receiver.release();
            assert_eq!((filled.available(), receiver.receive()), (16, 0));
        }
    }

    #[test]
    fn a_frame_in_several_pieces_is_no_frame_but_is_given_back() {
        let (mut receiver, mut filled, mut arrived) = receiver(0);
        for options in [XDP_PKT_CONTD, 0, 0] {
            arrived.write(Descriptor { address: filled.address(0), length: 60, options });
            filled.release(1);
        }
        arrived.publish();
        assert_eq!(receiver.receive(), 3);
        assert!([0, 1].iter().all(|index| receiver.frame(*index).is_none()) && receiver.frame(2).is_some());
        receiver.release();
        assert_eq!(filled.available(), 16);
    }

    proptest! {
        #[test]
        fn whatever_the_kernel_writes_no_byte_outside_its_frames_is_touched(
            descriptors in prop::collection::vec(
                (prop_oneof![any::<u64>(), 0_u64..60_000], prop_oneof![any::<u32>(), 0_u32..5000]), 1..60)
        ) {
            let (mut receiver, _filled, mut arrived) = receiver(7);
            for (address, length) in descriptors {
                arrived.write(Descriptor { address, length, options: 0 });
                arrived.publish();
                let count = receiver.receive();
                for index in 0..count {
                    if let Some(frame) = receiver.frame(index) {
                        prop_assert_eq!(frame.len(), length as usize);
                        prop_assert!(address >= 4 * 2048 && address + u64::from(length) <= 20 * 2048);
                    }
                }
            }
        }
    }
}
