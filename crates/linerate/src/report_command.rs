//! `linerate report`: records and certificates enter, one HTML page leaves.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use results::Record;
use results::certificate::Certificate;
use results::store::{self, Document, Loaded};

use crate::Ending;
use crate::misuse::in_one_line;
use crate::progress::colour;

#[derive(clap::Args)]
pub struct Args {
    /// Directories of records and certificates, or single ones
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
    let Loaded { records, certificates, .. } = load_all(&args.runs)?;
    if records.is_empty() && certificates.is_empty() {
        bail!("found nothing to report on: {NAME_ONE}, or a certificate of `linerate verify --json`");
    }
    if !records.is_empty() {
        eprintln!("{}", report::terminal::matrix(&records, colour()));
    }
    for certificate in &certificates {
        eprintln!("{}", report::terminal::certificate(certificate, colour()));
    }
    write(&records, &certificates, &args.title, &args.output)?;
    Ok(Ending::Done)
}

const NAME_ONE: &str = "name a directory that `linerate ramp` or `linerate bench` wrote to";

/// All records of the directories and files in `paths`.
pub fn load(paths: &[PathBuf]) -> Result<Vec<Record>> {
    let records = load_all(paths)?.records;
    if records.is_empty() {
        bail!("no records found: {NAME_ONE}");
    }
    Ok(records)
}

/// All that the directories and files in `paths` hold; says what was passed over in directories.
fn load_all(paths: &[PathBuf]) -> Result<Loaded> {
    let mut all = Loaded::default();
    for path in paths {
        if path.is_dir() {
            let loaded = store::load_all(path)?;
            for warning in loaded.warnings {
                eprintln!("linerate: passed over: {}", in_one_line(&warning.into()));
            }
            all.records.extend(loaded.records);
            all.certificates.extend(loaded.certificates);
        } else {
            match store::read(path)? {
                Document::Record(record) => all.records.push(*record),
                Document::Certificate(certificate) => all.certificates.push(*certificate),
            }
        }
    }
    Ok(all)
}

/// Writes the page of `records` and `certificates` to `file`.
pub fn write(records: &[Record], certificates: &[Certificate], title: &str, file: &Path) -> Result<()> {
    let written = File::create(file).map(BufWriter::new).and_then(|mut out| {
        report::html::write(records, certificates, title, &mut out)?;
        out.flush()
    });
    written.with_context(|| format!("cannot write {}", file.display()))?;
    eprintln!("report: {}", file.display());
    Ok(())
}
