//! Latency tests of simulated devices: every delay of every load is in its distribution.

use std::time::Duration;

use crate::common::{SECOND, any_device, any_tester, conditions, device};
use engine::simulated::{Device, Disturbance, SimulatedEngine, Tester};
use engine::{Engine, Load};
use proptest::prelude::*;
use results::record::{Distribution, LatencyTest, LoadLatency, Percentiles, Sample, Status};
use trial::{
    ChosenLoad, Conditions, Failure, Goal, Latency, Noise, Observer, ObserverError, Outcome, Reference,
    Search, Silent, Strategy as _, Surroundings, WarmUp,
};

const LINE_PPS: f64 = 1_488_095.0;

fn search() -> Search {
    Search {
        conditions: conditions(),
        goals: vec![Goal::pdr()],
        min_pps: 1_000.0,
        max_pps: LINE_PPS,
        expected: None,
        max_duration: 120 * SECOND,
    }
}

fn latency(reference: Reference) -> Latency {
    Latency {
        conditions: conditions(),
        reference,
        loads: ChosenLoad::DEFAULT.into(),
        duration: 2 * SECOND,
        max_pps: LINE_PPS,
    }
}

fn run(test: &Latency, device: Device, tester: Tester) -> (Outcome, Vec<LoadLatency>) {
    let mut engine = SimulatedEngine::new(device, tester);
    let outcome = test.run(&mut engine, &mut Silent);
    let loads = outcome.finding.latency().map(|found| found.loads.clone()).unwrap();
    for distribution in loads.iter().flat_map(|load| &load.directions) {
        check(distribution);
    }
    (outcome, loads)
}

/// What holds for every distribution.
fn check(found: &Distribution) {
    let counted: u64 = found.histogram_ns.iter().map(|(_, count)| count).sum();
    assert_eq!(counted, found.forwarded);
    assert!(found.forwarded <= found.offered, "{found:?}");
    let told: Vec<f64> = found.percentiles.values().into_iter().flatten().collect();
    assert!(told.is_sorted(), "{found:?}");
    assert!(told.iter().all(|told| (found.min_ns as f64..=found.max_ns as f64).contains(told)), "{found:?}");
    let within = (found.min_ns as f64..=found.max_ns as f64 + 0.5).contains(&found.mean_ns);
    assert!(within || found.forwarded == 0, "{found:?}");
    for (delay, variation) in found.percentiles.values().into_iter().zip(found.pdv.values()) {
        assert_eq!(delay.map(|delay| delay - found.min_ns as f64), variation);
    }
    for ((_, one_in), told) in Percentiles::KINDS.into_iter().zip(found.percentiles.values()) {
        assert_eq!(told.is_some(), found.forwarded >= 10 * one_in, "{found:?}");
    }
}

#[test]
fn loads_are_shares_of_the_pdr_that_a_search_found() {
    let slow = Device { base_latency: Duration::from_micros(50), ..device(300_000.0) };
    let (outcome, loads) = run(&latency(Reference::Searched(search())), slow, Tester::default());
    assert_eq!((outcome.status, outcome.reason()), (Status::Complete, None));
    let found = outcome.finding.latency().unwrap();
    let pdr = found.reference_pps.unwrap();
    assert!(found.searched && (pdr / 300_000.0 - 1.0).abs() < 0.01, "{pdr}");
    assert_eq!(outcome.finding.results()["pdr"].lower_pps, pdr);
    let names: Vec<&str> = loads.iter().map(|load| load.name.as_str()).collect();
    assert_eq!(names, ["unloaded", "10%", "50%", "90%", "110%"]);
    for (load, share) in loads.iter().zip([1_000.0 / pdr, 0.1, 0.5, 0.9, 1.1]) {
        assert!((load.load_pps / pdr - share).abs() < 1e-9, "{load:?}");
    }
    // The truth: 50 us and the service time; behind a full queue of 64 frames 64 of those more.
    let service_ns = 1e9 / 300_000.0;
    for load in &loads[..4] {
        let found = &load.directions[0];
        assert_eq!((found.loss_ratio, found.forwarded), (0.0, found.offered));
        assert!((found.mean_ns / (50_000.0 + service_ns) - 1.0).abs() < 0.02, "{load:?}");
    }
    let overload = &loads[4].directions[0];
    assert!((overload.loss_ratio - 0.09).abs() < 0.01, "{overload:?}");
    let queued = 50_000.0 + 64.0 * service_ns;
    assert!((overload.percentiles.p50_ns.unwrap() / queued - 1.0).abs() < 0.3, "{overload:?}");
    assert!(found.unseen.iter().any(|unseen| unseen.contains("IPDV")));
}

