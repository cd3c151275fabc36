//! The trial that all strategies are made of: loads, each for one interval, then a drain.
//!
//! Loads enter; samples leave, first live with preliminary counts, in the end with final ones.
//! An interval ends when the next one begins, so its frames are known to the frame, but they
//! return later: every interval is read when it ends, when they had time for that, and again after
//! the drain (or once 900 more have begun, because an engine keeps a thousand).

mod drain;
mod ended;
mod finish;
mod interrupted;
mod silence;
mod stop;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use engine::{Engine, Interval, Load, Totals};
use results::record::{GoalResult, LatencyTest, LoadLatency, Phase, Sample, Trial, too_late};

use crate::conditions::{Conditions, WarmUp};
use crate::lateness;
use crate::outcome::{Failure, passes};
use crate::sample::{Measured, Percentiles, fewest_judged, lost, lost_in_interruptions};
use crate::undisturbed::undisturbed_trial;
use crate::{Bursts, Interruption, Noise, Observer, ObserverError};
use silence::{EndOnStall, Silence};
pub(crate) use stop::Stop;

/// How often the observer is asked at most what disturbed the machine; a little less than 100 ms, a usual step.
const ASK_EVERY: Duration = Duration::from_millis(90);
/// How long it waits at most for noise that lasts to be over: it may last for minutes.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The shortest pass that is worth it.
const WORTH_A_WAIT: Duration = Duration::from_secs(2);
/// How often it looks whether that is so.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// An interval that goes on.
#[derive(Clone, Debug)]
struct Open {
    interval: Interval,
    phase: Phase,
    load: Load,
    began: Duration,
    planned: Duration,
    dut_core_busy: Option<f64>,
    noise: Noise,
    /// The share of its frames whose loss that may account for, where it is more than usual.
    share: Option<f64>,
    /// Whether that lasted all the time.
    lasting: bool,
}

/// The state of one run over one engine.
pub(crate) struct Session<'a> {
    engine: &'a mut dyn Engine,
    observer: &'a mut dyn Observer,
    started: Duration,
    open: Option<Open>,
    /// What the machine did in the interval that ended last.
    noise: Noise,
    /// What is final, as samples.
    samples: Vec<Sample>,
    /// What is not: with the number of the reading of the totals that its percentiles come from.
    unsettled: VecDeque<(usize, Measured)>,
    /// As many of these, the last, are not yet told to the observer as settled.
    untold: usize,
    /// What returned between two readings of the totals, by reading, then direction.
    readings: Vec<Vec<Option<Percentiles>>>,
    totals: Vec<Totals>,
    totals_read: Duration,
    silence: Silence,
    /// What the samples are judged by after the last drain.
    pass: interrupted::Pass,
    /// Whether a drain may end when no frame came for a while.
    ends_quiet_drains: bool,
    /// Whether the observer failed, and is left alone.
    forsaken: bool,
    notes: Vec<String>,
    steering: Steering,
}

/// A load that a person may change while it goes on.
#[derive(Debug, Default)]
struct Steering {
    is_on: bool,
    changed: bool,
    paused: bool,
    /// The highest rate so far.
    highest: Option<f64>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(engine: &'a mut dyn Engine, observer: &'a mut dyn Observer) -> Self {
        let started = engine.now();
        let totals = vec![Totals::default(); engine.directions()];
        let silence = Silence::new(started, engine.directions());
        Self {
            engine,
            observer,
            started,
            open: None,
            noise: Noise::default(),
            samples: Vec::new(),
            unsettled: VecDeque::new(),
            untold: 0,
            readings: Vec::new(),
            totals,
            totals_read: started,
            silence,
            pass: interrupted::Pass::default(),
            ends_quiet_drains: false,
            forsaken: false,
            notes: Vec::new(),
            steering: Steering::default(),
        }
    }

    /// Proves that traffic passes, at a low load.
    pub(crate) fn warm_up(&mut self, conditions: &Conditions) -> Result<(), Stop> {
        let WarmUp { pps, duration } = conditions.warm_up;
        if duration.is_zero() {
            return Ok(());
        }
        self.run(Phase::WarmUp, &conditions.constant(Load::Rate(pps), duration), duration)?;
        self.drain(conditions.drain)?;
        Ok(passes(&self.totals)?)
    }

