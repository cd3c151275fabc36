//! Who listens to a strategy: progress, samples and findings enter as they come. What the strategy asks meanwhile is
//! answered by [`Surroundings`].

use std::collections::BTreeMap;
use std::time::Duration;

use results::record::{GoalResult, LatencyTest, LoadLatency, Phase, Sample, Trial};

use crate::Surroundings;

/// Why an observer cannot go on, like a full disk.
pub type ObserverError = Box<dyn std::error::Error + Send + Sync>;

/// Hears of a run while it goes on: draws progress, writes the record.
pub trait Observer {
    /// Who else listens: what this observer does not take itself is passed on to that one.
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
    /// lost. [`Observer::settled`] tells of it once more.
    ///
    /// # Errors
    /// An error ends the run; what was measured so far stands.
    fn sample(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        self.next().map_or(Ok(()), |next| next.sample(sample))
    }

    /// All frames of an interval have left and had time to return, as long as any frame took so far; or a second has
    /// passed, or a drain. Each interval is told once, in order. What returns still later is only in the
    /// [`crate::Outcome`].
    ///
    /// # Errors
    /// An error ends the run; what was measured so far stands.
    fn settled(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        self.next().map_or(Ok(()), |next| next.settled(sample))
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

    /// Whom a strategy asks for what is around it; `None` where nobody knows anything.
    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        self.next()?.surroundings()
    }
}

impl dyn Observer + '_ {
    /// The answer of the surroundings to `question`; that of somebody who knows nothing where there are none.
    pub fn ask<T>(&mut self, question: impl FnOnce(&mut dyn Surroundings) -> T) -> T {
        match self.surroundings() {
            Some(surroundings) => question(surroundings),
            None => question(&mut Silent),
        }
    }
}

/// Listens to nothing, and knows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

impl Surroundings for Silent {}
