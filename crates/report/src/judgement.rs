//! What repeats prove, in words: comparisons enter; the verdict, what it rests on and what a reader
//! should not miss leave. The terminal, the page and Markdown say the same.

use stats::bootstrap::{self, MedianRatio};
use stats::comparison::{ADVISED, Outlook, Question, Verdict};
use stats::{Comparison, Confidence};

/// Of the bootstrap: the same numbers give the same interval.
const SEED: u64 = 1;

/// What is compared, and how.
#[derive(Clone, Debug)]
pub struct Compared {
    /// What the values are, in words.
    pub metric: String,
    /// What is said of better and of worse figures.
    pub words: [&'static str; 2],
    /// What all others are compared with.
    pub reference: String,
    /// How many comparisons claims are corrected for.
    pub family: usize,
    /// How sure claims are.
    pub confidence: Confidence,
    /// The share within which values count as equal.
    pub equal_within: f64,
    /// The share by which values may be off however often they are measured.
    pub resolution: f64,
}

/// One set against the reference.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The set's name.
    pub name: String,
    /// What is proven, and by what.
    pub comparison: Comparison,
    /// The ratio of the medians, beside.
    pub medians: Option<MedianRatio>,
    /// Whether it is proven to be worse by more than it may be; `None` if that was not asked.
    pub regresses: Option<bool>,
}

impl Judged {
    /// `comparison` of the `values` of `name` with `reference`, and the ratio of their medians.
    #[must_use]
    pub fn new(
        name: &str,
        comparison: Comparison,
        reference: &[f64],
        values: &[f64],
        question: &Question,
    ) -> Self {
        let error = question.confidence.error();
        let medians = bootstrap::median_ratio(reference, values, question.by_round, error, SEED);
        Self { name: name.to_owned(), comparison, medians, regresses: None }
    }
}

