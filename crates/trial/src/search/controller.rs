//! The controller of a search: what each trial saw enters; the next trial, in the end the
//! results leave. Pure: time is what the caller says it is.
//!
//! The first trial offers the maximum; what the device forwards of it is the first hint for every
//! goal. After that each goal nominates a load, and the lowest is tried (the longest trial, where
//! two nominate the same): if it is lossy, loads above it need no trial at all.
//!
//! A trial whose loss noise may account for is repeated, until the time for that is used up; when
//! that happens too often at one load, a higher one is tried. A trial that the tester fell short in proves nothing, whatever it lost: what left late leaves
//! in bursts. It is repeated too; but if no load as high was ever offered in full, what the
//! tester did offer becomes the maximum, and the results say so.

use std::cmp::Reverse;
use std::time::Duration;

use super::database::{Database, Observation, Verdict};
use super::finding::{Circumstances, Finding, find};
use super::goal::{Goal, Target};
use super::ladder::{Ladder, Rung};
use super::selector::{Candidate, Hints, Range, Selector};

/// How often the tester must fall short at one load until that is its limit.
const SHORTFALLS: u32 = 3;

/// A trial at a low load becomes at most one part in so many of the search's time long.
pub(super) const LONGEST_SHARE: u32 = 12;

/// What bounds a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    pub(crate) min_pps: f64,
    pub(crate) max_pps: f64,
    /// No trial begins that would end later.
    pub(crate) max_duration: Duration,
    /// The time that disturbed trials may take.
    pub(crate) repeat_budget: Duration,
    /// What a trial takes besides its duration.
    pub(crate) overhead: Duration,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Offer `pps` in each direction for `duration`, and tell what became of it.
    Measure { load: Rung, pps: f64, duration: Duration },
    /// The search ended.
    Done,
}

/// What became of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TrialEnd {
    /// It says something of its load. `forwarded_pps` is the mean of the directions.
    Sound { observation: Observation, forwarded_pps: f64 },
    /// The tester offered less than it should have; rates are means of the directions. `held_up` says
    /// that the noise accounts for all that it did not offer, `lossless` that all of what it did came back.
    FellShort {
        load: Rung,
        duration: Duration,
        offered_pps: f64,
        forwarded_pps: f64,
        held_up: bool,
        lossless: bool,
    },
}

/// The state of a search.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    limits: Limits,
    ladder: Ladder,
    range: Range,
    goals: Vec<Goal>,
    database: Database,
    /// One for each goal, once it is known where to begin.
    selectors: Option<Vec<Selector>>,
    /// Where all goals are to begin, where that was known before any trial.
    around: Option<Hints>,
    /// How often the tester fell short at the load tried last, and the most it offered there.
    shortfall: (Rung, u32, f64),
    /// The loss ratios of the goals that asked for the trial that comes next.
    asked: Vec<f64>,
    /// The time that trials took which said nothing.
    disturbed: Duration,
    tester_limits: bool,
    /// Why it ends before its goals are reached.
    ended: Option<Ended>,
}

/// What ends a search early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// There is no time for another trial.
    Time,
    /// There is no time left to repeat disturbed trials.
    Disturbed,
    /// The tester cannot even offer the minimum.
    Tester,
}

impl Controller {
    /// `goals` and `limits` must have been checked.
    pub(crate) fn new(goals: Vec<Goal>, limits: Limits) -> Self {
        let narrowest = goals.iter().map(|goal| goal.relative_width).fold(1.0, f64::min).min(0.5);
        let ladder = Ladder::new(limits.min_pps, limits.max_pps, narrowest);
        Self {
            limits,
            ladder,
            range: Range { floor: 0, ceiling: ladder.top() },
            goals,
            database: Database::default(),
            selectors: None,
            around: None,
            shortfall: (0, 0, 0.0),
            asked: Vec::new(),
            disturbed: Duration::ZERO,
            tester_limits: false,
            ended: None,
        }
    }

