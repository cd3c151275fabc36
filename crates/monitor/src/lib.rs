//! Whether the machine disturbed a stretch of time: the cores in use and the threads whose work
//! is ours enter; what happened beside that work leaves, as [`Conditions`].
//!
//! A thread on each core sleeps, wakes ten times a second and times a fixed piece of work: how
//! fast the core runs, and how promptly it serves a thread that wakes; and hands a cache line to and
//! fro with the first core's: how far they are apart. All else is read from `/proc` when a stretch
//! begins and ends. [`gauges`] has power, frequency and temperature beside a run.

mod conditions;
mod core_meter;
mod counters;
mod disturbance;
pub mod gauges;
mod handover;
mod interruptions;
mod others;
mod past;
mod probe;
mod speed;
mod usage;
mod usual;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use conditions::{Bounds, Conditions, CoreConditions, Share};
pub use core_meter::CoreMeter;
pub use disturbance::Disturbance;
pub use handover::core_distance;
pub use interruptions::{Interruption, TaskName};
pub use usage::{CoreClock, CoreUse, thread_time};
pub use usual::usual_of;

use counters::{Clocks, CoreTimes, Counters, Reader};
use lab::NapiThread;
use lab::Result;
use probe::Probe;

/// The kernel counts idle time in ticks of 10 ms, and stolen time too where it cannot be asked more
/// exactly: they are judged over this long at least, reaching back before shorter stretches.
const TICK_WINDOW: Duration = Duration::from_secs(1);
/// Of shorter stretches ticks do not tell how idle a core was.
const TOLD_BY_TICKS: Duration = Duration::from_millis(50);
/// Moments that are kept to reach back to.
const KEPT: usize = 64;

/// Watches the cores that a measurement uses. Dropping it ends its threads.
#[derive(Debug)]
pub struct Monitor {
    probes: Vec<Probe>,
    reader: Reader,
    past: Mutex<VecDeque<Mark>>,
}

/// The beginning of a stretch of time.
#[derive(Clone, Debug)]
pub struct Mark {
    at: Instant,
    clocks: Clocks,
    counters: Counters,
}

impl Monitor {
    /// Watches `cores`. What this process does there is no disturbance, nor is what the kernel
    /// threads `ours` do. To be started after all of them, since those it does not know by then count as other work.
    ///
    /// # Errors
    /// [`lab::Error`], when a core cannot be used.
    pub fn start(cores: &[usize], ours: &[NapiThread]) -> Result<Self> {
        let mut cores = cores.to_vec();
        cores.sort_unstable();
        cores.dedup();
        // First, so that the probes are not taken for workers.
        let reader = Reader::open(&cores, ours);
        let probes = Probe::start_all(&cores)?;
        let monitor = Self { probes, reader, past: Mutex::default() };
        monitor.mark();
        Ok(monitor)
    }

    /// How long a cache line took from the first core to each other one and back, by core: the median of this
    /// process. What another process may [expect](Self::expect_handovers) follows from it.
    #[must_use]
    pub fn handovers(&self) -> BTreeMap<usize, Duration> {
        let guests = self.probes.iter().skip(1).map(Probe::core);
        guests.filter_map(|core| Some((core, handover::USUAL.median(core)?))).collect()
    }

    /// How long it took before: cores may be far apart from the beginning.
    pub fn expect_handovers(&self, usual: &BTreeMap<usize, Duration>) {
        let guests = self.probes.iter().skip(1).map(Probe::core);
        let known = guests.filter_map(|core| Some((core, *usual.get(&core)?)));
        known.for_each(|(core, usual)| handover::USUAL.expect(core, usual));
    }

    /// A stretch begins.
    pub fn mark(&self) -> Mark {
        let mark = Mark { at: Instant::now(), clocks: Clocks::read(), counters: self.reader.read() };
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        if past.len() == KEPT {
            past.pop_front();
        }
        past.push_back(mark.clone());
        mark
    }

    /// What happened from `mark` until now.
    pub fn since(&self, mark: &Mark) -> Conditions {
        self.between(mark, &self.mark())
    }

    /// What happened from `mark` until now, which is the beginning of the next stretch.
    pub fn renew(&self, mark: &mut Mark) -> Conditions {
        let now = self.mark();
        self.between(&std::mem::replace(mark, now.clone()), &now)
    }

    fn between(&self, from: &Mark, to: &Mark) -> Conditions {
        let pooled = self.far_enough(from, to);
        let times = to.counters.since(&from.counters);
        let pooled_times = to.counters.since(&pooled.counters);
        let other_work = others::other_work(&pooled_times, self.reader.interrupts_are_apart());
        let since_ns = from.counters.wall_ns();
        let until_ns = to.counters.wall_ns();
        let mut interruptions = self.reader.interruptions(since_ns);
        // What ended later is of the next stretch.
        interruptions.iter_mut().for_each(|found| found.retain(|it| it.end_ns <= until_ns));
        let known = interruptions.as_deref().unwrap_or_default();
        let cores = self.probes.iter().zip(times.cores.iter().zip(&pooled_times.cores)).zip(other_work);
        let cores = cores.map(|((probe, (core, pooled_core)), other_work)| {
            let seen = probe.between(from.at, to.at);
            let steal = match self.reader.steal_is_exact() {
                true => core.steal.map(|part| Share { part, of: times.wall }),
                false => pooled_core.steal.map(|part| Share { part, of: pooled_times.wall }),
            };
            CoreConditions {
                core: probe.core(),
                steal,
                other_work: other_work.map(|part| Share { part, of: pooled_times.wall }),
                kernel_threads: core.kernel_threads.map(|part| Share { part, of: times.wall }),
                waited: Share { part: others::waited(core, times.at_large), of: times.wall },
                speed_index: seen.speed_index,
                wake_delay: seen.wake_delay,
                nearness: seen.nearness,
                idle: idle(core, times.wall),
                slowness_is_counted: false,
                other_task: others::longest_task(known, probe.core(), since_ns),
            }
        });
        let cores = cores.collect();
        Conditions {
            duration: to.at.saturating_duration_since(from.at),
            cores,
            clock_jump: to.clocks.jump_since(&from.clocks),
            interruptions,
        }
    }

    /// The stretch's own beginning, or where it is too short for ticks the latest moment that is
    /// not.
    fn far_enough(&self, from: &Mark, to: &Mark) -> Mark {
        let far =
            |mark: &&Mark| mark.at <= from.at && to.at.saturating_duration_since(mark.at) >= TICK_WINDOW;
        if far(&from) {
            return from.clone();
        }
        let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = past.front().filter(|mark| mark.at < from.at);
        past.iter().rev().find(far).or(oldest).unwrap_or(from).clone()
    }
}

/// How long a core had nothing to do in a stretch of `wall`. Not of the last second, as other work: a load that has just
/// begun would have the idle time before it.
fn idle(core: &CoreTimes, wall: Duration) -> Option<Share> {
    let taken = core.busy? + core.steal?;
    (wall >= TOLD_BY_TICKS).then(|| Share { part: wall.saturating_sub(taken), of: wall })
}
