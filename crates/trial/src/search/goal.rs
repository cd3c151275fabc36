//! What a search is to find: a [`Goal`] enters, the [`Target`]s that lead to it leave. Pure.

use std::time::Duration;

use super::ladder::Ladder;
use crate::Failure;
use crate::conditions::refuse_unless;

/// The shortest trial: below it, a reading costs more than it tells.
const MIN_TRIAL: Duration = Duration::from_millis(10);
/// The longest sum of trials at one load.
const MAX_SUM: Duration = Duration::from_secs(24 * 3600);
/// The narrowest interval: below it, loads differ by less than any tester can offer them apart.
const MIN_WIDTH: f64 = 1e-5;
/// What a card's or a veth's receive ring usually holds.
const RING: u64 = 256;
/// Trials that decide about a load where they are longer than usual: of four, two that passed make a lower
/// bound, and three that lost make an upper one.
const STRETCHED_TRIALS: f64 = 4.0;
/// How many targets precede the goal's own, each twice as wide as the next.
const PRECEDING: i32 = 2;

/// A search goal as draft-ietf-bmwg-mlrsearch-15 defines it (section Goal Terms).
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// What the result is called, like `ndr`.
    pub name: String,
    /// A trial that loses more than this share of its frames is high-loss; 0 forgives no frame.
    pub loss_ratio: f64,
    /// The share of the duration sum that may be high-loss at a lower bound, from 0 to less
    /// than 1.
    pub exceed_ratio: f64,
    /// How far apart the bounds may be in the end: 1 − lower / upper.
    pub relative_width: f64,
    /// How long trials are that only find the way.
    pub initial_trial_duration: Duration,
    /// How long a trial must be to count in full.
    pub final_trial_duration: Duration,
    /// How much trial time decides about a load.
    pub duration_sum: Duration,
    /// Frames that the device may hold. At a low load so many hide an overload for the whole of a short
    /// trial: there all durations are longer, so that they cannot hide half of the width. 0 takes
    /// the durations as they are.
    pub hidden_queue: u64,
}

impl Goal {
    /// A goal of this loss ratio, with the default durations and width.
    ///
    /// Half a second finds overloads of some hundred frames a second behind a queue of as many; at low
    /// rates trials are stretched. Three seconds decide: of six trials, three that a passing disturbance
    /// spoiled are outvoted, and the shorter a trial, the rarer is it spoiled. CSIT's sum of 21 s asks
    /// for seven times as much time, for machines that run one test all night.
    #[must_use]
    pub fn new(name: &str, loss_ratio: f64) -> Self {
        Self {
            name: name.to_owned(),
            loss_ratio,
            exceed_ratio: 0.5,
            relative_width: 0.005,
            initial_trial_duration: Duration::from_millis(250),
            final_trial_duration: Duration::from_millis(500),
            duration_sum: Duration::from_secs(3),
            hidden_queue: RING,
        }
    }

    /// The non-drop rate: no loss.
    #[must_use]
    pub fn ndr() -> Self {
        Self::new("ndr", 0.0)
    }

    /// The partial-drop rate: a loss of at most 0.5 %.
    #[must_use]
    pub fn pdr() -> Self {
        Self::new("pdr", 0.005)
    }

