//! What a soak found: a record enters; the findings of each direction and the list of events leave.

use results::Record;
use results::record::{
    EventCounters, Hiccup, LossEvent, LossPattern, Measure, Soak, SoakDirection, SoakStall,
};
use wire::human::{count, pps};

use super::{Table, TableCell, TableRow};
use crate::figures::duration;

/// The column of an event's lost frames.
const LOST: usize = 4;
/// Events in the table; all of them are in the record.
const LISTED: usize = 50;

pub fn tables(record: &Record) -> Vec<Table> {
    let Some(soak) = record.finding.soak() else { return Vec::new() };
    let directions = findings(soak);
    let events = events(soak);
    if events.rows.is_empty() { vec![directions] } else { vec![directions, events] }
}

fn findings(soak: &Soak) -> Table {
    let head =
        ["offered", "lost", "of these disturbed", "lossy intervals", "losses are", "stalls", "latency drift"];
    let row = |direction: &SoakDirection| TableRow {
        name: direction.name.replace("->", "→"),
        nested: false,
        cells: TableCell::all(
            vec![
                count(direction.offered),
                count(direction.lost),
                count(direction.lost_disturbed),
                format!(
                    "{} of {}",
                    count(direction.lossy_intervals as u64),
                    count(direction.intervals as u64)
                ),
                pattern(direction),
                count(direction.stall_count as u64),
                drift(direction),
            ],
            false,
        ),
    };
    Table {
        caption: format!(
            "{} in each direction for {:.0} s, counted every {:.3} s",
            pps(soak.load_pps),
            soak.duration_s,
            soak.interval_s
        ),
        head: head.map(str::to_owned).into(),
        rows: soak.directions.iter().map(row).collect(),
    }
}

fn pattern(direction: &SoakDirection) -> String {
    match (direction.pattern, direction.period) {
        (LossPattern::None, _) => "none".to_owned(),
        (LossPattern::Scattered, _) => "scattered".to_owned(),
        (LossPattern::Steady, None) => "steady".to_owned(),
        (LossPattern::Periodic, None) => "periodic".to_owned(),
        (_, Some(period)) => {
            let frames = count(period.frames.round() as u64);
            match period.measure {
                Measure::Time => format!("every {:.3} s or {frames} frames", period.period_s),
                Measure::Frames => format!("every {frames} frames"),
            }
        }
    }
}

fn drift(direction: &SoakDirection) -> String {
    match direction.drift {
        None => "-".to_owned(),
        Some(drift) if !drift.significant => "none".to_owned(),
        Some(drift) => format!("{} to {}", duration(drift.from_ns), duration(drift.to_ns)),
    }
}

/// Stalls, losses and hiccups in order of time.
fn events(soak: &Soak) -> Table {
    let mut rows: Vec<(f64, TableRow)> =
        soak.hiccups.iter().map(|hiccup| (hiccup.from_s, hiccup_row(hiccup))).collect();
    for direction in &soak.directions {
        let stalls = direction.stalls.iter().map(|stall| (stall.from_s, stall_row(direction, stall)));
        // A stall is in the list of losses too.
        let is_stall = |loss: &&LossEvent| {
            direction.stalls.iter().any(|stall| (loss.from_s..loss.until_s).contains(&stall.from_s))
        };
        let losses = direction.losses.iter().filter(|loss| !is_stall(loss));
        rows.extend(stalls.chain(losses.map(|loss| (loss.from_s, loss_row(direction, loss)))));
    }
    rows.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let all = soak.hiccup_count + soak.directions.iter().map(|direction| direction.loss_count).sum::<usize>();
    let caption = match rows.len() {
        listed if listed <= LISTED => "What happened, in order of time".to_owned(),
        _ => format!("What happened first, of {} events in all", count(all as u64)),
    };
    let head = ["from", "until", "direction", "offered", "lost", "into the device", "out of it", "remark"];
    Table {
        caption,
        head: head.map(str::to_owned).into(),
        rows: rows.into_iter().take(LISTED).map(|(_, row)| row).collect(),
    }
}

fn stall_row(direction: &SoakDirection, stall: &SoakStall) -> TableRow {
    let until = stall.until_s.map_or_else(|| "the end".to_owned(), |until| format!("{until:.2} s"));
    let after = format!("after {} frames", count(stall.after_frames));
    let remark = if stall.disturbed { format!("{after}, disturbed") } else { after };
    row("stall", stall.from_s, until, &direction.name, Some(&stall.counters), remark, true)
}

fn loss_row(direction: &SoakDirection, loss: &LossEvent) -> TableRow {
    let remark = if loss.on_period { "on the period" } else { "" };
    let until = format!("{:.2} s", loss.until_s);
    row("loss", loss.from_s, until, &direction.name, Some(&loss.counters), remark.to_owned(), false)
}

fn hiccup_row(hiccup: &Hiccup) -> TableRow {
    let unsent = format!("{} frames unsent", count(hiccup.unsent));
    let remark = hiccup.cause.iter().fold(unsent, |unsent, cause| format!("{unsent}: {cause}"));
    let until = format!("{:.2} s", hiccup.until_s);
    let mut row = row("tester held up", hiccup.from_s, until, "-", None, remark, false);
    if let Some(lost) = row.cells.get_mut(LOST) {
        lost.text = count(hiccup.lost);
    }
    row
}

fn row(
    name: &str,
    from_s: f64,
    until: String,
    direction: &str,
    counters: Option<&EventCounters>,
    remark: String,
    marked: bool,
) -> TableRow {
    let during = counters.map(|counters| counters.during);
    let device = during.and_then(|during| during.device);
    let figure = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), count);
    let cells = vec![
        format!("{from_s:.2} s"),
        until,
        direction.replace("->", "→"),
        figure(during.map(|during| during.offered)),
        figure(during.map(|during| during.offered.saturating_sub(during.forwarded))),
        figure(device.map(|device| device.received)),
        figure(device.map(|device| device.forwarded)),
        remark,
    ];
    TableRow { name: name.to_owned(), nested: false, cells: TableCell::all(cells, marked) }
}
