//! Ranks of differences: two sets of numbers that were measured pair by pair enter; whether one
//! tends to be larger, and by how much, leaves. Assumed is only that the differences spread alike to
//! both sides.
//!
//! The test is that of Wilcoxon (Individual comparisons by ranking methods, Biometrics Bulletin 1,
//! 1945), the shift the median of the means of all pairs of differences (Hodges and Lehmann), its
//! interval as in M. Hollander and D. A. Wolfe, Nonparametric Statistical Methods, section 3.3.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::trend::median;

/// Up to so many differences every arrangement of signs is counted; beyond, the sum of ranks is
/// near enough to normal.
const COUNTED: usize = 60;

/// What signed ranks say of two sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRanks {
    /// How probable so uneven signs are, either way, if the sets are alike.
    pub p: f64,
    /// The difference, value less reference.
    pub shift: f64,
    /// The interval that holds the true one but for the error asked for; `None` if there are too
    /// few pairs for it.
    pub interval: Option<(f64, f64)>,
}

impl SignedRanks {
    /// `values` against what stands in the same place of `reference`; `None` without any pair.
    #[must_use]
    pub fn new(reference: &[f64], values: &[f64], error: f64) -> Option<Self> {
        let differences: Vec<f64> =
            values.iter().zip(reference).map(|(value, other)| value - other).collect();
        let pairs = differences.iter().enumerate();
        let means = pairs
            .flat_map(|(at, one)| differences[at..].iter().map(move |other| f64::midpoint(*one, *other)));
        let mut means: Vec<f64> = means.collect();
        means.sort_by(f64::total_cmp);
        Some(Self {
            shift: median(&means)?,
            p: p(&differences),
            interval: interval(&means, differences.len(), error),
        })
    }
}

/// The least p that so many pairs can have.
#[must_use]
pub fn least_p(pairs: usize) -> f64 {
    (2.0 * 0.5f64.powi(i32::try_from(pairs).unwrap_or(i32::MAX))).min(1.0)
}

/// Differences of nothing have no sign and are left out; equal ones share the mean of their ranks.
fn p(differences: &[f64]) -> f64 {
    let signed: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    // Twice the ranks, from 1.
    let rank = |difference: &f64| {
        let size = difference.abs();
        let below = signed.iter().filter(|other| other.abs() < size).count();
        let equal = signed.iter().filter(|other| other.abs() == size).count();
        2 * below + equal + 1
    };
    let ranks: Vec<usize> = signed.iter().map(rank).collect();
    let sum: usize = signed.iter().zip(&ranks).filter(|(sign, _)| **sign > 0.0).map(|(_, rank)| rank).sum();
    let (at_most, at_least) = if ranks.len() <= COUNTED {
        let chances = chances(&ranks);
        (chances.iter().take(sum + 1).sum::<f64>(), chances.iter().skip(sum).sum::<f64>())
    } else {
        approximate(&ranks, sum as f64)
    };
    (2.0 * at_most.min(at_least)).min(1.0)
}

/// The chance of each sum of the ranks that a fair coin chooses.
fn chances(ranks: &[usize]) -> Vec<f64> {
    let mut chances = vec![0.0; ranks.iter().sum::<usize>() + 1];
    chances[0] = 1.0;
    for rank in ranks {
        for sum in (0..chances.len()).rev() {
            let with = sum.checked_sub(*rank).map_or(0.0, |before| chances[before]);
            chances[sum] = f64::midpoint(chances[sum], with);
        }
    }
    chances
}

/// The chances that the sum is at most and at least `sum`, by the normal distribution, with half a
/// rank for continuity.
fn approximate(ranks: &[usize], sum: f64) -> (f64, f64) {
    let mean = ranks.iter().sum::<usize>() as f64 / 2.0;
    let variance = ranks.iter().map(|rank| (*rank as f64).powi(2)).sum::<f64>() / 4.0;
    let Ok(normal) = Normal::new(mean, variance.sqrt()) else { return (1.0, 1.0) };
    (normal.cdf(sum + 1.0), 1.0 - normal.cdf(sum - 1.0))
}

