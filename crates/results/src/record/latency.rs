//! What a latency test found: the time between departure and return, at each load that was tried.

use serde::{Deserialize, Serialize};

/// The distributions of a latency test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LatencyTest {
    /// The load of each direction that shares refer to, in frames per second: the PDR of the same run's search,
    /// or what was given. Absent if no load was a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_pps: Option<f64>,
    /// Whether `reference_pps` was found by a search in this run.
    pub searched: bool,
    /// One for each load, the lowest first.
    pub loads: Vec<LoadLatency>,
    /// What the time stamps do not show, in words.
    pub unseen: Vec<String>,
}

/// One load of a latency test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoadLatency {
    /// What it is called, like `unloaded`, `50%` or `20 kpps`.
    pub name: String,
    /// Its share of `reference_pps`, if it was chosen as one: 1.1 is an overload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The load asked for, of each direction, in frames per second.
    pub load_pps: f64,
    /// When it began, since the run's start.
    pub at_s: f64,
    /// How long it was offered, in seconds.
    pub duration_s: f64,
    /// What disturbed it, though it was repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
    /// One for each direction.
    pub directions: Vec<Distribution>,
}

/// The distribution of the time between departure and return, of one direction at one load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Distribution {
    /// `0->1` or `1->0`.
    pub name: String,
    /// The load that left, in frames per second.
    pub offered_pps: f64,
    /// Frames that left.
    pub offered: u64,
    /// Frames of these that came back, so many values has the distribution.
    pub forwarded: u64,
    /// Frames that the tester gave up sending.
    pub unsent: u64,
    /// (offered − forwarded) / offered.
    pub loss_ratio: f64,
    /// Shortest, in nanoseconds; exact. This and what follows are 0 or absent if nothing came back.
    pub min_ns: u64,
    /// Mean, in nanoseconds; exact.
    pub mean_ns: f64,
    /// Longest, in nanoseconds; exact.
    pub max_ns: u64,
    /// Percentiles, to the histogram's 3 %.
    pub percentiles: Percentiles,
    /// Percentiles of the packet delay variation of RFC 5481 §4.2: each delay minus the shortest.
    pub pdv: Percentiles,
    /// (lowest value of the bucket in ns, count).
    pub histogram_ns: Vec<(u64, u64)>,
}

/// Percentiles in nanoseconds, those absent that too few frames would have to tell: there must be
/// ten beyond each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Percentiles {
    /// Median, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<f64>,
    /// 90th percentile, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90_ns: Option<f64>,
    /// 99th percentile, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<f64>,
    /// 99.9th percentile, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_9_ns: Option<f64>,
    /// 99.99th percentile, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_99_ns: Option<f64>,
}

impl Percentiles {
    /// What each is called, with the frames of which one is beyond it.
    pub const KINDS: [(&str, u64); 5] =
        [("p50", 2), ("p90", 10), ("p99", 100), ("p99.9", 1_000), ("p99.99", 10_000)];
    /// The frames that must be beyond a percentile.
    pub const BEYOND: u64 = 10;

    /// Percentiles of `frames` values, `value` of each share that is at or below it; none of those
    /// that too few frames are beyond.
    pub fn of(frames: u64, value: impl Fn(f64) -> Option<f64>) -> Self {
        let [p50_ns, p90_ns, p99_ns, p99_9_ns, p99_99_ns] = Self::KINDS.map(|(_, one_in)| {
            let enough = frames >= Self::BEYOND * one_in;
            value(1.0 - 1.0 / one_in as f64).filter(|_| enough)
        });
        Self { p50_ns, p90_ns, p99_ns, p99_9_ns, p99_99_ns }
    }

    /// All of them, in the order of [`Percentiles::KINDS`].
    #[must_use]
    pub fn values(&self) -> [Option<f64>; 5] {
        [self.p50_ns, self.p90_ns, self.p99_ns, self.p99_9_ns, self.p99_99_ns]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_ten_frames_beyond_it() {
        let told = |frames| Percentiles::of(frames, Some).values().iter().flatten().count();
        assert_eq!([0, 19, 20, 99, 100, 999, 1_000].map(told), [0, 0, 1, 1, 2, 2, 3]);
        assert_eq!([9_999, 10_000, 99_999, 100_000].map(told), [3, 4, 4, 5]);
        assert_eq!(Percentiles::of(100_000, Some).p99_9_ns, Some(0.999));
        assert_eq!(Percentiles::of(u64::MAX, |_| None), Percentiles::default());
    }
}
