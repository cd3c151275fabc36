//! fastpath as a device over ports of DPDK: it forwards, says what its nodes did, and leaves nothing behind.

#![cfg(feature = "dpdk")]
#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use std::fs;
use std::time::Duration;

use common::{QUICK, eventually, has_namespaces, linerate, wait_until};
use nix::sys::signal::Signal;
use results::Record;

/// Fails if a router is left soon, or a file where it has its own.
fn assert_nothing_left() {
    let processes = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let is_router = |line: String| line.contains("user-space-router");
        all.filter(|entry| fs::read_to_string(entry.path().join("cmdline")).is_ok_and(is_router)).count()
    };
    assert!(wait_until(Duration::from_secs(30), || processes() == 0), "a process is left");
    for file in ["fastpath.sock", "fastpath.toml", "memif0.sock", "memif1.sock"] {
        assert!(!fs::exists(format!("/dev/shm/{file}")).unwrap(), "{file} is left");
    }
}

/// A short ramp with `flags`, in which more than a thousand frames came back and what the device counted is
/// known. Nothing where the machine is not at rest.
fn ramp(flags: &str) -> Option<Record> {
    eventually(|| {
        let line = format!("ramp --engine dpdk {flags} --vm var2 --target 10kpps --json {QUICK}");
        let finished = linerate(&line).run();
        let record = if finished.status.success() { finished.record() } else { return Err(finished.stderr) };
        let is_enough = record.directions.iter().all(|direction| direction.forwarded > 1000);
        // What is on its way when the device is asked is not yet counted there.
        let is_followed =
            !record.cross_check.is_empty() && record.cross_check.iter().all(|check| check.agrees);
        let is_known = is_followed && !record.nodes.is_empty();
        if is_enough && is_known {
            Ok(record)
        } else {
            Err(format!("{flags}: {:?} {:?}", record.directions, record.notes))
        }
    })
}

#[test]
fn it_routes_and_connects_both_protocols_in_both_directions() {
    if !has_namespaces() {
        return;
    }
    for (flags, node) in [
        ("--dut fastpath", "ip4-rewrite"),
        ("--dut fastpath --ip 6 --bidirectional", "ip6-rewrite"),
        ("--dut fastpath --size 9000", "ip4-lookup"),
        ("--dut fastpath:mode=xconnect --bidirectional", "l2-output"),
    ] {
        let Some(record) = ramp(flags) else { break };
        assert_eq!(record.dut.name, "fastpath", "{flags}");
        let text = &record.dut.configuration["command"];
        assert!(text.contains("[[interface]]") && text.contains("role=server"), "{text}");
        for check in &record.cross_check {
            let places: Vec<_> = check.points.iter().map(|point| point.place.as_str()).collect();
            assert!(places.iter().any(|place| place.contains("fastpath's port 0")), "{places:?}");
        }
        let found = record.nodes.iter().find(|found| found.name == node);
        let found = found.unwrap_or_else(|| panic!("{flags}: no {node} in {:?}", record.nodes));
        let forwarded: u64 = record.directions.iter().map(|direction| direction.forwarded).sum();
        assert!(found.meanwhile().unwrap().vectors >= forwarded, "{flags}: {found:?}");
    }
    assert_nothing_left();
}

#[test]
fn it_dies_with_a_run_that_is_killed_and_leaves_nothing() {
    if !has_namespaces() {
        return;
    }
    let line = "saturate --engine dpdk --dut fastpath --rate 1kpps --warm-up-duration 300ms --duration 30s";
    let mut running = linerate(line).start();
    running.wait_for_record(|record| record.samples.iter().any(|sample| sample.directions[0].forwarded > 0));
    running.signal(Signal::SIGKILL);
    assert_nothing_left();
}
