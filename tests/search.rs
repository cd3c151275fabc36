//! Searches for limits that are known: devices of capacities that nobody told the search.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{has_namespaces, linerate};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use results::record::GoalResult;
use stats::Random;

/// A machine may be disturbed for longer than this many take.
const SEARCHES: usize = 3;
/// As long as a capacity takes on a machine at rest, and as much again.
const SEARCH: &str = "search --max-duration 50s --json --dut";
/// What a device's queue of 256 frames hides by design.
const HIDDEN: f64 = 0.0025;

/// Another one in each process, from 30 k to 400 k, even on a logarithmic scale.
fn drawn(number: u64) -> f64 {
    let seed = u64::from(std::process::id()) * 16 + number;
    (30_000.0 * (400.0_f64 / 30.0).powf(Random::new(seed).uniform())).round()
}

/// The NDR that a search finds for a device of `capacity`.
fn ndr(capacity: f64) -> GoalResult {
    let record = linerate(SEARCH).arg(format!("calibrated:rate={capacity}pps")).run().well().record();
    let ndr = record.directions[0].results["ndr"];
    assert_eq!(record.results["ndr"], ndr, "one direction is the sum");
    ndr
}

/// Whether what is said of the capacity is true, however wide the interval.
fn holds(capacity: f64, ndr: &GoalResult) -> bool {
    ndr.lower_pps <= capacity * (1.0 + HIDDEN) && ndr.upper_pps.is_none_or(|upper| upper >= capacity)
}

#[test]
fn a_capacity_that_nobody_told_is_found_within_half_a_percent() {
    if !has_namespaces() {
        return;
    }
    let capacity = drawn(0);
    let mut wrong = Vec::new();
    for _ in 0..SEARCHES {
        let found = ndr(capacity);
        let near = (found.pps / capacity - 1.0).abs() <= 0.005 && holds(capacity, &found);
        match (near, found.disturbed || found.irregular.is_some()) {
            (true, false) => return,
            (false, false) => wrong.push(found),
            (_, true) => assert!(holds(capacity, &found), "{capacity}: {found:?}"),
        }
    }
    assert_eq!(wrong, [], "{capacity}");
    eprintln!("skipped: the machine was not at rest in {SEARCHES} searches, and they said so");
}

/// Burns `core` for up to 50 ms, then rests for up to 200 ms, over and over, until told.
fn burn(core: usize, stop: &AtomicBool) {
    let mut cores = CpuSet::new();
    cores.set(core).unwrap();
    sched_setaffinity(Pid::from_raw(0), &cores).unwrap();
    let mut random = Random::new(core as u64);
    while !stop.load(Ordering::Relaxed) {
        let end = Instant::now() + Duration::from_millis(50).mul_f64(random.uniform());
        while Instant::now() < end {}
        thread::sleep(Duration::from_millis(200).mul_f64(random.uniform()));
    }
}

#[test]
fn beside_processes_that_burn_all_cores_a_search_is_never_silently_wrong() {
    if !has_namespaces() {
        return;
    }
    let capacity = drawn(1);
    let stop = AtomicBool::new(false);
    let found = thread::scope(|scope| {
        for core in lab::placement::online().unwrap() {
            let stop = &stop;
            scope.spawn(move || burn(core, stop));
        }
        let found = ndr(capacity);
        stop.store(true, Ordering::Relaxed);
        found
    });
    let near = (found.pps / capacity - 1.0).abs() <= 0.02;
    assert!(near || (found.disturbed && holds(capacity, &found)), "{capacity}: {found:?}");
}

#[test]
fn the_record_has_what_scripts_read() {
    if !has_namespaces() {
        return;
    }
    let line = "search --max-duration 8s --goal ndr --goal pdr --json --dut calibrated:rate=50kpps";
    let printed = linerate(line).run().well().json();
    for results in [&printed["results"], &printed["directions"][0]["results"]] {
        for goal in ["ndr", "pdr"] {
            let found = &results[goal];
            let number = |key: &str| found[key].as_f64();
            assert!(number("pps").unwrap() >= number("lower_pps").unwrap(), "{found}");
            assert!(number("upper_pps").is_none_or(|upper| upper > 0.0), "{found}");
        }
    }
    assert!(printed["elapsed_s"].as_f64().unwrap() <= 9.0);
    assert!(printed["disturbed"].is_boolean() && printed["limited_by"].is_string());
}
