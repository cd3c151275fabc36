//! How far two measurements of one thing differ, judged by the pairs of many things: pairs of values enter; the interval
//! of the mean of each pair leaves.
//!
//! Two values alone say next to nothing of their spread. Where many things are measured twice by the same means, the
//! shares by which the two differ are pooled: with d the difference of the logarithms of a pair, the variance of one
//! measurement is Σ d² / 2n, with n degrees of freedom (pooled variance of a one-way layout; H. Scheffé, The Analysis of
//! Variance, 1959, section 3.1). The mean of a pair then lies within t(n) · s / √2 of the truth.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The spread of one measurement, as a share of what is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooled {
    /// The standard deviation of the logarithm of one measurement.
    pub deviation: f64,
    /// Pairs that it is known by.
    pub pairs: usize,
}

impl Pooled {
    /// The spread of `pairs`; `None` of fewer than three, or where a value is not above zero.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|(one, other)| (one / other).ln()).collect();
        if pairs.len() < 3 || !differences.iter().all(|difference| difference.is_finite()) {
            return None;
        }
        let squares: f64 = differences.iter().map(|difference| difference.powi(2)).sum();
        Some(Self { deviation: (squares / (2.0 * pairs.len() as f64)).sqrt(), pairs: pairs.len() })
    }

    /// The share of its value by which the mean of two measurements may be off, but for a chance of `error`.
    #[must_use]
    pub fn reach(&self, error: f64) -> f64 {
        let Ok(student) = StudentsT::new(0.0, 1.0, self.pairs as f64) else { return f64::INFINITY };
        (student.inverse_cdf(1.0 - error / 2.0) * self.deviation / std::f64::consts::SQRT_2).exp_m1()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn the_spread_of_pairs_is_known_by_all_of_them() {
        // ln 1.1 and its inverse are as far from zero.
        let pooled = Pooled::of(&[(110.0, 100.0), (2.0, 2.2), (3.3, 3.0), (1.0, 1.1)]).unwrap();
        assert!((pooled.deviation - 1.1f64.ln() / 2f64.sqrt()).abs() < 1e-12 && pooled.pairs == 4);
        // t of four degrees of freedom is 2.776 (tables).
        let reach = 2.776 * 1.1f64.ln() / 2.0;
        assert!((pooled.reach(0.05).ln_1p() - reach).abs() < 1e-4);
    }

    #[test]
    fn too_few_pairs_and_rates_of_zero_tell_nothing() {
        assert_eq!(Pooled::of(&[(1.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(Pooled::of(&[(1.0, 1.0), (1.0, 2.0), (0.0, 1.0)]), None);
        let equal = Pooled::of(&[(1.0, 1.0); 3]).unwrap();
        assert_eq!(equal.reach(0.05), 0.0);
    }

    #[test]
    fn of_a_hundred_intervals_ninety_five_hold_the_truth() {
        let mut random = Random::new(7);
        let mut held = 0;
        for _ in 0..400 {
            let pairs: Vec<(f64, f64)> =
                (0..10).map(|_| ((0.03 * random.normal()).exp(), (0.03 * random.normal()).exp())).collect();
            let reach = Pooled::of(&pairs).unwrap().reach(0.05);
            let mean = (pairs[0].0 * pairs[0].1).sqrt();
            held += usize::from(mean / (1.0 + reach) <= 1.0 && 1.0 <= mean * (1.0 + reach));
        }
        assert!((370..=390).contains(&held), "{held} of 400");
    }
}
