//! What a soak found: its findings enter; a table of the directions and a list of what went wrong
//! leave.

use std::fmt::Write as _;

use results::record::{
    Counted, Hiccup, LatencyDrift, LossEvent, LossPattern, LossPeriod, Measure, Soak, SoakDirection,
    SoakStall,
};
use wire::human::{count, pps};

use super::Look;
use super::columns::{Align, Columns, Text};
use crate::figures::plain_duration as duration;
use crate::outcome::loss_pattern;

/// Events of a kind that are listed; all are in the record.
const LISTED: usize = 5;

/// A row for each direction, then what went wrong.
pub fn table(soak: &Soak, colour: bool) -> String {
    let load = format!(
        "  {} in each direction for {}, counted every {}",
        pps(soak.load_pps),
        duration(soak.duration_s * 1e9),
        duration(soak.interval_s * 1e9)
    );
    let mut text = format!("{}\n", Look::Faint.paint(&load, colour));
    let mut columns = Columns::new([Align::Right; 4].into_iter().chain([Align::Left, Align::Left]));
    let head = ["offered", "lost", "lossy intervals", "stalls", "losses", "latency"];
    columns.row(Text::plain(""), head.map(|name| Text::new(name, Look::Faint)));
    for direction in &soak.directions {
        columns.row(Text::plain(&format!("  {}", direction.name)), figures(direction));
    }
    text.push_str(&columns.render(colour));
    for (event, look) in events(soak) {
        let _ = writeln!(text, "  {}", look.paint(&event, colour));
    }
    text
}

fn figures(direction: &SoakDirection) -> [Text; 6] {
    let alarm = |wrong: bool| if wrong { Look::Warning } else { Look::Plain };
    let intervals =
        format!("{} of {}", count(direction.lossy_intervals as u64), count(direction.intervals as u64));
    let drifts = direction.drift.is_some_and(|drift| drift.significant);
    [
        Text::plain(&count(direction.offered)),
        Text::new(&count(direction.lost), alarm(direction.lost > direction.lost_disturbed)),
        Text::new(&intervals, alarm(direction.lossy_intervals > 0)),
        Text::new(&count(direction.stall_count as u64), alarm(direction.stall_count > 0)),
        Text::new(loss_pattern(direction.pattern), alarm(direction.pattern != LossPattern::None)),
        Text::new(&direction.drift.as_ref().map_or_else(|| "-".to_owned(), latency), alarm(drifts)),
    ]
}

fn latency(drift: &LatencyDrift) -> String {
    let (from, to) = (duration(drift.from_ns), duration(drift.to_ns));
    match drift.significant {
        false => format!("{from}, no drift"),
        true => format!("{from} to {to}"),
    }
}

/// What went wrong, in sentences, the worst first.
fn events(soak: &Soak) -> Vec<(String, Look)> {
    let mut events = Vec::new();
    for direction in &soak.directions {
        let name = &direction.name;
        let stalls = direction.stalls.iter().map(|stall| format!("{name} {}", stalled(stall)));
        list(&mut events, stalls, direction.stall_count, "stalls", Look::Warning);
        events
            .extend(direction.period.map(|period| (format!("{name} {}", periodic(&period)), Look::Warning)));
        let single = || direction.losses.iter().filter(|loss| !loss.on_period && !is_stall(direction, loss));
        let losses = single().map(|loss| format!("{name} {}", lost(loss)));
        // Of those beyond the list's end in the record it is not known what they are.
        let all = single().count() + direction.loss_count.saturating_sub(direction.losses.len());
        let listed = if direction.losses.is_empty() { 0 } else { all };
        list(&mut events, losses, listed, "losses", Look::Warning);
        let drift = direction.drift.filter(|drift| drift.significant);
        events.extend(drift.map(|drift| (format!("{name} {}", drifted(&drift)), Look::Warning)));
    }
    let hiccups = soak.hiccups.iter().map(held_up);
    list(&mut events, hiccups, soak.hiccup_count, "hiccups", Look::Faint);
    events
}

/// The first of some events, and how many more there are.
fn list(
    into: &mut Vec<(String, Look)>,
    events: impl Iterator<Item = String>,
    all: usize,
    kind: &str,
    look: Look,
) {
    into.extend(events.take(LISTED).map(|event| (event, look)));
    if all > LISTED {
        into.push((format!("and {} more {kind}: see the record", count((all - LISTED) as u64)), look));
    }
}

