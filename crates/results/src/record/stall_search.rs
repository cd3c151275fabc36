//! What a stall search found: at which rates the device stops forwarding.

use serde::{Deserialize, Serialize};

use super::SoakStall;

/// The findings of a stall search. Its trials are the samples of the record in the phase `hold`, the recovery checks
/// between them those in the phase `warm-up`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StallSearch {
    /// The lowest load of each direction, in frames per second.
    pub lowest_pps: f64,
    /// The highest load of each direction, in frames per second.
    pub highest_pps: f64,
    /// How long each trial holds its load, in seconds: a stall that needs more time is not found.
    pub hold_s: f64,
    /// How often each load of the ladder is tried.
    pub repeats: usize,
    /// How far apart the loads on both sides of an edge may lie, as a share of the lower one.
    pub width: f64,
    /// The confidence of the intervals for the chance of a stall, in percent.
    pub confidence_percent: f64,
    /// Every load that was to be tried, the lowest first.
    pub rates: Vec<StallRate>,
    /// Runs of neighbouring loads at which the device did the same, the lowest first.
    pub ranges: Vec<StallRange>,
    /// Whether the search ended because the device did not forward again after a stall.
    pub stuck: bool,
}

/// What a device does at a load, or in a range of loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StallVerdict {
    /// It forwarded to the end of every trial.
    Forwards,
    /// It stopped forwarding in at least one trial.
    Stalls,
    /// Not tried, or every trial of it is unknown.
    #[default]
    Unknown,
}

/// What the trials at one load showed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StallRate {
    /// The load of each direction, in frames per second.
    pub pps: f64,
    /// What the device does at it.
    pub verdict: StallVerdict,
    /// Trials that tell whether it stalls.
    pub trials: usize,
    /// Trials of these in which it stalled.
    pub stalled: usize,
    /// Trials that do not tell, with the reason of the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<Untold>,
    /// What was seen in each trial with a stall.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<RateStall>,
}

/// Trials that do not tell whether the device stalls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Untold {
    /// How many.
    pub trials: usize,
    /// Why the last of them does not, like that the tester could not offer the load.
    pub reason: String,
}

/// A stall in a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RateStall {
    /// The direction in which nothing came back: `0->1` or `1->0`; of two, the first.
    pub direction: String,
    /// When the trial began, since the run's start, in seconds.
    pub trial_s: f64,
    /// How long the load had been held when the stall began, in seconds.
    pub after_s: f64,
    /// Frames of the trial that had come back by then, in this direction.
    pub after_frames: u64,
    /// What made the device forward again.
    pub recovery: Recovered,
    /// How long after the end of the trial it was seen to forward again, in seconds; absent if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_s: Option<f64>,
    /// When nothing came back, and the counters before and during that time: the tester's, and the device's own.
    pub stall: SoakStall,
}

/// What made a device forward again after a stall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Recovered {
    /// Nothing: frames came back again before the trial ended.
    DuringTrial,
    /// Nothing but a pause without frames.
    ByItself,
    /// A reset.
    ByReset,
    /// Neither; or the search ended before that was known.
    #[default]
    No,
}

/// Neighbouring loads at which the device did the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StallRange {
    /// What it did.
    pub verdict: StallVerdict,
    /// The lowest load tried in it, in frames per second.
    pub from_pps: f64,
    /// The highest load tried in it, in frames per second.
    pub to_pps: f64,
    /// The highest load tried below it: the range begins above that, and at `from_pps` at most. Absent at the
    /// beginning of the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above_pps: Option<f64>,
    /// The lowest load tried above it: the range ends below that, and at `to_pps` at least. Absent at the end of the
    /// search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below_pps: Option<f64>,
    /// Trials in it that tell.
    pub trials: usize,
    /// Trials of these in which the device stalled.
    pub stalled: usize,
    /// The least chance that a trial stalls, 0 to 1, at the search's confidence.
    pub chance_lower: f64,
    /// The greatest, likewise.
    pub chance_upper: f64,
}
