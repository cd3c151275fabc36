//! Engines that run in real time: what a [`Machinery`] counts by interval enters, an [`Engine`] leaves.
//!
//! The kernel's and the one in user space keep their books alike; only how frames move differs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use wire::size::FCS;

use crate::{
    Capabilities, Counts, Engine, Error, Headway, Interval, Load, Order, Part, StreamTotals, Timeline,
    Totals, Untaken,
};

/// Intervals whose counts are kept, as in `xdp/shared.h`.
pub const INTERVALS: usize = 4096;
/// How often a waiting engine looks whether it should stop.
const POLL: Duration = Duration::from_millis(20);

/// What one worker sent in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Frames that left.
    pub frames: u64,
    /// Bytes of those, without FCS.
    pub bytes: u64,
    /// Frames given up because they were too late; of all directions together, counted under direction 0.
    pub unsent: u64,
    /// Frames that the port did not take.
    pub untaken: Untaken,
    /// Frames, of those that left, that the device's full receive queue refused.
    pub refused: u64,
}

impl Sent {
    /// Frames that did not leave, for whatever reason.
    #[must_use]
    pub fn all_unsent(&self) -> u64 {
        self.unsent + self.untaken.total()
    }

    /// Adds what was sent in another interval or direction.
    pub fn add(&mut self, other: &Self) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.unsent += other.unsent;
        self.untaken += other.untaken;
        self.refused += other.refused;
    }
}

/// What came back of one interval's frames in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Frames, duplicates not counted twice.
    pub frames: u64,
    /// Bytes without FCS.
    pub bytes: u64,
    /// Shortest time on the way, in nanoseconds; meaningless without frames.
    pub latency_min: u64,
    /// Longest time on the way, in nanoseconds.
    pub latency_max: u64,
    /// Sum of the times on the way, in nanoseconds.
    pub latency_sum: u64,
}

/// Workers that send and receive, and count under the number of a *slot*: 0 is the idle interval that
/// they start with, and each interval is one more than its [`Interval`].
pub trait Machinery {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Announces the interval after the last, whose order applies from `start` (nanoseconds, monotonic
    /// clock) or when the workers hear of it. Its places hold nothing of an earlier interval then.
    ///
    /// # Errors
    /// When the rate cannot be kept, or a worker is so far behind that the places are still in use.
    fn announce(&mut self, slot: u64, order: &Order, start: u64) -> Result<(), Error>;

    /// Whether all workers still work.
    ///
    /// # Errors
    /// Why one ended.
    fn check(&mut self) -> Result<(), Error>;

    /// See [`Engine::give_way`].
    fn give_way(&mut self) {}

    /// See [`Engine::headway`].
    fn headway(&self) -> Headway {
        Headway::default()
    }

    /// The slot that all workers have come to: what they sent of those before is final.
    fn reached(&self) -> u64;

    /// When each worker began `slot` (nanoseconds, monotonic clock), if it has.
    ///
    /// # Errors
    /// When the counters cannot be read.
    fn begun(&self, slot: u64) -> Result<Vec<Option<u64>>, Error>;

    /// What all workers sent of `slot` in `direction`.
    ///
    /// # Errors
    /// When the counters cannot be read.
    fn sent(&self, slot: u64, direction: usize) -> Result<Sent, Error>;

    /// What came back of that.
    ///
    /// # Errors
    /// When the counters cannot be read.
    fn received(&self, slot: u64, direction: usize) -> Result<Received, Error>;

    /// The frames of `direction` by when they left, from `start` to `end` (nanoseconds, monotonic clock).
    ///
    /// # Errors
    /// When the counters cannot be read.
    fn timeline(&self, direction: usize, start: u64, end: u64) -> Result<Option<Timeline>, Error>;

    /// The totals of `direction`, but for what was offered, refused and unsent: of `refused` only
    /// whether it is counted.
    ///
    /// # Errors
    /// When the counters cannot be read.
    fn totals(&self, direction: usize) -> Result<Totals, Error>;

    /// The totals of each stream of `direction` that is counted apart.
    ///
    /// # Errors
    /// When the counters cannot be read.
    fn streams(&self, direction: usize) -> Result<Vec<StreamTotals>, Error>;
}

/// An engine in real time. Dropping it ends its machinery.
pub struct Live<M> {
    machinery: M,
    directions: usize,
    stop: Arc<AtomicBool>,
    /// Whether a wait has said so already.
    interrupted: bool,
    made: u64,
    /// When each interval was asked for (nanoseconds, monotonic clock), and what was asked.
    asked: VecDeque<(u64, Order)>,
    /// The interval of the first of those: older ones are forgotten.
    forgotten: Interval,
    /// What was sent in each direction in the intervals before `settled_until`.
    settled: Vec<Sent>,
    settled_until: Interval,
}

impl<M: Machinery> Live<M> {
    /// An engine whose workers are idle; `stop` is set by someone else to end the run.
    ///
    /// # Errors
    /// When the clock cannot be read.
    pub fn new(machinery: M, directions: usize, stop: Arc<AtomicBool>) -> Result<Self, Error> {
        Ok(Self {
            machinery,
            directions,
            stop,
            interrupted: false,
            made: monotonic()?,
            asked: VecDeque::new(),
            forgotten: 0,
            settled: vec![Sent::default(); directions],
            settled_until: 0,
        })
    }

