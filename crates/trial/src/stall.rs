//! The stall search: at which rates a device stops forwarding.
//!
//! Loads on a ladder, equal factors apart, are tried in an order drawn from a seed, several times each. Before each
//! trial a few frames show that the device forwards. After a stall it gets a pause, and where that does not help a reset,
//! so that no trial starts in the stall of another. Where one load stalls and its neighbour does not, loads between them are
//! tried until both are as near to each other as was asked for.
//!
//! A trial stalls if nothing came back for a fifth of it, or until its end and in the check after it, and if ordinary
//! loss does not explain that. Its result is unknown if the tester could not offer the load, or if the host was
//! interrupted for most of the silence.

mod map;
mod silence;

use std::ops::Range;
use std::time::Duration;

use engine::{Engine, Load};
use results::record::{self, Finding, Phase, RateStall, Recovered, Sample, SoakStall};
use stats::{Confidence, Random};
use wire::human;

use crate::conditions::{check_rate, refuse_unless};
use crate::sample::{offered, untaken};
use crate::session::{Session, Stop};
use crate::soak::interval::{self, Interval, Reading};
use crate::soak::watch::Watch;
use crate::verdict::direction_name;
use crate::{Conditions, Failure, Observer, Outcome, Strategy, strategy};
use map::{Map, Shown, shuffled};
use silence::Silence;

/// Intervals that a trial is divided into …
const INTERVALS: u32 = 50;
/// … of at least so many frames …
const FRAMES: f64 = 10.0;
/// … but not fewer intervals than this.
const FEWEST_INTERVALS: u32 = 5;
/// The shortest interval.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// Frames of a check whether the device forwards, and how long it takes at least.
const CHECK_FRAMES: f64 = 20.0;
const CHECK: Duration = Duration::from_millis(20);
/// How often a device is looked at that does not forward.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The tester fell short if it sent less than this share of a load …
const ENOUGH: f64 = 0.95;
/// … and at less than this, no higher load is tried.
const FAR_SHORT: f64 = 0.8;
/// Further trials at a load if some of its repeats are unknown.
const RETRIES: u32 = 2;
/// The most intervals of all trials of the ladder: what a record can bear.
const MOST_INTERVALS: f64 = 100_000.0;
/// Edges that the planned time assumes.
const PLANNED_EDGES: u32 = 2;

/// A search for the rates at which a device stalls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StallSearch {
    /// How it measures; the step is [`StallSearch::step`]'s, the loss threshold is not used. The check whether the
    /// device forwards has the rate of the warm-up.
    pub conditions: Conditions,
    /// The lowest load, in frames a second in each direction.
    pub lowest_pps: f64,
    /// The highest load, likewise.
    pub highest_pps: f64,
    /// Loads of the ladder for each factor of ten, at least.
    pub steps: u32,
    /// How long each trial holds its load.
    pub hold: Duration,
    /// How often each load is tried; between loads of the ladder only until it stalls.
    pub repeats: u32,
    /// How far apart the loads on both sides of an edge may lie in the end, as a share of the lower one.
    pub width: f64,
    /// How long a device may take to forward again after a stall.
    pub recovery: Duration,
    /// What the order of the loads is drawn from.
    pub seed: u64,
}

/// A trial that was made.
struct Tried {
    pps: f64,
    /// Its place in the samples.
    samples: Range<usize>,
    /// The direction that stalled.
    direction: usize,
    /// Whether the host may be to blame.
    disturbed: bool,
    recovery: Recovered,
    recovery_s: Option<f64>,
}

/// What was found so far.
struct Found {
    map: Map,
    stalls: Vec<Tried>,
    /// From this load on the tester falls far short.
    limit_pps: f64,
    stuck: bool,
}

