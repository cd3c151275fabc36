//! Benches on the page: their figures enter; the matrix, the comparisons, what repeats them, and what
//! the page's script draws leave.

mod chart;
mod comparisons;

use std::collections::BTreeMap;

use results::Record;
use wire::size::pps_to_l1_bps;

pub use chart::Chart;
pub use comparisons::{Plot, Table};

use super::facts::{Environment, command_line, environments};
use super::look::Look;
use super::{anchor, place};
use crate::bench::{Bench, Cell, Test, way};
use crate::comparison::Comparison;
use crate::figures::percent;
use crate::{links, nodes};

/// One bench.
pub struct Section<'a> {
    /// The id of its element.
    pub id: String,
    pub title: &'a str,
    pub follows: Option<&'a str>,
    /// What was done, in a sentence.
    pub summary: String,
    /// What the matrix holds.
    pub caption: String,
    pub columns: Vec<Column<'a>>,
    pub rows: Vec<Row<'a>>,
    /// What a reader must know of the figures.
    pub notes: Vec<String>,
    pub comparisons: Vec<Table<'a>>,
    /// What the medians are worth as bandwidth, cell by cell.
    pub links: Vec<links::Row<'a>>,
    /// What a packet costs each node of the devices that are graphs of nodes.
    pub nodes: Vec<nodes::Table>,
    pub environments: Vec<Environment>,
    /// What carries it out.
    pub command: Option<String>,
    /// The text of its file.
    pub source: &'a str,
    /// The command of each cell.
    pub commands: Vec<(String, String)>,
}

/// A profile above its directions.
pub struct Column<'a> {
    pub name: &'a str,
    pub is_baseline: bool,
    pub ways: Vec<&'a str>,
}

/// A device.
pub struct Row<'a> {
    pub name: &'a str,
    /// That of a device without runs is none.
    pub look: Option<Look>,
    pub is_baseline: bool,
    pub cells: Vec<MatrixCell>,
}

/// The repeats of a device in one test.
#[derive(Default)]
pub struct MatrixCell {
    pub text: String,
    /// What it is sorted by.
    pub value: Option<f64>,
    /// Of line rate, where that means something.
    pub share: String,
    pub spread: String,
    /// The run whose figure is the median.
    pub anchor: String,
    /// Of the cell's width, in percent; a full line in each direction fills it.
    pub bar: f64,
    pub is_doubtful: bool,
}

/// All benches that have figures; devices look as in the `comparison`.
pub fn sections<'a>(
    benches: &'a [Bench<'a>],
    comparison: &Comparison,
    records: &[Record],
) -> Vec<Section<'a>> {
    benches.iter().enumerate().map(|(at, bench)| section(at, bench, comparison, records)).collect()
}

fn section<'a>(at: usize, bench: &'a Bench<'a>, comparison: &Comparison, records: &[Record]) -> Section<'a> {
    let description = bench.description;
    let row = |(column, dut): (usize, &'a results::bench::Dut)| Row {
        name: &dut.name,
        look: look(comparison, &dut.name),
        is_baseline: bench.is_baseline_device(&dut.name),
        cells: bench.tests.iter().map(|test| matrix_cell(bench, &test.cells[column], records)).collect(),
    };
    let profiles = description.profiles.iter();
    Section {
        id: format!("bench-{at}"),
        title: &description.title,
        follows: description.article_figure.as_deref(),
        summary: summary(bench),
        caption: caption(bench),
        columns: profiles
            .map(|profile| Column {
                name: &profile.name,
                is_baseline: bench.is_baseline_profile(&profile.name),
                ways: profile.directions.iter().map(|direction| way(direction)).collect(),
            })
            .collect(),
        rows: description.duts.iter().enumerate().map(row).collect(),
        notes: notes(bench),
        comparisons: comparisons::tables(bench, comparison),
        links: links::rows(bench),
        nodes: nodes::graphs(bench).iter().map(nodes::table).collect(),
        environments: environments(bench.runs().map(|(_, _, repeat)| repeat.record)),
        command: (!description.command.is_empty()).then(|| command_line(&description.command)),
        source: &description.source,
        commands: commands(bench),
    }
}

/// The look of the device that is called `name`, the same everywhere on the page, if it has runs.
fn look(comparison: &Comparison, name: &str) -> Option<Look> {
    comparison.duts.iter().position(|dut| dut == name).map(Look::of)
}

