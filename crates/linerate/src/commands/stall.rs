//! `linerate stall`: at which rates a device stops forwarding.

use std::time::Duration;

use anyhow::Result;
use trial::{StallSearch, Strategy};
use wire::rate::Rate;

use crate::args::{self, Measurement};
use crate::line::Line;
use crate::run::Plan;

#[derive(clap::Args)]
#[command(next_help_heading = "Measurement")]
#[command(mut_arg("warm_up_duration", |arg| arg.default_value("500ms")))]
pub struct Args {
    /// The lowest load in each direction
    #[arg(long, value_name = "RATE", value_parser = args::rate, default_value = "100pps")]
    lowest: Rate,
    /// The highest load in each direction
    #[arg(long, value_name = "RATE", value_parser = args::rate, default_value = "100%")]
    highest: Rate,
    /// Loads for each factor of ten, tried in an order by chance
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    steps: u32,
    /// How long each trial holds its load: a stall that takes longer is not found
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = args::duration)]
    hold_duration: Duration,
    /// How often each load is tried
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    repeats: u32,
    /// How near the loads on both sides of an edge must come to each other, as a share of the lower one
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = args::share)]
    width: f64,
    /// How long the device may take to forward again after a stall and a reset
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = args::duration)]
    recovery: Duration,
    /// Resets your device after a stall; run by sh. Devices of the lab need none: their interfaces are taken
    /// down and up
    #[arg(long, value_name = "COMMAND", requires = "ports")]
    reset_command: Option<String>,
    /// What the order of the loads is drawn from
    #[arg(long, value_name = "NUMBER", default_value_t = 1, hide_short_help = true)]
    seed: u64,
    #[command(flatten)]
    measurement: Measurement,
}

impl Plan for Args {
    fn strategy(&self, line: &Line) -> Result<Box<dyn Strategy>> {
        let step = StallSearch::step(self.hold_duration);
        Ok(Box::new(StallSearch {
            conditions: self.measurement.conditions(line, step, 0.0)?,
            lowest_pps: line.pps(self.lowest)?,
            highest_pps: line.pps(self.highest)?,
            steps: self.steps,
            hold: self.hold_duration,
            repeats: self.repeats,
            width: self.width,
            recovery: self.recovery,
            seed: self.seed,
        }))
    }

    fn reset_command(&self) -> Option<String> {
        self.reset_command.clone()
    }
}
