//! What comes after each load: nothing is sent, and the frames on their way return.

use std::time::Duration;

use super::{Session, Stop};

/// The share of a drain without a frame after which nothing more is expected, where that is enough …
const QUIET_SHARE: f64 = 0.3;
/// … and how many times as long as the longest latency it must be.
const QUIET_LATENCIES: u32 = 4;
/// The part of a drain, as a divisor, at whose end frames that still return are worth a note.
const LAST: u32 = 10;

impl Session<'_> {
    /// Sends nothing for `duration`, also where nothing is expected: the device is to have that time. Then takes the
    /// final counts of all that was sent.
    pub(crate) fn pause(&mut self, duration: Duration) -> Result<(), Stop> {
        self.begin_drain(duration)?;
        self.end_drain(duration, duration)
    }

    /// Sends nothing until all frames have returned, for `duration` at most; then takes their final counts.
    pub(crate) fn drain(&mut self, duration: Duration) -> Result<(), Stop> {
        let look = duration / 20;
        self.begin_drain(duration)?;
        self.engine.wait(look)?;
        let (mut waited, mut quiet) = (look, Duration::ZERO);
        let mut missing = self.missing()?;
        let (ends_when_quiet, enough) = (self.ends_quiet_drains, self.quiet_enough(duration));
        let is_over = |missing, quiet| missing == 0 || (ends_when_quiet && quiet >= enough);
        while !is_over(missing, quiet) && waited + look + duration / LAST < duration {
            self.engine.wait(look)?;
            waited += look;
            let now = self.missing()?;
            quiet = if now < missing { Duration::ZERO } else { quiet + look };
            missing = now;
        }
        if self.all_left() && is_over(missing, quiet) {
            self.read_totals()?;
            return self.settle(0);
        }
        self.end_drain(duration, duration.saturating_sub(waited))
    }

    /// Ends drains between trials from now on as soon as no frame came for a third of their time, and for
    /// several times as long as any frame took so far.
    pub(crate) fn end_quiet_drains(&mut self) {
        self.ends_quiet_drains = true;
    }

    /// How long no frame must come in a drain of `duration` until none is expected.
    fn quiet_enough(&self, duration: Duration) -> Duration {
        let longest = self.longest_latency().unwrap_or_default();
        duration.mul_f64(QUIET_SHARE).max(longest.saturating_mul(QUIET_LATENCIES))
    }

    fn begin_drain(&mut self, duration: Duration) -> Result<(), Stop> {
        self.idle()?;
        if !self.forsaken {
            self.observer.drain(duration);
        }
        Ok(())
    }

    /// Waits for what is `left` of a drain of `duration`.
    fn end_drain(&mut self, duration: Duration, left: Duration) -> Result<(), Stop> {
        let last = duration / LAST;
        self.engine.wait(left.saturating_sub(last))?;
        self.read_totals()?;
        let before = self.forwarded();
        self.engine.wait(last)?;
        self.read_totals()?;
        if self.forwarded() > before {
            self.note(format!(
                "frames still returned when a drain of {duration:?} ended; what came later counts as lost: lengthen the drain"
            ));
        }
        self.settle(0)
    }

    /// Frames that are missing of what left in the intervals that are not settled.
    fn missing(&mut self) -> Result<u64, Stop> {
        let mut missing = 0;
        for (_, measured) in &self.unsettled {
            let counts = self.engine.counts(measured.interval)?;
            missing += counts.iter().map(|it| it.offered.saturating_sub(it.forwarded)).sum::<u64>();
        }
        Ok(missing)
    }

    /// Whether none of the frames of the intervals that are not settled waits to be sent.
    fn all_left(&self) -> bool {
        self.unsettled.iter().all(|(_, measured)| self.engine.has_left(measured.interval))
    }
}
