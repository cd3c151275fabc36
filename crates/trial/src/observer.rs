//! Who watches a strategy: progress and samples enter as they come; the use of the DUT's core,
//! and what the machine did beside it, leave.

use std::collections::BTreeMap;
use std::time::Duration;

use results::record::{
    DeviceCounted, GoalResult, LatencyTest, LoadLatency, NodeRuntimes, Phase, Sample, Trial,
};

use crate::{Bursts, Noise};

/// Why an observer cannot go on, like a full disk.
pub type ObserverError = Box<dyn std::error::Error + Send + Sync>;

/// Sees a run while it goes on: draws progress, writes the record.
pub trait Observer {
    /// Who else watches: what this observer does not answer itself is passed on to that one.
    fn next(&mut self) -> Option<&mut dyn Observer> {
        None
    }

    /// A phase begins that is planned to take `planned`.
    fn phase(&mut self, phase: Phase, planned: Duration) {
        if let Some(next) = self.next() {
            next.phase(phase, planned);
        }
    }

    /// The load is off for `planned`, so that frames on their way can return.
    fn drain(&mut self, planned: Duration) {
        if let Some(next) = self.next() {
            next.drain(planned);
        }
    }

    /// An interval ended. Its counts are preliminary: frames that have not returned yet count as
    /// lost. The [`crate::Outcome`] holds the final ones.
    ///
    /// # Errors
    /// An error ends the run; what was measured so far stands.
    fn sample(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        self.next().map_or(Ok(()), |next| next.sample(sample))
    }

    /// A trial of a search ended, with final counts; `results` is what is found so far, by goal,
    /// all directions added up.
    ///
    /// # Errors
    /// An error ends the run; what was measured so far stands.
    fn trial(&mut self, trial: &Trial, results: &BTreeMap<String, GoalResult>) -> Result<(), ObserverError> {
        self.next().map_or(Ok(()), |next| next.trial(trial, results))
    }

    /// The latency at one load is measured, with final counts; `test` is what was found before it.
    ///
    /// # Errors
    /// An error ends the run; what was measured so far stands.
    fn latency(&mut self, test: &LatencyTest, measured: &LoadLatency) -> Result<(), ObserverError> {
        self.next().map_or(Ok(()), |next| next.latency(test, measured))
    }

    /// What the machine did since the last call beside the measurement. Asked at the beginning of
    /// each phase and of each trial of a search, where the answer is not used, and at the end of
    /// each interval; but of intervals that are shorter than 90 ms, only at the end of some.
    fn noise(&mut self) -> Noise {
        self.next().map(Observer::noise).unwrap_or_default()
    }

    /// Resets the device, as RFC 2544 section 26.6 asks for. Returns once that is under way.
    ///
    /// # Errors
    /// Why it cannot be reset, with the remedy.
    fn reset(&mut self) -> Result<(), String> {
        let unknown = || Err("Linerate does not know how to reset this device".into());
        self.next().map_or_else(unknown, Observer::reset)
    }

    /// What the device itself has counted since it was started, one for each direction, where it
    /// counts. Asked in a soak when an interval ends.
    fn device_counters(&mut self) -> Option<Vec<DeviceCounted>> {
        self.next()?.device_counters()
    }

    /// Frames of all directions that a reference device has lost by its rules since it was started;
    /// `None` of any other device. Asked before and after each trial of a search: what else was lost found
    /// a queue full, because the machine kept its core or the tester's from working.
    fn lost_by_rules(&mut self) -> Option<u64> {
        self.next()?.lost_by_rules()
    }

    /// How frames came at the device since it was started, both directions together; `None` of one that does
    /// not know. Asked before and after each trial of a search.
    fn bursts(&mut self) -> Option<Bursts> {
        self.next()?.bursts()
    }

    /// What the nodes of the device have done since it started, where it is a graph of them.
    fn nodes(&mut self) -> Option<NodeRuntimes> {
        self.next()?.nodes()
    }

    /// The load that a person wants in each direction in place of `pps`, in frames a second; 0 is a pause. Asked before
    /// each interval of a load that can be steered.
    fn steer(&mut self, pps: f64) -> f64 {
        self.next().map_or(pps, |next| next.steer(pps))
    }

    /// How busy the DUT's core was since the last call, 0 to 1, where that is known. Asked at
    /// the beginning of each phase, where the answer is not used, and at the end of each
    /// interval.
    fn dut_core_busy(&mut self) -> Option<f64> {
        self.next()?.dut_core_busy()
    }
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}
