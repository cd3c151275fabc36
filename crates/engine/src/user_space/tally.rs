//! What one worker counts: it alone writes, and others read at any time. No locks, and no more than
//! plain loads and stores.

use std::sync::atomic::{AtomicU64, Ordering};

use stats::Histogram;
use stats::histogram::{BUCKETS, bucket};
use traffic::Apart;

use crate::Untaken;
use crate::apart::{StreamReceived, StreamTotals};
use crate::live::{INTERVALS, Received, Sent};
use crate::order::Order;
use crate::timeline::{BIN_SHIFT, BINS, Bins};

/// Directions of a frame table.
pub const DIRECTIONS: usize = 2;

/// A number that one thread changes.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// The number.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds to it; only the thread that it belongs to does so.
    #[inline]
    pub fn add(&self, value: u64) {
        self.set(self.get().wrapping_add(value));
    }
}

/// What a worker sent in one interval and direction.
#[derive(Debug, Default)]
pub struct SentCounters {
    pub frames: Counter,
    /// Without FCS.
    pub bytes: Counter,
    /// Too late: of all directions together, counted under the first.
    pub unsent: Counter,
    /// Given up because the port's queue stayed full.
    pub queue_full: Counter,
    /// Given up because the port was down.
    pub down: Counter,
    /// Dropped by the tester's own driver.
    pub dropped: Counter,
    /// Of `frames`, refused by the device's receive queue.
    pub refused: Counter,
    /// When the worker's interval really began, under the first direction.
    pub begun: Counter,
}

/// What came back of the frames that left in one interval and direction.
#[derive(Debug, Default)]
pub struct ReceivedCounters {
    pub frames: Counter,
    /// Without FCS.
    pub bytes: Counter,
    /// Plus one, so that zero means none yet.
    pub latency_min: Counter,
    pub latency_max: Counter,
    pub latency_sum: Counter,
}

/// What came back in one direction since the start.
#[derive(Debug)]
pub struct TotalCounters {
    pub frames: Counter,
    pub duplicates: Counter,
    pub reordered: Counter,
    pub returned: Counter,
    pub foreign: Counter,
    pub latency: Buckets,
}

/// What a worker sent and received of one stream that is counted apart.
#[derive(Debug, Default)]
pub struct StreamCounters {
    sent: Counter,
    /// Without FCS.
    sent_bytes: Counter,
    frames: Counter,
    bytes: Counter,
    duplicates: Counter,
    reordered: Counter,
    gaps: Counter,
    missing: Counter,
    /// Plus one, so that zero means none yet.
    latency_min: Counter,
    latency_max: Counter,
    latency_sum: Counter,
    /// The latency of the frame before.
    last: Counter,
    /// 16 times the jitter.
    jitter: Counter,
    latency: Option<Buckets>,
}

/// A histogram of durations.
#[derive(Debug)]
pub struct Buckets(Vec<Counter>);

/// Frames by when they left: the number of a bin in the upper half, its frames in the lower.
#[derive(Debug)]
pub struct BinCounters(Vec<Counter>);

/// All that a worker counts.
#[derive(Debug)]
pub struct Tally {
    /// The slot it follows, plus one: zero means none yet.
    slot: Counter,
    /// How long it has found nothing to do, in nanoseconds.
    pub idle_ns: Counter,
    sent: Vec<SentCounters>,
    /// Frames that a full queue of the device's refused: of those sent.
    pub refused: [Counter; DIRECTIONS],
    pub lateness: [Buckets; DIRECTIONS],
    pub sent_bins: [BinCounters; DIRECTIONS],
    received: Vec<ReceivedCounters>,
    pub totals: [TotalCounters; DIRECTIONS],
    pub received_bins: [BinCounters; DIRECTIONS],
    streams: [Vec<StreamCounters>; DIRECTIONS],
}

fn many<T: Default>(count: usize) -> Vec<T> {
    (0..count).map(|_| T::default()).collect()
}

