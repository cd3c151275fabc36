//! What holds for every search.

use std::collections::BTreeMap;

use engine::simulated::{Device, Tester};
use proptest::prelude::*;
use results::record::Phase;
use trial::{Failure, Goal, Search, Silent};

use super::noise::Noisy;
use super::{results, run, run_with, search, trials};
use crate::common::{any_device, any_tester, device, milliseconds};

#[test]
fn results_can_be_recomputed_from_the_trials() {
    let outcome = run(&search(), Device { random_loss: 1e-6, ..device(250_000.0) });
    let goal = Goal::pdr();
    let mut loads: BTreeMap<u64, (f64, f64, f64)> = BTreeMap::new();
    for trial in trials(&outcome) {
        let [direction] = trial.directions.as_slice() else { panic!("one direction") };
        let lost = (direction.offered - direction.forwarded) as f64 / direction.offered as f64;
        assert_eq!((trial.loss_ratio, direction.loss_ratio), (lost, lost));
        let full = trial.duration_s >= goal.final_trial_duration.as_secs_f64();
        let (low, high, excess) = loads.entry(trial.load_pps.to_bits()).or_default();
        match (full, lost > goal.loss_ratio) {
            (true, true) => *high += trial.duration_s,
            (true, false) => *low += trial.duration_s,
            (false, true) => *excess += trial.duration_s,
            (false, false) => *excess -= trial.duration_s,
        }
    }
    let decisive = goal.duration_sum.as_secs_f64() / 2.0;
    let upper = loads
        .iter()
        .find(|(_, (_, high, excess))| high + excess.max(0.0) > decisive)
        .map(|(load, _)| f64::from_bits(*load));
    let lower = loads.iter().rev().find(|(load, (low, ..))| {
        *low >= decisive && upper.is_none_or(|upper| f64::from_bits(**load) < upper)
    });
    let found = results(&outcome)["pdr"];
    assert_eq!(found.upper_pps, upper);
    let lower = lower.map(|(load, _)| f64::from_bits(*load)).unwrap();
    assert!((found.lower_pps / lower - 1.0).abs() < 1e-4, "as it was offered: {found:?}, {lower}");
}

#[test]
fn every_trial_is_one_sample() {
    let outcome = run(&search(), device(250_000.0));
    let samples: Vec<_> = outcome.samples.iter().filter(|sample| sample.phase == Phase::Trial).collect();
    assert_eq!(samples.len(), trials(&outcome).len());
    for (sample, trial) in samples.iter().zip(trials(&outcome)) {
        assert_eq!(sample.at_s, trial.at_s);
        assert_eq!(sample.directions[0].offered, trial.directions[0].offered);
    }
}

fn any_goal() -> impl Strategy<Value = Goal> {
    let durations = (milliseconds(0..1_500), milliseconds(0..3_000), milliseconds(0..9_000));
    let loss = prop_oneof![Just(0.0), 0.0..0.1f64];
    (loss, 0.0..0.9f64, 1e-4..0.3f64, durations).prop_map(|(loss, exceed, width, (initial, last, sum))| {
        Goal {
            name: format!("goal-{loss}"),
            loss_ratio: loss,
            exceed_ratio: exceed,
            relative_width: width,
            initial_trial_duration: initial,
            final_trial_duration: initial.max(last),
            duration_sum: initial.max(last).max(sum),
            hidden_queue: 0,
        }
    })
}

fn any_search() -> impl Strategy<Value = Search> {
    let times = (milliseconds(0..1_500), milliseconds(0..400), milliseconds(100..60_000));
    (proptest::collection::vec(any_goal(), 1..4), times, 100.0..1e4f64, 1.001..5e3f64).prop_map(
        |(goals, (warm_up, drain, max_duration), min_pps, range)| {
            let mut search = Search { goals, min_pps, max_pps: min_pps * range, max_duration, ..search() };
            search.conditions.warm_up.duration = warm_up;
            search.conditions.drain = drain;
            search
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// `run_with` checks the bound, and that bounds are in order.
    #[test]
    fn any_search_over_any_device_ends_in_its_time(
        search in any_search(),
        device in any_device(),
        tester in any_tester(),
        noise in proptest::collection::vec(0.0..1.0f64, 1..30),
    ) {
        let mut noise = Noisy::new(|trial| noise[trial % noise.len()] * (trial % 2) as f64);
        let outcome = run_with(&search, device, tester, &mut noise);
        let found = outcome.finding.search().is_some_and(|search| search.disturbed.is_some());
        prop_assert_eq!(found, !matches!(outcome.failure, Some(Failure::Refused(_))), "{:?}", outcome.failure);
    }

    #[test]
    fn any_capacity_is_within_its_interval(
        capacity in 1e4..2e6f64,
        directions in 1..=2usize,
        width in 0.002..0.05f64,
        loss_ratio in 0.0..0.05f64,
        max in 1.5..1e3f64,
    ) {
        let goal = Goal { relative_width: width, ..Goal::new("mine", loss_ratio) };
        let search = Search { goals: vec![goal], max_pps: capacity * max, ..search() };
        let tester = Tester { directions, max_pps: 1e10, ..Tester::default() };
        let outcome = run_with(&search, device(capacity), tester, &mut Silent);
        let found = results(&outcome)["mine"];
        let (factor, truth) = (directions as f64, capacity / (1.0 - loss_ratio));
        let upper = found.upper_pps.unwrap();
        prop_assert_eq!(found.irregular, None);
        // The queue of 64 frames hides twice as many a second from trials of half a second.
        prop_assert!(found.lower_pps <= (truth + 140.0) * factor && truth * factor <= upper + 2.0, "{truth}: {found:?}");
        prop_assert!(1.0 - found.lower_pps / upper <= width + 1e-6);
    }
}
