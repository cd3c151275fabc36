//! What samples made by hand prove.

use engine::Totals;
use results::record::{DirectionSample, Phase, Sample};

use super::*;
use crate::verdict::Judge;

const JUDGE: Judge =
    Judge { loss_threshold: 0.001, line_rate_bps: 1e9, target_pps: Some(100_000.0), complete: true };

/// A ramp of 100 steps of 100 ms to 100 kpps, of which `forward` says what comes back of (step, offered
/// frames), and `noise` how much of that other activity on the host may account for.
fn ramp(forward: impl Fn(u64, u64) -> u64, noise: impl Fn(u64) -> Option<f64>) -> Vec<Sample> {
    let step = |index: u64| {
        let offered = (index + 1) * 100;
        sample(Phase::Ramp, index, offered, forward(index, offered), noise(index))
    };
    (0..100).map(step).collect()
}

fn sample(phase: Phase, index: u64, offered: u64, forwarded: u64, noise: Option<f64>) -> Sample {
    let direction = DirectionSample {
        intended_pps: offered as f64 * 10.0,
        offered_pps: offered as f64 * 10.0,
        forwarded_pps: forwarded as f64 * 10.0,
        offered,
        forwarded,
        loss_ratio: (offered - forwarded) as f64 / offered as f64,
        ..DirectionSample::default()
    };
    Sample {
        at_s: index as f64 / 10.0,
        duration_s: 0.1,
        phase,
        dut_core_busy: None,
        disturbed: noise.map(|_| "another task ran on core 1".to_owned()),
        noise,
        directions: vec![direction],
    }
}

fn evidence(samples: &[Sample]) -> Evidence {
    JUDGE.directions(samples, &[Totals::default()]).remove(0).evidence.unwrap()
}

fn limit(samples: &[Sample]) -> (f64, Option<f64>) {
    let limit = evidence(samples).limit.unwrap();
    (limit.lower_pps, limit.upper_pps)
}

#[test]
fn the_limit_lies_between_the_step_that_passed_and_the_one_that_failed() {
    let samples = ramp(|_, offered| offered.min(4_250), |_| None);
    assert_eq!(limit(&samples), (42_000.0, Some(43_000.0)));
    let found = evidence(&samples);
    let began = found.loss_began.unwrap();
    assert_eq!((began.pps, began.loss_ratio, began.excused), (43_000.0, 50.0 / 4_300.0, false));
    assert_eq!((found.samples, found.affected, found.interference_matters), (100, 0, false));
}

#[test]
fn a_queue_that_hides_an_overload_lowers_the_lower_bound() {
    // The steps of 4,300 and 4,400 frames fill a queue.
    let samples = ramp(|_, offered| if offered <= 4_400 { offered } else { offered.min(4_250) }, |_| None);
    assert_eq!(limit(&samples), (42_500.0, Some(45_000.0)));
}

#[test]
fn a_loss_of_the_device_below_its_limit_is_where_the_interval_begins() {
    let lossy = |index| (20..23).contains(&index);
    let samples =
        ramp(|index, offered| if lossy(index) { offered / 2 } else { offered.min(4_250) }, |_| None);
    assert_eq!(limit(&samples), (20_000.0, Some(43_000.0)));
    assert_eq!(evidence(&samples).loss_began.unwrap().pps, 21_000.0);
    // If other activity on the host may account for it, it proves nothing.
    let noise = |index| lossy(index).then_some(0.6);
    let samples = ramp(|index, offered| if lossy(index) { offered / 2 } else { offered.min(4_250) }, noise);
    assert_eq!(limit(&samples), (42_000.0, Some(43_000.0)));
    let found = evidence(&samples);
    assert!(found.loss_began.unwrap().excused && !found.interference_matters);
    assert_eq!(found.affected, 3);
}

#[test]
fn interference_at_the_limit_widens_the_interval_and_matters() {
    let affected = |index: u64| (42..50).contains(&index).then_some(1.0);
    let samples = ramp(|_, offered| offered.min(4_250), affected);
    assert_eq!(limit(&samples), (42_000.0, Some(51_000.0)));
    let found = evidence(&samples);
    assert!(found.interference_matters);
    assert_eq!(found.affected, 8);
    // A loss that is greater than it may account for is the device's.
    let little = |index: u64| (42..50).contains(&index).then_some(0.005);
    let samples = ramp(|_, offered| offered.min(4_250), little);
    assert_eq!(limit(&samples), (42_000.0, Some(43_000.0)));
    assert!(!evidence(&samples).interference_matters);
    // If it lasted to the end, no upper bound was seen.
    let samples = ramp(|_, offered| offered.min(4_250), |index| (index >= 42).then_some(1.0));
    assert_eq!(limit(&samples), (42_000.0, None));
    assert!(evidence(&samples).interference_matters);
}

#[test]
fn interference_does_not_matter_where_the_target_was_reached() {
    let samples = ramp(|_, offered| offered, |_| Some(1.0));
    assert_eq!(limit(&samples), (100_000.0, None));
    let found = evidence(&samples);
    assert_eq!((found.affected, found.interference_matters, found.loss_began), (100, false, None));
}

#[test]
fn a_load_below_what_later_came_back_did_not_fail_by_the_device() {
    // The steps of 4,000 to 4,200 frames lost some in an interruption that nobody saw.
    let device = |_, offered: u64| match offered {
        4_000..4_300 => offered - 200,
        _ => offered.min(4_250),
    };
    assert_eq!(limit(&ramp(device, |_| None)), (38_000.0, Some(43_000.0)));
}

#[test]
fn a_saturation_has_the_spread_of_its_half_seconds() {
    let hold = |forwarded: &dyn Fn(u64) -> u64, noise: &dyn Fn(u64) -> Option<f64>| -> Evidence {
        let samples: Vec<Sample> =
            (0..40).map(|at| sample(Phase::Hold, at, 9_000, forwarded(at), noise(at))).collect();
        let judge = Judge { target_pps: None, ..JUDGE };
        judge.directions(&samples, &[Totals::default()]).remove(0).evidence.unwrap()
    };
    let rates = |found: Evidence| found.forwarded.map(|it| (it.lower_pps, it.upper_pps.unwrap())).unwrap();
    let close = |found: (f64, f64), expected: (f64, f64)| {
        (found.0 - expected.0).abs() < 1e-6 && (found.1 - expected.1).abs() < 1e-6
    };
    let calm = hold(&|at| if at < 5 { 4_000 } else { 4_100 }, &|_| None);
    assert!(close(rates(calm), (40_000.0, 41_000.0)) && calm.limit.is_none() && !calm.interference_matters);
    // What is affected is left out…
    let slow = |at: u64| if at < 10 { 2_000 } else { 4_100 };
    let some = hold(&slow, &|at| (at < 10).then_some(1.0));
    assert!(close(rates(some), (41_000.0, 41_000.0)) && !some.interference_matters, "{some:?}");
    // … unless that is most.
    let most = hold(&slow, &|at| (at < 30).then_some(1.0));
    assert!(close(rates(most), (20_000.0, 41_000.0)) && most.interference_matters, "{most:?}");
}

#[test]
fn trials_have_no_evidence_of_this_kind() {
    let samples = [sample(Phase::Trial, 0, 1_000, 900, None)];
    assert!(JUDGE.directions(&samples, &[Totals::default()]).remove(0).evidence.is_none());
}
