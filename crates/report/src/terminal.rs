//! Tables and verdicts for the terminal: records enter, text leaves, with ANSI colours if asked.

mod bench;
mod certificate;
mod columns;
mod compare;
mod cost;
mod departures;
mod findings;
mod latency;
mod links;
mod nodes;
mod plot;
mod queue_use;
mod queues;
mod remote;
mod repeats;
mod rfc2544;
mod search;
mod setups;
mod soak;
mod stalls;
mod trials;
mod waterfall;

use std::fmt::Write as _;

use results::Record;
use results::record::{Direction, LimitedBy};
use wire::human::{bps, count, pps};

use crate::comparison::{Cell, Comparison, Row};
use crate::figures::percent;
use crate::lead::Lead;
use crate::links::Links;
use crate::outcome::{Kind, Mark, Outcome, limited_by, status};
use crate::{evidence, shared_core, workers};
use columns::{Align, Columns, Text};
use repeats::{Repeats, repeats};

pub use bench::bench;
pub use certificate::certificate;
pub use compare::compare;
pub use findings::table as findings;
pub use queues::{queues, queues_line};
pub use remote::meanwhile;
pub use rfc2544::rfc2544;
pub use setups::setups;

/// How a piece of text looks where colour is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Plain,
    Title,
    Faint,
    Warning,
    Offered,
    Forwarded,
}

impl Look {
    /// `text` in this look, or as it is.
    fn paint(self, text: &str, colour: bool) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            Self::Title => "1",
            Self::Faint | Self::Offered => "2",
            Self::Warning => "33",
            Self::Forwarded => "36",
        };
        if colour && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A small plot of what was measured, in `width` by `height` characters and a line below: offered
/// and forwarded over time, the loads that a search tried, or the percentiles of a latency test;
/// empty if nothing was measured yet or there is no room.
#[must_use]
pub fn plot(record: &Record, width: usize, height: usize, colour: bool) -> String {
    if let Some(found) = record.finding.latency() {
        return latency::plot(found, width, height, colour);
    }
    let draw = if record.finding.trials().is_empty() { plot::plot } else { trials::plot };
    draw(record, width, height, colour)
}

/// Tests against devices: each run's headline in packets a second with its interval, directions added up.
#[must_use]
pub fn matrix(records: &[Record], colour: bool) -> String {
    let comparison = Comparison::new(records);
    let mut columns = Columns::new(comparison.duts.iter().map(|_| Align::Right));
    columns.row(Text::plain(""), comparison.duts.iter().map(|dut| Text::new(dut, Look::Title)));
    for group in &comparison.groups {
        columns.row(Text::new(group.title, Look::Title), []);
        for row in &group.rows {
            columns.row(Text::plain(&format!("  {}", row.label)), row.cells.iter().map(cell));
        }
    }
    let warning = shared_core::warning(records).map(|text| Look::Warning.paint(&text, colour) + "\n\n");
    let mut text = warning.unwrap_or_default() + &columns.render(colour);
    text.push('\n');
    if let Some(lead) = Lead::of(&comparison) {
        let _ = writeln!(text, "{}\n", Look::Title.paint(&format!("{}.", lead.sentence), colour));
    }
    let lines = line_rates(records);
    footnotes(&mut text, &comparison, &format!("{}; line rate {lines}", comparison.caption()), colour);
    text
}

fn cell(cell: &Cell) -> Text {
    match cell.median() {
        Some(run) => Text::new(&run.with_interval(), look(run)),
        None => Text::new("-", Look::Faint),
    }
}

fn look(run: &Outcome) -> Look {
    if run.marks.is_empty() { Look::Plain } else { Look::Warning }
}

/// The line rates in use, in words.
fn line_rates(records: &[Record]) -> String {
    let mut rates: Vec<_> = records.iter().map(|record| bps(record.line_rate_bps)).collect();
    rates.sort();
    rates.dedup();
    rates.join(", ")
}

/// The devices that forward far less under overload, test by test.
fn collapses(comparison: &Comparison) -> Vec<String> {
    let runs = comparison
        .rows()
        .flat_map(|row| row.cells.iter().filter_map(|cell| cell.median()).map(move |run| (row, run)));
    let line = |(row, run): (&Row, &Outcome)| {
        let way = if run.record.profile.bidirectional { ", bidirectional" } else { "" };
        Some(format!("{}, {}{way}: {}", run.record.device(), row.label, run.collapse()?.words()))
    };
    runs.filter_map(line).collect()
}

