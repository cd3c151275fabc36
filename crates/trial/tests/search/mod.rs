//! Searches find what simulated devices truly do, say what they could not find, and end in time.

mod devices;
mod laws;
mod noise;
mod refusals;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::SECOND;
use engine::Engine;
use engine::simulated::{Device, SimulatedEngine, Tester};
use results::record::{GoalResult, LimitedBy, Status, Trial};
use trial::{Conditions, Goal, Observer, Outcome, Search, Silent, Strategy as _, WarmUp};

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
        expected: None,
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
