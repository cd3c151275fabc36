//! Searches for limits that are known: devices of capacities that nobody told the search.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{has_namespaces, linerate};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use results::record::{GoalResult, LimitedBy};
use stats::Random;

/// A way to search, and the device that it suits.
struct Search {
    flags: &'static str,
    /// Frames that the device's queue holds.
    queue: u64,
    /// How far from the capacity the result may be.
    tolerance: f64,
    /// Searches after which the machine counts as one that does not come to rest.
    attempts: usize,
}

/// As the program searches by default.
const USUAL: Search =
    Search { flags: "search --time-limit 50s --json", queue: 256, tolerance: 0.005, attempts: 3 };
/// The same to half the precision and with a queue of a quarter, which takes a quarter of the time.
const BRIEF: Search = Search {
    flags: "search --goal ndr:width=1%,queue=64,initial=100ms,final=250ms,sum=1s --time-limit 20s \
            --warm-up-duration 300ms --drain 100ms --json",
    queue: 64,
    tolerance: 0.01,
    attempts: 2,
};

/// The same where the cores are taken from it: what it does not find by then, it says.
const HURRIED: Search = Search {
    flags: "search --goal ndr:width=1%,queue=64,initial=100ms,final=250ms,sum=1s --time-limit 10s \
            --warm-up-duration 300ms --drain 100ms --json",
    ..BRIEF
};

/// Another one in each process, from 30 k to 400 k, even on a logarithmic scale.
fn drawn(number: u64) -> f64 {
    let seed = u64::from(std::process::id()) * 16 + number;
    (30_000.0 * (400.0_f64 / 30.0).powf(Random::new(seed).uniform())).round()
}

impl Search {
    /// The NDR that it finds for a device of `capacity`.
    fn ndr(&self, capacity: f64) -> GoalResult {
        let dut = format!("calibrated:rate={capacity}pps,burst={}", self.queue);
        let record = linerate(self.flags).arg("--dut").arg(dut).run().well().record();
        let ndr = record.directions[0].results["ndr"];
        assert_eq!(record.finding.results()["ndr"], ndr, "one direction is the sum");
        ndr
    }

    /// Whether what is said of the capacity is true, however wide the interval. By design the device's queue
    /// may hide half of the width.
    fn holds(&self, capacity: f64, ndr: &GoalResult) -> bool {
        ndr.lower_pps <= capacity * (1.0 + self.tolerance / 2.0)
            && ndr.upper_pps.is_none_or(|upper| upper >= capacity)
    }

    /// Fails if it does not find a capacity that it was not told.
    fn finds(&self, capacity: f64) {
        let mut wrong = Vec::new();
        for _ in 0..self.attempts {
            let found = self.ndr(capacity);
            let near = (found.pps / capacity - 1.0).abs() <= self.tolerance && self.holds(capacity, &found);
            match (near, found.disturbed || found.irregular.is_some()) {
                (true, false) => return,
                (false, false) => wrong.push(found),
                (_, true) => assert!(self.holds(capacity, &found), "{capacity}: {found:?}"),
            }
        }
        assert_eq!(wrong, [], "{capacity}");
        eprintln!("skipped: the machine was not at rest in {} searches, and they said so", self.attempts);
    }
}

#[test]
fn a_capacity_that_nobody_told_is_found_within_one_percent() {
    if has_namespaces() {
        BRIEF.finds(drawn(0));
    }
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn a_capacity_that_nobody_told_is_found_within_half_a_percent() {
    if has_namespaces() {
        USUAL.finds(drawn(2));
    }
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
        let found = HURRIED.ndr(capacity);
        stop.store(true, Ordering::Relaxed);
        found
    });
    let near = (found.pps / capacity - 1.0).abs() <= 0.02;
    assert!(near || (found.disturbed && HURRIED.holds(capacity, &found)), "{capacity}: {found:?}");
}

#[test]
fn a_device_that_bursts_overflow_is_never_silently_low() {
    if !has_namespaces() {
        return;
    }
    let (capacity, line) =
        (889_000.0, "search --goal ndr:width=1%,initial=100ms,final=250ms,sum=1s --time-limit 15s --json");
    let record = linerate(line).arg("--dut").arg("calibrated:rate=889kpps,burst=64").run().well().record();
    let ndr = record.finding.results()["ndr"];
    let came: u64 =
        record.finding.trials().iter().flat_map(|trial| &trial.bursts).map(|(_, frames)| frames).sum();
    assert!(came > 100_000, "{came} frames came in bursts that were counted");
    let is_marked = ndr.limited_by == LimitedBy::Tester || ndr.disturbed || ndr.irregular.is_some();
    assert!(is_marked || ndr.upper_pps.is_some_and(|upper| upper >= capacity * 0.97), "{ndr:?}");
    if ndr.limited_by == LimitedBy::Tester {
        let named = record
            .notes
            .iter()
            .any(|note| note.contains("limited by tester: frames arrive in bursts of up to"));
        assert!(named || record.tester.self_test.is_some(), "{:?}", record.notes);
    }
}

#[test]
fn the_record_has_what_scripts_read() {
    if !has_namespaces() {
        return;
    }
    let line = "search --time-limit 3s --goal ndr --goal pdr --warm-up-duration 300ms --json --dut calibrated:rate=50kpps";
    let printed = linerate(line).run().well().json();
    for results in [&printed["results"], &printed["directions"][0]["results"]] {
        for goal in ["ndr", "pdr"] {
            let found = &results[goal];
            let number = |key: &str| found[key].as_f64();
            assert!(number("pps").unwrap() >= number("lower_pps").unwrap(), "{found}");
            assert!(number("upper_pps").is_none_or(|upper| upper > 0.0), "{found}");
        }
    }
    assert!(printed["elapsed_s"].as_f64().unwrap() <= 4.5);
    assert!(printed["disturbed"].is_boolean() && printed["limited_by"].is_string());
}
