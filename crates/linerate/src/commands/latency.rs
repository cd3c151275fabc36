//! `linerate latency`: the distribution of the delay at chosen loads.

use std::time::Duration;

use anyhow::Result;
use trial::{ChosenLoad, Conditions, Goal, Latency, Reference, Search, WarmUp};
use wire::rate::Rate;
use wording::usage::misuse;

use crate::args::{self, Device, Output, Traffic};
use crate::{Exit, run};

/// How long one sample of the warm-up is.
const STEP: Duration = Duration::from_millis(100);
/// The lowest load that the search for the PDR tries.
const SEARCH_FROM: Rate = Rate::Pps(1_000.0);

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    traffic: Traffic,
    #[command(flatten)]
    device: Device,
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
    /// Warm-up load in each direction, which checks that frames pass
    #[arg(long, value_name = "RATE", default_value = "1kpps", value_parser = args::rate, hide_short_help = true)]
    warm_up: Rate,
    /// Length of the warm-up
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = args::duration, hide_short_help = true)]
    warm_up_duration: Duration,
    /// Wait this long after each load for late frames
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = args::duration, hide_short_help = true)]
    drain: Duration,
    #[command(flatten)]
    output: Output,
}

/// A load as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    Unloaded,
    /// Of the reference.
    Share(f64),
    Rate(Rate),
}

pub fn main(args: &Args) -> Result<Exit> {
    run::single(&args.traffic, &args.device, &args.output, |testbed, mean_frame_size| {
        let latency = plan(args, |rate| testbed.pps(rate, mean_frame_size), testbed.line_rate_bps())?;
        latency.check().map_err(|refused| misuse(refused.to_string()))?;
        Ok(Box::new(latency))
    })
}

/// The test that the flags describe, on a line where `pps` says what rates are in frames a second.
fn plan(args: &Args, pps: impl Fn(Rate) -> Result<f64>, line_rate_bps: f64) -> Result<Latency> {
    let conditions = Conditions {
        warm_up: WarmUp { pps: pps(args.warm_up)?, duration: args.warm_up_duration },
        step: STEP,
        drain: args.drain,
        loss_threshold: 0.0,
        line_rate_bps,
    };
    let max_pps = pps(Rate::Percent(100.0))?;
    let search = || -> Result<Search> {
        let goals = vec![Goal::pdr()];
        Ok(Search { conditions, goals, min_pps: pps(SEARCH_FROM)?, max_pps, max_duration: args.time_limit })
    };
    let loads = args.loads.iter().map(|load| {
        Ok(match load {
            Load::Unloaded => ChosenLoad::Unloaded,
            Load::Share(share) => ChosenLoad::Share(*share),
            Load::Rate(rate) => ChosenLoad::Rate(pps(*rate)?),
        })
    });
    Ok(Latency {
        conditions,
        reference: args
            .of
            .map_or_else(|| search().map(Reference::Searched), |of| Ok(Reference::Given(pps(of)?)))?,
        loads: loads.collect::<Result<_>>()?,
        duration: args.duration,
        max_pps,
    })
}

/// How long it takes at most by its flags, which line and frames do not change.
pub fn planned(args: &Args) -> Duration {
    plan(args, |_| Ok(1.0), 1.0).map_or(Duration::ZERO, |plan| plan.planned())
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
