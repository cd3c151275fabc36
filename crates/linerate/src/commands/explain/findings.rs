//! `linerate explain findings`: what stands out in records, and why it matters.

use std::path::PathBuf;

use anyhow::Result;
use report::{findings, terminal};
use serde_json::json;
use testbed::progress::colour;

use crate::Exit;

#[derive(clap::Args)]
pub struct Args {
    /// Records of runs, or directories of them
    #[arg(required = true, value_name = "RECORD|DIR")]
    records: Vec<PathBuf>,
    /// Print the findings as JSON on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: &Args) -> Result<Exit> {
    let records = super::super::report::load(&args.records)?.records;
    if args.json {
        let of = |record| {
            let found = findings::findings(record);
            json!({ "run": record.id, "findings": found.iter().map(|it| json!({ "kind": it.kind, "text": it.text })).collect::<Vec<_>>() })
        };
        println!("{}", serde_json::to_string_pretty(&records.iter().map(of).collect::<Vec<_>>())?);
        return Ok(Exit::Done);
    }
    records.iter().for_each(|record| eprint!("{}", terminal::findings(record, colour())));
    Ok(Exit::Done)
}