    pub(crate) fn machinery(&self) -> &M {
        &self.machinery
    }

    fn announce(&mut self, order: Order, start: u64) -> Result<Interval, Error> {
        self.settle()?;
        let interval = self.newest();
        self.machinery.announce(slot_number(interval), &order, start)?;
        self.asked.push_back((start, order));
        if self.asked.len() > INTERVALS {
            self.asked.pop_front();
            self.forgotten += 1;
        }
        Ok(interval)
    }

    /// The interval after the last.
    fn newest(&self) -> Interval {
        self.forgotten + self.asked.len() as Interval
    }

    /// When `interval` was asked for, and what, if that is still known.
    fn asked(&self, interval: Interval) -> Option<(u64, Order)> {
        self.asked.get(usize::try_from(interval.checked_sub(self.forgotten)?).ok()?).copied()
    }

    /// How long `interval` lasted, or lasts until now, in seconds: what the workers say, on average.
    /// One that has not moved on ends it when the next is asked for: it has yet to hear of that.
    fn length_of(&self, interval: Interval) -> Result<f64, Error> {
        let slot = slot_number(interval);
        let begun = self.machinery.begun(slot)?;
        let ended = match self.asked(interval + 1) {
            Some((asked, _)) => {
                let moved_on = self.machinery.begun(slot + 1)?.into_iter();
                moved_on.map(|begun| begun.unwrap_or(asked)).collect()
            }
            None => vec![monotonic()?; begun.len()],
        };
        let lengths = begun
            .iter()
            .zip(&ended)
            .map(|(begun, ended)| begun.map_or(0, |begun| ended.saturating_sub(begun)));
        Ok(lengths.sum::<u64>() as f64 / begun.len() as f64 / 1e9)
    }

    /// Adds up the intervals that all workers have left, before their places are used again.
    fn settle(&mut self) -> Result<(), Error> {
        while slot_number(self.settled_until) < self.machinery.reached() {
            for direction in 0..self.directions {
                let sent = self.sent(self.settled_until, direction)?;
                self.settled[direction].add(&sent);
            }
            self.settled_until += 1;
        }
        Ok(())
    }

    /// What the workers sent of `interval` in `direction`; frames that were too late, which they count
    /// for all directions together, are shared out.
    fn sent(&self, interval: Interval, direction: usize) -> Result<Sent, Error> {
        let sent = self.machinery.sent(slot_number(interval), direction)?;
        let unsent = self.machinery.sent(slot_number(interval), 0)?.unsent;
        let share = unsent / self.directions as u64;
        let rest = if direction == 0 { unsent % self.directions as u64 } else { 0 };
        Ok(Sent { unsent: share + rest, ..sent })
    }
}

/// The number that workers and frames know an interval by: 0 is the idle one they start with.
fn slot_number(interval: Interval) -> u64 {
    interval + 1
}

impl<M: Machinery> Engine for Live<M> {
    fn capabilities(&self) -> Capabilities {
        self.machinery.capabilities()
    }