    /// One of the same goals that knows nothing yet but where to begin and what the tester can offer.
    pub(crate) fn afresh(&self) -> Self {
        let Self { goals, limits, range, tester_limits, .. } = self;
        let mut afresh =
            Self { range: *range, tester_limits: *tester_limits, ..Self::new(goals.clone(), *limits) };
        self.around.into_iter().for_each(|hints| afresh.begin_at(hints));
        afresh
    }

    /// Begins between `lower_pps` and `upper_pps`, where the limit is likely to lie, without a trial at the
    /// maximum.
    pub(crate) fn begin_between(&mut self, lower_pps: f64, upper_pps: f64) {
        let rung = |pps: f64| self.ladder.at_or_below(pps).clamp(self.range.floor, self.range.ceiling);
        let lower = rung(lower_pps);
        let upper = rung(upper_pps).max(lower + 1).min(self.range.ceiling);
        self.begin_at(Hints { lower: Some(lower), upper: Some(upper) });
    }

    fn begin_at(&mut self, hints: Hints) {
        self.around = Some(hints);
        let selector = |goal: &Goal| Selector::new(self.targets(goal), hints);
        self.selectors = Some(self.goals.iter().map(selector).collect());
    }

    /// What to do after `elapsed`.
    pub(crate) fn next(&mut self, elapsed: Duration) -> Step {
        if self.ended.is_some() {
            return Step::Done;
        }
        let left = self.limits.max_duration.saturating_sub(elapsed).saturating_sub(self.limits.overhead);
        let nominated = self.nominations();
        let fitting = nominated.iter().filter(|(_, candidate)| candidate.duration <= left);
        // The lowest load; of two trials at it, the longest.
        match fitting.min_by_key(|(_, candidate)| (candidate.load, Reverse(candidate.duration))) {
            Some(&(_, Candidate { load, duration, .. })) => {
                let asking = nominated.iter().filter(|(_, candidate)| candidate.load == load);
                self.asked = asking.map(|(loss_ratio, _)| *loss_ratio).collect();
                Step::Measure { load, pps: self.ladder.pps(load), duration }
            }
            None => {
                self.ended = (!nominated.is_empty()).then_some(Ended::Time);
                Step::Done
            }
        }
    }

    /// Whether its goals are reached, or it ended.
    pub(crate) fn is_done(&self) -> bool {
        let mut selectors = self.selectors.clone();
        let reached =
            |selector: &mut Selector| selector.nominate(&self.database, &self.ladder, self.range).is_none();
        self.ended.is_some() || selectors.as_mut().is_some_and(|all| all.iter_mut().all(reached))
    }

    /// Takes in a trial.
    pub(crate) fn observe(&mut self, trial: TrialEnd) {
        match trial {
            TrialEnd::Sound { observation, forwarded_pps } => {
                let says_nothing = |loss_ratio: &f64| observation.verdict(*loss_ratio) == Verdict::Unclear;
                if !self.asked.is_empty() && self.asked.iter().all(says_nothing) {
                    self.disturb(observation.duration);
                }
                self.database.add(observation);
                self.begin(forwarded_pps);
            }
            TrialEnd::FellShort { load, duration, offered_pps, forwarded_pps, held_up, lossless } => {
                if lossless && offered_pps >= self.limits.min_pps {
                    self.pass(offered_pps, duration);
                }
                if held_up || self.database.highest().is_some_and(|highest| highest >= load) {
                    // The tester can offer this: something kept it from doing so.
                    self.disturb(duration);
                    self.begin(forwarded_pps);
                } else {
                    self.fall_short(load, offered_pps);
                    self.begin(forwarded_pps);
                }
            }
        }
    }

    /// What a tester that fell short did offer passed, however late it left.
    fn pass(&mut self, offered_pps: f64, duration: Duration) {
        let load = self.ladder.at_or_below(offered_pps).min(self.range.ceiling);
        self.database.add(Observation {
            load,
            pps: self.ladder.pps(load),
            duration,
            loss_ratio: 0.0,
            late_loss_ratio: 0.0,
            offered_share: 1.0,
            noise: 0.0,
        });
    }

