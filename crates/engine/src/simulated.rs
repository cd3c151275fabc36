//! A tester and a reference device under test, in virtual time.
//!
//! A [`Device`] (capacity, queue, loss, stalls, disturbances) and a [`Tester`] (what it can send)
//! enter; an [`Engine`] leaves on which strategies are tested in milliseconds, without a kernel.
//! Time passes only in [`Engine::wait`], by steps of at most a millisecond in which all rates are
//! constant; within a step the queue is a fluid, but only whole frames move, so that always
//! offered = forwarded + dropped + inside. The frames that one step serves share their mean
//! latency. Everything follows from the parameters and a seed.

mod lane;
mod random;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{Capabilities, Counts, Engine, Error, Interval, Load, Part, Timeline, Totals};
use lane::{Lane, Span};

/// The longest step of virtual time.
const STEP_NS: u64 = 1_000_000;
/// Intervals whose counts can be read: no more than every engine promises.
const KEPT_INTERVALS: usize = 1_000;
/// What its latencies do not show.
const UNSEEN: [&str; 1] = ["frames that one step of a millisecond serves share their mean latency"];
/// What [`Tester::fail_after`] says.
const DIED: &str = "the simulated worker died, as it was told to";

/// How many frames a second the device forwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// As many as arrive.
    Unlimited,
    /// This many in each direction.
    Each(f64),
    /// This many in both directions together, divided by what waits in each.
    Shared(f64),
}

/// When the device stops forwarding, for good unless it recovers or is reset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stall {
    /// Once it forwarded this many frames, both directions counted together.
    AfterFrames(u64),
    /// Once the load of a direction was between two rates for `length` without a pause.
    BetweenRates {
        /// Above this rate, in frames a second: 0 is any load …
        above: f64,
        /// … and below this one.
        below: f64,
        /// How long the load must stay there.
        length: Duration,
    },
}

impl Stall {
    /// Once the load of a direction was above zero and below `pps` for `length` without a pause.
    #[must_use]
    pub fn below_rate(pps: f64, length: Duration) -> Self {
        Self::BetweenRates { above: 0.0, below: pps, length }
    }
}

/// A stretch of time in which a rate is multiplied by `factor`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disturbance {
    /// When it begins, since the engine was made.
    pub from: Duration,
    /// How long it lasts.
    pub length: Duration,
    /// 0 stops all; 1 changes nothing.
    pub factor: f64,
}

/// The truth about the device under test.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// What it forwards at most.
    pub capacity: Capacity,
    /// Frames that wait in each direction before more are dropped. From 2 on, a load below
    /// capacity loses nothing.
    pub queue: u64,
    /// The chance of each frame to be dropped, 0 to 1.
    pub random_loss: f64,
    /// Every frame of a direction whose number divides by this is dropped.
    pub drop_every: Option<u64>,
    /// When it stops.
    pub stall: Option<Stall>,
    /// The pause after which it forwards again; by default it has stopped for good.
    pub recovers_after: Option<Duration>,
    /// What a frame takes besides waiting and being served.
    pub base_latency: Duration,
    /// The directions through which nothing passes.
    pub blocked: [bool; 2],
    /// Whether frames of a blocked direction come back at the port they left by.
    pub reflects: bool,
    /// Frames a second, not ours, that arrive at each port.
    pub foreign_pps: f64,
    /// When its capacity is smaller.
    pub disturbances: Vec<Disturbance>,
    /// Where its chance begins.
    pub seed: u64,
}

impl Default for Device {
    fn default() -> Self {
        Self {
            capacity: Capacity::Unlimited,
            queue: 256,
            random_loss: 0.0,
            drop_every: None,
            stall: None,
            recovers_after: None,
            base_latency: Duration::from_micros(20),
            blocked: [false; 2],
            reflects: false,
            foreign_pps: 0.0,
            disturbances: Vec::new(),
            seed: 1,
        }
    }
}

/// The truth about the tester.
#[derive(Clone, Debug, PartialEq)]
pub struct Tester {
    /// 1 or 2.
    pub directions: usize,
    /// Bytes of every frame, FCS included.
    pub frame_size: u64,
    /// What it can send in each direction; frames due beyond it are unsent.
    pub max_pps: f64,
    /// How late every departure is.
    pub lateness: Duration,
    /// How much longer than asked for every wait is: somebody else has the core.
    pub oversleeps: Duration,
    /// When it can send less.
    pub disturbances: Vec<Disturbance>,
    /// When the user asks to stop, once.
    pub interrupt_after: Option<Duration>,
    /// When its worker dies.
    pub fail_after: Option<Duration>,
}

