//! What all strategies have in common: parameters enter; what the record keeps of them, how long they take,
//! whether they can be carried out, and an [`Outcome`] leave.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::Engine;
use results::record;
use wire::human;

use crate::{Conditions, Failure, Goal, Observer, Outcome};

/// A strategy with its parameters, ready to run.
pub trait Strategy {
    /// Its name and parameters, for the record, as people would give them.
    fn describe(&self) -> record::Strategy;

    /// How long it takes at most, if nothing ends it early and noise of the machine does not delay it.
    fn planned(&self) -> Duration;

    /// Whether it can be carried out. To be asked before anything is set up for it.
    ///
    /// # Errors
    /// [`Failure::Refused`], with cause and remedy.
    fn check(&self) -> Result<(), Failure>;

    /// Runs it. Never fails: the outcome says how it ended.
    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome;
}

/// A strategy as the record keeps it: parameters of its own, and those that all have in common.
#[must_use]
pub fn describe<const N: usize>(
    name: &str,
    own: [(&str, String); N],
    conditions: &Conditions,
) -> record::Strategy {
    let common = [
        ("warm-up", human::pps(conditions.warm_up.pps)),
        ("warm-up-duration", format!("{:?}", conditions.warm_up.duration)),
        ("step", format!("{:?}", conditions.step)),
        ("drain", format!("{:?}", conditions.drain)),
    ];
    record::Strategy {
        name: name.to_owned(),
        parameters: parameters(own).into_iter().chain(parameters(common)).collect(),
        loss_threshold: conditions.loss_threshold,
    }
}

/// Parameters of a strategy as the record keeps them.
#[must_use]
pub fn parameters<const N: usize>(pairs: [(&str, String); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A goal as `--goal` takes it, without its name.
#[must_use]
pub fn describe_goal(goal: &Goal) -> String {
    format!(
        "loss={}%,exceed={}%,width={}%,initial={:?},final={:?},sum={:?},queue={}",
        percent(goal.loss_ratio),
        percent(goal.exceed_ratio),
        percent(goal.relative_width),
        goal.initial_trial_duration,
        goal.final_trial_duration,
        goal.duration_sum,
        goal.hidden_queue
    )
}

/// A share in percent, without the digits that binary fractions add.
pub(crate) fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}
