//! Progress while a run goes on: phases and samples enter, a line on the terminal leaves; elsewhere, as in a file, a line
//! a minute.
//!
//! Everything for people goes to standard error, so that standard output stays for machines.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use results::record::{GoalResult, Phase, Sample};
use wire::human;

/// Without a terminal, how long a run goes on until a line says how far it is.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// One line that shows where a run is. Without a terminal it draws nothing, and says a line a minute.
pub struct Progress {
    bar: ProgressBar,
    done: Duration,
    /// The lines, without a terminal.
    lines: Option<Lines>,
    /// What a search found so far.
    found: String,
}

impl Progress {
    /// A line titled `title` for a run that takes about `planned`.
    pub fn new(title: &str, planned: Duration) -> Self {
        let bar = ProgressBar::new(planned.as_millis() as u64);
        let template = "{prefix:.bold} {bar:24.cyan/dim} {elapsed:>4} of {duration:4} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.set_prefix(title.to_owned());
        let lines = (!std::io::stderr().is_terminal()).then(|| Lines::new(title, planned));
        if let Some(first) = lines.as_ref().and_then(Lines::first) {
            eprintln!("{first}");
        }
        Self { bar, done: Duration::ZERO, lines, found: String::new() }
    }

    /// A phase begins.
    pub fn phase(&mut self, phase: Phase) {
        self.bar.set_message(phase_name(phase).to_owned());
    }

    /// The load is off, and the last frames return.
    pub fn drain(&mut self) {
        self.bar.set_message("drain");
    }

    /// A sample was taken.
    pub fn sample(&mut self, sample: &Sample) {
        self.done += Duration::from_secs_f64(sample.duration_s.max(0.0));
        self.bar.set_position(self.done.as_millis() as u64);
        let found = if self.found.is_empty() { String::new() } else { format!("; {}", self.found) };
        let message = describe(sample) + &found;
        if let Some(line) = self.lines.as_mut().and_then(|lines| lines.next(self.done, &message)) {
            eprintln!("{line}");
        }
        self.bar.set_message(message);
    }

    /// A trial of a search ended; this is what is found so far.
    pub fn results(&mut self, results: &BTreeMap<String, GoalResult>) {
        let intervals: Vec<_> = results.iter().map(|(goal, result)| interval(goal, result)).collect();
        self.found = intervals.join(", ");
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// What is said of a run that nobody watches on a terminal.
struct Lines {
    title: String,
    planned: Duration,
    said: Duration,
}

impl Lines {
    fn new(title: &str, planned: Duration) -> Self {
        Self { title: title.to_owned(), planned, said: Duration::ZERO }
    }

    /// How long it will take, if that is long.
    fn first(&self) -> Option<String> {
        let Self { title, planned, .. } = self;
        (*planned >= LINE_EVERY).then(|| format!("{title}: takes about {} s", planned.as_secs()))
    }

    /// How far it is, once a minute.
    fn next(&mut self, done: Duration, message: &str) -> Option<String> {
        if done < self.said + LINE_EVERY {
            return None;
        }
        self.said = done;
        Some(format!("{}: {} of {} s, {message}", self.title, done.as_secs(), self.planned.as_secs()))
    }
}

/// A sample in a few words, directions added up.
fn describe(sample: &Sample) -> String {
    let sum = |field: fn(&results::record::DirectionSample) -> f64| -> f64 {
        sample.directions.iter().map(field).sum()
    };
    let (offered, forwarded) =
        (sum(|direction| direction.offered_pps), sum(|direction| direction.forwarded_pps));
    let lost = if offered > 0.0 { (offered - forwarded).max(0.0) / offered * 100.0 } else { 0.0 };
    let core = sample.dut_core_busy.map_or(String::new(), |busy| format!(", DUT core {:.0} %", busy * 100.0));
    format!(
        "{}: offered {}, forwarded {}, lost {lost:.1} %{core}",
        phase_name(sample.phase),
        human::pps(offered),
        human::pps(forwarded),
    )
}

/// The bounds of a goal in a few words.
fn interval(goal: &str, result: &GoalResult) -> String {
    let upper = result.upper_pps.map_or_else(|| "?".to_owned(), human::pps);
    format!("{goal} {} to {upper}", human::pps(result.lower_pps))
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::WarmUp => "warm-up",
        Phase::Ramp => "ramp",
        Phase::Hold => "hold",
        Phase::Trial => "trial",
    }
}

/// Whether people read standard error on a terminal that shows colours.
pub fn colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_says_a_line_a_minute_and_a_short_one_none() {
        let second = Duration::from_secs(1);
        let mut short = Lines::new("a ramp", 40 * second);
        assert!(short.first().is_none() && short.next(40 * second, "hold").is_none());
        let mut long = Lines::new("a stall search", 150 * second);
        assert_eq!(long.first().unwrap(), "a stall search: takes about 150 s");
        let told: Vec<String> = (1..=150).filter_map(|at| long.next(at * second, "hold")).collect();
        assert_eq!(told, ["a stall search: 60 of 150 s, hold", "a stall search: 120 of 150 s, hold"]);
    }
}
