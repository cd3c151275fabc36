//! `linerate search`: the highest loads without loss (NDR) and with little (PDR), each as an
//! interval.

use std::time::Duration;

use anyhow::Result;
use trial::{Goal, Search, Strategy};
use wire::rate::Rate;

use crate::args::{self, Measurement};
use crate::line::Line;
use crate::run::Plan;

/// How long one sample of the warm-up is.
const STEP: Duration = Duration::from_millis(100);

#[derive(clap::Args)]
#[command(next_help_heading = "Measurement")]
#[command(mut_arg("warm_up_duration", |arg| arg.default_value("1s")))]
#[command(mut_arg("drain", |arg| arg.default_value("200ms").help("How long to wait for the last frames of each trial")))]
pub struct Args {
    /// A goal to search for; repeat it for more. NAME[:loss=0.5%,exceed=50%,width=0.5%,initial=250ms,
    /// final=500ms,sum=3s,queue=256]: a trial may lose the share `loss`, and a load passes if at most the
    /// share `exceed` of its trials' time lost more; docs/methodology.md explains the others [default: ndr
    /// without loss, and pdr with 0.5%]
    #[arg(long = "goal", value_name = "GOAL", value_parser = goal)]
    goals: Vec<Goal>,
    /// The lowest load that may be tried
    #[arg(long, value_name = "RATE", default_value = "1kpps", value_parser = args::rate)]
    min_rate: Rate,
    /// The highest load that may be tried
    #[arg(long, value_name = "RATE", default_value = "100%", value_parser = args::rate)]
    max_rate: Rate,
    /// How long the search takes at most
    #[arg(long, value_name = "TIME", default_value = "40s", value_parser = args::duration)]
    time_limit: Duration,
    #[command(flatten)]
    measurement: Measurement,
}

impl Plan for Args {
    fn strategy(&self, line: &Line) -> Result<Box<dyn Strategy>> {
        Ok(Box::new(Search {
            conditions: self.measurement.conditions(line, STEP, 0.0)?,
            goals: if self.goals.is_empty() { vec![Goal::ndr(), Goal::pdr()] } else { self.goals.clone() },
            min_pps: line.pps(self.min_rate)?,
            max_pps: line.pps(self.max_rate)?,
            expected: None,
            max_duration: self.time_limit,
        }))
    }
}

/// Reads a goal such as `pdr` or `pdr1:loss=1%,width=1%`.
fn goal(text: &str) -> Result<Goal, String> {
    let (name, settings) = text.split_once(':').unwrap_or((text, ""));
    let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || !name.chars().all(sound) {
        return Err(format!(
            "'{name}' is no name for a goal: write letters, digits, - and _, as in pdr:loss=0.5%"
        ));
    }
    let mut goal = if name == "pdr" { Goal::pdr() } else { Goal::new(name, 0.0) };
    let mut has_loss = matches!(name, "ndr" | "pdr");
    for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        match key {
            "loss" => (goal.loss_ratio, has_loss) = (args::share(value)?, true),
            "exceed" => goal.exceed_ratio = share_or_all(value)?,
            "width" => goal.relative_width = args::share(value)?,
            "initial" => goal.initial_trial_duration = args::duration(value)?,
            "final" => goal.final_trial_duration = args::duration(value)?,
            "sum" => goal.duration_sum = args::duration(value)?,
            "queue" => {
                goal.hidden_queue = value.parse().map_err(|_| format!("'{value}' is no number of frames"))?;
            }
            _ => {
                return Err(format!(
                    "'{key}' is no setting of a goal: they are loss, exceed, width, initial, final, sum and queue"
                ));
            }
        }
    }
    if has_loss {
        Ok(goal)
    } else {
        Err(format!("goal {name} does not say what loss it forgives: write {name}:loss=0.1%"))
    }
}

/// A share that may be all: the search itself then says why that is no goal.
fn share_or_all(text: &str) -> Result<f64, String> {
    if matches!(text, "100%" | "1" | "1.0") { Ok(1.0) } else { args::share(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_read() {
        assert_eq!(goal("ndr"), Ok(Goal::ndr()));
        assert_eq!(goal("pdr"), Ok(Goal::pdr()));
        let read = goal("tst009:loss=0,exceed=50%,width=1%,initial=1s,final=60s,sum=120s").unwrap();
        assert_eq!((read.name.as_str(), read.loss_ratio, read.exceed_ratio), ("tst009", 0.0, 0.5));
        assert_eq!((read.relative_width, read.duration_sum), (0.01, Duration::from_secs(120)));
        assert_eq!(
            goal(&format!("again:{}", trial::strategy::describe_goal(&Goal::pdr())))
                .map(|goal| goal.loss_ratio),
            Ok(0.005)
        );
    }

    #[test]
    fn what_is_no_goal_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "no name"),
            (":loss=1%", "no name"),
            ("mine", "what loss it forgives"),
            ("pdr:speed=3", "no setting of a goal"),
            ("pdr:loss=lots", "not a share"),
            ("pdr:sum=soon", "not a duration"),
        ] {
            assert!(goal(text).unwrap_err().contains(reason), "{text}: {:?}", goal(text));
        }
    }
}
