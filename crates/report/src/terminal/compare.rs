//! What repeats prove, for people: comparisons enter, a sentence on each and what it rests on leave.

use std::fmt::Write as _;

use stats::bootstrap::MedianRatio;
use stats::comparison::{ADVISED, Outlook, Verdict};
use stats::{Comparison, Confidence};

use super::Look;

/// What is compared, and how.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// What the values are, in words.
    pub metric: &'a str,
    /// Whether they are lost frames: less is then not faster.
    pub is_loss: bool,
    /// What all others are compared with.
    pub reference: &'a str,
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

/// The verdict in a word or two.
#[must_use]
pub fn verdict_word(verdict: Verdict, is_loss: bool) -> &'static str {
    match (verdict, is_loss) {
        (Verdict::Better, false) => "faster",
        (Verdict::Better, true) => "loses less",
        (Verdict::Worse, false) => "slower",
        (Verdict::Worse, true) => "loses more",
        (Verdict::Equal, _) => "equal",
        (Verdict::NotProven(_), _) => "not proven",
    }
}

/// A sentence on each set and the figures behind it.
#[must_use]
pub fn compare(what: &Compared, sets: &[Judged], colour: bool) -> String {
    let title = format!("{}, against {}, at {} confidence", what.metric, what.reference, what.confidence);
    let mut text = format!("{}\n", Look::Title.paint(&title, colour));
    for set in sets {
        let look = match set.comparison.verdict {
            Verdict::Better => Look::Forwarded,
            Verdict::Worse => Look::Warning,
            Verdict::Equal => Look::Title,
            Verdict::NotProven(_) => Look::Plain,
        };
        let _ = writeln!(text, "  {}: {}", set.name, look.paint(&sentence(what, set), colour));
        for line in figures(what, set) {
            let _ = writeln!(text, "    {}", Look::Faint.paint(&line, colour));
        }
        for remark in remarks(what, set) {
            let _ = writeln!(text, "    {}", Look::Warning.paint(&remark, colour));
        }
    }
    text
}

fn sentence(what: &Compared, set: &Judged) -> String {
    let comparison = &set.comparison;
    let word = verdict_word(comparison.verdict, what.is_loss);
    let verdict = match comparison.verdict {
        Verdict::Equal => format!("equal within ±{}", share(what.equal_within)),
        _ => word.to_owned(),
    };
    let change = match (comparison.change, comparison.interval) {
        (Some(change), Some((low, high))) => {
            format!("{}, between {} and {}", signed(change), signed(low), signed(high))
        }
        (Some(change), None) => signed(change),
        (None, _) => "from zero, so by no percentage".to_owned(),
    };
    let outlook = match comparison.verdict {
        Verdict::NotProven(Outlook::Repeats(1)) => "; 1 more repeat of each would likely tell".to_owned(),
        Verdict::NotProven(Outlook::Repeats(more)) => {
            format!("; {more} more repeats of each would likely tell")
        }
        Verdict::NotProven(Outlook::Hopeless) => {
            "; more repeats would hardly tell: measure more finely, or with less noise".to_owned()
        }
        Verdict::NotProven(Outlook::Unknown) => {
            format!("; a single value tells nothing of the noise: measure each {ADVISED} times")
        }
        Verdict::Equal if comparison.differs => "; the difference is real, but counts as none".to_owned(),
        _ => String::new(),
    };
    format!("{verdict}: {change}{outlook}")
}

