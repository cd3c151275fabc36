//! `linerate gen`: traffic until told to stop, as pkt-gen's users expect.

use std::time::{Duration, Instant};

use anyhow::Result;
use engine::Load;
use engine::xdp::{Generator, monotonic};
use serde_json::json;
use wire::rate::Rate;
use wire::{human, size};

use crate::args::{self, Device, Traffic};
use crate::testbed::Testbed;
use crate::{Ending, stop};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    traffic: Traffic,
    #[command(flatten)]
    device: Device,
    /// The rate in each direction; max is as fast as the tester can
    #[arg(long, value_name = "RATE", default_value = "max", value_parser = args::rate)]
    rate: Rate,
    /// How long to send [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    duration: Option<Duration>,
    /// How often to report
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = args::duration)]
    interval: Duration,
    /// Print a summary as JSON on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: &Args) -> Result<Ending> {
    let profile = args.traffic.profile()?;
    let stop = stop::flag()?;
    let testbed = Testbed::open(&args.device.or_dut("sink")?, usize::from(profile.largest_size()))?;
    let table = profile.table(&testbed.endpoints(), args.traffic.directions());
    let mean = table.mean_frame_size();
    let load = match args.rate {
        Rate::Max => Load::Max,
        rate => Load::Rate(testbed.pps(rate, mean)?),
    };
    let mut generator =
        Generator::start(&table, &testbed.port_refs(), testbed.namespace(), testbed.generating_cores())?;
    if let Some(lab) = testbed.lab() {
        lab.pin()?;
    }
    let directions = table.directions();
    let sent = |generator: &Generator| -> Result<Tally> {
        let mut sum = Tally::default();
        for direction in 0..directions {
            let sent = generator.sent(INTERVAL, direction)?;
            sum.frames += sent.frames;
            sum.bytes += sent.bytes;
            sum.unsent += sent.unsent;
        }
        Ok(sum)
    };

    let begin = monotonic()?;
    generator.begin(INTERVAL, load, begin)?;
    let clock = Instant::now();
    let mut last = (Tally::default(), Duration::ZERO);
    let ends = |clock: &Instant| args.duration.is_some_and(|duration| clock.elapsed() >= duration);
    while !stop::is_set(&stop) && !ends(&clock) {
        let left = args.duration.map_or(args.interval, |duration| duration.saturating_sub(clock.elapsed()));
        stop::sleep(&stop, args.interval.min(left));
        generator.check_workers()?;
        let now = (sent(&generator)?, clock.elapsed());
        eprintln!("{}", now.0.since(last.0).line((now.1 - last.1).as_secs_f64()));
        last = now;
    }
    generator.begin(INTERVAL + 1, Load::Idle, monotonic()?)?;
    let elapsed = clock.elapsed().as_secs_f64();
    stop::sleep(&stop, Duration::from_millis(20));
    let total = sent(&generator)?;
    eprintln!("sent {} frames in {elapsed:.2} s: {}", human::count(total.frames), total.line(elapsed));
    let received = testbed.lab().map(lab::Lab::dut_counters).transpose()?.flatten();
    let received: Option<u64> = received.map(|sides| sides.iter().map(|side| side.frames).sum());
    if let Some(received) = received {
        eprintln!("{} received {} of them", testbed.dut_name(), human::count(received));
    }
    if args.json {
        println!("{}", total.json(elapsed, received));
    }
    Ok(Ending::Done)
}

/// The interval that all is sent in.
const INTERVAL: u64 = 1;

/// Frames sent.
#[derive(Clone, Copy, Default)]
struct Tally {
    frames: u64,
    /// Without FCS.
    bytes: u64,
    unsent: u64,
}

impl Tally {
    fn since(self, earlier: Self) -> Self {
        Self {
            frames: self.frames - earlier.frames,
            bytes: self.bytes - earlier.bytes,
            unsent: self.unsent - earlier.unsent,
        }
    }

    /// Mean frame size, FCS included.
    fn mean_size(self) -> f64 {
        self.bytes as f64 / self.frames.max(1) as f64 + f64::from(size::FCS)
    }

    fn line(self, seconds: f64) -> String {
        let pps = self.frames as f64 / seconds;
        let unsent = if self.unsent == 0 { String::new() } else { format!(", {} unsent", human::count(self.unsent)) };
        format!(
            "{} ({} L1, {} L2){unsent}",
            human::pps(pps),
            human::bps(size::pps_to_l1_bps(pps, self.mean_size())),
            human::bps(size::pps_to_l2_bps(pps, self.mean_size())),
        )
    }

    fn json(self, seconds: f64, received: Option<u64>) -> serde_json::Value {
        let pps = self.frames as f64 / seconds;
        json!({
            "elapsed_s": seconds,
            "offered": self.frames,
            "offered_pps": pps,
            "unsent": self.unsent,
            "l1_bps": size::pps_to_l1_bps(pps, self.mean_size()),
            "l2_bps": size::pps_to_l2_bps(pps, self.mean_size()),
            "dut_received": received,
        })
    }
}
