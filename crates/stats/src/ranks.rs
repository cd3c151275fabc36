//! Ranks instead of values: two sets of numbers enter; whether one tends to be larger, and by how
//! much, leaves. Nothing is assumed of their distribution but that it has the same shape.
//!
//! The test is that of Mann and Whitney (On a test of whether one of two random variables is
//! stochastically larger than the other, Annals of Mathematical Statistics 18, 1947), the shift that
//! of Hodges and Lehmann (Estimates of location based on rank tests, ibid. 34, 1963); its interval
//! as in M. Hollander and D. A. Wolfe, Nonparametric Statistical Methods, section 4.3.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::trend::median;

/// Up to so many values in all, every arrangement is counted; beyond, the sum of ranks is near
/// enough to normal.
const COUNTED: usize = 40;

/// What ranks say of two sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranks {
    /// How probable so uneven ranks are, either way, if the sets are alike.
    pub p: f64,
    /// The median of the differences of all pairs, value less reference.
    pub shift: f64,
    /// The interval that holds the true shift but for the error asked for; `None` if the sets are
    /// too small for it.
    pub interval: Option<(f64, f64)>,
}

impl Ranks {
    /// `values` against `reference`; `None` if one is empty.
    #[must_use]
    pub fn new(reference: &[f64], values: &[f64], error: f64) -> Option<Self> {
        let differences = values.iter().flat_map(|value| reference.iter().map(move |other| value - other));
        let mut differences: Vec<f64> = differences.collect();
        differences.sort_by(f64::total_cmp);
        Some(Self {
            shift: median(&differences)?,
            p: p(reference, values),
            interval: interval(&differences, reference.len(), values.len(), error),
        })
    }
}

/// The least p that sets of these sizes can have.
#[must_use]
pub fn least_p(reference: usize, values: usize) -> f64 {
    // Two of the ways to choose the ranks of the smaller set.
    let smaller = reference.min(values);
    let ways = (0..smaller).map(|at| (reference + values - at) as f64 / (at + 1) as f64).product::<f64>();
    (2.0 / ways).min(1.0)
}

/// Twice the ranks of both sets together, from 1; equal values share the mean of their ranks.
fn doubled_ranks(reference: &[f64], values: &[f64]) -> (Vec<usize>, Vec<usize>) {
    let all: Vec<f64> = reference.iter().chain(values).copied().collect();
    let rank = |value: &f64| {
        let below = all.iter().filter(|other| *other < value).count();
        let equal = all.iter().filter(|other| *other == value).count();
        2 * below + equal + 1
    };
    (reference.iter().map(rank).collect(), values.iter().map(rank).collect())
}

fn p(reference: &[f64], values: &[f64]) -> f64 {
    let (others, ranks) = doubled_ranks(reference, values);
    let sum: usize = ranks.iter().sum();
    let all: Vec<usize> = others.into_iter().chain(ranks).collect();
    let (at_most, at_least) = if all.len() <= COUNTED {
        let ways = ways(&all, values.len());
        let total: f64 = ways.iter().sum();
        (ways.iter().take(sum + 1).sum::<f64>() / total, ways.iter().skip(sum).sum::<f64>() / total)
    } else {
        approximate(&all, values.len(), sum as f64)
    };
    (2.0 * at_most.min(at_least)).min(1.0)
}

/// In how many ways `chosen` of the doubled ranks `all` add up to each sum.
fn ways(all: &[usize], chosen: usize) -> Vec<f64> {
    let most: usize = all.iter().sum();
    let mut ways = vec![vec![0.0; most + 1]; chosen + 1];
    ways[0][0] = 1.0;
    for (seen, rank) in all.iter().enumerate() {
        for count in (1..=chosen.min(seen + 1)).rev() {
            let (fewer, more) = ways.split_at_mut(count);
            let before = fewer[count - 1].iter();
            more[0].iter_mut().skip(*rank).zip(before).for_each(|(to, from)| *to += from);
        }
    }
    ways.pop().unwrap_or_default()
}

/// The chances that the sum of `chosen` doubled ranks is at most and at least `sum`, by the normal
/// distribution with the correction for ties, and half a rank for continuity.
fn approximate(all: &[usize], chosen: usize, sum: f64) -> (f64, f64) {
    let (n, m) = (all.len() as f64, chosen as f64);
    let mean_rank = n + 1.0;
    // The variance of a sum drawn without replacement, ties and all.
    let squares: f64 = all.iter().map(|rank| (*rank as f64 - mean_rank).powi(2)).sum();
    let deviation = (m * (n - m) / (n * (n - 1.0)) * squares).sqrt();
    let Ok(normal) = Normal::new(m * mean_rank, deviation) else { return (1.0, 1.0) };
    (normal.cdf(sum + 1.0), 1.0 - normal.cdf(sum - 1.0))
}

