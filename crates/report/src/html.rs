//! The HTML page: records enter, one self-contained file leaves that needs no network.
//!
//! Tables are in the markup; the charts are drawn by the page's script from the records, which
//! the page holds whole, so that any figure can be recomputed from the page alone.

mod facts;
mod strategies;

use askama::Template;
use results::Record;
use results::record::Direction;
use serde::Serialize;
use wire::human::{bps, count, pps};

use crate::comparison::{Cell, Comparison, without_way};
use crate::outcome::{Mark, Outcome, limited_by, percent, status};
use facts::{Environment, Facts, environments, run_facts};
use strategies::{Panel, panels, rfc2544_panels};

/// The page's script, bundled by the build script.
const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/page.js"));
/// The page's style, bundled by the build script.
const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/page.css"));
/// Colours of devices that the style defines; more devices begin again with the first.
const DEVICE_COLOURS: usize = 7;

/// Why no page could be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A record cannot be embedded.
    #[error(
        "a record cannot be written as JSON ({0}); run `linerate report` on records that were read from files"
    )]
    Json(#[from] serde_json::Error),
    /// The template failed.
    #[error("the page cannot be put together ({0}); this is a defect of linerate, please report it")]
    Template(#[from] askama::Error),
}

/// The report on `records` as an HTML page.
///
/// # Errors
/// [`Error::Json`] if a record cannot be written as JSON. A record that was read from a file can.
pub fn page(records: &[Record], title: &str) -> Result<String, Error> {
    let comparison = Comparison::new(records);
    let page = Page {
        title,
        script: SCRIPT.replace("</script", "<\\/script"),
        style: STYLE,
        data: script_safe(&serde_json::to_string(&Data::new(&comparison, records))?),
        runs: runs(&comparison, records),
        tests: tests(&comparison, records),
        rfc2544: rfc2544_panels(&comparison, records),
        figure: comparison.figure(),
        environments: environments(records),
        summary: summary(&comparison, records),
        matrix: matrix(&comparison, records),
        marks: comparison.marks().into_iter().collect(),
        has_curves: records.iter().any(strategies::has_curves),
        has_goals: comparison.rows().any(|row| row.goal.is_some()),
        has_repeats: comparison.has_repeats(),
        has_reverse: records.iter().any(|record| record.profile.bidirectional),
        devices: comparison.duts.iter().enumerate().map(|(at, name)| Device { at, name }).collect(),
    };
    Ok(page.render()?)
}

/// JSON that cannot end the script element which holds it: `<` only occurs within strings.
fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// What the script reads; `page/src/data.ts` has the same types.
#[derive(Serialize)]
struct Data<'a> {
    devices: &'a [String],
    tests: Vec<&'a str>,
    runs: Vec<DataRun<'a>>,
}

#[derive(Serialize)]
struct DataRun<'a> {
    anchor: String,
    device: usize,
    test: usize,
    record: &'a Record,
}

impl<'a> Data<'a> {
    fn new(comparison: &'a Comparison, records: &'a [Record]) -> Self {
        let tests = comparison.tests();
        let run = |(at, record): (usize, &'a Record)| DataRun {
            anchor: anchor(at),
            device: device(comparison, record),
            test: tests.iter().position(|test| *test == record.test).unwrap_or(0),
            record,
        };
        Self { devices: &comparison.duts, runs: records.iter().enumerate().map(run).collect(), tests }
    }
}

/// The id of a run's element. Ids of records may repeat when directories were merged.
fn anchor(at: usize) -> String {
    format!("run-{at}")
}

fn device(comparison: &Comparison, record: &Record) -> usize {
    let label = record.dut.label();
    comparison.duts.iter().position(|dut| *dut == label).unwrap_or(0)
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    title: &'a str,
    script: String,
    style: &'static str,
    data: String,
    summary: String,
    figure: &'static str,
    devices: Vec<Device<'a>>,
    matrix: Vec<MatrixGroup<'a>>,
    marks: Vec<Mark>,
    has_curves: bool,
    has_goals: bool,
    has_repeats: bool,
    has_reverse: bool,
    environments: Vec<Environment>,
    tests: Vec<Test<'a>>,
    rfc2544: Vec<Panel<'a>>,
    runs: Vec<Run<'a>>,
}

