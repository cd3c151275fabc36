//! What tests of the engines in user space share: frame tables, and trials.
#![allow(dead_code, clippy::unwrap_used)] // each test binary uses a part of it; a test may panic

use std::time::{Duration, Instant};

use engine::{Counts, Engine, Load};
use traffic::{Directions, Endpoint, Endpoints, FrameTable, Profile, Tunables};
use wire::MacAddress;

pub fn table(tunables: &Tunables, directions: Directions) -> FrameTable {
    let mac = |last| MacAddress([2, 0, 0, 0, 0, last]);
    let endpoints = Endpoints([
        Endpoint { source: mac(1), destination: mac(2) },
        Endpoint { source: mac(2), destination: mac(1) },
    ]);
    Profile::builtin("bench", tunables).unwrap().table(&endpoints, directions)
}

pub fn sized(size: &str, directions: Directions) -> FrameTable {
    let tunables = Tunables { size: size.parse().ok(), vm: "var2".parse().ok(), ..Tunables::default() };
    table(&tunables, directions)
}

/// The counts of an interval of `load`, when its last frames have returned: a worker that does not get
/// its core hears of the interval's end later.
pub fn trial(engine: &mut dyn Engine, load: Load, milliseconds: u64) -> Vec<Counts> {
    let interval = engine.begin(load).unwrap();
    engine.wait(Duration::from_millis(milliseconds)).unwrap();
    engine.begin(Load::Idle).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut before = Vec::new();
    loop {
        engine.wait(Duration::from_millis(50)).unwrap();
        let counts = engine.counts(interval).unwrap();
        if (counts == before && counts.iter().all(is_accounted_for)) || Instant::now() > deadline {
            return counts;
        }
        before = counts;
    }
}

/// Whether every frame that was due is offered or unsent; a direction's share may be off by one.
pub fn is_accounted_for(counts: &Counts) -> bool {
    ((counts.offered + counts.unsent) as f64 - counts.intended).abs() < 3.0
}
