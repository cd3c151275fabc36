//! Saturation of a simulated device shows what it forwards under full load.

use std::time::Duration;

use crate::common::{SECOND, check, conditions, device, ramp};
use engine::simulated::{Device, SimulatedEngine, Tester};
use engine::{Engine, Load};
use results::record::{LimitedBy, Phase, Status};
use trial::{Failure, Noise, Observer, Outcome, Ramp, Saturate, Silent, Strategy as _, Surroundings};

fn saturate(load: Load, device: Device, tester: Tester) -> Outcome {
    let strategy = Saturate { conditions: conditions(), load, duration: 5 * SECOND };
    let mut engine = SimulatedEngine::new(device, tester);
    let outcome = strategy.run(&mut engine, &mut Silent);
    check(&outcome, &engine, 0.001);
    assert!(engine.now() <= strategy.planned());
    outcome
}

#[test]
fn what_emerges_is_the_capacity() {
    for load in [Load::Max, Load::Rate(1_488_095.0)] {
        let outcome = saturate(load, device(623_000.0), Tester { max_pps: 2e6, ..Tester::default() });
        let found = &outcome.directions[0];
        assert!((found.max_forwarded_pps / 623_000.0 - 1.0).abs() < 0.001, "{found:?}");
        assert_eq!((found.max_rate_pps, found.limited_by), (0.0, LimitedBy::Dut));
        assert_eq!(outcome.status, Status::Complete);
        assert_eq!(outcome.samples.iter().filter(|sample| sample.phase == Phase::Hold).count(), 50);
    }
}

#[test]
fn a_device_that_bears_all_is_limited_by_line_or_tester() {
    let tester = |max_pps| Tester { max_pps, ..Tester::default() };
    let limit = |load, tester| saturate(load, Device::default(), tester).directions[0].limited_by;
    assert_eq!(limit(Load::Max, tester(1_488_095.0)), LimitedBy::LineRate);
    assert_eq!(limit(Load::Max, tester(1e6)), LimitedBy::Tester);
    assert_eq!(limit(Load::Rate(1.4e6), tester(2e6)), LimitedBy::LineRate);
    assert_eq!(limit(Load::Rate(1.4e6), tester(1e6)), LimitedBy::Tester);
}

#[test]
fn no_load_and_no_time_are_refused() {
    let strategies = [
        Saturate { conditions: conditions(), load: Load::Idle, duration: SECOND },
        Saturate { conditions: conditions(), load: Load::Max, duration: Duration::ZERO },
        Saturate { conditions: conditions(), load: Load::Rate(-1.0), duration: SECOND },
    ];
    for strategy in strategies {
        let mut engine = SimulatedEngine::new(Device::default(), Tester::default());
        let outcome = strategy.run(&mut engine, &mut Silent);
        assert!(matches!(outcome.failure, Some(Failure::Refused(_))), "{outcome:?}");
    }
}

/// Says that all of the machine is another one, so many times it is asked after the warm-up began.
struct Elsewhere(usize);

