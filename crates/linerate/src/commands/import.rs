//! `linerate import`: results of other programs enter, records leave.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use engine::Totals;
use results::Record;
use results::import::trex_loadtest::{self, Facts, Imported};
use results::store::Store;
use trial::verdict::Judge;
use wording::usage::misuse;

use crate::Exit;
use crate::args;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 256 << 20;

#[derive(clap::Args)]
pub struct Args {
    /// Files that trex-loadtest.py wrote, one run each
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The directory that records are kept in
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// What the device was
    #[arg(long, value_name = "NAME")]
    dut: Option<String>,
    /// What reports compare the runs under [default: from the profile]
    #[arg(long, value_name = "NAME")]
    test: Option<String>,
    /// The mean size of frames in bytes with FCS [default: that of TRex's imix.py and udp_1pkt_simple.py]
    #[arg(long, value_name = "BYTES", value_parser = frame_size)]
    frame_size: Option<f64>,
    /// Line rate (L1) that percentages refer to [default: from the ports' use in the file]
    #[arg(long, value_name = "RATE", value_parser = args::line_rate)]
    line_rate: Option<f64>,
    /// Loss threshold: a sample may lose this share of its frames
    #[arg(long, value_name = "SHARE", default_value = "0.1%", value_parser = args::share)]
    loss_threshold: f64,
}

pub fn main(args: &Args) -> Result<Exit> {
    // All are read before the first is written.
    let records: Vec<Record> = args.files.iter().map(|file| record(file, args)).collect::<Result<_>>()?;
    let store = Store::open(&args.runs)?;
    for mut record in records {
        let writer = store.create(&mut record)?;
        println!("{}", writer.path().display());
    }
    Ok(Exit::Done)
}

/// The record of one file, judged as a ramp of Linerate's is.
fn record(file: &Path, args: &Args) -> Result<Record> {
    let shown = file.display();
    let metadata = fs::metadata(file).with_context(|| format!("cannot read {shown}"))?;
    if metadata.len() > LARGEST {
        return Err(misuse(format!("{shown} has {} bytes: no results of trex-loadtest.py", metadata.len())));
    }
    let text = foreign::file::read_text(file, LARGEST).with_context(|| format!("cannot read {shown}"))?;
    let facts = Facts {
        dut: args.dut.clone(),
        name: file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned()),
        test: args.test.clone(),
        frame_size: args.frame_size,
        line_rate_bps: args.line_rate,
        loss_threshold: args.loss_threshold,
        written: metadata.modified().ok(),
        command: std::env::args().collect(),
    };
    let imported = trex_loadtest::read(&text).and_then(|loadtest| loadtest.record(facts));
    let Imported { mut record, target_pps, totals } =
        imported.map_err(|error| misuse(format!("{shown}: {error}")))?;
    let judge = Judge {
        loss_threshold: args.loss_threshold,
        line_rate_bps: record.line_rate_bps,
        target_pps: Some(target_pps),
        complete: record.status == results::record::Status::Complete,
    };
    let totals: Vec<Totals> = totals
        .into_iter()
        .map(|[offered, forwarded]| Totals { offered, forwarded, ..Totals::default() })
        .collect();
    record.directions = judge.directions(&record.samples, &totals);
    results::consistency::settle(&mut record);
    Ok(record)
}

fn frame_size(text: &str) -> Result<f64, String> {
    let size: Option<f64> = text.parse().ok().filter(|size| (64.0..=9_216.0).contains(size));
    size.ok_or_else(|| format!("'{text}' is no frame size: write 64 to 9216 bytes (FCS included)"))
}