/// Between two of the sorted differences of all pairs, as many from each end as the test would not
/// call uneven.
fn interval(differences: &[f64], reference: usize, values: usize, error: f64) -> Option<(f64, f64)> {
    let size = reference + values;
    let outside = if size <= COUNTED {
        let ranks: Vec<usize> = (1..=size).map(|rank| 2 * rank).collect();
        let ways = ways(&ranks, values);
        let total: f64 = ways.iter().sum();
        // Sums begin with that of the least ranks, and every second is possible.
        let counts = ways.iter().skip(values * (values + 1)).step_by(2);
        let mut seen = 0.0;
        counts
            .take_while(|count| {
                seen += *count;
                seen / total <= error / 2.0
            })
            .count()
    } else {
        let pairs = (reference * values) as f64;
        let deviation = (pairs * (size as f64 + 1.0) / 12.0).sqrt();
        let deviate = Normal::new(0.0, 1.0).ok()?.inverse_cdf(1.0 - error / 2.0);
        (pairs / 2.0 - deviate * deviation).max(0.0) as usize
    };
    let low = differences.get(outside.checked_sub(1)?)?;
    Some((*low, *differences.get(differences.len().checked_sub(outside)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn p_of(reference: &[f64], values: &[f64]) -> f64 {
        Ranks::new(reference, values, 0.05).unwrap().p
    }

    #[test]
    fn small_sets_are_counted_exactly() {
        let low = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let high = low.map(|value| value + 10.0);
        for n in 3..=6 {
            // 2 of C(2n, n) arrangements: 0.1, 0.029, 0.0079, 0.0022.
            let ways = [20.0, 70.0, 252.0, 924.0][n - 3];
            assert!((p_of(&low[..n], &high[..n]) - 2.0 / ways).abs() < 1e-12);
            assert!((least_p(n, n) - 2.0 / ways).abs() < 1e-12);
        }
        // U of 4 and 6 values is 6 here; 27 of 210 arrangements have no more (tables: 0.129).
        let p = p_of(&[1.0, 2.0, 4.0, 9.0], &[3.0, 5.0, 6.0, 7.0, 8.0, 10.0]);
        assert!((p - 2.0 * 27.0 / 210.0).abs() < 1e-12, "{p}");
        assert_eq!(p_of(&[1.0; 5], &[1.0; 5]), 1.0);
    }

    #[test]
    fn the_normal_distribution_takes_over_smoothly_ties_and_all() {
        let mut random = Random::new(3);
        for _ in 0..50 {
            let mut draw =
                |shift: f64| (0..18).map(|_| (random.normal() * 4.0 + shift).round()).collect::<Vec<f64>>();
            let (reference, values) = (draw(0.0), draw(2.0));
            let exact = p_of(&reference, &values);
            let (others, ranks) = doubled_ranks(&reference, &values);
            let all: Vec<usize> = others.into_iter().chain(ranks.iter().copied()).collect();
            let (at_most, at_least) = approximate(&all, 18, ranks.iter().sum::<usize>() as f64);
            let near = (2.0 * at_most.min(at_least)).min(1.0);
            assert!((exact - near).abs() < 0.02, "{exact} {near}");
        }
    }

    #[test]
    fn the_interval_holds_the_shift_as_often_as_it_says() {
        for (n, m) in [(6, 6), (5, 8), (25, 25)] {
            let mut random = Random::new(n as u64);
            let mut holds = || {
                let reference: Vec<f64> = (0..n).map(|_| random.uniform()).collect();
                let values: Vec<f64> = (0..m).map(|_| random.uniform() + 0.3).collect();
                let ranks = Ranks::new(&reference, &values, 0.05).unwrap();
                let (low, high) = ranks.interval.unwrap();
                assert!(low <= ranks.shift && ranks.shift <= high);
                // The interval leaves out zero if and only if the test says so; but for ties in between.
                if n + m <= COUNTED {
                    assert_eq!(low > 0.0 || high < 0.0, ranks.p <= 0.05, "{ranks:?}");
                }
                (low..=high).contains(&0.3)
            };
            let held = (0..1000).filter(|_| holds()).count();
            assert!((945..=990).contains(&held), "{n} {m}: {held} of 1000");
        }
        assert_eq!(Ranks::new(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0.05).unwrap().interval, None);
        assert_eq!(Ranks::new(&[], &[4.0], 0.05), None);
    }
}
