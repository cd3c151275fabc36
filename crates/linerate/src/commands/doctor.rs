//! `linerate doctor`: what this machine can and cannot do, each with its remedy.

mod hugepages;

use std::path::Path;

use anyhow::Result;
use lab::{Check, Level};
use serde_json::json;

use crate::Exit;

#[derive(clap::Args)]
pub struct Args {
    /// Reserve hugepages for DPDK first, until the machine starts anew; this changes the machine
    #[arg(long)]
    fix: bool,
    /// Print the findings as JSON on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: &Args) -> Result<Exit> {
    if args.fix {
        eprintln!("{}", hugepages::reserve(Path::new(hugepages::PAGES))?);
    }
    let mut checks = lab::check_machine();
    checks.push(dpdk());
    if args.json {
        let list: Vec<_> = checks.iter().map(to_json).collect();
        println!("{}", serde_json::to_string_pretty(&list)?);
    } else {
        for check in &checks {
            print(check);
        }
    }
    let broken = checks.iter().any(|check| check.level == Level::Missing);
    Ok(if broken { Exit::Failed } else { Exit::Done })
}

/// Whether there is an engine in user space, and a device for it.
fn dpdk() -> Check {
    let check = |level, found: &str, remedy: Option<&str>| Check {
        name: "DPDK",
        level,
        found: found.to_owned(),
        remedy: remedy.map(str::to_owned),
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has_testpmd = std::env::split_paths(&path).any(|directory| directory.join("dpdk-testpmd").exists());
    match (cfg!(feature = "dpdk"), has_testpmd) {
        (false, _) => check(
            Level::Degraded,
            "not built in: --engine dpdk is not to be had",
            Some("Build linerate with --features dpdk, where libdpdk-dev is installed"),
        ),
        (true, false) => check(
            Level::Degraded,
            "built in, but the device testpmd is not installed",
            Some("Install Debian's dpdk-dev"),
        ),
        (true, true) => check(Level::Good, "built in, and testpmd is installed", None),
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Good => "good",
        Level::Degraded => "degraded",
        Level::Missing => "missing",
    }
}

fn print(check: &Check) {
    println!("{:8} {:24} {}", word(check.level), check.name, check.found);
    if let Some(remedy) = &check.remedy {
        println!("{:33} → {remedy}", "");
    }
}

fn to_json(check: &Check) -> serde_json::Value {
    json!({
        "name": check.name,
        "level": word(check.level),
        "found": check.found,
        "remedy": check.remedy,
    })
}
