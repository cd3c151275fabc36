//! The soak: one load for a long time, also a very low one, and what went wrong in it.
//!
//! The time is divided into intervals. An interval is as long as it takes to send a few frames, and
//! so long that even a soak of days has no more than ten thousand: that is what bounds memory
//! and record, and how exactly it is known when something happened.
//!
//! What is looked for in the final counts, in each direction alone:
//! - *stalls*: nothing came back of at least five frames, and ordinary loss does not explain it;
//! - *losses*, run by run of lossy intervals, and whether they come at equal distances in time or
//!   in frames (`period`), or are each n-th frame (`every`);
//! - a *drift* of the latency (`drift`);
//! - *hiccups*: the tester gave frames up, or its machine was disturbed. Losses in such intervals
//!   are kept apart, and make neither an event nor a period.

mod drift;
mod every;
pub(crate) mod interval;
pub(crate) mod losses;
mod period;
pub(crate) mod watch;

use std::time::Duration;

use engine::{Engine, Load};
use results::record::{
    self, Finding, Hiccup, LossEvent, LossPattern, LossPeriod, Measure, Phase, Sample, SoakDirection,
    SoakStall,
};
use wire::human;

use crate::conditions::{check_rate, refuse_unless};
use crate::session::{Session, Stop};
use crate::verdict::direction_name;
use crate::{Conditions, Failure, Observer, Outcome, Strategy, strategy};
use interval::{Interval, Reading, is_disturbed};
use losses::Run;
use period::Period;
use watch::Watch;

/// The shortest interval.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// The most intervals that are chosen for a soak.
const INTERVALS: u32 = 10_000;
/// Frames of each direction in an interval, at least.
const FRAMES: f64 = 10.0;
/// Losses are taken to be equally far apart in frames, not in time, if the chance of that is by so
/// much the smaller.
const CLEARLY: f64 = 100.0;
/// The most events that are kept of a kind.
const MAX_EVENTS: usize = 1_000;

/// A constant load for a long time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Soak {
    /// How it measures. [`Soak::interval`] chooses a step; the loss threshold is not used: every
    /// lost frame counts.
    pub conditions: Conditions,
    /// Frames a second in each direction.
    pub pps: f64,
    /// How long.
    pub duration: Duration,
    /// Whether it ends when nothing has come back for 5 s and three intervals, in any direction.
    pub stop_on_stall: bool,
}

impl Strategy for Soak {
    fn describe(&self) -> record::Strategy {
        let own = [
            ("rate", human::pps(self.pps)),
            ("duration", format!("{:?}", self.duration)),
            ("stop-on-stall", if self.stop_on_stall { "yes" } else { "no" }.to_owned()),
        ];
        strategy::describe("soak", own, &self.conditions)
    }

    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome {
        let mut watch = Watch::new(observer);
        let mut session = Session::new(engine, &mut watch);
        let end = self.drive(&mut session);
        let judge = self.conditions.judge(Some(self.pps));
        let outcome = session.finish(end, &judge, self.conditions.drain, Finding::Soak(None));
        let found = self.findings(&outcome.samples, &watch.into_readings());
        Outcome { finding: Finding::Soak(Some(found)), ..outcome }
    }

    fn planned(&self) -> Duration {
        self.conditions.around(self.duration)
    }

    fn check(&self) -> Result<(), Failure> {
        self.conditions.check()?;
        self.conditions.check_phase("soak", self.duration)?;
        check_rate("load", "pps", self.pps)?;
        refuse_unless(!self.duration.is_zero(), || "--duration must be greater than 0".into())?;
        refuse_unless(self.pps * self.duration.as_secs_f64() >= 1.0, || {
            format!("at {} pps a soak of {:?} sends no frame: give it more time", self.pps, self.duration)
        })
    }
}

impl Soak {
    /// How long an interval should be of a soak of this load and length.
    #[must_use]
    pub fn interval(pps: f64, duration: Duration) -> Duration {
        let frames = Duration::try_from_secs_f64(FRAMES / pps).unwrap_or(duration);
        MIN_INTERVAL.max(duration / INTERVALS).max(frames.min(duration))
    }

    fn drive(&self, session: &mut Session) -> Result<(), Stop> {
        self.check()?;
        session.warm_up(&self.conditions)?;
        if self.stop_on_stall {
            session.end_on_any_stall();
        } else {
            session.bear_stalls();
        }
        let loads = self.conditions.constant(Load::Rate(self.pps), self.duration);
        session.run(Phase::Hold, &loads, self.duration)?;
        session.drain(self.conditions.drain)
    }

    /// How long an interval really is: all are equally long.
    fn interval_s(&self) -> f64 {
        self.duration.as_secs_f64() / self.conditions.intervals(self.duration).max(1) as f64
    }

    /// What samples, and the device's counters at the end of each, show.
    fn findings(&self, samples: &[Sample], readings: &[Reading]) -> record::Soak {
        let soaked: Vec<&Sample> = samples.iter().filter(|sample| sample.phase == Phase::Hold).collect();
        let directions = soaked.iter().map(|sample| sample.directions.len()).max().unwrap_or_default();
        let (hiccups, hiccup_count) = hiccups(&soaked);
        record::Soak {
            load_pps: self.pps,
            duration_s: soaked.iter().map(|sample| sample.duration_s).sum(),
            interval_s: self.interval_s(),
            directions: (0..directions)
                .map(|direction| {
                    self.direction(direction, &interval::intervals(samples, readings, direction))
                })
                .collect(),
            hiccups,
            hiccup_count,
        }
    }

