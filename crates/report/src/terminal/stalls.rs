//! What a stall search found: its findings enter; a strip of the loads, a table of the ranges and the stalls leave.

use std::fmt::Write as _;

use results::record::{StallRange, StallRate, StallSearch, StallVerdict};
use wire::human::pps;

use super::Look;
use super::columns::{Align, Columns, Text};
use crate::figures::plain_duration;
use crate::stalls::{begins, chance, ends, sentence, stalls, strip, tried, verdict};

/// Characters of the strip.
const WIDTH: usize = 48;
/// Stalls that are listed; all are in the record.
const LISTED: usize = 5;

/// All of it.
pub fn table(found: &StallSearch, colour: bool) -> String {
    let mut text = format!("  {}\n", Look::Faint.paint(&tried(found), colour));
    let cells = strip(found, WIDTH);
    let runs = cells.chunk_by(|one, next| one == next);
    let drawn: String = runs.map(|run| look(run[0]).paint(&sign(run[0]).repeat(run.len()), colour)).collect();
    let signs = [StallVerdict::Forwards, StallVerdict::Stalls, StallVerdict::Unknown];
    let key = signs.map(|kind| format!("{} {}", sign(kind), verdict(kind))).join("  ");
    let _ = writeln!(
        text,
        "  {} {drawn} {}   {}",
        pps(found.lowest_pps),
        pps(found.highest_pps),
        Look::Faint.paint(&key, colour)
    );
    text.push_str(&ranges(found).render(colour));
    let all = stalls(found);
    for (rate, seen) in all.iter().take(LISTED) {
        let _ = writeln!(text, "  {}", Look::Warning.paint(&sentence(rate, seen), colour));
    }
    if all.len() > LISTED {
        let more = format!("and {} more stalls: see the record", all.len() - LISTED);
        let _ = writeln!(text, "  {}", Look::Warning.paint(&more, colour));
    }
    for rate in found.rates.iter().filter(|rate| rate.verdict == StallVerdict::Unknown) {
        let _ = writeln!(text, "  {}", Look::Faint.paint(&unknown(rate), colour));
    }
    text
}

fn ranges(found: &StallSearch) -> Columns {
    let mut columns = Columns::new([Align::Right; 5]);
    let trial = plain_duration(found.hold_s * 1e9);
    let chances = format!("chance of a stall in {trial} ({} % confidence)", found.confidence_percent);
    let head = ["from", "to", "trials", "stalled", &chances];
    columns.row(Text::plain(""), head.map(|name| Text::new(name, Look::Faint)));
    for range in &found.ranges {
        let name = Text::new(&format!("  {}", verdict(range.verdict)), look(range.verdict));
        columns.row(name, figures(range).map(|figure| Text::plain(&figure)));
    }
    columns
}

fn figures(range: &StallRange) -> [String; 5] {
    [begins(range), ends(range), range.trials.to_string(), range.stalled.to_string(), chance(range)]
}

fn unknown(rate: &StallRate) -> String {
    let why = rate.untold.as_ref().map_or("not tried", |untold| untold.reason.as_str());
    format!("{}: unknown: {why}", pps(rate.pps))
}

fn sign(verdict: StallVerdict) -> &'static str {
    match verdict {
        StallVerdict::Forwards => "░",
        StallVerdict::Stalls => "█",
        StallVerdict::Unknown => "·",
    }
}

fn look(verdict: StallVerdict) -> Look {
    match verdict {
        StallVerdict::Forwards => Look::Forwarded,
        StallVerdict::Stalls => Look::Warning,
        StallVerdict::Unknown => Look::Faint,
    }
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;

    #[test]
    fn ranges_stalls_and_what_is_unknown_are_told() {
        let record = Scenario::default().stall_search();
        insta::assert_snapshot!(table(record.finding.stall_search().unwrap(), false));
    }
}
