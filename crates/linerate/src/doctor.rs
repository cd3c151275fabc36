//! `linerate doctor`: what this machine can and cannot do, each with its remedy.

use anyhow::Result;
use lab::{Check, Level};
use serde_json::json;

use crate::Ending;

#[derive(clap::Args)]
pub struct Args {
    /// Print the findings as JSON on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: &Args) -> Result<Ending> {
    let checks = lab::check_machine();
    if args.json {
        let list: Vec<_> = checks.iter().map(to_json).collect();
        println!("{}", serde_json::to_string_pretty(&list)?);
    } else {
        for check in &checks {
            print(check);
        }
    }
    let broken = checks.iter().any(|check| check.level == Level::Missing);
    Ok(if broken { Ending::Failed } else { Ending::Done })
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