impl Tally {
    /// Counters of nothing yet; of some streams apart.
    pub fn new(apart: Apart) -> Self {
        let stream = |number| StreamCounters {
            latency: (number < apart.latencies).then(Buckets::new),
            ..StreamCounters::default()
        };
        let streams = || (0..apart.streams).map(stream).collect();
        let total = || TotalCounters {
            frames: Counter::default(),
            duplicates: Counter::default(),
            reordered: Counter::default(),
            returned: Counter::default(),
            foreign: Counter::default(),
            latency: Buckets::new(),
        };
        Self {
            slot: Counter::default(),
            idle_ns: Counter::default(),
            sent: many(INTERVALS * DIRECTIONS),
            refused: [Counter::default(), Counter::default()],
            lateness: [Buckets::new(), Buckets::new()],
            sent_bins: [BinCounters::new(), BinCounters::new()],
            received: many(INTERVALS * DIRECTIONS),
            totals: [total(), total()],
            received_bins: [BinCounters::new(), BinCounters::new()],
            streams: [streams(), streams()],
        }
    }

    /// The slot that the worker follows.
    pub fn slot(&self) -> Option<u64> {
        self.slot.get().checked_sub(1)
    }

    /// Says that all counts of earlier slots are final.
    pub fn follow(&self, slot: u64) {
        self.slot.0.store(slot + 1, Ordering::Release);
    }

    /// What the worker sent in `slot`.
    #[inline]
    pub fn sent(&self, slot: u64, direction: usize) -> &SentCounters {
        &self.sent[place(slot, direction)]
    }

    /// What it received of frames of `slot`.
    #[inline]
    pub fn received(&self, slot: u64, direction: usize) -> &ReceivedCounters {
        &self.received[place(slot, direction)]
    }

    /// What the worker counts of stream `number` in `direction`, if that is counted apart.
    #[inline]
    pub fn stream(&self, number: u8, direction: usize) -> Option<&StreamCounters> {
        self.streams[direction % DIRECTIONS].get(usize::from(number))
    }

    /// Whether any stream is counted apart.
    #[inline]
    pub fn counts_streams(&self) -> bool {
        !self.streams[0].is_empty()
    }

    /// Forgets what was sent and received in the slot whose places `slot` will take.
    pub fn forget(&self, slot: u64) {
        for direction in 0..DIRECTIONS {
            let SentCounters { frames, bytes, unsent, queue_full, down, dropped, refused, begun } =
                self.sent(slot, direction);
            [frames, bytes, unsent, queue_full, down, dropped, refused, begun]
                .into_iter()
                .for_each(|counter| counter.set(0));
            let ReceivedCounters { frames, bytes, latency_min, latency_max, latency_sum } =
                self.received(slot, direction);
            [frames, bytes, latency_min, latency_max, latency_sum]
                .into_iter()
                .for_each(|counter| counter.set(0));
        }
    }
}

#[inline]
fn place(slot: u64, direction: usize) -> usize {
    (slot as usize % INTERVALS) * DIRECTIONS + direction % DIRECTIONS
}

impl SentCounters {
    /// Adds what it holds to `sum`.
    pub fn add_to(&self, sum: &mut Sent) {
        sum.add(&Sent {
            frames: self.frames.get(),
            bytes: self.bytes.get(),
            unsent: self.unsent.get(),
            untaken: Untaken {
                queue_full: self.queue_full.get(),
                down: self.down.get(),
                other: self.dropped.get(),
                ..Untaken::default()
            },
            refused: self.refused.get(),
        });
    }
}

impl ReceivedCounters {
    /// Adds what it holds to `sum`, whose shortest time is without meaning as long as it has no frames.
    pub fn add_to(&self, sum: &mut Received) {
        let frames = self.frames.get();
        if frames == 0 {
            return;
        }
        let min = self.latency_min.get().saturating_sub(1);
        sum.latency_min = if sum.frames == 0 { min } else { sum.latency_min.min(min) };
        sum.frames += frames;
        sum.bytes += self.bytes.get();
        sum.latency_max = sum.latency_max.max(self.latency_max.get());
        sum.latency_sum += self.latency_sum.get();
    }
}

impl StreamCounters {
    /// A frame of `length` bytes left.
    #[inline]
    pub fn count_sent(&self, length: u16) {
        self.sent.add(1);
        self.sent_bytes.add(u64::from(length));
    }

    /// A frame arrived before which `ahead` numbers were left out, if it was in order.
    #[inline]
    pub fn count_order(&self, order: Order, ahead: u32) {
        match order {
            Order::Duplicate => self.duplicates.add(1),
            Order::Reordered => {
                self.reordered.add(1);
                self.missing.set(self.missing.get().saturating_sub(1));
            }
            Order::InOrder if ahead > 0 => {
                self.gaps.add(1);
                self.missing.add(u64::from(ahead));
            }
            Order::InOrder => {}
        }
    }

