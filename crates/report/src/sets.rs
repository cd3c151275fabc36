//! Repeats of several configurations beside one another: records or numbers enter; whether they may be compared, and
//! what they prove, leave.

use results::Record;
use results::facts;
use stats::comparison::{Question, Verdict, compare, regresses};
use stats::{Comparison, Confidence, ranks};

use crate::judgement::Judged;
use crate::metric::{Metric, Missing, Reading};

/// The values of one configuration.
pub struct Set {
    /// The configuration's name.
    pub name: String,
    /// One value of each repeat.
    pub values: Vec<f64>,
    /// The share by which the coarsest of the values may be off.
    pub resolution: f64,
    /// The ids of the records whose values are doubtful, and why.
    doubts: Vec<(String, Vec<String>)>,
    /// Whether the truth may lie above some of the values.
    is_open: bool,
}

impl Set {
    /// Plain numbers.
    #[must_use]
    pub fn of_numbers(name: &str, values: &[f64]) -> Self {
        Self {
            name: name.to_owned(),
            values: values.to_vec(),
            resolution: 0.0,
            doubts: Vec::new(),
            is_open: false,
        }
    }

    /// `metric` of `records`, or their headline.
    ///
    /// # Errors
    /// When a record does not have it.
    pub fn of_records(name: &str, records: &[Record], metric: Option<&Metric>) -> Result<Self, Missing> {
        let own = |record| metric.cloned().unwrap_or_else(|| Metric::headline(record));
        let readings: Vec<Reading> =
            records.iter().map(|record| own(record).read(record)).collect::<Result<_, _>>()?;
        let doubtful = |(record, reading): (&Record, &Reading)| {
            (!reading.doubts.is_empty()).then(|| (record.id.clone(), reading.doubts.clone()))
        };
        Ok(Self {
            name: name.to_owned(),
            resolution: readings.iter().map(|reading| reading.resolution).fold(0.0, f64::max),
            doubts: records.iter().zip(&readings).filter_map(doubtful).collect(),
            is_open: readings.iter().any(|reading| reading.is_open),
            values: readings.into_iter().map(|reading| reading.value).collect(),
        })
    }

    /// Which records are doubtful, and why.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.doubts.iter().map(|(id, doubts)| format!("{id} is doubtful: {}", doubts.join("; ")))
    }
}

/// The names and records of groups.
type Groups<'a> = &'a [(&'a str, &'a [Record])];

/// Settings that a refusal names.
const NAMED: usize = 4;

/// What does not belong together: records of one group that differ, and groups that were not measured alike.
#[must_use]
pub fn mixed(groups: Groups) -> Vec<String> {
    let all = |record: &Record| {
        let mut facts = facts::measurement(record);
        facts.extend(facts::configuration(record));
        facts
    };
    let mut mixed = Vec::new();
    for (name, records) in groups {
        let found = facts::differences(records.iter().map(|record| (record.id.as_str(), all(record))));
        if !found.is_empty() {
            mixed.push(format!("the records of {name} differ in {}", few(&found)));
        }
    }
    let measured =
        facts::differences(firsts(groups).map(|(name, record)| (name, facts::measurement(record))));
    if !measured.is_empty() {
        mixed.push(format!("the groups were not measured alike: {}", few(&measured)));
    }
    mixed
}

/// The first of `all`, and how many more there are.
fn few(all: &[String]) -> String {
    let first = all.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    match all.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first}; and {more} more settings"),
    }
}

/// What a reader should know of groups that are compared: in what they differ, and when they were measured.
#[must_use]
pub fn notes(groups: Groups) -> Vec<String> {
    let configured =
        facts::differences(firsts(groups).map(|(name, record)| (name, facts::configuration(record))));
    let differ = (!configured.is_empty()).then(|| format!("they differ in {}", configured.join("; ")));
    differ.into_iter().chain(one_after_another(groups)).collect()
}

fn firsts<'a>(groups: Groups<'a>) -> impl Iterator<Item = (&'a str, &'a Record)> {
    groups.iter().filter_map(|(name, records)| Some((*name, records.first()?)))
}

/// Whether all runs of a group ended before those of the next began: then what else changed with
/// time looks like a difference.
fn one_after_another(groups: Groups) -> Option<String> {
    let times = groups.iter().filter_map(|(_, records)| {
        let started = || records.iter().map(|record| record.started.as_str());
        Some((started().min()?, started().max()?))
    });
    let mut times: Vec<(&str, &str)> = times.collect();
    times.sort_unstable();
    let apart = times.len() > 1 && times.windows(2).all(|pair| matches!(pair, [one, next] if one.1 < next.0));
    apart.then(|| {
        "the groups were measured one after the other: what changed meanwhile looks like a difference; take \
         turns where it matters"
            .to_owned()
    })
}

/// Which regressions are asked for.
#[derive(Clone, Copy, Debug)]
pub enum Regressions {
    /// None.
    Unasked,
    /// Any that is proven.
    Any,
    /// Those that are proven to be of more than this share.
    Beyond(f64),
}

/// Why sets cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum Unjudged {
    /// By round, each set needs a value of every round.
    #[error("{0} has {1} values and {2} has {3}: by round, each needs one of every round")]
    Rounds(String, usize, String, usize),
    /// A check that could never fail.
    #[error(
        "{before} values of {reference} and {now} of {name} can prove nothing at {confidence} confidence, so no \
         regression either: measure each at least {enough} times"
    )]
    TooFew {
        /// The reference's name.
        reference: String,
        /// How many values the reference has.
        before: usize,
        /// The set's name.
        name: String,
        /// How many values the set has.
        now: usize,
        /// How sure a claim is to be.
        confidence: Confidence,
        /// How many values of each can prove something.
        enough: usize,
    },
}

