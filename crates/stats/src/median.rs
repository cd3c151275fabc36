//! The interval of a median from ranks alone: sorted values enter, two of them leave.
//!
//! Each value is as likely above the true median as below it, whatever the distribution. So how many
//! are below is binomial, and the interval between the k-th value from each end misses the median as
//! often as fewer than k of n coins show heads (H. A. David and H. N. Nagaraja, Order Statistics,
//! section 7.1).

use statrs::distribution::{Binomial, DiscreteCDF};

/// Between two of the `sorted` values: holds the true median but for at most `error`. `None` if there
/// are too few: at 5 % that is below six.
#[must_use]
pub fn interval(sorted: &[f64], error: f64) -> Option<(f64, f64)> {
    let coins = Binomial::new(0.5, u64::try_from(sorted.len()).ok()?).ok()?;
    let misses = |outside: usize| 2.0 * coins.cdf(outside as u64);
    // As many may lie outside at each end, at least none.
    let outside = (0..sorted.len() / 2).take_while(|outside| misses(*outside) <= error).last()?;
    Some((*sorted.get(outside)?, *sorted.get(sorted.len() - 1 - outside)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn so_many_values_prove_so_much() {
        let ascending = |count: u32| (1..=count).map(f64::from).collect::<Vec<f64>>();
        assert_eq!(interval(&ascending(5), 0.05), None);
        assert_eq!(interval(&ascending(6), 0.05), Some((1.0, 6.0)));
        // The tables of the sign test: at 5 %, one of 9 and five of 20 may lie outside at each end.
        assert_eq!(interval(&ascending(9), 0.05), Some((2.0, 8.0)));
        assert_eq!(interval(&ascending(20), 0.05), Some((6.0, 15.0)));
        assert_eq!(interval(&ascending(6), 0.01), None);
        assert_eq!(interval(&[], 0.05), None);
        assert_eq!(interval(&[1.0], 0.05), None);
    }

    #[test]
    fn it_holds_the_median_as_often_as_it_says() {
        let mut random = Random::new(3);
        let mut holds = || {
            // Skewed: the median of an exponential distribution is ln 2.
            let mut drawn: Vec<f64> = (0..12).map(|_| -(1.0 - random.uniform()).ln()).collect();
            drawn.sort_by(f64::total_cmp);
            let (low, high) = interval(&drawn, 0.05).unwrap();
            (low..=high).contains(&std::f64::consts::LN_2)
        };
        let held = (0..2_000).filter(|_| holds()).count();
        assert!(held >= 1_900, "{held} of 2,000");
    }
}