impl Default for Tester {
    fn default() -> Self {
        Self {
            directions: 1,
            frame_size: 64,
            max_pps: 20e6,
            lateness: Duration::ZERO,
            oversleeps: Duration::ZERO,
            disturbances: Vec::new(),
            interrupt_after: None,
            fail_after: None,
        }
    }
}

/// What became of a direction's frames that did not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    /// Dropped by the device, or sent back to where they came from.
    pub dropped: u64,
    /// Waiting in the device, or on their way back.
    pub inside: u64,
}

/// An engine whose device and clock are simulated.
#[derive(Debug)]
pub struct SimulatedEngine {
    device: Device,
    tester: Tester,
    now_ns: u64,
    load: Load,
    /// When the last frame of a burst has left.
    burst_end: u64,
    /// What is announced: when it begins, its interval, and the frames of each direction at a rate.
    parts: VecDeque<(u64, Interval, [u64; 2], f64)>,
    lanes: Vec<Lane>,
    /// Frames that the device may serve: by direction, or in the first place when shared.
    credit: [f64; 2],
    /// How long the load has been one at which the device stalls, and how long there has been none.
    stalling_ns: u64,
    idle_ns: u64,
    stalled: bool,
    /// Frames that it had forwarded when it was reset or recovered.
    served_before: u64,
    reset: Arc<AtomicBool>,
    interrupted: bool,
    failed: bool,
}

impl SimulatedEngine {
    /// A tester connected to a device, at time zero, sending nothing.
    #[must_use]
    pub fn new(mut device: Device, mut tester: Tester) -> Self {
        device.disturbances.sort_by_key(|disturbance| disturbance.from);
        tester.disturbances.sort_by_key(|disturbance| disturbance.from);
        let directions = tester.directions.clamp(1, 2);
        let lanes = (0..directions).map(|direction| Lane::new(&device, &tester, direction)).collect();
        Self {
            device,
            tester,
            now_ns: 0,
            load: Load::Idle,
            burst_end: u64::MAX,
            parts: VecDeque::new(),
            lanes,
            credit: [0.0; 2],
            stalling_ns: 0,
            idle_ns: 0,
            stalled: false,
            served_before: 0,
            reset: Arc::default(),
            interrupted: false,
            failed: false,
        }
    }

    /// What became of the frames that did not come back, one for each direction.
    #[must_use]
    pub fn truth(&self) -> Vec<Truth> {
        self.lanes.iter().map(Lane::truth).collect()
    }

