//! `linerate saturate`: full rate at once, and what emerges.

use std::time::Duration;

use anyhow::Result;
use engine::Load;
use trial::Saturate;
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
    /// The load in each direction; max is as fast as the tester can send
    #[arg(long, value_name = "RATE", default_value = "100%", value_parser = args::rate)]
    rate: Rate,
    /// How long the load is sent
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = args::duration)]
    duration: Duration,
    /// Length of a sample
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = args::duration, hide_short_help = true)]
    step: Duration,
    #[command(flatten)]
    output: Output,
}

pub fn main(args: &Args) -> Result<Exit> {
    run::single(&args.traffic, &args.device, &args.output, |testbed, mean_frame_size| {
        let saturate = plan(args, |rate| testbed.pps(rate, mean_frame_size), testbed.line_rate_bps())?;
        saturate.check().map_err(|refused| misuse(refused.to_string()))?;
        Ok(Box::new(saturate))
    })
}

/// What the flags describe, on a line where `pps` says what rates are in frames a second.
fn plan(args: &Args, pps: impl Fn(Rate) -> Result<f64>, line_rate_bps: f64) -> Result<Saturate> {
    let load = match args.rate {
        Rate::Max => Load::Max,
        rate => Load::Rate(pps(rate)?),
    };
    let warm_up_pps = pps(args.measurement.warm_up)?;
    Ok(Saturate {
        conditions: args.measurement.conditions(warm_up_pps, args.step, line_rate_bps),
        load,
        duration: args.duration,
    })
}

/// How long it takes by its flags, which line and frames do not change.
pub fn planned(args: &Args) -> Duration {
    plan(args, |_| Ok(1.0), 1.0).map_or(Duration::ZERO, |plan| plan.planned())
}
