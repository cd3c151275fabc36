//! What the tests of RFC 2544 found at one frame size, with what they deviate from it in.
//!
//! Rates are those of each direction; where two directions are loaded at once, both have this rate.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Irregular, Latency, LimitedBy};

/// The tests of RFC 2544 section 26 at one frame size, or one sequence of sizes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rfc2544 {
    /// Whether durations and repeats were short ones: the result does not conform to RFC 2544 then.
    pub quick: bool,
    /// All in which the tests deviate from the RFCs, by name.
    pub deviations: Vec<Deviation>,
    /// The maximum theoretical frame rate, in frames per second: what the line carries of these frames.
    pub theoretical_pps: f64,
    /// Section 26.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// Section 26.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyAtThroughput>,
    /// Section 26.3, from the highest load down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss: Vec<LossPoint>,
    /// Section 26.4, as RFC 9004 section 6 updates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_to_back: Option<BackToBack>,
    /// Section 26.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Section 26.6, as RFC 6201 section 4 updates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<Reset>,
    /// Tests that were asked for but not run, by name, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_run: BTreeMap<String, String>,
}

impl Rfc2544 {
    /// Whether the test of this name left a result.
    #[must_use]
    pub fn has(&self, test: &str) -> bool {
        match test {
            "throughput" => self.throughput.is_some(),
            "latency" => self.latency.is_some(),
            "loss" => !self.loss.is_empty(),
            "back-to-back" => self.back_to_back.is_some(),
            "recovery" => self.recovery.is_some(),
            "reset" => self.reset.is_some(),
            _ => false,
        }
    }

    /// Says of each of these tests that left nothing, and of which nothing else is said, that it did
    /// not come to its turn.
    pub fn name_what_is_missing<'a>(&mut self, tests: impl IntoIterator<Item = &'a str>) {
        for test in tests {
            if !self.has(test) {
                self.not_run.entry(test.to_owned()).or_insert_with(|| "the run ended before".to_owned());
            }
        }
    }
}

/// Something that the RFCs ask for and that was done otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Deviation {
    /// Its name, like `latency-of-every-frame`.
    pub name: String,
    /// What was done instead, and where it is asked for.
    pub text: String,
}

/// The highest rate without loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Throughput {
    /// The rate that was proved, in frames per second; 0 if no load passed without loss.
    pub pps: f64,
    /// The lowest rate at which frames were lost, in frames per second; absent if there was none.
    pub upper_pps: Option<f64>,
    /// What limited it.
    pub limited_by: LimitedBy,
    /// Why it is no regular result, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irregular: Option<Irregular>,
}

/// Latency at the throughput.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LatencyAtThroughput {
    /// The load, in frames per second.
    pub load_pps: f64,
    /// How long each stream was, in seconds.
    pub stream_s: f64,
    /// The mean over all streams of each stream's mean, one for each direction, in nanoseconds.
    pub mean_ns: Vec<f64>,
    /// The streams, in order of time.
    pub streams: Vec<LatencyStream>,
}

/// One stream of frames whose latency was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LatencyStream {
    /// One for each direction; absent where nothing came back.
    pub directions: Vec<Option<Latency>>,
    /// Frames that were lost in all directions.
    pub lost: u64,
    /// What disturbed it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
}

/// Loss at one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LossPoint {
    /// The load, in percent of the maximum theoretical rate.
    pub load_percent: f64,
    /// The same in frames a second.
    pub intended_pps: f64,
    /// What the tester really sent, the mean of the directions, in frames per second.
    pub offered_pps: f64,
    /// Lost of offered, all directions together.
    pub loss_ratio: f64,
    /// Whether the tester could not send this load: the loss is that of what it did send.
    pub tester_limited: bool,
    /// What disturbed it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
}

/// The longest bursts at the maximum theoretical rate that the device forwards without loss.
/// The buffer times are those of RFC 9004 section 6.4.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BackToBack {
    /// Whether the tester could not send at the maximum theoretical rate: nothing was measured.
    pub tester_limited: bool,
    /// The longest burst without loss of each repeat, in frames of one direction.
    pub bursts: Vec<u64>,
    /// The longest burst that was tried, in frames.
    pub longest_tried: u64,
    /// Whether it passed in some repeat: then the device may be able to do more.
    pub longest_passed: bool,
    /// Mean of `bursts`, in frames.
    pub average: f64,
    /// The shortest of them, in frames.
    pub min: u64,
    /// The longest of them, in frames.
    pub max: u64,
    /// Their standard deviation in frames; 0 for a single one.
    pub standard_deviation: f64,
    /// `average` over the maximum theoretical rate, in seconds.
    pub implied_buffer_s: f64,
    /// The same without the share of frames that the device forwarded meanwhile, in seconds.
    pub corrected_buffer_s: f64,
    /// Bursts whose loss the machine may account for: they were taken as lost.
    pub disturbed: usize,
}

/// How long losses go on after an overload has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Recovery {
    /// The overload, in frames per second: 110 % of the throughput, or what the line carries.
    pub overload_pps: f64,
    /// How long it was offered, in seconds.
    pub overload_s: f64,
    /// The load after it, in frames per second: half of the overload.
    pub reduced_pps: f64,
    /// How long that was watched, in seconds.
    pub watched_s: f64,
    /// Whether the tester could not send the overload.
    pub tester_limited: bool,
    /// In order of time.
    pub repeats: Vec<RecoveryRepeat>,
    /// The mean of the repeats that recovered, in seconds; absent if none did.
    pub average_s: Option<f64>,
}

/// One repeat of the recovery test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecoveryRepeat {
    /// From the end of the overload to the last frame lost, but for losses that the machine may account for, in
    /// seconds; absent if losses went on to the end.
    pub recovery_s: Option<f64>,
    /// By how much the time may be too long, in seconds.
    pub resolution_s: f64,
    /// The share of the frames that was lost in the overload.
    pub overload_loss_ratio: f64,
    /// Frames lost after it.
    pub lost_after: u64,
    /// What disturbed it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
}

/// How long the device forwarded nothing when it was reset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reset {
    /// The load, in frames per second.
    pub load_pps: f64,
    /// Frames lost in all directions, and frames that the tester's ports did not take, as when the device
    /// takes its links down.
    pub lost: u64,
    /// Lost frames over offered rate (RFC 6201 section 1.3), in seconds.
    pub outage_s: f64,
    /// From the reset until nothing was lost any more, but what the machine may account for; known
    /// to a tenth of a second, and absent if losses went on to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_s: Option<f64>,
    /// How long was watched after the reset, in seconds.
    pub watched_s: f64,
    /// Whether nothing was lost any more in the end, but what the machine may account for; else the
    /// outage was longer.
    pub came_back: bool,
    /// What disturbed it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
}
