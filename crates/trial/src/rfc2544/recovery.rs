//! System recovery, RFC 2544 section 26.5: how long losses outlast an overload. What the machine may
//! account for is no loss of the device.

use std::time::Duration;

use engine::Load;
use results::record::{Phase, Recovery, RecoveryRepeat, Sample};

use super::{Heard, Rfc2544, Trials, falls_short, mean};
use crate::sample::{lost, offered};
use crate::session::Stop;

/// The overload, as a multiple of the throughput.
const OVERLOAD: f64 = 1.1;
/// The load after it, as a share of the overload.
const REDUCED: f64 = 0.5;
/// Intervals of the first second after the overload, and of what follows.
const FINE: Duration = Duration::from_millis(10);
const COARSE: Duration = Duration::from_millis(100);
/// How long intervals are fine.
const FINE_FOR: Duration = Duration::from_secs(1);

impl Rfc2544 {
    pub(super) fn recovery_planned(&self) -> Duration {
        self.one_recovery().saturating_add(self.timing.pause()).saturating_mul(self.timing.overloads)
    }

    fn one_recovery(&self) -> Duration {
        self.timing.overload.saturating_add(self.timing.recovery_watch)
    }

    /// What is measured stands in `found` even when the run ends before the last repeat.
    pub(super) fn recovery(
        &self,
        throughput_pps: f64,
        heard: &Heard,
        trials: &mut Trials,
        found: &mut Option<Recovery>,
    ) -> Result<(), Stop> {
        let overload_pps = (throughput_pps * OVERLOAD).min(self.theoretical_pps());
        let reduced_pps = overload_pps * REDUCED;
        for _ in 0..self.timing.overloads {
            let mut samples = self.overload(overload_pps, reduced_pps, trials)?;
            if disturbance(&samples).is_some() && trials.may_repeat(self.one_recovery()) {
                samples = self.overload(overload_pps, reduced_pps, trials)?;
            }
            if let Some(last) = samples.last() {
                trials.probe(last, 0.0)?;
            }
            let middle = f64::midpoint(overload_pps, reduced_pps);
            let end = samples.iter().position(|sample| intended_pps(sample) < middle);
            let (before, after) = samples.split_at_checked(end.unwrap_or(samples.len())).unwrap_or_default();
            let found = found.get_or_insert_with(|| Recovery {
                overload_pps,
                overload_s: self.timing.overload.as_secs_f64(),
                reduced_pps,
                watched_s: self.timing.recovery_watch.as_secs_f64(),
                tester_limited: false,
                repeats: Vec::new(),
                average_s: None,
            });
            found.tester_limited |= before.iter().any(falls_short);
            found
                .repeats
                .push(RecoveryRepeat { disturbed: disturbance(&samples), ..repeat(before, after, heard) });
            let times: Vec<f64> = found.repeats.iter().filter_map(|repeat| repeat.recovery_s).collect();
            found.average_s = (!times.is_empty()).then(|| mean(&times));
        }
        Ok(())
    }

    /// Overloads, reduces the load without a pause, and returns the samples of both.
    fn overload(
        &self,
        overload_pps: f64,
        reduced_pps: f64,
        trials: &mut Trials,
    ) -> Result<Vec<Sample>, Stop> {
        let session = &mut *trials.session;
        let known = session.samples().len();
        session.run(Phase::Trial, &[Load::Rate(overload_pps)], self.timing.overload)?;
        let fine = self.timing.recovery_watch.min(FINE_FOR);
        for (duration, step) in [(fine, FINE), (self.timing.recovery_watch.saturating_sub(fine), COARSE)] {
            let intervals = (duration.as_secs_f64() / step.as_secs_f64()).round() as usize;
            session.run(Phase::Trial, &vec![Load::Rate(reduced_pps); intervals], duration)?;
        }
        session.pause(trials.timing.pause())?;
        Ok(session.samples().get(known..).unwrap_or_default().to_vec())
    }
}

fn intended_pps(sample: &Sample) -> f64 {
    sample.directions.first().map_or(0.0, |direction| direction.intended_pps)
}

fn disturbance(samples: &[Sample]) -> Option<String> {
    samples.iter().find_map(|sample| sample.disturbed.clone())
}

/// When the device lost the last frame, by the samples before and after the end of the overload.
fn repeat(before: &[Sample], after: &[Sample], heard: &Heard) -> RecoveryRepeat {
    let sum = |samples: &[Sample], frames: fn(&Sample) -> u64| samples.iter().map(frames).sum::<u64>();
    let end = after.first().map_or(0.0, |sample| sample.at_s);
    let last = heard.losses(after).iter().rposition(|lost| *lost > 0);
    let (recovery_s, resolution_s) = match last.and_then(|last| Some((last, after.get(last)?))) {
        None => (Some(0.0), FINE.as_secs_f64()),
        Some((last, sample)) => {
            let recovered = last + 1 < after.len();
            (recovered.then_some(sample.at_s + sample.duration_s - end), sample.duration_s)
        }
    };
    RecoveryRepeat {
        recovery_s: recovery_s.filter(|_| !after.is_empty()),
        resolution_s,
        overload_loss_ratio: sum(before, lost) as f64 / sum(before, offered).max(1) as f64,
        lost_after: sum(after, lost),
        disturbed: None,
    }
}
