//! How long a report on many records takes, and how much memory: `cargo bench -p report --bench report`.
//!
//! Each row is a process of its own, so that its peak of memory is its own.

#![allow(clippy::unwrap_used)] // a benchmark may end at its first error

#[allow(dead_code)] // tests use the rest
#[path = "../crates/report/tests/kinds/mod.rs"]
mod kinds;
#[allow(dead_code)] // tests use the rest
#[path = "../crates/report/tests/strategies/mod.rs"]
mod strategies;

use std::env;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use report::html::{self, Contents};
use results::store;

const COUNTS: [usize; 3] = [100, 500, 2_000];
/// The directory that a process of this benchmark reports on.
const DIRECTORY: &str = "LINERATE_RECORDS";

fn main() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        return report(Path::new(&directory));
    }
    println!("| records | read | page written | all | page | peak of memory |");
    println!("|---|---|---|---|---|---|");
    for count in COUNTS {
        let directory = tempfile::tempdir().unwrap();
        for (at, record) in kinds::many(count).enumerate() {
            let file = directory.path().join(format!("{at:05}.json"));
            fs::write(file, serde_json::to_string(&record).unwrap()).unwrap();
        }
        let status = Command::new(env::current_exe().unwrap()).env(DIRECTORY, directory.path()).status();
        assert!(status.unwrap().success());
    }
}

fn report(directory: &Path) {
    let started = Instant::now();
    let records = store::load_all(directory).unwrap().records;
    let read_s = started.elapsed().as_secs_f64();
    let file = directory.join("report.html");
    let mut page = BufWriter::new(File::create(&file).unwrap());
    html::write(&Contents { records: &records, ..Contents::default() }, "Many", &mut page).unwrap();
    drop(page);
    let all_s = started.elapsed().as_secs_f64();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak_kb: f64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB")?.trim().parse().ok())
        .unwrap();
    println!(
        "| {} | {read_s:.2} s | {:.2} s | {all_s:.2} s | {:.1} MB | {:.0} MB |",
        records.len(),
        all_s - read_s,
        file.metadata().unwrap().len() as f64 / 1e6,
        peak_kb / 1e3
    );
}
