//! Reset, RFC 2544 section 26.6: how long a reset interrupts forwarding, by the frames lost
//! meanwhile (RFC 6201).

use std::time::Duration;

use engine::Load;
use results::record::{Phase, Reset, Sample};

use super::{Rfc2544, Trials, lost, offered};
use crate::session::Stop;

/// The load before the reset, and at the end, where it shows whether the device came back.
const AROUND: Duration = Duration::from_secs(1);
/// The most that a device loses at the end that has come back: what a busy machine costs is no outage.
const BACK: f64 = 0.5;

impl Rfc2544 {
    pub(super) fn reset_planned(&self) -> Duration {
        // A reset that blocks has as long as it is watched.
        self.timing.reset_watch.saturating_mul(2).saturating_add(2 * AROUND).saturating_add(self.timing.drain)
    }

    /// Resets the device under load. The inner error is why it could not be reset.
    pub(super) fn reset(&self, pps: f64, trials: &mut Trials) -> Result<Result<Reset, String>, Stop> {
        let load = [Load::Rate(pps)];
        let session = &mut *trials.session;
        let known = session.samples().len();
        session.run(Phase::Trial, &load, AROUND)?;
        let reset = session.reset();
        if reset.is_ok() {
            session.run(Phase::Trial, &load, self.timing.reset_watch)?;
            session.run(Phase::Trial, &load, AROUND)?;
        }
        session.drain(trials.drain)?;
        if let Err(reason) = reset {
            return Ok(Err(reason));
        }
        let samples = session.samples().get(known..).unwrap_or_default();
        Ok(Ok(outage(pps, samples, self.timing.reset_watch)))
    }
}

fn outage(load_pps: f64, samples: &[Sample], watched: Duration) -> Reset {
    let lost_frames: u64 = samples.iter().map(lost).sum();
    let offered_frames: u64 = samples.iter().map(offered).sum();
    let duration_s: f64 = samples.iter().map(|sample| sample.duration_s).sum();
    let offered_pps = offered_frames as f64 / duration_s.max(f64::MIN_POSITIVE);
    let at_end = |sample: &Sample| lost(sample) as f64 <= offered(sample) as f64 * BACK;
    Reset {
        load_pps,
        lost: lost_frames,
        outage_s: if offered_frames == 0 { 0.0 } else { lost_frames as f64 / offered_pps },
        watched_s: watched.as_secs_f64(),
        came_back: samples.last().is_some_and(|sample| offered(sample) > 0 && at_end(sample)),
        disturbed: samples.iter().find_map(|sample| sample.disturbed.clone()),
    }
}
