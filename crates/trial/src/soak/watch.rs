//! An observer between a session and the one that watches it: everything passes on, and what the
//! device itself counted is read when an interval ends.

use results::record::Sample;

use super::interval::Reading;
use crate::{Observer, ObserverError};

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
    fn next(&mut self) -> Option<&mut dyn Observer> {
        Some(self.observer)
    }

    fn sample(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        self.readings.push(self.observer.ask(|around| around.device_counters()));
        self.observer.sample(sample)
    }
}
