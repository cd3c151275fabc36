//! `linerate soak`: one load for a long time, and what goes wrong in it.

use std::time::Duration;

use anyhow::Result;
use trial::{Conditions, Soak, WarmUp};
use wire::rate::Rate;
use wording::usage::misuse;

use crate::args::{self, Device, Output, Traffic};
use crate::{Exit, run};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    traffic: Traffic,
    #[command(flatten)]
    device: Device,
    /// The load in each direction; very low ones, such as 1pps, show what others do not
    #[arg(long, value_name = "RATE", value_parser = args::rate)]
    rate: Rate,
    /// How long it is sent
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = args::duration)]
    duration: Duration,
    /// How long one interval is, and so how exactly times are known [default: a few frames, at least
    /// 100ms and a ten-thousandth of the duration]
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    step: Option<Duration>,
    /// Stop when a direction has received nothing for 5 s and three intervals
    #[arg(long)]
    stop_on_stall: bool,
    /// Warm-up load in each direction, which checks that frames pass
    #[arg(long, value_name = "RATE", default_value = "1kpps", value_parser = args::rate, hide_short_help = true)]
    warm_up: Rate,
    /// How long it is sent
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = args::duration, hide_short_help = true)]
    warm_up_duration: Duration,
    /// Wait this long after sending for late frames
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = args::duration, hide_short_help = true)]
    drain: Duration,
    #[command(flatten)]
    output: Output,
}

pub fn main(args: &Args) -> Result<Exit> {
    run::single(&args.traffic, &args.device, &args.output, |testbed, mean_frame_size| {
        let soak = plan(args, |rate| testbed.pps(rate, mean_frame_size), testbed.line_rate_bps())?;
        soak.check().map_err(|refused| misuse(refused.to_string()))?;
        Ok(Box::new(soak))
    })
}

/// The soak that the flags describe, on a line where `in_pps` says what rates are in frames a second.
fn plan(args: &Args, in_pps: impl Fn(Rate) -> Result<f64>, line_rate_bps: f64) -> Result<Soak> {
    let pps = in_pps(args.rate)?;
    Ok(Soak {
        conditions: Conditions {
            warm_up: WarmUp { pps: in_pps(args.warm_up)?, duration: args.warm_up_duration },
            step: args.step.unwrap_or_else(|| Soak::interval(pps, args.duration)),
            drain: args.drain,
            loss_threshold: 0.0,
            line_rate_bps,
        },
        pps,
        duration: args.duration,
        stop_on_stall: args.stop_on_stall,
    })
}

/// How long it takes by its flags, which line and frames do not change.
pub fn planned(args: &Args) -> Duration {
    plan(args, |_| Ok(1.0), 1.0).map_or(Duration::ZERO, |plan| plan.planned())
}
