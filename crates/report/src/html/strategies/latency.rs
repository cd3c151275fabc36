//! What a latency test found: a record enters; a table for each direction leaves, and what the
//! figures do not show.

use results::Record;
use results::record::{Distribution, LatencyTest, LoadLatency, Percentiles};
use wire::human::{count, pps};

use super::{Table, TableCell, TableRow};
use crate::figures::{duration, loss};

/// Delay and its variation, a table for each direction.
pub fn tables(record: &Record) -> Vec<Table> {
    let Some(test) = record.finding.latency() else { return Vec::new() };
    let directions = test.loads.first().map_or(&[][..], |load| &load.directions);
    let names = directions.iter().map(|direction| direction.name.replace("->", "→"));
    names.enumerate().flat_map(|(at, name)| [delays(test, at, &name), variations(test, at, &name)]).collect()
}

fn delays(test: &LatencyTest, at: usize, name: &str) -> Table {
    let kinds = Percentiles::KINDS.map(|(name, _)| name);
    Table {
        caption: format!("Latency {name}: a percentile needs ten frames beyond it"),
        head: ["load", "lost", "min", "mean"]
            .into_iter()
            .chain(kinds)
            .chain(["max"])
            .map(str::to_owned)
            .collect(),
        rows: rows(test, at, |load, seen| {
            let figures = [seen.min_ns as f64, seen.mean_ns].map(duration);
            let ends = std::iter::once(duration(seen.max_ns as f64));
            let lost = if seen.offered == 0 { "-".to_owned() } else { loss(seen.loss_ratio) };
            [pps(load.load_pps), lost]
                .into_iter()
                .chain(figures)
                .chain(percentiles(&seen.percentiles))
                .chain(ends)
                .collect()
        }),
    }
}

fn variations(test: &LatencyTest, at: usize, name: &str) -> Table {
    let kinds = Percentiles::KINDS.map(|(name, _)| name.to_owned());
    Table {
        caption: format!("Packet delay variation {name}: each delay minus the shortest (RFC 5481 §4.2)"),
        head: ["frames".to_owned()].into_iter().chain(kinds).collect(),
        rows: rows(test, at, |_, seen| {
            std::iter::once(count(seen.forwarded)).chain(percentiles(&seen.pdv)).collect()
        }),
    }
}

fn rows(
    test: &LatencyTest,
    at: usize,
    figures: impl Fn(&LoadLatency, &Distribution) -> Vec<String>,
) -> Vec<TableRow> {
    let seen = test.loads.iter().filter_map(|load| Some((load, load.directions.get(at)?)));
    let row = |(load, seen): (&LoadLatency, &Distribution)| TableRow {
        name: load.name.clone(),
        nested: false,
        cells: TableCell::all(figures(load, seen), load.disturbed.is_some()),
    };
    seen.map(row).collect()
}

fn percentiles(percentiles: &Percentiles) -> impl Iterator<Item = String> {
    percentiles.values().into_iter().map(|value| value.map_or_else(|| "-".to_owned(), duration))
}

/// What disturbed single loads.
pub fn remarks(record: &Record) -> Vec<String> {
    let loads = record.finding.latency().into_iter().flat_map(|test| &test.loads);
    loads.filter_map(|load| Some(format!("{}: disturbed: {}", load.name, load.disturbed.as_ref()?))).collect()
}

/// What shares refer to, and what the time stamps cannot see.
pub fn notes(record: &Record) -> Vec<String> {
    let Some(test) = record.finding.latency() else { return Vec::new() };
    let found = if test.searched { "found by the search of this run" } else { "as given" };
    let reference =
        test.reference_pps.map(|load| format!("100% is {} in each direction, {found}", pps(load)));
    reference.into_iter().chain(test.unseen.iter().cloned()).collect()
}
