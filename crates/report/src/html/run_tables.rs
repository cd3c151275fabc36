//! All runs in tables, one for each kind of strategy with the figures that matter for it: records
//! enter; rows leave whose cells know the numbers to sort by.

use results::Record;
use results::record::{LimitedBy, Percentiles, Rfc2544, SoakDirection, StallRange};
use wire::human::{bps, count, pps};

use super::look::Look;
use super::strategies::rfc2544_groups;
use super::{anchor, device, place};
use crate::comparison::{Comparison, without_way};
use crate::evidence;
use crate::figures::{duration, loss, percent};
use crate::links::Links;
use crate::outcome::{Kind, Outcome, loss_pattern, throughput_limited_by, typical_load};

/// The runs of one kind.
pub struct RunTable {
    pub title: &'static str,
    /// Columns after the device, the type and the way.
    pub head: &'static [&'static str],
    pub rows: Vec<RunRow>,
    /// What the figures are.
    pub notes: &'static [&'static str],
}

pub struct RunRow {
    /// The run's, where the record is shown.
    pub anchor: String,
    pub look: Look,
    pub device: String,
    pub label: String,
    pub bidirectional: bool,
    pub cells: Vec<Cell>,
}

impl RunRow {
    pub fn way(&self) -> &'static str {
        if self.bidirectional { "Bidirectional" } else { "Unidirectional" }
    }
}

/// A figure.
pub struct Cell {
    pub text: String,
    /// What it is sorted by; words are sorted as they are.
    pub value: Option<f64>,
    /// Whether a reader must not take it as it is.
    pub marked: bool,
}

impl Cell {
    fn number(value: f64, text: impl Fn(f64) -> String) -> Self {
        Self { text: text(value), value: Some(value), marked: false }
    }

    fn some(value: Option<f64>, text: impl Fn(f64) -> String) -> Self {
        value.map_or_else(Self::none, |value| Self::number(value, text))
    }

    fn count(value: u64) -> Self {
        Self { text: count(value), value: Some(value as f64), marked: false }
    }

    fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None, marked: false }
    }

    fn none() -> Self {
        Self::words("–")
    }

    fn marked(self, marked: bool) -> Self {
        Self { marked, ..self }
    }
}

/// What a kind of runs is called, its columns, the cells of one outcome and what they are.
struct Layout {
    kind: Kind,
    title: &'static str,
    head: &'static [&'static str],
    cells: fn(&Outcome) -> Vec<Cell>,
    notes: &'static [&'static str],
}

/// What the column of that name is.
const AS_IMIX: &str = "As IMIX: the bandwidth of as many packets of simple IMIX (7:4:1), directions added up. The details of each run \
     say of which rate, and at which Ethernet speeds it sustains line rate.";
const CURVES: Layout = Layout {
    kind: Kind::Curves,
    title: "Ramps and saturations",
    head: &[
        "Forwarded",
        "Max rate ≤ threshold",
        "Between",
        "Loss began at",
        "L1 bits/s",
        "L2 bits/s",
        "Line rate",
        "As IMIX",
        "Limited by",
    ],
    cells: curves,
    notes: &[
        "Directions are added up. Max rate ≤ threshold: the highest offered rate at which no more was lost than \
         the run's loss threshold, after the last step that recovered, and the loads between which it lies. Loss \
         began at: the lowest load at which any frame was lost. Bits and line rate are of the forwarded rate.",
        AS_IMIX,
    ],
};
const SEARCHES: Layout = Layout {
    kind: Kind::Search,
    title: "Searches",
    head: &["Lower bound", "Upper bound", "Forwarded", "L1 bits/s", "Line rate", "As IMIX", "Limited by"],
    cells: search,
    notes: &[
        "Directions are added up. The goal's highest load lies between the bounds; forwarded is what came \
         back at the lower bound.",
        AS_IMIX,
    ],
};
const LATENCIES: Layout = Layout {
    kind: Kind::Latency,
    title: "Latency tests",
    head: &["At load", "Packets/s", "p50", "p99", "p99.9", "Longest", "Lost", "As IMIX"],
    cells: latency,
    notes: &[
        "At half of what the device bears, or at the first load where that was not tried; of two directions \
         the longer times. The panels have all loads.",
        AS_IMIX,
    ],
};
const SOAKS: Layout = Layout {
    kind: Kind::Soak,
    title: "Soaks",
    head: &[
        "Load",
        "Lasted",
        "Lost frames",
        "Of offered",
        "Interference",
        "Stalls",
        "Longest stall",
        "Losses",
        "As IMIX",
    ],
    cells: soak,
    notes: &[
        "Directions are added up, the load is that of each. Interference: frames of these that were lost \
         while other activity on the tester's host may have been the cause.",
        AS_IMIX,
    ],
};
const STALLS: Layout = Layout {
    kind: Kind::Stall,
    title: "Stall searches",
    head: &["Finding", "Lowest load", "Highest load", "Trials", "Of these stalled"],
    cells: stall,
    notes: &[
        "Loads are those of each direction. The panels have the ranges with their edges, and every stall.",
    ],
};
const RFC2544_HEAD: &[&str] = &[
    "Smallest size",
    "Throughput",
    "Of theoretical",
    "Latency",
    "Burst",
    "Sizes at full rate",
    "As IMIX",
    "Limited by",
];
const RFC2544_NOTES: &[&str] = &[
    "Of each direction, at the smallest frame size. Latency: the mean at the throughput. Burst: frames back \
     to back without loss.",
    AS_IMIX,
];

