//! Our search beside the package MLRsearch 1.2.1 from PyPI (FDio/csit), on the same simulated
//! devices: the same goals give consistent bounds, in no more trial time.
//!
//! Skipped where the package is not installed: in `target/python` of the repository, or where
//! `MLRSEARCH_PYTHON` names an interpreter that has it.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use engine::simulated::{Capacity, Device, Disturbance, SimulatedEngine, Tester};
use engine::{Engine, Load};
use serde_json::{Value, json};
use trial::{Conditions, Goal, Search, Silent, Strategy as _, WarmUp};

const MIN_PPS: f64 = 9_001.0;
const MAX_PPS: f64 = 14_880_952.0;
const DRAIN: Duration = Duration::from_millis(100);

/// The bounds of one goal, and none where none was found.
type Bounds = (Option<f64>, Option<f64>);

/// What one search found for each goal, and the trial time that it took in seconds.
#[derive(Debug)]
struct Found {
    bounds: Vec<Bounds>,
    trial_s: f64,
}

fn interpreter() -> Option<PathBuf> {
    let python = match std::env::var_os("MLRSEARCH_PYTHON") {
        Some(python) => PathBuf::from(python),
        None => root().join("target/python/bin/python3"),
    };
    let probe = Command::new(&python).args(["-c", "import MLRsearch"]).stderr(Stdio::null()).status();
    probe.is_ok_and(|status| status.success()).then_some(python)
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn ours(goals: &[Goal], device: &Device) -> Found {
    let search = Search {
        conditions: Conditions {
            warm_up: WarmUp { pps: MIN_PPS, duration: Duration::ZERO },
            step: DRAIN,
            drain: DRAIN,
            loss_threshold: 0.0,
            line_rate_bps: 10e9,
        },
        goals: goals.to_vec(),
        min_pps: MIN_PPS,
        max_pps: MAX_PPS,
        expected: None,
        max_duration: Duration::from_secs(86_400),
    };
    let mut engine = SimulatedEngine::new(device.clone(), Tester::default());
    let outcome = search.run(&mut engine, &mut Silent);
    let found = outcome.finding.search().expect("a search");
    let bounds = |goal: &Goal| {
        let result = found.results[&goal.name];
        (Some(result.lower_pps).filter(|pps| *pps > 0.0), result.upper_pps)
    };
    Found {
        bounds: goals.iter().map(bounds).collect(),
        trial_s: found.trials.iter().map(|trial| trial.duration_s).sum(),
    }
}

fn theirs(python: &PathBuf, goals: &[Goal], device: &Device) -> Found {
    let goal = |goal: &Goal| {
        json!({
            "loss_ratio": goal.loss_ratio,
            "exceed_ratio": goal.exceed_ratio,
            "relative_width": goal.relative_width,
            "initial_trial_duration": goal.initial_trial_duration.as_secs_f64(),
            "final_trial_duration": goal.final_trial_duration.as_secs_f64(),
            "duration_sum": goal.duration_sum.as_secs_f64(),
        })
    };
    let goals: Vec<Value> = goals.iter().map(goal).collect();
    let mut child = Command::new(python)
        .arg(root().join("tests/mlrsearch_driver.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut input = child.stdin.take().expect("a pipe");
    writeln!(input, "{}", json!({"min_load": MIN_PPS, "max_load": MAX_PPS, "goals": goals}))
        .expect("Python listens");
    let mut engine = SimulatedEngine::new(device.clone(), Tester::default());
    let mut found = Found { bounds: Vec::new(), trial_s: 0.0 };
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        let said: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        if let Some(results) = said["results"].as_array() {
            found.bounds = results.iter().map(|r| (r["lower"].as_f64(), r["upper"].as_f64())).collect();
            continue;
        }
        let duration = said["duration"].as_f64().expect("a number");
        found.trial_s += duration;
        let interval = engine
            .begin(Load::Rate(said["load"].as_f64().expect("a number")))
            .expect("the simulated engine goes on");
        engine.wait(Duration::from_secs_f64(duration)).expect("the simulated engine goes on");
        engine.begin(Load::Idle).expect("the simulated engine goes on");
        engine.wait(DRAIN).expect("the simulated engine goes on");
        let counts = engine.counts(interval).expect("the simulated engine goes on")[0];
        writeln!(input, "{}", json!({"offered": counts.offered, "forwarded": counts.forwarded}))
            .expect("Python listens");
    }
    assert!(child.wait().expect("Python ends").success());
    found
}

/// Both intervals must come as near each other as the goal is wide.
fn assert_consistent(what: &str, goal: &Goal, ours: Bounds, theirs: Bounds) {
    let reach = 1.0 / (1.0 - goal.relative_width);
    let below = |lower: Option<f64>, upper: Option<f64>| {
        lower.zip(upper).is_none_or(|(lower, upper)| lower <= upper * reach)
    };
    let consistent = below(ours.0, theirs.1) && below(theirs.0, ours.1);
    assert!(consistent, "{what}, {}: ours {ours:?}, theirs {theirs:?}", goal.name);
}

/// The reference does not stretch its trials.
fn as_it_is(goal: Goal) -> Goal {
    Goal { hidden_queue: 0, ..goal }
}

fn goal(name: &str, loss_ratio: f64, exceed_ratio: f64, seconds: [f64; 3]) -> Goal {
    let [initial, last, sum] = seconds.map(Duration::from_secs_f64);
    Goal {
        exceed_ratio,
        initial_trial_duration: initial,
        final_trial_duration: last,
        duration_sum: sum,
        ..as_it_is(Goal::new(name, loss_ratio))
    }
}

/// A device of a capacity between 30 k and 3 M frames a second, spread by the golden ratio.
fn steady(seed: u64) -> Device {
    let capacity = 30_000.0 * 100f64.powf((seed as f64 * 0.618_034).fract());
    Device { capacity: Capacity::Each(capacity), queue: 64, seed, ..Device::default() }
}

/// The same, and it loses one frame in a thousand.
fn lossy(seed: u64) -> Device {
    Device { random_loss: 1e-3, ..steady(seed) }
}

/// The same as the first, and slow now and then.
fn uneven(seed: u64) -> Device {
    let share = |n: u64| (seed as f64 * 0.414_214 + n as f64 * 0.732_051).fract();
    let slow = |n: u64| Disturbance {
        from: Duration::from_secs_f64(10.0 * n as f64 + 5.0 * share(n)),
        length: Duration::from_secs_f64(0.2 + share(n + 1)),
        factor: 0.5 + 0.4 * share(n + 2),
    };
    Device { disturbances: (0..200).map(slow).collect(), ..steady(seed) }
}

#[test]
fn bounds_agree_with_the_reference_implementation_in_no_more_trial_time() {
    let Some(python) = interpreter() else {
        eprintln!("skipped: no Python with MLRsearch 1.2.1; make setup installs it in target/python");
        return;
    };
    let goal_sets = [
        ("of our defaults", vec![as_it_is(Goal::ndr()), as_it_is(Goal::pdr())]),
        ("of CSIT", vec![goal("ndr", 0.0, 0.5, [1.0, 1.0, 21.0]), goal("pdr", 0.005, 0.5, [1.0, 1.0, 21.0])]),
        ("as in RFC 2544", vec![goal("throughput", 0.0, 0.0, [1.0, 10.0, 10.0])]),
        ("far apart", vec![goal("odd", 0.02, 0.2, [0.2, 0.7, 5.0]), goal("ndr", 0.0, 0.5, [0.5, 1.0, 5.0])]),
    ];
    let (mut our_s, mut their_s) = (0.0, 0.0);
    for (name, goals) in &goal_sets {
        for (kind, device) in [("steady", steady as fn(u64) -> Device), ("lossy", lossy), ("uneven", uneven)]
        {
            let (mut ours_s, mut theirs_s) = (0.0, 0.0);
            for seed in 1..=6 {
                let device = device(seed);
                let (ours, theirs) = (ours(goals, &device), theirs(&python, goals, &device));
                // What an uneven device does depends on when it is asked: results may differ.
                for ((goal, ours), theirs) in goals.iter().zip(&ours.bounds).zip(&theirs.bounds) {
                    if kind != "uneven" {
                        assert_consistent(&format!("goals {name}, {device:?}"), goal, *ours, *theirs);
                    }
                }
                (ours_s, theirs_s) = (ours_s + ours.trial_s, theirs_s + theirs.trial_s);
            }
            eprintln!(
                "goals {name}, {kind} devices: {ours_s:.0} s of trials, MLRsearch {theirs_s:.0} s, ratio {:.2}",
                ours_s / theirs_s
            );
            (our_s, their_s) = (our_s + ours_s, their_s + theirs_s);
        }
    }
    let ratio = our_s / their_s;
    eprintln!("all: {our_s:.0} s of trials, MLRsearch {their_s:.0} s, ratio {ratio:.2}");
    assert!(ratio <= 1.0, "our search takes {ratio:.2} times the trial time");
}
