//! One direction from port to port: departures, the device's queue, the way back, the counts.

use std::collections::VecDeque;

use super::random::RandomLoss;
use super::{Capacity, Device, KEPT_INTERVALS, Tester, Truth, nanoseconds};
use crate::{Bin, Counts, Interval, Load, Timeline, Totals};

/// One step of virtual time, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) length: u64,
}

impl Span {
    pub(super) fn end(self) -> u64 {
        self.start.saturating_add(self.length)
    }

    pub(super) fn seconds(self) -> f64 {
        self.length as f64 / 1e9
    }
}

/// Bins of the timeline are as long as the longest step.
const BIN_NS: u64 = super::STEP_NS;
/// Bins that are kept.
const KEPT_BINS: usize = 8192;

/// Frames of one interval that left at equal distances from `first` to `last`.
#[derive(Debug)]
struct Batch {
    interval: Interval,
    bin: u64,
    frames: u64,
    first: f64,
    last: f64,
}

/// Frames of one interval on their way back.
#[derive(Debug)]
struct Flight {
    interval: Interval,
    bin: u64,
    frames: u64,
    arrival: u64,
    latency: u64,
}

/// The state of one direction.
#[derive(Debug)]
pub(super) struct Lane {
    frame_size: u64,
    lateness: u64,
    blocked: bool,
    loss: RandomLoss,
    /// Fractions of frames: due to leave, what the tester has time to send, foreign ones.
    due: f64,
    sendable: f64,
    foreign: f64,
    /// Frames of a burst still to come.
    burst: Option<u64>,
    /// Whether that is a part, of which nothing is unsent that was not due.
    in_part: bool,
    /// The interval that goes on.
    current: Option<Interval>,
    queue: VecDeque<Batch>,
    waiting: u64,
    flights: VecDeque<Flight>,
    served: u64,
    dropped: u64,
    /// The counts of the last intervals; the front one is interval `forgotten`.
    counts: VecDeque<Counts>,
    forgotten: Interval,
    /// The last bins of the timeline; the front one is number `forgotten_bins` since time zero.
    bins: VecDeque<Bin>,
    forgotten_bins: u64,
    /// The bins that the intervals of `counts` began in.
    began: VecDeque<u64>,
    totals: Totals,
}

impl Lane {
    pub(super) fn new(device: &Device, tester: &Tester, direction: usize) -> Self {
        Self {
            frame_size: tester.frame_size,
            lateness: nanoseconds(tester.lateness),
            blocked: device.blocked.get(direction).copied().unwrap_or(false),
            loss: RandomLoss::new(device.random_loss, device.seed.wrapping_add(direction as u64)),
            due: 0.0,
            sendable: 0.0,
            foreign: 0.0,
            burst: None,
            in_part: false,
            current: None,
            queue: VecDeque::new(),
            waiting: 0,
            flights: VecDeque::new(),
            served: 0,
            dropped: 0,
            counts: VecDeque::new(),
            forgotten: 0,
            bins: VecDeque::new(),
            forgotten_bins: 0,
            began: VecDeque::new(),
            totals: Totals::default(),
        }
    }

    /// The interval that goes on.
    pub(super) fn interval(&self) -> Option<Interval> {
        self.current
    }

    /// The counts of the interval that goes on.
    fn current_counts(&mut self) -> Option<&mut Counts> {
        self.counts.get_mut(self.current?.checked_sub(self.forgotten)? as usize)
    }

    pub(super) fn counts(&self, interval: Interval) -> Option<Counts> {
        self.counts.get(interval.checked_sub(self.forgotten)? as usize).copied()
    }

    /// The frames that left since `interval` began, if that is still known.
    pub(super) fn timeline(&self, interval: Interval) -> Option<Timeline> {
        let began = *self.began.get(interval.checked_sub(self.forgotten)? as usize)?;
        let skip = began.checked_sub(self.forgotten_bins)? as usize;
        let bins = self.bins.iter().skip(skip).copied().collect();
        Some(Timeline { start_ns: began * BIN_NS, bin_ns: BIN_NS, bins })
    }