impl Strategy for StallSearch {
    fn describe(&self) -> record::Strategy {
        let own = [
            ("lowest", human::pps(self.lowest_pps)),
            ("highest", human::pps(self.highest_pps)),
            ("steps", self.steps.to_string()),
            ("hold-duration", format!("{:?}", self.hold)),
            ("repeats", self.repeats.to_string()),
            ("width", format!("{}%", strategy::percent(self.width))),
            ("recovery", format!("{:?}", self.recovery)),
            ("seed", self.seed.to_string()),
        ];
        strategy::describe("stall", own, &self.conditions)
    }

    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome {
        let mut watch = Watch::new(observer);
        let mut session = Session::new(engine, &mut watch);
        let mut found = Found {
            map: if self.check().is_ok() { self.ladder() } else { Map::default() },
            stalls: Vec::new(),
            limit_pps: f64::INFINITY,
            stuck: false,
        };
        let end = self.drive(&mut session, &mut found);
        let judge = self.conditions.judge(None);
        let outcome = session.finish(end, &judge, self.conditions.drain, Finding::Stall(None));
        let finding = self.findings(found, &outcome.samples, &watch.into_readings());
        Outcome { finding: Finding::Stall(Some(Box::new(finding))), ..outcome }
    }

    fn planned(&self) -> Duration {
        if self.check().is_err() {
            return Duration::ZERO;
        }
        let ladder = self.ladder().loads().len() as u32;
        let ratio = 10f64.powf(1.0 / f64::from(self.steps));
        let halvings = (ratio.ln() / self.width.ln_1p()).log2().ceil().max(0.0) as u32;
        let trial = self.hold.saturating_add(self.conditions.drain).saturating_add(CHECK);
        let trials = (ladder + PLANNED_EDGES * halvings).saturating_mul(self.repeats);
        self.conditions.around(trial.saturating_mul(trials))
    }

    fn check(&self) -> Result<(), Failure> {
        self.conditions.check()?;
        self.conditions.check_phase("trial", self.hold)?;
        self.conditions.check_phase("recovery", self.recovery)?;
        check_rate("lowest load", "pps", self.lowest_pps)?;
        check_rate("highest load", "pps", self.highest_pps)?;
        check_rate("warm-up load", "pps", self.conditions.warm_up.pps)?;
        refuse_unless(self.lowest_pps <= self.highest_pps, || {
            let (lowest, highest) = (human::pps(self.lowest_pps), human::pps(self.highest_pps));
            format!("--lowest {lowest} is more than --highest {highest}: exchange them")
        })?;
        refuse_unless((1..=100).contains(&self.steps), || "--steps takes 1 to 100".into())?;
        refuse_unless((1..=1000).contains(&self.repeats), || "--repeats takes 1 to 1000".into())?;
        refuse_unless((0.001..=10.0).contains(&self.width), || "--width takes 0.1% or more".into())?;
        let frames = self.lowest_pps * self.hold.as_secs_f64();
        refuse_unless(frames >= 2.0 * FRAMES, || {
            format!(
                "at {} a trial of {:?} sends {frames:.0} frames, too few to tell a stall: give a longer --hold-duration or a \
                 higher --lowest",
                human::pps(self.lowest_pps),
                self.hold
            )
        })?;
        let loads = (self.highest_pps / self.lowest_pps).log10() * f64::from(self.steps) + 1.0;
        refuse_unless(loads * f64::from(self.repeats * INTERVALS) <= MOST_INTERVALS, || {
            format!(
                "{loads:.0} loads, {} times each, are too many: give fewer --steps or --repeats",
                self.repeats
            )
        })
    }
}

impl StallSearch {
    /// How long an interval of a trial is at high rates.
    #[must_use]
    pub fn step(hold: Duration) -> Duration {
        (hold / INTERVALS).max(MIN_INTERVAL)
    }

    fn ladder(&self) -> Map {
        Map::ladder(self.lowest_pps, self.highest_pps, self.steps)
    }

