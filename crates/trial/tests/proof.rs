//! What a ramp, a quick bench and a search say of devices whose limit is known, on a host that interrupts
//! them: intervals hold the truth.

use std::time::Duration;

use crate::common::host::{Clocked, Host};
use crate::common::{SECOND, device};
use engine::Engine;
use engine::simulated::{Device, SimulatedEngine, Tester};
use results::record::LimitedBy;
use stats::Random;
use trial::{Conditions, Goal, Outcome, Ramp, Search, Strategy as _, WarmUp};

/// 10 Gb/s in frames of 64 bytes.
const LINE_RATE_PPS: f64 = 14_880_952.38;
/// How long a search may take at most on such a host …
const TIME_LIMIT: Duration = Duration::from_secs(40);
/// … and what the truth may be hidden by: half a width by the device's queue.
const HIDDEN: f64 = 0.0025;

/// An interval, and whether it is marked as one that interference may have changed.
#[derive(Clone, Copy, Debug)]
struct Found {
    lower_pps: f64,
    upper_pps: Option<f64>,
    is_marked: bool,
}

impl Found {
    /// Whether it holds the truth, of which a queue or a loss threshold may hide this share.
    fn holds(&self, truth: f64, hidden: f64) -> bool {
        self.lower_pps <= truth * (1.0 + hidden) && self.upper_pps.is_none_or(|upper| upper >= truth)
    }
}

/// What was found of a device, and the truth.
struct Run {
    truth: f64,
    hidden: f64,
    found: Found,
    took: Duration,
}

fn conditions() -> Conditions {
    Conditions {
        warm_up: WarmUp { pps: 1_000.0, duration: SECOND },
        step: Duration::from_millis(100),
        drain: Duration::from_millis(200),
        loss_threshold: 0.001,
        line_rate_bps: 10e9,
    }
}

/// The device of a run, and its host.
fn draw(seed: u64) -> (f64, Device, Host) {
    let mut random = Random::new(seed);
    let capacity = (30_000.0 * 30.0_f64.powf(random.uniform())).round();
    let rate = 1.0 + 9.0 * random.uniform();
    let host = Host::new(&mut random, rate);
    let queue = 16 + random.below(241) as u64;
    (capacity, Device { queue, disturbances: host.disturbances(), ..device(capacity) }, host)
}

fn search(goals: &[Goal], max_duration: Duration) -> Search {
    Search {
        conditions: conditions(),
        goals: goals.to_vec(),
        min_pps: 1_000.0,
        max_pps: LINE_RATE_PPS,
        expected: None,
        max_duration,
    }
}

fn of_goal(outcome: &Outcome, goal: &str) -> Found {
    let result = outcome.finding.results()[goal];
    Found {
        lower_pps: result.lower_pps,
        upper_pps: result.upper_pps,
        is_marked: result.disturbed || result.irregular.is_some() || result.limited_by != LimitedBy::Dut,
    }
}

fn of_ramp(outcome: &Outcome) -> Found {
    let evidence = outcome.directions[0].evidence.unwrap();
    let limit = evidence.limit.unwrap();
    Found { lower_pps: limit.lower_pps, upper_pps: limit.upper_pps, is_marked: evidence.interference_matters }
}

fn ramp(seed: u64, rise: Duration) -> Run {
    let (capacity, device, mut host) = draw(seed);
    let strategy =
        Ramp { conditions: conditions(), target_pps: 1e6, rise, hold: SECOND, search: Duration::ZERO };
    let mut engine = Clocked::new(SimulatedEngine::new(device, Tester::default()), &host);
    let outcome = strategy.run(&mut engine, &mut host);
    Run { truth: capacity, hidden: 0.001, found: of_ramp(&outcome), took: engine.now() }
}

fn searched(seed: u64, search: &Search, hidden: f64) -> Vec<Run> {
    let (capacity, device, mut host) = draw(seed);
    let mut engine = Clocked::new(SimulatedEngine::new(device, Tester::default()), &host);
    let outcome = search.run(&mut engine, &mut host);
    let run = |goal: &Goal| {
        let found = of_goal(&outcome, &goal.name);
        Run { truth: capacity / (1.0 - goal.loss_ratio), hidden, found, took: engine.now() }
    };
    search.goals.iter().map(run).collect()
}

