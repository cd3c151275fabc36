//! `linerate ramp`: the load rises step by step to its target, and frames begin to be lost.

use std::time::Duration;

use anyhow::Result;
use trial::{Ramp, Strategy};
use wire::rate::Rate;

use crate::args::{self, Losses, Measurement};
use crate::line::Line;
use crate::run::Plan;

#[derive(clap::Args)]
#[command(next_help_heading = "Measurement")]
pub struct Args {
    #[command(flatten)]
    measurement: Measurement,
    #[command(flatten)]
    losses: Losses,
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
    /// How long a search after the ramp may take, which narrows the interval of the limit [default: no search]
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    search: Option<Duration>,
}

impl Plan for Args {
    fn strategy(&self, line: &Line) -> Result<Box<dyn Strategy>> {
        Ok(Box::new(Ramp {
            conditions: self.measurement.conditions(line, self.step, self.losses.loss_threshold)?,
            target_pps: line.pps(self.rate)?,
            rise: self.duration,
            hold: self.hold_duration,
            search: self.search.unwrap_or_default(),
        }))
    }
}