    /// After a warm-up in noise that hides all, waits until that is over: one pass that begins in it
    /// tells of nothing else. Waits for as long as the pass is `planned` to take at most, but not for
    /// minutes, and says so. A pass of a second or two is a try: it waits for nothing.
    pub(crate) fn wait_out_noise(&mut self, planned: Duration) -> Result<(), Stop> {
        let mut noise = std::mem::take(&mut self.noise);
        if !noise.hides_all() || planned < WORTH_A_WAIT {
            return Ok(());
        }
        let cause = noise.disturbed.clone().unwrap_or_else(|| "noise of this machine".into());
        let patience = planned.min(LONGEST_WAIT);
        let mut left = patience;
        while noise.hides_all() && !left.is_zero() {
            let look = LOOK_EVERY.min(left);
            self.observer.drain(look);
            self.engine.wait(look)?;
            left -= look;
            noise = self.observer.ask(|around| around.noise(Load::Idle));
        }
        let end = if noise.hides_all() { "it did not recover, measured anyway" } else { "it recovered" };
        self.note(format!("{cause}, before the run; waited {:?}, {end}", patience - left));
        Ok(())
    }

    /// Offers one load after the other, dividing `duration` equally between them.
    pub(crate) fn run(&mut self, phase: Phase, loads: &[Load], duration: Duration) -> Result<(), Stop> {
        let Ok(intervals @ 1..) = u32::try_from(loads.len()) else { return Ok(()) };
        let step = duration / intervals;
        self.observer.phase(phase, duration);
        self.observer.ask(|around| (around.dut_core_busy(), around.noise(Load::Idle)));
        if phase != Phase::Hold {
            self.pass.begin();
        }
        let start = self.engine.now();
        let mut asked = start;
        self.silence.restart(start, &self.totals);
        for (load, end) in loads.iter().zip(1..) {
            let load = self.steered(*load);
            let overdue = self.engine.now() >= start + step * end && end < intervals;
            // A run that was held up ends when it was planned to, as far as its loads allow.
            if overdue && self.open.as_ref().is_some_and(|open| open.phase == phase && open.load == load) {
                continue;
            }
            self.begin(phase, load, step)?;
            // Against the plan, not against the last interval: delays do not add up.
            let left = (start + step * end).saturating_sub(self.engine.now());
            self.engine.wait(left.max(step / 2))?;
            let Some(open) = &mut self.open else { continue };
            open.dut_core_busy = self.observer.ask(|around| around.dut_core_busy());
            let now = self.engine.now();
            if now.saturating_sub(asked) >= ASK_EVERY || end == intervals {
                // What follows a warm-up may leave the cores no time.
                let load = if phase == Phase::WarmUp { Load::Idle } else { open.load };
                open.noise = self.observer.ask(|around| around.noise(load));
                self.pass.heard(open.noise.interruptions.as_deref());
                self.spread_noise(asked, now, step);
                asked = now;
            }
        }
        Ok(())
    }

    /// The noise from `asked` to `now` belongs to all intervals of about a `step` that were in it: when it
    /// was in that stretch is not known, so each of them may have had all of it.
    fn spread_noise(&mut self, asked: Duration, now: Duration, step: Duration) {
        let Some(open) = &mut self.open else { return };
        let Noise { cost, lasting, disturbed, .. } = &open.noise;
        let times = (now.saturating_sub(asked).as_secs_f64() / step.as_secs_f64().max(1e-9)).max(1.0);
        let share = (lasting + (cost - lasting).max(0.0) * times).min(1.0);
        let noise = disturbed.is_some().then_some(share);
        let lasts = *lasting > 0.0;
        (open.share, open.lasting) = (noise, lasts);
        for (_, earlier) in self.unsettled.iter_mut().rev().take_while(|(_, it)| it.began >= asked) {
            (earlier.disturbed, earlier.noise, earlier.lasting) = (disturbed.clone(), noise, lasts);
        }
    }

