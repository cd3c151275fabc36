//! What a search finds of devices that nothing disturbs, and how it ends over those that fail.

use std::time::Duration;

use engine::Engine;
use engine::simulated::{Capacity, Device, Disturbance, SimulatedEngine, Stall, Tester};
use results::record::{Irregular, LimitedBy, Status, TrialVerdict};
use trial::{Failure, Search, Silent, Strategy as _};

use super::{LINE_RATE_PPS, assert_found, results, run, run_with, search, trials};
use crate::common::{SECOND, device};

#[test]
fn capacities_are_found_within_the_goals_width_and_in_time() {
    for capacity in [30_000.0, 61_803.0, 123_456.0, 314_159.0, 577_215.0, 900_000.0, 2_400_000.0] {
        let mut engine = SimulatedEngine::new(device(capacity), Tester::default());
        let outcome = search().run(&mut engine, &mut Silent);
        assert_eq!(outcome.status, Status::Complete);
        assert!(engine.now() < 40 * SECOND, "{:?}", engine.now());
        let results = results(&outcome);
        assert_found(&results["ndr"], capacity, 66.0);
        assert_found(&results["pdr"], capacity / 0.995, 66.0);
        assert_eq!(outcome.directions[0].results, results, "one direction is all directions");
        assert_eq!(outcome.directions[0].max_rate_pps, results["ndr"].pps);
        assert_eq!(outcome.finding.search().unwrap().limited_by, Some(LimitedBy::Dut));
    }
}

#[test]
fn both_directions_are_added_up() {
    let tester = Tester { directions: 2, ..Tester::default() };
    let each = Device { capacity: Capacity::Each(400_000.0), queue: 64, ..Device::default() };
    let outcome = run_with(&search(), each, tester.clone(), &mut Silent);
    assert_found(&results(&outcome)["ndr"], 800_000.0, 132.0);
    for direction in &outcome.directions {
        assert_found(&direction.results["ndr"], 400_000.0, 66.0);
    }
    let shared = Device { capacity: Capacity::Shared(400_000.0), queue: 64, ..Device::default() };
    assert_found(
        &results(&run_with(&search(), shared, tester, &mut Silent))["pdr"],
        400_000.0 / 0.995,
        132.0,
    );
}

#[test]
fn a_device_that_loses_at_random_has_a_pdr_and_no_ndr() {
    for seed in 1..=5 {
        let device = Device { random_loss: 0.003, seed, ..device(500_000.0) };
        let outcome = run(&Search { min_pps: 10_000.0, ..search() }, device);
        let results = results(&outcome);
        assert_eq!(results["ndr"].irregular, Some(Irregular::MinLoadIsUpperBound), "{results:?}");
        assert_eq!((results["ndr"].pps, results["ndr"].upper_pps), (0.0, Some(10_000.0)));
        assert_found(&results["pdr"], 500_000.0 / 0.995, 66.0);
        // Of a load below capacity the conditional throughput is what random loss leaves.
        let left = results["pdr"].conditional_throughput_pps / results["pdr"].pps;
        assert!((0.995..0.9975).contains(&left), "{left}");
    }
}

#[test]
fn a_passing_disturbance_is_outvoted() {
    for from in [3, 5, 8, 11, 14].map(Duration::from_secs) {
        let slow = Disturbance { from, length: Duration::from_millis(700), factor: 0.3 };
        let outcome = run(&search(), Device { disturbances: vec![slow], ..device(600_000.0) });
        assert_found(&results(&outcome)["ndr"], 600_000.0, 66.0);
    }
}

#[test]
fn a_device_that_passes_everything_is_irregular_and_limited_by_the_line() {
    let outcome = run(&search(), Device::default());
    for result in results(&outcome).values() {
        assert_eq!(result.irregular, Some(Irregular::MaxLoadIsLowerBound));
        assert_eq!((result.limited_by, result.upper_pps), (LimitedBy::LineRate, None));
        assert!((result.pps / LINE_RATE_PPS - 1.0).abs() < 1e-6);
    }
    assert_eq!(outcome.status, Status::Complete);
}

