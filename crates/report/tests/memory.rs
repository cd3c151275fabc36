//! How much memory a report takes: alone in its process, so that no other test takes some of it.
#![allow(clippy::unwrap_used)] // a test may panic

#[allow(dead_code)] // other tests use the rest
mod kinds;
#[allow(dead_code)] // other tests use the rest
mod strategies;

use std::fs::{self, File};
use std::io::BufWriter;

use report::html::{self, Contents};
use results::store;

/// The most that a report on 2,000 records may take.
const MOST_BYTES: u64 = 500_000_000;

/// How long it takes is measured by `cargo bench -p report`: tests judge no speed.
#[test]
fn two_thousand_records_are_reported_on_in_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    for (at, record) in kinds::many(2_000).enumerate() {
        let file = directory.path().join(format!("{at:04}.json"));
        fs::write(file, serde_json::to_string(&record).unwrap()).unwrap();
    }
    let records = store::load_all(directory.path()).unwrap().records;
    assert_eq!(records.len(), 2_000);
    let mut page = BufWriter::new(File::create(directory.path().join("report.html")).unwrap());
    html::write(&Contents { records: &records, ..Contents::default() }, "Many", &mut page).unwrap();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"));
    let peak_bytes = peak.unwrap().trim().parse::<u64>().unwrap() * 1024;
    assert!(peak_bytes < MOST_BYTES, "{} MB at its peak", peak_bytes / 1_000_000);
}