    /// Offers one load for `duration`, drains, and returns the final counts, with the noise that may
    /// have spoiled them: the machine's, and departures that it delayed.
    pub(crate) fn trial(
        &mut self,
        phase: Phase,
        pps: f64,
        duration: Duration,
        drain: Duration,
    ) -> Result<(Sample, Noise), Stop> {
        self.trial_of(phase, Load::Rate(pps), duration, drain)
    }

    /// The same of any load.
    pub(crate) fn trial_of(
        &mut self,
        phase: Phase,
        load: Load,
        duration: Duration,
        drain: Duration,
    ) -> Result<(Sample, Noise), Stop> {
        let (sample, machine, own) = self.trial_apart(phase, load, duration, drain)?;
        Ok((sample, machine.and(own)))
    }

    /// The same, but the noise of the machine is apart from that of departures that were late and of
    /// queues that a reference device found full.
    pub(crate) fn trial_apart(
        &mut self,
        phase: Phase,
        load: Load,
        duration: Duration,
        drain: Duration,
    ) -> Result<(Sample, Noise, Noise), Stop> {
        let before = self.totals.clone();
        let by_rules = self.observer.ask(|around| around.lost_by_rules());
        self.run(phase, &[load], duration)?;
        let interval = self.open.as_ref().map(|open| open.interval);
        self.drain(drain)?;
        let interruptions = self.noise.interruptions.take();
        if let (Some(interval), Load::Rate(pps), Some(interruptions)) = (interval, load, interruptions) {
            self.leave_out(interval, pps, &interruptions)?;
        }
        let sample = self.samples.last().cloned();
        let sample =
            sample.ok_or_else(|| Failure::Engine(engine::Error::Failed("no interval was counted".into())))?;
        let late = self.totals.iter().zip(&before).map(|(now, then)| {
            let since = |count: fn(&Totals) -> u64| count(now).saturating_sub(count(then));
            let given_up = too_late(
                since(|totals| totals.offered),
                since(|totals| totals.unsent),
                since(|totals| totals.untaken.total()),
            );
            lateness::noise(&now.lateness.since(&then.lateness), given_up)
        });
        let late = late.max_by(|one, two| one.cost.total_cmp(&two.cost)).unwrap_or_default();
        let overrun = by_rules.zip(self.observer.ask(|around| around.lost_by_rules())).map(|(then, now)| {
            let left = lost(&sample).saturating_sub(now.saturating_sub(then));
            Noise::of_overrun(fewest_judged(&sample), left, lost_in_interruptions(&sample))
        });
        Ok((sample, std::mem::take(&mut self.noise), late.and(overrun.unwrap_or_default())))
    }

    /// Adds to the last sample, of a load of `pps`, what became of the frames that left while nothing
    /// was interrupted.
    fn leave_out(
        &mut self,
        interval: Interval,
        pps: f64,
        interruptions: &[Interruption],
    ) -> Result<(), Stop> {
        let (Some(timelines), Some(sample)) = (self.engine.timeline(interval)?, self.samples.last_mut())
        else {
            return Ok(());
        };
        for (timeline, direction) in timelines.iter().zip(&mut sample.directions) {
            direction.undisturbed = undisturbed_trial(timeline, pps, interruptions);
        }
        Ok(())
    }

    /// Shows the observer a finished trial, and what is found so far.
    pub(crate) fn show_trial(
        &mut self,
        trial: &Trial,
        results: &BTreeMap<String, GoalResult>,
    ) -> Result<(), Stop> {
        self.tell(|observer| observer.trial(trial, results))
    }

    /// Shows the observer a load whose latency is measured, the next one of a test.
    pub(crate) fn show_latency(&mut self, test: &LatencyTest, measured: &LoadLatency) -> Result<(), Stop> {
        self.tell(|observer| observer.latency(test, measured))
    }

    /// Tells the observer something. One that fails is left alone from then on, and the session ends.
    fn tell(
        &mut self,
        something: impl FnOnce(&mut dyn Observer) -> Result<(), ObserverError>,
    ) -> Result<(), Stop> {
        if self.forsaken {
            return Ok(());
        }
        let told = something(self.observer);
        self.forsaken = told.is_err();
        told.map_err(|error| Stop::Failed(Failure::Observer(error)))
    }

