//! Which of several sets is better: numbers enter; a [`Comparison`] of each with the first leaves.
//!
//! A difference is proven if two tests agree: a t test on the logarithms, after Holm's correction for
//! as many comparisons as there are, and one by ranks. The first tells apart what few repeats can
//! tell apart and takes ratios for what they are; the second keeps a single odd repeat from deciding.
//! Neither claims falsely more often than it says, so both together do less often.
//!
//! Where both sets were measured round by round, the t test is Student's over the rounds instead of
//! Welch's over the sets: a slow phase of the machine then makes a round slow, not a device
//! (randomised blocks: R. A. Fisher, The Design of Experiments, chapter IV). Then either test by
//! ranks will do, Mann and Whitney's over the sets or Wilcoxon's over the rounds; the t test alone
//! keeps false claims as rare as they are said to be.
//!
//! Equality is proven if the two one-sided tests of Schuirmann say that the difference is within
//! what was said to count as none. The shift by Hodges and Lehmann is shown beside, and proves
//! nothing; so are the medians' ratio of [`crate::bootstrap`] and what `ministat` says.

use crate::holm::adjusted;
use crate::power::{Aim, more_repeats};
use crate::{Confidence, MeanDifference, Ranks, SignedRanks, ministat};

/// Repeats of each that are advised where nothing is known of the noise.
pub const ADVISED: usize = 6;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// How sure claims are to be.
    pub confidence: Confidence,
    /// Changes smaller than this share count as none: 0.01 is ±1 %.
    pub equal_within: f64,
    /// By how much, as a share, a set's values may all be off: they were rounded, or searched for
    /// to that width. Repeats do not help against it.
    pub resolution: f64,
    /// Whether smaller values are better, as of times.
    pub less_is_better: bool,
    /// Whether the values in the same place of both sets were measured in the same round. Values
    /// without a partner are left out.
    pub by_round: bool,
}

impl Default for Question {
    fn default() -> Self {
        Self {
            confidence: Confidence::default(),
            equal_within: 0.01,
            resolution: 0.0,
            less_is_better: false,
            by_round: false,
        }
    }
}

/// What is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The set is better than the reference.
    Better,
    /// It is worse.
    Worse,
    /// If they differ at all, then by less than counts.
    Equal,
    /// Nothing of that.
    NotProven(Outlook),
}

/// What would help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// So many more repeats of each would likely tell.
    Repeats(usize),
    /// More would not.
    Hopeless,
    /// Nothing is known of the noise: a set has a single value.
    Unknown,
    /// A measurement that goes further: the truth may lie above the values of a set.
    Further,
}

/// One set against the first. Changes are shares of the reference, 0.03 is three percent more.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What is proven.
    pub verdict: Verdict,
    /// Whether a difference is proven, however small.
    pub differs: bool,
    /// The change of the geometric mean; of the mean where a value is not above zero. `None` if the
    /// reference's mean is then zero.
    pub change: Option<f64>,
    /// Its interval of confidence by the t test, resolution included; `None` if a set has a single
    /// value.
    pub interval: Option<(f64, f64)>,
    /// p of the t test: Welch's, or Student's over the rounds; 1 if a set has a single value.
    pub t_p: f64,
    /// The same, corrected for the number of comparisons.
    pub t_p_adjusted: f64,
    /// p of the one-sided tests of equality, corrected in the same way.
    pub equality_p_adjusted: f64,
    /// p of Mann and Whitney's test.
    pub rank_p: f64,
    /// p of Wilcoxon's test over the rounds, if there are any.
    pub signed_rank_p: Option<f64>,
    /// The change by Hodges and Lehmann, over the rounds if there are any, and its interval.
    pub shift: Option<(f64, Option<(f64, f64)>)>,
    /// Whether `ministat` says that they differ; `None` if it does not compare sets so small.
    pub ministat: Option<bool>,
    /// Whether the truth may lie above the values of the reference, and of the set.
    pub open: [bool; 2],
}

