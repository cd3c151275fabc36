//! Tests against devices: records enter, a matrix of outcomes leaves: one group of tests for
//! each direction, one row for each test, one column for each device. Order is that of first appearance.

use std::collections::BTreeSet;

use results::record::{Record, Status};

use crate::evidence;
use crate::outcome::{Kind, Mark, Outcome};

/// All runs, arranged.
pub struct Comparison<'a> {
    /// The columns: devices with their parameters.
    pub duts: Vec<String>,
    /// Unidirectional tests, then bidirectional ones; groups without tests are left out.
    pub groups: Vec<Group<'a>>,
}

/// The tests of one way.
pub struct Group<'a> {
    /// `Unidirectional` or `Bidirectional`.
    pub title: &'static str,
    /// One for each test.
    pub rows: Vec<Row<'a>>,
}

/// One test against all devices; of searches, one goal of it.
pub struct Row<'a> {
    /// [`Record::test`].
    pub test: &'a str,
    /// [`Outcome::goal`].
    pub goal: Option<String>,
    /// The test without its way, like `64 B, 1 flow`, and the goal.
    pub label: String,
    /// One for each device, in the order of [`Comparison::duts`].
    pub cells: Vec<Cell<'a>>,
}

/// All runs of one test against one device, in order of their share of line rate.
#[derive(Default)]
pub struct Cell<'a> {
    /// They may be none.
    pub runs: Vec<Outcome<'a>>,
}

impl<'a> Comparison<'a> {
    pub fn new(records: &'a [Record]) -> Self {
        Self::in_order(records, &[])
    }

    /// With the columns in the order of `known`, as far as they are among it.
    pub fn in_order(records: &'a [Record], known: &[&str]) -> Self {
        let mut duts: Vec<String> = Vec::new();
        for record in records {
            let dut = record.device();
            if !duts.contains(&dut) {
                duts.push(dut);
            }
        }
        let place = |dut: &String| known.iter().position(|known| known == dut).unwrap_or(known.len());
        duts.sort_by_key(place);
        let groups = [("Unidirectional", false), ("Bidirectional", true)].into_iter();
        let groups = groups
            .map(|(title, bidirectional)| {
                let group: Vec<_> =
                    records.iter().filter(|record| record.profile.bidirectional == bidirectional).collect();
                Group { title, rows: rows(&group, &duts) }
            })
            .filter(|group| !group.rows.is_empty())
            .collect();
        Self { duts, groups }
    }

    /// All rows, across groups.
    pub fn rows(&self) -> impl Iterator<Item = &Row<'a>> {
        self.groups.iter().flat_map(|group| &group.rows)
    }

    /// All tests, each once.
    pub fn tests(&self) -> Vec<&'a str> {
        let mut tests = Vec::new();
        for row in self.rows() {
            if !tests.contains(&row.test) {
                tests.push(row.test);
            }
        }
        tests
    }

    /// What stands in the cells, in words without a full stop.
    pub fn caption(&self) -> String {
        match self.figure() {
            figure if figure.is_empty() => "what each test found".to_owned(),
            figure => format!("{figure} (and {}), directions added up", self.between()),
        }
    }

    /// What the rates are, in words; empty where no test found a rate.
    pub fn figure(&self) -> String {
        let curves = || self.runs().filter(|run| run.has_figures && Kind::of(run.record) == Kind::Curves);
        let ramps: Vec<&Record> = curves().map(|run| run.record).filter(|it| evidence::rises(it)).collect();
        let mut figures = Vec::new();
        if !ramps.is_empty() {
            figures.push(format!("max rate at {}", evidence::threshold(&ramps)));
        }
        if curves().any(|run| !evidence::rises(run.record)) {
            figures.push("highest forwarded rate".to_owned());
        }
        let has_rates = |row: &Row| row.cells.iter().flat_map(|cell| &cell.runs).any(|run| run.is_rate());
        if self.rows().any(|row| row.goal.is_some() && has_rates(row)) {
            figures.push("load that passed the goal".to_owned());
        }
        figures.join(", or ")
    }

    /// What stands beside the rates, in words.
    pub fn between(&self) -> &'static str {
        if self.runs().any(|run| evidence::second(run.record).is_some()) {
            "the rates between which it lies, from two short searches some minutes apart and from how far such pairs differ on this host"
        } else if self.runs().any(|run| evidence::is_searched(run.record)) {
            "the rates between which it lies, from a short search after the ramp"
        } else {
            "the rates between which it lies"
        }
    }

    /// All outcomes.
    pub fn runs(&self) -> impl Iterator<Item = &Outcome<'a>> {
        self.rows().flat_map(|row| &row.cells).flat_map(|cell| &cell.runs)
    }

    /// The marks that occur, each once.
    pub fn marks(&self) -> BTreeSet<Mark> {
        self.runs().flat_map(|run| run.marks.iter().copied()).collect()
    }

    /// Whether a cell stands for several runs.
    pub fn has_repeats(&self) -> bool {
        self.rows().flat_map(|row| &row.cells).any(|cell| cell.runs.len() > 1)
    }
}