#[test]
fn a_given_reference_needs_no_search_and_rates_need_no_reference() {
    let given = Latency { duration: SECOND, ..latency(Reference::Given(50_000.0)) };
    let (outcome, loads) = run(&given, device(300_000.0), Tester { directions: 2, ..Tester::default() });
    assert!(outcome.finding.search().is_none() && !outcome.finding.latency().unwrap().searched);
    let rates: Vec<f64> = loads.iter().map(|load| load.load_pps.round()).collect();
    assert_eq!(rates, [500.0, 5_000.0, 25_000.0, 45_000.0, 55_000.0]);
    for load in &loads {
        assert_eq!(load.directions.iter().map(|found| &found.name).collect::<Vec<_>>(), ["0->1", "1->0"]);
        assert_eq!((load.directions[0].offered as f64 / load.load_pps).round(), 1.0);
    }

    let rates = Latency {
        loads: vec![ChosenLoad::Rate(20_000.0), ChosenLoad::Unloaded],
        ..latency(Reference::Searched(search()))
    };
    let (outcome, loads) = run(&rates, device(300_000.0), Tester::default());
    assert_eq!(outcome.finding.latency().unwrap().reference_pps, None);
    assert_eq!(outcome.finding.search(), None);
    let named: Vec<(&str, f64)> = loads.iter().map(|load| (load.name.as_str(), load.load_pps)).collect();
    assert_eq!(named, [("unloaded", 1_000.0), ("20.00 kpps", 20_000.0)]);
}

#[test]
fn a_load_beyond_the_line_is_left_out_and_said() {
    let (outcome, loads) = run(&latency(Reference::Searched(search())), Device::default(), Tester::default());
    assert_eq!(outcome.status, Status::Complete);
    assert_eq!(loads.len(), 4);
    assert!(outcome.notes.iter().any(|note| note.contains("110%") && note.contains("left out")));
}

#[test]
fn a_disturbed_load_is_repeated_and_marked_only_if_it_stays_so() {
    // Departures 2 ms late are a disturbance that does not go away.
    let tester = Tester { lateness: Duration::from_millis(2), ..Tester::default() };
    let (outcome, loads) = run(&latency(Reference::Given(50_000.0)), device(300_000.0), tester);
    assert!(loads.iter().all(|load| load.disturbed.is_some()));
    // Each was tried three times.
    let trials = outcome.samples.iter().filter(|sample| sample.phase == results::record::Phase::Trial);
    assert_eq!(trials.count(), 15);
    assert!(loads.iter().all(|load| load.directions[0].forwarded == load.directions[0].offered));
}

/// A machine whose noise costs so much, question by question.
struct Noisy {
    costs: Vec<f64>,
}

impl Observer for Noisy {
    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Noisy {
    fn noise(&mut self, _load: Load) -> Noise {
        let cost = self.costs.pop().unwrap_or_default();
        Noise { cost, disturbed: (cost > 0.0).then(|| format!("{cost}")), ..Noise::default() }
    }
}

#[test]
fn of_disturbed_trials_the_least_disturbed_stays() {
    let test = Latency { loads: vec![ChosenLoad::Unloaded], ..latency(Reference::Given(50_000.0)) };
    // Asked at the beginning of each trial too, where the answer is not used; no warm-up asks.
    let test = Latency {
        conditions: Conditions { warm_up: WarmUp { pps: 0.0, duration: Duration::ZERO }, ..test.conditions },
        ..test
    };
    let kept = |costs: [f64; 3]| {
        let asked = costs.into_iter().rev().flat_map(|cost| [cost, 0.9]).collect();
        let mut engine = SimulatedEngine::new(device(300_000.0), Tester::default());
        let outcome = test.run(&mut engine, &mut Noisy { costs: asked });
        outcome.finding.latency().unwrap().loads[0].disturbed.clone()
    };
    assert_eq!(kept([0.3, 0.1, 0.2]).as_deref(), Some("0.1"));
    assert_eq!(kept([0.1, 0.3, 0.2]).as_deref(), Some("0.1"));
    assert_eq!(kept([0.1, 0.3, 0.0]), None);
}

#[test]
fn a_device_that_passes_nothing_or_dies_leaves_what_was_measured() {
    let dead = Device { blocked: [true; 2], ..Device::default() };
    let (outcome, loads) = run(&latency(Reference::Given(50_000.0)), dead, Tester::default());
    assert!(matches!(outcome.failure, Some(Failure::NothingPasses { .. })) && loads.is_empty());

    // It stops in the load of 25,000 pps: that one and all above have no frame to tell of.
    let outage = Disturbance { from: 8 * SECOND, length: 1_000 * SECOND, factor: 0.0 };
    let dying = Device { disturbances: vec![outage], ..device(300_000.0) };
    let (outcome, loads) = run(&latency(Reference::Given(50_000.0)), dying, Tester::default());
    assert_eq!((outcome.status, loads.len()), (Status::Complete, 5));
    let last = &loads[4].directions[0];
    assert_eq!((last.forwarded, last.percentiles, last.mean_ns), (0, Percentiles::default(), 0.0));

    // With a search, nothing that passes is nothing to take a share of.
    let lossy = Device { random_loss: 0.5, ..device(300_000.0) };
    let (outcome, _) = run(&latency(Reference::Searched(search())), lossy, Tester::default());
    let reason = outcome.reason().unwrap();
    assert!(reason.contains("no load that passes") && reason.contains("give the reference"), "{reason}");
    assert_eq!(outcome.status, Status::Failed);
}

/// Keeps what is shown while the test goes on.
#[derive(Default)]
struct Journal {
    shown: Vec<LoadLatency>,
    before: Vec<usize>,
}

impl Observer for Journal {
    fn sample(&mut self, _sample: &Sample) -> Result<(), ObserverError> {
        Ok(())
    }