impl Comparison {
    /// What is proven where the truth may lie above the values of the reference, or of the set (right-censored), as that of a
    /// device does which passed the highest load. A set that is greater than values which are no limits is not proven to
    /// be greater than their truth; nor are two sets equal that ended at the same load.
    #[must_use]
    pub fn with_open_ends(mut self, open: [bool; 2], less_is_better: bool) -> Self {
        let [reference, set] = open;
        let is_proven = match self.verdict {
            Verdict::Better | Verdict::Worse => {
                let greater = (self.verdict == Verdict::Better) != less_is_better;
                if greater { !reference } else { !set }
            }
            Verdict::Equal => !reference && !set,
            Verdict::NotProven(_) => !reference || !set,
        };
        if !is_proven {
            self.verdict = Verdict::NotProven(Outlook::Further);
        }
        self.open = open;
        self
    }

    /// Whether `ministat`'s practice and ours say different things.
    #[must_use]
    pub fn disagrees_with_ministat(&self) -> bool {
        self.ministat.is_some_and(|differs| differs != self.differs)
    }
}

/// How values are compared: both sets on one scale.
struct Scaled {
    reference: Vec<f64>,
    values: Vec<f64>,
    /// Whether the scale is logarithmic.
    ratios: bool,
    /// Whether there is a reference to take shares of.
    shares: bool,
}

impl Scaled {
    fn new(reference: &[f64], values: &[f64]) -> Self {
        let all = |set: &[f64], scale: &dyn Fn(f64) -> f64| set.iter().map(|value| scale(*value)).collect();
        if reference.iter().chain(values).all(|value| *value > 0.0) {
            let (reference, values) = (all(reference, &f64::ln), all(values, &f64::ln));
            return Self { reference, values, ratios: true, shares: true };
        }
        let mean = reference.iter().sum::<f64>() / reference.len().max(1) as f64;
        let unit = if mean == 0.0 { 1.0 } else { mean.abs() };
        let scale = move |value: f64| value / unit;
        let (reference, values) = (all(reference, &scale), all(values, &scale));
        Self { reference, values, ratios: false, shares: mean != 0.0 }
    }

    /// A distance on the scale as a change; none where there are no shares.
    fn change(&self, distance: f64) -> Option<f64> {
        let change = if self.ratios { distance.exp_m1() } else { distance };
        self.shares.then_some(change)
    }

    fn interval(&self, (low, high): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.change(low)?, self.change(high)?))
    }

    /// A change as a distance on the scale; the same up and down, so the smaller one.
    fn distance(&self, change: f64) -> f64 {
        if self.ratios { change.ln_1p() } else { change }
    }

    fn mean_difference(&self) -> f64 {
        let mean = |set: &[f64]| set.iter().sum::<f64>() / set.len().max(1) as f64;
        mean(&self.values) - mean(&self.reference)
    }
}

/// Each of `sets` against `reference`, as one family.
#[must_use]
pub fn compare(reference: &[f64], sets: &[&[f64]], question: &Question) -> Vec<Comparison> {
    compare_pairs(&sets.iter().map(|set| (reference, *set)).collect::<Vec<_>>(), question)
}

/// Each second set against the first beside it, as one family: a matrix has a reference for each of
/// its rows, and claims by chance in any of them.
#[must_use]
pub fn compare_pairs(pairs: &[(&[f64], &[f64])], question: &Question) -> Vec<Comparison> {
    let pairs: Vec<(&[f64], &[f64])> =
        pairs.iter().map(|(reference, set)| together(reference, set, question.by_round)).collect();
    let scaled: Vec<Scaled> = pairs.iter().map(|(reference, set)| Scaled::new(reference, set)).collect();
    let test = if question.by_round { MeanDifference::paired } else { MeanDifference::welch };
    let means: Vec<Option<MeanDifference>> =
        scaled.iter().map(|scaled| test(&scaled.reference, &scaled.values)).collect();
    let both = || scaled.iter().zip(&means);
    let p_differs = both().map(|(scaled, means)| {
        means.map_or(1.0, |means| means.p_within(scaled.distance(question.resolution)))
    });
    let p_equal = both().map(|(scaled, means)| {
        let margin = scaled.distance(question.equal_within) - scaled.distance(question.resolution);
        // A share of zero is zero: only sets of nothing but zeros are within it.
        let margin = if scaled.shares { margin } else { f64::MIN_POSITIVE };
        means.map_or(1.0, |means| means.p_beyond(margin))
    });
    let p_differs: Vec<f64> = p_differs.collect();
    let adjusted_differs = adjusted(&p_differs);
    let adjusted_equal = adjusted(&p_equal.collect::<Vec<f64>>());
    let tests = both().zip(p_differs).zip(adjusted_differs.into_iter().zip(adjusted_equal));
    pairs
        .iter()
        .zip(tests)
        .map(|((reference, set), (((scaled, means), t_p), (t_p_adjusted, equality_p_adjusted)))| {
            let p = Tests { t_p, t_p_adjusted, equality_p_adjusted, family: pairs.len() };
            let ministat = ministat::proves_difference(reference, set, question.confidence);
            one(scaled, *means, p, ministat, question)
        })
        .collect()
}