    fn disturb(&mut self, duration: Duration) {
        self.disturbed += duration + self.limits.overhead;
        if self.disturbed > self.limits.repeat_budget {
            self.ended = Some(Ended::Disturbed);
        }
    }

    /// What is found so far, one for each goal.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.findings_in(&self.database)
    }

    /// What `database`, with the observations of one direction, says of each goal.
    pub(crate) fn findings_in(&self, database: &Database) -> Vec<Finding> {
        let circumstances = Circumstances {
            range: self.range,
            tester_limits: self.tester_limits,
            disturbed: !self.disturbed.is_zero(),
        };
        let finding = |goal: &Goal| find(&self.targets(goal), &self.ladder, database, circumstances);
        self.goals.iter().map(finding).collect()
    }

    fn targets(&self, goal: &Goal) -> Vec<Target> {
        goal.targets(&self.ladder, self.limits.max_duration / LONGEST_SHARE)
    }

    /// Why it ended before all goals were reached, if it did.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// The trials that goals need next, each with the loss ratio of its goal.
    fn nominations(&mut self) -> Vec<(f64, Candidate)> {
        let first = Candidate { load: self.range.ceiling, duration: self.first_duration() };
        let Self { selectors, database, ladder, range, goals, .. } = self;
        let Some(selectors) = selectors else {
            return goals.iter().map(|goal| (goal.loss_ratio, first)).collect();
        };
        let nominate = |(goal, selector): (&Goal, &mut Selector)| {
            Some((goal.loss_ratio, selector.nominate(database, ladder, *range)?))
        };
        goals.iter().zip(selectors).filter_map(nominate).collect()
    }

    /// Long enough to count in full for the first target of every goal.
    fn first_duration(&self) -> Duration {
        let durations = self.goals.iter().map(|goal| goal.initial_trial_duration);
        durations.max().unwrap_or_default()
    }

    /// Says each goal where to begin, by what the device forwarded in the first trial. If all more
    /// that is offered is lost, a device that forwards `f` loses the ratio `r` at a load of
    /// `f / (1 − r)`. That is to be the middle of the final interval. All goals' hints are whole
    /// widths apart, so that goals near each other share loads.
    fn begin(&mut self, forwarded_pps: f64) {
        if self.selectors.is_some() {
            return;
        }
        // A device that nothing survives in overload says nothing of where to begin.
        let middle = (self.limits.min_pps * self.limits.max_pps).sqrt();
        let forwarded_pps = if forwarded_pps < self.limits.min_pps { middle } else { forwarded_pps };
        let width = |goal: &Goal| self.ladder.width(goal.relative_width);
        let narrowest = self.goals.iter().map(width).min().unwrap_or(1);
        let anchor = self.ladder.at_or_below(forwarded_pps) - narrowest / 2;
        let selector = |goal: &Goal| {
            let width = width(goal);
            let guess = self.ladder.at_or_below(forwarded_pps / (1.0 - goal.loss_ratio));
            let steps = ((guess - width / 2 - anchor) as f64 / narrowest as f64).round() as i64;
            let lower = (anchor + steps * narrowest).clamp(self.range.floor, self.range.ceiling);
            let upper = (lower + width).min(self.range.ceiling);
            Selector::new(self.targets(goal), Hints { lower: Some(lower), upper: Some(upper) })
        };
        self.selectors = Some(self.goals.iter().map(selector).collect());
    }

    /// Lowers the maximum to what the tester offers, if it fell short at `load` often enough.
    fn fall_short(&mut self, load: Rung, offered_pps: f64) {
        let (_, count, most) = if self.shortfall.0 == load { self.shortfall } else { (load, 0, 0.0) };
        self.shortfall = (load, count + 1, offered_pps.max(most));
        if count + 1 < SHORTFALLS {
            return;
        }
        self.tester_limits = true;
        if load <= self.range.floor {
            self.ended = Some(Ended::Tester);
        } else {
            let offered = self.ladder.at_or_below(self.shortfall.2);
            self.range.ceiling = offered.clamp(self.range.floor, load - 1);
        }
    }
}
