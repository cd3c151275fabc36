//! What the tests of RFC 2544 found, in the formats that it asks for (section 26): the records of
//! one device enter, one for each frame size; tables, a plot and the deviations leave.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use results::Record;
use results::record::{BackToBack, LatencyAtThroughput, LimitedBy, LossPoint, Recovery, Reset, Rfc2544};
use wire::human::{bps, count, pps};
use wire::size::pps_to_l2_bps;

use super::columns::{Align, Columns, Text};
use super::{Look, limited_by};

/// How wide the plot's bars are at most.
const BAR: usize = 48;
/// What marks a load that the tester could not send, and one that the machine disturbed.
const TESTER: &str = "*";
const DISTURBED: &str = "~";

/// One frame size.
struct Size<'a> {
    label: &'a str,
    record: &'a Record,
    found: &'a Rfc2544,
}

/// All tests of all sizes; empty if no record is of RFC 2544.
#[must_use]
pub fn rfc2544(records: &[Record], colour: bool) -> String {
    let sizes: Vec<Size> = records.iter().filter_map(size).collect();
    let Some(first) = sizes.first() else { return String::new() };
    let mut text = heading(first, colour);
    for (title, table) in [
        ("Throughput (26.1)", throughput(&sizes)),
        ("Latency at the throughput (26.2)", latency(&sizes)),
        ("Frame loss rate (26.3)", loss(&sizes)),
        ("Back-to-back frames (26.4, RFC 9004)", back_to_back(&sizes)),
        ("System recovery and reset (26.5, 26.6)", recovery(&sizes)),
    ] {
        let Some(table) = table else { continue };
        let _ = writeln!(text, "\n{}", Look::Title.paint(title, colour));
        text.push_str(&table.render(colour));
        if title.starts_with("Throughput") {
            text.push_str(&plot(&sizes, colour));
        }
    }
    text.push_str(&remarks(&sizes, colour));
    text
}

fn size(record: &Record) -> Option<Size<'_>> {
    let label = record.profile.tunables.get("size").map_or("?", String::as_str);
    Some(Size { label, record, found: record.rfc2544.as_ref()? })
}

fn heading(first: &Size, colour: bool) -> String {
    let Size { record, found, .. } = first;
    let way = if record.profile.bidirectional { "both directions at once" } else { "one direction" };
    let title = format!("RFC 2544: {}, {way}, line rate {}", record.dut.label(), bps(record.line_rate_bps));
    let mut text = Look::Title.paint(&title, colour) + "\n";
    if found.quick {
        let quick = "quick: NOT CONFORMANT with RFC 2544; all deviations are listed below";
        text += &(Look::Warning.paint(quick, colour) + "\n");
    }
    text
}

/// A table with `head` above its columns.
fn table<const N: usize>(head: [&str; N], align: [Align; N]) -> Columns {
    let mut columns = Columns::new(align);
    columns.row(Text::new("  size", Look::Faint), head.map(|name| Text::new(name, Look::Faint)));
    columns
}

fn name(size: &Size) -> Text {
    Text::plain(&format!("  {}", size.label))
}

fn throughput(sizes: &[Size]) -> Option<Columns> {
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
            Text::new(limited_by(throughput.limited_by), look),
        ];
        columns.row(name(size), cells);
    }
    any.then_some(columns)
}

