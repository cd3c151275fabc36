//! What was measured in one interval of a run, direction by direction.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Which part of a run a sample belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Before measuring: does traffic pass at all?
    WarmUp,
    /// The load rises.
    Ramp,
    /// The load stays.
    Hold,
    /// One trial of a search.
    Trial,
}

/// What was measured during one interval of constant load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sample {
    /// When it began, since the run's start.
    pub at_s: f64,
    /// How long it took, in seconds.
    pub duration_s: f64,
    /// Which part of the run it belongs to.
    pub phase: Phase,
    /// How busy the DUT's core was, 0 to 1, where that is known.
    pub dut_core_busy: Option<f64>,
    /// What the machine did meanwhile beside the measurement, in words, if that disturbed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
    /// The share of its frames whose loss that may account for, an upper estimate; absent where
    /// nobody estimated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// One for each direction.
    pub directions: Vec<DirectionSample>,
}

/// One direction of a [`Sample`]. Loss = offered − forwarded; unsent frames are neither.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DirectionSample {
    /// The load asked for, in frames per second.
    pub intended_pps: f64,
    /// The load that left, in frames per second.
    pub offered_pps: f64,
    /// What came back, counted under the interval it left in, in frames per second.
    pub forwarded_pps: f64,
    /// Frames that left: the port's driver took them.
    pub offered: u64,
    /// Frames of these that came back.
    pub forwarded: u64,
    /// Frames that the tester gave up: they were too late, or the port did not take them.
    pub unsent: u64,
    /// Those that the port did not take, by its reason in words; the others were too late.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub untaken: BTreeMap<String, u64>,
    /// (offered − forwarded) / offered.
    pub loss_ratio: f64,
    /// What came back, with 20 bytes of overhead a frame, in bits per second.
    pub l1_bps: f64,
    /// What came back, without that overhead, in bits per second.
    pub l2_bps: f64,
    /// The frames that left while nothing was interrupted, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undisturbed: Option<Undisturbed>,
    /// Time between departure and return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
}

/// Frames that left while the machine kept neither the tester nor the device from working.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Undisturbed {
    /// Frames that left.
    pub offered: u64,
    /// Frames of these that came back.
    pub forwarded: u64,
    /// Frames of these that left in the last quarter of a trial; 0 where that is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late_offered: u64,
    /// Frames of those that came back.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late_forwarded: u64,
}

/// Whether a count that files may lack is nought.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde wants it so
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Undisturbed {
    /// The loss ratio of the frames that left in the last quarter of a trial; `None` where that is not known.
    #[must_use]
    pub fn late_loss_ratio(&self) -> Option<f64> {
        let lost = self.late_offered.saturating_sub(self.late_forwarded);
        (self.late_offered > 0).then(|| lost as f64 / self.late_offered as f64)
    }

    /// (offered − forwarded) / offered.
    #[must_use]
    pub fn loss_ratio(&self) -> f64 {
        self.offered.saturating_sub(self.forwarded) as f64 / self.offered.max(1) as f64
    }
}

/// A summary of the time between departure and return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Latency {
    /// Shortest, in nanoseconds.
    pub min_ns: u64,
    /// Mean, in nanoseconds.
    pub mean_ns: f64,
    /// Median, to the histogram's 3 %, in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile, to the histogram's 3 %, in nanoseconds.
    pub p99_ns: u64,
    /// Longest, in nanoseconds.
    pub max_ns: u64,
}
