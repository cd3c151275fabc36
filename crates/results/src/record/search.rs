//! What a search found: an interval for each goal, and every trial that these follow from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{LimitedBy, Undisturbed};

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Search {
    /// What was found, by goal: all directions added up.
    pub results: BTreeMap<String, GoalResult>,
    /// Whether disturbed trials widened a result; `None` while it goes on.
    pub disturbed: Option<bool>,
    /// What limited it, all directions together; `None` while it goes on.
    pub limited_by: Option<LimitedBy>,
    /// Every trial, in order of time: the results can be recomputed from them.
    pub trials: Vec<Trial>,
}

impl Search {
    /// All that says what limited it, to be changed: of each goal, and all together.
    pub fn limits_mut(&mut self) -> impl Iterator<Item = &mut LimitedBy> {
        let results = self.results.values_mut().map(|result| &mut result.limited_by);
        results.chain(&mut self.limited_by)
    }
}

/// What a search found for one goal: an interval that holds the highest load with no more loss
/// than the goal's. The terms are those of draft-ietf-bmwg-mlrsearch-15.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GoalResult {
    /// The result: the load that was proved, in frames per second; the same as `lower_pps`.
    pub pps: f64,
    /// The relevant lower bound, as it was really offered, in frames per second; 0 if no load passed.
    pub lower_pps: f64,
    /// The relevant upper bound, in frames per second; absent if no load failed.
    pub upper_pps: Option<f64>,
    /// What was forwarded at the lower bound, in frames per second: the conditional throughput.
    pub conditional_throughput_pps: f64,
    /// Why it is no regular result, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irregular: Option<Irregular>,
    /// Whether it is irregular because trials were disturbed.
    pub disturbed: bool,
    /// What limited it.
    pub limited_by: LimitedBy,
}

/// Why the result of a search is not regular.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Irregular {
    /// The highest load passed: the device may forward more.
    MaxLoadIsLowerBound,
    /// The lowest load failed: the device forwards less, if anything.
    MinLoadIsUpperBound,
    /// The interval is wider than the goal asked for.
    Wide,
    /// A bound rests on less trial time than the goal asked for.
    Preliminary,
}

/// One trial of a search: one load for one duration, counted after a drain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Trial {
    /// When it began, since the run's start.
    pub at_s: f64,
    /// Its duration, as asked for, in seconds.
    pub duration_s: f64,
    /// The load asked for, of each direction, in frames per second.
    pub load_pps: f64,
    /// The share of the frames offered in all directions that was lost.
    pub loss_ratio: f64,
    /// Its verdict for each goal.
    pub verdicts: BTreeMap<String, TrialVerdict>,
    /// The share of its frames whose loss the machine may account for, an upper estimate: a loss
    /// proves something only if it exceeds that and what the goal forgives.
    #[serde(default)]
    pub noise: f64,
    /// What the machine did meanwhile, in words, if it was more than usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
    /// How frames came at the device, where it knows: the least length of a burst in frames, and how many
    /// frames came in such. Frames of a burst follow each other faster than twice the device's rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bursts: Vec<(u64, u64)>,
    /// One for each direction.
    pub directions: Vec<TrialDirection>,
}

/// One direction of a [`Trial`]. Loss = offered − forwarded; unsent frames are neither.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrialDirection {
    /// Frames that should have left.
    pub intended: f64,
    /// Frames that left.
    pub offered: u64,
    /// Frames of these that came back.
    pub forwarded: u64,
    /// (offered − forwarded) / offered.
    pub loss_ratio: f64,
    /// The frames that left while nothing was interrupted, where that is known: a loss among these
    /// is the device's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undisturbed: Option<Undisturbed>,
}

/// The verdict on a trial for a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TrialVerdict {
    /// It lost no larger share than the goal forgives.
    LowLoss,
    /// It lost more.
    HighLoss,
    /// The tester offered less than it should have: it proves nothing.
    TesterFellShort,
    /// It lost more, but the machine may account for it: it proves nothing, and was repeated.
    Disturbed,
}
