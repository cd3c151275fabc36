//! An observer between a session and the one that watches it: everything passes on, and what the
//! device itself counted is read when an interval ends.

use std::collections::BTreeMap;
use std::time::Duration;

use results::record::{GoalResult, Phase, Sample, Trial};

use super::interval::Reading;
use crate::{Noise, Observer, ObserverError};

pub(crate) struct Watch<'a> {
    observer: &'a mut dyn Observer,
    /// One for each sample, in the same order.
    readings: Vec<Reading>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(observer: &'a mut dyn Observer) -> Self {
        Self { observer, readings: Vec::new() }
    }

    pub(crate) fn into_readings(self) -> Vec<Reading> {
        self.readings
    }
}

impl Observer for Watch<'_> {
    fn phase(&mut self, phase: Phase, planned: Duration) {
        self.observer.phase(phase, planned);
    }

    fn drain(&mut self, planned: Duration) {
        self.observer.drain(planned);
    }

    fn sample(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        self.readings.push(self.observer.device_counters());
        self.observer.sample(sample)
    }

    fn trial(&mut self, trial: &Trial, results: &BTreeMap<String, GoalResult>) -> Result<(), ObserverError> {
        self.observer.trial(trial, results)
    }

    fn noise(&mut self) -> Noise {
        self.observer.noise()
    }

    fn reset(&mut self) -> Result<(), String> {
        self.observer.reset()
    }

    fn dut_core_busy(&mut self) -> Option<f64> {
        self.observer.dut_core_busy()
    }
}
