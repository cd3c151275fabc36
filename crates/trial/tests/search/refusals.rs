//! Searches that cannot be carried out.

use std::time::Duration;

use engine::simulated::Device;
use trial::{Failure, Goal, Search};

use super::{run, search};
use crate::common::SECOND;

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