/// What `others` prove beside `reference`.
///
/// # Errors
/// When they have too few values for the `question`, or for the regressions that are asked for.
pub fn judge(
    reference: &Set,
    others: &[Set],
    question: &Question,
    asked: Regressions,
) -> Result<Vec<Judged>, Unjudged> {
    let count = reference.values.len();
    if let Some(odd) = others.iter().find(|set| question.by_round && set.values.len() != count) {
        let names = (reference.name.clone(), odd.name.clone());
        return Err(Unjudged::Rounds(names.0, count, names.1, odd.values.len()));
    }
    let sets: Vec<&[f64]> = others.iter().map(|set| set.values.as_slice()).collect();
    let compared = compare(&reference.values, &sets, question).into_iter().zip(others);
    let comparisons: Vec<Comparison> = compared
        .map(|(comparison, set)| {
            comparison.with_open_ends([reference.is_open, set.is_open], question.less_is_better)
        })
        .collect();
    if !matches!(asked, Regressions::Unasked) {
        others.iter().try_for_each(|set| can_tell(reference, set, question.confidence))?;
    }
    // Nobody knows how much worse a truth is that may lie above the lesser values.
    let lesser_is_open = |set: &Set| if question.less_is_better { reference.is_open } else { set.is_open };
    let worse = |bound: f64| {
        let regresses = regresses(&reference.values, &sets, bound, question).into_iter().zip(others);
        regresses.map(|(regresses, set)| Some(regresses && !lesser_is_open(set)))
    };
    let regressions: Vec<Option<bool>> = match asked {
        Regressions::Unasked => vec![None; sets.len()],
        Regressions::Any => comparisons.iter().map(|one| Some(one.verdict == Verdict::Worse)).collect(),
        Regressions::Beyond(bound) => worse(bound).collect(),
    };
    let judged = others.iter().zip(comparisons).zip(regressions);
    Ok(judged
        .map(|((set, comparison), regresses)| Judged {
            regresses,
            ..Judged::new(&set.name, comparison, &reference.values, &set.values, question)
        })
        .collect())
}

/// Refuses a check that could never fail.
fn can_tell(reference: &Set, set: &Set, confidence: Confidence) -> Result<(), Unjudged> {
    let [before, now] = [reference, set].map(|set| set.values.len());
    if ranks::least_p(before, now) <= confidence.error() {
        return Ok(());
    }
    let is_enough = |count: &usize| ranks::least_p(*count, *count) <= confidence.error();
    Err(Unjudged::TooFew {
        reference: reference.name.clone(),
        before,
        name: set.name.clone(),
        now,
        confidence,
        enough: (2..).find(is_enough).unwrap_or(usize::MAX),
    })
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;

    fn question(by_round: bool) -> Question {
        Question {
            confidence: Confidence::default(),
            equal_within: 0.01,
            resolution: 0.0,
            less_is_better: false,
            by_round,
        }
    }

    #[test]
    fn regressions_are_told_where_they_are_asked_for_and_can_be_proven() {
        let before = Set::of_numbers("before", &[100.0, 101.0, 99.0, 100.5, 99.5, 100.2]);
        let now = |values: &[f64]| [Set::of_numbers("now", values)];
        let slower = now(&[80.0, 81.0, 79.0, 80.5, 79.5, 80.2]);
        let told =
            |others: &[Set], asked| judge(&before, others, &question(false), asked).unwrap()[0].regresses;
        assert_eq!(told(&slower, Regressions::Unasked), None);
        assert_eq!(told(&slower, Regressions::Any), Some(true));
        assert_eq!(told(&slower, Regressions::Beyond(0.1)), Some(true));
        assert_eq!(told(&slower, Regressions::Beyond(0.3)), Some(false));
        // Values that a lower target ended.
        let [mut ended] = slower;
        ended.is_open = true;
        let ended = [ended];
        assert_eq!(told(&ended, Regressions::Any), Some(false));
        assert_eq!(told(&ended, Regressions::Beyond(0.1)), Some(false));
        let few = judge(&before, &now(&[80.0]), &question(false), Regressions::Any).unwrap_err().to_string();
        assert!(
            few.contains("1 of now can prove nothing") && few.contains("measure each at least 4"),
            "{few}"
        );
        let odd =
            judge(&before, &now(&[80.0]), &question(true), Regressions::Unasked).unwrap_err().to_string();
        assert_eq!(odd, "before has 6 values and now has 1: by round, each needs one of every round");
    }

    #[test]
    fn what_was_not_measured_alike_is_named_and_what_was_measured_apart_noted() {
        let record = |dut, started: &str| {
            let mut record = Scenario { dut, ..Scenario::default() }.record();
            record.started = started.to_owned();
            record
        };
        let [one, other] = [[record("linux-router", "1")], [record("xdp-router", "2")]];
        let groups: [(&str, &[Record]); 2] = [("a", &one), ("b", &other)];
        assert!(mixed(&groups).is_empty(), "{:?}", mixed(&groups));
        let told = notes(&groups);
        assert!(
            told[0].starts_with("they differ in device (linux-router in a, xdp-router in b)"),
            "{told:?}"
        );
        assert!(told[1].contains("one after the other"), "{told:?}");
        let both = [record("linux-router", "1"), record("xdp-router", "2")];
        let told = mixed(&[("a", &both)]);
        assert!(told[0].starts_with("the records of a differ in device"), "{told:?}");
    }
}