    /// # Errors
    /// [`Failure::Refused`] when no search can reach this goal.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Self { name, initial_trial_duration, final_trial_duration, duration_sum, .. } = self;
        refuse_unless((0.0..1.0).contains(&self.loss_ratio), || {
            format!(
                "goal {name}: a loss ratio of {} is out of range: give 0 or more, less than 1",
                self.loss_ratio
            )
        })?;
        refuse_unless((0.0..1.0).contains(&self.exceed_ratio), || {
            format!(
                "goal {name}: with an exceed ratio of {} every load would pass: give 0 or more, less than 1",
                self.exceed_ratio
            )
        })?;
        refuse_unless((MIN_WIDTH..1.0).contains(&self.relative_width), || {
            format!(
                "goal {name}: no search ends at a width of {}: give at least {MIN_WIDTH}, less than 1",
                self.relative_width
            )
        })?;
        refuse_unless(*initial_trial_duration >= MIN_TRIAL, || {
            format!(
                "goal {name}: trials of {initial_trial_duration:?} are too short: give at least {MIN_TRIAL:?}"
            )
        })?;
        refuse_unless(initial_trial_duration <= final_trial_duration, || {
            format!(
                "goal {name}: the initial trials of {initial_trial_duration:?} are longer than the final ones of {final_trial_duration:?}: swap them"
            )
        })?;
        refuse_unless(final_trial_duration <= duration_sum, || {
            format!(
                "goal {name}: a trial of {final_trial_duration:?} is longer than the sum of {duration_sum:?} that decides: lengthen the sum"
            )
        })?;
        refuse_unless(*duration_sum <= MAX_SUM, || {
            format!("goal {name}: a sum of {duration_sum:?} is too long: give at most 24 hours")
        })
    }

    /// The targets in the order they are reached in, the last one the goal's own. Those before
    /// need less trial time at a load (a geometric series from one initial trial to the whole
    /// sum) and stop at wider intervals: so that long trials are spent near the result only.
    /// No trial becomes longer than `longest` because its load is low.
    pub(crate) fn targets(&self, ladder: &Ladder, longest: Duration) -> Vec<Target> {
        let width = ladder.width(self.relative_width);
        let sum = self.duration_sum.as_secs_f64();
        let growth = (self.initial_trial_duration.as_secs_f64() / sum).powf(1.0 / f64::from(PRECEDING));
        let target = |before: i32| {
            let duration_sum = match before {
                0 => self.duration_sum,
                PRECEDING => self.initial_trial_duration,
                _ => Duration::from_secs_f64(sum * growth.powi(before)),
            };
            let trial_duration = duration_sum.min(self.final_trial_duration);
            let share = trial_duration.as_secs_f64() / self.final_trial_duration.as_secs_f64();
            Target {
                loss_ratio: self.loss_ratio,
                exceed_ratio: self.exceed_ratio,
                width: width << before,
                trial_duration,
                duration_sum,
                frames: share * self.hidden_queue as f64 / (self.relative_width / 2.0),
                longest: longest.max(trial_duration),
            }
        };
        (0..=PRECEDING).rev().map(target).collect()
    }
}

/// A goal, or a step on the way to one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Target {
    pub(crate) loss_ratio: f64,
    pub(crate) exceed_ratio: f64,
    /// In rungs of the ladder.
    pub(crate) width: i64,
    pub(crate) trial_duration: Duration,
    pub(crate) duration_sum: Duration,
    /// So many frames a trial must offer at least.
    pub(crate) frames: f64,
    /// But it is not made longer than this.
    pub(crate) longest: Duration,
}

impl Target {
    /// Whether a trial at `pps` is longer than usual, so that few of them decide.
    pub(crate) fn is_stretched(&self, pps: f64) -> bool {
        self.durations(pps).0 > self.trial_duration
    }

    /// How long a trial at `pps` must be to count in full, and how much trial time decides there:
    /// four trials where they are longer than usual.
    pub(crate) fn durations(&self, pps: f64) -> (Duration, Duration) {
        let needed = Duration::try_from_secs_f64(self.frames / pps).unwrap_or(self.longest);
        let trial = needed.clamp(self.trial_duration, self.longest);
        let usual = self.duration_sum.as_secs_f64() / self.trial_duration.as_secs_f64();
        (trial, self.duration_sum.max(trial.mul_f64(usual.min(STRETCHED_TRIALS))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_hides_an_overload_at_low_rates_unless_trials_are_long() {
        let ladder = Ladder::new(1.0, 1e7, 0.005);
        let seconds = |trial: f64, sum: f64| (Duration::from_secs_f64(trial), Duration::from_secs_f64(sum));
        let durations = |goal: &Goal, pps: f64| {
            let targets = goal.targets(&ladder, Duration::from_secs(5));
            [targets[0].durations(pps), targets[2].durations(pps)]
        };
        assert_eq!(durations(&Goal::ndr(), 1e6), [seconds(0.25, 0.25), seconds(0.5, 3.0)]);
        // 256 frames are 0.25 % of 25,600 a second for 4 s.
        assert_eq!(durations(&Goal::ndr(), 25_600.0), [seconds(2.0, 2.0), seconds(4.0, 16.0)]);
        assert_eq!(durations(&Goal::ndr(), 1.0), [seconds(5.0, 5.0), seconds(5.0, 20.0)]);
        let exact = Goal { hidden_queue: 0, ..Goal::ndr() };
        assert_eq!(durations(&exact, 1.0), [seconds(0.25, 0.25), seconds(0.5, 3.0)]);
    }
}
