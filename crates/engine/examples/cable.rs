//! How fast and how evenly this machine generates over a cable without a device.

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Duration;

use engine::{Engine, Load};

fn main() {
    let Some(ports) = common::cable() else { return };
    let table = common::table(&[64], 251, 1);
    let mut engine = common::start(&ports, &table);
    let cores = std::thread::available_parallelism().unwrap().get();
    common::receive_on(cores - 1);
    let rates = [1e3, 1e4, 1e5, 5e5, 1e6, 2e6, 4e6, 8e6];
    for load in rates.iter().map(|rate| Load::Rate(*rate)).chain([Load::Max, Load::Max, Load::Max]) {
        let interval = engine.begin(load).unwrap();
        engine.wait(Duration::from_secs(2)).unwrap();
        let before = engine.totals().unwrap();
        let next = engine.begin(Load::Idle).unwrap();
        engine.wait(Duration::from_millis(100)).unwrap();
        let counts = engine.counts(interval).unwrap()[0];
        let totals = &engine.totals().unwrap()[0];
        let _ = (before, next);
        println!(
            "{load:?}: intended {:.1} offered {} ({:+.4} %) unsent {} forwarded {} ({:.3} Mpps) latency min {} mean {:.0} max {} late p50 {:?} p99 {:?} dup {} reord {} foreign {}",
            counts.intended,
            counts.offered,
            (counts.offered as f64 / counts.intended - 1.0) * 100.0,
            counts.unsent,
            counts.forwarded,
            counts.forwarded as f64 / 2e6,
            counts.latency_min,
            counts.latency_sum as f64 / counts.forwarded.max(1) as f64,
            counts.latency_max,
            totals.lateness.percentile(50.0),
            totals.lateness.percentile(99.0),
            totals.duplicates,
            totals.reordered,
            totals.foreign
        );
    }
}