#[test]
fn a_tester_that_cannot_offer_more_is_named_and_its_unsent_frames_are_not_lost() {
    let tester = |max_pps| Tester { max_pps, ..Tester::default() };
    let outcome = run_with(&search(), Device::default(), tester(1.5e6), &mut Silent);
    for result in results(&outcome).values() {
        assert_eq!(result.irregular, Some(Irregular::MaxLoadIsLowerBound));
        assert_eq!((result.limited_by, result.upper_pps), (LimitedBy::Tester, None));
        assert!((0.99..=1.0).contains(&(result.pps / 1.5e6)), "{result:?}");
    }
    // A device below what the tester can is found all the same.
    let outcome = run_with(&search(), device(900_000.0), tester(1.5e6), &mut Silent);
    assert_found(&results(&outcome)["ndr"], 900_000.0, 66.0);
    assert!(trials(&outcome).iter().any(|trial| trial.verdicts["ndr"] == TrialVerdict::TesterFellShort));
    // One that cannot even offer the minimum says nothing of the device.
    let outcome = run_with(&search(), Device::default(), tester(900.0), &mut Silent);
    assert_eq!(results(&outcome)["ndr"].irregular, Some(Irregular::Wide));
    assert!(
        outcome.notes.iter().any(|note| note.contains("the tester cannot even offer")),
        "{:?}",
        outcome.notes
    );
}

#[test]
fn a_tester_that_falls_short_in_passing_does_not_lower_the_maximum() {
    let disturbances =
        [4, 7, 10].map(|from| Disturbance { from: from * SECOND, length: SECOND, factor: 0.01 });
    let tester = Tester { disturbances: disturbances.to_vec(), ..Tester::default() };
    let outcome = run_with(&search(), device(700_000.0), tester, &mut Silent);
    assert_found(&results(&outcome)["ndr"], 700_000.0, 66.0);
}

#[test]
fn a_device_that_passes_nothing_is_diagnosed_with_and_without_a_warm_up() {
    let blocked = Device { blocked: [true, true], reflects: true, ..Device::default() };
    for warm_up in [SECOND, Duration::ZERO] {
        let mut search = search();
        search.conditions.warm_up.duration = warm_up;
        let outcome = run(&search, blocked.clone());
        assert!(matches!(outcome.failure, Some(Failure::NothingPasses { .. })), "{outcome:?}");
        assert!(outcome.reason().unwrap().contains("check the link"), "{:?}", outcome.reason());
    }
}

#[test]
fn a_device_that_dies_in_the_middle_is_reported_as_stalled_with_what_was_proved_before() {
    for frames in [500_000, 1_000_000, 2_000_000] {
        let stall = Some(Stall::AfterFrames(frames));
        let outcome = run(&search(), Device { stall, ..device(800_000.0) });
        assert_eq!(outcome.status, Status::Complete);
        assert!(outcome.notes.iter().any(|note| note.contains("stopped forwarding")), "{:?}", outcome.notes);
        let stalled = outcome.directions[0].stalled.unwrap();
        assert_eq!(stalled.after_frames, frames);
        assert!(results(&outcome).values().any(|result| result.irregular.is_some()));
    }
}

#[test]
fn a_device_that_nothing_survives_in_overload_is_no_dead_one() {
    // The first trial offers so much that the device forwards nothing for a while.
    let choked = Disturbance { from: SECOND, length: SECOND, factor: 0.0 };
    let outcome = run(&search(), Device { disturbances: vec![choked], ..device(250_000.0) });
    assert_found(&results(&outcome)["ndr"], 250_000.0, 66.0);
}

#[test]
fn the_time_bound_ends_a_search_with_the_interval_it_has() {
    for seconds in [2, 3, 4] {
        let outcome = run(&Search { max_duration: seconds * SECOND, ..search() }, device(345_678.0));
        let found = results(&outcome)["pdr"];
        assert!(matches!(found.irregular, Some(Irregular::Wide | Irregular::Preliminary)), "{found:?}");
        assert!(outcome.notes.iter().any(|note| note.contains("were over")), "{:?}", outcome.notes);
        let upper = found.upper_pps.unwrap_or(f64::INFINITY);
        assert!(found.lower_pps <= 345_678.0 / 0.995 + 256.0 && upper >= 345_678.0 / 0.995, "{found:?}");
    }
}

#[test]
fn what_was_found_before_an_interruption_or_a_failure_stands() {
    let interrupted = Tester { interrupt_after: Some(5 * SECOND), ..Tester::default() };
    let outcome = run_with(&search(), device(345_678.0), interrupted, &mut Silent);
    assert_eq!(outcome.status, Status::Interrupted);
    assert!(results(&outcome)["ndr"].lower_pps > 0.0 && trials(&outcome).len() > 5);
    let failing = Tester { fail_after: Some(5 * SECOND), ..Tester::default() };
    let outcome = run_with(&search(), device(345_678.0), failing, &mut Silent);
    assert_eq!(outcome.status, Status::Failed);
    assert!(results(&outcome)["ndr"].lower_pps > 0.0 && trials(&outcome).len() > 5);
}
