//! What a stall search found: a record enters; a table of the ranges and one of the stalls leave.

use results::Record;
use results::record::{RateStall, StallRange, StallRate, StallSearch, StallVerdict};
use wire::human::{count, pps};

use super::{Table, TableCell, TableRow};
use crate::figures::duration;
use crate::stalls::{begins, chance, ends, recovery, stalls, tried, verdict};

/// Stalls that are listed; all are in the record.
const LISTED: usize = 50;

/// The ranges, and the stalls if there were some.
pub fn tables(record: &Record) -> Vec<Table> {
    let Some(found) = record.finding.stall_search() else { return Vec::new() };
    let all = stalls(found);
    let mut tables = vec![ranges(found)];
    if !all.is_empty() {
        tables.push(events(&all));
    }
    tables
}

fn ranges(found: &StallSearch) -> Table {
    let chances = format!("Chance of a stall in a trial ({} % confidence)", found.confidence_percent);
    Table {
        caption: format!("At which loads it stalls: {}", tried(found)),
        head: ["From", "To", "Trials", "Stalled", &chances].map(str::to_owned).into(),
        rows: found.ranges.iter().map(range).collect(),
    }
}

fn range(range: &StallRange) -> TableRow {
    let figures =
        [begins(range), ends(range), range.trials.to_string(), range.stalled.to_string(), chance(range)];
    TableRow {
        name: verdict(range.verdict).to_owned(),
        nested: false,
        cells: TableCell::all(figures, range.verdict == StallVerdict::Stalls),
    }
}

fn events(all: &[(&StallRate, &RateStall)]) -> Table {
    let head = [
        "Direction",
        "Trial began",
        "Stalled after",
        "Frames before",
        "Offered during it",
        "DUT received",
        "DUT sent on",
        "Then",
    ];
    let more = all.len().saturating_sub(LISTED);
    let caption = match more {
        0 => "Every stall, by its load, in order of time".to_owned(),
        _ => format!(
            "The first {LISTED} stalls, by their loads, in order of time; {more} more are in the record"
        ),
    };
    let rows = all.iter().take(LISTED).map(|(rate, seen)| event(rate, seen)).collect();
    Table { caption, head: head.map(str::to_owned).into(), rows }
}

fn event(rate: &StallRate, seen: &RateStall) -> TableRow {
    let during = seen.stall.counters.during;
    let figure = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), count);
    let cells = [
        seen.direction.replace("->", "→"),
        format!("{:.2} s", seen.trial_s),
        duration(seen.after_s * 1e9),
        count(seen.after_frames),
        count(during.offered),
        figure(during.device.map(|device| device.received)),
        figure(during.device.map(|device| device.forwarded)),
        recovery(seen),
    ];
    TableRow { name: pps(rate.pps), nested: false, cells: TableCell::all(cells, false) }
}