/// What the verdict rests on, and what is shown beside.
fn figures(what: &Compared, set: &Judged) -> Vec<String> {
    let comparison = &set.comparison;
    let adjusted = match what.family {
        0 | 1 => String::new(),
        family => format!(" ({} for {family} comparisons)", p(comparison.welch_p_adjusted)),
    };
    let mut lines = vec![format!(
        "p if they were equal: {}{adjusted} by Welch on logarithms, {} by Mann and Whitney; \
         if they were ±{} apart: {}",
        p(comparison.welch_p),
        p(comparison.rank_p),
        share(what.equal_within),
        p(comparison.equality_p_adjusted)
    )];
    let between = |interval: (f64, f64)| format!("between {} and {}", signed(interval.0), signed(interval.1));
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
fn remarks(what: &Compared, set: &Judged) -> Vec<String> {
    let comparison = &set.comparison;
    let mut remarks = Vec::new();
    if set.regresses == Some(true) {
        remarks.push("this is a regression beyond what is allowed".to_owned());
    }
    if comparison.disagrees_with_ministat() {
        let error = what.confidence.error();
        let why = if comparison.differs {
            "it takes the noise of both for equal".to_owned()
        } else if comparison.welch_p > error {
            "it takes the noise of both for equal, and the values for exact".to_owned()
        } else if comparison.welch_p_adjusted > error {
            format!("it does not know that this is one of {} comparisons", what.family)
        } else {
            "the ranks do not bear it out: there are too few repeats, or a single odd one decides".to_owned()
        };
        let says = if comparison.differs { "no difference is proven" } else { "there is a difference" };
        remarks.push(format!("the two practices disagree: ministat says that {says}, but {why}"));
    }
    remarks
}

/// A chance: two digits, or that it is very small.
fn p(value: f64) -> String {
    match value {
        value if value < 1e-4 => "< 0.0001".to_owned(),
        value if value < 0.01 => format!("{value:.4}"),
        value => format!("{value:.2}"),
    }
}

/// A share in percent without needless zeros.
fn share(value: f64) -> String {
    let percent = format!("{:.3}", value * 100.0);
    format!("{} %", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// A change in percent with its sign: two decimals below ten, one below a thousand.
fn signed(change: f64) -> String {
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
    use stats::comparison::{Question, compare as judge};

    use super::*;

    const BASE: [f64; 6] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2];

    fn what<'a>(question: &Question, family: usize) -> Compared<'a> {
        Compared {
            metric: "ndr",
            is_loss: false,
            reference: "base",
            family,
            confidence: question.confidence,
            equal_within: question.equal_within,
            resolution: question.resolution,
        }
    }

    fn text(sets: &[&[f64]], question: &Question) -> String {
        let judged = judge(&BASE, sets, question).into_iter().map(|comparison| Judged {
            name: "new".to_owned(),
            comparison,
            medians: None,
            regresses: None,
        });
        compare(&what(question, sets.len()), &judged.collect::<Vec<_>>(), false)
    }

    #[test]
    fn each_verdict_reads_as_a_sentence() {
        let by = |ratio: f64| BASE.map(|value| value * ratio);
        let question = Question::default();
        let faster = text(&[&by(1.05)], &question);
        assert!(
            faster.starts_with("ndr, against base, at 95 % confidence\n  new: faster: +5.00 %, between +4.")
        );
        assert!(text(&[&by(0.9)], &question).contains("new: slower: -10.0 %"));
        let equal = text(&[&by(1.001)], &Question { equal_within: 0.025, ..question });
        assert!(equal.contains("new: equal within ±2.5 %: +0.10 %"), "{equal}");
        let real = text(&[&by(1.015)], &Question { equal_within: 0.1, ..question });
        assert!(
            real.contains("equal within ±10 %") && real.contains("is real, but counts as none"),
            "{real}"
        );
        let open = text(&[&by(1.006)], &question);
        assert!(open.contains("not proven: +0.60 %") && open.contains("would likely tell"), "{open}");
        let single = text(&[&[120.0]], &question);
        assert!(single.contains("not proven: +20.0 %; a single value"), "{single}");
        let coarse = text(&[&by(1.05)], &Question { resolution: 0.2, ..question });
        assert!(coarse.contains("would hardly tell") && coarse.contains("known to 20 %"), "{coarse}");
        assert!(text(&[&[0.0; 6]], &question).contains("slower: -100.0 %"));
    }

    #[test]
    fn practices_that_disagree_say_why() {
        let question = Question::default();
        // Three repeats are too few for ranks.
        let few = text(&[&[110.0, 111.0, 110.5]], &question);
        assert!(few.contains("faster") && !few.contains("disagree"), "{few}");
        let values = BASE.map(|value| value * 1.012);
        let family: Vec<&[f64]> = vec![&values; 10];
        let many = text(&family, &Question { equal_within: 0.001, ..question });
        assert!(many.contains("ministat says that there is a difference"), "{many}");
        assert!(many.contains("one of 10 comparisons"), "{many}");
    }

    #[test]
    fn lost_frames_are_not_slower() {
        assert_eq!(verdict_word(Verdict::Better, true), "loses less");
        assert_eq!(verdict_word(Verdict::Worse, true), "loses more");
        assert_eq!(
            [0.0, 0.000_01, 0.002_5, 0.034, 1.0].map(p),
            ["< 0.0001", "< 0.0001", "0.0025", "0.03", "1.00"]
        );
        assert_eq!([0.01, 0.025, 0.000_5].map(share), ["1 %", "2.5 %", "0.05 %"]);
    }
}