/// Of `runs`, at least 95 in a hundred hold the truth, at most one in a hundred is wrong without a mark, and
/// four in five have an upper bound.
#[track_caller]
fn hold_the_truth(what: &str, runs: &[Run]) {
    let wrong: Vec<_> = runs.iter().filter(|run| !run.found.holds(run.truth, run.hidden)).collect();
    let told = |run: &&Run| format!("{}: {:?}", run.truth, run.found);
    let words: Vec<String> = wrong.iter().map(told).collect();
    let silent = wrong.iter().filter(|run| !run.found.is_marked).count();
    let marked = runs.iter().filter(|run| run.found.is_marked).count();
    let open = runs.iter().filter(|run| run.found.upper_pps.is_none()).count();
    let mut took: Vec<f64> = runs.iter().map(|run| run.took.as_secs_f64()).collect();
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    eprintln!(
        "{what}: {} runs, {} wrong ({silent} without a mark), {marked} marked, {open} without an upper bound; \
         took {:.1} s, {:.1} in the median, {:.1} at most; {words:?}",
        runs.len(),
        wrong.len(),
        at(0.0),
        at(0.5),
        at(1.0),
    );
    assert!(wrong.len() * 20 <= runs.len(), "{what}: {words:?}");
    assert!(silent * 100 <= runs.len(), "{what}: {silent} are wrong without a mark: {words:?}");
    assert!(open * 5 <= runs.len(), "{what}: {open} without an upper bound");
}

fn ramps_hold_the_truth(runs: u64) {
    let runs: Vec<Run> = (0..runs).map(|seed| ramp(seed, 10 * SECOND)).collect();
    hold_the_truth("ramp", &runs);
}

/// How long the load rises in a cell of the quick bench, and how long its search takes at most.
const QUICK: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(3));

/// The cell of a quick bench: a short ramp, and a short search for what it shows.
fn quick(seed: u64) -> (Run, Option<f64>) {
    let (capacity, device, mut host) = draw(seed);
    let strategy = Ramp {
        conditions: Conditions { step: Duration::from_millis(50), ..conditions() },
        target_pps: 1e6,
        rise: QUICK.0,
        hold: SECOND / 2,
        search: QUICK.1,
    };
    let mut engine = Clocked::new(SimulatedEngine::new(device, Tester::default()), &host);
    let outcome = strategy.run(&mut engine, &mut host);
    let ramp = outcome.directions[0].evidence.unwrap().ramp;
    // Half of the width by the device's queue, and the loss threshold.
    let hidden = (512.0 * 12.0 / (capacity * QUICK.0.as_secs_f64())).max(0.01) / 2.0 + 0.001;
    let run = Run { truth: capacity, hidden, found: of_ramp(&outcome), took: engine.now() };
    (run, ramp.map(|it| width(it.lower_pps, it.upper_pps)))
}

/// The width of an interval relative to its lower bound.
fn width(lower_pps: f64, upper_pps: Option<f64>) -> f64 {
    upper_pps.map_or(f64::INFINITY, |upper| upper / lower_pps - 1.0)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Their intervals hold the truth, and are much narrower than those of the ramps alone.
fn quick_benches_hold_the_truth(runs: u64) {
    let (runs, ramps): (Vec<Run>, Vec<Option<f64>>) = (0..runs).map(|seed| quick(1_000 + seed)).unzip();
    hold_the_truth("quick bench", &runs);
    let widths = || runs.iter().map(|run| width(run.found.lower_pps, run.found.upper_pps));
    let alone = ramps.iter().zip(widths()).map(|(ramp, width)| ramp.unwrap_or(width));
    let (alone, narrowed) = (median(alone.collect()), median(widths().collect()));
    eprintln!(
        "quick bench: {:.1} % wide in the median, ramps alone {:.1} %; {} narrowed",
        narrowed * 100.0,
        alone * 100.0,
        ramps.iter().flatten().count()
    );
    assert!(narrowed * 2.0 <= alone, "{narrowed} is not much narrower than {alone}");
}

fn searches_hold_the_truth(runs: u64) {
    let usual = search(&[Goal::ndr(), Goal::pdr()], TIME_LIMIT);
    let runs: Vec<Run> = (0..runs).flat_map(|seed| searched(2_000 + seed, &usual, HIDDEN)).collect();
    hold_the_truth("search", &runs);
}

#[test]
fn a_hundred_of_each_hold_the_truth_on_a_host_that_interrupts() {
    ramps_hold_the_truth(100);
    quick_benches_hold_the_truth(100);
    searches_hold_the_truth(100);
}

#[test]
#[ignore = "takes a minute: make test-long"]
fn a_thousand_of_each_hold_the_truth_on_a_host_that_interrupts() {
    ramps_hold_the_truth(1000);
    quick_benches_hold_the_truth(1000);
    searches_hold_the_truth(1000);
}
