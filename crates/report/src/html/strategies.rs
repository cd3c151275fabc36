//! Runs that are no ramps: their records enter; panels with tables leave, into which the page's
//! script draws a picture of each.

mod search;

use results::Record;

use super::{DEVICE_COLOURS, anchor, device};
use crate::comparison::Comparison;
use crate::outcome::{SEARCH, status};

/// One run's part of its test's section.
pub struct Panel<'a> {
    /// The run's anchor.
    pub run: String,
    /// The device's place in the comparison.
    pub device: usize,
    pub colour: usize,
    pub name: String,
    pub strategy: &'a str,
    /// How it ended, in words.
    pub ended: String,
    /// Whether it is the run that the comparison shows, and not a repeat.
    pub open: bool,
    /// What its picture can be drawn for, if there is a choice: the goals of a search.
    pub choices: Vec<&'a str>,
    pub tables: Vec<Table>,
    /// What a reader must know.
    pub remarks: Vec<String>,
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

/// Whether a run's samples are curves of a load that rises, falls or stays.
pub fn has_curves(record: &Record) -> bool {
    record.strategy.name != SEARCH
}

/// A panel for each of `runs` that has no curves, with its place among all records.
pub fn panels<'a>(
    comparison: &Comparison,
    runs: impl Iterator<Item = (usize, &'a Record)>,
) -> Vec<Panel<'a>> {
    let others = runs.filter(|(_, record)| !has_curves(record));
    let mut panels: Vec<_> = others.map(|(at, record)| panel(comparison, at, record)).collect();
    panels.sort_by_key(|panel| panel.device);
    panels
}

fn panel<'a>(comparison: &Comparison, at: usize, record: &'a Record) -> Panel<'a> {
    let cells = comparison.rows().flat_map(|row| &row.cells);
    let device = device(comparison, record);
    Panel {
        run: anchor(at),
        device,
        colour: device % DEVICE_COLOURS,
        name: record.dut.label(),
        strategy: &record.strategy.name,
        ended: format!("{} after {:.1} s", status(record.status), record.elapsed_s),
        open: cells.filter_map(|cell| cell.median()).any(|run| std::ptr::eq(run.record, record)),
        choices: search::goals(record),
        tables: search::tables(record),
        remarks: record.reason.iter().cloned().chain(crate::search::remarks(record)).collect(),
    }
}
