//! The bootstrap: two sets of numbers enter; an interval of the ratio of their medians leaves.
//!
//! Each set is drawn again from itself, with replacement, many times; the interval lies between
//! percentiles of the ratios (B. Efron, Bootstrap methods: another look at the jackknife, Annals of
//! Statistics 7, 1979). Medians of few values take few values, so below about ten repeats the
//! interval is too narrow: it is shown, and proves nothing. The same sets and seed give the same
//! interval.

use crate::Random;
use crate::trend::median;

/// How often the sets are drawn again.
const DRAWS: usize = 2_000;

/// The ratio of two medians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianRatio {
    /// Median of the values over median of the reference.
    pub ratio: f64,
    /// The interval that holds the true ratio but for about the error asked for.
    pub interval: (f64, f64),
}

/// The ratio of the medians of `values` and `reference`; `None` if one is empty or not above zero
/// throughout. With `by_round`, what stands in the same place of both is drawn together.
#[must_use]
pub fn median_ratio(
    reference: &[f64],
    values: &[f64],
    by_round: bool,
    error: f64,
    seed: u64,
) -> Option<MedianRatio> {
    if reference.iter().chain(values).any(|value| *value <= 0.0) {
        return None;
    }
    let mut random = Random::new(seed);
    let mut places = |count: usize| -> Vec<usize> { (0..count).map(|_| random.below(count)).collect() };
    let drawn = |set: &[f64], places: &[usize]| {
        middle(places.iter().filter_map(|place| set.get(*place).copied()).collect())
    };
    let mut ratio = || {
        let ours = places(values.len());
        let theirs = if by_round { ours.clone() } else { places(reference.len()) };
        Some(drawn(values, &ours)? / drawn(reference, &theirs)?)
    };
    let mut ratios: Vec<f64> = (0..DRAWS).filter_map(|_| ratio()).collect();
    ratios.sort_by(f64::total_cmp);
    let outside = (ratios.len() as f64 * error / 2.0) as usize;
    let interval = (*ratios.get(outside)?, *ratios.get(ratios.len().checked_sub(1 + outside)?)?);
    Some(MedianRatio { ratio: middle(values.to_vec())? / middle(reference.to_vec())?, interval })
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    median(&values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_ratio_about_as_often_as_it_says() {
        let mut random = Random::new(5);
        let mut holds = |seed: u64| {
            let mut draw =
                |centre: f64| (0..20).map(|_| centre * (0.05 * random.normal()).exp()).collect::<Vec<f64>>();
            let (reference, values) = (draw(100.0), draw(110.0));
            let found = median_ratio(&reference, &values, false, 0.05, seed).unwrap();
            assert!(found.interval.0 <= found.ratio && found.ratio <= found.interval.1);
            (found.interval.0..=found.interval.1).contains(&1.1)
        };
        let held = (0..200).filter(|seed| holds(*seed)).count();
        assert!((180..=199).contains(&held), "{held} of 200");
    }

    #[test]
    fn the_same_seed_gives_the_same_interval_and_what_has_no_ratio_gives_none() {
        let (one, other) = ([5.0, 6.0, 7.0, 9.0], [4.0, 5.0, 8.0]);
        let ratio = |seed| median_ratio(&one, &other, false, 0.05, seed).unwrap();
        assert_eq!(ratio(1), ratio(1));
        assert!((ratio(1).ratio - 5.0 / 6.5).abs() < 1e-12);
        assert_eq!(median_ratio(&[0.0, 1.0], &other, false, 0.05, 1), None);
        assert_eq!(median_ratio(&[], &other, false, 0.05, 1), None);
    }

    #[test]
    fn what_both_have_of_a_round_drops_out() {
        let phases = [1.0, 0.6, 0.9, 0.7, 1.1, 0.8];
        let other = phases.map(|phase| 0.95 * phase);
        let width = |by_round| {
            let (low, high) = median_ratio(&phases, &other, by_round, 0.05, 1).unwrap().interval;
            high - low
        };
        assert!(width(true) < 1e-9 && width(false) > 0.1, "{} {}", width(true), width(false));
    }
}
