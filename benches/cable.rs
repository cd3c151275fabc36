//! How fast and how evenly this machine generates over a cable without a device:
//! `cargo bench -p engine --bench cable`, as root, on an otherwise idle machine.

#![allow(clippy::unwrap_used)] // a benchmark may end at its first error

#[path = "../crates/engine/tests/common/mod.rs"]
mod common;

use std::time::Duration;

use engine::{Engine, Load};

const RATES: [f64; 8] = [1e3, 1e4, 1e5, 5e5, 1e6, 2e6, 4e6, 8e6];
const TRIAL: Duration = Duration::from_secs(2);
const DRAIN: Duration = Duration::from_millis(100);

fn main() {
    let Some(ports) = common::cable() else { return };
    let table = common::table(&[64], 251, 1);
    let mut engine = common::start(&ports, &table);
    common::receive_on(std::thread::available_parallelism().unwrap().get() - 1);
    println!("| load | offered against intended | forwarded | late p50 | late p99 | latency mean |");
    println!("|---|---|---|---|---|---|");
    for load in RATES.map(Load::Rate).into_iter().chain([Load::Max; 3]) {
        let before = engine.totals().unwrap().remove(0).lateness;
        let interval = engine.begin(load).unwrap();
        engine.wait(TRIAL).unwrap();
        engine.begin(Load::Idle).unwrap();
        engine.wait(DRAIN).unwrap();
        let counts = engine.counts(interval).unwrap()[0];
        let late = engine.totals().unwrap().remove(0).lateness.since(&before);
        let percentile = |percent| late.percentile(percent).map_or("–".into(), |ns| format!("{ns} ns"));
        println!(
            "| {load:?} | {} ({:+.4} %) | {:.3} Mpps | {} | {} | {:.0} ns |",
            counts.offered,
            (counts.offered as f64 / counts.intended - 1.0) * 100.0,
            counts.forwarded as f64 / TRIAL.as_secs_f64() / 1e6,
            percentile(50.0),
            percentile(99.0),
            counts.latency_sum as f64 / counts.forwarded.max(1) as f64,
        );
    }
}
