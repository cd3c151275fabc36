//! What a bench found: its description and records enter; the figure of each repeat, and what the
//! repeats of each device (or profile) prove beside those of the baseline, round by round, leave. Every report
//! shows these. [`Contrast`] has what is compared with what.
//!
//! All claims of a bench are one family: a large matrix does not claim more by chance than a single
//! pair.

mod contrast;

use std::collections::BTreeMap;

use results::Record;
use results::bench::{Bench as Description, Compare, Dut, Place, Profile};
use results::record::Status;
use stats::comparison::{Question, compare_pairs};
use stats::ministat::{self, Options};

pub use contrast::{Contrast, Member};

use crate::judgement::{Compared, Judged};
use crate::metric::{Metric, Reading};

/// All figures of a bench.
pub struct Bench<'a> {
    /// What it was to be.
    pub description: &'a Description,
    /// What the figures are.
    pub metric: Metric,
    /// What is asked of them.
    pub question: Question,
    /// Profile by profile, direction by direction.
    pub tests: Vec<Test<'a>>,
    /// How many comparisons claims are corrected for.
    pub family: usize,
    /// Records that came to their end, but are of a repeat that has a record already.
    pub surplus: usize,
}

/// All devices with one profile in one direction.
pub struct Test<'a> {
    /// What was sent.
    pub profile: &'a Profile,
    /// `one` or `both`.
    pub direction: &'a str,
    /// One for each device, in their order.
    pub cells: Vec<Cell<'a>>,
}

/// One device in one test.
pub struct Cell<'a> {
    /// The device.
    pub dut: &'a Dut,
    /// Those that came to their end, in their order.
    pub repeats: Vec<Repeat<'a>>,
    /// What they prove beside those of the baseline; nothing of the baseline itself, nor where they have no round in
    /// common.
    pub judged: Option<Judged>,
}

/// One run of a cell.
pub struct Repeat<'a> {
    /// From 1.
    pub number: u32,
    /// Its record.
    pub record: &'a Record,
    /// Its figure, or why there is none.
    pub reading: Result<Reading, String>,
}

/// How far repeats scatter about their median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// Where the interval begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
    /// Whether it holds the true median with the confidence asked for; else there are too few repeats
    /// to say, and it reaches from the least to the most.
    pub is_interval: bool,
}

impl<'a> Bench<'a> {
    /// What `records` say of the bench of `description`; `None` if none of its runs came to its end.
    #[must_use]
    pub fn new(description: &'a Description, records: &'a [Record]) -> Option<Self> {
        let mut complete: BTreeMap<(&str, &str, &str, u32), &Record> = BTreeMap::new();
        let mut surplus = 0;
        for record in records.iter().filter(|record| record.status == Status::Complete) {
            let Some(place) = Place::of(record).filter(|place| description.holds(place)) else { continue };
            let key = (place.profile, place.direction, place.dut, place.repeat);
            match complete.get(&key) {
                Some(_) => surplus += 1,
                None => _ = complete.insert(key, record),
            }
        }
        let metric = Metric::headline(complete.values().next()?);
        let mut tests = Vec::new();
        for profile in &description.profiles {
            for direction in &profile.directions {
                let cell = |dut: &'a Dut| {
                    let key = |repeat| (profile.name.as_str(), direction.as_str(), dut.name.as_str(), repeat);
                    let own = complete.range(key(0)..=key(u32::MAX));
                    let repeat = |((_, _, _, number), record): (&(_, _, _, u32), &&'a Record)| Repeat {
                        number: *number,
                        record,
                        reading: metric.read(record).map_err(|missing| missing.to_string()),
                    };
                    Cell { dut, repeats: own.map(repeat).collect(), judged: None }
                };
                let cells = description.duts.iter().map(cell).collect();
                tests.push(Test { profile, direction, cells });
            }
        }
        let readings = tests.iter().flat_map(|test| &test.cells).flat_map(Cell::readings);
        let question = Question {
            resolution: readings.map(|reading| reading.resolution).fold(0.0, f64::max),
            less_is_better: metric.less_is_better(),
            by_round: true,
            ..Question::default()
        };
        let mut bench = Self { description, metric, question, tests, family: 0, surplus };
        bench.judge();
        Some(bench)
    }

    /// Compares each cell that has figures with its reference.
    fn judge(&mut self) {
        let (mut places, mut pairs) = (Vec::new(), Vec::new());
        for contrast in self.contrasts() {
            for member in &contrast.others {
                let rounds = contrast.reference.cell.common_rounds(member.cell);
                let (before, now): (Vec<f64>, Vec<f64>) =
                    rounds.map(|(_, before, now)| (before, now)).unzip();
                if !now.is_empty() {
                    let open = [contrast.reference.cell, member.cell].map(Cell::is_open);
                    places.push((member.place, member.name.to_owned(), open));
                    pairs.push((before, now));
                }
            }
        }
        self.family = pairs.len();
        let values: Vec<(&[f64], &[f64])> =
            pairs.iter().map(|(before, now)| (before.as_slice(), now.as_slice())).collect();
        let compared = compare_pairs(&values, &self.question);
        let judged = places.into_iter().zip(&pairs).zip(compared);
        for ((((test, dut), name, open), (before, now)), comparison) in judged {
            let comparison = comparison.with_open_ends(open, self.question.less_is_better);
            let cell = self.tests.get_mut(test).and_then(|test| test.cells.get_mut(dut));
            if let Some(cell) = cell {
                cell.judged = Some(Judged::new(&name, comparison, before, now, &self.question));
            }
        }
    }

    /// Whether `name` is the device that all others are compared with.
    #[must_use]
    pub fn is_baseline_device(&self, name: &str) -> bool {
        self.is_baseline(Compare::Devices, name)
    }

    /// Whether `name` is the profile that all others are compared with.
    #[must_use]
    pub fn is_baseline_profile(&self, name: &str) -> bool {
        self.is_baseline(Compare::Profiles, name)
    }

    fn is_baseline(&self, of: Compare, name: &str) -> bool {
        self.description.compare == of && self.description.baseline.as_deref() == Some(name)
    }

    /// What is compared in `contrast`, and how.
    #[must_use]
    pub fn compared(&self, contrast: &Contrast) -> Compared {
        Compared {
            metric: format!("{}: {}", contrast.name, self.metric.words()),
            words: self.metric.comparatives(),
            reference: contrast.reference.name.to_owned(),
            family: self.family,
            confidence: self.question.confidence,
            equal_within: self.question.equal_within,
            resolution: self.question.resolution,
        }
    }

    /// How the repeats of `cell` scatter; `None` if it has no figures.
    #[must_use]
    pub fn spread(&self, cell: &Cell) -> Option<Spread> {
        let mut sorted = cell.values();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let interval = stats::median::interval(&sorted, self.question.confidence.error());
        let (low, high) = interval.unwrap_or((least, most));
        let median = stats::trend::median(&sorted)?;
        Some(Spread { median, low, high, is_interval: interval.is_some() })
    }

    /// The block of ministat for a `member` of `contrast` beside its reference; `None` where one has too few
    /// repeats for it.
    #[must_use]
    pub fn ministat(&self, contrast: &Contrast, member: &Member) -> Option<String> {
        let (before, now) = (contrast.reference.cell.values(), member.cell.values());
        let sets: [(&str, &[f64]); 2] = [(contrast.reference.name, &before), (member.name, &now)];
        let options = Options { confidence: self.question.confidence, ..Options::default() };
        ministat::block(&sets, &options).ok()
    }

    /// All runs that came to their end, with their cells.
    pub fn runs(&self) -> impl Iterator<Item = (&Test<'a>, &Cell<'a>, &Repeat<'a>)> {
        self.tests.iter().flat_map(|test| {
            let cells = test.cells.iter();
            cells.flat_map(move |cell| cell.repeats.iter().map(move |repeat| (test, cell, repeat)))
        })
    }
}