/// Rate against size, with what the line carries.
fn plot(sizes: &[Size], colour: bool) -> String {
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

fn latency(sizes: &[Size]) -> Option<Columns> {
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
fn loss(sizes: &[Size]) -> Option<Columns> {
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

fn back_to_back(sizes: &[Size]) -> Option<Columns> {
    let head = ["average", "least", "most", "std dev", "implied buffer", "corrected", "repeats"];
    let mut columns = table(head, [Align::Right; 7]);
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
        return vec![Text::new("-", Look::Faint); 7];
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
    ];
    figures.iter().map(|figure| Text::plain(figure)).collect()
}

fn recovery(sizes: &[Size]) -> Option<Columns> {
    use Align::{Left, Right};
    let head = ["overload (pps)", "then (pps)", "recovery", "outage of a reset", ""];
    let mut columns = table(head, [Right, Right, Right, Right, Left]);
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
        columns.row(name(size), [overload, reduced, time, reset.as_ref().map_or_else(none, reset_cell)]);
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

fn reset_cell(reset: &Reset) -> Text {
    if reset.came_back {
        let mark = if reset.disturbed.is_some() { DISTURBED } else { "" };
        Text::plain(&format!("{}{mark}", time(reset.outage_s)))
    } else {
        Text::new(&format!("not back within {}", time(reset.watched_s)), Look::Warning)
    }
}

/// What the marks mean, what was not run and why, how the runs ended, and the deviations.
fn remarks(sizes: &[Size], colour: bool) -> String {
    let mut text = "\n".to_owned();
    let mut line = |remark: &str, look: Look| {
        let _ = writeln!(text, "{}", look.paint(remark, colour));
    };
    if sizes.iter().any(|size| is_tester_limited(size.found)) {
        line(
            &format!(
                "{TESTER} limited by the tester, which could not send this load: not a limit of the device"
            ),
            Look::Faint,
        );
    }
    if sizes.iter().any(|size| is_disturbed(size.found)) {
        line(&format!("{DISTURBED} the machine did other work meanwhile"), Look::Faint);
    }
    for size in sizes {
        if let Some(reason) = &size.record.reason {
            line(&format!("{}: {reason}", size.label), Look::Warning);
        }
        if size.found.back_to_back.as_ref().is_some_and(|found| found.bursts.is_empty()) {
            let remark =
                "bursts were not measured: the tester cannot send at line rate (try a lower --line-rate)";
            line(&format!("{}: {remark}", size.label), Look::Warning);
        }
        for (test, reason) in &size.found.not_run {
            line(&format!("{}: {test} was not run: {reason}", size.label), Look::Warning);
        }
    }
    let mut seen = BTreeSet::new();
    for deviation in sizes.iter().flat_map(|size| &size.found.deviations) {
        if seen.insert(&deviation.name) {
            line(&format!("deviation: {}: {}", deviation.name, deviation.text), Look::Faint);
        }
    }
    for note in sizes.iter().flat_map(|size| &size.record.notes) {
        if seen.insert(note) {
            line(&format!("note: {note}"), Look::Faint);
        }
    }
    text
}

fn is_tester_limited(found: &Rfc2544) -> bool {
    found.loss.iter().any(|point| point.tester_limited)
        || found.recovery.as_ref().is_some_and(|recovery| recovery.tester_limited)
}

fn is_disturbed(found: &Rfc2544) -> bool {
    let disturbed_stream = |found: &LatencyAtThroughput| found.streams.iter().any(|s| s.disturbed.is_some());
    found.loss.iter().any(|point| point.disturbed.is_some())
        || found.latency.as_ref().is_some_and(disturbed_stream)
        || found.back_to_back.as_ref().is_some_and(|bursts| bursts.disturbed > 0)
        || found.recovery.as_ref().is_some_and(|r| r.repeats.iter().any(|repeat| repeat.disturbed.is_some()))
        || found.reset.as_ref().is_some_and(|reset| reset.disturbed.is_some())
}

/// Whole frames, thousands apart.
fn whole(frames: f64) -> String {
    count(frames.round() as u64)
}

/// A time with its unit.
fn time(seconds: f64) -> String {
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
    use results::record::{Deviation, Latency, LatencyStream, RecoveryRepeat, Throughput};

    use results::fixtures::Scenario;

    use super::*;

    /// A device of 700 kpps on a line of 1 Gb/s.
    fn record(size: &'static str, frame_size: f64) -> Record {
        let mut record =
            Scenario { frame_size, line_rate_bps: 1e9, traffic: size, ..Scenario::default() }.record();
        let theoretical_pps = wire::size::l1_bps_to_pps(1e9, frame_size);
        let pps = theoretical_pps.min(700_000.0);
        let loss = |load_percent: f64| LossPoint {
            load_percent,
            intended_pps: theoretical_pps * load_percent / 100.0,
            offered_pps: theoretical_pps * load_percent / 100.0,
            loss_ratio: (1.0 - 70_000_000.0 / (theoretical_pps * load_percent)).max(0.0),
            tester_limited: load_percent > 95.0 && frame_size < 100.0,
            disturbed: None,
        };
        let latency =
            Latency { min_ns: 9_000, mean_ns: 14_321.0, p50_ns: 13_000, p99_ns: 41_000, max_ns: 1_200_000 };
        let found = Rfc2544 {
            quick: true,
            deviations: vec![Deviation {
                name: "short-trials".into(),
                text: "each trial: 1 s, not 60 s".into(),
            }],
            theoretical_pps,
            throughput: Some(Throughput {
                pps,
                upper_pps: None,
                limited_by: if pps < theoretical_pps { LimitedBy::Dut } else { LimitedBy::LineRate },
                irregular: None,
            }),
            latency: Some(LatencyAtThroughput {
                load_pps: pps,
                stream_s: 1.0,
                mean_ns: vec![14_321.0],
                streams: vec![LatencyStream { directions: vec![Some(latency)], lost: 0, disturbed: None }],
            }),
            loss: [100.0, 50.0, 40.0].map(loss).into(),
            back_to_back: (pps < theoretical_pps).then(|| BackToBack {
                bursts: vec![18_800, 18_900],
                longest_tried: 744_047,
                average: 18_850.0,
                min: 18_800,
                max: 18_900,
                standard_deviation: 70.7,
                implied_buffer_s: 0.012_67,
                corrected_buffer_s: 0.006_71,
                ..BackToBack::default()
            }),
            recovery: Some(Recovery {
                overload_pps: pps * 1.1,
                overload_s: 2.0,
                reduced_pps: pps * 0.55,
                watched_s: 1.0,
                tester_limited: false,
                repeats: vec![RecoveryRepeat {
                    recovery_s: Some(0.35),
                    resolution_s: 0.01,
                    overload_loss_ratio: 0.09,
                    lost_after: 12,
                    disturbed: None,
                }],
                average_s: Some(0.35),
            }),
            reset: (frame_size < 100.0).then_some(Reset {
                load_pps: pps,
                lost: 280_000,
                outage_s: 0.4,
                watched_s: 2.0,
                came_back: true,
                disturbed: None,
            }),
            not_run: if pps < theoretical_pps {
                [].into()
            } else {
                [("back-to-back".into(), "the throughput is the line rate".into())].into()
            },
        };
        record.rfc2544 = Some(found);
        record
    }

    #[test]
    fn all_tests_of_all_sizes_stand_in_tables() {
        let text = rfc2544(&[record("64", 64.0), record("512", 512.0)], false);
        insta::assert_snapshot!(text, @r"
        RFC 2544: linux-router, one direction, line rate 1.00 Gbps
        quick: NOT CONFORMANT with RFC 2544; all deviations are listed below

        Throughput (26.1)
          size  theoretical (pps)  throughput (pps)   of line           L2  limited by
          64            1,488,095           700,000   47.04 %  358.40 Mbps  DUT
          512             234,962           234,962  100.00 %  962.41 Mbps  line rate

          64  ███████████████████████                         ┊
          512 ████████┊
              0 to 1.49 Mpps:  █ throughput  ┊ theoretical maximum

        Latency at the throughput (26.2)
          size  load (pps)     mean   least  worst p99     most  streams  lost
          64       700,000  14.3 µs  9.0 µs    41.0 µs  1.20 ms  1 × 1 s     0
          512      234,962  14.3 µs  9.0 µs    41.0 µs  1.20 ms  1 × 1 s     0

        Frame loss rate (26.3)
          load          64      512
          100 %  52.960 %*  0.000 %
          50 %     5.920 %  0.000 %
          40 %     0.000 %  0.000 %

        Back-to-back frames (26.4, RFC 9004)
          size  average   least    most  std dev  implied buffer  corrected  repeats
          64     18,850  18,800  18,900     70.7        12.67 ms    6.71 ms        2

        System recovery and reset (26.5, 26.6)
          size  overload (pps)  then (pps)   recovery  outage of a reset
          64           770,000     385,000  350.00 ms          400.00 ms
          512          258,459     129,229  350.00 ms                  -

        * limited by the tester, which could not send this load: not a limit of the device
        512: back-to-back was not run: the throughput is the line rate
        deviation: short-trials: each trial: 1 s, not 60 s
        note: XDP runs in generic mode on no port.
        ");
    }

    #[test]
    fn what_was_not_measured_is_not_shown_as_a_figure() {
        let mut limited = record("64", 64.0);
        if let Some(found) = &mut limited.rfc2544 {
            *found = Rfc2544 {
                theoretical_pps: 1_488_095.0,
                back_to_back: Some(BackToBack { tester_limited: true, ..BackToBack::default() }),
                ..Rfc2544::default()
            };
        }
        limited.notes.clear();
        insta::assert_snapshot!(rfc2544(&[limited], false), @r"
        RFC 2544: linux-router, one direction, line rate 1.00 Gbps

        Back-to-back frames (26.4, RFC 9004)
          size  average  least  most  std dev  implied buffer  corrected  repeats
          64          -      -     -        -               -          -        -

        64: bursts were not measured: the tester cannot send at line rate (try a lower --line-rate)
        ");
    }

    #[test]
    fn other_records_are_left_out() {
        assert_eq!(rfc2544(&[Scenario::default().record()], false), "");
        assert_eq!(rfc2544(&[], true), "");
    }

    #[test]
    fn times_have_units() {
        assert_eq!([14.3e-6, 1.5e-3, 1.0, 12.345].map(time), ["14.3 µs", "1.50 ms", "1 s", "12.35 s"]);
    }
}