    fn bin(&mut self, number: u64) -> Option<&mut Bin> {
        let index = number.checked_sub(self.forgotten_bins)? as usize;
        if index >= self.bins.len() {
            self.bins.resize(index + 1, Bin::default());
        }
        let excess = self.bins.len().saturating_sub(KEPT_BINS);
        self.bins.drain(..excess);
        self.forgotten_bins += excess as u64;
        self.bins.get_mut(index.checked_sub(excess)?)
    }

    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    pub(super) fn truth(&self) -> Truth {
        let flying: u64 = self.flights.iter().map(|flight| flight.frames).sum();
        Truth { dropped: self.dropped, inside: self.waiting + flying }
    }

    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    pub(super) fn served(&self) -> u64 {
        self.served
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.flights.is_empty()
    }

    /// Begins the next interval. What is left of a burst is unsent.
    pub(super) fn begin(&mut self, load: Load, now_ns: u64) {
        if let Some(left) = self.burst.take() {
            self.due = 0.0;
            let left = if self.in_part { 0 } else { left };
            self.totals.unsent += left;
            if let Some(counts) = self.current_counts() {
                counts.unsent += left;
            }
        }
        let interval = self.announce(now_ns);
        (self.current, self.in_part) = (Some(interval), false);
        if let Load::Burst { frames, .. } = load {
            self.start_burst(frames);
            if let Some(counts) = self.current_counts() {
                counts.intended = frames as f64;
            }
        }
    }

    /// Goes on to an announced part.
    pub(super) fn begin_part(&mut self, interval: Interval, frames: u64) {
        (self.current, self.in_part) = (Some(interval), true);
        self.start_burst(frames);
    }

    fn start_burst(&mut self, frames: u64) {
        self.burst = Some(frames);
        self.due = 1.0; // the first frame leaves at once
        self.sendable = self.sendable.max(1.0);
    }

    /// Makes room for the counts of the next interval.
    pub(super) fn announce(&mut self, now_ns: u64) -> Interval {
        self.counts.push_back(Counts::default());
        self.began.push_back(now_ns / BIN_NS);
        if self.counts.len() > KEPT_INTERVALS {
            self.counts.pop_front();
            self.began.pop_front();
            self.forgotten += 1;
        }
        self.forgotten + self.counts.len() as u64 - 1
    }

    /// Lets the frames of one step leave and reach the device's queue: `pps`, or as many as the
    /// tester can.
    pub(super) fn send(&mut self, span: Span, pps: Option<f64>, max_pps: f64, device: &Device) {
        let intended = pps.unwrap_or(max_pps) * span.seconds();
        self.due += intended;
        self.sendable += max_pps * span.seconds();
        let due = (self.due as u64).min(self.burst.unwrap_or(u64::MAX));
        let sent = due.min(self.sendable as u64);
        self.due -= due as f64;
        self.sendable -= sent as f64;
        if sent == due {
            self.sendable = self.sendable.min(1.0);
        }
        let Some(interval) = self.interval() else { return };
        let Some(counts) =
            interval.checked_sub(self.forgotten).and_then(|at| self.counts.get_mut(at as usize))
        else {
            return;
        };
        match &mut self.burst {
            Some(left) => {
                *left -= due;
                counts.intended += if self.in_part { due as f64 } else { 0.0 };
            }
            None => counts.intended += if pps.is_some() { intended } else { sent as f64 },
        }
        counts.offered += sent;
        counts.offered_bytes += sent * self.frame_size;
        counts.unsent += due - sent;
        self.totals.unsent += due - sent;
        if sent > 0 {
            self.totals.lateness.record(self.lateness, sent);
        }
        let bin = span.start / BIN_NS;
        if let Some(bin) = self.bin(bin) {
            bin.offered += sent;
        }
        let passing = self.pass(sent, device);
        self.totals.offered += sent;
        if passing > 0 {
            let (first, last) = (span.start as f64, span.end() as f64);
            self.queue.push_back(Batch { interval, bin, frames: passing, first, last });
            self.waiting += passing;
        }
    }

