//! Runs that are no ramps: their records enter; panels with tables leave, into which the page's
//! script draws a picture of each.

mod latency;
mod rfc2544;
mod search;
mod soak;
mod stalls;
mod waterfall;

use results::Record;

use super::look::Look;
use super::{anchor, device};
use crate::comparison::Comparison;
use crate::outcome::{Kind, status};

/// What is shown of one run, or of several of RFC 2544.
pub struct Panel<'a> {
    /// The runs' anchors.
    pub runs: String,
    /// The device's place in the comparison.
    pub device: usize,
    pub look: Look,
    pub name: String,
    pub strategy: &'a str,
    /// How it ended, in words.
    pub ended: String,
    /// Whether it is the run that the comparison shows, and not a repeat.
    pub open: bool,
    /// What its picture can be drawn for, if there is a choice: the goals of a search.
    pub choices: Vec<&'a str>,
    pub tables: Vec<Table>,
    /// What the figures must not be taken for.
    pub remarks: Vec<String>,
    /// What else a reader should know.
    pub notes: Vec<String>,
}

/// A table of texts.
#[derive(Default)]
pub struct Table {
    pub caption: String,
    pub head: Vec<String>,
    pub rows: Vec<TableRow>,
}

/// Its first column is the name.
pub struct TableRow {
    pub name: String,
    /// Whether it is a part of the row above.
    pub nested: bool,
    pub cells: Vec<TableCell>,
}

/// A figure, and whether a reader must not take it as it is.
pub struct TableCell {
    pub text: String,
    pub marked: bool,
}

impl TableCell {
    /// All cells of a row, marked or not.
    fn all(texts: impl IntoIterator<Item = String>, marked: bool) -> Vec<Self> {
        texts.into_iter().map(|text| Self { text, marked }).collect()
    }

    /// How it looks: a sentence breaks its lines.
    pub fn class(&self) -> &'static str {
        match (self.marked, self.text.split(' ').count() > 7) {
            (false, false) => "",
            (true, false) => "marked",
            (false, true) => "words",
            (true, true) => "marked words",
        }
    }
}

/// Whether a run's samples are curves of a load that rises, falls or stays.
pub fn has_curves(record: &Record) -> bool {
    Kind::of(record) == Kind::Curves
}

/// A panel for each of `runs` that has one of its own, with its place among all records.
pub fn panels<'a>(
    comparison: &Comparison,
    runs: impl Iterator<Item = (usize, &'a Record)>,
) -> Vec<Panel<'a>> {
    let own = runs.filter(|(_, record)| !matches!(Kind::of(record), Kind::Curves | Kind::Rfc2544));
    let mut panels: Vec<_> = own.map(|(at, record)| panel(comparison, at, record)).collect();
    panels.sort_by_key(|panel| panel.device);
    panels
}

fn panel<'a>(comparison: &Comparison, at: usize, record: &'a Record) -> Panel<'a> {
    let cells = comparison.rows().flat_map(|row| &row.cells);
    let device = device(comparison, record);
    let mut tables = soak::tables(record);
    tables.extend(stalls::tables(record));
    tables.extend(waterfall::tables(record));
    tables.extend(latency::tables(record));
    tables.extend(search::tables(record));
    let remarks = record.reason.iter().cloned().chain(crate::search::remarks(record));
    Panel {
        runs: anchor(at),
        device,
        look: Look::of(device),
        name: record.device(),
        strategy: &record.strategy.name,
        ended: format!("{} after {:.1} s", status(record.status), record.elapsed_s),
        open: cells.filter_map(|cell| cell.median()).any(|run| std::ptr::eq(run.record, record)),
        choices: search::goals(record),
        tables,
        remarks: remarks.chain(latency::remarks(record)).collect(),
        notes: latency::notes(record),
    }
}

/// A panel for each device, all frame sizes of RFC 2544's tests together.
pub fn rfc2544_panels<'a>(comparison: &Comparison, records: &'a [Record]) -> Vec<Panel<'a>> {
    rfc2544_groups(records).iter().filter_map(|group| rfc2544_panel(comparison, group)).collect()
}

/// The runs of RFC 2544's tests with their places, those that differ in frame size only together, the
/// smallest first: runs with one and with both directions, or with other traffic than another size,
/// are apart.
pub fn rfc2544_groups(records: &[Record]) -> Vec<Vec<(usize, &Record)>> {
    let mut groups: Vec<Vec<(usize, &Record)>> = Vec::new();
    for (at, record) in records.iter().enumerate().filter(|(_, record)| Kind::of(record) == Kind::Rfc2544) {
        let same = |group: &&mut Vec<(usize, &Record)>| {
            group.first().is_some_and(|(_, other)| alike(other) == alike(record))
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push((at, record)),
            None => groups.push(vec![(at, record)]),
        }
    }
    for group in &mut groups {
        group.sort_by(|(_, a), (_, b)| a.profile.mean_frame_size.total_cmp(&b.profile.mean_frame_size));
    }
    groups
}

/// What is the same at all sizes: the device, the directions, the profile and its tunables.
fn alike(record: &Record) -> (String, bool, &str, Vec<(&str, &str)>) {
    let tunables = record.profile.tunables.iter().filter(|(name, _)| *name != "size");
    let tunables = tunables.map(|(name, value)| (name.as_str(), value.as_str())).collect();
    (record.device(), record.profile.bidirectional, &record.profile.name, tunables)
}

fn rfc2544_panel<'a>(comparison: &Comparison, group: &[(usize, &'a Record)]) -> Option<Panel<'a>> {
    let first = group.first()?.1;
    let runs: Vec<_> = group.iter().map(|(at, _)| anchor(*at)).collect();
    let records: Vec<_> = group.iter().map(|(_, record)| *record).collect();
    let device = device(comparison, first);
    let quick = records.iter().any(|record| record.finding.rfc2544().is_some_and(|test| test.quick));
    let mark = if quick { ", quick: not conformant" } else { "" };
    let way = if first.profile.bidirectional { "both directions" } else { "one direction" };
    let reasons = records.iter().filter_map(|record| record.reason.clone());
    Some(Panel {
        runs: runs.join(" "),
        device,
        look: Look::of(device),
        name: first.device(),
        strategy: &first.strategy.name,
        ended: format!("{way}, {} frame sizes{mark}", records.len()),
        open: true,
        choices: Vec::new(),
        tables: rfc2544::tables(&records),
        remarks: reasons.chain(rfc2544::remarks(&records)).collect(),
        notes: rfc2544::notes(&records),
    })
}
