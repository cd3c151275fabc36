//! An observer between a session and the one that watches it: everything passes on, and what the
//! machine did in each interval is remembered. Samples enter; the losses among them that are the
//! device's leave.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use engine::Load;
use results::record::{Phase, Sample};

use crate::sample::{lost, offered};
use crate::{Noise, Observer, ObserverError, Surroundings};

/// What was heard of the machine, interval by interval.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// When an interval began, and the cost of all since the machine was asked before, if it was
    /// asked when the interval ended.
    intervals: RefCell<Vec<(f64, Option<f64>)>>,
    /// What it said in the interval that goes on.
    now: Cell<Option<f64>>,
}

impl Heard {
    /// Frames that the device lost in each of `samples`, which follow each other: none where noise
    /// may account for all that was lost since the machine was asked before.
    pub(super) fn losses(&self, samples: &[Sample]) -> Vec<u64> {
        let intervals = self.intervals.borrow();
        let cost = |sample: &Sample| {
            let at = intervals.iter().rposition(|(at_s, _)| at_s.total_cmp(&sample.at_s).is_eq());
            at.and_then(|at| intervals.get(at)?.1)
        };
        device_losses(samples, &samples.iter().map(cost).collect::<Vec<_>>())
    }
}

/// The same, with the cost of the noise where it was asked for.
fn device_losses(samples: &[Sample], costs: &[Option<f64>]) -> Vec<u64> {
    let mut losses = Vec::with_capacity(samples.len());
    let mut stretch: Vec<&Sample> = Vec::new();
    for (number, (sample, cost)) in samples.iter().zip(costs).enumerate() {
        stretch.push(sample);
        if cost.is_none() && number + 1 < samples.len() {
            continue;
        }
        let sum =
            |frames: fn(&Sample) -> u64| stretch.iter().map(|sample| frames(sample)).sum::<u64>() as f64;
        let excused = sum(lost) <= sum(offered) * cost.unwrap_or(0.0);
        losses.extend(stretch.drain(..).map(|sample| if excused { 0 } else { lost(sample) }));
    }
    losses
}

pub(super) struct Hearing<'a> {
    observer: &'a mut dyn Observer,
    heard: &'a Heard,
    /// Whether the next answer is of the time before a phase, which counts for nothing.
    before: bool,
}

impl<'a> Hearing<'a> {
    pub(super) fn new(observer: &'a mut dyn Observer, heard: &'a Heard) -> Self {
        Self { observer, heard, before: false }
    }
}

impl Observer for Hearing<'_> {
    fn next(&mut self) -> Option<&mut dyn Observer> {
        Some(self.observer)
    }

    fn phase(&mut self, phase: Phase, planned: Duration) {
        self.before = true;
        self.observer.phase(phase, planned);
    }

    fn sample(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        self.heard.intervals.borrow_mut().push((sample.at_s, self.heard.now.take()));
        self.observer.sample(sample)
    }

    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Hearing<'_> {
    fn beyond(&mut self) -> Option<&mut dyn Surroundings> {
        self.observer.surroundings()
    }

    fn noise(&mut self, load: Load) -> Noise {
        let noise = self.observer.ask(|around| around.noise(load));
        if !std::mem::take(&mut self.before) {
            self.heard.now.set(Some(noise.cost));
        }
        noise
    }
}

#[cfg(test)]
mod tests {
    use results::record::DirectionSample;

    use super::*;

    /// 1000 frames, so many of them lost.
    fn sample(at_s: f64, lost: u64) -> Sample {
        let direction =
            DirectionSample { offered: 1000, forwarded: 1000 - lost, ..DirectionSample::default() };
        Sample {
            phase: Phase::Trial,
            at_s,
            duration_s: 0.01,
            dut_core_busy: None,
            disturbed: None,
            noise: None,
            directions: vec![direction],
        }
    }

    #[test]
    fn losses_within_the_noise_are_not_the_devices() {
        let samples = [0, 30, 0, 10, 5, 0].map(|lost| sample(0.0, lost));
        // Of the first three the machine may have cost 1 %, of the next two 2 %.
        let costs = [None, None, Some(0.01), None, Some(0.02), None];
        assert_eq!(device_losses(&samples, &costs), [0, 0, 0, 0, 0, 0]);
        let costs = [None, None, Some(0.009), None, Some(0.007), None];
        assert_eq!(device_losses(&samples, &costs), [0, 30, 0, 10, 5, 0]);
        assert_eq!(device_losses(&samples, &[None; 6]), [0, 30, 0, 10, 5, 0]);
    }

    #[test]
    fn what_is_heard_belongs_to_the_interval_that_ends_next() {
        struct Says(f64);
        impl Observer for Says {
            fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
                Some(self)
            }
        }

        impl Surroundings for Says {
            fn noise(&mut self, _load: Load) -> Noise {
                Noise { cost: self.0, ..Noise::default() }
            }
        }
        let heard = Heard::default();
        let mut says = Says(0.5);
        let mut hearing = Hearing::new(&mut says, &heard);
        let samples = [0.0, 0.1, 0.2].map(|at_s| sample(at_s, 100));
        hearing.phase(Phase::Trial, Duration::ZERO);
        hearing.noise(Load::Max);
        hearing.sample(&samples[0]).unwrap();
        hearing.noise(Load::Max);
        hearing.sample(&samples[1]).unwrap();
        hearing.sample(&samples[2]).unwrap();
        assert_eq!(heard.losses(&samples), [0, 0, 100]);
    }
}
