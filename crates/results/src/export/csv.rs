//! Comma-separated values for spreadsheets: a record enters, one line for each sample and
//! direction leaves, with a header line (RFC 4180, decimal points, units in the names).

use serde::Serialize;

use crate::record::{DirectionSample, Phase, Record, Sample};

/// One line. Values that were not measured are empty.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    test: &'a str,
    dut: &'a str,
    phase: Phase,
    at_s: f64,
    duration_s: f64,
    direction: &'a str,
    intended_pps: f64,
    offered_pps: f64,
    forwarded_pps: f64,
    offered: u64,
    forwarded: u64,
    unsent: u64,
    loss_ratio: f64,
    l1_bps: f64,
    l2_bps: f64,
    line_rate_percent: f64,
    latency_min_ns: Option<u64>,
    latency_mean_ns: Option<f64>,
    latency_p50_ns: Option<u64>,
    latency_p99_ns: Option<u64>,
    latency_max_ns: Option<u64>,
    dut_core_busy: Option<f64>,
}

/// `records` as one table. A record that has no samples yet adds no line.
///
/// # Errors
/// None are known to occur: the text grows in memory and all lines have the same fields.
pub fn export(records: &[Record]) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in records {
        let dut = record.dut.label();
        for sample in &record.samples {
            for (at, direction) in sample.directions.iter().enumerate() {
                writer.serialize(line(record, &dut, sample, at, direction))?;
            }
        }
    }
    let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn line<'a>(
    record: &'a Record,
    dut: &'a str,
    sample: &Sample,
    at: usize,
    direction: &DirectionSample,
) -> Line<'a> {
    let latency = direction.latency.as_ref();
    Line {
        id: &record.id,
        test: &record.test,
        dut,
        phase: sample.phase,
        at_s: sample.at_s,
        duration_s: sample.duration_s,
        direction: ["0->1", "1->0"].get(at).copied().unwrap_or("?"),
        intended_pps: direction.intended_pps,
        offered_pps: direction.offered_pps,
        forwarded_pps: direction.forwarded_pps,
        offered: direction.offered,
        forwarded: direction.forwarded,
        unsent: direction.unsent,
        loss_ratio: direction.loss_ratio,
        l1_bps: direction.l1_bps,
        l2_bps: direction.l2_bps,
        line_rate_percent: direction.l1_bps / record.line_rate_bps * 100.0,
        latency_min_ns: latency.map(|l| l.min_ns),
        latency_mean_ns: latency.map(|l| l.mean_ns),
        latency_p50_ns: latency.map(|l| l.p50_ns),
        latency_p99_ns: latency.map(|l| l.p99_ns),
        latency_max_ns: latency.map(|l| l.max_ns),
        dut_core_busy: sample.dut_core_busy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Scenario;

    #[test]
    fn one_line_for_each_sample_and_direction() {
        let records = [Scenario { bidirectional: true, ramp_samples: 2, ..Scenario::default() }.record()];
        let text = export(&records).unwrap();
        assert_eq!(text.lines().count(), 1 + 2 * records[0].samples.len());
        let lines: Vec<_> = text.lines().take(2).chain(text.lines().skip(7).take(2)).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn names_are_quoted_and_unmeasured_values_empty() {
        let mut record = Scenario { ramp_samples: 1, ..Scenario::default() }.record();
        record.test = "64b, \"fast\"".to_owned();
        record.samples[0].dut_core_busy = None;
        record.samples[0].directions[0].latency = None;
        let text = export(&[record]).unwrap();
        let first = text.lines().nth(1).unwrap();
        assert!(first.contains(",\"64b, \"\"fast\"\"\","), "{first}");
        assert!(first.ends_with(",,,,,,"), "{first}");
    }
}