    /// A frame of `length` bytes arrived that is no duplicate, `latency` nanoseconds after it left.
    #[inline]
    pub fn count_received(&self, length: usize, latency: u64) {
        if self.frames.get() > 0 {
            let jitter = self.jitter.get();
            self.jitter.set(jitter + latency.abs_diff(self.last.get()) - ((jitter + 8) >> 4));
        }
        self.last.set(latency);
        self.frames.add(1);
        self.bytes.add(length as u64);
        self.latency_sum.add(latency);
        self.latency_max.set(self.latency_max.get().max(latency));
        let min = self.latency_min.get();
        if min == 0 || latency + 1 < min {
            self.latency_min.set(latency + 1);
        }
        if let Some(distribution) = &self.latency {
            distribution.count(latency);
        }
    }

    /// Adds what it holds to `sum`.
    pub fn add_to(&self, sum: &mut StreamTotals) {
        sum.add_received(&StreamReceived {
            frames: self.frames.get(),
            bytes: self.bytes.get(),
            duplicates: self.duplicates.get(),
            reordered: self.reordered.get(),
            gaps: self.gaps.get(),
            missing: self.missing.get(),
            latency_min: self.latency_min.get(),
            latency_max: self.latency_max.get(),
            latency_sum: self.latency_sum.get(),
            jitter: self.jitter.get(),
        });
        if let Some(distribution) = &self.latency {
            sum.latency.add(&distribution.histogram());
        }
        sum.add_sent(self.sent.get(), self.sent_bytes.get());
    }
}

impl Buckets {
    fn new() -> Self {
        Self(many(BUCKETS))
    }

    /// Counts one duration.
    #[inline]
    pub fn count(&self, nanoseconds: u64) {
        if let Some(counter) = self.0.get(bucket(nanoseconds)) {
            counter.add(1);
        }
    }

    /// What was counted.
    pub fn histogram(&self) -> Histogram {
        Histogram::from_counts(self.0.iter().map(Counter::get).collect())
    }
}

impl BinCounters {
    fn new() -> Self {
        Self(many(BINS))
    }

    /// Counts frames that left at `departure`. Of bins that share a place, the newest has it.
    #[inline]
    pub fn count(&self, departure: u64, frames: u64) {
        let number = (departure >> BIN_SHIFT) as u32;
        let place = &self.0[number as usize % BINS];
        let bin = place.get();
        let (theirs, counted) = ((bin >> 32) as u32, bin & 0xffff_ffff);
        if theirs == number {
            place.set(bin - counted + (counted + frames).min(0xffff_ffff));
        } else if theirs.wrapping_sub(number).cast_signed() <= 0 {
            place.set(u64::from(number) << 32 | frames);
        }
    }

    /// What was counted.
    pub fn bins(&self) -> Bins {
        Bins::new(self.0.iter().map(|bin| ((bin.get() >> 32) as u32, bin.get() as u32)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::of;

    #[test]
    fn bins_count_what_left_in_them_and_the_newest_stays() {
        let (old, new) = (BinCounters::new(), BinCounters::new());
        let at = |bin: u64| bin << BIN_SHIFT;
        old.count(at(5), 3);
        old.count(at(5) + 17, 4);
        old.count(at(7), 1);
        new.count(at(5 + BINS as u64), 9);
        new.count(at(5), 2);
        let bins = of(&[old.bins()], &[new.bins()], at(5), at(7)).unwrap().bins;
        let counts: Vec<_> = bins.iter().map(|bin| (bin.offered, bin.forwarded)).collect();
        assert_eq!(counts, [(7, 0), (0, 0), (1, 0)]);
    }

    #[test]
    fn what_a_slot_counted_is_forgotten_before_another_takes_its_place() {
        let tally = Tally::new(Apart::default());
        tally.sent(3, 1).frames.add(5);
        tally.received(3, 1).frames.add(4);
        tally.received(3, 1).latency_min.set(8);
        let (mut sent, mut received) =
            (Sent::default(), Received { latency_min: 3, frames: 1, ..Received::default() });
        tally.sent(3, 1).add_to(&mut sent);
        tally.received(3, 1).add_to(&mut received);
        assert_eq!((sent.frames, received.frames, received.latency_min), (5, 5, 3));
        tally.forget(3 + INTERVALS as u64);
        assert_eq!((tally.sent(3, 1).frames.get(), tally.received(3, 1).latency_min.get()), (0, 0));
    }
}
