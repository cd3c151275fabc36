//! What samples of one pass show of the device itself: the intervals that other activity on the host
//! affected and its interruptions enter; what became of the frames of their undisturbed milliseconds is
//! added to the samples. Done after the last drain: looking earlier would disturb the tester.

use std::ops::RangeInclusive;

use engine::{Interval, Load, Timeline};
use results::record::Sample;

use super::{Session, Stop};
use crate::Interruption;
use crate::undisturbed::{interrupted_share, undisturbed};

/// The bins at the beginning of a sample that may hold frames of the one before.
const FIRST_BINS: usize = 2;

/// Interruptions that are kept at most, the last ones, in 5 MB: a soak goes on for days.
const KEPT: usize = 200_000;

/// What is kept of a pass for that.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// The interval and the load of each sample, and whether the noise in it lasted: milliseconds without an
    /// interruption are not free of that.
    intervals: Vec<(Interval, Load, bool)>,
    /// Absent when they were not known all the time.
    interruptions: Option<Vec<Interruption>>,
    /// When the last of those ended that are not kept any more, on the clock of [`Timeline`].
    forgotten_until_ns: u64,
}

impl Pass {
    /// A sample was settled.
    pub(super) fn settled(&mut self, interval: Interval, load: Load, lasting: bool) {
        self.intervals.push((interval, load, lasting));
    }

    /// A phase begins.
    pub(super) fn begin(&mut self) {
        (self.interruptions, self.forgotten_until_ns) = (Some(Vec::new()), 0);
    }

    /// The host was asked what it did.
    pub(super) fn heard(&mut self, interruptions: Option<&[Interruption]>) {
        match (&mut self.interruptions, interruptions) {
            (Some(all), Some(new)) => {
                all.extend_from_slice(new);
                if all.len() > KEPT {
                    let forgotten = all.drain(..all.len() - KEPT / 2).map(|it| it.end_ns).max();
                    self.forgotten_until_ns = forgotten.unwrap_or_default().max(self.forgotten_until_ns);
                }
            }
            (all, _) => *all = None,
        }
    }

    /// Whether all interruptions since the beginning of `timeline` are kept.
    fn remembers(&self, timeline: &Timeline) -> bool {
        timeline.start_ns >= self.forgotten_until_ns
    }
}

impl Session<'_> {
    /// Adds to affected samples what became of the frames that left while nothing was interrupted, as far
    /// back as the engine knows that.
    pub(crate) fn judge_interrupted(&mut self) -> Result<(), Stop> {
        let Some(interruptions) = self.pass.interruptions.take() else { return Ok(()) };
        for (sample, (interval, load, lasting)) in self.samples.iter_mut().zip(&self.pass.intervals) {
            let (Some(_), Load::Rate(pps), false) = (&sample.disturbed, load, lasting) else { continue };
            let Some(timelines) = self.engine.timeline(*interval)? else { continue };
            for (mut timeline, way) in timelines.into_iter().zip(0..) {
                if !self.pass.remembers(&timeline) {
                    continue;
                }
                within(sample, &mut timeline);
                if let Some(direction) = sample.directions.get_mut(way) {
                    let clean = undisturbed(&timeline, *pps, &interruptions);
                    // Else frames of a neighbour are among them.
                    direction.undisturbed = clean.filter(|clean| clean.offered <= direction.offered);
                }
            }
        }
        Ok(())
    }

    /// The share of the time of the samples at `places` in which something was interrupted, 0 to 1; `None` where that is
    /// not known, or not any more.
    pub(crate) fn interrupted_share(&mut self, places: RangeInclusive<usize>) -> Result<Option<f64>, Stop> {
        let (Some(interruptions), Some((interval, ..))) =
            (&self.pass.interruptions, self.pass.intervals.get(*places.start()))
        else {
            return Ok(None);
        };
        let timelines = self.engine.timeline(*interval)?.unwrap_or_default();
        let silent_s: f64 = self.samples.get(places).unwrap_or_default().iter().map(|it| it.duration_s).sum();
        let first = timelines.first().filter(|first| self.pass.remembers(first));
        Ok(first.map(|first| {
            let until_ns = first.start_ns + (silent_s * 1e9) as u64;
            interrupted_share(first.start_ns..until_ns, interruptions)
        }))
    }
}

/// Leaves only bins that are wholly in `sample`, whose beginning the timeline has: the first ones may hold
/// frames of the sample before, since a worker needs a moment to take the new load, and later ones are of the next.
fn within(sample: &Sample, timeline: &mut Timeline) {
    let whole = ((sample.duration_s * 1e9) as u64 / timeline.bin_ns.max(1)) as usize;
    timeline.bins.truncate(whole);
    timeline.bins.drain(..FIRST_BINS.min(timeline.bins.len()));
    timeline.start_ns += FIRST_BINS as u64 * timeline.bin_ns;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_interruptions_the_last_are_kept_and_the_pass_says_since_when() {
        let mut pass = Pass::default();
        pass.begin();
        let interruptions = |from: u64| -> Vec<_> {
            let one = |start_ns| Interruption { start_ns, end_ns: start_ns + 3, taken_ns: 3 };
            (from..from + KEPT as u64 / 2).map(one).collect()
        };
        let timeline = |start_ns| Timeline { start_ns, bin_ns: 1, bins: Vec::new() };
        let half = KEPT as u64 / 2;
        for number in 0..2 {
            pass.heard(Some(&interruptions(number * half)));
        }
        assert!(pass.remembers(&timeline(0)));
        pass.heard(Some(&interruptions(2 * half)));
        // Those of the first two thirds are gone; the last of them ended here.
        assert_eq!(pass.interruptions.as_ref().map(Vec::len), Some(KEPT / 2));
        assert!(pass.remembers(&timeline(2 * half + 2)) && !pass.remembers(&timeline(2 * half + 1)));
        pass.begin();
        assert!(pass.remembers(&timeline(0)));
    }
}