fn footnotes(text: &mut String, comparison: &Comparison, what: &str, colour: bool) {
    let mut line = |note: &str| {
        let _ = writeln!(text, "{}", Look::Faint.paint(note, colour));
    };
    line(what);
    if comparison.has_repeats() {
        line("the median run of each test and device");
    }
    for mark in comparison.marks() {
        line(&format!("{} {}", mark.sign(), mark.meaning()));
    }
    for collapse in collapses(comparison) {
        let _ = writeln!(text, "{}", Look::Warning.paint(&collapse, colour));
    }
}

/// Every run in detail, a table for each device.
#[must_use]
pub fn table(records: &[Record], colour: bool) -> String {
    let comparison = Comparison::new(records);
    let limit = evidence::threshold(&records.iter().collect::<Vec<_>>());
    let mut text = String::new();
    for (at, dut) in comparison.duts.iter().enumerate() {
        let _ = writeln!(text, "{}", Look::Title.paint(dut, colour));
        text.push_str(&device_table(&comparison, at, &limit).render(colour));
        text.push('\n');
    }
    footnotes(
        &mut text,
        &comparison,
        &format!(
            "directions added up; {limit}: highest offered rate at which no more was lost, after the last step that \
             recovered, and the loads between which it lies; bits and line rate are of the forwarded rate"
        ),
        colour,
    );
    text
}

fn device_table(comparison: &Comparison, dut: usize, limit: &str) -> Columns {
    use Align::{Left, Right};
    let mut columns = Columns::new([Left, Right, Right, Right, Right, Right, Left]);
    let head = ["Uni/BiDir", "Forwarded", limit, "Between", "L2 Bits/Sec", "Line Rate", "Limited by"];
    columns.row(Text::new("Type", Look::Faint), head.map(|name| Text::new(name, Look::Faint)));
    for group in &comparison.groups {
        for row in &group.rows {
            for run in row.cells.get(dut).into_iter().flat_map(|cell| &cell.runs) {
                columns.row(Text::plain(&row.label), run_figures(group.title, run));
            }
        }
    }
    columns
}

fn run_figures(way: &str, run: &Outcome) -> Vec<Text> {
    let look = look(run);
    let percent = Text::new(&run.marked_percent(), look);
    if !run.has_figures {
        let none = || Text::new("-", Look::Faint);
        return vec![Text::plain(way), none(), none(), none(), none(), percent];
    }
    vec![
        Text::plain(way),
        Text::plain(&pps(run.forwarded_pps)),
        Text::plain(&pps(run.limit_pps)),
        run.interval.map_or_else(|| Text::new("-", Look::Faint), |it| Text::plain(&evidence::bounds(it))),
        Text::plain(&bps(run.l2_bps)),
        percent,
        Text::new(&run.limited_by, look),
    ]
}

/// A run's headline in a line: its rate with its marks, the interval in which that lies, what limited it, where
/// losses began if that was at a lower load, and what is left of it under overload if that is far less.
#[must_use]
pub fn headline(record: &Record) -> String {
    let run = Outcome::new(record);
    let began = evidence::lowest_loss(record).filter(|_| !evidence::loss_began(record).is_empty());
    let began = began.map_or_else(String::new, |rate| format!("; loss first began at {}", pps(rate)));
    let collapse = run.collapse().map_or_else(String::new, |found| format!("; {}", found.words()));
    format!("{:27} limited by {}{began}{collapse}", run.with_interval(), run.limited_by)
}