struct Device<'a> {
    at: usize,
    name: &'a str,
}

impl Device<'_> {
    fn colour(&self) -> usize {
        self.at % DEVICE_COLOURS
    }

    /// Its name in parts between which a line may break.
    fn parts(&self) -> impl Iterator<Item = &str> {
        self.name.split_inclusive([':', ',', '='])
    }
}

impl Test<'_> {
    /// Whether there is something to show beside the tests of RFC 2544, which are shown together.
    fn has_section(&self) -> bool {
        self.has_curves || !self.panels.is_empty()
    }
}

struct Test<'a> {
    at: usize,
    name: &'a str,
    label: &'a str,
    bidirectional: bool,
    /// Whether ramps or saturations are among its runs, whose curves share one chart.
    has_curves: bool,
    /// The runs of other strategies, each with a picture and tables of its own.
    panels: Vec<Panel<'a>>,
}

struct MatrixGroup<'a> {
    title: &'static str,
    rows: Vec<MatrixRow<'a>>,
}

struct MatrixRow<'a> {
    /// The id of the section that shows it.
    section: String,
    label: &'a str,
    cells: Vec<MatrixCell>,
}

/// A figure with a bar behind it.
#[derive(Default)]
struct MatrixCell {
    anchor: String,
    text: String,
    /// The rate that a goal's share of line rate is.
    rate: String,
    /// Of the cell's width, in percent; two full lines fill it.
    bar: f64,
    colour: usize,
    marked: bool,
    repeats: usize,
}

/// One line an outcome in the result table, and the run's full record.
struct Run<'a> {
    /// Whether no outcome of the same run stands before it.
    first: bool,
    anchor: String,
    colour: usize,
    device: String,
    label: &'a str,
    way: &'static str,
    outcome: Outcome<'a>,
    forwarded: String,
    lossless: String,
    l1: String,
    l2: String,
    percent: String,
    limit: String,
    status: &'static str,
    /// Columns of the verdict.
    directions: Vec<String>,
    /// Its rows: what, and for each direction how much.
    verdict: Vec<(&'static str, Vec<String>)>,
    stalls: Vec<String>,
    facts: Vec<Facts>,
}

fn summary(comparison: &Comparison, records: &[Record]) -> String {
    let plural = |number: usize, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    let days = |at: fn(Option<&str>, &str) -> bool| {
        records.iter().fold(None, |found, record| {
            let day = record.started.split('T').next().unwrap_or_default();
            if at(found, day) { Some(day) } else { found }
        })
    };
    let first = days(|found, day| found.is_none_or(|found| day < found)).unwrap_or_default();
    let last = days(|found, day| found.is_none_or(|found| day > found)).unwrap_or_default();
    let when = if first == last { first.to_owned() } else { format!("{first} to {last}") };
    format!(
        "{} of {} against {}, {when}.",
        plural(records.len(), "run"),
        plural(comparison.tests().len(), "test"),
        plural(comparison.duts.len(), "device"),
    )
}

fn tests<'a>(comparison: &Comparison<'a>, records: &'a [Record]) -> Vec<Test<'a>> {
    let test = |(at, name): (usize, &'a str)| {
        let runs = || records.iter().enumerate().filter(move |(_, record)| record.test == name);
        Test {
            at,
            name,
            label: without_way(name),
            bidirectional: runs().any(|(_, record)| record.profile.bidirectional),
            has_curves: runs().any(|(_, record)| strategies::has_curves(record)),
            panels: panels(comparison, runs()),
        }
    };
    comparison.tests().into_iter().enumerate().map(test).collect()
}

fn matrix<'a>(comparison: &'a Comparison, records: &[Record]) -> Vec<MatrixGroup<'a>> {
    let tests = comparison.tests();
    let mut groups = Vec::new();
    for group in &comparison.groups {
        let mut rows = Vec::new();
        for row in &group.rows {
            let cells = row.cells.iter().enumerate();
            let cells = cells.map(|(column, cell)| matrix_cell(column, cell, records)).collect();
            let test = tests.iter().position(|test| *test == row.test).unwrap_or(0);
            let own = row.goal.as_deref() != Some(crate::outcome::THROUGHPUT);
            let section = if own { format!("test-{test}") } else { "rfc2544".to_owned() };
            rows.push(MatrixRow { section, label: &row.label, cells });
        }
        groups.push(MatrixGroup { title: group.title, rows });
    }
    groups
}