    fn drive(&self, session: &mut Session, found: &mut Found) -> Result<(), Stop> {
        self.check()?;
        session.warm_up(&self.conditions)?;
        session.bear_stalls();
        let mut random = Random::new(self.seed);
        for round in 0..self.repeats + RETRIES {
            for pps in shuffled(found.map.loads(), &mut random) {
                // What told nothing is tried again at the end.
                if round >= self.repeats && found.map.trials(pps) >= self.repeats as usize {
                    continue;
                }
                self.try_load(pps, session, found)?;
                if found.stuck {
                    return Ok(());
                }
            }
        }
        loop {
            let middles = found.map.middles(self.width);
            if middles.is_empty() {
                return Ok(());
            }
            for pps in shuffled(middles, &mut random) {
                for _ in 0..self.repeats + RETRIES {
                    let stalls = self.try_load(pps, session, found)?;
                    if found.stuck {
                        return Ok(());
                    }
                    if stalls || found.map.trials(pps) >= self.repeats as usize {
                        break;
                    }
                }
            }
        }
    }

    /// Makes one trial at `pps` and adds what it shows; whether the device stalled.
    fn try_load(&self, pps: f64, session: &mut Session, found: &mut Found) -> Result<bool, Stop> {
        if pps >= found.limit_pps {
            let limit = human::pps(found.limit_pps);
            found.map.add(pps, Shown::Nothing(format!("the tester fell far short of {limit} already")));
            return Ok(false);
        }
        if !self.forwards(session)? {
            session.note(format!(
                "the device stopped forwarding in a pause, before a trial at {}",
                human::pps(pps)
            ));
            if self.recover(session)?.0 == Recovered::No {
                found.stuck = true;
                self.note_stuck(pps, session);
                return Ok(false);
            }
        }
        let (shown, stalled) = self.trial(pps, session, found)?;
        let stalls = shown == Shown::Stalls;
        found.map.add(pps, shown);
        if let Some(tried) = stalled.filter(|_| stalls) {
            found.stuck = tried.recovery == Recovered::No;
            found.stalls.push(tried);
        }
        if found.stuck {
            self.note_stuck(pps, session);
        }
        Ok(stalls)
    }

    /// Holds a load of `pps`, and lets the device recover if it stalled.
    fn trial(
        &self,
        pps: f64,
        session: &mut Session,
        found: &mut Found,
    ) -> Result<(Shown, Option<Tried>), Stop> {
        let from = session.samples().len();
        let frames = Duration::try_from_secs_f64(FRAMES / pps).unwrap_or(self.hold);
        let step = self.conditions.step.max(frames).min(self.hold / FEWEST_INTERVALS);
        let loads = Conditions { step, ..self.conditions }.constant(Load::Rate(pps), self.hold);
        session.run(Phase::Hold, &loads, self.hold)?;
        session.drain(self.conditions.drain)?;
        let samples = from..session.samples().len();
        let mut silence = first_silence(session.samples(), &[], &samples);
        if let Some((_, silence)) = &mut silence {
            // A slow core loses frames, but not all of them: only interruptions explain a silence.
            if let Some(share) = session.interrupted_share(silence.places.clone())? {
                silence.stall.disturbed = share > 0.5;
            }
        }
        let (recovery, recovery_s) = match &silence {
            None => (Recovered::DuringTrial, None),
            Some((_, silence)) if silence.stall.until_s.is_some() => (Recovered::DuringTrial, None),
            Some(_) => self.recover(session)?,
        };
        let trial = session.samples().get(samples.clone()).unwrap_or_default();
        let sent: u64 = trial.iter().map(|sample| offered(sample) + untaken(sample)).sum();
        let due = pps * self.hold.as_secs_f64() * session.directions() as f64;
        if (sent as f64 + 2.0) < due * ENOUGH {
            let rate = human::pps(sent as f64 / due * pps);
            let disturbed = trial.iter().any(|sample| sample.disturbed.is_some());
            if (sent as f64) < due * FAR_SHORT && !disturbed {
                found.limit_pps = found.limit_pps.min(pps);
            }
            let why = if disturbed { ", because other activity disturbed its host" } else { "" };
            return Ok((Shown::Nothing(format!("the tester offered only {rate}{why}")), None));
        }
        let Some((direction, silence)) = silence else { return Ok((Shown::Forwards, None)) };
        let passed = recovery == Recovered::ByItself || recovery == Recovered::DuringTrial;
        if passed && silence.stall.disturbed {
            let reason = "nothing came back while other activity disturbed the tester's host".to_owned();
            return Ok((Shown::Nothing(reason), None));
        }
        // Nothing came back for a moment before the end, but then at once.
        if !silence.is_long && passed {
            return Ok((Shown::Forwards, None));
        }
        let disturbed = silence.stall.disturbed;
        Ok((Shown::Stalls, Some(Tried { pps, samples, direction, disturbed, recovery, recovery_s })))
    }