/// The verdict in a word or two.
#[must_use]
pub fn verdict_word(verdict: Verdict, [better, worse]: [&'static str; 2]) -> &'static str {
    match verdict {
        Verdict::Better => better,
        Verdict::Worse => worse,
        Verdict::Equal => "equal",
        Verdict::NotProven(_) => "not proven",
    }
}

/// The verdict, the change and what would help, in a sentence.
#[must_use]
pub fn sentence(what: &Compared, set: &Judged) -> String {
    let comparison = &set.comparison;
    let change = match (comparison.change, comparison.interval) {
        (Some(change), Some(interval)) => format!("{}, {}", signed(change), between(interval)),
        (Some(change), None) => signed(change),
        (None, _) if comparison.verdict == Verdict::Equal => "zero each time".to_owned(),
        (None, _) => "from zero, so by no percentage".to_owned(),
    };
    let outlook = outlook(set).map_or_else(String::new, |outlook| format!("; {outlook}"));
    format!("{}: {change}{outlook}", verdict(what, set))
}

/// The verdict alone, like `equal within ±1 %`.
#[must_use]
pub fn verdict(what: &Compared, set: &Judged) -> String {
    match set.comparison.verdict {
        Verdict::Equal => format!("equal within ±{}", share(what.equal_within)),
        verdict => verdict_word(verdict, what.words).to_owned(),
    }
}

/// What would help where nothing is proven, and what an equality hides.
#[must_use]
pub fn outlook(set: &Judged) -> Option<String> {
    match set.comparison.verdict {
        Verdict::NotProven(Outlook::Repeats(1)) => Some("1 more repeat of each would likely tell".to_owned()),
        Verdict::NotProven(Outlook::Repeats(more)) => {
            Some(format!("{more} more repeats of each would likely tell"))
        }
        Verdict::NotProven(Outlook::Hopeless) => {
            Some("more repeats will not help: the measurement is too coarse or too noisy".to_owned())
        }
        Verdict::NotProven(Outlook::Unknown) => {
            Some(format!("one value has no spread: repeat each measurement {ADVISED} times"))
        }
        Verdict::NotProven(Outlook::Further) => {
            Some("not every figure is the limit of a device: a higher load would tell".to_owned())
        }
        Verdict::Better | Verdict::Worse if set.comparison.open.contains(&true) => {
            Some("it may be more: not every figure is the limit of a device".to_owned())
        }
        Verdict::Equal if set.comparison.differs => {
            Some("the difference is significant but within the threshold".to_owned())
        }
        _ => None,
    }
}

/// An interval of changes in words.
#[must_use]
pub fn between((low, high): (f64, f64)) -> String {
    format!("between {} and {}", signed(low), signed(high))
}

/// What the verdict rests on, and what is shown beside: nothing, of single values.
#[must_use]
pub fn figures(what: &Compared, set: &Judged) -> Vec<String> {
    let comparison = &set.comparison;
    if comparison.verdict == Verdict::NotProven(Outlook::Unknown) {
        return Vec::new();
    }
    let adjusted = match what.family {
        0 | 1 => String::new(),
        family => format!(" ({} for {family} comparisons)", p(comparison.t_p_adjusted)),
    };
    let (test, signed_ranks) = match comparison.signed_rank_p {
        None => ("Welch on logarithms", String::new()),
        Some(signed) => {
            ("Student on logarithms, round by round", format!(", {} by Wilcoxon, round by round", p(signed)))
        }
    };
    let mut lines = vec![format!(
        "p if they were equal: {}{adjusted} by {test}, {} by Mann and Whitney{signed_ranks}; \
         if they were ±{} apart: {}",
        p(comparison.t_p),
        p(comparison.rank_p),
        share(what.equal_within),
        p(comparison.equality_p_adjusted)
    )];
    let mut beside = Vec::new();
    if let Some((shift, interval)) = comparison.shift {
        let interval = interval.map_or_else(|| "too few for an interval".to_owned(), between);
        beside.push(format!("shift by Hodges and Lehmann {}, {interval}", signed(shift)));
    }
    if let Some(medians) = set.medians {
        let (low, high) = medians.interval;
        let interval = between((low - 1.0, high - 1.0));
        beside.push(format!("medians {}, {interval} by bootstrap", signed(medians.ratio - 1.0)));
    }
    if !beside.is_empty() {
        lines.push(beside.join("; "));
    }
    if what.resolution > 0.0 {
        let off = share(what.resolution);
        lines.push(format!("the values themselves are known to {off}, which no repeats mend"));
    }
    lines
}

/// What a reader should not miss: regressions, and practices that disagree.
#[must_use]
pub fn remarks(what: &Compared, set: &Judged) -> Vec<String> {
    let comparison = &set.comparison;
    let mut remarks = Vec::new();
    if set.regresses == Some(true) {
        remarks.push("this is a regression beyond what is allowed".to_owned());
    }
    if comparison.disagrees_with_ministat() {
        let error = what.confidence.error();
        let by_round = comparison.signed_rank_p.is_some();
        let why = if by_round && (comparison.differs || comparison.t_p > error) {
            "it does not know what was measured in the same round".to_owned()
        } else if comparison.differs {
            "it takes the noise of both for equal".to_owned()
        } else if comparison.t_p > error {
            "it takes the noise of both for equal, and the values for exact".to_owned()
        } else if comparison.t_p_adjusted > error {
            format!("it does not know that this is one of {} comparisons", what.family)
        } else {
            "the ranks do not bear it out: there are too few repeats, or a single odd one decides".to_owned()
        };
        let says = if comparison.differs { "no difference is proven" } else { "there is a difference" };
        remarks.push(format!("ministat and this test disagree: ministat says that {says}, but {why}"));
    }
    remarks
}

/// A chance: two digits, or that it is very small.
#[must_use]
pub fn p(value: f64) -> String {
    match value {
        value if value < 1e-4 => "< 0.0001".to_owned(),
        value if value < 0.01 => format!("{value:.4}"),
        value => format!("{value:.2}"),
    }
}

/// A share in percent without needless zeros.
#[must_use]
pub fn share(value: f64) -> String {
    let percent = format!("{:.3}", value * 100.0);
    format!("{} %", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// A change in percent with its sign: two decimals below ten, one below a thousand.
#[must_use]
pub fn signed(change: f64) -> String {
    let percent = change * 100.0;
    let decimals = match percent.abs() {
        size if size < 9.995 => 2,
        size if size < 999.95 => 1,
        _ => 0,
    };
    format!("{percent:+.decimals$} %")
}

#[cfg(test)]
mod tests {
    use stats::comparison;

    use super::*;
    use crate::metric::Metric;

    #[test]
    fn sets_of_zeros_are_equal_and_what_comes_from_zero_has_no_percentage() {
        let question = Question { less_is_better: true, ..Question::default() };
        let what = Compared {
            metric: "loss".to_owned(),
            words: Metric::Loss.comparatives(),
            reference: "one".to_owned(),
            family: 1,
            confidence: question.confidence,
            equal_within: question.equal_within,
            resolution: 0.0,
        };
        let told = |values: &[f64]| {
            let compared = comparison::compare(&[0.0; 6], &[values], &question).remove(0);
            sentence(&what, &Judged::new("other", compared, &[0.0; 6], values, &question))
        };
        assert_eq!(told(&[0.0; 6]), "equal within ±1 %: zero each time");
        let more = told(&[0.1, 0.2, 0.1, 0.3, 0.2, 0.1]);
        assert_eq!(more, "loses more: from zero, so by no percentage");
    }

    #[test]
    fn lost_frames_are_not_slower() {
        assert_eq!(verdict_word(Verdict::Better, Metric::Loss.comparatives()), "loses less");
        assert_eq!(verdict_word(Verdict::Worse, Metric::Loss.comparatives()), "loses more");
        assert_eq!(
            [0.0, 0.000_01, 0.002_5, 0.034, 1.0].map(p),
            ["< 0.0001", "< 0.0001", "0.0025", "0.03", "1.00"]
        );
        assert_eq!([0.01, 0.025, 0.000_5].map(share), ["1 %", "2.5 %", "0.05 %"]);
    }
}
