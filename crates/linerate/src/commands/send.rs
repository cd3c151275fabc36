//! `linerate send`: a profile until told to stop, or a capture as it is.

mod capture;
mod kept;
mod profile;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use wire::rate::Rate;

use crate::Exit;
use crate::args::{self, Device, Traffic};

#[derive(clap::Args)]
pub struct Args {
    /// A capture, pcap or pcapng of Ethernet, to send as it is [default: the frames of --profile]
    #[arg(conflicts_with_all = ["profile", "size", "flows", "ip", "vlan", "bidirectional", "port", "duration", "interval"])]
    capture: Option<String>,
    #[command(flatten)]
    traffic: Traffic,
    #[command(flatten)]
    device: Device,
    /// One interface to send on, instead of a device
    #[arg(long, value_name = "IF", conflicts_with_all = ["dut", "ports", "port0"], group = "named ports")]
    port: Option<String>,
    /// Where frames of --port go: a MAC address, or a neighbour's IP address
    #[arg(long, value_name = "MAC|IP", requires = "port")]
    to: Option<String>,
    /// The load in each direction; max is as fast as the tester can [default: max; a capture's own pace]
    #[arg(long, value_name = "RATE", value_parser = args::rate, help_heading = "Load")]
    rate: Option<Rate>,
    /// How long to send [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = args::duration, help_heading = "Load")]
    duration: Option<Duration>,
    /// How often to report
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = args::duration, hide_short_help = true)]
    interval: Duration,
    /// Replay speed: 1 is as captured, 10 is ten times as fast, 0.5 is half as fast [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = factor, conflicts_with = "rate", requires = "capture", help_heading = "Capture")]
    speed: Option<f64>,
    /// How often the capture is sent
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000), requires = "capture", help_heading = "Capture")]
    loops: u64,
    /// Keep the Ethernet addresses of the capture, instead of the port's and the device's
    #[arg(long, requires = "capture", help_heading = "Capture", hide_short_help = true)]
    keep_macs: bool,
    /// Write what arrives at port 1 to this file, as pcap
    #[arg(long, short, value_name = "FILE", requires = "capture", help_heading = "Capture")]
    output: Option<PathBuf>,
    /// Write no more frames than these, and no more than 1 GiB
    #[arg(
        long,
        value_name = "COUNT",
        default_value = "1000000",
        requires = "output",
        help_heading = "Capture",
        hide_short_help = true
    )]
    output_frames: u64,
    /// Wait this long after the capture for late frames
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = args::duration, requires = "capture", help_heading = "Capture", hide_short_help = true)]
    drain: Duration,
    /// Print a summary as JSON on standard output
    #[arg(long, help_heading = "Output")]
    json: bool,
}

pub fn main(args: &Args) -> Result<Exit> {
    match &args.capture {
        Some(capture) => capture::main(args, capture),
        None => profile::main(args),
    }
}

/// Reads how many times as fast; `x2` is `2`.
fn factor(text: &str) -> Result<f64, String> {
    let number = text.trim_start_matches('x').parse().ok();
    number.filter(|factor| (1e-6..=1e6).contains(factor)).ok_or_else(|| {
        format!("'{text}' is no speed: give how many times as fast as captured, as in 1, 10 or 0.5")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_read_with_and_without_the_sign() {
        assert_eq!(["1", "x10", "0.5"].map(factor), [Ok(1.0), Ok(10.0), Ok(0.5)]);
        for text in ["0", "-1", "fast", "x", "NaN", "inf"] {
            assert!(factor(text).unwrap_err().contains("times as fast"), "{text}");
        }
    }
}
