//! What a search found: a record enters, its goals and its table leave.

use results::Record;

use super::{Table, TableCell, TableRow};
use crate::search::{HEAD, Row, rows};

/// The goals that trials have a verdict for.
pub fn goals(record: &Record) -> Vec<&str> {
    record
        .finding
        .trials()
        .first()
        .map_or_else(Vec::new, |trial| trial.verdicts.keys().map(String::as_str).collect())
}

/// The intervals, if there are any.
pub fn tables(record: &Record) -> Vec<Table> {
    let rows: Vec<_> = rows(record).iter().map(table_row).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let caption = match record.directions.len() {
        0 | 1 => "The interval that holds the highest load of each goal",
        _ => "The interval that holds the highest load of each goal, directions added up and each alone",
    };
    vec![Table { caption: caption.to_owned(), head: HEAD.map(str::to_owned).into(), rows }]
}

fn table_row(row: &Row) -> TableRow {
    let marked = [row.irregular, row.irregular, false, false, row.by_tester];
    let cells = row.figures.iter().zip(marked);
    TableRow {
        name: row.name.replace("->", "→"),
        nested: row.nested,
        cells: cells.map(|(text, marked)| TableCell { text: text.clone(), marked }).collect(),
    }
}
