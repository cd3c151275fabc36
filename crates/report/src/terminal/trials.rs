//! A small plot of a search: a record enters, a few lines leave: each trial as a sign at its time
//! and load, and the intervals at the right.

use std::fmt::Write as _;

use results::Record;
use results::record::{Trial, TrialVerdict};
use wire::human::pps;

use super::Look;

/// Trials further from the intervals than this, in widths of all intervals, stand at the edge.
const AROUND: f64 = 4.0;
/// The least width of the intervals that is reckoned with.
const NARROW: f64 = 0.005;

/// The loads tried over time in `width` by `height` characters and a line below; empty if no
/// trial was made yet or there is no room.
pub fn plot(record: &Record, width: usize, height: usize, colour: bool) -> String {
    let (low, high) = match loads(record) {
        // Of a single load the line is in the middle.
        (low, high) if low == high => (low * 0.95, high * 1.05),
        range => range,
    };
    let until = record.finding.trials().last().map_or(0.0, |trial| trial.at_s + trial.duration_s);
    let labels = [pps(high), pps(low)];
    let margin = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0) + 1;
    let names = record.finding.results().keys().map(|goal| goal.chars().count() + 3).max().unwrap_or(0);
    let Some(columns) = width.checked_sub(margin + names).filter(|columns| *columns > 0) else {
        return String::new();
    };
    if height == 0 || !until.is_finite() || until <= 0.0 || high <= low {
        return String::new();
    }

    let row_of = |load: f64| {
        let share = ((high - load) / (high - low)).clamp(0.0, 1.0);
        (share * (height - 1) as f64).round() as usize
    };
    let mut tiles: Vec<Vec<Option<Sign>>> = vec![vec![None; columns]; height];
    for trial in record.finding.trials() {
        let middle = (trial.at_s + trial.duration_s / 2.0) / until;
        let column = ((middle * columns as f64) as usize).min(columns - 1);
        if let Some(tile) = tiles.get_mut(row_of(trial.load_pps)).and_then(|row| row.get_mut(column)) {
            // Of trials that share a place, the one that proves most against the device shows.
            *tile = Some(tile.map_or(Sign::of(trial), |before| before.max(Sign::of(trial))));
        }
    }

    let directions = record.directions.len().max(1) as f64;
    let mut text = String::new();
    for (at, row) in tiles.iter().enumerate() {
        let label = match at {
            0 => labels[0].as_str(),
            at if at + 1 == height => labels[1].as_str(),
            _ => "",
        };
        let signs: String =
            row.iter().map(|sign| sign.map_or(" ".to_owned(), |sign| sign.paint(colour))).collect();
        let found =
            record.finding.results().iter().filter(|(_, result)| row_of(result.lower_pps / directions) == at);
        let names: Vec<_> = found.map(|(goal, _)| goal.as_str()).collect();
        let name = if names.is_empty() { String::new() } else { format!("◂ {}", names.join(", ")) };
        let line =
            format!("{label:>width$} {signs} {}", Look::Title.paint(&name, colour), width = margin - 1);
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let seconds = format!("{until:.0} s");
    let legend = legend(record);
    let gap = columns.saturating_sub(legend.chars().count() + seconds.len()).max(2);
    let _ = writeln!(
        text,
        "{:margin$}{}",
        "",
        Look::Faint.paint(&format!("{legend}{:gap$}{seconds}", ""), colour)
    );
    text
}

/// What a trial proved, from the least to the most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    Nothing,
    PassesAll,
    PassesSome,
    PassesNone,
}

impl Sign {
    const ALL: [Self; 4] = [Self::PassesAll, Self::PassesSome, Self::PassesNone, Self::Nothing];

    fn of(trial: &Trial) -> Self {
        let passed = trial.verdicts.values().filter(|verdict| **verdict == TrialVerdict::LowLoss).count();
        let failed = trial.verdicts.values().filter(|verdict| **verdict == TrialVerdict::HighLoss).count();
        match (passed, failed) {
            (0, 0) => Self::Nothing,
            (0, _) => Self::PassesNone,
            (_, 0) => Self::PassesAll,
            _ => Self::PassesSome,
        }
    }

    fn letter(self) -> &'static str {
        match self {
            Self::Nothing => "?",
            Self::PassesAll => "●",
            Self::PassesSome => "◐",
            Self::PassesNone => "○",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Nothing => "proves nothing",
            Self::PassesAll => "passed",
            Self::PassesSome => "some goals",
            Self::PassesNone => "failed",
        }
    }

    fn paint(self, colour: bool) -> String {
        let look = match self {
            Self::Nothing => Look::Faint,
            Self::PassesAll | Self::PassesSome => Look::Forwarded,
            Self::PassesNone => Look::Warning,
        };
        look.paint(self.letter(), colour)
    }
}

/// The signs that occur.
fn legend(record: &Record) -> String {
    let occurs = |sign: &Sign| record.finding.trials().iter().any(|trial| Sign::of(trial) == *sign);
    let signs = Sign::ALL.into_iter().filter(occurs);
    let texts: Vec<_> = signs.map(|sign| format!("{} {}", sign.letter(), sign.meaning())).collect();
    format!("0 s  {}", texts.join("  "))
}

/// The loads to show, of each direction: the intervals and the trials near them; all trials if
/// there are no intervals.
fn loads(record: &Record) -> (f64, f64) {
    let directions = record.directions.len().max(1) as f64;
    let bounds =
        record.finding.results().values().flat_map(|result| [Some(result.lower_pps), result.upper_pps]);
    let bounds: Vec<_> = bounds.flatten().filter(|pps| *pps > 0.0).map(|pps| pps / directions).collect();
    let ends = |loads: &mut dyn Iterator<Item = f64>| {
        loads.fold((f64::INFINITY, 0.0_f64), |(low, high), load| (low.min(load), high.max(load)))
    };
    let trials = || record.finding.trials().iter().map(|trial| trial.load_pps);
    if bounds.is_empty() {
        return ends(&mut trials());
    }
    let (low, high) = ends(&mut bounds.iter().copied());
    let around = 1.0 + (high / low - 1.0).max(NARROW) * AROUND;
    let near = trials().filter(|load| (low / around..=high * around).contains(load));
    ends(&mut bounds.iter().copied().chain(near))
}
