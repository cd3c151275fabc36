//! Truth of comparisons: simulated devices whose capacities are known are run as a bench runs
//! them, six repeats each on a fresh device, and what is then claimed is held against the truth.

use std::time::Duration;

use crate::common::{conditions, device, ramp};
use engine::Load;
use engine::simulated::{SimulatedEngine, Tester};
use stats::Random;
use stats::comparison::{Question, Verdict, compare};
use trial::{Conditions, Outcome, Ramp, Saturate, Silent, Strategy as _, WarmUp};

/// What the reference forwards, in frames a second.
const CAPACITY: f64 = 600_000.0;
/// Repeats of each device.
const REPEATS: usize = 6;
const MS: fn(u64) -> Duration = Duration::from_millis;

/// How one repeat is measured.
type Measure = fn(&mut SimulatedEngine) -> Outcome;

/// As short as virtual time allows: what is noisy is the device, from repeat to repeat.
fn short() -> Conditions {
    let warm_up = WarmUp { pps: 1_000.0, duration: MS(20) };
    Conditions { warm_up, step: MS(100), drain: MS(50), ..conditions() }
}

fn saturate(engine: &mut SimulatedEngine) -> Outcome {
    Saturate { conditions: short(), load: Load::Max, duration: MS(600) }.run(engine, &mut Silent)
}

fn climb(engine: &mut SimulatedEngine) -> Outcome {
    Ramp { conditions: Conditions { step: MS(20), ..short() }, rise: MS(1_000), hold: MS(600), ..ramp() }
        .run(engine, &mut Silent)
}

/// One repeat: a device of its own, whose capacity lies around `ratio` times the reference's.
fn repeat(random: &mut Random, measure: Measure, ratio: f64, noise: f64) -> f64 {
    let capacity = CAPACITY * ratio * (noise * random.normal()).exp();
    let tester = Tester { max_pps: 1e6, ..Tester::default() };
    let mut engine = SimulatedEngine::new(device(capacity), tester);
    let found = measure(&mut engine).directions[0].max_forwarded_pps;
    assert!((found / capacity - 1.0).abs() < 0.02, "{found} of a device that forwards {capacity}");
    found
}

/// Of `pairs` pairs, a reference and a device of `ratio` times its capacity: how many verdicts are
/// as `wanted` asks.
fn count(
    pairs: usize,
    measure: Measure,
    (ratio, noise): (f64, f64),
    wanted: impl Fn(Verdict) -> bool,
) -> usize {
    let mut random = Random::new(20);
    let mut repeats =
        |ratio| -> Vec<f64> { (0..REPEATS).map(|_| repeat(&mut random, measure, ratio, noise)).collect() };
    let verdicts = (0..pairs).map(|_| {
        let (reference, other) = (repeats(1.0), repeats(ratio));
        compare(&reference, &[&other], &Question::default())[0].verdict
    });
    verdicts.filter(|verdict| wanted(*verdict)).count()
}

fn claims(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Better | Verdict::Worse)
}

#[test]
fn of_a_thousand_equal_devices_at_most_fifty_are_told_apart() {
    let wrong = count(1_000, saturate, (1.0, 0.01), claims);
    assert!(wrong <= 50, "{wrong} of 1,000 equal pairs told apart");
}

#[test]
fn three_percent_at_one_percent_of_noise_are_found() {
    for measure in [saturate as Measure, climb] {
        let found = count(100, measure, (1.03, 0.01), |verdict| verdict == Verdict::Better);
        assert!(found >= 95, "faster by 3 %: found in {found} of 100");
    }
    let found = count(100, saturate, (0.97, 0.01), |verdict| verdict == Verdict::Worse);
    assert!(found >= 95, "slower by 3 %: found in {found} of 100");
}

#[test]
fn equal_devices_with_little_noise_are_called_equal() {
    let equal = count(100, saturate, (1.0, 0.003), |verdict| verdict == Verdict::Equal);
    assert!(equal >= 95, "called equal in {equal} of 100");
    // Devices that differ by just what counts are called equal no more often than claims may be wrong.
    let wrong = count(200, saturate, (1.0 / 0.99, 0.003), |verdict| verdict == Verdict::Equal);
    assert!(wrong <= 18, "a difference of 1 % called equal in {wrong} of 200");
}