fn matrix_cell(column: usize, cell: &Cell, records: &[Record]) -> MatrixCell {
    let Some(run) = cell.median() else {
        return MatrixCell { text: "–".to_owned(), ..MatrixCell::default() };
    };
    let at = records.iter().position(|record| std::ptr::eq(record, run.record)).unwrap_or(0);
    let lines = run.record.directions.len().max(1) as f64;
    MatrixCell {
        anchor: anchor(at),
        text: run.marked_percent(),
        rate: match &run.goal {
            Some(_) if run.has_figures && run.text.is_none() => pps(run.lossless_pps),
            _ => String::new(),
        },
        bar: if run.text.is_some() { 0.0 } else { (run.line_rate_percent / lines).clamp(0.0, 100.0) },
        colour: column % DEVICE_COLOURS,
        marked: !run.marks.is_empty(),
        repeats: cell.runs.len(),
    }
}

/// In the order of the comparison: device by device, test by test.
fn runs<'a>(comparison: &'a Comparison<'a>, records: &'a [Record]) -> Vec<Run<'a>> {
    let mut runs = Vec::new();
    for column in 0..comparison.duts.len() {
        for row in comparison.rows() {
            for outcome in row.cells.get(column).into_iter().flat_map(|cell| &cell.runs) {
                let at = records.iter().position(|record| std::ptr::eq(record, outcome.record)).unwrap_or(0);
                let first = runs.iter().all(|run: &Run| !std::ptr::eq(run.outcome.record, outcome.record));
                runs.push(Run { first, ..run(at, column, &row.label, outcome.clone()) });
            }
        }
    }
    runs
}

fn run<'a>(at: usize, column: usize, label: &'a str, outcome: Outcome<'a>) -> Run<'a> {
    let record = outcome.record;
    let figure = |text: String| if outcome.has_figures { text } else { "–".to_owned() };
    Run {
        first: true,
        anchor: anchor(at),
        colour: column % DEVICE_COLOURS,
        device: record.dut.label(),
        label,
        way: if record.profile.bidirectional { "Bidirectional" } else { "Unidirectional" },
        forwarded: figure(pps(outcome.forwarded_pps)),
        lossless: figure(pps(outcome.lossless_pps)),
        l1: figure(bps(outcome.l1_bps)),
        l2: figure(bps(outcome.l2_bps)),
        percent: outcome.marked_percent(),
        limit: figure(outcome.limited_by.clone()),
        status: status(record.status),
        directions: record.directions.iter().map(direction_name).collect(),
        verdict: verdict(&record.directions),
        stalls: record.directions.iter().filter_map(stall).collect(),
        facts: run_facts(record),
        outcome,
    }
}

fn direction_name(direction: &Direction) -> String {
    direction.name.replace("->", "→")
}

fn verdict(directions: &[Direction]) -> Vec<(&'static str, Vec<String>)> {
    type Figure = (&'static str, fn(&Direction) -> String);
    let figures: [Figure; 13] = [
        ("highest lossless", |d| pps(d.max_lossless_pps)),
        ("highest forwarded", |d| pps(d.max_forwarded_pps)),
        ("at L1", |d| bps(d.l1_bps)),
        ("at L2", |d| bps(d.l2_bps)),
        ("of line rate", |d| percent(d.line_rate_percent)),
        ("limited by", |d| limited_by(d.limited_by).to_owned()),
        ("frames offered", |d| count(d.offered)),
        ("frames forwarded", |d| count(d.forwarded)),
        ("frames unsent", |d| count(d.unsent)),
        ("duplicates", |d| count(d.duplicates)),
        ("reordered", |d| count(d.reordered)),
        ("returned", |d| count(d.returned)),
        ("foreign", |d| count(d.foreign)),
    ];
    figures.map(|(name, figure)| (name, directions.iter().map(figure).collect())).into()
}

fn stall(direction: &Direction) -> Option<String> {
    let stall = direction.stalled?;
    let frames = count(stall.after_frames);
    Some(format!("{} stalled at {:.1} s after {frames} frames", direction_name(direction), stall.at_s))
}