    fn directions(&self) -> usize {
        self.directions
    }

    fn begin(&mut self, load: Load) -> Result<Interval, Error> {
        self.announce(Order::Load(load), monotonic()?)
    }

    fn begin_part(&mut self, part: &Part, at: Duration) -> Result<Interval, Error> {
        let at = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        self.announce(Order::Part(*part), self.made.saturating_add(at))
    }

    fn wait(&mut self, duration: Duration) -> Result<(), Error> {
        let end = monotonic()? + duration.as_nanos() as u64;
        loop {
            if !self.interrupted && self.stop.load(Ordering::SeqCst) {
                self.interrupted = true;
                return Err(Error::Interrupted);
            }
            self.machinery.check()?;
            let left = Duration::from_nanos(end.saturating_sub(monotonic()?));
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(POLL));
        }
    }

    fn give_way(&mut self) {
        self.machinery.give_way();
    }

    fn headway(&self) -> Headway {
        self.machinery.headway()
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(monotonic().unwrap_or(self.made).saturating_sub(self.made))
    }

    fn counts(&mut self, interval: Interval) -> Result<Vec<Counts>, Error> {
        if interval >= self.newest() {
            return Err(Error::Refused(format!("interval {interval} has not begun")));
        }
        let Some((_, order)) = self.asked(interval).filter(|_| self.newest() - interval < INTERVALS as u64)
        else {
            return Err(Error::Refused(format!("interval {interval} is too old: {INTERVALS} are kept")));
        };
        (0..self.directions)
            .map(|direction| {
                let sent = self.sent(interval, direction)?;
                let received = self.machinery.received(slot_number(interval), direction)?;
                Ok(Counts {
                    intended: match order {
                        Order::Load(Load::Idle) => 0.0,
                        Order::Load(Load::Rate(pps)) => pps * self.length_of(interval)?,
                        Order::Load(Load::Burst { frames, .. }) => frames as f64,
                        Order::Load(Load::Max) => sent.frames as f64,
                        Order::Part(_) => (sent.frames + sent.all_unsent()) as f64,
                    },
                    offered: sent.frames,
                    offered_bytes: sent.bytes + u64::from(FCS) * sent.frames,
                    forwarded: received.frames,
                    forwarded_bytes: received.bytes + u64::from(FCS) * received.frames,
                    unsent: sent.all_unsent(),
                    untaken: sent.untaken,
                    latency_min: received.latency_min,
                    latency_max: received.latency_max,
                    latency_sum: received.latency_sum,
                })
            })
            .collect()
    }

    fn has_left(&self, interval: Interval) -> bool {
        slot_number(interval) < self.machinery.reached()
    }

    fn timeline(&mut self, interval: Interval) -> Result<Option<Vec<Timeline>>, Error> {
        let Some((start, _)) = self.asked(interval) else { return Ok(None) };
        let end = monotonic()?;
        (0..self.directions).map(|direction| self.machinery.timeline(direction, start, end)).collect()
    }

    fn streams(&mut self) -> Result<Vec<Vec<StreamTotals>>, Error> {
        (0..self.directions).map(|direction| self.machinery.streams(direction)).collect()
    }

    fn totals(&mut self) -> Result<Vec<Totals>, Error> {
        (0..self.directions)
            .map(|direction| {
                let mut totals = self.machinery.totals(direction)?;
                let mut sum = self.settled[direction];
                for interval in self.settled_until..self.newest() {
                    sum.add(&self.sent(interval, direction)?);
                }
                totals.offered = sum.frames;
                totals.refused = totals.refused.map(|_| sum.refused);
                totals.unsent = sum.all_unsent();
                totals.untaken = sum.untaken;
                Ok(totals)
            })
            .collect()
    }
}

/// Nanoseconds of the monotonic clock, the one that all time stamps are of.
///
/// # Errors
/// When the kernel does not say.
pub fn monotonic() -> Result<u64, Error> {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_err(|error| Error::Failed(format!("the monotonic clock cannot be read: {error}")))?;
    Ok(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}
