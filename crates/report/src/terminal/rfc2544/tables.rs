//! The tables of the RFC 2544 tests, and the plot of rates: frame sizes with what was found at each
//! enter; columns leave, or nothing where no size has that test.

use std::fmt::Write as _;

use results::record::{BackToBack, LatencyAtThroughput, LimitedBy, LossPoint, Recovery, Reset};
use wire::human::{bps, count, pps};
use wire::size::pps_to_l2_bps;

use super::{DISTURBED, Size, TESTER};
use crate::links::Links;
use crate::outcome::throughput_limited_by;
use crate::terminal::columns::{Align, Columns, Text};
use crate::terminal::{Look, links};

/// How wide the plot's bars are at most.
const BAR: usize = 48;

/// A table with `head` above its columns.
fn table<const N: usize>(head: [&str; N], align: [Align; N]) -> Columns {
    let mut columns = Columns::new(align);
    columns.row(Text::new("  size", Look::Faint), head.map(|name| Text::new(name, Look::Faint)));
    columns
}

fn name(size: &Size) -> Text {
    Text::plain(&format!("  {}", size.label))
}

pub(super) fn throughput(sizes: &[Size]) -> Option<Columns> {
    use Align::{Left, Right};
    let head = ["theoretical (pps)", "throughput (pps)", "of line", "L2", "limited by"];
    let mut columns = table(head, [Right, Right, Right, Right, Left]);
    let mut any = false;
    for size in sizes {
        let Some(throughput) = size.found.throughput else { continue };
        any = true;
        let warn = throughput.irregular.is_some() && throughput.limited_by != LimitedBy::LineRate;
        let look = if warn { Look::Warning } else { Look::Plain };
        let share = throughput.pps / size.found.theoretical_pps * 100.0;
        let cells = [
            Text::plain(&whole(size.found.theoretical_pps)),
            Text::new(&whole(throughput.pps), look),
            Text::plain(&format!("{share:.2} %")),
            Text::plain(&bps(pps_to_l2_bps(throughput.pps, size.record.profile.mean_frame_size))),
            Text::new(throughput_limited_by(throughput.limited_by), look),
        ];
        columns.row(name(size), cells);
    }
    any.then_some(columns)
}

/// Rate against size, with what the line carries.
pub(super) fn plot(sizes: &[Size], colour: bool) -> String {
    let top = sizes.iter().map(|size| size.found.theoretical_pps).fold(0.0, f64::max);
    if !(top.is_finite() && top > 0.0) {
        return String::new();
    }
    let margin = sizes.iter().map(|size| size.label.chars().count()).max().unwrap_or(0);
    let place = |rate: f64| (rate / top * BAR as f64).round().clamp(0.0, BAR as f64) as usize;
    let mut text = "\n".to_owned();
    for size in sizes {
        let Some(throughput) = size.found.throughput else { continue };
        let bar = place(throughput.pps);
        let gap = place(size.found.theoretical_pps).saturating_sub(bar);
        let line = format!(
            "  {:margin$} {}{}{}",
            size.label,
            Look::Forwarded.paint(&"█".repeat(bar), colour),
            " ".repeat(gap),
            Look::Offered.paint("┊", colour)
        );
        let _ = writeln!(text, "{line}");
    }
    let legend = format!("  {:margin$} 0 to {}:  █ throughput  ┊ theoretical maximum", "", pps(top));
    text + &Look::Faint.paint(&legend, colour) + "\n"
}

/// What the throughput of each size is worth.
pub(super) fn links(sizes: &[Size]) -> Option<Columns> {
    let row = |size: &Size| Some((format!("  {}", size.label), Links::of(size.record)?.cells()));
    let rows: Vec<_> = sizes.iter().filter_map(row).collect();
    (!rows.is_empty()).then(|| links::columns(Text::new("  size", Look::Faint), rows))
}

pub(super) fn latency(sizes: &[Size]) -> Option<Columns> {
    let head = ["load (pps)", "mean", "least", "worst p99", "most", "streams", "lost"];
    let mut columns = table(head, [Align::Right; 7]);
    let mut any = false;
    for size in sizes {
        let Some(latency) = &size.found.latency else { continue };
        for (direction, mean_ns) in latency.mean_ns.iter().enumerate() {
            any = true;
            let names = size.record.directions.get(direction).map_or("", |found| found.name.as_str());
            let one = latency.mean_ns.len() == 1;
            let label = if one { format!("  {}", size.label) } else { format!("  {} {names}", size.label) };
            columns.row(Text::plain(&label), latency_cells(latency, direction, *mean_ns));
        }
    }
    any.then_some(columns)
}

fn latency_cells(latency: &LatencyAtThroughput, direction: usize, mean_ns: f64) -> [Text; 7] {
    let streams = || {
        latency.streams.iter().filter_map(move |stream| stream.directions.get(direction).copied().flatten())
    };
    let lost: u64 = latency.streams.iter().map(|stream| stream.lost).sum();
    let nanoseconds = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| time(ns as f64 / 1e9));
    let disturbed = latency.streams.iter().any(|stream| stream.disturbed.is_some());
    let mean = time(mean_ns / 1e9) + if disturbed { DISTURBED } else { "" };
    [
        Text::plain(&whole(latency.load_pps)),
        Text::new(&mean, if disturbed { Look::Warning } else { Look::Plain }),
        Text::plain(&nanoseconds(streams().map(|stream| stream.min_ns).min())),
        Text::plain(&nanoseconds(streams().map(|stream| stream.p99_ns).max())),
        Text::plain(&nanoseconds(streams().map(|stream| stream.max_ns).max())),
        Text::plain(&format!("{} × {}", latency.streams.len(), time(latency.stream_s))),
        Text::new(&count(lost), if lost > 0 { Look::Warning } else { Look::Plain }),
    ]
}

