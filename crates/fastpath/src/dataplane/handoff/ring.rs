//! A ring of frames between two threads: one copies frames in, the other one has them lent in the same order.
//! Nobody waits, and nothing is locked.
//!
//! Frames lie one after the other in lines of the cache, each with its length before it and room to grow
//! behind it; none goes over the end. Whose a line is, [`Positions`] say.

use std::cell::UnsafeCell;
use std::sync::Arc;

use crate::dataplane::counters::Counter;
use crate::dataplane::vector::Frame;
use crate::device::Input;

use super::positions::{Positions, Reading, Writing};

/// Bytes of a line.
const LINE: usize = 64;
/// Lines of a ring, a power of two: 512 KiB, which hold a vector of the longest ordinary frames, or sixteen of
/// the shortest. Miri, which takes milliseconds for a frame, gets a small one to come round.
pub(super) const LINES: usize = if cfg!(miri) { 512 } else { 8192 };
/// Bytes before a frame, of which the first four are its length.
const HEADER: usize = 16;
/// Bytes that a frame can grow by: nodes put tags and options in.
const ROOM: usize = 32;
/// Instead of a length: the next frame is at the beginning of the ring.
const WRAPS: u32 = u32::MAX;

#[repr(align(64))]
struct Line(#[allow(dead_code)] [u8; LINE]); // reached by pointers alone

struct Ring {
    lines: Box<[UnsafeCell<Line>]>,
    positions: Positions,
    handed: Counter,
    refused: Counter,
}

// SAFETY: every line is either the sender's or the receiver's, as the positions say, which are passed on by
// release and acquire.
unsafe impl Sync for Ring {}

impl Ring {
    /// Where the line at a position begins.
    fn line(&self, position: usize) -> *mut u8 {
        // A pointer to the whole, so that a frame may lie over several lines.
        let lines = UnsafeCell::raw_get(self.lines.as_ptr());
        lines.cast::<u8>().wrapping_add(position % LINES * LINE)
    }
}

/// The sender's end.
pub(super) struct Sender {
    ring: Arc<Ring>,
    at: Writing,
}

/// The receiver's end.
pub(super) struct Receiver {
    ring: Arc<Ring>,
    at: Reading,
}

/// What went through a ring.
#[derive(Clone)]
pub struct Meter(Arc<Ring>);

/// An empty ring.
pub(super) fn ring() -> (Sender, Receiver) {
    let ring = Arc::new(Ring {
        lines: (0..LINES).map(|_| UnsafeCell::new(Line([0; LINE]))).collect(),
        positions: Positions::default(),
        handed: Counter::default(),
        refused: Counter::default(),
    });
    (Sender { ring: Arc::clone(&ring), at: Writing::default() }, Receiver { ring, at: Reading::default() })
}

/// How many lines a frame takes.
fn lines_of(length: usize) -> usize {
    (HEADER + length + ROOM).div_ceil(LINE)
}

impl Sender {
    /// Copies a frame in; says whether there was room.
    #[inline]
    pub fn push(&mut self, frame: &[u8]) -> bool {
        let lines = lines_of(frame.len());
        let to_end = LINES - self.at.written % LINES;
        let skipped = if to_end < lines { to_end } else { 0 };
        if !self.at.has_room(&self.ring.positions, skipped + lines, LINES) {
            self.ring.refused.add(1);
            return false;
        }
        if skipped > 0 {
            // SAFETY: there is room, so the line is ours; it has more than four bytes.
            unsafe { self.ring.line(self.at.written).cast::<u32>().write(WRAPS) };
            self.at.written += skipped;
        }
        let start = self.ring.line(self.at.written);
        // SAFETY: there is room for so many lines, which are ours and lie before the end of the ring. The
        // frame is not in the ring, or in lines that are lent, so not in these.
        unsafe {
            start.cast::<u32>().write(frame.len() as u32);
            start.add(HEADER).copy_from_nonoverlapping(frame.as_ptr(), frame.len());
        }
        self.at.written += lines;
        self.ring.handed.add(1);
        true
    }

    /// Has the receiver see what was copied in.
    #[inline]
    pub fn publish(&mut self) {
        self.at.publish(&self.ring.positions);
    }

    pub fn meter(&self) -> Meter {
        Meter(Arc::clone(&self.ring))
    }
}

impl Input for Receiver {
    fn receive(&mut self, frames: &mut [Frame]) -> usize {
        let published = self.at.published(&self.ring.positions);
        let mut count = 0;
        while self.at.lent != published
            && let Some(frame) = frames.get_mut(count)
        {
            let start = self.ring.line(self.at.lent);
            // SAFETY: the line is ours, and the sender began it with four bytes of length.
            let length = unsafe { start.cast::<u32>().read() };
            if length == WRAPS {
                self.at.lent += LINES - self.at.lent % LINES;
                continue;
            }
            let lines = lines_of(length as usize);
            let capacity = lines * LINE - HEADER;
            // SAFETY: these lines are ours until `release`, to be lent once, and have so many bytes.
            *frame = unsafe { Frame::new(start.add(HEADER), length, capacity as u32) };
            self.at.lent += lines;
            count += 1;
        }
        count
    }

    fn release(&mut self) {
        self.at.release(&self.ring.positions);
    }
}

impl Meter {
    /// Frames that were handed over.
    #[must_use]
    pub fn handed(&self) -> u64 {
        self.0.handed.get()
    }

    /// Frames for which there was no room.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// Bytes of the longest frame, and how often frames are pushed and lent.
    const LONGEST: usize = if cfg!(miri) { 200 } else { 9100 };
    const TURNS: usize = if cfg!(miri) { 10 } else { 40 };

    fn frame(number: usize, length: usize) -> Vec<u8> {
        (0..length).map(|at| (number + at) as u8).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 64 }))]

        /// As a queue: what was pushed is lent in its order.
        #[test]
        fn as_a_queue(
            turns in prop::collection::vec((prop::collection::vec(0..LONGEST, 0..60), 0usize..80), 1..TURNS),
        ) {
            let (mut sender, mut receiver) = ring();
            let mut queue = VecDeque::new();
            let mut pushed = 0;
            for (lengths, most) in turns {
                for length in lengths {
                    pushed += 1;
                    let frame = frame(pushed, length);
                    if sender.push(&frame) {
                        queue.push_back(frame);
                    } else {
                        prop_assert!(!queue.is_empty(), "an empty ring has room");
                    }
                }
                sender.publish();
                let mut lent = vec![Frame::NONE; most];
                let count = receiver.receive(&mut lent);
                prop_assert_eq!(count, most.min(queue.len()));
                for frame in &lent[..count] {
                    prop_assert_eq!(frame.bytes(), &queue.pop_front().unwrap()[..]);
                }
                receiver.release();
            }
        }
    }

    #[test]
    fn nothing_is_seen_before_it_is_published_and_room_comes_back_when_it_is_released() {
        let (mut sender, mut receiver) = ring();
        let mut lent = vec![Frame::NONE; LINES];
        let mut pushed = 0;
        while sender.push(&frame(pushed, 60)) {
            pushed += 1;
        }
        assert_eq!((pushed, sender.meter().refused()), (LINES / lines_of(60), 1));
        assert_eq!(receiver.receive(&mut lent), 0);
        sender.publish();
        assert_eq!(receiver.receive(&mut lent), pushed);
        assert!(!sender.push(&[0; 60]));
        receiver.release();
        assert!(sender.push(&[0; 60]));
    }

    #[test]
    fn between_threads_nothing_is_lost_or_changes_its_order() {
        const FRAMES: usize = if cfg!(miri) { 200 } else { 10_000 };
        let (mut sender, mut receiver) = ring();
        let meter = sender.meter();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..FRAMES {
                    while !sender.push(&frame(number, 60 + number % 1500)) {
                        sender.publish();
                        std::thread::yield_now();
                    }
                    if number % 7 == 0 {
                        sender.publish();
                    }
                }
                sender.publish();
            });
            let (mut lent, mut number) = ([Frame::NONE; 32], 0);
            while number < FRAMES {
                let count = receiver.receive(&mut lent);
                for lent in &lent[..count] {
                    assert_eq!(lent.bytes(), frame(number, 60 + number % 1500));
                    number += 1;
                }
                receiver.release();
                if count == 0 {
                    std::thread::yield_now();
                }
            }
        });
        assert_eq!(meter.handed(), FRAMES as u64);
    }
}