/// Both sets, with `by_round` as far as each value has a partner.
fn together<'a>(reference: &'a [f64], values: &'a [f64], by_round: bool) -> (&'a [f64], &'a [f64]) {
    let rounds = reference.len().min(values.len());
    match (by_round, reference.get(..rounds), values.get(..rounds)) {
        (true, Some(reference), Some(values)) => (reference, values),
        _ => (reference, values),
    }
}

/// p of one comparison, and how many there are.
struct Tests {
    t_p: f64,
    t_p_adjusted: f64,
    equality_p_adjusted: f64,
    family: usize,
}

fn one(
    scaled: &Scaled,
    means: Option<MeanDifference>,
    p: Tests,
    ministat: Option<bool>,
    question: &Question,
) -> Comparison {
    let error = question.confidence.error();
    let ranks = Ranks::new(&scaled.reference, &scaled.values, error);
    let rank_p = ranks.map_or(1.0, |ranks| ranks.p);
    let signed_ranks =
        SignedRanks::new(&scaled.reference, &scaled.values, error).filter(|_| question.by_round);
    let signed_rank_p = signed_ranks.map(|ranks| ranks.p);
    let differs = p.t_p_adjusted <= error && rank_p.min(signed_rank_p.unwrap_or(1.0)) <= error;
    let difference = scaled.mean_difference();
    let verdict = if p.equality_p_adjusted <= error {
        Verdict::Equal
    } else if differs {
        if (difference < 0.0) == question.less_is_better { Verdict::Better } else { Verdict::Worse }
    } else {
        Verdict::NotProven(outlook(scaled, p.family, question))
    };
    let resolution = scaled.distance(question.resolution);
    let interval = means.map(|means| means.interval(error));
    let shift = signed_ranks.map(|ranks| (ranks.shift, ranks.interval));
    let shift = shift.or(ranks.map(|ranks| (ranks.shift, ranks.interval))).and_then(|(shift, interval)| {
        Some((scaled.change(shift)?, interval.and_then(|interval| scaled.interval(interval))))
    });
    Comparison {
        verdict,
        differs,
        change: scaled.change(difference).filter(|change| change.is_finite()),
        interval: interval.and_then(|(low, high)| scaled.interval((low - resolution, high + resolution))),
        t_p: p.t_p,
        t_p_adjusted: p.t_p_adjusted,
        equality_p_adjusted: p.equality_p_adjusted,
        rank_p,
        signed_rank_p,
        shift,
        ministat,
        open: [false; 2],
    }
}

fn outlook(scaled: &Scaled, family: usize, question: &Question) -> Outlook {
    if scaled.reference.len() < 2 || scaled.values.len() < 2 {
        return Outlook::Unknown;
    }
    let error = question.confidence.error();
    let aim = Aim {
        error: error / family.max(1) as f64,
        rank_error: error,
        resolution: scaled.distance(question.resolution),
        band: scaled.shares.then(|| scaled.distance(question.equal_within)),
        by_round: question.by_round,
    };
    more_repeats(&scaled.reference, &scaled.values, &aim).map_or(Outlook::Hopeless, Outlook::Repeats)
}

/// Whether `values` are proven to be worse than `reference` by more than the share `bound`: they
/// differ from a reference that is as much worse, and are worse still.
#[must_use]
pub fn regresses(reference: &[f64], sets: &[&[f64]], bound: f64, question: &Question) -> Vec<bool> {
    let factor = if question.less_is_better { 1.0 + bound } else { 1.0 - bound };
    let allowed: Vec<f64> = reference.iter().map(|value| value * factor).collect();
    let worse = |comparison: &Comparison| {
        let less = comparison.change.is_some_and(|change| change < 0.0);
        comparison.differs && less != question.less_is_better
    };
    compare(&allowed, sets, question).iter().map(worse).collect()
}

#[cfg(test)]
mod tests;