    /// What resets the device, once it is set: a device that stalled forwards again.
    #[must_use]
    pub fn reset_switch(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.reset)
    }

    fn served(&self) -> u64 {
        self.lanes.iter().map(Lane::served).sum()
    }

    /// Makes a device that stalled forward again; what waited in it is lost.
    fn revive(&mut self) {
        let is_spent = self.device.stall.is_some_and(|stall| match stall {
            Stall::AfterFrames(frames) => self.served() - self.served_before >= frames,
            Stall::BetweenRates { .. } => false,
        });
        if self.stalled || is_spent {
            self.lanes.iter_mut().for_each(Lane::drop_waiting);
        }
        (self.stalled, self.stalling_ns) = (false, 0);
        self.served_before = self.served();
    }

    /// Lets virtual time pass until `end`.
    fn advance(&mut self, end: u64) {
        forget(&mut self.device.disturbances, self.now_ns);
        forget(&mut self.tester.disturbances, self.now_ns);
        while self.now_ns < end {
            if self.reset.swap(false, Ordering::Relaxed) {
                self.revive();
            }
            if self.burst_end <= self.now_ns {
                self.load = Load::Idle;
                self.burst_end = u64::MAX;
            }
            self.begin_due_part();
            let quiet = self.load == Load::Idle && self.lanes.iter().all(Lane::is_empty);
            let next = self.parts.front().map_or(u64::MAX, |(start, ..)| *start);
            let most = end.min(self.burst_end).min(next) - self.now_ns;
            let span = Span { start: self.now_ns, length: if quiet { most } else { STEP_NS.min(most) } };
            self.send(span);
            self.serve(span);
            for lane in &mut self.lanes {
                lane.receive(span, &self.device);
            }
            self.now_ns = span.end();
        }
    }

    fn begin_due_part(&mut self) {
        let Some((_, interval, frames, pps)) = self.parts.pop_front_if(|(start, ..)| *start <= self.now_ns)
        else {
            return;
        };
        let most = frames.iter().copied().max().unwrap_or(0);
        self.load = Load::Burst { pps, frames: most };
        self.burst_end =
            self.now_ns.saturating_add((most as f64 / pps * 1e9).ceil() as u64).max(self.now_ns + 1);
        for (lane, frames) in self.lanes.iter_mut().zip(frames) {
            lane.begin_part(interval, frames);
        }
    }

    /// Departures of one step, up to the device's queues.
    fn send(&mut self, span: Span) {
        let max_pps = self.tester.max_pps.max(0.0) * factor(&self.tester.disturbances, span.start);
        let pps = match self.load {
            Load::Idle => Some(0.0),
            Load::Rate(pps) | Load::Burst { pps, .. } => Some(pps),
            Load::Max => None,
        };
        for lane in &mut self.lanes {
            lane.send(span, pps, max_pps, &self.device);
        }
        self.idle_ns = if pps == Some(0.0) { self.idle_ns.saturating_add(span.length) } else { 0 };
        if self.device.recovers_after.is_some_and(|pause| self.idle_ns >= nanoseconds(pause)) {
            self.revive();
        }
        let Some(Stall::BetweenRates { above, below, length }) = self.device.stall else { return };
        let stalls = pps.is_some_and(|pps| pps > above && pps < below);
        self.stalling_ns = if stalls { self.stalling_ns.saturating_add(span.length) } else { 0 };
        self.stalled |= stalls && self.stalling_ns >= nanoseconds(length);
    }

    /// What the device forwards in one step; what its queues cannot hold is dropped.
    fn serve(&mut self, span: Span) {
        let factor = factor(&self.device.disturbances, span.start);
        let earn = |pps: f64| pps * factor * span.seconds();
        let waiting: Vec<u64> = self.lanes.iter().map(Lane::waiting).collect();
        let mut allowed = match self.device.capacity {
            Capacity::Unlimited => waiting.clone(),
            Capacity::Each(pps) => {
                let lanes = self.credit.iter_mut().zip(&waiting);
                lanes.map(|(credit, waiting)| draw(credit, earn(pps), *waiting)).collect()
            }
            Capacity::Shared(pps) => {
                let total = waiting.iter().sum();
                divide(draw(&mut self.credit[0], earn(pps), total), &waiting)
            }
        };
        if let Some(Stall::AfterFrames(frames)) = self.device.stall {
            let left = frames.saturating_sub(self.served() - self.served_before);
            if allowed.iter().sum::<u64>() > left {
                allowed = divide(left, &allowed);
            }
        }
        for (lane, allowed) in self.lanes.iter_mut().zip(allowed) {
            lane.serve(span, if self.stalled { 0 } else { allowed }, &self.device);
        }
    }
}

/// Adds what was earned to `credit` and takes whole frames of it, at most `wanted`. Credit that
/// nobody wanted lapses but for one frame, so that an idle device saves nothing up.
fn draw(credit: &mut f64, earned: f64, wanted: u64) -> u64 {
    *credit += earned.max(0.0);
    let drawn = (*credit as u64).min(wanted);
    *credit -= drawn as f64;
    if drawn == wanted {
        *credit = credit.min(1.0);
    }
    drawn
}

/// Divides `frames` in proportion to what waits in each direction, none above what waits there.
fn divide(frames: u64, waiting: &[u64]) -> Vec<u64> {
    let total: u64 = waiting.iter().sum();
    let frames = frames.min(total);
    let first = waiting.first().copied().unwrap_or(0);
    let rest = total - first;
    let share = (u128::from(frames) * u128::from(first) / u128::from(total.max(1))) as u64;
    let share = share.max(frames.saturating_sub(rest));
    [share, frames - share].into_iter().take(waiting.len()).collect()
}