/// Between two of the sorted means, as many from each end as the test would not call uneven.
fn interval(means: &[f64], pairs: usize, error: f64) -> Option<(f64, f64)> {
    let outside = if pairs <= COUNTED {
        let mut seen = 0.0;
        let too_uneven = |chance: &&f64| {
            seen += **chance;
            seen <= error / 2.0
        };
        chances(&(1..=pairs).collect::<Vec<_>>()).iter().take_while(too_uneven).count()
    } else {
        let n = pairs as f64;
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        let deviate = Normal::new(0.0, 1.0).ok()?.inverse_cdf(1.0 - error / 2.0);
        (n * (n + 1.0) / 4.0 - deviate * deviation).max(0.0) as usize
    };
    let low = means.get(outside.checked_sub(1)?)?;
    Some((*low, *means.get(means.len().checked_sub(outside)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn of(differences: &[f64]) -> SignedRanks {
        SignedRanks::new(&vec![0.0; differences.len()], differences, 0.05).unwrap()
    }

    /// Depression scores of Hollander and Wolfe, example 3.1: T+ = 5 of nine patients, p = 0.0391.
    #[test]
    fn small_sets_are_counted_exactly() {
        let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.139, 1.29];
        let ranks = SignedRanks::new(&before, &after, 0.05).unwrap();
        assert!((ranks.p - 0.039_062_5).abs() < 1e-12, "{ranks:?}");
        assert!((ranks.shift + 0.46).abs() < 1e-9, "{ranks:?}");
        for pairs in 1..=8usize {
            let all: Vec<f64> = (1..=pairs).map(|at| at as f64).collect();
            assert!((of(&all).p - least_p(pairs)).abs() < 1e-12);
            // Six pairs are the fewest that tell at 95 %.
            assert_eq!(of(&all).interval.is_some(), pairs >= 6);
        }
    }

    #[test]
    fn what_does_not_differ_says_nothing() {
        assert_eq!(of(&[0.0; 6]).p, 1.0);
        assert_eq!(of(&[1.0, -1.0]).p, 1.0);
        assert_eq!(SignedRanks::new(&[], &[1.0], 0.05), None);
    }

    #[test]
    fn the_normal_distribution_takes_over_smoothly() {
        let mut random = Random::new(4);
        for _ in 0..50 {
            let differences: Vec<f64> = (0..60).map(|_| random.normal() + 0.2).collect();
            let exact = of(&differences).p;
            let mut sorted: Vec<f64> = differences.clone();
            sorted.sort_by(|one, other| one.abs().total_cmp(&other.abs()));
            let ranks: Vec<usize> = (1..=60).map(|rank| 2 * rank).collect();
            let sum: usize =
                sorted.iter().zip(&ranks).filter(|(sign, _)| **sign > 0.0).map(|(_, rank)| rank).sum();
            let (at_most, at_least) = approximate(&ranks, sum as f64);
            let near = (2.0 * at_most.min(at_least)).min(1.0);
            assert!((exact - near).abs() < 0.01, "{exact} {near}");
        }
    }

    #[test]
    fn the_interval_holds_the_shift_as_often_as_it_says() {
        for pairs in [6, 12, 80] {
            let mut random = Random::new(pairs as u64);
            let mut holds = || {
                let differences: Vec<f64> = (0..pairs).map(|_| random.normal() + 0.3).collect();
                let ranks = of(&differences);
                let (low, high) = ranks.interval.unwrap();
                assert!(low <= ranks.shift && ranks.shift <= high);
                if pairs <= COUNTED {
                    assert_eq!(low > 0.0 || high < 0.0, ranks.p <= 0.05, "{ranks:?}");
                }
                (low..=high).contains(&0.3)
            };
            let held = (0..1000).filter(|_| holds()).count();
            assert!((935..=985).contains(&held), "{pairs}: {held} of 1000");
        }
    }
}
