//! `linerate export`: records enter, the text of another format leaves on standard output.

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use results::export::{csv, trex_loadtest};
use results::store::Loaded;
use wording::usage::misuse;

use crate::Exit;
use crate::commands::report as report_command;

#[derive(clap::Args)]
pub struct Args {
    /// Directories of records, or single records
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// The format
    #[arg(long, short)]
    format: Format,
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
}

pub fn main(args: &Args) -> Result<Exit> {
    let Loaded { records, benches, .. } = report_command::load(&args.runs)?;
    match (args.format, records.as_slice()) {
        (Format::TrexLoadtest, [record]) => println!("{}", trex_loadtest::export(record)?),
        (Format::TrexLoadtest, _) => {
            return Err(misuse(format!(
                "trex-loadtest holds one run a file, and there are {}: name a single record",
                records.len()
            )));
        }
        (Format::Csv, records) => print!("{}", csv::export(records)?),
        (Format::CsvRuns, records) => print!("{}", report::csv::runs(records)?),
        (Format::CsvNodes, records) => print!("{}", report::csv::nodes(records)?),
        (Format::Markdown, records) => print!("{}", report::markdown::markdown(records, &benches)),
    }
    Ok(Exit::Done)
}