    fn direction(&self, direction: usize, intervals: &[Interval]) -> SoakDirection {
        let soaked = || intervals.iter().filter(|interval| interval.measured && interval.offered > 0);
        let silences = losses::silences(intervals);
        let lossy = losses::lossy(intervals);
        let (lossy_intervals, steady) = spread(intervals, &silences);
        let mut events: Vec<LossEvent> = lossy.iter().map(|run| losses::event(intervals, run)).collect();
        let period = if steady { self.every(intervals) } else { self.period(&mut events) };
        let stalls: Vec<SoakStall> = silences.iter().map(|run| losses::stall(intervals, run)).collect();
        SoakDirection {
            name: direction_name(direction),
            offered: soaked().map(|interval| interval.offered).sum(),
            lost: soaked().map(Interval::lost).sum(),
            lost_disturbed: soaked().filter(|interval| interval.disturbed).map(Interval::lost).sum(),
            intervals: soaked().count(),
            lossy_intervals,
            pattern: match &period {
                _ if steady => LossPattern::Steady,
                Some(_) => LossPattern::Periodic,
                None if events.is_empty() => LossPattern::None,
                None => LossPattern::Scattered,
            },
            stall_count: stalls.len(),
            stalls: stalls.into_iter().take(MAX_EVENTS).collect(),
            loss_count: events.len(),
            losses: if steady { Vec::new() } else { events.into_iter().take(MAX_EVENTS).collect() },
            period,
            drift: drift::drift(intervals),
        }
    }

    /// The period of losses, in time or in frames, and marks which of them fall on it.
    fn period(&self, events: &mut [LossEvent]) -> Option<LossPeriod> {
        let interval_s = self.interval_s();
        let middle_s = |event: &LossEvent| event.from_s + interval_s / 2.0;
        let times: Vec<f64> = events.iter().map(middle_s).collect();
        let in_time = period::find(&times, interval_s);
        let interval = self.pps * interval_s;
        let places = events.iter().map(|event| event.counters.before.offered as f64 + interval / 2.0);
        let in_frames = period::find(&places.collect::<Vec<_>>(), interval);
        // While the load is constant, both are the same.
        let told = |time: &Period, frames: &Period| frames.chance * CLEARLY < time.chance;
        let (measure, found) = match (in_time, in_frames) {
            (Some(time), Some(frames)) if told(&time, &frames) => (Measure::Frames, frames),
            (None, Some(frames)) => (Measure::Frames, frames),
            (time, _) => (Measure::Time, time?),
        };
        for (event, on_period) in events.iter_mut().zip(&found.on_period) {
            event.on_period = *on_period;
        }
        let (period_s, frames) = match measure {
            Measure::Time => (found.length, found.length * self.pps),
            Measure::Frames => (found.length / self.pps, found.length),
        };
        let phase_s = match measure {
            Measure::Time => found.phase,
            Measure::Frames => middle_s(events.iter().find(|event| event.on_period)?),
        };
        Some(LossPeriod {
            measure,
            period_s,
            phase_s,
            frames,
            on_period: found.on_period.iter().filter(|on_period| **on_period).count(),
            losses: events.len(),
            occupied: found.occupied,
            chance: found.chance,
        })
    }

    /// The period of losses in most intervals: that of a device which counts frames, or none.
    fn every(&self, intervals: &[Interval]) -> Option<LossPeriod> {
        let every::Every { frames, chance } = every::find(intervals)?;
        let soaked = || intervals.iter().filter(|interval| interval.measured);
        let lost = soaked().map(Interval::lost).sum::<u64>() as usize;
        Some(LossPeriod {
            measure: Measure::Frames,
            period_s: frames as f64 / self.pps,
            phase_s: soaked().find(|interval| interval.lost() > 0)?.from_s,
            frames: frames as f64,
            on_period: lost,
            losses: lost,
            occupied: 1.0,
            chance,
        })
    }
}

/// How many undisturbed intervals lost frames, and whether most did that were no part of a stall.
fn spread(intervals: &[Interval], silences: &[Run]) -> (usize, bool) {
    let told = intervals.iter().enumerate();
    let told = told.filter(|(_, interval)| interval.measured && interval.offered > 0 && !interval.disturbed);
    let (mut lossy, mut lossy_awake, mut awake) = (0, 0, 0);
    let mut silences = silences.iter().peekable();
    for (at, interval) in told {
        while silences.next_if(|run| *run.end() < at).is_some() {}
        let stalled = silences.peek().is_some_and(|run| run.contains(&at));
        let loses = usize::from(interval.lost() > 0);
        lossy += loses;
        lossy_awake += if stalled { 0 } else { loses };
        awake += usize::from(!stalled);
    }
    (lossy, lossy_awake * 2 > awake)
}

/// Runs of disturbed samples, as many as are kept, and how many there were.
fn hiccups(samples: &[&Sample]) -> (Vec<Hiccup>, usize) {
    let runs = samples.chunk_by(|one, next| is_disturbed(one) == is_disturbed(next));
    let runs = runs.filter(|run| run.first().is_some_and(|first| is_disturbed(first)));
    let hiccups: Vec<Hiccup> = runs.map(hiccup).collect();
    let count = hiccups.len();
    (hiccups.into_iter().take(MAX_EVENTS).collect(), count)
}

fn hiccup(run: &[&Sample]) -> Hiccup {
    let directions = || run.iter().flat_map(|sample| &sample.directions);
    Hiccup {
        from_s: run.first().map_or(0.0, |first| first.at_s),
        until_s: run.last().map_or(0.0, |last| last.at_s + last.duration_s),
        unsent: directions().map(|direction| direction.unsent).sum(),
        lost: directions().map(|direction| direction.offered.saturating_sub(direction.forwarded)).sum(),
        cause: run.iter().find_map(|sample| sample.disturbed.clone()),
    }
}
