//! The conditions that all strategies measure under: what they share of their parameters.

use std::time::Duration;

use engine::Load;

use crate::outcome::Failure;
use crate::verdict::Judge;

/// The shortest interval: below it, a reading costs more than it tells.
const MIN_STEP: Duration = Duration::from_millis(10);
/// The longest phase.
const MAX_PHASE: Duration = Duration::from_secs(30 * 24 * 3600);
/// The most intervals in one phase: what a record and its report can bear.
const MAX_INTERVALS: u128 = 100_000;

/// Before measuring: a low load that shows whether traffic passes at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmUp {
    /// Frames a second in each direction.
    pub pps: f64,
    /// How long; zero for none.
    pub duration: Duration,
}

/// How a strategy measures, whichever loads it chooses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// What comes before measuring.
    pub warm_up: WarmUp,
    /// The length of one interval of constant load, and so of one sample: at least 10 ms. Phases
    /// are divided into equal intervals of about this length.
    pub step: Duration,
    /// How long to wait for frames on their way, after the warm-up and at the end.
    pub drain: Duration,
    /// More than this share of its frames lost makes a sample lossy; 0 forgives no frame.
    pub loss_threshold: f64,
    /// The line rate (L1) of each direction, in bits a second.
    pub line_rate_bps: f64,
}

impl Conditions {
    /// # Errors
    /// [`Failure::Refused`] when a value is out of its range.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        refuse_unless(self.step >= MIN_STEP, || {
            format!("a step of {:?} is too short to be counted: give at least {MIN_STEP:?}", self.step)
        })?;
        refuse_unless((0.0..1.0).contains(&self.loss_threshold), || {
            format!(
                "a loss threshold of {} is no share of frames: give 0 or more, less than 1",
                self.loss_threshold
            )
        })?;
        check_rate("line rate", "bit/s", self.line_rate_bps)?;
        self.check_phase("drain", self.drain)?;
        self.check_phase("warm-up", self.warm_up.duration)?;
        if self.warm_up.duration.is_zero() {
            Ok(())
        } else {
            check_rate("warm-up load", "pps", self.warm_up.pps)
        }
    }

    /// # Errors
    /// [`Failure::Refused`] when the phase is too long, or has too many intervals.
    pub(crate) fn check_phase(&self, name: &str, duration: Duration) -> Result<(), Failure> {
        refuse_unless(duration <= MAX_PHASE, || {
            format!("a {name} of {duration:?} is too long: give at most 30 days")
        })?;
        let intervals = duration.as_nanos() / self.step.as_nanos().max(1);
        refuse_unless(intervals <= MAX_INTERVALS, || {
            format!(
                "a {name} of {duration:?} in steps of {:?} gives {intervals} samples: give a longer step, for at most {MAX_INTERVALS}",
                self.step
            )
        })
    }

    /// The number of intervals that `duration` is divided into: none for no duration.
    pub(crate) fn intervals(&self, duration: Duration) -> usize {
        if duration.is_zero() {
            return 0;
        }
        let exact = duration.as_secs_f64() / self.step.as_secs_f64().max(MIN_STEP.as_secs_f64());
        (exact.round() as usize).max(1)
    }

    /// `duration` at a constant `load`, interval by interval.
    pub(crate) fn constant(&self, load: Load, duration: Duration) -> Vec<Load> {
        vec![load; self.intervals(duration)]
    }

    /// How long measuring for `duration` takes with all that stands around it.
    pub(crate) fn around(&self, duration: Duration) -> Duration {
        let warm_up = self.warm_up.duration;
        let settle = if warm_up.is_zero() { Duration::ZERO } else { self.drain };
        warm_up.saturating_add(settle).saturating_add(duration).saturating_add(self.drain)
    }

    /// Judges by these conditions a load that was to reach `target_pps`.
    pub(crate) fn judge(&self, target_pps: Option<f64>) -> Judge {
        Judge {
            loss_threshold: self.loss_threshold,
            line_rate_bps: self.line_rate_bps,
            target_pps,
            complete: true,
        }
    }
}

pub(crate) fn check_rate(name: &str, unit: &str, value: f64) -> Result<(), Failure> {
    refuse_unless(value.is_finite() && value > 0.0, || {
        format!("a {name} of {value} {unit} cannot be measured with: give a number above 0")
    })
}

pub(crate) fn refuse_unless(sound: bool, reason: impl FnOnce() -> String) -> Result<(), Failure> {
    if sound { Ok(()) } else { Err(Failure::Refused(reason())) }
}
