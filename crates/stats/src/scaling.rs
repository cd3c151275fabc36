//! How a rate grows with workers: pairs (workers, rate) enter; the law that explains them, with its uncertainty, leaves.
//!
//! Amdahl's law (G. Amdahl, AFIPS 1967): of each worker's work a share σ cannot be done beside that of others
//! (*contention*: a lock, a bus, a thread that all wait for), X(n) = λ·n / (1 + σ·(n − 1)). The Universal Scalability
//! Law (N. Gunther, Guerrilla Capacity Planning, 2007) adds what each pair of workers costs (*crosstalk*: cache lines
//! that go to and fro), X(n) = λ·n / (1 + σ·(n − 1) + κ·n·(n − 1)): such a rate has a highest point, and falls after.
//!
//! Both are linear in what they have to find once n/X is looked at, so that least squares have one solution. Errors are
//! taken for shares of the rate, as those of measured rates mostly are.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Different numbers of workers that a law needs.
pub const FEWEST: usize = 3;
/// Crosstalk below this is a rounding error.
const LEAST: f64 = 1e-6;
/// The confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// A law that fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// λ: what a worker alone does, in the unit of the rates.
    pub one: Estimate,
    /// σ: the share of the work that only one worker does at a time, from 0 to 1 (above: more workers do less).
    pub contention: Estimate,
    /// κ: what each pair of workers costs, as a share of the work; `None` where Amdahl's law explains the rates as well.
    pub crosstalk: Option<Estimate>,
    /// The root of the mean square of what the law leaves unexplained, as a share of the rates.
    pub misfit: f64,
}

/// A value and the interval that holds the true one at 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The best one.
    pub value: f64,
    /// From where to where; `None` where there are no more points than unknowns.
    pub interval: Option<(f64, f64)>,
}

/// Why no law is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// With two numbers of workers any law fits.
    #[error("a law of scaling needs {FEWEST} different numbers of workers at least, and there are {0}")]
    TooFew(usize),
    /// A rate or a number that is no positive number.
    #[error("a rate is not above zero")]
    NotPositive,
}

impl Scaling {
    /// The law of `points`, which are numbers of workers from 1 on and rates; several of one number are repeats.
    ///
    /// # Errors
    /// [`Unfit`], where no law can be told.
    pub fn of(points: &[(f64, f64)]) -> Result<Self, Unfit> {
        let mut numbers: Vec<f64> = points.iter().map(|(workers, _)| *workers).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        if numbers.len() < FEWEST {
            return Err(Unfit::TooFew(numbers.len()));
        }
        let is_sound = |(workers, rate): &(f64, f64)| {
            *workers >= 1.0 && *rate > 0.0 && workers.is_finite() && rate.is_finite()
        };
        if !points.iter().all(is_sound) {
            return Err(Unfit::NotPositive);
        }
        let amdahl = Self::fit(points, &[Term::Alone, Term::Contention])
            .filter(|law| law.contention.value >= 0.0)
            .or_else(|| Self::fit(points, &[Term::Alone]))
            .ok_or(Unfit::NotPositive)?;
        // What more unknowns explain is told only where it cannot be chance.
        let gunther = Self::fit(points, &[Term::Alone, Term::Contention, Term::Crosstalk])
            .filter(|law| law.contention.value >= 0.0)
            .or_else(|| Self::fit(points, &[Term::Alone, Term::Crosstalk]));
        let is_proven = |law: &Self| {
            let low = law.crosstalk.and_then(|crosstalk| crosstalk.interval).map(|(low, _)| low);
            low.is_some_and(|low| low > LEAST)
        };
        Ok(gunther.filter(is_proven).unwrap_or(amdahl))
    }

