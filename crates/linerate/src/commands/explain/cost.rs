//! `linerate explain cost`: what a forwarded frame costs the device, by load.

use std::time::Duration;

use anyhow::Result;
use testbed::cost::CostTest;
use trial::{Conditions, WarmUp};
use wire::rate::Rate;
use wording::usage::misuse;

use crate::args::{self, Device, Output, Traffic};
use crate::live::Live;
use crate::{Exit, run};

/// How long one sample is.
const STEP: Duration = Duration::from_millis(500);

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    traffic: Traffic,
    #[command(flatten)]
    device: Device,
    /// The low load, in each direction
    #[arg(long, value_name = "RATE", default_value = "1kpps", value_parser = args::rate, help_heading = "Measurement")]
    low_rate: Rate,
    /// How long each load is offered
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = args::duration, help_heading = "Measurement")]
    duration: Duration,
    /// How long the low load is sent first, to prove that traffic passes
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = args::duration, help_heading = "Measurement")]
    warm_up_duration: Duration,
    /// Wait this long after each load for late frames
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = args::duration, help_heading = "Measurement")]
    drain: Duration,
    #[command(flatten)]
    output: Output,
}

pub fn main(args: &Args) -> Result<Exit> {
    let profile = args.traffic.profile()?;
    run::single(&profile, &args.traffic, &args.device, &args.output, Live::default(), |testbed, line| {
        let threads = testbed.dut_work()?;
        if testbed.lab().is_none() && threads.is_empty() {
            return Err(misuse(
                "the time of a device is known only if Linerate starts it: choose one with --dut",
            ));
        }
        let conditions = Conditions {
            warm_up: WarmUp { pps: line.pps(args.low_rate)?, duration: args.warm_up_duration },
            step: STEP.min(args.duration),
            drain: args.drain,
            loss_threshold: 0.001,
            line_rate_bps: line.rate_bps,
        };
        let test = CostTest::new(testbed, threads, conditions, args.duration)?;
        Ok(Box::new(test))
    })
}
