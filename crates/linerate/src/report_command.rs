//! `linerate report`: records enter, one HTML page leaves.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use results::{Record, store};

use crate::Ending;
use crate::misuse::in_one_line;
use crate::progress::colour;

#[derive(clap::Args)]
pub struct Args {
    /// Directories of records, or single records
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// The page to write
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// What the page is called
    #[arg(long, default_value = "Linerate load tests")]
    title: String,
}

pub fn main(args: &Args) -> Result<Ending> {
    let records = load(&args.runs)?;
    eprintln!("{}", report::terminal::matrix(&records, colour()));
    write(&records, &args.title, &args.output)?;
    Ok(Ending::Done)
}

/// All records of the directories and files in `paths`.
pub fn load(paths: &[PathBuf]) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    for path in paths {
        if path.is_dir() {
            let loaded = store::load_all(path)?;
            for warning in loaded.warnings {
                eprintln!("linerate: passed over: {}", in_one_line(&warning.into()));
            }
            records.extend(loaded.records);
        } else {
            records.push(store::load(path)?);
        }
    }
    if records.is_empty() {
        bail!("no records found: name a directory that `linerate ramp` or `linerate bench` wrote to");
    }
    Ok(records)
}

/// Writes the page of `records` to `file`.
pub fn write(records: &[Record], title: &str, file: &Path) -> Result<()> {
    let page = report::html::page(records, title)?;
    std::fs::write(file, page).with_context(|| format!("cannot write {}", file.display()))?;
    eprintln!("report: {}", file.display());
    Ok(())
}
