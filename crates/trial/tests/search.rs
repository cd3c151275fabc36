//! Searches find what simulated devices truly do, say what they could not find, and end in time.

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use common::{SECOND, any_device, any_tester, device, milliseconds};
use engine::Engine;
use engine::simulated::{Capacity, Device, Disturbance, SimulatedEngine, Stall, Tester};
use proptest::prelude::*;
use results::record::{GoalResult, Irregular, LimitedBy, Phase, Sample, Status, Trial, TrialVerdict};
use trial::{
    Conditions, Failure, Goal, Interruption, Noise, Observer, ObserverError, Outcome, Search, Silent,
    Strategy as _, WarmUp,
};

/// 10 Gb/s in frames of 64 bytes.
const LINE_RATE_PPS: f64 = 14_880_952.38;

fn search() -> Search {
    Search {
        conditions: Conditions {
            warm_up: WarmUp { pps: 1_000.0, duration: SECOND },
            step: Duration::from_millis(100),
            drain: Duration::from_millis(200),
            loss_threshold: 0.0,
            line_rate_bps: 10e9,
        },
        goals: vec![Goal::ndr(), Goal::pdr()],
        min_pps: 1_000.0,
        max_pps: LINE_RATE_PPS,
        max_duration: 120 * SECOND,
    }
}

/// Runs the search, and checks what holds whatever the device does.
fn run_with(search: &Search, device: Device, tester: Tester, observer: &mut dyn Observer) -> Outcome {
    let mut engine = SimulatedEngine::new(device, tester);
    let outcome = search.run(&mut engine, observer);
    assert!(
        engine.now() <= search.max_duration.saturating_add(Duration::from_millis(501)),
        "{:?}",
        engine.now()
    );
    assert_eq!(outcome.status == Status::Failed, outcome.failure.is_some());
    for result in results(&outcome).values().chain(outcome.directions.iter().flat_map(|d| d.results.values()))
    {
        assert_eq!(result.pps, result.lower_pps);
        assert!(result.upper_pps.is_none_or(|upper| upper > result.lower_pps), "{result:?}");
        assert!(result.conditional_throughput_pps <= result.lower_pps, "{result:?}");
    }
    outcome
}

fn run(search: &Search, device: Device) -> Outcome {
    run_with(search, device, Tester::default(), &mut Silent)
}

fn results(outcome: &Outcome) -> BTreeMap<String, GoalResult> {
    outcome.finding.results().clone()
}

fn trials(outcome: &Outcome) -> &[Trial] {
    outcome.finding.trials()
}

/// The interval holds `truth` and is no wider than half a percent. A queue of `hidden` frames
/// hides twice as many frames a second from trials of half a second.
#[track_caller]
fn assert_found(result: &GoalResult, truth: f64, hidden: f64) {
    let upper = result.upper_pps.expect("an upper bound");
    assert_eq!((result.irregular, result.limited_by), (None, LimitedBy::Dut), "{result:?}");
    assert!(result.lower_pps <= truth + 2.0 * hidden && truth <= upper + 1.0, "{truth}: {result:?}");
    assert!(1.0 - result.lower_pps / upper <= 0.005 + 1e-9, "{result:?}");
}

