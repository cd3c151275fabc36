//! `linerate ramp`: the load rises step by step to its target, and frames begin to be lost.

use std::time::Duration;

use anyhow::Result;
use trial::Ramp;
use wire::rate::Rate;
use wording::usage::misuse;

use crate::args::{self, Device, Measurement, Output, Traffic};
use crate::{Exit, run};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    traffic: Traffic,
    #[command(flatten)]
    device: Device,
    #[command(flatten)]
    measurement: Measurement,
    /// Final load of the ramp, in each direction
    #[arg(long, value_name = "RATE", default_value = "100%", value_parser = args::rate)]
    rate: Rate,
    /// How long the load rises
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = args::duration)]
    duration: Duration,
    /// How long the load stays at the target
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = args::duration, hide_short_help = true)]
    hold_duration: Duration,
    /// Length of a step, which is one sample
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = args::duration, hide_short_help = true)]
    step: Duration,
    #[command(flatten)]
    output: Output,
}

pub fn main(args: &Args) -> Result<Exit> {
    run::single(&args.traffic, &args.device, &args.output, |testbed, mean_frame_size| {
        let ramp = plan(args, |rate| testbed.pps(rate, mean_frame_size), testbed.line_rate_bps())?;
        ramp.check().map_err(|refused| misuse(refused.to_string()))?;
        Ok(Box::new(ramp))
    })
}

/// The ramp that the flags describe, on a line where `pps` says what rates are in frames a second.
fn plan(args: &Args, pps: impl Fn(Rate) -> Result<f64>, line_rate_bps: f64) -> Result<Ramp> {
    let warm_up_pps = pps(args.measurement.warm_up)?;
    Ok(Ramp {
        conditions: args.measurement.conditions(warm_up_pps, args.step, line_rate_bps),
        target_pps: pps(args.rate)?,
        rise: args.duration,
        hold: args.hold_duration,
    })
}

/// How long it takes by its flags, which line and frames do not change.
pub fn planned(args: &Args) -> Duration {
    plan(args, |_| Ok(1.0), 1.0).map_or(Duration::ZERO, |plan| plan.planned())
}
