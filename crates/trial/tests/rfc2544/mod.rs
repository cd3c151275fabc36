//! The tests of RFC 2544 find what simulated devices truly do, and end in time whatever they do.

mod conformance;
mod failures;
mod findings;

use engine::simulated::{Device, SimulatedEngine, Tester};
use engine::{Engine, Load};
use results::record::{self, Sample};
use trial::rfc2544::{Rfc2544, Test, Timing};
use trial::{Noise, Observer, ObserverError, Outcome, Silent, Strategy as _, Surroundings};

/// 1 Gb/s in frames of 64 bytes.
const LINE_PPS: f64 = 1_488_095.24;

fn tests(tests: &[Test]) -> Rfc2544 {
    Rfc2544 {
        tests: tests.iter().copied().collect(),
        timing: Timing::quick(),
        frame_size: 64.0,
        line_rate_bps: 1e9,
        min_pps: 1_000.0,
        deviations: Vec::new(),
    }
}

fn all() -> Rfc2544 {
    tests(&Test::ALL)
}

fn run_with(tests: &Rfc2544, device: Device, tester: Tester, observer: &mut dyn Observer) -> Outcome {
    let mut engine = SimulatedEngine::new(device, tester);
    let outcome = tests.run(&mut engine, observer);
    assert!(engine.now() <= tests.planned(), "{:?}, not {:?}", engine.now(), tests.planned());
    let found = outcome.finding.rfc2544().unwrap();
    for test in &tests.tests {
        assert!(found.has(test.name()) || found.not_run.contains_key(test.name()), "{test} left nothing");
    }
    outcome
}

fn run(tests: &Rfc2544, device: Device) -> Outcome {
    run_with(tests, device, Tester::default(), &mut Silent)
}

fn found(outcome: &Outcome) -> &record::Rfc2544 {
    outcome.finding.rfc2544().unwrap()
}

/// Resets the device by doing nothing: what happens is in the device's disturbances.
struct Resets(pub bool);

impl Observer for Resets {
    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Resets {
    fn reset(&mut self) -> Result<(), String> {
        self.0 = true;
        Ok(())
    }
}

/// A machine that may cost this share of all frames from some time on. It resets the device too.
struct Noisy {
    cost: f64,
    from_s: f64,
    now_s: f64,
}

impl Noisy {
    pub fn new(cost: f64, from_s: f64) -> Self {
        Self { cost, from_s, now_s: 0.0 }
    }
}

impl Observer for Noisy {
    fn sample(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        self.now_s = sample.at_s + sample.duration_s;
        Ok(())
    }

    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Noisy {
    fn noise(&mut self, _load: Load) -> Noise {
        if self.now_s < self.from_s {
            return Noise::default();
        }
        // What is not remarkable is not repeated.
        Noise { cost: self.cost, ..Noise::default() }
    }

    fn reset(&mut self) -> Result<(), String> {
        Ok(())
    }
}
