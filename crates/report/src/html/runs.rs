//! All that is known of each run: records enter; what the page shows when one is opened leaves.

use results::Record;
use results::record::{Direction, LossBegan};
use wire::human::{bps, count, pps};

use super::facts::{Facts, Limits, run_facts, tester_limits};
use super::look::Look;
use super::way::{Way, ways};
use super::{anchor, place};
use crate::comparison::Comparison;
use crate::evidence;
use crate::figures::{loss, percent};
use crate::outcome::{Kind, Outcome, limited_by, status};
use crate::workers;

/// A run and its full record.
pub struct Run<'a> {
    pub anchor: String,
    pub look: Look,
    pub device: String,
    pub record: &'a Record,
    /// Its figure in the comparison.
    pub figure: String,
    pub status: &'static str,
    /// Columns of the verdict.
    pub directions: Vec<String>,
    /// Its rows: what, and for each direction how much.
    pub verdict: Vec<(String, Vec<String>)>,
    /// What a reader must know: stalls, interference, and where losses began.
    pub remarks: Vec<String>,
    /// Where the frames went.
    pub ways: Vec<Way>,
    /// The tester's own, where they are known.
    pub limits: Option<Limits>,
    pub facts: Vec<Facts>,
}

impl Run<'_> {
    /// Whether our counters and the kernel's are of one mind.
    pub fn counters_agree(&self) -> bool {
        self.ways.iter().all(|way| way.agrees)
    }
}

/// In the order of the comparison: device by device, test by test.
pub fn runs<'a>(comparison: &'a Comparison<'a>, records: &'a [Record]) -> Vec<Run<'a>> {
    let mut runs: Vec<Run> = Vec::new();
    let mut shown = vec![false; records.len()];
    for column in 0..comparison.duts.len() {
        let cells = comparison.rows().filter_map(|row| row.cells.get(column));
        for outcome in cells.flat_map(|cell| &cell.runs) {
            let at = place(records, outcome.record);
            if !std::mem::replace(&mut shown[at], true) {
                runs.push(run(at, column, outcome));
            }
        }
    }
    runs
}

fn run<'a>(at: usize, column: usize, outcome: &Outcome<'a>) -> Run<'a> {
    let record = outcome.record;
    Run {
        anchor: anchor(at),
        look: Look::of(column),
        device: record.device(),
        record,
        figure: outcome.with_interval(),
        status: status(record.status),
        directions: record.directions.iter().map(direction_name).collect(),
        verdict: verdict(record),
        remarks: remarks(record),
        ways: ways(record),
        limits: tester_limits(record),
        facts: run_facts(record),
    }
}

fn direction_name(direction: &Direction) -> String {
    direction.name.replace("->", "→")
}

fn verdict(record: &Record) -> Vec<(String, Vec<String>)> {
    type Figure<'a> = (&'a str, fn(&Direction) -> String);
    let directions = &record.directions;
    let limit = match Kind::of(record) {
        Kind::Curves => format!("max rate at {}", evidence::threshold(&[record])),
        _ => "load that passed".to_owned(),
    };
    let figures: [Figure; 15] = [
        (&limit, |d| pps(d.max_rate_pps)),
        ("between", |d| evidence::headline(d).map_or_else(|| "–".to_owned(), evidence::bounds)),
        ("loss first began at", |d| {
            d.evidence.and_then(|it| it.loss_began).map_or_else(|| "–".to_owned(), began)
        }),
        ("highest forwarded", |d| pps(d.max_forwarded_pps)),
        ("at L1", |d| bps(d.l1_bps)),
        ("at L2", |d| bps(d.l2_bps)),
        ("of line rate", |d| percent(d.line_rate_percent)),
        ("limited by", |d| limited_by(d.limited_by).to_owned()),
        ("frames offered", |d| count(d.offered)),
        ("frames forwarded", |d| count(d.forwarded)),
        ("frames not sent (tester late)", |d| count(d.unsent)),
        ("duplicates", |d| count(d.duplicates)),
        ("reordered", |d| count(d.reordered)),
        ("returned", |d| count(d.returned)),
        ("foreign", |d| count(d.foreign)),
    ];
    let shown = |(name, figure): Figure| (name.to_owned(), directions.iter().map(figure).collect());
    figures.into_iter().map(shown).collect()
}

fn began(began: LossBegan) -> String {
    format!("{} ({} lost)", pps(began.pps), loss(began.loss_ratio))
}

fn remarks(record: &Record) -> Vec<String> {
    let mut remarks: Vec<String> = record.directions.iter().filter_map(stall).collect();
    if Kind::of(record) == Kind::Curves {
        remarks.extend(evidence::interference(record));
        remarks.extend(evidence::searched(record));
        remarks.extend(evidence::loss_began(record));
    }
    remarks.extend(workers::uneven(record));
    remarks
}

fn stall(direction: &Direction) -> Option<String> {
    let stall = direction.stalled?;
    let frames = count(stall.after_frames);
    Some(format!("{} stalled at {:.1} s after {frames} frames", direction_name(direction), stall.at_s))
}