    /// Whether some of a few frames come back in each direction.
    fn forwards(&self, session: &mut Session) -> Result<bool, Stop> {
        let pps = self.conditions.warm_up.pps;
        let duration = Duration::try_from_secs_f64(CHECK_FRAMES / pps).unwrap_or(CHECK).max(CHECK);
        let (sample, _) =
            session.trial_of(Phase::WarmUp, Load::Rate(pps), duration, self.conditions.drain)?;
        Ok(sample.directions.iter().all(|direction| direction.forwarded > 0))
    }

    /// Waits until the device forwards again, and resets it if it does not by itself: by what it came back, and after
    /// how many seconds.
    fn recover(&self, session: &mut Session) -> Result<(Recovered, Option<f64>), Stop> {
        let began = session.elapsed();
        let since = |session: &Session| (session.elapsed() - began).as_secs_f64();
        if self.forwards(session)? {
            return Ok((Recovered::ByItself, Some(since(session))));
        }
        let by = match session.reset() {
            Ok(()) => Recovered::ByReset,
            Err(reason) => {
                session.note(format!("the device was not reset after a stall: {reason}"));
                Recovered::ByItself
            }
        };
        while session.elapsed() - began < self.recovery {
            session.pause(LOOK_EVERY)?;
            if self.forwards(session)? {
                return Ok((by, Some(since(session))));
            }
        }
        Ok((Recovered::No, None))
    }

    fn note_stuck(&self, pps: f64, session: &mut Session) {
        session.note(format!(
            "ended early: the device did not forward again within {:?} of a stall at {}; what was not tried by then \
             is unknown",
            self.recovery,
            human::pps(pps)
        ));
    }

    fn findings(&self, found: Found, samples: &[Sample], readings: &[Reading]) -> record::StallSearch {
        let confidence = Confidence::default();
        let Found { mut map, stalls, stuck, .. } = found;
        let ranges = map.ranges(confidence.error());
        for tried in stalls {
            let Some((_, silence)) = silence_of(samples, readings, &tried.samples, tried.direction) else {
                continue;
            };
            let began = samples.get(tried.samples.start).map_or(0.0, |first| first.at_s);
            let rate = map.rates_mut().iter_mut().find(|rate| rate.pps == tried.pps);
            rate.into_iter().for_each(|rate| {
                rate.stalls.push(RateStall {
                    direction: direction_name(tried.direction),
                    trial_s: began,
                    after_s: silence.after_s,
                    after_frames: silence.after_frames,
                    recovery: tried.recovery,
                    recovery_s: tried.recovery_s,
                    stall: SoakStall { disturbed: tried.disturbed, ..silence.stall },
                });
            });
        }
        record::StallSearch {
            lowest_pps: self.lowest_pps,
            highest_pps: self.highest_pps,
            hold_s: self.hold.as_secs_f64(),
            repeats: self.repeats as usize,
            width: self.width,
            confidence_percent: confidence.percent(),
            rates: map.into_rates(),
            ranges,
            stuck,
        }
    }
}

/// The silence of the first direction that has one in the trial at this place of the samples.
fn first_silence(samples: &[Sample], readings: &[Reading], trial: &Range<usize>) -> Option<(usize, Silence)> {
    let directions = samples.get(trial.start).map_or(0, |sample| sample.directions.len());
    (0..directions).find_map(|direction| silence_of(samples, readings, trial, direction))
}

fn silence_of(
    samples: &[Sample],
    readings: &[Reading],
    trial: &Range<usize>,
    direction: usize,
) -> Option<(usize, Silence)> {
    let mut intervals: Vec<Interval> = interval::intervals(samples.get(..trial.end)?, readings, direction);
    intervals.iter_mut().take(trial.start).for_each(|interval| interval.measured = false);
    Some((direction, silence::find(&intervals)?))
}
