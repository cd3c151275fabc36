//! What the page's script draws of a bench; `page/src/bench-data.ts` has the same types.

use results::Record;
use results::bench::Axis;
use results::record::Finding;
use serde::Serialize;

use super::super::{anchor, place};
use crate::bench::{Bench, Cell, Test};
use crate::comparison::Comparison;
use crate::nodes::{Graph, Load, graphs};

/// The figures of a bench.
#[derive(Serialize)]
pub struct Chart<'a> {
    /// What the figures are, in a word.
    metric: String,
    /// `pps`, `ns` or `share`.
    unit: &'static str,
    axis: Option<&'a Axis>,
    duts: Vec<Dut<'a>>,
    tests: Vec<ChartTest<'a>>,
    nodes: Vec<ChartGraph>,
}

#[derive(Serialize)]
struct Dut<'a> {
    name: &'a str,
    /// What its records call it, like `linux-router`, whatever its settings; empty without a record.
    kind: &'a str,
    /// Its place among the page's devices.
    device: usize,
    at: Option<f64>,
    baseline: bool,
}

#[derive(Serialize)]
struct ChartTest<'a> {
    profile: &'a str,
    direction: &'a str,
    at: Option<f64>,
    /// Of the devices, in their order.
    cells: Vec<Option<ChartCell>>,
}

#[derive(Serialize)]
struct ChartCell {
    median: f64,
    low: f64,
    high: f64,
    /// Whether from low to high is an interval of confidence; else it is all there is.
    interval: bool,
    runs: Vec<ChartRun>,
    mean_frame_size: f64,
    line_rate_bps: f64,
}

#[derive(Serialize)]
struct ChartRun {
    repeat: u32,
    value: f64,
    doubts: Vec<String>,
    anchor: String,
}

/// A device that is a graph of nodes, at constant loads.
#[derive(Serialize)]
struct ChartGraph {
    device: String,
    loads: Vec<ChartLoad>,
}

/// What a packet costs its nodes: clocks.
#[derive(Serialize)]
struct ChartLoad {
    name: String,
    /// Its place among the page's devices.
    device: usize,
    pps: f64,
    /// In the median run, and the least and the most of all.
    forwarding: f64,
    low: f64,
    high: f64,
    nodes: Vec<ChartNode>,
}

#[derive(Serialize)]
struct ChartNode {
    name: String,
    clocks: f64,
    per_call: f64,
}

impl<'a> Chart<'a> {
    /// What there is to draw of `bench`.
    pub fn new(bench: &'a Bench<'a>, comparison: &Comparison, records: &[Record]) -> Self {
        let duts = bench.description.duts.iter();
        let dut = |dut: &'a results::bench::Dut| Dut {
            name: &dut.name,
            kind: kind(bench, &dut.name),
            device: device(comparison, &dut.name),
            at: dut.at,
            baseline: bench.is_baseline_device(&dut.name),
        };
        let test = |test: &'a Test<'a>| ChartTest {
            profile: &test.profile.name,
            direction: test.direction,
            at: test.profile.at,
            cells: test.cells.iter().map(|cell| chart_cell(bench, cell, records)).collect(),
        };
        Self {
            metric: bench.metric.to_string(),
            unit: bench.metric.unit(),
            axis: bench.description.axis.as_ref(),
            duts: duts.map(dut).collect(),
            tests: bench.tests.iter().map(test).collect(),
            nodes: graphs(bench).iter().map(|graph| chart_graph(graph, comparison)).collect(),
        }
    }
}

/// What records of the device that is called `name` call it.
fn kind<'a>(bench: &'a Bench, name: &str) -> &'a str {
    let mut cells = bench.tests.iter().flat_map(|test| &test.cells).filter(|cell| cell.dut.name == name);
    cells.find_map(Cell::median_run).map_or("", |run| &run.record.dut.name)
}

/// The place of the device that is called `name` among the page's.
fn device(comparison: &Comparison, name: &str) -> usize {
    comparison.duts.iter().position(|dut| dut == name).unwrap_or(0)
}

/// Runs whose load changes have no place on an axis of loads.
fn chart_graph(graph: &Graph, comparison: &Comparison) -> ChartGraph {
    let constant = graph.loads.iter().filter(|load| load.run.record.finding == Finding::Saturate);
    let chart_load = |load: &Load| {
        let nodes = load.costs.on_the_way().map(|node| ChartNode {
            name: node.name.to_owned(),
            clocks: node.per_packet(),
            per_call: node.vectors_per_call(),
        });
        Some(ChartLoad {
            name: load.name(graph),
            device: device(comparison, &load.cell.dut.name),
            pps: load.forwarded_pps().filter(|pps| *pps > 0.0)?,
            forwarding: load.costs.forwarding,
            low: load.range.0,
            high: load.range.1,
            nodes: nodes.collect(),
        })
    };
    ChartGraph { device: graph.device.clone(), loads: constant.filter_map(chart_load).collect() }
}

fn chart_cell(bench: &Bench, cell: &Cell, records: &[Record]) -> Option<ChartCell> {
    let spread = bench.spread(cell)?;
    let record = cell.median_run()?.record;
    let mut runs = Vec::new();
    for repeat in &cell.repeats {
        let Ok(reading) = &repeat.reading else { continue };
        runs.push(ChartRun {
            repeat: repeat.number,
            value: reading.value,
            doubts: reading.doubts.clone(),
            anchor: anchor(place(records, repeat.record)),
        });
    }
    Some(ChartCell {
        median: spread.median,
        low: spread.low,
        high: spread.high,
        interval: spread.is_interval,
        runs,
        mean_frame_size: record.profile.mean_frame_size,
        line_rate_bps: record.line_rate_bps,
    })
}
