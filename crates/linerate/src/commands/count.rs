//! `linerate count`: what arrives at an interface, until told to stop.

use std::time::{Duration, Instant};

use anyhow::Result;
use engine::Totals;
use engine::xdp::{PortRef, Receiver};
use serde_json::json;
use testbed::stop;
use wire::human;
use wording::usage::misuse;

use crate::Exit;
use crate::args;

#[derive(clap::Args)]
pub struct Args {
    /// The interface; frames of Linerate end there, all others go on to the kernel
    interface: String,
    /// How long to count [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    duration: Option<Duration>,
    /// How often to report
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = args::duration)]
    interval: Duration,
    /// Print a summary as JSON on standard output
    #[arg(long)]
    json: bool,
}

/// Streams and workers whose order is told apart; frames of more are counted as foreign.
const STREAMS: usize = 256;
const WORKERS: usize = 16;

pub fn main(args: &Args) -> Result<Exit> {
    let index = nix::net::if_::if_nametoindex(args.interface.as_str())
        .map_err(|_| misuse(format!("there is no interface '{}'. There are: {}", args.interface, known())))?;
    let stop = stop::flag()?;
    let port = PortRef { name: args.interface.clone(), index };
    let receiver = Receiver::attach(std::slice::from_ref(&port), None, STREAMS, WORKERS)?;
    let totals = || receiver.totals(0);
    let clock = Instant::now();
    let (mut last, mut at) = (totals()?, Duration::ZERO);
    while !stop::is_set(&stop) && args.duration.is_none_or(|duration| clock.elapsed() < duration) {
        let left = args.duration.map_or(args.interval, |duration| duration.saturating_sub(clock.elapsed()));
        stop::sleep(&stop, args.interval.min(left));
        let (now, elapsed) = (totals()?, clock.elapsed());
        eprintln!("{}", line(&now, &last, (elapsed - at).as_secs_f64()));
        (last, at) = (now, elapsed);
    }
    let elapsed = clock.elapsed().as_secs_f64();
    eprintln!(
        "counted {} frames of Linerate and {} others in {elapsed:.2} s; {} duplicate, {} reordered",
        human::count(ours(&last)),
        human::count(last.foreign),
        human::count(last.duplicates),
        human::count(last.reordered),
    );
    if args.json {
        let summary = json!({
            "elapsed_s": elapsed,
            "frames": ours(&last),
            "foreign": last.foreign,
            "duplicates": last.duplicates,
            "reordered": last.reordered,
            "latency_p50_ns": last.latency.percentile(50.0),
            "latency_p99_ns": last.latency.percentile(99.0),
        });
        println!("{summary}");
    }
    Ok(Exit::Done)
}

/// The interfaces that there are.
fn known() -> String {
    let list = nix::net::if_::if_nameindex();
    let names = list.iter().flatten().map(|interface| interface.name().to_string_lossy().into_owned());
    names.collect::<Vec<_>>().join(", ")
}

/// Frames of Linerate, whichever port they left by.
fn ours(totals: &Totals) -> u64 {
    totals.forwarded + totals.returned
}

fn line(now: &Totals, last: &Totals, seconds: f64) -> String {
    let rate = |now: u64, last: u64| human::pps((now - last) as f64 / seconds.max(1e-9));
    let latency = now.latency.since(&last.latency);
    let latency = latency.percentile(50.0).map_or(String::new(), |p50| {
        let p99 = latency.percentile(99.0).unwrap_or(p50);
        format!(", latency p50 {:.1} µs, p99 {:.1} µs", p50 as f64 / 1e3, p99 as f64 / 1e3)
    });
    format!("{} and {} others{latency}", rate(ours(now), ours(last)), rate(now.foreign, last.foreign))
}
