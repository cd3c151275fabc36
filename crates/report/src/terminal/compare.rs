//! What repeats prove, for people: comparisons enter, a sentence on each and what it rests on leave.

use std::fmt::Write as _;

use stats::comparison::Verdict;

use super::Look;
use crate::judgement::{Compared, Judged, figures, remarks, sentence};

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

#[cfg(test)]
mod tests {
    use stats::comparison::{Question, compare as judge};

    use super::*;

    const BASE: [f64; 6] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2];

    fn what(question: &Question, family: usize) -> Compared {
        Compared {
            metric: "ndr".to_owned(),
            words: crate::metric::SPEED,
            reference: "base".to_owned(),
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
            real.contains("equal within ±10 %") && real.contains("is significant but within the threshold"),
            "{real}"
        );
        let open = text(&[&by(1.006)], &question);
        assert!(open.contains("not proven: +0.60 %") && open.contains("would likely tell"), "{open}");
        let single = text(&[&[120.0]], &question);
        assert!(single.contains("not proven: +20.0 %; one value has no spread"), "{single}");
        let coarse = text(&[&by(1.05)], &Question { resolution: 0.2, ..question });
        assert!(
            coarse.contains("more repeats will not help") && coarse.contains("known to 20 %"),
            "{coarse}"
        );
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
}