    /// Least squares over the unknowns that `terms` are of.
    fn fit(points: &[(f64, f64)], terms: &[Term]) -> Option<Self> {
        let (unknowns, count) = (terms.len(), points.len());
        // Rows divided by n/X: each point's error is then one share of its rate.
        let mut squares = vec![vec![0.0; unknowns]; unknowns];
        let mut sums = vec![0.0; unknowns];
        let scale = points.first()?.1;
        let row = |(workers, rate): &(f64, f64)| -> Vec<f64> {
            terms.iter().map(|term| term.of(*workers) * rate / (scale * workers)).collect()
        };
        for row in points.iter().map(row) {
            for (at, one) in row.iter().enumerate() {
                sums[at] += one;
                row.iter().enumerate().for_each(|(other, value)| squares[at][other] += one * value);
            }
        }
        let inverse = inverse(squares)?;
        let found: Vec<f64> =
            inverse.iter().map(|line| line.iter().zip(&sums).map(|(one, sum)| one * sum).sum()).collect();
        let predicted =
            |row: Vec<f64>| -> f64 { row.iter().zip(&found).map(|(one, value)| one * value).sum() };
        let left: f64 = points.iter().map(|point| (1.0 - predicted(row(point))).powi(2)).sum();
        let freedom = count.checked_sub(unknowns)?;
        let deviate = student(freedom);
        let variance = if freedom == 0 { 0.0 } else { left / freedom as f64 };
        let alone = *found.first().filter(|alone| **alone > 0.0)?;
        // The error of a quotient of two unknowns, to the first order.
        let share = |of: Term| -> Option<Estimate> {
            let at = terms.iter().position(|term| *term == of)?;
            let value = found[at] / alone;
            let spread = inverse[at][at] - 2.0 * value * inverse[at][0] + value * value * inverse[0][0];
            Some(Estimate::new(value, (variance * spread.max(0.0)).sqrt() / alone, deviate))
        };
        let one = scale / alone;
        let one_error = one * (variance * inverse[0][0]).sqrt() / alone;
        Some(Self {
            one: Estimate::new(one, one_error, deviate),
            contention: share(Term::Contention).unwrap_or(Estimate { value: 0.0, interval: None }),
            crosstalk: share(Term::Crosstalk),
            misfit: (left / count as f64).sqrt(),
        })
    }

    /// The rate of so many workers by this law.
    #[must_use]
    pub fn at(&self, workers: f64) -> f64 {
        let crosstalk = self.crosstalk.map_or(0.0, |crosstalk| crosstalk.value);
        let cost =
            Term::Contention.of(workers) * self.contention.value + Term::Crosstalk.of(workers) * crosstalk;
        self.one.value * workers / (1.0 + cost)
    }

    /// The rate of so many workers if they did not hinder each other.
    #[must_use]
    pub fn ideal(&self, workers: f64) -> f64 {
        self.one.value * workers
    }

    /// The number of workers with the highest rate, where more would do less.
    #[must_use]
    pub fn peak(&self) -> Option<f64> {
        let crosstalk = self.crosstalk?.value;
        Some(((1.0 - self.contention.value).max(0.0) / crosstalk).sqrt()).filter(|peak| peak.is_finite())
    }

    /// What no number of workers exceeds by Amdahl's law; `None` where nothing bounds it, or it has a peak.
    #[must_use]
    pub fn ceiling(&self) -> Option<f64> {
        let contention = self.contention.value;
        (self.crosstalk.is_none() && contention > 0.0).then(|| self.one.value / contention)
    }
}

impl Estimate {
    fn new(value: f64, error: f64, deviate: Option<f64>) -> Self {
        Self { value, interval: deviate.map(|deviate| (value - deviate * error, value + deviate * error)) }
    }
}

/// An unknown of a law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Term {
    /// 1/λ
    Alone,
    /// σ/λ
    Contention,
    /// κ/λ
    Crosstalk,
}

impl Term {
    /// What it is multiplied with, for so many workers.
    fn of(self, workers: f64) -> f64 {
        match self {
            Self::Alone => 1.0,
            Self::Contention => workers - 1.0,
            Self::Crosstalk => workers * (workers - 1.0),
        }
    }
}

/// Student's deviate; `None` without freedom.
fn student(freedom: usize) -> Option<f64> {
    let law = StudentsT::new(0.0, 1.0, freedom as f64).ok().filter(|_| freedom > 0)?;
    Some(law.inverse_cdf(0.5 + CONFIDENCE / 2.0))
}

