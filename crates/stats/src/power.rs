//! How many more repeats would likely tell: two sets as they are enter; a number of repeats leaves.
//!
//! What was seen is taken for the truth. The chance that the t test then tells is that of its t,
//! shifted by the difference over its standard error, being beyond the bound: the usual
//! approximation of the noncentral t (S.-C. Chow, J. Shao, H. Wang, Sample Size Calculations in
//! Clinical Research, chapter 3, for tests of difference and of equivalence).

use crate::mean_difference::{MeanDifference, moments};
use crate::{ranks, signed_ranks};

/// "Likely": the chance that the repeats tell.
pub const LIKELY: f64 = 0.8;
/// More repeats of each are not worth counting.
pub const MOST: usize = 1_000;

/// What a test is to tell, in the unit of the values.
#[derive(Clone, Copy, Debug)]
pub struct Aim {
    /// The chance of a false claim that is accepted, shared among all tests of a family.
    pub error: f64,
    /// The same of the ranks' test.
    pub rank_error: f64,
    /// Differences of at most this size cannot be seen.
    pub resolution: f64,
    /// Differences below this size count as none; absent if any counts.
    pub band: Option<f64>,
    /// Whether the values in the same place of both sets were measured in the same round.
    pub by_round: bool,
}

/// How many more repeats of each set would likely tell that they differ, or that they do not;
/// `None` if [`MOST`] would not, or nothing is known of the noise.
#[must_use]
pub fn more_repeats(reference: &[f64], values: &[f64], aim: &Aim) -> Option<usize> {
    let expected: Box<dyn Fn(usize) -> (MeanDifference, f64)> = if aim.by_round {
        let differences: Vec<f64> =
            values.iter().zip(reference).map(|(value, other)| value - other).collect();
        let (mean, variance) = moments(&differences)?;
        let rounds = differences.len();
        Box::new(move |more| {
            let least_p =
                signed_ranks::least_p(rounds + more).min(ranks::least_p(rounds + more, rounds + more));
            (MeanDifference::of_differences(mean, variance, rounds + more), least_p)
        })
    } else {
        let [(mean_0, variance_0), (mean_1, variance_1)] = [moments(reference)?, moments(values)?];
        Box::new(move |more| {
            let [n_0, n_1] = [reference, values].map(|set| set.len() + more);
            let sets = [(variance_0, n_0 as f64), (variance_1, n_1 as f64)];
            (MeanDifference::of_variances(mean_1 - mean_0, sets[0], sets[1]), ranks::least_p(n_0, n_1))
        })
    };
    let tells = |more: usize| {
        let (difference, least_p) = expected(more);
        chance(&difference, least_p <= aim.rank_error, aim) >= LIKELY
    };
    // The least that tells lies between one that does not and the first power of two that does.
    let enough = std::iter::successors(Some(1), |more| Some(more * 2)).take_while(|more| *more < 2 * MOST);
    let mut enough = enough.map(|more| more.min(MOST)).find(|more| tells(*more))?;
    let mut too_few = enough / 2;
    while enough - too_few > 1 {
        let between = usize::midpoint(too_few, enough);
        *(if tells(between) { &mut enough } else { &mut too_few }) = between;
    }
    Some(enough)
}

/// The chance that either test tells.
fn chance(means: &MeanDifference, ranks_may_tell: bool, aim: &Aim) -> f64 {
    let size = means.difference.abs();
    let in_errors = |distance: f64| match means.standard_error > 0.0 {
        true => distance / means.standard_error,
        false => distance * f64::INFINITY,
    };
    let beyond = |distance: f64, error: f64| {
        let t = in_errors(distance) - means.t(1.0 - error);
        if t.is_nan() { 0.0 } else { means.chance(t) }
    };
    let differs = if ranks_may_tell { beyond(size - aim.resolution, aim.error / 2.0) } else { 0.0 };
    let equal = aim.band.map_or(0.0, |band| {
        let margin = band - aim.resolution;
        beyond(margin - size, aim.error) + beyond(margin + size, aim.error) - 1.0
    });
    differs.max(equal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    const AIM: Aim =
        Aim { error: 0.05, rank_error: 0.05, resolution: 0.0, band: Some(0.01), by_round: false };

    /// `count` values of this mean and deviation, exactly.
    fn set(mean: f64, deviation: f64, count: usize) -> Vec<f64> {
        let raw: Vec<f64> = (0..count).map(|at| at as f64).collect();
        let (centre, variance) = moments(&raw).unwrap();
        raw.iter().map(|value| mean + (value - centre) / variance.sqrt() * deviation).collect()
    }

    /// Textbook: a difference of one deviation needs 17 of each for 80 % at 5 %; of half a one, 64.
    #[test]
    fn a_difference_needs_as_many_as_the_textbooks_say() {
        for (difference, right) in [(1.0, 17), (0.5, 64)] {
            let more = more_repeats(&set(0.0, 1.0, 6), &set(difference, 1.0, 6), &AIM).unwrap();
            assert!((right - 1..=right + 1).contains(&(more + 6)), "{difference}: {more} more");
        }
    }

    #[test]
    fn small_differences_are_told_to_be_none() {
        let (noise, aim) = (0.01, AIM);
        let more = more_repeats(&set(0.0, noise, 6), &set(0.0, noise, 6), &aim).unwrap();
        // 2 (1.645 + 1.282)² for equality with power 80 % each side: 17 to 18.
        assert!((11..=13).contains(&more), "{more}");
        assert_eq!(
            more_repeats(&set(0.0, noise, 6), &set(0.01, noise, 6), &Aim { band: None, ..aim }),
            Some(11)
        );
    }

    #[test]
    fn as_many_repeats_as_told_tell_about_as_often() {
        let (difference, noise) = (0.02, 0.015);
        let more = more_repeats(&set(0.0, noise, 6), &set(difference, noise, 6), &AIM).unwrap();
        let mut random = Random::new(9);
        let mut tells = || {
            let mut draw =
                |mean: f64| (0..6 + more).map(|_| mean + noise * random.normal()).collect::<Vec<f64>>();
            MeanDifference::welch(&draw(0.0), &draw(difference)).unwrap().p_within(0.0) <= 0.05
        };
        let told = (0..1000).filter(|_| tells()).count();
        assert!((760..=900).contains(&told), "{told} of 1000 with {more} more");
    }

    #[test]
    fn what_changes_from_round_to_round_needs_no_repeats() {
        let phases = set(0.0, 0.1, 6);
        let noise = [0.002, -0.001, 0.001, -0.002, 0.001, -0.001];
        let values: Vec<f64> = phases.iter().zip(noise).map(|(phase, noise)| phase + 0.02 + noise).collect();
        let more = |by_round| more_repeats(&phases, &values, &Aim { band: None, by_round, ..AIM });
        assert_eq!(more(true), Some(1));
        assert!(more(false).unwrap() > 100, "{:?}", more(false));
    }

    #[test]
    fn what_no_repeats_tell_has_no_number() {
        // The truth lies on the edge of the band, or below the resolution.
        assert_eq!(more_repeats(&set(0.0, 0.5, 6), &set(0.01, 0.5, 6), &AIM), None);
        let coarse = Aim { resolution: 0.02, ..AIM };
        assert_eq!(more_repeats(&set(0.0, 0.01, 6), &set(0.01, 0.01, 6), &coarse), None);
        assert_eq!(more_repeats(&[1.0], &[2.0, 3.0], &AIM), None);
        // Three against three cannot be told apart by ranks, four can.
        assert_eq!(more_repeats(&set(0.0, 0.01, 3), &set(9.0, 0.01, 3), &AIM), Some(1));
    }
}
