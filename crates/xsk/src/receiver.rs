//! The receiving end of a socket: frames are lent where they arrived, and given back. A frame over a page arrives in
//! several pieces, which are put together beside.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::libc::XDP_PKT_CONTD;

use crate::BURST;
use crate::frames::Share;
use crate::ring::{Consumer, Producer};
use crate::wake::Wake;

/// What a receiver has counted. One thread counts, any may read.
#[derive(Debug, Default)]
pub struct ReceiveCounters {
    /// Frames that were lent.
    pub received: AtomicU64,
    /// Descriptors that named no frame which the kernel had.
    pub malformed: AtomicU64,
}

/// A frame that is lent.
#[derive(Clone, Debug)]
enum Lent {
    /// Where it arrived.
    InPlace { frame: u32, address: u64, length: usize },
    /// So many bytes of what was put together, from there.
    Joined { start: usize, length: usize },
    /// A piece of it is missing.
    Broken,
}

/// The receiving end of a socket, for one thread.
pub struct Receiver {
    wake: Arc<dyn Wake>,
    share: Share,
    receive: Consumer,
    fill: Producer,
    /// Whether the kernel is to be asked each time (busy polling).
    polls: bool,
    lent: Vec<Lent>,
    /// Frames that arrived in pieces: those of one burst at most.
    joined: Vec<u8>,
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
            lent: Vec::with_capacity(BURST),
            joined: Vec::new(),
            counters: Arc::default(),
        };
        receiver.refill();
        receiver
    }

    /// What becomes readable when frames have arrived, for who wants to wait for them.
    #[must_use]
    pub fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.wake.readable()
    }

    pub(crate) fn counters(&self) -> Arc<ReceiveCounters> {
        Arc::clone(&self.counters)
    }

    /// How many frames have arrived, up to [`BURST`]; they are there until they are released, which this does
    /// first.
    #[inline]
    pub fn receive(&mut self) -> usize {
        self.receive_up_to(BURST)
    }

    /// As [`Self::receive`], up to `most`. Where the kernel is to be asked for frames it is asked once, unless `most`
    /// are there.
    #[inline]
    pub fn receive_up_to(&mut self, most: usize) -> usize {
        self.release();
        if self.polls && (self.receive.available() as usize) < most {
            self.wake.wake_to_receive();
        }
        let available = (self.receive.available() as usize).min(most);
        if available == 0 {
            if self.fill.needs_wakeup() {
                self.wake.wake_to_receive();
            }
            return 0;
        }
        let (mut malformed, mut ahead) = (0, 0);
        while ahead < available {
            let pieces = self.pieces(ahead, available);
            if pieces == 0 {
                break;
            }
            malformed += if pieces == 1 { self.lend(ahead) } else { self.join(ahead, pieces) };
            ahead += pieces;
        }
        self.receive.release(ahead as u32);
        let counters = &self.counters;
        let add = |counter: &AtomicU64, amount: u64| {
            counter.store(counter.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
        };
        add(&counters.received, self.lent.len() as u64);
        if malformed > 0 {
            add(&counters.malformed, malformed);
        }
        self.lent.len()
    }

    /// Descriptors of the frame that begins with the one at `ahead`, of those `available`; none while its last
    /// is not there. No frame has a whole burst of them: what goes on for so long is taken as one.
    #[inline]
    fn pieces(&self, ahead: usize, available: usize) -> usize {
        let goes_on = |ahead| self.receive.descriptor(ahead as u32).options & XDP_PKT_CONTD != 0;
        let looked_at = (available - ahead).min(BURST);
        match (ahead..ahead + looked_at).position(|ahead| !goes_on(ahead)) {
            Some(last) => last + 1,
            None if looked_at == BURST => BURST,
            None => 0,
        }
    }

    /// Lends the frame of one descriptor where it is. Says how many descriptors named no frame that the kernel had.
    #[inline]
    fn lend(&mut self, ahead: usize) -> u64 {
        let descriptor = self.receive.descriptor(ahead as u32);
        let Some(frame) = self.share.returned(descriptor.address) else { return 1 };
        let length = descriptor.length as usize;
        self.lent.push(Lent::InPlace { frame, address: descriptor.address, length });
        0
    }

    /// Puts the frame of `count` descriptors together, and says the same.
    #[cold]
    fn join(&mut self, ahead: usize, count: usize) -> u64 {
        let (start, mut malformed, mut is_whole) = (self.joined.len(), 0, true);
        for ahead in ahead..ahead + count {
            let descriptor = self.receive.descriptor(ahead as u32);
            let Some(frame) = self.share.returned(descriptor.address) else {
                malformed += 1;
                is_whole = false;
                continue;
            };
            match self.share.bytes(descriptor.address, descriptor.length as usize) {
                Some(piece) => self.joined.extend_from_slice(piece),
                None => is_whole = false,
            }
            self.share.give_back(frame);
        }
        let length = self.joined.len() - start;
        self.lent.push(if is_whole { Lent::Joined { start, length } } else { Lent::Broken });
        malformed
    }

    /// Frame `index` of those, without FCS; `None` if a piece of it is missing.
    #[inline]
    #[must_use]
    pub fn frame(&self, index: usize) -> Option<&[u8]> {
        match self.lent.get(index)? {
            Lent::InPlace { address, length, .. } => self.share.bytes(*address, *length),
            Lent::Joined { start, length } => self.joined.get(*start..start + length),
            Lent::Broken => None,
        }
    }

    /// As [`Self::frame`], to be rewritten where it is: the bytes from its first on that are its own, into which it may
    /// grow, and how many it has.
    #[inline]
    #[must_use]
    pub fn frame_mut(&mut self, index: usize) -> Option<(&mut [u8], usize)> {
        match self.lent.get(index)? {
            Lent::InPlace { address, length, .. } => {
                let room = self.share.room_mut(*address)?;
                (*length <= room.len()).then_some((room, *length))
            }
            Lent::Joined { start, length } => {
                let room = self.joined.get_mut(*start..start + length)?;
                Some((room, *length))
            }
            Lent::Broken => None,
        }
    }

    /// Gives all of them back.
    #[inline]
    pub fn release(&mut self) {
        if self.lent.is_empty() {
            return;
        }
        for lent in self.lent.drain(..) {
            if let Lent::InPlace { frame, .. } = lent {
                self.share.give_back(frame);
            }
        }
        self.joined.clear();
        self.refill();
    }

    /// Gives the kernel all frames that nobody uses.
    #[inline]
    fn refill(&mut self) {
        self.share.fill(&mut self.fill);
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
    use crate::wake::Woken;

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
        let share = Share::new(&memory, 4, 16, 1);
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
            let lent = receiver.frame_mut(2).map(|(room, length)| (room.len(), length));
            assert_eq!(lent, Some((2048 - 256, 60 + round as usize)));
            assert!(receiver.frame(3).is_none());
            assert_eq!(filled.available(), 13);
            receiver.release();
            assert_eq!((filled.available(), receiver.receive()), (16, 0));
        }
    }

    #[test]
    fn the_pieces_of_a_frame_are_put_together_once_all_are_there() {
        let (mut receiver, mut filled, mut arrived) = receiver(0);
        let mut arrive = |length: u32, options: u32| {
            arrived.write(Descriptor { address: filled.address(0), length, options });
            filled.release(1);
            arrived.publish();
        };
        arrive(2048, XDP_PKT_CONTD);
        assert_eq!(receiver.receive(), 0, "the rest is missing");
        arrive(700, 0);
        arrive(60, 0);
        arrive(2048, XDP_PKT_CONTD);
        assert_eq!(receiver.receive(), 2);
        assert_eq!([0, 1].map(|index| receiver.frame(index).map(<[u8]>::len)), [Some(2748), Some(60)]);
        arrive(9000, 0);
        assert_eq!(receiver.receive(), 1);
        assert!(receiver.frame(0).is_none(), "a piece is longer than its place");
        receiver.release();
        assert_eq!(filled.available(), 16);
        assert_eq!(receiver.counters.received.load(Ordering::Relaxed), 3);
    }

    proptest! {
        #[test]
        fn whatever_the_kernel_writes_no_byte_outside_its_frames_is_touched(
            descriptors in prop::collection::vec(
                (prop_oneof![any::<u64>(), 0_u64..60_000], prop_oneof![any::<u32>(), 0_u32..5000]), 1..60),
            goes_on in prop::collection::vec(any::<bool>(), 1..9),
        ) {
            let (mut receiver, _filled, mut arrived) = receiver(7);
            let goes_on = goes_on.iter().cycle();
            for ((address, length), goes_on) in descriptors.into_iter().zip(goes_on) {
                arrived.write(Descriptor { address, length, options: if *goes_on { XDP_PKT_CONTD } else { 0 } });
                arrived.publish();
                let count = receiver.receive();
                for index in 0..count {
                    if let Some((room, length)) = receiver.frame_mut(index) {
                        prop_assert!(length <= room.len() && room.len() <= 16 * 2048);
                        room.fill(1);
                    }
                    if let Some(frame) = receiver.frame(index) {
                        if matches!(receiver.lent[index], Lent::InPlace { .. }) {
                            prop_assert_eq!(frame.len(), length as usize);
                            prop_assert!(address >= 4 * 2048 && address + u64::from(length) <= 20 * 2048);
                        }
                        prop_assert!(frame.len() <= 16 * 2048);
                    }
                }
            }
        }
    }
}