/// The inverse of a small matrix, by Gauss and Jordan; `None` if there is none.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    for (at, line) in matrix.iter_mut().enumerate() {
        line.extend((0..size).map(|column| f64::from(u8::from(column == at))));
    }
    for at in 0..size {
        let best =
            (at..size).max_by(|one, other| matrix[*one][at].abs().total_cmp(&matrix[*other][at].abs()))?;
        matrix.swap(at, best);
        let pivot = matrix[at][at];
        if pivot.abs() < 1e-12 {
            return None;
        }
        matrix[at].iter_mut().for_each(|value| *value /= pivot);
        let line = matrix[at].clone();
        for other in (0..size).filter(|other| *other != at) {
            let factor = matrix[other][at];
            matrix[other].iter_mut().zip(&line).for_each(|(value, own)| *value -= factor * own);
        }
    }
    Some(matrix.into_iter().map(|line| line[size..].to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn law(one: f64, contention: f64, crosstalk: f64) -> impl Fn(f64) -> f64 {
        move |n| one * n / (1.0 + contention * (n - 1.0) + crosstalk * n * (n - 1.0))
    }

    fn points(workers: &[u32], rate: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        workers.iter().map(|n| (f64::from(*n), rate(f64::from(*n)))).collect()
    }

    #[test]
    fn the_law_that_made_the_rates_is_found() {
        let amdahl = Scaling::of(&points(&[1, 2, 4, 8], law(2e6, 0.1, 0.0))).unwrap();
        assert!(
            (amdahl.one.value / 2e6 - 1.0).abs() < 1e-9 && (amdahl.contention.value - 0.1).abs() < 1e-9,
            "{amdahl:?}"
        );
        assert!(amdahl.crosstalk.is_none() && amdahl.misfit < 1e-9, "{amdahl:?}");
        let gunther = Scaling::of(&points(&[1, 2, 4, 8, 16], law(3e6, 0.05, 0.01))).unwrap();
        assert!((gunther.crosstalk.unwrap().value - 0.01).abs() < 1e-9, "{gunther:?}");
        assert!((gunther.peak().unwrap() - (0.95_f64 / 0.01).sqrt()).abs() < 1e-6);
        assert!((gunther.at(16.0) / law(3e6, 0.05, 0.01)(16.0) - 1.0).abs() < 1e-9);
        assert!((gunther.ideal(4.0) / 12e6 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn vpp_s_three_queues_scale_linearly_and_freebsd_s_threads_do_not() {
        // The review of the Netgate 6100: 33, 66 and 96 % of line rate with 1, 2 and 3 queues.
        let linear = Scaling::of(&[(1.0, 33.0), (2.0, 66.0), (3.0, 96.0)]).unwrap();
        assert!(linear.contention.value < 0.03 && linear.crosstalk.is_none(), "{linear:?}");
        assert!(linear.contention.interval.unwrap().0 < 0.0, "contention is not proven: {linear:?}");
        // Half of each worker's time is another's.
        let bound = Scaling::of(&points(&[1, 2, 3, 4, 6], law(1e6, 0.5, 0.0))).unwrap();
        assert!((bound.ceiling().unwrap() / 2e6 - 1.0).abs() < 1e-6, "{bound:?}");
    }

    #[test]
    fn growth_above_proportion_is_no_contention() {
        let better = Scaling::of(&[(1.0, 1.0), (2.0, 2.1), (4.0, 4.4)]).unwrap();
        assert_eq!((better.contention.value, better.crosstalk), (0.0, None));
        assert!(better.misfit > 0.01, "{better:?}");
    }

    #[test]
    fn the_intervals_hold_the_truth_as_often_as_they_say() {
        let held = (0..400).filter(|seed| {
            let mut random = Random::new(*seed);
            let mut noisy = |n: f64| law(1e6, 0.2, 0.0)(n) * (1.0 + 0.01 * random.normal());
            let repeated: Vec<(f64, f64)> = [1.0, 2.0, 3.0, 4.0]
                .iter()
                .flat_map(|n| [(*n, noisy(*n)), (*n, noisy(*n)), (*n, noisy(*n))])
                .collect();
            let (low, high) = Scaling::of(&repeated).unwrap().contention.interval.unwrap();
            (low..=high).contains(&0.2)
        });
        let held = held.count();
        // Where crosstalk is claimed by chance (2.5 %), contention is too low.
        assert!((360..=396).contains(&held), "{held} of 400");
    }

    #[test]
    fn without_three_numbers_of_workers_nothing_is_said() {
        assert_eq!(Scaling::of(&[]), Err(Unfit::TooFew(0)));
        assert_eq!(Scaling::of(&[(1.0, 1.0), (2.0, 1.5), (2.0, 1.6)]), Err(Unfit::TooFew(2)));
        assert_eq!(Scaling::of(&[(1.0, 1.0), (2.0, 0.0), (3.0, 1.0)]), Err(Unfit::NotPositive));
        assert_eq!(Scaling::of(&[(0.0, 1.0), (2.0, 2.0), (3.0, 1.0)]), Err(Unfit::NotPositive));
        // As many points as unknowns of the smaller law leave one degree of freedom.
        assert!(Scaling::of(&[(1.0, 1.0), (2.0, 1.8), (3.0, 2.4)]).unwrap().contention.interval.is_some());
    }
}