/// A table for each kind that occurs.
pub fn run_tables(comparison: &Comparison, records: &[Record]) -> Vec<RunTable> {
    let mut tables: Vec<_> =
        [CURVES, SEARCHES, LATENCIES].map(|layout| table(&layout, comparison, records)).into();
    tables.push(RunTable {
        title: "RFC 2544",
        head: RFC2544_HEAD,
        rows: rfc2544_groups(records).iter().filter_map(|group| rfc2544_row(comparison, group)).collect(),
        notes: RFC2544_NOTES,
    });
    tables.push(table(&SOAKS, comparison, records));
    tables.push(table(&STALLS, comparison, records));
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// Device by device, test by test.
fn table(layout: &Layout, comparison: &Comparison, records: &[Record]) -> RunTable {
    let mut rows = Vec::new();
    for (column, device) in comparison.duts.iter().enumerate() {
        for row in comparison.rows() {
            let outcomes = row.cells.get(column).into_iter().flat_map(|cell| &cell.runs);
            let own = outcomes.filter(|outcome| Kind::of(outcome.record) == layout.kind);
            rows.extend(own.map(|outcome| RunRow {
                anchor: anchor(place(records, outcome.record)),
                look: Look::of(column),
                device: device.clone(),
                label: match layout.kind {
                    Kind::Curves | Kind::Search => row.label.clone(),
                    _ => without_way(row.test).to_owned(),
                },
                bidirectional: outcome.record.profile.bidirectional,
                cells: (layout.cells)(outcome),
            }));
        }
    }
    RunTable { title: layout.title, head: layout.head, rows, notes: layout.notes }
}

/// The bandwidth of as many packets of simple IMIX.
fn imix(outcome: &Outcome) -> Cell {
    Cell::some(Links::of_outcome(outcome).map(|links| links.imix_bps()), bps)
}

/// The share of line rate with its marks.
fn share(outcome: &Outcome) -> Cell {
    let value = outcome.has_figures.then_some(outcome.line_rate_percent);
    Cell { text: outcome.marked_percent(), value, marked: !outcome.marks.is_empty() }
}

fn curves(outcome: &Outcome) -> Vec<Cell> {
    let known = |value: f64| outcome.has_figures.then_some(value);
    let limit = if outcome.has_figures { Cell::words(outcome.limited_by.clone()) } else { Cell::none() };
    vec![
        Cell::some(known(outcome.forwarded_pps), pps),
        Cell::some(known(outcome.limit_pps), pps),
        outcome.interval.map_or_else(Cell::none, |it| Cell::number(it.lower_pps, |_| evidence::bounds(it))),
        Cell::some(evidence::lowest_loss(outcome.record), pps),
        Cell::some(known(outcome.l1_bps), bps),
        Cell::some(known(outcome.l2_bps), bps),
        share(outcome),
        imix(outcome),
        limit.marked(!outcome.marks.is_empty()),
    ]
}

fn search(outcome: &Outcome) -> Vec<Cell> {
    let known = |value: f64| outcome.has_figures.then_some(value);
    let result = outcome.goal.as_ref().and_then(|goal| outcome.record.finding.results().get(goal));
    let limit = if outcome.has_figures { Cell::words(outcome.limited_by.clone()) } else { Cell::none() };
    vec![
        Cell::some(known(outcome.limit_pps), pps),
        Cell::some(result.and_then(|result| result.upper_pps), pps),
        Cell::some(known(outcome.forwarded_pps), pps),
        Cell::some(known(outcome.l1_bps), bps),
        share(outcome),
        imix(outcome),
        limit.marked(!outcome.marks.is_empty()),
    ]
}

fn latency(outcome: &Outcome) -> Vec<Cell> {
    let Some(load) = typical_load(outcome.record) else {
        let mut cells: Vec<_> = LATENCIES.head.iter().map(|_| Cell::none()).collect();
        cells[0] = Cell::words(outcome.marked("-")).marked(true);
        return cells;
    };
    let disturbed = load.disturbed.is_some();
    let longest = |value: fn(&Percentiles) -> Option<f64>| {
        let values = load.directions.iter().filter_map(|direction| value(&direction.percentiles));
        Cell::some(values.reduce(f64::max), duration).marked(disturbed)
    };
    let largest = |value: &dyn Fn(&results::record::Distribution) -> f64| {
        load.directions.iter().map(value).reduce(f64::max)
    };
    vec![
        Cell { text: outcome.marked(&load.name), value: load.share, marked: !outcome.marks.is_empty() },
        Cell::number(load.load_pps, pps),
        longest(|percentiles| percentiles.p50_ns),
        longest(|percentiles| percentiles.p99_ns),
        longest(|percentiles| percentiles.p99_9_ns),
        Cell::some(largest(&|seen| seen.max_ns as f64), duration).marked(disturbed),
        Cell::some(largest(&|seen| seen.loss_ratio), loss).marked(disturbed),
        imix(outcome),
    ]
}

fn soak(outcome: &Outcome) -> Vec<Cell> {
    let Some(soak) = outcome.record.finding.soak() else {
        let mut cells: Vec<_> = SOAKS.head.iter().map(|_| Cell::none()).collect();
        cells[0] = Cell::words(outcome.marked("-")).marked(true);
        return cells;
    };
    let sum = |value: fn(&SoakDirection) -> u64| soak.directions.iter().map(value).sum::<u64>();
    let stalls = || soak.directions.iter().flat_map(|direction| &direction.stalls);
    let end = outcome.record.samples.last().map_or(soak.duration_s, |last| last.at_s + last.duration_s);
    let longest = stalls().map(|stall| stall.until_s.unwrap_or(end) - stall.from_s).reduce(f64::max);
    let mut patterns: Vec<_> =
        soak.directions.iter().map(|direction| loss_pattern(direction.pattern)).collect();
    patterns.dedup();
    let (lost, offered) = (sum(|d| d.lost), sum(|d| d.offered));
    let stall_count = sum(|d| d.stall_count as u64);
    vec![
        Cell::number(soak.load_pps, |load| outcome.marked(&pps(load))).marked(!outcome.marks.is_empty()),
        Cell::number(soak.duration_s, |seconds| format!("{seconds:.0} s")),
        Cell::count(lost).marked(lost > sum(|d| d.lost_disturbed)),
        Cell::number(lost as f64 / (offered as f64).max(1.0), loss),
        Cell::count(sum(|d| d.lost_disturbed)),
        Cell::count(stall_count).marked(stall_count > 0),
        Cell::some(longest, |seconds| duration(seconds * 1e9)),
        Cell::words(patterns.join(", ")),
        imix(outcome),
    ]
}

fn stall(outcome: &Outcome) -> Vec<Cell> {
    let found = outcome.record.finding.stall_search();
    let text = outcome.text.as_deref().unwrap_or("-");
    let sum = |value: fn(&StallRange) -> usize| {
        found.map_or_else(Cell::none, |found| {
            Cell::count(found.ranges.iter().map(value).sum::<usize>() as u64)
        })
    };
    let stalls = found.is_some_and(|found| found.ranges.iter().any(|range| range.stalled > 0));
    vec![
        Cell::words(outcome.marked(text)).marked(stalls || !outcome.marks.is_empty()),
        Cell::some(found.map(|found| found.lowest_pps), pps),
        Cell::some(found.map(|found| found.highest_pps), pps),
        sum(|range| range.trials),
        sum(|range| range.stalled).marked(stalls),
    ]
}

/// A device's runs at all sizes, the smallest first, in one row.
fn rfc2544_row(comparison: &Comparison, group: &[(usize, &Record)]) -> Option<RunRow> {
    let (at, record) = *group.first()?;
    let test = record.finding.rfc2544();
    let found = test.and_then(|test| test.throughput);
    let tests = || group.iter().filter_map(|(_, record)| record.finding.rfc2544());
    let at_full_rate =
        |test: &&Rfc2544| test.throughput.is_some_and(|found| found.limited_by == LimitedBy::LineRate);
    let full = tests().filter(at_full_rate).count();
    let theoretical = test.map_or(0.0, |test| test.theoretical_pps).max(1.0);
    let means = test.and_then(|test| test.latency.as_ref()).map(|latency| latency.mean_ns.iter().copied());
    let bursts = test.and_then(|test| test.back_to_back.as_ref()).filter(|found| !found.bursts.is_empty());
    let outcome = Outcome::new(record);
    let share = found.map(|found| found.pps / theoretical * 100.0);
    Some(RunRow {
        anchor: anchor(at),
        look: Look::of(device(comparison, record)),
        device: record.device(),
        label: record.profile.name.clone(),
        bidirectional: record.profile.bidirectional,
        cells: vec![
            Cell::number(record.profile.mean_frame_size, |size| format!("{size:.0} B")),
            Cell::some(found.map(|found| found.pps), pps),
            Cell {
                text: share.map_or_else(|| outcome.marked_percent(), |share| outcome.marked(&percent(share))),
                value: share,
                marked: !outcome.marks.is_empty(),
            },
            Cell::some(means.and_then(|means| means.reduce(f64::max)), duration),
            Cell::some(bursts.map(|found| found.average.round()), |frames| count(frames as u64)),
            Cell::number(full as f64, |full| format!("{full:.0} of {}", group.len())),
            imix(&outcome),
            found.map_or_else(Cell::none, |found| Cell::words(throughput_limited_by(found.limited_by))),
        ],
    })
}