impl Test<'_> {
    /// Its name, like `64 B/both`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.profile.name, self.direction)
    }

    /// Its name for people, like `64 B, both ways`.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}, {}", self.profile.name, way(self.direction))
    }
}

/// A direction in words.
#[must_use]
pub fn way(direction: &str) -> &str {
    match direction {
        "one" => "one way",
        "both" => "both ways",
        other => other,
    }
}

impl<'a> Cell<'a> {
    /// What is known of it.
    pub fn readings(&self) -> impl Iterator<Item = &Reading> {
        self.repeats.iter().filter_map(|repeat| repeat.reading.as_ref().ok())
    }

    /// The figures, in the order of the repeats.
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        self.readings().map(|reading| reading.value).collect()
    }

    /// Whether the truth may lie above some of the figures.
    fn is_open(&self) -> bool {
        self.readings().any(|reading| reading.is_open)
    }

    /// The rounds that this and the `other` cell have, with the figures of both.
    fn common_rounds(&self, other: &Cell) -> impl Iterator<Item = (u32, f64, f64)> {
        let figure = |repeat: &Repeat| Some((repeat.number, repeat.reading.as_ref().ok()?.value));
        let theirs: BTreeMap<u32, f64> = other.repeats.iter().filter_map(figure).collect();
        let both = self.repeats.iter().filter_map(figure);
        both.filter_map(move |(round, ours)| Some((round, ours, *theirs.get(&round)?)))
    }

    /// What makes some of the figures doubtful, in words, and how many of them.
    #[must_use]
    pub fn doubts(&self) -> Vec<(String, usize)> {
        let mut doubts: BTreeMap<&str, usize> = BTreeMap::new();
        for repeat in &self.repeats {
            match &repeat.reading {
                Ok(reading) => {
                    reading.doubts.iter().for_each(|doubt| *doubts.entry(doubt).or_default() += 1);
                }
                Err(missing) => *doubts.entry(missing).or_default() += 1,
            }
        }
        doubts.into_iter().map(|(doubt, count)| (doubt.to_owned(), count)).collect()
    }

    /// The run whose figure is the median; of an even number, the lower of the two in the middle.
    #[must_use]
    pub fn median_run(&self) -> Option<&Repeat<'a>> {
        let mut runs: Vec<(f64, &Repeat)> = Vec::new();
        for repeat in &self.repeats {
            runs.extend(repeat.reading.as_ref().ok().map(|reading| (reading.value, repeat)));
        }
        runs.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        runs.get(runs.len().checked_sub(1)? / 2).map(|(_, repeat)| *repeat)
    }
}
