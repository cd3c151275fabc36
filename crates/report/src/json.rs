//! What a bench or a comparison found, for machines: figures and what they prove enter; JSON leaves.

use results::Record;
use serde_json::{Value, json};
use stats::comparison::{Outlook, Verdict};

use crate::bench::{Bench, Cell, Contrast, Test};
use crate::judgement::{Compared, Judged, verdict_word};

/// The schema of a bench.
const BENCH_SCHEMA: &str = "linerate/bench/1";

/// A bench: `bench` if any run came to its end, how many runs are `missing` of those that were asked for, and the
/// records.
#[must_use]
pub fn bench(name: &str, bench: Option<&Bench>, missing: usize, records: &[Record]) -> Value {
    json!({
        "schema": BENCH_SCHEMA,
        "bench": name,
        "missing": missing,
        "metric": bench.map(|bench| bench.metric.to_string()),
        "unit": bench.map(|bench| bench.metric.unit()),
        "less_is_better": bench.map(|bench| bench.metric.less_is_better()),
        "confidence_percent": bench.map(|bench| bench.question.confidence.percent()),
        "equal_within": bench.map(|bench| bench.question.equal_within),
        "family": bench.map(|bench| bench.family),
        "compare": bench.map(|bench| bench.description.compare),
        "baseline": bench.and_then(|bench| bench.description.baseline.as_ref()),
        "cells": bench.map(cells).unwrap_or_default(),
        "records": records,
    })
}

fn cells(bench: &Bench) -> Vec<Value> {
    let contrasts = bench.contrasts();
    let what = |cell: &Cell| {
        let is_its =
            |contrast: &&Contrast| contrast.others.iter().any(|member| std::ptr::eq(member.cell, cell));
        contrasts.iter().find(is_its).map(|contrast| bench.compared(contrast))
    };
    let cells = bench.tests.iter().flat_map(|test| test.cells.iter().map(move |cell| (test, cell)));
    cells.map(|(test, found)| cell(bench, test, found, what(found).as_ref())).collect()
}

/// One cell: the figures of its repeats, and what they prove beside the baseline's, if it is compared with that (`what`).
fn cell(bench: &Bench, test: &Test, cell: &Cell, what: Option<&Compared>) -> Value {
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
        "comparison": what.zip(cell.judged.as_ref()).map(|(what, judged)| comparison(what, judged)),
    })
}

/// One comparison, for machines; changes are shares of the reference.
#[must_use]
pub fn comparison(what: &Compared, judged: &Judged) -> Value {
    let found = &judged.comparison;
    let more = match found.verdict {
        Verdict::NotProven(Outlook::Repeats(more)) => Some(more),
        _ => None,
    };
    json!({
        "group": judged.name,
        "reference": what.reference,
        "verdict": verdict_word(found.verdict, what.words),
        "differs": found.differs,
        "more_repeats": more,
        "change": found.change,
        "interval": found.interval,
        "t_test": if found.signed_rank_p.is_some() { "student_by_round" } else { "welch" },
        "t_p": found.t_p,
        "t_p_adjusted": found.t_p_adjusted,
        "equality_p_adjusted": found.equality_p_adjusted,
        "mann_whitney_p": found.rank_p,
        "wilcoxon_p": found.signed_rank_p,
        "hodges_lehmann": found.shift.map(|(shift, interval)| json!({"change": shift, "interval": interval})),
        "medians": judged.medians.map(|medians| json!({"ratio": medians.ratio, "interval": medians.interval})),
        "ministat_differs": found.ministat,
        "practices_disagree": found.disagrees_with_ministat(),
        "regresses": judged.regresses,
    })
}
