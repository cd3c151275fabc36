//! A share of trials: how many there were and how many had it enter; between which shares the true one
//! lies leaves.

use statrs::distribution::{Beta, ContinuousCDF};

/// The exact interval for the true share, where `hits` of `trials` had it: wrong in at most the share `error`
/// of all uses (C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits illustrated in the case
/// of the binomial, Biometrika 26, 1934). 0 to 1 without trials.
#[must_use]
pub fn interval(hits: u64, trials: u64, error: f64) -> (f64, f64) {
    let hits = hits.min(trials);
    let misses = trials - hits;
    let tail = error / 2.0;
    let quantile = |a: f64, b: f64, at: f64| Beta::new(a, b).map_or(f64::NAN, |beta| beta.inverse_cdf(at));
    let lower = if hits == 0 { 0.0 } else { quantile(hits as f64, misses as f64 + 1.0, tail) };
    let upper = if misses == 0 { 1.0 } else { quantile(hits as f64 + 1.0, misses as f64, 1.0 - tail) };
    (lower.clamp(0.0, 1.0), if upper.is_nan() { 1.0 } else { upper.clamp(0.0, 1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_hit_the_upper_end_is_the_share_that_would_nearly_always_give_one() {
        for trials in [1, 3, 30, 1000] {
            let (lower, upper) = interval(0, trials, 0.05);
            assert_eq!(lower, 0.0);
            assert!((upper - (1.0 - 0.025_f64.powf(1.0 / trials as f64))).abs() < 1e-6, "{trials}: {upper}");
            let (mirrored, one) = interval(trials, trials, 0.05);
            assert!((mirrored - (1.0 - upper)).abs() < 1e-6 && one == 1.0);
        }
        assert_eq!(interval(0, 0, 0.05), (0.0, 1.0));
    }

    #[test]
    fn the_interval_holds_the_true_share_as_often_as_it_says() {
        // Clopper and Pearson's own example, and by counting all that can happen.
        let (lower, upper) = interval(3, 10, 0.05);
        assert!((lower - 0.0667).abs() < 1e-3 && (upper - 0.6525).abs() < 1e-3, "{lower} to {upper}");
        for share in [0.05_f64, 0.3, 0.8] {
            let mut chance = (1.0 - share).powi(12);
            let mut wrong = 0.0;
            for hits in 0..=12_u64 {
                let (lower, upper) = interval(hits, 12, 0.05);
                wrong += if (lower..=upper).contains(&share) { 0.0 } else { chance };
                chance *= (12 - hits) as f64 / (hits + 1) as f64 * share / (1.0 - share);
            }
            assert!(wrong <= 0.05, "{share}: {wrong}");
        }
    }
}
