//! What becomes of intervals that have ended: their counts enter as the engine reads them; samples leave, first live, then
//! once their frames had time to return, and final ones after the drain.

use std::time::Duration;

use super::{Open, Session, Stop};
use crate::sample::Measured;

/// Intervals that may wait for their final reading.
const MAX_UNSETTLED: usize = 900;
/// How long an interval waits at most for its frames to leave and return before the observer is told of it as settled.
const LONGEST_WAIT_FOR_FRAMES: Duration = Duration::from_secs(1);
/// How often the totals are read at most; a little less than 100 ms, a usual step.
const TOTALS_EVERY: Duration = Duration::from_millis(90);

impl Session<'_> {
    /// Reads the counts of an interval that ended.
    pub(super) fn close(&mut self, open: Open, ended: Duration) -> Result<(), Stop> {
        let Open { interval, phase, load, began, planned, dut_core_busy, noise, share, lasting } = open;
        let hardly_began = ended.saturating_sub(began) < planned / 10;
        let measured = Measured {
            interval,
            phase,
            load,
            began,
            ended,
            hardly_began,
            dut_core_busy,
            disturbed: noise.disturbed.clone(),
            noise: share,
            lasting,
            counts: self.engine.counts(interval)?,
        };
        let reading = self.readings.len();
        self.unsettled.push_back((reading, measured.clone()));
        self.untold += 1;
        if hardly_began {
            return Ok(());
        }
        self.noise = noise;
        if self.engine.now().saturating_sub(self.totals_read) >= TOTALS_EVERY {
            self.read_totals()?;
        }
        self.show(&measured)?;
        self.tell_of_returned()?;
        self.settle(MAX_UNSETTLED)?;
        let stalled = self.silence.stalled(self.totals_read, &self.totals, planned);
        stalled.map_or(Ok(()), |note| Err(Stop::Stalled(note)))
    }

    /// Hands a live sample to the observer, with the percentiles that were read last.
    fn show(&mut self, measured: &Measured) -> Result<(), Stop> {
        let percentiles = self.readings.last().map(Vec::as_slice).unwrap_or_default();
        let sample = measured.sample(self.started, percentiles);
        self.tell(|observer| observer.sample(&sample))
    }

    /// Tells the observer of intervals whose frames have left and had time to return, but not of the one that ended last.
    /// Before any frame has returned, nobody knows how long that takes.
    fn tell_of_returned(&mut self) -> Result<(), Stop> {
        let return_time = self.longest_latency().unwrap_or(LONGEST_WAIT_FOR_FRAMES);
        while self.untold > 1 {
            let next = self.unsettled.len() - self.untold;
            let Some((reading, measured)) = self.unsettled.get_mut(next) else { break };
            let since = self.engine.now().saturating_sub(measured.ended);
            let is_settled = since >= return_time && self.engine.has_left(measured.interval);
            if !is_settled && since < LONGEST_WAIT_FOR_FRAMES {
                break;
            }
            measured.counts = self.engine.counts(measured.interval)?;
            let reading = self.readings.get(*reading).or(self.readings.last());
            let sample = measured.sample(self.started, reading.map(Vec::as_slice).unwrap_or_default());
            self.untold -= 1;
            self.tell(|observer| observer.settled(&sample))?;
        }
        Ok(())
    }

    /// Reads the final counts of all intervals but the last `keep`. One that hardly began is left out, unless a frame was
    /// due in it: who was held up may have sent many.
    pub(super) fn settle(&mut self, keep: usize) -> Result<(), Stop> {
        let mut told = Ok(());
        while self.unsettled.len() > keep {
            let Some((reading, mut measured)) = self.unsettled.pop_front() else { break };
            match self.engine.counts(measured.interval) {
                Ok(counts) => measured.counts = counts,
                Err(error) => {
                    self.note(format!(
                        "final counts could not be read, samples may show too much loss: {error}"
                    ));
                }
            }
            let was_told = self.untold <= self.unsettled.len();
            self.untold = self.untold.min(self.unsettled.len());
            if measured.hardly_began {
                if measured.is_empty() {
                    continue;
                }
                told = told.and(self.show(&measured));
            }
            let percentiles = self.readings.get(reading).map(Vec::as_slice).unwrap_or_default();
            self.pass.settled(measured.interval, measured.load, measured.lasting);
            let sample = measured.sample(self.started, percentiles);
            if !was_told {
                told = told.and(self.tell(|observer| observer.settled(&sample)));
            }
            self.samples.push(sample);
        }
        told
    }
}
