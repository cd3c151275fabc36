//! Progress while a run goes on: phases and samples enter, a line on the terminal leaves.
//!
//! Everything for people goes to standard error, so that standard output stays for machines.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use results::record::{GoalResult, Phase, Sample};
use wire::human;

/// One line that shows where a run is. Without a terminal it draws nothing.
pub struct Progress {
    bar: ProgressBar,
    done: Duration,
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
        Self { bar, done: Duration::ZERO, found: String::new() }
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
        self.bar.set_message(describe(sample) + &found);
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
