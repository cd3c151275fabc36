//! What samples of one pass show of the device itself: the intervals that other activity on the host
//! affected and its interruptions enter; what became of the frames of their undisturbed milliseconds is
//! added to the samples. Done after the last drain: looking earlier would disturb the tester.

use engine::{Interval, Load};
use results::record::Sample;

use super::{Session, Stop};
use crate::Interruption;
use crate::undisturbed::undisturbed;

/// What is kept of a pass for that.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// The interval and the load of each sample, and whether the noise in it lasted: milliseconds without an
    /// interruption are not free of that.
    intervals: Vec<(Interval, Load, bool)>,
    /// Absent when they were not known all the time.
    interruptions: Option<Vec<Interruption>>,
}

impl Pass {
    /// A sample was settled.
    pub(super) fn settled(&mut self, interval: Interval, load: Load, lasting: bool) {
        self.intervals.push((interval, load, lasting));
    }

    /// A phase begins.
    pub(super) fn begin(&mut self) {
        self.interruptions = Some(Vec::new());
    }

    /// The host was asked what it did.
    pub(super) fn heard(&mut self, interruptions: Option<&[Interruption]>) {
        match (&mut self.interruptions, interruptions) {
            (Some(all), Some(new)) => all.extend_from_slice(new),
            (all, _) => *all = None,
        }
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
                timeline.bins.truncate(whole_bins(sample, timeline.bin_ns));
                if let Some(direction) = sample.directions.get_mut(way) {
                    direction.undisturbed = undisturbed(&timeline, *pps, &interruptions);
                }
            }
        }
        Ok(())
    }
}

/// The bins that are wholly in a sample: the last one may hold frames of the next.
fn whole_bins(sample: &Sample, bin_ns: u64) -> usize {
    ((sample.duration_s * 1e9) as u64 / bin_ns.max(1)) as usize
}
