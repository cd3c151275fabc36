//! `linerate saturate`: full rate at once, and what emerges.

use std::time::Duration;

use anyhow::Result;
use engine::Load;
use trial::{Saturate, Strategy};
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
    /// The load in each direction; max is as fast as the tester can send
    #[arg(long, value_name = "RATE", default_value = "100%", value_parser = args::rate)]
    rate: Rate,
    /// How long the load is sent
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = args::duration)]
    duration: Duration,
    /// Length of a sample
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = args::duration, hide_short_help = true)]
    step: Duration,
}

impl Plan for Args {
    fn strategy(&self, line: &Line) -> Result<Box<dyn Strategy>> {
        let load = match self.rate {
            Rate::Max => Load::Max,
            rate => Load::Rate(line.pps(rate)?),
        };
        Ok(Box::new(Saturate {
            conditions: self.measurement.conditions(line, self.step, self.losses.loss_threshold)?,
            load,
            duration: self.duration,
        }))
    }
}