fn rows<'a>(records: &[&'a Record], duts: &[String]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row> = Vec::new();
    for outcome in records.iter().flat_map(|record| Outcome::all(record)) {
        let (test, goal) = (outcome.record.test.as_str(), outcome.goal.clone());
        let at = rows.iter().position(|row| row.test == test && row.goal == goal).unwrap_or(rows.len());
        if at == rows.len() {
            let cells = duts.iter().map(|_| Cell::default()).collect();
            rows.push(Row { test, label: label(test, goal.as_deref()), goal, cells });
        }
        let dut = outcome.record.device();
        let column = duts.iter().position(|column| *column == dut);
        if let Some(cell) = column.and_then(|column| rows[at].cells.get_mut(column)) {
            cell.runs.push(outcome);
            cell.runs.sort_by(|a, b| a.line_rate_percent.total_cmp(&b.line_rate_percent));
        }
    }
    rows
}

/// A test's name without its way, which its group says, and with its goal.
fn label(test: &str, goal: Option<&str>) -> String {
    let test = without_way(test);
    goal.map_or_else(|| test.to_owned(), |goal| format!("{test}, {goal}"))
}

/// A test's name without its way, which its group says.
pub fn without_way(test: &str) -> &str {
    [" unidirectional", " bidirectional"].into_iter().find_map(|way| test.strip_suffix(way)).unwrap_or(test)
}

impl<'a> Cell<'a> {
    /// The run that stands for all: the median of those that came to their end (of an even
    /// number, the lower one), or of all if none did.
    pub fn median(&self) -> Option<&Outcome<'a>> {
        let complete: Vec<_> = self.runs.iter().filter(|run| run.record.status == Status::Complete).collect();
        match complete.len() {
            0 => self.runs.get(self.runs.len().saturating_sub(1) / 2),
            count => complete.get((count - 1) / 2).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use results::fixtures::{Scenario, bench};

    use super::*;

    #[test]
    fn tests_are_rows_and_devices_columns() {
        let records = bench();
        let comparison = Comparison::new(&records);
        assert_eq!(comparison.duts, ["linux-router", "xdp-router"]);
        let labels: Vec<_> = comparison.groups[1].rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(labels, ["1514 B", "imix", "64 B", "64 B, 1 flow"]);
        assert!(comparison.rows().flat_map(|row| &row.cells).all(|cell| cell.runs.len() == 1));
    }

    #[test]
    fn configurations_of_a_bench_are_columns_though_the_device_is_the_same() {
        let named = |name: &str| {
            let mut record = Scenario::default().record();
            record.labels.insert("cell".to_owned(), format!("{name}/64 B/one"));
            record
        };
        let records = [named("none"), named("10 rules"), named("none"), Scenario::default().record()];
        let comparison = Comparison::new(&records);
        assert_eq!(comparison.duts, ["none", "10 rules", "linux-router"]);
        let runs: Vec<usize> =
            comparison.groups[0].rows[0].cells.iter().map(|cell| cell.runs.len()).collect();
        assert_eq!(runs, [2, 1, 1]);
    }

    #[test]
    fn the_median_stands_for_repeats_and_interrupted_runs_for_none() {
        let run = |capacity_pps, interrupted_at| {
            Scenario { capacity_pps, interrupted_at, ..Scenario::default() }.record()
        };
        let records = [run(9e5, None), run(7e5, None), run(8e5, None), run(1e5, Some(3)), run(1e5, Some(4))];
        let comparison = Comparison::new(&records);
        let cell = &comparison.groups[0].rows[0].cells[0];
        assert!(comparison.has_repeats());
        assert_eq!((cell.median().unwrap().forwarded_pps / 1e5).round(), 8.0);
        assert!(Cell::default().median().is_none());
    }
}
