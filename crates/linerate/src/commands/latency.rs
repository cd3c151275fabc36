//! `linerate latency`: the distribution of the delay at chosen loads.

use std::time::Duration;

use anyhow::Result;
use trial::{ChosenLoad, Goal, Latency, Reference, Search, Strategy};
use wire::rate::Rate;

use crate::args::{self, Measurement};
use crate::line::Line;
use crate::run::Plan;

/// How long one sample of the warm-up is.
const STEP: Duration = Duration::from_millis(100);
/// The lowest load that the search for the PDR tries.
const SEARCH_FROM: Rate = Rate::Pps(1_000.0);

#[derive(clap::Args)]
#[command(next_help_heading = "Measurement")]
#[command(mut_arg("warm_up_duration", |arg| arg.default_value("1s")))]
#[command(mut_arg("drain", |arg| arg.default_value("200ms").help("How long to wait for the last frames of each load")))]
pub struct Args {
    /// The loads: shares of the PDR (50%, 110% for an overload), rates (20kpps), or unloaded,
    /// which is 1 kpps, or 1 % of the PDR if that is less
    #[arg(
        long,
        value_name = "LOAD,…",
        value_delimiter = ',',
        default_value = "unloaded,10%,50%,90%,110%",
        value_parser = load
    )]
    loads: Vec<Load>,
    /// Reference rate for percentages, in each direction [default: the PDR, which a search finds first]
    #[arg(long, value_name = "RATE", value_parser = args::rate)]
    of: Option<Rate>,
    /// How long each load is offered
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = args::duration)]
    duration: Duration,
    /// How long the search takes at most
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = args::duration)]
    time_limit: Duration,
    #[command(flatten)]
    measurement: Measurement,
}

/// A load as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    Unloaded,
    /// Of the reference.
    Share(f64),
    Rate(Rate),
}

impl Plan for Args {
    fn strategy(&self, line: &Line) -> Result<Box<dyn Strategy>> {
        let conditions = self.measurement.conditions(line, STEP, 0.0)?;
        let max_pps = line.pps(Rate::Percent(100.0))?;
        let reference = match self.of {
            Some(of) => Reference::Given(line.pps(of)?),
            None => Reference::Searched(Search {
                conditions,
                goals: vec![Goal::pdr()],
                min_pps: line.pps(SEARCH_FROM)?,
                max_pps,
                expected: None,
                max_duration: self.time_limit,
            }),
        };
        let loads = self.loads.iter().map(|load| {
            Ok(match load {
                Load::Unloaded => ChosenLoad::Unloaded,
                Load::Share(share) => ChosenLoad::Share(*share),
                Load::Rate(rate) => ChosenLoad::Rate(line.pps(*rate)?),
            })
        });
        let loads = loads.collect::<Result<_>>()?;
        Ok(Box::new(Latency { conditions, reference, loads, duration: self.duration, max_pps }))
    }
}

/// Reads a load such as `unloaded`, `50%`, `110%` or `20kpps`.
fn load(text: &str) -> Result<Load, String> {
    if text == "unloaded" {
        return Ok(Load::Unloaded);
    }
    let Some(percent) = text.strip_suffix('%') else {
        return args::rate(text).map(Load::Rate).map_err(|_| refusal(text));
    };
    match percent.trim().parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent > 0.0 => Ok(Load::Share(percent / 100.0)),
        _ => Err(refusal(text)),
    }
}

fn refusal(text: &str) -> String {
    format!("'{text}' is not a load: write a share of the PDR (50%), a rate (20kpps), or unloaded")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_read() {
        assert_eq!(load("unloaded"), Ok(Load::Unloaded));
        assert_eq!(load("110%"), Ok(Load::Share(1.1)));
        assert_eq!(load("20kpps"), Ok(Load::Rate(Rate::Pps(20_000.0))));
        for text in ["", "%", "-5%", "0%", "inf%", "NaN%", "half", "idle"] {
            assert!(load(text).unwrap_err().contains("is not a load"), "{text}");
        }
    }
}