    fn latency(&mut self, test: &LatencyTest, measured: &LoadLatency) -> Result<(), ObserverError> {
        self.before.push(test.loads.len());
        self.shown.push(measured.clone());
        if self.shown.len() == 4 { Err("no space left".into()) } else { Ok(()) }
    }
}

#[test]
fn each_load_is_shown_when_it_is_finished() {
    let test = Latency { duration: SECOND, ..latency(Reference::Given(50_000.0)) };
    let mut journal = Journal::default();
    let mut engine = SimulatedEngine::new(device(300_000.0), Tester::default());
    let outcome = test.run(&mut engine, &mut journal);
    assert_eq!(journal.before, [0, 1, 2, 3]);
    // An observer that fails ends the test.
    assert!(matches!(outcome.failure, Some(Failure::Observer(_))));
    assert_eq!(outcome.finding.latency().unwrap().loads, journal.shown[..3]);
}

#[test]
fn senseless_parameters_are_refused_before_anything_is_sent() {
    let base = || latency(Reference::Given(50_000.0));
    let tests = [
        Latency { loads: Vec::new(), ..base() },
        Latency { loads: vec![ChosenLoad::Share(0.0)], ..base() },
        Latency { loads: vec![ChosenLoad::Share(f64::NAN)], ..base() },
        Latency { loads: vec![ChosenLoad::Rate(-1.0)], ..base() },
        Latency { duration: Duration::ZERO, ..base() },
        Latency { max_pps: 0.0, ..base() },
        latency(Reference::Given(f64::INFINITY)),
        latency(Reference::Searched(Search { goals: Vec::new(), ..search() })),
    ];
    for test in tests {
        let mut engine = SimulatedEngine::new(Device::default(), Tester::default());
        let outcome = test.run(&mut engine, &mut Silent);
        assert!(matches!(outcome.failure, Some(Failure::Refused(_))), "{test:?}: {:?}", outcome.failure);
        assert_eq!(engine.now(), Duration::ZERO);
    }
}

/// A device that holds what it has for longer than a drain, into the next load.
#[test]
fn what_an_earlier_load_left_behind_is_not_the_next_one_s() {
    let (from, length) = (Duration::from_millis(2_322), Duration::from_millis(1_723));
    let held = Device {
        queue: 358,
        base_latency: Duration::from_millis(655),
        disturbances: vec![Disturbance { from, length, factor: 0.0 }],
        ..device(41_140.0)
    };
    let test = Latency { duration: Duration::from_millis(500), ..latency(Reference::Given(1_000.0)) };
    let (_, loads) = run(&test, held, Tester::default());
    let next = &loads.iter().find(|load| load.name == "50%").unwrap().directions[0];
    assert_eq!((next.offered, next.forwarded), (250, 250));
    assert!(next.max_ns < 656_000_000, "{next:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_the_device_does_distributions_hold_what_came_back(
        device in any_device(), tester in any_tester(), reference in 1_000.0..500_000.0f64,
    ) {
        let test = Latency { duration: Duration::from_millis(500), ..latency(Reference::Given(reference)) };
        let mut engine = SimulatedEngine::new(device, tester);
        let outcome = test.run(&mut engine, &mut Silent);
        let found = outcome.finding.latency().unwrap();
        for load in &found.loads {
            load.directions.iter().for_each(check);
        }
        prop_assert!(found.loads.is_sorted_by(|one, other| one.load_pps <= other.load_pps));
        for (direction, verdict) in outcome.directions.iter().enumerate() {
            let came_back: u64 = found.loads.iter().map(|load| load.directions[direction].forwarded).sum();
            prop_assert!(came_back <= verdict.forwarded);
        }
        prop_assert_eq!(outcome.status == Status::Failed, outcome.failure.is_some());
    }
}
