//! What the tests of RFC 2544 found, in the formats that it asks for (section 26): the records of
//! one device enter, one for each frame size; tables, a plot and the deviations leave.

mod tables;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use results::Record;
use results::record::{LatencyAtThroughput, Rfc2544};
use wire::human::bps;

use super::Look;

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
        ("Throughput (26.1)", tables::throughput(&sizes)),
        ("As bandwidth", tables::links(&sizes)),
        ("Latency at the throughput (26.2)", tables::latency(&sizes)),
        ("Frame loss rate (26.3)", tables::loss(&sizes)),
        ("Back-to-back frames (26.4, RFC 9004)", tables::back_to_back(&sizes)),
        ("System recovery and reset (26.5, 26.6, RFC 6201)", tables::recovery(&sizes)),
    ] {
        let Some(table) = table else { continue };
        let _ = writeln!(text, "\n{}", Look::Title.paint(title, colour));
        text.push_str(&table.render(colour));
        if title.starts_with("Throughput") {
            text.push_str(&tables::plot(&sizes, colour));
        }
    }
    text.push_str(&remarks(&sizes, colour));
    text
}

fn size(record: &Record) -> Option<Size<'_>> {
    let label = record.profile.tunables.get("size").map_or("?", String::as_str);
    Some(Size { label, record, found: record.finding.rfc2544()? })
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

#[cfg(test)]
mod tests {
    use results::record::{
        BackToBack, Deviation, Finding, Latency, LatencyStream, LimitedBy, LossPoint, Recovery,
        RecoveryRepeat, Reset, Throughput,
    };

    use results::fixtures::Scenario;

    use super::*;

    /// A device of 700 kpps on a line of 1 Gb/s.
    fn record(size: &'static str, frame_size: f64) -> Record {
        let mut record =
            Scenario { frame_size, line_rate_bps: 1e9, traffic: size, ..Scenario::default() }.record();
        record.strategy.name = "rfc2544".to_owned();
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
                back_s: Some(0.5),
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
        record.finding = Finding::Rfc2544(Some(Box::new(found)), None);
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

        As bandwidth
          size         rate      as IMIX  line rate at 64 B  at its own size  with IMIX
          64    700.00 kpps    1.98 Gbps           100 Mbps         100 Mbps     1 Gbps
          512   234.96 kpps  666.04 Mbps           100 Mbps           1 Gbps   100 Mbps

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
          size  average   least    most  std dev  implied buffer  corrected  repeats  tried up to
          64     18,850  18,800  18,900     70.7        12.67 ms    6.71 ms        2      744,047

        System recovery and reset (26.5, 26.6, RFC 6201)
          size  overload (pps)  then (pps)   recovery  outage of a reset  back after
          64           770,000     385,000  350.00 ms          400.00 ms   500.00 ms
          512          258,459     129,229  350.00 ms                  -           -

        * limited by the tester, which could not send this load: not a limit of the device
        512: back-to-back was not run: the throughput is the line rate
        deviation: short-trials: each trial: 1 s, not 60 s
        note: XDP runs in generic mode on no port.
        ");
    }

    #[test]
    fn what_was_not_measured_is_not_shown_as_a_figure() {
        let mut limited = record("64", 64.0);
        if let Finding::Rfc2544(Some(found), _) = &mut limited.finding {
            **found = Rfc2544 {
                theoretical_pps: 1_488_095.0,
                back_to_back: Some(BackToBack { tester_limited: true, ..BackToBack::default() }),
                ..Rfc2544::default()
            };
        }
        limited.notes.clear();
        insta::assert_snapshot!(rfc2544(&[limited], false), @r"
        RFC 2544: linux-router, one direction, line rate 1.00 Gbps

        Back-to-back frames (26.4, RFC 9004)
          size  average  least  most  std dev  implied buffer  corrected  repeats  tried up to
          64          -      -     -        -               -          -        -            -

        64: bursts were not measured: the tester cannot send at line rate (try a lower --line-rate)
        ");
    }

    #[test]
    fn other_records_are_left_out() {
        assert_eq!(rfc2544(&[Scenario::default().record()], false), "");
        assert_eq!(rfc2544(&[], true), "");
    }
}
