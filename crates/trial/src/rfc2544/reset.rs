//! Reset, RFC 2544 section 26.6 as RFC 6201 updates it: how long a reset interrupts forwarding, by the
//! frames lost meanwhile (RFC 6201 section 1.3), and when the device was back: from then on it lost
//! nothing but what the machine may account for. Frames that the tester's port did not take count like lost
//! ones here: a device that is reset may take its links down.

use std::time::Duration;

use engine::Load;
use results::record::{Phase, Reset, Sample};

use super::{Heard, Rfc2544, Trials};
use crate::sample::{lost, offered, untaken};
use crate::session::Stop;

/// Intervals after the reset.
const STEP: Duration = Duration::from_millis(100);
/// How long a device that is back must lose nothing.
const BACK: Duration = Duration::from_millis(500);

impl Rfc2544 {
    pub(super) fn reset_planned(&self) -> Duration {
        let Self { timing, .. } = self;
        // A reset that blocks has as long as it is watched.
        let after = timing.reset_watch.saturating_mul(2).saturating_add(BACK);
        timing.before_reset.saturating_add(after).saturating_add(timing.pause())
    }

    /// Resets the device under load. The inner error is why it could not be reset.
    pub(super) fn reset(
        &self,
        pps: f64,
        heard: &Heard,
        trials: &mut Trials,
    ) -> Result<Result<Reset, String>, Stop> {
        let watch = self.timing.reset_watch.saturating_add(BACK);
        let intervals = (watch.as_secs_f64() / STEP.as_secs_f64()).round() as usize;
        let session = &mut *trials.session;
        let known = session.samples().len();
        session.run(Phase::Trial, &[Load::Rate(pps)], self.timing.before_reset)?;
        let reset_s = session.elapsed().as_secs_f64();
        let reset = session.reset();
        if reset.is_ok() {
            // It may take longer to be back than a device is waited for else.
            session.bear_stalls();
            session.run(Phase::Trial, &vec![Load::Rate(pps); intervals], watch)?;
        }
        session.pause(trials.timing.pause())?;
        if let Err(reason) = reset {
            return Ok(Err(reason));
        }
        let samples = session.samples().get(known..).unwrap_or_default();
        let mut losses = heard.losses(samples);
        losses.iter_mut().zip(samples).for_each(|(losses, sample)| *losses += untaken(sample));
        let back_s = back(samples, &losses, reset_s);
        Ok(Ok(Reset {
            load_pps: pps,
            lost: samples.iter().map(missing).sum(),
            outage_s: outage_s(samples),
            back_s,
            watched_s: self.timing.reset_watch.as_secs_f64(),
            came_back: back_s.is_some(),
            disturbed: samples.iter().find_map(|sample| sample.disturbed.clone()),
        }))
    }
}

/// How long after the reset the device had lost its last frame, if it lost none for long enough
/// then.
fn back(samples: &[Sample], losses: &[u64], reset_s: f64) -> Option<f64> {
    let end = |sample: &Sample| sample.at_s + sample.duration_s;
    let over = samples.last().map(end)?;
    // Where nothing was sent, nothing shows that the device is back.
    samples.last().filter(|sample| offered(sample) > 0)?;
    let Some(last) = losses.iter().rposition(|lost| *lost > 0) else { return Some(0.0) };
    let last = samples.get(last).map(end)?;
    // An interval may begin late by less than half of itself.
    let is_back = last <= over - BACK.as_secs_f64() + STEP.as_secs_f64() / 2.0;
    is_back.then_some((last - reset_s).max(0.0))
}

/// Frames lost, and those that the port did not take.
fn missing(sample: &Sample) -> u64 {
    lost(sample) + untaken(sample)
}

/// Frames lost over the rate that they were due at.
fn outage_s(samples: &[Sample]) -> f64 {
    let sum = |frames: fn(&Sample) -> u64| samples.iter().map(frames).sum::<u64>() as f64;
    let duration_s: f64 = samples.iter().map(|sample| sample.duration_s).sum();
    let due = sum(offered) + sum(untaken);
    if due > 0.0 { sum(missing) / due * duration_s } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use results::record::DirectionSample;

    use super::*;

    #[test]
    fn what_a_port_could_not_send_while_the_device_had_no_link_is_part_of_the_outage() {
        let sample = |offered, forwarded, untaken: u64| Sample {
            phase: Phase::Trial,
            at_s: 0.0,
            duration_s: 0.1,
            dut_core_busy: None,
            disturbed: None,
            noise: None,
            directions: vec![DirectionSample {
                offered,
                forwarded,
                unsent: untaken,
                untaken: BTreeMap::from([("the interface was down".to_owned(), untaken)]),
                ..DirectionSample::default()
            }],
        };
        let samples = [sample(1_000, 1_000, 0), sample(200, 100, 800), sample(1_000, 1_000, 0)];
        assert_eq!(samples.iter().map(missing).sum::<u64>(), 900);
        assert!((outage_s(&samples) - 0.09).abs() < 1e-9);
    }
}
