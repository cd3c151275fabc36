//! Markdown: records and benches enter; tables, what they prove, the machine and every command leave,
//! for a README or an issue.

use std::fmt::Write as _;

use results::Record;
use results::bench::Bench as Description;
use wire::size::pps_to_l1_bps;

use crate::bench::{Bench, Cell};
use crate::comparison::Comparison;
use crate::figures::{capitalized, percent};
use crate::html::benches::{commands, notes, spread_text};
use crate::html::facts::{Environment, command_line, environments};
use crate::judgement::{figures, remarks, sentence};
use crate::links::{CAPTION, HEAD, Links};
use crate::nodes::{graphs, table};
use crate::outcome::Outcome;

/// All benches of `records` that have figures, and a matrix of what belongs to none.
#[must_use]
pub fn markdown(records: &[Record], benches: &[Description]) -> String {
    let mut parts = Vec::new();
    for bench in benches.iter().filter_map(|description| Bench::new(description, records)) {
        parts.push(self::bench(&bench));
    }
    let loose: Vec<Record> = records.iter().filter(|record| !is_of(benches, record)).cloned().collect();
    if !loose.is_empty() {
        parts.push(matrix(&loose));
    }
    parts.join("\n")
}

fn is_of(benches: &[Description], record: &Record) -> bool {
    let place = results::bench::Place::of(record);
    place.is_some_and(|place| benches.iter().any(|bench| bench.holds(&place)))
}

fn bench(bench: &Bench) -> String {
    let description = bench.description;
    let mut text = format!("## {}\n\n", line(&description.title));
    if let Some(figure) = &description.article_figure {
        let _ = writeln!(text, "Follows {}.\n", line(figure));
    }
    let _ = writeln!(
        text,
        "{}: the median of the repeats, and the interval that holds the true median at {} confidence.\n",
        bench.metric.words(),
        bench.question.confidence
    );
    let head = bench.tests.iter().map(|test| test.title());
    row(&mut text, std::iter::once("device".to_owned()).chain(head));
    let _ = writeln!(text, "|---|{}", "---:|".repeat(bench.tests.len()));
    for (at, dut) in description.duts.iter().enumerate() {
        let cells = bench.tests.iter().map(|test| figure(bench, &test.cells[at]));
        row(&mut text, std::iter::once(dut.name.clone()).chain(cells));
    }
    text.push('\n');
    notes(bench).iter().for_each(|note| _ = writeln!(text, "- {}", line(note)));
    text += &links(bench);
    text += &nodes(bench);
    text += &comparisons(bench);
    let medians = bench.tests.iter().flat_map(|test| &test.cells).filter_map(Cell::median_run);
    text += &findings(medians.map(|run| run.record));
    text += &repetition(bench);
    text
}

/// What stands out in each of `records`, and what a packet takes; empty where nothing does.
fn findings<'a>(records: impl Iterator<Item = &'a Record>) -> String {
    let mut text = String::new();
    for record in records {
        let found = crate::findings::findings(record).into_iter().map(|it| (it.kind, it.text));
        let energy = crate::energy::lines(record).into_iter().filter(|(name, _)| *name != "not available");
        let told: Vec<(&str, String)> = found.chain(energy).collect();
        if !told.is_empty() {
            let _ = writeln!(text, "\n**{}**\n", line(&record.name));
            told.iter().for_each(|(kind, told)| _ = writeln!(text, "- {kind}: {}", line(told)));
        }
    }
    if text.is_empty() { text } else { format!("\n### Findings\n{text}") }
}

/// What the medians are worth as bandwidth.
fn links(bench: &Bench) -> String {
    let rows = crate::links::rows(bench).into_iter();
    links_table(rows.map(|row| (row.device.to_owned(), row.test.title(), row.cells)))
}

/// Devices, tests, and what is found of them as bandwidth; empty without rows.
fn links_table(rows: impl Iterator<Item = (String, String, [String; HEAD.len()])>) -> String {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return String::new();
    }
    let mut text = format!("\n{CAPTION}.\n\n");
    row(&mut text, ["device", "test"].into_iter().chain(HEAD).map(str::to_owned));
    let _ = writeln!(text, "|---|---|{}", "---:|".repeat(HEAD.len()));
    for (device, test, cells) in rows {
        row(&mut text, [device, test].into_iter().chain(cells));
    }
    text
}

/// What a packet costs each node of the devices that are graphs of nodes.
fn nodes(bench: &Bench) -> String {
    let mut text = String::new();
    for graph in graphs(bench) {
        let table = table(&graph);
        let _ = writeln!(text, "\n### Cost of a packet by node: {}\n", line(&table.device));
        let head = table.head.into_iter().map(|(name, forwarded)| beside(name, &forwarded));
        let loads = head.len();
        row(&mut text, std::iter::once("node".to_owned()).chain(head));
        let _ = writeln!(text, "|---|{}", "---:|".repeat(loads));
        for of in table.nodes.into_iter().chain(table.sums) {
            let figures = of.figures.into_iter().map(|figure| beside(figure.text, &figure.beside));
            row(&mut text, std::iter::once(of.name).chain(figures));
        }
    }
    if !text.is_empty() {
        let _ = writeln!(text, "\n{}.", crate::nodes::caption());
    }
    text
}

