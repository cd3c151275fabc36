//! How far a bench is: its runs enter as they begin, go on and end; a live line with the curve of the
//! run that goes on, and a line for each run, leave, for people.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use results::Record;

use testbed::progress::colour;

/// How often the live line is drawn; seldom, since cores are being measured.
const TICK: Duration = Duration::from_secs(1);

/// The curve's size in characters.
const WIDTH: usize = 72;
const HEIGHT: usize = 8;

/// A line that shows which run goes on and how long the rest takes. Without a terminal only the
/// lines of finished runs are written.
pub struct View {
    bar: ProgressBar,
    runs: usize,
    ended: usize,
    /// What stands on the live line.
    message: String,
}

impl View {
    /// A view of so many runs.
    pub fn new(runs: usize) -> Self {
        let bar = ProgressBar::new(runs as u64);
        let template = "{bar:24.cyan/dim} {pos}/{len} {prefix:.bold} {elapsed:>4}, {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.enable_steady_tick(TICK);
        Self { bar, runs, ended: 0, message: String::new() }
    }

    /// The run called `name` begins; it and all after it take about `left`.
    pub fn begin(&mut self, name: &str, left: Duration) {
        self.message = format!("about {} left", rounded(left));
        self.bar.set_prefix(name.to_owned());
        self.bar.set_message(self.message.clone());
    }

    /// The run that goes on has got as far as `record` tells, which is asked only where that is seen.
    pub fn watch(&self, record: impl FnOnce() -> Option<Record>) {
        if self.bar.is_hidden() {
            return;
        }
        if let Some(record) = record() {
            let curve = report::terminal::plot(&record, WIDTH, HEIGHT, colour());
            self.bar.set_message(format!("{}\n{}", self.message, curve.trim_end()));
        }
    }

    /// The run called `name` ended; `what` came of it.
    pub fn end(&mut self, name: &str, what: &str) {
        self.ended += 1;
        let width = self.runs.to_string().len();
        self.bar.set_position(self.ended as u64);
        self.say(&format!("[{:width$}/{}] {name}: {what}", self.ended, self.runs));
    }

    /// Writes a line above the live one.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// Removes the live line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A duration to the second, or to the minute where it is hours.
pub fn rounded(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round();
    match seconds {
        few if few < 60.0 => format!("{few} s"),
        some if some < 3600.0 => format!("{} min {:02} s", (some / 60.0).floor(), some % 60.0),
        many => format!("{} h {:02} min", (many / 3600.0).floor(), (many % 3600.0 / 60.0).floor()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        let shown = |seconds: f64| rounded(Duration::from_secs_f64(seconds));
        assert_eq!(shown(0.4), "0 s");
        assert_eq!(shown(59.6), "1 min 00 s");
        assert_eq!(shown(432.0), "7 min 12 s");
        assert_eq!(shown(7_499.0), "2 h 04 min");
    }
}