    /// All samples whose counts are final, as those of ended intervals are after a drain.
    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// How frames came at the device since it was started, where it knows.
    pub(crate) fn bursts(&mut self) -> Option<Bursts> {
        self.observer.ask(|around| around.bursts())
    }

    /// Resets the device while the load goes on.
    ///
    /// # Errors
    /// Why that is not possible.
    pub(crate) fn reset(&mut self) -> Result<(), String> {
        self.observer.ask(|around| around.reset())
    }

    /// Directions that are loaded.
    pub(crate) fn directions(&self) -> usize {
        self.totals.len()
    }

    /// Goes on from now though the device stalls: it may recover.
    pub(crate) fn bear_stalls(&mut self) {
        self.silence.ends = EndOnStall::Never;
    }

    /// Ends from now when any direction stalls.
    pub(crate) fn end_on_any_stall(&mut self) {
        self.silence.ends = EndOnStall::Any;
    }

    /// Time since the session began, on the engine's clock.
    pub(crate) fn elapsed(&self) -> Duration {
        self.engine.now().saturating_sub(self.started)
    }

    /// What all that was sent came to, as read after the last drain.
    pub(crate) fn totals(&self) -> &[Totals] {
        &self.totals
    }

    /// Adds something that a reader should know, once.
    pub(crate) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// From now on a person may change each rate before its interval begins.
    pub(crate) fn let_steer(&mut self) {
        self.steering.is_on = true;
    }

    /// The highest load that was sent, where a person has changed it.
    pub(crate) fn highest_steered(&self) -> Option<f64> {
        self.steering.highest.filter(|_| self.steering.changed)
    }

    /// What a person wants in place of `load`.
    fn steered(&mut self, load: Load) -> Load {
        let (true, Load::Rate(pps)) = (self.steering.is_on, load) else { return load };
        let wanted = self.observer.ask(|around| around.steer(pps));
        let steered = if wanted > 0.0 { Load::Rate(wanted.max(1.0)) } else { Load::Idle };
        if steered != load && !self.steering.changed {
            self.steering.changed = true;
            self.note("a person steered the load: its rate is that of each sample".to_owned());
        }
        let Load::Rate(pps) = steered else {
            self.steering.paused = true;
            return steered;
        };
        if std::mem::take(&mut self.steering.paused) {
            self.silence.restart(self.engine.now(), &self.totals);
        }
        self.steering.highest = Some(self.steering.highest.map_or(pps, |highest| highest.max(pps)));
        steered
    }

    /// Ends the open interval and begins one at `load`.
    fn begin(&mut self, phase: Phase, load: Load, planned: Duration) -> Result<(), Stop> {
        let interval = self.engine.begin(load)?;
        let began = self.engine.now();
        let noise = Noise::default();
        let (dut_core_busy, share, lasting) = (None, None, false);
        let next = Open { interval, phase, load, began, planned, dut_core_busy, noise, share, lasting };
        let ended = self.open.replace(next);
        ended.map_or(Ok(()), |ended| self.close(ended, began))
    }

    /// Ends the open interval and sends nothing.
    fn idle(&mut self) -> Result<(), Stop> {
        self.engine.begin(Load::Idle)?;
        let now = self.engine.now();
        self.open.take().map_or(Ok(()), |ended| self.close(ended, now))
    }

    /// Reads the totals, and the percentiles of what returned since the last time.
    fn read_totals(&mut self) -> Result<(), Stop> {
        let totals = self.engine.totals()?;
        let pairs = || totals.iter().zip(&self.totals);
        self.readings
            .push(pairs().map(|(now, then)| Percentiles::of(&now.latency.since(&then.latency))).collect());
        self.totals_read = self.engine.now();
        self.silence.read(self.totals_read, &totals, &self.totals);
        self.totals = totals;
        Ok(())
    }

    /// The longest that any frame took to return, as read last, if one has returned.
    fn longest_latency(&self) -> Option<Duration> {
        let longest = self.totals.iter().filter_map(|totals| totals.latency.percentile(100.0)).max();
        longest.map(Duration::from_nanos)
    }

    /// Frames that came back in all directions, as read last.
    fn forwarded(&self) -> u64 {
        self.totals.iter().map(|totals| totals.forwarded).sum()
    }
}
