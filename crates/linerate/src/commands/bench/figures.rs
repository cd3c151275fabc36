//! The figure of a run: its record enters, a few words leave.

use report::metric::Metric;
use results::Record;

/// What `record` found first of all.
pub fn headline(record: &Record) -> String {
    let metric = Metric::headline(record);
    match metric.read(record) {
        Ok(reading) if reading.doubts.is_empty() => format!("{metric} {}", metric.show(reading.value)),
        Ok(reading) => format!("{metric} {} ({})", metric.show(reading.value), reading.doubts.join("; ")),
        Err(missing) => missing.to_string(),
    }
}