/// `text`, and in brackets what is said beside it.
fn beside(text: String, more: &str) -> String {
    if more.is_empty() { text } else { format!("{text} ({more})") }
}

/// The median of a cell with its share of line rate and its interval.
fn figure(bench: &Bench, cell: &Cell) -> String {
    let (Some(spread), Some(run)) = (bench.spread(cell), cell.median_run()) else { return "–".to_owned() };
    let record = run.record;
    let share = if bench.metric.is_rate() {
        let l1_bps = pps_to_l1_bps(spread.median, record.profile.mean_frame_size);
        format!(", {}", percent(l1_bps / record.line_rate_bps * 100.0))
    } else {
        String::new()
    };
    let doubtful = if cell.doubts().is_empty() { "" } else { " ~" };
    format!("{}{share} ({}){doubtful}", bench.metric.show(spread.median), spread_text(bench, cell))
}

fn comparisons(bench: &Bench) -> String {
    let mut text = String::new();
    for contrast in bench.contrasts() {
        let judged: Vec<_> = contrast.judged().collect();
        if judged.is_empty() {
            continue;
        }
        let what = bench.compared(&contrast);
        let _ = writeln!(text, "\n### {}, against {}\n", line(&contrast.title), line(&what.reference));
        for (member, judged) in judged {
            let _ = writeln!(text, "- **{}**: {}", line(&judged.name), sentence(&what, judged));
            for remark in figures(&what, judged).into_iter().chain(remarks(&what, judged)) {
                let _ = writeln!(text, "  - {}", line(&remark));
            }
            if let Some(block) = bench.ministat(&contrast, member) {
                let _ = writeln!(text, "\n  <details><summary>ministat</summary>\n\n{}\n  </details>\n", {
                    fenced(&block, "  ")
                });
            }
        }
    }
    text
}

/// Where it was measured, and how to do it again.
fn repetition(bench: &Bench) -> String {
    let mut text = "\n### Environment and commands to reproduce\n\n".to_owned();
    for Environment { pairs, .. } in environments(bench.runs().map(|(_, _, repeat)| repeat.record)) {
        row(&mut text, ["".to_owned(), "".to_owned()].into_iter());
        text += "|---|---|\n";
        pairs.into_iter().for_each(|(name, value)| row(&mut text, [name, value].into_iter()));
        text.push('\n');
    }
    if !bench.description.command.is_empty() {
        text += &fenced(&command_line(&bench.description.command), "");
        text += "\nor cell by cell, the first repeat of each:\n\n";
    }
    let commands = commands(bench).into_iter().map(|(cell, command)| format!("# {cell}\n{command}\n"));
    text += &fenced(&commands.collect::<String>(), "");
    if !bench.description.source.is_empty() {
        text += "\n<details><summary>the bench file</summary>\n\n";
        text += &fenced(&bench.description.source, "");
        text += "\n</details>\n";
    }
    text
}

/// `records` as tests against devices: headlines with the intervals in which they lie.
fn matrix(records: &[Record]) -> String {
    let comparison = Comparison::new(records);
    let mut text = format!("## Runs\n\n{}.\n\n", capitalized(&comparison.caption()));
    crate::shared_core::warning(records).iter().for_each(|warning| _ = writeln!(text, "{}\n", line(warning)));
    row(&mut text, std::iter::once("test".to_owned()).chain(comparison.duts.iter().cloned()));
    let _ = writeln!(text, "|---|{}", "---:|".repeat(comparison.duts.len()));
    let mut worth = Vec::new();
    for tests in comparison.rows() {
        let cells =
            tests.cells.iter().map(|cell| cell.median().map_or("–".to_owned(), Outcome::with_interval));
        let name = match &tests.goal {
            Some(goal) => format!("{}, {goal}", tests.test),
            None => tests.test.to_owned(),
        };
        for run in tests.cells.iter().filter_map(|cell| cell.median()) {
            let Some(links) = Links::of_outcome(run) else { continue };
            let mut cells = links.cells();
            cells[0] = run.marked(&cells[0]);
            worth.push((run.record.device(), name.clone(), cells));
        }
        row(&mut text, std::iter::once(name).chain(cells));
    }
    text.push('\n');
    comparison.marks().iter().for_each(|mark| _ = writeln!(text, "- `{}` {}", mark.sign(), mark.meaning()));
    text + &links_table(worth.into_iter()) + &findings(records.iter())
}

fn row(text: &mut String, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.map(|cell| line(&cell)).collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// `text` as one line that Markdown takes for nothing else.
fn line(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => escaped.push(' '),
            '\\' | '|' | '*' | '`' | '<' | '[' | ']' | '_' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// `text` as it is, between fences longer than any in it, each line behind `indent`.
fn fenced(text: &str, indent: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    let mut block = format!("{indent}{fence}\n");
    text.lines().for_each(|line| _ = writeln!(block, "{indent}{line}"));
    let _ = writeln!(block, "{indent}{fence}");
    block
}
