//! A log-linear histogram of durations in nanoseconds, the twin of the one the kernel fills.
//!
//! Bucket counts enter; percentiles leave. Each power of two is split into 32 linear buckets,
//! so that a value is known within 1/32 (3.1 %) of itself; below 32 ns buckets are exact.
//! (The scheme of `HdrHistogram` by Gil Tene, with five bits of precision.)

use serde::{Deserialize, Serialize};

/// Bits of linear precision in each power of two.
pub const PRECISION_BITS: u32 = 5;
/// Values at or above 2 to this power are counted in the last bucket (about 34 s).
pub const MAX_BITS: u32 = 35;
/// Number of buckets.
pub const BUCKETS: usize = ((MAX_BITS - PRECISION_BITS + 1) as usize) << PRECISION_BITS;

/// Counts of durations, by bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(usize, u64)>", into = "Vec<(usize, u64)>")]
pub struct Histogram {
    counts: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS] }
    }
}

/// The stored form: only buckets that are not empty, as (lowest value in ns, count).
impl From<Histogram> for Vec<(usize, u64)> {
    fn from(histogram: Histogram) -> Self {
        let filled = histogram.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(bucket, count)| (lower_bound(bucket) as usize, *count)).collect()
    }
}

impl From<Vec<(usize, u64)>> for Histogram {
    fn from(pairs: Vec<(usize, u64)>) -> Self {
        let mut histogram = Self::default();
        for (value, count) in pairs {
            histogram.record(value as u64, count);
        }
        histogram
    }
}

/// The bucket that counts `value` nanoseconds.
#[must_use]
pub fn bucket(value: u64) -> usize {
    let value = value.min((1 << MAX_BITS) - 1);
    let log = 63 - (value | 1).leading_zeros();
    if log < PRECISION_BITS {
        return value as usize;
    }
    let shift = log - PRECISION_BITS;
    (((shift + 1) as usize) << PRECISION_BITS) + ((value >> shift) as usize - (1 << PRECISION_BITS))
}

/// The lowest value that `bucket` counts.
#[must_use]
pub fn lower_bound(bucket: usize) -> u64 {
    let linear = 1usize << PRECISION_BITS;
    if bucket < linear {
        return bucket as u64;
    }
    let shift = (bucket >> PRECISION_BITS) - 1;
    ((linear + (bucket & (linear - 1))) as u64) << shift
}

impl Histogram {
    /// A histogram from the raw counts of [`BUCKETS`] buckets; missing ones are empty.
    #[must_use]
    pub fn from_counts(mut counts: Vec<u64>) -> Self {
        counts.resize(BUCKETS, 0);
        Self { counts }
    }

    /// Counts `value` nanoseconds `count` times.
    pub fn record(&mut self, value: u64, count: u64) {
        self.counts[bucket(value)] += count;
    }

    /// How many values were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The smallest value that at least `percent` of all values are at or below, to the
    /// precision of its bucket (its middle is returned). `None` when nothing was counted.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let total = self.total();
        let rank = ((percent / 100.0 * total as f64).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if *count > 0 && seen >= rank {
                let low = lower_bound(index);
                return Some(low + (lower_bound(index + 1) - low) / 2);
            }
        }
        None
    }

    /// The value that the share `quantile` of all values, 0 to 1, is at or below, interpolated as
    /// if the values of a bucket lay at equal distances in it. `None` when nothing was counted.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        let rank = quantile.clamp(0.0, 1.0) * self.total() as f64;
        let mut before = 0;
        for (index, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            if (before + count) as f64 >= rank {
                let (low, next) = (lower_bound(index) as f64, lower_bound(index + 1) as f64);
                return Some(low + (next - low) * (rank - before as f64) / *count as f64);
            }
            before += count;
        }
        None
    }

    /// What was counted since `earlier`, an earlier state of the same histogram.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let pairs = self.counts.iter().zip(&earlier.counts);
        Self { counts: pairs.map(|(now, then)| now.saturating_sub(*then)).collect() }
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
    }

    /// The `count` smallest values alone; all of them where there are fewer.
    #[must_use]
    pub fn smallest(&self, count: u64) -> Self {
        let mut left = count;
        let taken = |of: &u64| {
            let taken = (*of).min(left);
            left -= taken;
            taken
        };
        Self { counts: self.counts.iter().map(taken).collect() }
    }

    /// The filled buckets as (lowest value in ns, count).
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(index, count)| (lower_bound(index), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_and_hold_their_own_bounds() {
        for index in 0..BUCKETS {
            assert_eq!(bucket(lower_bound(index)), index);
            if index > 0 {
                assert_eq!(bucket(lower_bound(index) - 1), index - 1);
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_within_a_bucket() {
        let mut histogram = Histogram::default();
        for value in 1..=1000u64 {
            histogram.record(value * 1000, 1);
        }
        for percent in [1.0, 50.0, 90.0, 99.0, 100.0] {
            let truth = percent * 10_000.0;
            let seen = histogram.percentile(percent).unwrap() as f64;
            assert!((seen - truth).abs() / truth < 0.032, "{percent}: {seen} for {truth}");
        }
        assert_eq!(Histogram::default().percentile(50.0), None);
    }

    #[test]
    fn quantiles_lie_between_the_values_of_a_bucket() {
        let mut histogram = Histogram::default();
        // One bucket: all from 65,536 to 67,583.
        (0..2048).for_each(|value| histogram.record(65_536 + value, 1));
        for quantile in [0.0, 0.25, 0.5, 0.999, 1.0] {
            assert_eq!(histogram.quantile(quantile), Some(65_536.0 + 2048.0 * quantile));
        }
        histogram.record(1_000_000, 2048);
        assert_eq!(histogram.quantile(0.5), Some(67_584.0));
        assert!(histogram.quantile(0.501).unwrap() >= lower_bound(bucket(1_000_000)) as f64);
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn the_stored_form_round_trips() {
        let mut histogram = Histogram::default();
        histogram.record(7, 2);
        histogram.record(123_456, 1);
        let text = serde_json::to_string(&histogram).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
    }

    #[test]
    fn the_smallest_values_can_be_taken_alone() {
        let mut histogram = Histogram::default();
        [(10, 3), (2_000, 4), (50_000, 2)].iter().for_each(|(value, count)| histogram.record(*value, *count));
        let smallest: Vec<_> = histogram.smallest(5).buckets().collect();
        assert_eq!(smallest, [(10, 3), (lower_bound(bucket(2_000)), 2)]);
        assert_eq!(histogram.smallest(0).total(), 0);
        assert_eq!(histogram.smallest(u64::MAX), histogram);
    }
}
