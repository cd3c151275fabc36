//! Reads the export by the rules of trex-loadtest-viz's graph.rb.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::*;
use crate::fixtures::Scenario;

/// An object in the order of the text, as Ruby's JSON keeps it.
struct Ordered(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Ordered;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Ordered, M::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

#[derive(serde::Deserialize)]
struct Read {
    vars: Value,
    stats: Ordered,
}

/// One line of graph.rb's table.
#[derive(Debug, PartialEq)]
struct MaxPerformance {
    ok_pps: f64,
    pps: f64,
    line_rate_percent: f64,
}

impl Read {
    fn new(text: &str) -> Self {
        let read: Self = serde_json::from_str(text).unwrap();
        for key in ["warmup_mult", "warmup_duration", "rampup_target", "rampup_duration", "hold_duration"] {
            assert!(!read.vars[key].is_null(), "graph.rb fetches {key}");
        }
        assert!(read.vars["profile_file"].is_string());
        read
    }

    /// A value that Ruby divides as a float.
    fn value(second: &Value, port: &str, key: &str) -> f64 {
        let value = &second[port][key];
        assert!(value.is_f64(), "{port} {key} is {value}");
        value.as_f64().unwrap()
    }

    /// `eval_max_performance`, with its default threshold.
    fn max_performance(&self, from: &str, to: &str) -> MaxPerformance {
        let (mut ok, mut max) = (None, MaxPerformance { ok_pps: 0.0, pps: 0.0, line_rate_percent: 0.0 });
        for (_, second) in &self.stats.0 {
            let tx = Self::value(second, from, "tx_pps");
            let rx = Self::value(second, to, "rx_pps");
            let loss = (tx - rx) / tx;
            assert!(loss.is_finite(), "to_json fails on {loss}");
            ok = if loss > 0.001 { ok.or(Some(rx)) } else { None };
            max.pps = max.pps.max(rx);
            max.line_rate_percent = max.line_rate_percent.max(Self::value(second, to, "rx_util")).min(100.0);
        }
        max.ok_pps = ok.unwrap_or(max.pps);
        max
    }
}

#[test]
fn the_reader_finds_the_verdict_of_both_directions() {
    let mut record = Scenario { bidirectional: true, ..Scenario::default() }.record();
    for sample in &mut record.samples {
        // Make the directions different, so that exchanged ports are noticed.
        let reverse = &mut sample.directions[1];
        reverse.forwarded_pps /= 2.0;
        reverse.l1_bps /= 2.0;
    }
    let read = Read::new(&export(&record).unwrap());
    assert_eq!(read.vars["unidirectional"], false);
    assert_eq!(read.stats.0.len(), 77);
    let [forth, back] = [0, 1].map(|at| &record.directions[at]);
    let found = read.max_performance("0", "1");
    assert!((found.pps - forth.max_forwarded_pps).abs() < 1.0, "{found:?}");
    assert!((found.line_rate_percent - forth.line_rate_percent).abs() < 0.01, "{found:?}");
    assert!((found.ok_pps / forth.max_rate_pps - 1.0).abs() < 0.05, "{found:?}");
    let found = read.max_performance("1", "0");
    assert!((found.pps - back.max_forwarded_pps / 2.0).abs() < 1.0, "{found:?}");
}

#[test]
fn seconds_are_in_order_and_vars_as_carried_out() {
    let record = Scenario { target: 0.97, ..Scenario::default() }.record();
    let read = Read::new(&export(&record).unwrap());
    let numbers: Vec<usize> = read.stats.0.iter().map(|(number, _)| number.parse().unwrap()).collect();
    assert_eq!(numbers, (0..77).collect::<Vec<_>>());
    insta::assert_snapshot!(read.vars, @r#"{"hold_duration":7,"profile_file":"64 B unidirectional","rampup_duration":70,"rampup_target":"97%","unidirectional":true,"warmup_duration":3,"warmup_mult":"1000pps"}"#);
}

#[test]
fn samples_of_other_lengths_become_seconds() {
    let mut record = Scenario { ramp_samples: 4, ..Scenario::default() }.record();
    let ramp = record.samples.iter_mut().filter(|sample| sample.phase != Phase::WarmUp);
    for (at, sample) in ramp.enumerate() {
        (sample.at_s, sample.duration_s) = (10.0 + at as f64 * 0.5, 0.5);
        sample.directions[0].offered_pps = at as f64 * 100.0;
    }
    let read = Read::new(&export(&record).unwrap());
    let offered: Vec<f64> =
        read.stats.0.iter().map(|(_, second)| Read::value(second, "0", "tx_pps")).collect();
    assert_eq!(offered, [50.0, 250.0, 450.0, 650.0, 850.0, 1000.0]);
}

#[test]
fn a_second_in_which_nothing_was_offered_loses_nothing() {
    let mut record = Scenario::default().record();
    for sample in &mut record.samples {
        sample.directions[0] = DirectionSample::default();
    }
    let read = Read::new(&export(&record).unwrap());
    let found = read.max_performance("0", "1");
    assert_eq!(found, MaxPerformance { ok_pps: NOTHING, pps: NOTHING, line_rate_percent: 0.0 });
}

#[test]
fn a_record_without_samples_is_refused() {
    let mut record = Scenario::default().record();
    record.samples.clear();
    assert!(matches!(export(&record), Err(Error::NoSamples { .. })));
}