/// Loss against load: a row for each load, a column for each size.
pub(super) fn loss(sizes: &[Size]) -> Option<Columns> {
    let measured: Vec<&Size> = sizes.iter().filter(|size| !size.found.loss.is_empty()).collect();
    if measured.is_empty() {
        return None;
    }
    let mut columns = Columns::new(measured.iter().map(|_| Align::Right));
    let head = measured.iter().map(|size| Text::new(size.label, Look::Faint));
    columns.row(Text::new("  load", Look::Faint), head);
    let mut loads: Vec<f64> =
        measured.iter().flat_map(|size| size.found.loss.iter().map(|point| point.load_percent)).collect();
    loads.sort_by(|a, b| b.total_cmp(a));
    loads.dedup();
    for load in loads {
        let at = |size: &&Size| {
            size.found.loss.iter().find(|point| point.load_percent.total_cmp(&load).is_eq()).map(loss_cell)
        };
        let cells = measured.iter().map(|size| at(size).unwrap_or_else(|| Text::new("-", Look::Faint)));
        columns.row(Text::plain(&format!("  {} %", short(load))), cells);
    }
    Some(columns)
}

fn loss_cell(point: &LossPoint) -> Text {
    let mark = match point {
        LossPoint { tester_limited: true, .. } => TESTER,
        LossPoint { disturbed: Some(_), .. } => DISTURBED,
        _ => "",
    };
    let percent = point.loss_ratio * 100.0;
    // A loss is not to be rounded away.
    let figure =
        if percent > 0.0 && percent < 0.001 { "< 0.001".to_owned() } else { format!("{percent:.3}") };
    Text::new(&format!("{figure} %{mark}"), if mark.is_empty() { Look::Plain } else { Look::Warning })
}

pub(super) fn back_to_back(sizes: &[Size]) -> Option<Columns> {
    let head =
        ["average", "least", "most", "std dev", "implied buffer", "corrected", "repeats", "tried up to"];
    let mut columns = table(head, [Align::Right; 8]);
    let mut any = false;
    for size in sizes {
        let Some(found) = &size.found.back_to_back else { continue };
        any = true;
        columns.row(name(size), burst_cells(found));
    }
    any.then_some(columns)
}

fn burst_cells(found: &BackToBack) -> Vec<Text> {
    if found.bursts.is_empty() {
        return vec![Text::new("-", Look::Faint); 8];
    }
    let at_least = if found.longest_passed { "≥" } else { "" };
    let figures = [
        format!("{at_least}{}", whole(found.average)),
        count(found.min),
        count(found.max),
        format!("{:.1}", found.standard_deviation),
        format!("{at_least}{}", time(found.implied_buffer_s)),
        format!("{at_least}{}", time(found.corrected_buffer_s)),
        found.bursts.len().to_string() + if found.disturbed > 0 { DISTURBED } else { "" },
        count(found.longest_tried),
    ];
    figures.iter().map(|figure| Text::plain(figure)).collect()
}

pub(super) fn recovery(sizes: &[Size]) -> Option<Columns> {
    let head = ["overload (pps)", "then (pps)", "recovery", "outage of a reset", "back after"];
    let mut columns = table(head, [Align::Right; 5]);
    let mut any = false;
    for size in sizes {
        let (recovery, reset) = (&size.found.recovery, &size.found.reset);
        if recovery.is_none() && reset.is_none() {
            continue;
        }
        any = true;
        let none = || Text::new("-", Look::Faint);
        let [overload, reduced, time] =
            recovery.as_ref().map_or_else(|| [none(), none(), none()], recovery_cells);
        let [outage, back] = reset.as_ref().map_or_else(|| [none(), none()], reset_cells);
        columns.row(name(size), [overload, reduced, time, outage, back]);
    }
    any.then_some(columns)
}

fn recovery_cells(recovery: &Recovery) -> [Text; 3] {
    let figure = match recovery.average_s {
        Some(0.0) => "at once".to_owned(),
        Some(seconds) => time(seconds),
        None => format!("not within {}", time(recovery.watched_s)),
    };
    let disturbed = recovery.repeats.iter().any(|repeat| repeat.disturbed.is_some());
    let mark = if recovery.tester_limited { TESTER } else { "" };
    let look = if disturbed || recovery.average_s.is_none() { Look::Warning } else { Look::Plain };
    [
        Text::plain(&format!("{}{mark}", whole(recovery.overload_pps))),
        Text::plain(&whole(recovery.reduced_pps)),
        Text::new(&(figure + if disturbed { DISTURBED } else { "" }), look),
    ]
}

fn reset_cells(reset: &Reset) -> [Text; 2] {
    if !reset.came_back {
        let outage = format!("not back within {}", time(reset.watched_s));
        return [Text::new(&outage, Look::Warning), Text::new("-", Look::Faint)];
    }
    let mark = if reset.disturbed.is_some() { DISTURBED } else { "" };
    let back = reset.back_s.map_or_else(|| "-".to_owned(), time);
    [Text::plain(&format!("{}{mark}", time(reset.outage_s))), Text::plain(&back)]
}

/// Whole frames, thousands apart.
fn whole(frames: f64) -> String {
    count(frames.round() as u64)
}

/// A time with its unit.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{} s", short((s * 100.0).round() / 100.0)),
    }
}

/// Without digits that say nothing.
fn short(number: f64) -> String {
    format!("{}", (number * 1e4).round() / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!([14.3e-6, 1.5e-3, 1.0, 12.345].map(time), ["14.3 µs", "1.50 ms", "1 s", "12.35 s"]);
    }
}
