//! The HTML page: records, what is known of their benches, certificates and flame graphs enter; one
//! self-contained file leaves that needs no network.
//!
//! Tables are in the markup; the charts are drawn by the page's script from the records, which
//! the page holds whole, so that any figure can be recomputed from the page alone. Each record is
//! packed by itself, and unpacked by the script when its run is shown, so that neither needs room or
//! time for all at once.

mod bars;
pub(crate) mod benches;
mod certificates;
pub(crate) mod facts;
mod look;
mod policy;
mod run_tables;
mod runs;
mod strategies;
mod topology;
mod way;

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};

use askama::Template;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use results::Record;
use results::bench::Bench as Description;
use results::certificate::Certificate;
use results::record::LimitedBy;
use serde::Serialize;

use crate::bench::Bench;
use crate::comparison::{Cell, Comparison};
use crate::figures::{capitalized, percent};
use crate::lead::Lead;
use crate::outcome::Mark;
use bars::{Bar, Bars};
use benches::{Chart, Section, sections};
pub use facts::command_line;
use facts::{Environment, environments};
use look::Look;
use policy::policy;
use run_tables::{RunTable, run_tables};
use runs::{Run, runs};
use strategies::{Panel, panels, rfc2544_panels};
use topology::{Topology, line_rate_notes};

/// The page's script, bundled by the build script.
const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/page.js"));
/// The page's style, bundled by the build script.
const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/page.css"));

/// What a page is made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Contents<'a> {
    /// The runs.
    pub records: &'a [Record],
    /// The benches that they are of.
    pub benches: &'a [Description],
    /// Certificates of the tester.
    pub certificates: &'a [Certificate],
    /// Where devices spent their time.
    pub flame_graphs: &'a [FlameGraph],
}

/// A drawing of where a device's core spent its time.
#[derive(Clone, Debug)]
pub struct FlameGraph {
    /// What it is called.
    pub name: String,
    /// SVG. It may hold a script: the page shows it in a frame of its own that can reach nothing.
    pub svg: String,
}

/// Writes the report on `contents` to `out`, as an HTML page.
///
/// # Errors
/// What `out` says, or that a record cannot be written as JSON. A record that was read from a file
/// can.
pub fn write(contents: &Contents, title: &str, out: &mut impl Write) -> io::Result<()> {
    let Contents { records, certificates, flame_graphs, .. } = *contents;
    let benches: Vec<Bench> =
        contents.benches.iter().filter_map(|description| Bench::new(description, records)).collect();
    let known: Vec<&str> =
        benches.iter().flat_map(|bench| &bench.description.duts).map(|dut| dut.name.as_str()).collect();
    let comparison = Comparison::in_order(records, &known);
    let of_benches: usize = benches.iter().map(|bench| bench.runs().count()).sum();
    let script = SCRIPT.replace("</script", "<\\/script");
    let style = style();
    let page = Page {
        title,
        policy: policy(&script, &style, flame_graphs.iter().map(|graph| graph.svg.as_str())),
        script,
        style,
        index: Json(Index::new(&comparison, &benches, records)),
        benches: sections(&benches, &comparison, records),
        has_loose_runs: of_benches < records.len(),
        flame_graphs: flame_graphs.iter().map(|graph| (graph.name.as_str(), Json(&graph.svg))).collect(),
        records: records.iter().enumerate().map(|(at, record)| (anchor(at), Packed(record))).collect(),
        certificates: certificates::panels(certificates),
        run_tables: run_tables(&comparison, records),
        runs: runs(&comparison, records),
        tests: tests(&comparison, records),
        rfc2544: rfc2544_panels(&comparison, records),
        caption: capitalized(&comparison.caption()),
        between: comparison.between(),
        lead: Lead::of(&comparison),
        bars: Bars::of(&comparison, records),
        spoken: bars::spoken(&comparison),
        topologies: Topology::all(records),
        line_rates: line_rate_notes(records),
        warning: crate::shared_core::warning(records),
        environments: environments(records),
        summary: summary(&comparison, records),
        matrix: matrix(&comparison, records),
        marks: comparison.marks().into_iter().collect(),
        has_curves: records.iter().any(strategies::has_curves),
        has_goals: comparison.rows().any(|row| row.goal.is_some()),
        has_repeats: comparison.has_repeats(),
        has_collapses: comparison.runs().any(|run| run.collapse().is_some()),
        has_reverse: records.iter().any(|record| record.profile.bidirectional),
        devices: comparison.duts.iter().enumerate().map(|(at, name)| Device { at, name }).collect(),
    };
    page.write_into(out)
}

/// Something as JSON that cannot end the script element which holds it: `<` only occurs within
/// strings.
struct Json<T>(T);

impl<T: Serialize> Display for Json<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_string(&self.0).map_err(|_| fmt::Error)?;
        f.write_str(&json.replace('<', "\\u003c"))
    }
}

/// Something as JSON, packed by gzip and written in base64, which cannot end a script element.
struct Packed<T>(T);

impl<T: Serialize> Display for Packed<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_vec(&self.0).map_err(|_| fmt::Error)?;
        let mut packer = GzEncoder::new(Vec::with_capacity(json.len() / 2), Compression::fast());
        let packed = packer.write_all(&json).and_then(|()| packer.finish()).map_err(|_| fmt::Error)?;
        Display::fmt(&Base64Display::new(&packed, &STANDARD), f)
    }
}

/// What the script reads before it reads single records; `page/src/data.ts` has the same types.
#[derive(Serialize)]
struct Index<'a> {
    devices: &'a [String],
    tests: Vec<&'a str>,
    runs: Vec<IndexRun>,
    benches: Vec<Chart<'a>>,
}