/// What one run found, in a few lines.
#[must_use]
pub fn verdict(record: &Record, colour: bool) -> String {
    let run = Outcome::new(record);
    let title = Look::Title.paint(&record.name, colour);
    let ended = format!("{} after {:.1} s", status(record.status), record.elapsed_s);
    let mut text = format!("{title}: {ended}\n");
    if !record.finding.results().is_empty() {
        text.push_str(&search::table(record).render(colour));
    }
    if let Some(found) = record.finding.cost() {
        text.push_str(&cost::table(found, colour));
    } else if let Some(found) = record.finding.latency() {
        text.push_str(&latency::tables(found, colour));
    } else if let Some(found) = record.finding.soak() {
        text.push_str(&soak::table(found, colour));
    } else if let Some(found) = record.finding.stall_search() {
        text.push_str(&stalls::table(found, colour));
    } else if record.finding.results().is_empty() && run.has_figures {
        text.push_str(&ramp_table(record, &run).render(colour));
    }
    if let Some(found) = record.finding.generator() {
        text.push_str(&waterfall::tables(found, colour));
    }
    if let Some(searched) = evidence::searched(record) {
        let _ = writeln!(text, "  {}", Look::Faint.paint(&searched, colour));
    }
    if let Some(links) = Links::of(record) {
        let _ = writeln!(text, "  {}", Look::Faint.paint(&links.sentence(), colour));
    }
    if let Some(device) = &record.dut.remote {
        text.push_str(&remote::table(device, colour));
    }
    if record.nodes_had_most() {
        text.push_str(&nodes::table(&record.nodes, colour));
    }
    for worker in workers::workers(&record.nodes) {
        let line = format!("{}: {}", worker.name, worker.text());
        let _ = writeln!(text, "  {}", Look::Faint.paint(&line, colour));
    }
    for queues in record.queues.iter().filter_map(queue_use::line) {
        let _ = writeln!(text, "  {}", Look::Faint.paint(&queues, colour));
    }
    for (name, energy) in crate::energy::lines(record).iter().filter(|(name, _)| *name != "not available") {
        let _ = writeln!(text, "  {}", Look::Faint.paint(&format!("{name}: {energy}"), colour));
    }
    for departures in departures::lines(record) {
        let _ = writeln!(text, "  {}", Look::Faint.paint(&departures, colour));
    }
    for remark in remarks(record, &run) {
        let _ = writeln!(text, "  {}", Look::Warning.paint(&remark, colour));
    }
    for note in &record.notes {
        let _ = writeln!(text, "  {}", Look::Faint.paint(&format!("note: {note}"), colour));
    }
    text
}

/// The verdict on each direction of a ramp or a saturation.
fn ramp_table(record: &Record, run: &Outcome) -> Columns {
    let mut columns = Columns::new([Align::Right; 6].into_iter().chain([Align::Left]));
    let limit = evidence::threshold(&[record]);
    let between = if evidence::rises(record) { "between" } else { "forwarded between" };
    let head = [&limit, between, "forwarded", "L1", "L2", "line rate", "limited by"];
    columns.row(Text::plain(""), head.map(|name| Text::new(name, Look::Faint)));
    for direction in &record.directions {
        columns.row(Text::plain(&format!("  {}", direction.name)), direction_figures(direction));
    }
    if record.directions.len() > 1 {
        let figures = [
            pps(run.limit_pps),
            run.interval.map_or_else(|| "-".to_owned(), evidence::bounds),
            pps(run.forwarded_pps),
            bps(run.l1_bps),
            bps(run.l2_bps),
            percent(run.line_rate_percent),
        ];
        columns.row(Text::plain("  both"), figures.map(|figure| Text::new(&figure, Look::Title)));
    }
    columns
}

fn direction_figures(direction: &Direction) -> [Text; 7] {
    let limit = if direction.limited_by == LimitedBy::Tester { Look::Warning } else { Look::Plain };
    [
        Text::plain(&pps(direction.max_rate_pps)),
        Text::plain(&evidence::headline(direction).map_or_else(|| "-".to_owned(), evidence::bounds)),
        Text::plain(&pps(direction.max_forwarded_pps)),
        Text::plain(&bps(direction.l1_bps)),
        Text::plain(&bps(direction.l2_bps)),
        Text::plain(&percent(direction.line_rate_percent)),
        Text::new(limited_by(direction.limited_by), limit),
    ]
}

/// What a reader must know: the reason of the end, stalls, and the meaning of the other marks.
fn remarks(record: &Record, run: &Outcome) -> Vec<String> {
    let mut remarks: Vec<String> = record.reason.iter().cloned().collect();
    remarks.extend(crate::search::remarks(record));
    remarks.extend(record.finding.latency().into_iter().flat_map(latency::remarks));
    for direction in &record.directions {
        // A soak tells of stalls itself, as does a search for them.
        let tells = record.finding.soak().is_some() || record.finding.stall_search().is_some();
        if let Some(stall) = direction.stalled.filter(|_| !tells) {
            let frames = count(stall.after_frames);
            remarks.push(format!("{} stalled at {:.1} s after {frames} frames", direction.name, stall.at_s));
        }
    }
    remarks.extend(workers::uneven(record));
    if run.marks.contains(&Mark::Tester) {
        remarks.push(Mark::Tester.meaning().to_owned());
    }
    // A search has its own words for interference.
    if run.marks.contains(&Mark::Interference) && run.goal.is_none() {
        let line = evidence::interference(record);
        remarks.push(line.unwrap_or_else(|| Mark::Interference.meaning().to_owned()));
    }
    if Kind::of(record) == Kind::Curves {
        remarks.extend(evidence::loss_began(record));
    }
    remarks
}
