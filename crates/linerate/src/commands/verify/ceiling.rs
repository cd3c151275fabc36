//! `linerate verify ceiling`: what the tester reaches without a device, with a cable between its ports.

use anyhow::Result;
use testbed::Testbed;
use testbed::self_test;
use wire::human;

use crate::Exit;
use crate::args::{Device, Traffic};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    traffic: Traffic,
    #[command(flatten)]
    device: Device,
    /// Print the finding as JSON on standard output
    #[arg(long, help_heading = "Output")]
    json: bool,
}

pub fn main(args: &Args) -> Result<Exit> {
    let profile = args.traffic.profile()?;
    let testbed = Testbed::open(&args.device.target()?, usize::from(profile.largest_size()))?;
    let found = self_test::measure_and_keep(&testbed, &profile, args.traffic.directions())?;
    eprintln!(
        "profile {}, without a device: the tester reaches {} in each direction; at a low load latency {:.1} µs on average, {:.1} µs at least",
        profile.name(),
        human::pps(found.ceiling_pps),
        found.base_latency_mean_ns / 1e3,
        found.base_latency_min_ns as f64 / 1e3,
    );
    if args.json {
        println!("{}", serde_json::to_string_pretty(&found)?);
    }
    Ok(Exit::Done)
}