impl Observer for Elsewhere {
    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Elsewhere {
    fn noise(&mut self, _load: Load) -> Noise {
        self.0 = self.0.saturating_sub(1);
        let lasting = if self.0 > 0 { 1.0 } else { 0.0 };
        Noise { cost: lasting, lasting, disturbed: Some("far cores".to_owned()), ..Noise::default() }
    }
}

#[test]
fn it_begins_when_the_machine_is_what_it_was_and_waits_no_longer_than_it_takes() {
    let saturate = Saturate { conditions: conditions(), load: Load::Max, duration: 5 * SECOND };
    let began = |noisy: usize| {
        let mut engine = SimulatedEngine::new(device(623_000.0), Tester::default());
        let outcome = saturate.run(&mut engine, &mut Elsewhere(noisy));
        let hold = outcome.samples.iter().find(|sample| sample.phase == Phase::Hold).unwrap();
        (hold.at_s, outcome.notes)
    };
    // The warm-up of a second asks eleven times.
    let (at_once, notes) = began(11);
    assert!(notes.is_empty(), "{notes:?}");
    let (later, notes) = began(15);
    assert!((later - at_once - 2.0).abs() < 0.01, "{at_once} {later}");
    assert_eq!(notes, ["far cores, before the run; waited 2s, it recovered"]);
    let (never, notes) = began(usize::MAX);
    assert!((never - at_once - 5.0).abs() < 0.01, "{at_once} {never}");
    assert_eq!(notes, ["far cores, before the run; waited 5s, it did not recover, measured anyway"]);
    // A pass of a second is a try.
    let brief = Saturate { duration: SECOND, ..saturate };
    let mut engine = SimulatedEngine::new(device(623_000.0), Tester::default());
    assert_eq!(brief.run(&mut engine, &mut Elsewhere(usize::MAX)).notes, [""; 0]);
    // Where a search follows, less depends on the pass.
    let ramp = Ramp { rise: 4 * SECOND, hold: SECOND, search: SECOND, ..ramp() };
    let mut engine = SimulatedEngine::new(device(623_000.0), Tester::default());
    let outcome = ramp.run(&mut engine, &mut Elsewhere(usize::MAX));
    assert!(outcome.notes[0].contains("waited 2.5s"), "{:?}", outcome.notes);
    let long = Saturate { duration: 60 * SECOND, ..saturate };
    let mut engine = SimulatedEngine::new(device(623_000.0), Tester::default());
    let outcome = long.run(&mut engine, &mut Elsewhere(usize::MAX));
    assert_eq!(outcome.notes, ["far cores, before the run; waited 10s, it did not recover, measured anyway"]);
}

/// Somebody who wants these loads, one after the other; 0 is a pause.
struct Steers(std::vec::IntoIter<f64>);

impl Observer for Steers {
    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Steers {
    fn steer(&mut self, pps: f64) -> f64 {
        self.0.next().unwrap_or(pps)
    }
}

#[test]
fn a_person_steers_a_rate_and_every_sample_has_its_own() {
    let mut engine = SimulatedEngine::new(Device::default(), Tester::default());
    let steer = |loads: Vec<f64>| Steers(loads.into_iter());
    let strategy = Saturate { conditions: conditions(), load: Load::Rate(100_000.0), duration: SECOND };
    let loads = [100_000.0, 250_000.0, 0.0, 0.0, 50_000.0];
    let outcome = strategy.run(&mut engine, &mut steer(loads.to_vec()));
    check(&outcome, &engine, 0.001);
    let held: Vec<_> = outcome.samples.iter().filter(|sample| sample.phase == Phase::Hold).collect();
    assert_eq!(held.len(), 10);
    for (sample, load) in held.iter().zip(loads.into_iter().chain(std::iter::repeat(100_000.0))) {
        let direction = &sample.directions[0];
        assert_eq!(direction.intended_pps, load);
        assert!((direction.offered as f64 - load * sample.duration_s).abs() <= 2.0, "{direction:?}");
        assert_eq!(direction.forwarded, direction.offered);
    }
    assert!(outcome.notes.iter().any(|note| note.contains("steered")), "{:?}", outcome.notes);
    assert_eq!(outcome.directions[0].limited_by, LimitedBy::LineRate, "the highest load that was asked for");
    // As long as nobody does anything, it is a run like any other.
    let mut engine = SimulatedEngine::new(Device::default(), Tester::default());
    assert_eq!(strategy.run(&mut engine, &mut steer(vec![])).notes, Vec::<String>::new());
    // Max is no rate.
    let strategy = Saturate { load: Load::Max, ..strategy };
    let mut engine = SimulatedEngine::new(Device::default(), Tester::default());
    assert!(
        !strategy.run(&mut engine, &mut steer(vec![1.0])).notes.iter().any(|note| note.contains("steered"))
    );
}
