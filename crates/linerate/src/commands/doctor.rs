//! `linerate doctor`: what this machine can and cannot do, each with its remedy.

mod cores;
mod ports;

use std::path::Path;

use anyhow::Result;
use lab::{Check, Level};
use serde_json::json;
use testbed::{dpdk_host, trex_profile};

use crate::Exit;

#[derive(clap::Args)]
pub struct Args {
    /// Reserve hugepages for DPDK until reboot, and install TRex's library for its profiles; this changes the host
    #[arg(long)]
    fix: bool,
    /// Look at these interfaces, too: what they are and can, and what stands in the way of a load test
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1)]
    ports: Vec<String>,
    /// Print the findings as JSON on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: &Args) -> Result<Exit> {
    if args.fix {
        // Neither keeps the other from being done.
        let fixed = [trex_profile::install(), dpdk_host::reserve(Path::new(dpdk_host::PAGES))];
        fixed.iter().flatten().for_each(|done| eprintln!("{done}"));
        fixed.into_iter().collect::<Result<Vec<_>>>()?;
    }
    let mut checks = lab::check_machine();
    checks.push(dpdk_host::check());
    checks.push(trex_profile::check());
    checks.push(dut::program::vm::check());
    let mut lines: Vec<Line> = checks.into_iter().map(Line::from).collect();
    lines.extend(cores::core_to_core());
    lines.extend(args.ports.iter().flat_map(|port| ports::look_at(port)));
    if args.json {
        let list: Vec<_> = lines.iter().map(to_json).collect();
        println!("{}", serde_json::to_string_pretty(&list)?);
    } else {
        lines.iter().for_each(print);
    }
    let broken = lines.iter().any(|line| line.level == Level::Missing);
    Ok(if broken { Exit::Failed } else { Exit::Done })
}

/// One thing that was looked at, of the machine or of a port.
struct Line {
    name: String,
    level: Level,
    found: String,
    remedy: Option<String>,
}

impl From<Check> for Line {
    fn from(Check { name, level, found, remedy }: Check) -> Self {
        Self { name: name.to_owned(), level, found, remedy }
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Good => "good",
        Level::Degraded => "degraded",
        Level::Missing => "missing",
    }
}

fn print(line: &Line) {
    println!("{:8} {:24} {}", word(line.level), line.name, line.found);
    if let Some(remedy) = &line.remedy {
        println!("{:33} → {remedy}", "");
    }
}

fn to_json(line: &Line) -> serde_json::Value {
    json!({
        "name": line.name,
        "level": word(line.level),
        "found": line.found,
        "remedy": line.remedy,
    })
}
