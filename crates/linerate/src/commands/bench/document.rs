//! What a bench found, for machines: its figures, what they prove and the records enter; one JSON
//! object leaves.

use report::bench::{Bench, Cell, Test};
use results::Record;
use serde_json::{Value, json};

use crate::commands::compare::comparison;

/// The schema of what `--json` prints.
const SCHEMA: &str = "linerate/bench/1";

/// All of it: `bench` if any run came to its end, and `missing` of those that were asked for.
pub fn document(name: &str, bench: Option<&Bench>, missing: usize, records: &[Record]) -> Value {
    json!({
        "schema": SCHEMA,
        "bench": name,
        "missing": missing,
        "metric": bench.map(|bench| bench.metric.to_string()),
        "unit": bench.map(|bench| bench.metric.unit()),
        "less_is_better": bench.map(|bench| bench.metric.less_is_better()),
        "confidence_percent": bench.map(|bench| bench.question.confidence.percent()),
        "equal_within": bench.map(|bench| bench.question.equal_within),
        "family": bench.map(|bench| bench.family),
        "baseline": bench.and_then(|bench| bench.description.baseline.as_ref()),
        "cells": bench.map(cells).unwrap_or_default(),
        "records": records,
    })
}

fn cells(bench: &Bench) -> Vec<Value> {
    let tests = bench.tests.iter();
    tests.flat_map(|test| test.cells.iter().map(move |found| cell(bench, test, found))).collect()
}

/// One cell: the figures of its repeats, and what they prove beside the baseline's.
fn cell(bench: &Bench, test: &Test, cell: &Cell) -> Value {
    let repeats = cell.repeats.iter().map(|repeat| {
        let reading = repeat.reading.as_ref();
        json!({
            "repeat": repeat.number,
            "run": repeat.record.id,
            "value": reading.ok().map(|reading| reading.value),
            "resolution": reading.ok().map(|reading| reading.resolution),
            "doubts": reading.map_or_else(|missing| vec![missing.clone()], |reading| reading.doubts.clone()),
        })
    });
    let spread = bench.spread(cell).map(|spread| {
        json!({ "median": spread.median, "interval": [spread.low, spread.high], "proven": spread.is_interval })
    });
    json!({
        "cell": format!("{}/{}", cell.dut.name, test.name()),
        "device": cell.dut.name,
        "profile": test.profile.name,
        "direction": test.direction,
        "repeats": repeats.collect::<Vec<_>>(),
        "spread": spread,
        "comparison": cell.judged.as_ref().map(|judged| comparison(&bench.compared(test), judged)),
    })
}