/// Drops those that are over.
fn forget(disturbances: &mut Vec<Disturbance>, now_ns: u64) {
    let now = Duration::from_nanos(now_ns);
    disturbances.retain(|it| it.from.saturating_add(it.length) > now);
}

/// The product of the factors of all disturbances at `now_ns`; they are sorted by their beginnings.
fn factor(disturbances: &[Disturbance], now_ns: u64) -> f64 {
    let now = Duration::from_nanos(now_ns);
    let begun = disturbances.iter().take_while(|it| it.from <= now);
    let active = begun.filter(|it| now < it.from.saturating_add(it.length));
    active.map(|disturbance| disturbance.factor.max(0.0)).product()
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Engine for SimulatedEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "simulated", max_frame_size: 9216, unseen: &UNSEEN }
    }

    fn directions(&self) -> usize {
        self.lanes.len()
    }

    fn begin(&mut self, load: Load) -> Result<Interval, Error> {
        if self.failed {
            return Err(Error::Failed(DIED.into()));
        }
        let pps = match load {
            Load::Idle => 0.0,
            Load::Rate(pps) | Load::Burst { pps, .. } => pps,
            Load::Max => self.tester.max_pps,
        };
        if !(pps.is_finite() && pps >= 0.0) {
            return Err(Error::Refused(format!(
                "a load of {pps} frames a second cannot be sent: give a rate"
            )));
        }
        self.load = load;
        self.parts.clear();
        self.burst_end = match load {
            Load::Burst { pps, frames } => {
                self.now_ns.saturating_add((frames as f64 / pps * 1e9).ceil() as u64)
            }
            _ => u64::MAX,
        };
        for lane in &mut self.lanes {
            lane.begin(load, self.now_ns);
        }
        self.lanes.first().and_then(Lane::interval).ok_or_else(|| Error::Failed("no direction".into()))
    }

    fn begin_part(&mut self, part: &Part, at: Duration) -> Result<Interval, Error> {
        if self.failed {
            return Err(Error::Failed(DIED.into()));
        }
        let directions = self.lanes.len() as u64;
        if !(part.pps.is_finite() && part.pps > 0.0) {
            return Err(Error::Refused(format!("a part of {} frames a second cannot be sent", part.pps)));
        }
        let frames = [part.frames.div_ceil(directions), part.frames / directions];
        let intervals = self.lanes.iter_mut().map(|lane| lane.announce(self.now_ns));
        let interval = intervals.last().ok_or_else(|| Error::Failed("no direction".into()))?;
        self.parts.push_back((nanoseconds(at), interval, frames, part.pps / directions as f64));
        Ok(interval)
    }

    fn wait(&mut self, duration: Duration) -> Result<(), Error> {
        let end = self.now_ns.saturating_add(nanoseconds(duration + self.tester.oversleeps));
        let failure = self.tester.fail_after.map(nanoseconds).filter(|at| *at <= end);
        let interrupt = self.tester.interrupt_after.map(nanoseconds);
        let interrupt = interrupt.filter(|at| *at <= end && !self.interrupted);
        match (failure, interrupt) {
            (Some(failure), interrupt) if interrupt.is_none_or(|at| failure <= at) => {
                self.advance(failure);
                self.failed = true;
                Err(Error::Failed(DIED.into()))
            }
            (_, Some(at)) => {
                self.advance(at);
                self.interrupted = true;
                Err(Error::Interrupted)
            }
            _ => {
                self.advance(end);
                Ok(())
            }
        }
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns)
    }

    fn counts(&mut self, interval: Interval) -> Result<Vec<Counts>, Error> {
        let counts: Option<Vec<Counts>> = self.lanes.iter().map(|lane| lane.counts(interval)).collect();
        counts.ok_or_else(|| {
            Error::Refused(format!(
                "interval {interval} cannot be read: read one of the last {KEPT_INTERVALS} that have begun"
            ))
        })
    }

    fn timeline(&mut self, interval: Interval) -> Result<Option<Vec<Timeline>>, Error> {
        Ok(self.lanes.iter().map(|lane| lane.timeline(interval)).collect())
    }

    fn totals(&mut self) -> Result<Vec<Totals>, Error> {
        Ok(self.lanes.iter().map(|lane| lane.totals().clone()).collect())
    }
}
