//! What a trial proves: its sample, and the noise meanwhile, enter; an observation of all directions together and of each
//! leaves. Pure.

use std::time::Duration;

use results::record::{DirectionSample, Sample, Undisturbed};

use super::controller::TrialEnd;
use super::database::Observation;
use super::ladder::Rung;
use super::state::Seen;
use crate::Noise;

/// The most that a trial may offer less than intended, as a share.
const SHORTFALL: f64 = 0.01;

/// Frames that came back in all directions.
pub(crate) fn forwarded(sample: &Sample) -> u64 {
    sample.directions.iter().map(|direction| direction.forwarded).sum()
}

/// All directions as one: rates and frames added up.
pub(super) fn sum(directions: &[DirectionSample]) -> DirectionSample {
    let mut sum = DirectionSample::default();
    for direction in directions {
        sum.intended_pps += direction.intended_pps;
        sum.offered_pps += direction.offered_pps;
        sum.forwarded_pps += direction.forwarded_pps;
        sum.offered += direction.offered;
        sum.forwarded += direction.forwarded;
        sum.unsent += direction.unsent;
    }
    sum.loss_ratio = sum.offered.saturating_sub(sum.forwarded) as f64 / sum.offered.max(1) as f64;
    let undisturbed: Option<Vec<_>> = directions.iter().map(|direction| direction.undisturbed).collect();
    sum.undisturbed = undisturbed.map(|undisturbed| Undisturbed {
        offered: undisturbed.iter().map(|direction| direction.offered).sum(),
        forwarded: undisturbed.iter().map(|direction| direction.forwarded).sum(),
        late_offered: undisturbed.iter().map(|direction| direction.late_offered).sum(),
        late_forwarded: undisturbed.iter().map(|direction| direction.late_forwarded).sum(),
    });
    sum
}

/// A trial, whichever directions it is looked at in.
#[derive(Clone, Copy)]
pub(super) struct TrialAt<'a> {
    pub(super) load: Rung,
    pub(super) pps: f64,
    pub(super) duration: Duration,
    /// How long it really took.
    pub(super) measured_s: f64,
    pub(super) noise: &'a Noise,
}

/// What `trial` saw, of which `sum` is all directions together.
pub(super) fn see(trial: &TrialAt, sample: &Sample, sum: &DirectionSample, fell_short: bool) -> Seen {
    let count = sample.directions.len();
    let share = count.max(1) as f64;
    let (offered_pps, forwarded_pps) = (sum.offered_pps / share, sum.forwarded_pps / share);
    let all = observation(trial, sum, count);
    if fell_short {
        let held_up = trial.noise.cost >= 1.0 - all.offered_share;
        let TrialAt { load, duration, .. } = *trial;
        let lossless = sum.forwarded >= sum.offered;
        let end = TrialEnd::FellShort { load, duration, offered_pps, forwarded_pps, held_up, lossless };
        return Seen { end, directions: Vec::new() };
    }
    let directions = sample.directions.iter().map(|direction| observation(trial, direction, 1)).collect();
    Seen { end: TrialEnd::Sound { observation: all, forwarded_pps }, directions }
}

/// What `trial` saw in `lanes` directions.
pub(super) fn observation(trial: &TrialAt, seen: &DirectionSample, lanes: usize) -> Observation {
    let intended = seen.intended_pps * trial.measured_s;
    // Less than a frame in each direction is rounding.
    let offered = seen.offered as f64 + lanes as f64;
    let offered_share = if intended > 0.0 { (offered / intended).min(1.0) } else { 1.0 };
    let TrialAt { load, pps, duration, noise, .. } = *trial;
    // What passed has passed, and what was not disturbed is the device's, both ways.
    let (loss_ratio, noise) = match seen.undisturbed.map(|undisturbed| undisturbed.loss_ratio()) {
        Some(loss_ratio) => (loss_ratio.min(seen.loss_ratio), noise.lasting),
        None => (seen.loss_ratio, noise.cost),
    };
    let late = seen.undisturbed.and_then(|undisturbed| undisturbed.late_loss_ratio());
    let late_loss_ratio = late.unwrap_or(loss_ratio);
    Observation { load, pps, duration, loss_ratio, late_loss_ratio, offered_share, noise }
}

/// Whether the tester offered too little, by more than a frame.
pub(crate) fn fell_short(measured_s: f64, seen: &DirectionSample) -> bool {
    (seen.offered as f64) < seen.intended_pps * measured_s * (1.0 - SHORTFALL) - 1.0
}
