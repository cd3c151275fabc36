//! `linerate export`: records enter, another format leaves, on standard output or in a file.

use std::io::Write;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::ValueEnum;
use report::bundle::{self, File};
use results::Record;
use results::export::{csv, trex_loadtest};
use results::store::Loaded;
use testbed::frames;
use wording::usage::{in_one_line, misuse};

use crate::Exit;
use crate::commands::report as report_command;

/// Frames in a bundle.
const FRAMES: usize = 256;

#[derive(clap::Args)]
pub struct Args {
    /// Directories of records, or single records
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// The format
    #[arg(long, short)]
    format: Format,
    /// The file to write [default: standard output]
    #[arg(long, short, value_name = "FILE", required_if_eq("format", "bundle"))]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// What trex-loadtest-viz (graph.rb) reads; one record
    TrexLoadtest,
    /// A line for each sample and direction
    Csv,
    /// A line for each run, with its place in its bench, its labels and its figure
    CsvRuns,
    /// A line for each node of each run's device, if it is a graph of nodes: calls, packets, clocks a packet
    CsvNodes,
    /// Tables, what they prove, the machine and every command
    Markdown,
    /// One record as a .tar.gz for the authors of a device: findings in words, samples, stalls, frames, page
    Bundle,
}

pub fn main(args: &Args) -> Result<Exit> {
    let Loaded { records, benches, .. } = report_command::load(&args.runs)?;
    let content = match (args.format, records.as_slice()) {
        (Format::TrexLoadtest, [record]) => (trex_loadtest::export(record)? + "\n").into_bytes(),
        (Format::Bundle, [record]) => bundle(record)?,
        (Format::TrexLoadtest | Format::Bundle, _) => {
            return Err(misuse(format!(
                "trex-loadtest and bundle hold one run a file, and there are {}: name a single record",
                records.len()
            )));
        }
        (Format::Csv, records) => csv::export(records)?.into_bytes(),
        (Format::CsvRuns, records) => report::csv::runs(records)?.into_bytes(),
        (Format::CsvNodes, records) => report::csv::nodes(records)?.into_bytes(),
        (Format::Markdown, records) => report::markdown::markdown(records, &benches).into_bytes(),
    };
    match &args.output {
        Some(file) => {
            std::fs::write(file, content).with_context(|| format!("cannot write {}", file.display()))?;
        }
        None => std::io::stdout().write_all(&content)?,
    }
    Ok(Exit::Done)
}

/// A run with the frames that it sent, where these can be made again.
fn bundle(record: &Record) -> Result<Vec<u8>> {
    let mut others = Vec::new();
    match frames::capture(record, FRAMES) {
        Ok(content) => others.push(File {
            name: "frames.pcap".to_owned(),
            meaning: format!(
                "the first frames as they left, {FRAMES} at most; their numbers and times are zero"
            ),
            content,
        }),
        Err(error) => eprintln!("linerate: the bundle has no frames: {}", in_one_line(&error)),
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut archive = Vec::new();
    bundle::write(record, others, now, &mut archive)?;
    Ok(archive)
}
