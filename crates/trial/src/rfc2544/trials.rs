//! What the tests make trials with: a load and a duration enter; what was seen leaves, with the
//! share of it that the machine may account for. Between trials the device has its rest.

use std::time::Duration;

use engine::Load;
use results::record::{Phase, Sample};

use super::{RETRIES, Timing};
use crate::Noise;
use crate::sample::{lost, offered};
use crate::search::{Search, fell_short, forwarded};
use crate::session::{Session, Stop};

/// When a trial is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// When the machine may account for its loss, or for what the tester did not send.
    IfUnclear,
    /// When the machine disturbed it at all.
    IfDisturbed,
}

/// What the tests make trials with.
pub(super) struct Trials<'s, 'a> {
    pub(super) session: &'s mut Session<'a>,
    pub(super) timing: Timing,
    /// Finds out whether a device of which nothing comes back forwards at all.
    pub(super) prober: Search,
    /// The time left to repeat what was disturbed.
    pub(super) budget: Duration,
}

impl Trials<'_, '_> {
    /// One trial, repeated while it must be and can be.
    pub(super) fn trial(&mut self, load: Load, duration: Duration, repeat: Repeat) -> Result<Seen, Stop> {
        let mut tried = 0;
        loop {
            let (sample, noise) = self.session.trial_of(Phase::Trial, load, duration, self.timing.drain)?;
            self.probe(&sample, noise.cost)?;
            rest(self.session, &sample, &self.timing)?;
            let seen = Seen { sample, noise };
            let matters = repeat == Repeat::IfDisturbed || seen.fell_short();
            let again = seen.is_unclear() || matters && seen.noise.disturbed.is_some();
            tried += 1;
            if !again || tried > RETRIES || !self.may_repeat(duration) {
                return Ok(seen);
            }
        }
    }

    /// Ends the run where the device forwarded nothing in `sample` and does not at the lowest load
    /// either, if there is time to find out.
    pub(super) fn probe(&mut self, sample: &Sample, noise_cost: f64) -> Result<(), Stop> {
        let silent = offered(sample) > 0 && forwarded(sample) == 0 && noise_cost < 1.0;
        if !silent || !self.may_repeat(self.prober.probing()) {
            return Ok(());
        }
        self.prober.probe(self.session)
    }

    /// Takes the time of another trial of `duration` out of the budget, if it has as much.
    pub(super) fn may_repeat(&mut self, duration: Duration) -> bool {
        let left = self.budget.checked_sub(duration + self.timing.pause());
        self.budget = left.unwrap_or(self.budget);
        left.is_some()
    }
}

/// What one trial saw.
pub(super) struct Seen {
    pub(super) sample: Sample,
    noise: Noise,
}

impl Seen {
    pub(super) fn lost(&self) -> u64 {
        lost(&self.sample)
    }

    pub(super) fn loss_ratio(&self) -> f64 {
        self.lost() as f64 / offered(&self.sample).max(1) as f64
    }

    /// Whether the machine may account for its loss.
    pub(super) fn is_unclear(&self) -> bool {
        self.lost() > 0 && self.loss_ratio() <= self.noise.cost
    }

    /// What the tester sent, the mean of the directions.
    pub(super) fn offered_pps(&self) -> f64 {
        let directions = &self.sample.directions;
        directions.iter().map(|direction| direction.offered_pps).sum::<f64>() / directions.len().max(1) as f64
    }

    pub(super) fn fell_short(&self) -> bool {
        falls_short(&self.sample)
    }

    /// What disturbed it, in words.
    pub(super) fn disturbed(&self) -> Option<String> {
        let unclear = || self.is_unclear().then(|| "the machine may account for the loss".to_owned());
        self.noise.disturbed.clone().or_else(unclear)
    }
}

/// Whether the tester offered less than intended in any direction.
pub(super) fn falls_short(sample: &Sample) -> bool {
    sample.directions.iter().any(|direction| fell_short(sample.duration_s, direction))
}

/// Waits until the time that a device is to have between trials is over since `sample` ended. In a
/// quick run the trials follow each other as soon as all frames have returned.
pub(super) fn rest(session: &mut Session, sample: &Sample, timing: &Timing) -> Result<(), Stop> {
    if timing.settle.is_zero() {
        return Ok(());
    }
    let ended = Duration::from_secs_f64(sample.at_s + sample.duration_s);
    match (ended + timing.pause()).saturating_sub(session.elapsed()) {
        Duration::ZERO => Ok(()),
        left => session.pause(left),
    }
}