fn is_stall(direction: &SoakDirection, loss: &LossEvent) -> bool {
    let within = |stall: &SoakStall| (loss.from_s..loss.until_s).contains(&stall.from_s);
    direction.stalls.iter().any(within)
}

fn stalled(stall: &SoakStall) -> String {
    let length = match stall.until_s {
        Some(until) => format!("for {:.2} s", until - stall.from_s),
        None => "until the end".to_owned(),
    };
    let blame = if stall.disturbed { "; the tester's machine was disturbed" } else { "" };
    format!(
        "stalled at {:.2} s after {} frames {length}: {}{blame}",
        stall.from_s,
        count(stall.after_frames),
        counted(&stall.counters.during)
    )
}

fn lost(loss: &LossEvent) -> String {
    format!("lost frames at {:.2} s: {}", loss.from_s, counted(&loss.counters.during))
}

/// Counters in words.
fn counted(during: &Counted) -> String {
    let tester = format!("{} offered, {} came back", count(during.offered), count(during.forwarded));
    match during.device {
        None => tester,
        Some(device) => {
            let (received, forwarded) = (count(device.received), count(device.forwarded));
            format!("{tester}, the device received {received} and sent on {forwarded}")
        }
    }
}

fn periodic(period: &LossPeriod) -> String {
    let (frames, seconds) = (count(period.frames.round() as u64), period.period_s);
    let distance = match period.measure {
        Measure::Time => format!("{seconds:.3} s ({frames} frames)"),
        Measure::Frames => format!("{frames} frames ({} at this load)", duration(seconds * 1e9)),
    };
    format!(
        "loses frames every {distance}, first at {:.2} s: {} of {} losses fall on that, {:.0} % of the periods have one; the chance of that at random is {:.0e}",
        period.phase_s,
        period.on_period,
        period.losses,
        period.occupied * 100.0,
        period.chance
    )
}

fn drifted(drift: &LatencyDrift) -> String {
    let an_hour = |slope: f64| {
        let sign = if slope < 0.0 { "-" } else { "" };
        format!("{sign}{}", duration(slope.abs() * 3600.0))
    };
    format!(
        "latency drifts from {} to {}: {} an hour (99 % sure: {} to {})",
        duration(drift.from_ns),
        duration(drift.to_ns),
        an_hour(drift.slope),
        an_hour(drift.slope_lower),
        an_hour(drift.slope_upper)
    )
}

fn held_up(hiccup: &Hiccup) -> String {
    let cause = hiccup.cause.as_ref().map_or_else(String::new, |cause| format!(" ({cause})"));
    format!(
        "the tester was held up at {:.2} s for {:.2} s: {} frames unsent, {} lost{cause}",
        hiccup.from_s,
        hiccup.until_s - hiccup.from_s,
        count(hiccup.unsent),
        count(hiccup.lost)
    )
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;

    #[test]
    fn all_that_went_wrong_is_told() {
        let record = Scenario::default().eventful_soak();
        insta::assert_snapshot!(table(record.finding.soak().unwrap(), false));
    }

    #[test]
    fn a_device_that_counts_frames_has_its_period_in_frames() {
        let record = Scenario::default().eventful_soak();
        let mut period = record.finding.soak().unwrap().directions[0].period.unwrap();
        assert!(periodic(&period).starts_with("loses frames every 20.000 s (20,000 frames), "));
        period.measure = Measure::Frames;
        assert!(periodic(&period).starts_with("loses frames every 20,000 frames (20.0 s at this load), "));
    }

    #[test]
    fn a_sound_device_has_a_row_for_each_direction_and_no_more() {
        let record = Scenario { bidirectional: true, ..Scenario::default() }.sound_soak();
        insta::assert_snapshot!(table(record.finding.soak().unwrap(), false));
    }

    #[test]
    fn long_lists_are_cut() {
        let mut soak = Scenario::default().eventful_soak().finding.soak().unwrap().clone();
        let direction = &mut soak.directions[0];
        direction.period = None;
        direction.losses.iter_mut().for_each(|loss| loss.on_period = false);
        direction.stalls = vec![direction.stalls[0]; 9];
        direction.stall_count = 1_234;
        let text = table(&soak, false);
        assert!(text.contains("and 1,229 more stalls") && text.contains("and 26 more losses"), "{text}");
        soak.directions[0].losses.clear();
        assert!(!table(&soak, false).contains("more losses"));
    }
}
