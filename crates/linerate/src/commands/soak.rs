//! `linerate soak`: one load for a long time, and what goes wrong in it.

use std::time::Duration;

use anyhow::Result;
use trial::{Soak, Strategy};
use wire::rate::Rate;

use crate::args::{self, Measurement};
use crate::line::Line;
use crate::run::Plan;

#[derive(clap::Args)]
#[command(next_help_heading = "Measurement")]
#[command(mut_arg("warm_up_duration", |arg| arg.default_value("1s")))]
pub struct Args {
    /// The load in each direction; very low ones, such as 1pps, show what others do not
    #[arg(long, value_name = "RATE", value_parser = args::rate)]
    rate: Rate,
    /// How long the load is sent
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = args::duration)]
    duration: Duration,
    /// How long one interval is, and so how exactly times are known [default: a few frames, at least
    /// 100ms and a ten-thousandth of the duration]
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    step: Option<Duration>,
    /// Stop when a direction has received nothing for 5 s and three intervals
    #[arg(long)]
    stop_on_stall: bool,
    #[command(flatten)]
    measurement: Measurement,
}

impl Plan for Args {
    fn strategy(&self, line: &Line) -> Result<Box<dyn Strategy>> {
        let pps = line.pps(self.rate)?;
        let step = self.step.unwrap_or_else(|| Soak::interval(pps, self.duration));
        Ok(Box::new(Soak {
            conditions: self.measurement.conditions(line, step, 0.0)?,
            pps,
            duration: self.duration,
            stop_on_stall: self.stop_on_stall,
        }))
    }
}