fn summary(bench: &Bench) -> String {
    let description = bench.description;
    let repeats: Vec<usize> =
        bench.tests.iter().flat_map(|test| &test.cells).map(|cell| cell.repeats.len()).collect();
    let (least, most) =
        (repeats.iter().min().copied().unwrap_or(0), repeats.iter().max().copied().unwrap_or(0));
    let each = if least == most { most.to_string() } else { format!("{least} to {most}") };
    let order = match description.order.as_str() {
        "" => String::new(),
        order => format!(", {order}"),
    };
    format!("{} cells, {each} runs of each{order}.", repeats.len())
}

fn caption(bench: &Bench) -> String {
    let what = if bench.metric.is_rate() { "; in percent of one direction's line rate" } else { "" };
    format!(
        "{}{what}. Median of the repeats, below it the interval that holds the true median at {} confidence",
        capitalised(&bench.metric.words()),
        bench.question.confidence
    )
}

/// `text` with a large first letter, and without its underscores.
fn capitalised(text: &str) -> String {
    let text = text.replace('_', " ");
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + letters.as_str()
}

fn matrix_cell(bench: &Bench, cell: &Cell, records: &[Record]) -> MatrixCell {
    let (Some(spread), Some(run)) = (bench.spread(cell), cell.median_run()) else {
        return MatrixCell { text: "–".to_owned(), ..MatrixCell::default() };
    };
    let record = run.record;
    let (share, bar) = if bench.metric.is_rate() {
        let l1_bps = pps_to_l1_bps(spread.median, record.profile.mean_frame_size);
        let share = l1_bps / record.line_rate_bps * 100.0;
        (percent(share), share / record.directions.len().max(1) as f64)
    } else {
        (String::new(), 0.0)
    };
    MatrixCell {
        text: bench.metric.show(spread.median),
        value: Some(spread.median),
        share,
        spread: spread_text(bench, cell),
        anchor: anchor(place(records, record)),
        bar: bar.clamp(0.0, 100.0),
        is_doubtful: !cell.doubts().is_empty(),
    }
}

/// How far the repeats of `cell` scatter, in words.
pub fn spread_text(bench: &Bench, cell: &Cell) -> String {
    let Some(spread) = bench.spread(cell) else { return String::new() };
    let between = format!("{} – {}", bench.metric.show(spread.low), bench.metric.show(spread.high));
    match (cell.readings().count(), spread.is_interval) {
        (1, _) => "one run".to_owned(),
        (_, true) => between,
        (count, false) => format!("{between}, all of {count}"),
    }
}

/// What a reader must know of the figures of `bench`.
pub fn notes(bench: &Bench) -> Vec<String> {
    let mut doubtful: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for test in &bench.tests {
        for cell in &test.cells {
            for (doubt, count) in cell.doubts() {
                let which = if bench.tests.len() > 1 { format!(", {}", test.title()) } else { String::new() };
                let runs = format!("{}{which} ({count} of {})", cell.dut.name, cell.repeats.len());
                doubtful.entry(doubt).or_default().push(runs);
            }
        }
    }
    let sentence = |(doubt, runs): (String, Vec<String>)| format!("~ {doubt}: {}", runs.join("; "));
    let mut notes: Vec<String> = doubtful.into_iter().map(sentence).collect();
    if bench.surplus > 0 {
        notes.push(format!(
            "further records of repeats that had come to their end before are left out: {}",
            bench.surplus
        ));
    }
    notes.extend(crate::scaling::sentences(bench));
    if bench.description.baseline.is_none() {
        notes.push(
            "no device is compared with another: --baseline names one that the others are to be compared with"
                .to_owned(),
        );
    }
    notes
}

/// The command of each cell, as its first repeat was run: those of others differ in a label only.
pub fn commands(bench: &Bench) -> Vec<(String, String)> {
    let cells = bench.tests.iter().flat_map(|test| test.cells.iter().map(move |cell| (test, cell)));
    let command = |(test, cell): (&Test, &Cell)| {
        let first = cell.repeats.first()?;
        Some((format!("{}, {}", cell.dut.name, test.title()), command_line(&first.record.command)))
    };
    cells.filter_map(command).collect()
}