    /// How many of the next `frames` that left the device takes in.
    fn pass(&mut self, frames: u64, device: &Device) -> u64 {
        if self.blocked {
            self.dropped += frames;
            self.totals.returned += if device.reflects { frames } else { 0 };
            return 0;
        }
        let before = self.totals.offered;
        let periodic = device.drop_every.filter(|every| *every > 0);
        let periodic = periodic.map_or(0, |every| (before + frames) / every - before / every);
        let random = self.loss.drop_of(frames - periodic);
        self.dropped += periodic + random;
        frames - periodic - random
    }

    /// Serves the first `allowed` frames that wait; of the rest, the queue keeps what it holds
    /// and the newest are dropped.
    pub(super) fn serve(&mut self, span: Span, allowed: u64, device: &Device) {
        let serve = self.waiting.min(allowed);
        let idle_at_end = serve == self.waiting;
        let excess = (self.waiting - serve).saturating_sub(device.queue);
        self.drop_newest(excess);
        let nominal = match device.capacity {
            Capacity::Unlimited => 0.0,
            Capacity::Each(pps) | Capacity::Shared(pps) => 1e9 / pps,
        };
        let each = if idle_at_end { nominal } else { span.length as f64 / serve.max(1) as f64 };
        let base = nanoseconds(device.base_latency);
        let mut done = 0;
        while done < serve {
            let Some(taken) = self.take(serve - done) else { break };
            let Batch { interval, bin, frames, first, last } = taken;
            let middle = span.start as f64 + (done as f64 + frames as f64 / 2.0) * each;
            let latency = base.saturating_add((middle - (first + last) / 2.0).max(nominal) as u64);
            done += frames;
            let served = (done as f64 * each).min(span.length as f64) as u64;
            let arrival = (span.start + served).saturating_add(base);
            self.flights.push_back(Flight { interval, bin, frames, arrival, latency });
        }
        self.waiting -= done;
        self.served += done;
    }

    /// Drops all that waits in the queue.
    pub(super) fn drop_waiting(&mut self) {
        self.drop_newest(self.waiting);
    }

    /// Drops `excess` frames from the end of the queue.
    fn drop_newest(&mut self, excess: u64) {
        let mut excess = excess;
        self.waiting -= excess;
        self.dropped += excess;
        while let Some(batch) = self.queue.back_mut().filter(|_| excess > 0) {
            let dropped = batch.frames.min(excess);
            batch.frames -= dropped;
            excess -= dropped;
            if batch.frames == 0 {
                self.queue.pop_back();
            }
        }
    }

    /// Takes up to `most` frames that left together from the head of the queue.
    fn take(&mut self, most: u64) -> Option<Batch> {
        let batch = self.queue.front_mut()?;
        let frames = batch.frames.min(most);
        let split = batch.first + (batch.last - batch.first) * frames as f64 / batch.frames as f64;
        let Batch { interval, bin, first, .. } = *batch;
        let taken = Batch { interval, bin, frames, first, last: split };
        batch.frames -= frames;
        batch.first = split;
        if batch.frames == 0 {
            self.queue.pop_front();
        }
        Some(taken)
    }

    /// Counts what came back by the end of one step.
    pub(super) fn receive(&mut self, span: Span, device: &Device) {
        while let Some(flight) = self.flights.pop_front_if(|flight| flight.arrival <= span.end()) {
            self.count(&flight);
        }
        self.foreign += device.foreign_pps.max(0.0) * span.seconds();
        self.totals.foreign += self.foreign as u64;
        self.foreign = self.foreign.fract();
    }

    fn count(&mut self, flight: &Flight) {
        if let Some(bin) = self.bin(flight.bin) {
            bin.forwarded += flight.frames;
        }
        self.totals.forwarded += flight.frames;
        self.totals.latency.record(flight.latency, flight.frames);
        let index = flight.interval.checked_sub(self.forgotten);
        let Some(counts) = index.and_then(|index| self.counts.get_mut(index as usize)) else { return };
        let first = counts.forwarded == 0;
        counts.forwarded += flight.frames;
        counts.forwarded_bytes += flight.frames * self.frame_size;
        counts.latency_min = if first { flight.latency } else { counts.latency_min.min(flight.latency) };
        counts.latency_max = counts.latency_max.max(flight.latency);
        let sum = flight.latency.saturating_mul(flight.frames);
        counts.latency_sum = counts.latency_sum.saturating_add(sum);
    }
}