#[test]
fn capacities_are_found_within_the_goals_width_and_a_quarter_of_the_time() {
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
    for frames in [500_000, 2_000_000, 5_000_000] {
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
    for seconds in [2, 4, 8] {
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
    let interrupted = Tester { interrupt_after: Some(10 * SECOND), ..Tester::default() };
    let outcome = run_with(&search(), device(345_678.0), interrupted, &mut Silent);
    assert_eq!(outcome.status, Status::Interrupted);
    assert!(results(&outcome)["ndr"].lower_pps > 0.0 && trials(&outcome).len() > 5);
    let failing = Tester { fail_after: Some(10 * SECOND), ..Tester::default() };
    let outcome = run_with(&search(), device(345_678.0), failing, &mut Silent);
    assert_eq!(outcome.status, Status::Failed);
    assert!(results(&outcome)["ndr"].lower_pps > 0.0 && trials(&outcome).len() > 5);
}

#[test]
fn impossible_goals_and_limits_are_refused_each_with_its_own_message() {
    let goal = |change: fn(&mut Goal)| {
        let mut goal = Goal::new("mine", 0.01);
        change(&mut goal);
        Search { goals: vec![goal], ..search() }
    };
    let cases = [
        (goal(|goal| goal.relative_width = 0.0), "at a width of 0"),
        (goal(|goal| goal.relative_width = f64::NAN), "at a width of NaN"),
        (goal(|goal| goal.exceed_ratio = 1.0), "every load would pass"),
        (goal(|goal| goal.loss_ratio = 1.0), "loss ratio of 1"),
        (goal(|goal| goal.loss_ratio = -0.1), "loss ratio of -0.1"),
        (goal(|goal| goal.initial_trial_duration = Duration::ZERO), "too short"),
        (goal(|goal| goal.initial_trial_duration = 2 * SECOND), "longer than the final ones"),
        (goal(|goal| goal.final_trial_duration = 6 * SECOND), "longer than the sum"),
        (goal(|goal| goal.duration_sum = Duration::MAX), "at most 24 hours"),
        (Search { goals: vec![], ..search() }, "without a goal"),
        (Search { goals: vec![Goal::ndr(), Goal::ndr()], ..search() }, "two goals are called ndr"),
        (Search { min_pps: 2e6, max_pps: 1e6, ..search() }, "not below the maximum"),
        (Search { min_pps: 1e6, max_pps: 1e6, ..search() }, "not below the maximum"),
        (Search { min_pps: 0.0, ..search() }, "a minimum load of 0"),
        (Search { max_pps: f64::INFINITY, ..search() }, "a maximum load of inf"),
        (Search { min_pps: 1.0, ..search() }, "sends no frame"),
        (Search { max_duration: SECOND, ..search() }, "no time for a search"),
        (Search { max_duration: Duration::MAX, ..search() }, "at most 24 hours"),
    ];
    for (search, message) in cases {
        let outcome = run(&search, Device::default());
        let reason = outcome.reason().unwrap_or_default();
        assert!(matches!(outcome.failure, Some(Failure::Refused(_))), "{message}");
        assert!(reason.contains(message), "'{reason}' does not say '{message}'");
    }
}

/// Says what noise there was in each trial: by its number, the first is 0.
struct Noisy<F> {
    cost: F,
    shown: Vec<Trial>,
}

impl<F: FnMut(usize) -> f64> Noisy<F> {
    fn new(cost: F) -> Self {
        Self { cost, shown: Vec::new() }
    }
}

impl<F: FnMut(usize) -> f64> Observer for Noisy<F> {
    fn sample(&mut self, _sample: &Sample) -> Result<(), ObserverError> {
        Ok(())
    }

    fn trial(&mut self, trial: &Trial, _results: &BTreeMap<String, GoalResult>) -> Result<(), ObserverError> {
        self.shown.push(trial.clone());
        Ok(())
    }

    /// Asked before a trial, where the answer is not used, and at its end.
    fn noise(&mut self) -> Noise {
        let cost = (self.cost)(self.shown.len());
        Noise { cost, disturbed: (cost > 0.0).then(|| "stolen time".to_owned()), ..Noise::default() }
    }
}

#[test]
fn a_loss_that_noise_may_account_for_is_measured_again() {
    let quiet = run(&search(), device(333_333.0));
    let mut noise = Noisy::new(|trial| if trial % 3 == 1 { 1.0 } else { 0.0 });
    let outcome = run_with(&search(), device(333_333.0), Tester::default(), &mut noise);
    assert_eq!(results(&outcome), results(&quiet));
    assert_eq!(outcome.finding.search().unwrap().disturbed, Some(false));
    assert_eq!(noise.shown, trials(&outcome));
    let said_nothing =
        |trial: &Trial| trial.verdicts.values().all(|verdict| *verdict == TrialVerdict::Disturbed);
    let repeated: Vec<_> = trials(&outcome).windows(2).filter(|pair| said_nothing(&pair[0])).collect();
    assert!(!repeated.is_empty());
    for pair in repeated {
        assert_eq!((pair[0].load_pps, pair[0].duration_s), (pair[1].load_pps, pair[1].duration_s));
    }
}

/// Says that all of the machine is another one, in trials that begin in a stretch of time.
struct Elsewhere {
    stretch: std::ops::Range<f64>,
    shown: Vec<Trial>,
}

impl Observer for Elsewhere {
    fn trial(&mut self, trial: &Trial, _results: &BTreeMap<String, GoalResult>) -> Result<(), ObserverError> {
        self.shown.push(trial.clone());
        Ok(())
    }

    fn noise(&mut self) -> Noise {
        let began = self.shown.last().map_or(0.0, |trial| trial.at_s + trial.duration_s);
        if !self.stretch.contains(&began) {
            return Noise::default();
        }
        Noise { cost: 1.0, lasting: 1.0, disturbed: Some("far cores".to_owned()), ..Noise::default() }
    }
}

#[test]
fn while_the_machine_is_another_one_the_same_load_is_tried_until_that_is_over() {
    let slow = Disturbance { from: Duration::from_secs(6), length: Duration::from_secs(10), factor: 0.7 };
    let device = |disturbances| Device { disturbances, ..device(333_333.0) };
    let quiet = run(&search(), device(Vec::new()));
    let mut elsewhere = Elsewhere { stretch: 4.0..18.0, shown: Vec::new() };
    let outcome = run_with(&search(), device(vec![slow]), Tester::default(), &mut elsewhere);
    assert_eq!(results(&outcome), results(&quiet));
    assert_eq!(outcome.finding.search().unwrap().disturbed, Some(false));
    // No lower load was tried for it: all trials meanwhile that lost something were of one load.
    let lost = |trial: &&Trial| trial.disturbed.is_some() && trial.loss_ratio > 0.0;
    let mut loads: Vec<f64> = trials(&outcome).iter().filter(lost).map(|trial| trial.load_pps).collect();
    assert!(loads.len() > 5, "{loads:?}");
    loads.dedup();
    assert_eq!(loads.len(), 1, "{loads:?}");
}

#[test]
fn a_machine_too_noisy_ends_with_an_honest_interval() {
    for quiet_trials in [0, 3, 8] {
        let mut noise = Noisy::new(|trial| if trial >= quiet_trials { 1.0 } else { 0.0 });
        let outcome = run_with(&search(), device(333_333.0), Tester::default(), &mut noise);
        assert!(outcome.finding.search().unwrap().disturbed == Some(true));
        for (name, truth) in [("ndr", 333_333.0), ("pdr", 333_333.0 / 0.995)] {
            let found = results(&outcome)[name];
            assert!(found.disturbed && found.irregular.is_some(), "{found:?}");
            assert!(found.lower_pps <= truth + 140.0, "{found:?}");
            assert!(found.upper_pps.is_none_or(|upper| upper >= truth), "{found:?}");
        }
        assert!(outcome.notes.iter().any(|note| note.contains("too many trials hit host interference")));
    }
}

/// Every 250 ms a device of 333,333 frames a second stands still for 5 ms, and loses 2 %.
fn interrupted_device() -> Device {
    let stalls = (0..1_000).map(|stall| Disturbance {
        from: Duration::from_millis(250 * stall),
        length: Duration::from_millis(5),
        factor: 0.0,
    });
    Device { disturbances: stalls.collect(), ..device(333_333.0) }
}

#[test]
fn steady_noise_widens_the_interval_by_as_much() {
    let mut noise = Noisy::new(|_| 0.04);
    let outcome = run_with(&search(), interrupted_device(), Tester::default(), &mut noise);
    for (name, truth) in [("ndr", 333_333.0), ("pdr", 333_333.0 / 0.995)] {
        let found = results(&outcome)[name];
        let upper = found.upper_pps.unwrap();
        assert!(found.lower_pps <= truth && truth <= upper, "{found:?}");
        assert!(upper < truth * 1.06, "the noise is known, so the upper bound is, too: {found:?}");
        assert!(found.disturbed, "{found:?}");
    }
}

/// Knows when the device stood still.
struct Watchful(Vec<Interruption>);

impl Observer for Watchful {
    fn sample(&mut self, _sample: &Sample) -> Result<(), ObserverError> {
        Ok(())
    }

    fn noise(&mut self) -> Noise {
        Noise { cost: 0.04, interruptions: Some(self.0.clone()), ..Noise::default() }
    }
}

/// Knows of a device that it has lost nothing by its rules, and of interruptions.
#[derive(Default)]
struct Ruled(Vec<Interruption>);

impl Observer for Ruled {
    fn noise(&mut self) -> Noise {
        Noise { interruptions: Some(self.0.clone()), ..Noise::default() }
    }

    fn lost_by_rules(&mut self) -> Option<u64> {
        Some(0)
    }
}

#[test]
fn what_a_device_of_known_truth_did_not_lose_by_its_rules_proves_no_limit() {
    let search = Search { max_duration: 20 * SECOND, ..search() };
    let outcome = run_with(&search, device(333_333.0), Tester::default(), &mut Ruled::default());
    for found in results(&outcome).values() {
        assert!(found.disturbed && found.upper_pps.is_none(), "{found:?}");
    }
    let lossy = trials(&outcome).iter().filter(|trial| trial.loss_ratio > 0.01);
    let words: Vec<_> = lossy.map(|trial| trial.disturbed.clone().unwrap_or_default()).collect();
    assert!(!words.is_empty() && words.iter().all(|words| words.contains("overflowed a queue")), "{words:?}");
}

/// The stalls of `device`, `late`.
fn interruptions(device: &Device, late: Duration) -> Vec<Interruption> {
    let interruption = |stall: &Disturbance| {
        let (start, taken) = (stall.from + late, stall.length.as_nanos() as u64);
        let start_ns = start.as_nanos() as u64;
        Interruption { start_ns, end_ns: start_ns + taken, taken_ns: taken }
    };
    device.disturbances.iter().map(interruption).collect()
}

#[test]
fn what_is_left_out_for_interruptions_makes_no_loss_the_rules() {
    let device = interrupted_device();
    let mut ruled = Ruled(interruptions(&device, Duration::from_millis(120)));
    let outcome = run_with(&search(), device, Tester::default(), &mut ruled);
    let partly = |trial: &&Trial| trial.directions[0].undisturbed.is_some_and(|it| it.loss_ratio() > 0.0);
    assert!(trials(&outcome).iter().any(|trial| partly(&trial)));
    for trial in trials(&outcome) {
        assert!(!trial.verdicts.values().any(|verdict| *verdict == TrialVerdict::HighLoss), "{trial:?}");
    }
}

#[test]
fn interruptions_whose_time_is_known_cost_no_precision() {
    let device = interrupted_device();
    let mut watchful = Watchful(interruptions(&device, Duration::ZERO));
    let outcome = run_with(&search(), device.clone(), Tester::default(), &mut watchful);
    for (name, truth) in [("ndr", 333_333.0), ("pdr", 333_333.0 / 0.995)] {
        let found = results(&outcome)[name];
        let upper = found.upper_pps.unwrap();
        assert!(found.lower_pps <= truth * 1.0025 && truth <= upper, "{found:?}");
        assert!(upper - found.lower_pps <= truth * 0.0051, "{found:?}");
        assert!(!found.disturbed && found.irregular.is_none(), "{found:?}");
    }
    let undisturbed = |trial: &Trial| trial.directions[0].undisturbed;
    assert!(trials(&outcome).iter().any(|trial| {
        undisturbed(trial).is_some_and(|it| it.loss_ratio() == 0.0) && trial.loss_ratio > 0.01
    }));
    // At another time than it stood still, nothing is forgiven.
    watchful.0 = interruptions(&device, Duration::from_millis(120));
    let outcome = run_with(&search(), device, Tester::default(), &mut watchful);
    assert!(results(&outcome)["ndr"].lower_pps < 333_333.0 * 0.9, "{:?}", results(&outcome));
}

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