#[derive(Serialize)]
struct IndexRun {
    anchor: String,
    device: usize,
    test: usize,
    /// Whether its samples are curves beside those of others.
    curves: bool,
    /// Whether it is not the run that stands for the repeats of its device in its test.
    repeat: bool,
}

impl<'a> Index<'a> {
    fn new(comparison: &'a Comparison, benches: &'a [Bench<'a>], records: &'a [Record]) -> Self {
        let tests = comparison.tests();
        let cells = comparison.rows().flat_map(|row| &row.cells);
        let medians: BTreeSet<usize> =
            cells.filter_map(|cell| cell.median()).map(|run| place(records, run.record)).collect();
        let run = |(at, record): (usize, &Record)| IndexRun {
            anchor: anchor(at),
            device: device(comparison, record),
            test: tests.iter().position(|test| *test == record.test).unwrap_or(0),
            curves: strategies::has_curves(record) && !record.samples.is_empty(),
            repeat: !medians.contains(&at),
        };
        Self {
            devices: &comparison.duts,
            runs: records.iter().enumerate().map(run).collect(),
            tests,
            benches: benches.iter().map(|bench| Chart::new(bench, comparison, records)).collect(),
        }
    }
}

/// The place of `record`, which is one of them.
fn place(records: &[Record], record: &Record) -> usize {
    records.iter().position(|other| std::ptr::eq(other, record)).unwrap_or(0)
}

/// The style, with the lengths of bars in whole percents.
fn style() -> String {
    let mut style = STYLE.to_owned();
    style.extend((0..=100).map(|part| format!("[data-bar=\"{part}\"]{{--bar:{part}%}}")));
    style
}

/// The id of a run's element. Ids of records may repeat when directories were merged.
fn anchor(at: usize) -> String {
    format!("run-{at}")
}

fn device(comparison: &Comparison, record: &Record) -> usize {
    let label = record.device();
    comparison.duts.iter().position(|dut| *dut == label).unwrap_or(0)
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    title: &'a str,
    policy: String,
    script: String,
    style: String,
    index: Json<Index<'a>>,
    /// Each with its anchor.
    records: Vec<(String, Packed<&'a Record>)>,
    benches: Vec<Section<'a>>,
    /// Whether some runs are in no bench.
    has_loose_runs: bool,
    /// Each with its name.
    flame_graphs: Vec<(&'a str, Json<&'a String>)>,
    summary: String,
    caption: String,
    /// What stands beside that, in words.
    between: &'static str,
    /// What stands out, above everything else.
    lead: Option<Lead>,
    bars: Option<Bars>,
    /// The bars in words.
    spoken: String,
    topologies: Vec<Topology>,
    /// Why each line rate is what it is.
    line_rates: Vec<String>,
    /// What a reader must know before any rate.
    warning: Option<String>,
    devices: Vec<Device<'a>>,
    matrix: Vec<MatrixGroup<'a>>,
    marks: Vec<Mark>,
    has_curves: bool,
    has_goals: bool,
    has_repeats: bool,
    /// Whether a device collapses under overload.
    has_collapses: bool,
    has_reverse: bool,
    environments: Vec<Environment>,
    tests: Vec<Test<'a>>,
    rfc2544: Vec<Panel<'a>>,
    certificates: Vec<certificates::Panel>,
    run_tables: Vec<RunTable>,
    runs: Vec<Run<'a>>,
}

struct Device<'a> {
    at: usize,
    name: &'a str,
}

impl Device<'_> {
    fn look(&self) -> Look {
        Look::of(self.at)
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
    /// Whether ramps or saturations are among its runs, whose curves share one chart.
    has_curves: bool,
    /// What each device reached, for where the charts are folded.
    figures: Vec<(Look, String)>,
    /// Whether every device carried the whole load without loss, so that the rates are the load itself.
    carried_all: bool,
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

/// A figure and what stands below it.
#[derive(Default)]
struct MatrixCell {
    anchor: String,
    text: String,
    /// The loads between which that lies.
    interval: String,
    /// Its share of line rate.
    share: String,
    /// What the device does under overload, if it collapses.
    note: String,
    look: Look,
    marked: bool,
    repeats: usize,
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
            has_curves: runs().any(|(_, record)| strategies::has_curves(record)),
            figures: figures(comparison, name),
            carried_all: runs().all(|(_, record)| carried_all(record)),
            panels: panels(comparison, runs()),
        }
    };
    comparison.tests().into_iter().enumerate().map(test).collect()
}

/// What each device reached in the test that is called `name`.
fn figures(comparison: &Comparison, name: &str) -> Vec<(Look, String)> {
    let rows = comparison.rows().filter(|row| row.test == name && row.goal.is_none());
    let cells = rows.flat_map(|row| row.cells.iter().enumerate());
    cells.filter_map(|(at, cell)| Some((Look::of(at), cell.median()?.marked_rate().0))).collect()
}

/// Whether a ramp reached its target and lost nothing on the way.
fn carried_all(record: &Record) -> bool {
    let directions = &record.directions;
    let reached = |it: &results::record::Direction| {
        it.limited_by == LimitedBy::LineRate && it.lossy_samples_below == 0 && it.stalled.is_none()
    };
    strategies::has_curves(record) && !directions.is_empty() && directions.iter().all(reached)
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
    let at = place(records, run.record);
    let (text, interval) = run.marked_rate();
    let is_rate = run.is_rate();
    let share = is_rate.then(|| percent(run.headline_percent()));
    MatrixCell {
        anchor: anchor(at),
        text,
        interval: interval.unwrap_or_default(),
        share: share.unwrap_or_default(),
        note: run.collapse().map(|found| found.words()).unwrap_or_default(),
        look: Look::of(column),
        marked: !run.marks.is_empty(),
        repeats: cell.runs.len(),
    }
}
