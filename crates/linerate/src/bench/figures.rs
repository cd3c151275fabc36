//! What a bench found: its plan and the records of its complete runs enter; the figure of each
//! cell's repeats and what they prove leave, for people.

use std::collections::BTreeMap;

use report::terminal::{Compared, Repeats};
use results::Record;
use stats::comparison::{Question, compare_pairs};

use super::plan::{Kept, Plan, Run};
use crate::compare::beside;
use crate::compare::metric::Metric;

/// The figure of one run.
pub fn headline(record: &Record) -> String {
    let metric = Metric::headline(record);
    match metric.read(record) {
        Ok(reading) if reading.doubts.is_empty() => format!("{metric} {}", metric.show(reading.value)),
        Ok(reading) => format!("{metric} {} ({})", metric.show(reading.value), reading.doubts.join("; ")),
        Err(error) => error.to_string(),
    }
}

/// The figures of all cells.
pub struct Figures<'a> {
    plan: &'a Plan<'a>,
    metric: Metric,
    /// By cell.
    repeats: Vec<Repeats>,
    /// The coarsest of all readings.
    resolution: f64,
}

impl<'a> Figures<'a> {
    /// The figures of the complete runs; none if there are none.
    pub fn new(plan: &'a Plan<'a>, kept: &Kept) -> Option<Self> {
        let metric = Metric::headline(kept.complete.values().next()?);
        let mut figures = Self { plan, metric, repeats: Vec::new(), resolution: 0.0 };
        for (cell, described) in plan.cells.iter().enumerate() {
            let mut repeats = Repeats { name: described.label(), ..Repeats::default() };
            let mut doubts = BTreeMap::new();
            let runs = Run { cell, repeat: 0 }..=Run { cell, repeat: u32::MAX };
            for record in kept.complete.range(runs).map(|(_, record)| record) {
                let reasons = match figures.metric.read(record) {
                    Ok(reading) => {
                        repeats.values.push(reading.value);
                        figures.resolution = figures.resolution.max(reading.resolution);
                        reading.doubts
                    }
                    Err(error) => vec![error.to_string()],
                };
                reasons.into_iter().for_each(|reason| *doubts.entry(reason).or_default() += 1);
            }
            repeats.doubts = doubts.into_iter().collect();
            figures.repeats.push(repeats);
        }
        Some(figures)
    }

    /// A row for each cell.
    pub fn table(&self, colour: bool) -> String {
        report::terminal::repeats(
            &self.metric.to_string(),
            &self.repeats,
            |value| self.metric.show(value),
            colour,
        )
    }

    /// What the repeats of each device prove beside those of the baseline, test by test. All claims
    /// of the matrix are one family.
    pub fn comparisons(&self, colour: bool) -> String {
        let pairs = self.pairs();
        let question = Question {
            resolution: self.resolution,
            less_is_better: self.metric.less_is_better(),
            ..Question::default()
        };
        let values: Vec<(&[f64], &[f64])> = pairs
            .iter()
            .map(|pair| {
                (self.repeats[pair.reference].values.as_slice(), self.repeats[pair.cell].values.as_slice())
            })
            .collect();
        let mut tests: Vec<(String, Vec<_>)> = Vec::new();
        let compared = compare_pairs(&values, &question);
        for ((pair, (reference, values)), comparison) in pairs.iter().zip(&values).zip(compared) {
            let cell = &self.plan.cells[pair.cell];
            let judged = beside(&cell.dut.name, comparison, reference, values, question.confidence);
            match tests.last_mut().filter(|(test, _)| *test == cell.test()) {
                Some((_, all)) => all.push(judged),
                None => tests.push((cell.test(), vec![judged])),
            }
        }
        let sentences = tests.iter().map(|(test, judged)| {
            let what = Compared {
                metric: &format!("{test}: {}", self.metric.words()),
                is_loss: self.metric == Metric::Loss,
                reference: &self.plan.bench.baseline,
                family: pairs.len(),
                confidence: question.confidence,
                equal_within: question.equal_within,
                resolution: question.resolution,
            };
            report::terminal::compare(&what, judged, colour)
        });
        sentences.collect::<Vec<_>>().join("\n")
    }

    /// Each cell that has figures with that of the baseline in the same test, test by test.
    fn pairs(&self) -> Vec<Pair> {
        let cells = &self.plan.cells;
        let has_figures = |at: &usize| !self.repeats[*at].values.is_empty();
        let measured = || (0..cells.len()).filter(has_figures);
        let is_baseline = |at: usize| cells[at].dut.name == self.plan.bench.baseline;
        let reference =
            |cell: usize| measured().find(|at| is_baseline(*at) && cells[*at].test() == cells[cell].test());
        let others = measured().filter(|cell| !is_baseline(*cell));
        others.filter_map(|cell| Some(Pair { reference: reference(cell)?, cell })).collect()
    }
}

/// Two cells of one test.
struct Pair {
    reference: usize,
    cell: usize,
}
