//! The tests of RFC 2544 on a device of known capacity, as people run them.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use std::time::Duration;

use common::{eventually, has_namespaces, linerate, machine, wait_until};
use results::Record;
use results::record::{LimitedBy, Status};

/// What the device forwards.
const CAPACITY: f64 = 100_000.0;

/// A line of 200 Mb/s carries 297,619 frames of 64 bytes a second: more than the device forwards,
/// and less than any tester sends.
const LINE: &str = "rfc2544 --quick --sizes 64 --line-rate 200mbps --dut calibrated:rate=100kpps --json";

fn records(line: &str) -> (Vec<Record>, String) {
    let _alone = machine();
    // Longer than a test usually waits for the program.
    let running = linerate(line).start();
    let ended = || running.records().iter().any(|record| record.status != Status::Running);
    wait_until(Duration::from_secs(180), ended);
    let finished = running.finish().well();
    (serde_json::from_str(&finished.stdout).unwrap(), finished.stderr)
}

#[test]
fn a_device_of_known_capacity_is_measured_in_all_tests() {
    if !has_namespaces() {
        return;
    }
    eventually(|| {
        let (records, stderr) = records(LINE);
        let [record] = records.as_slice() else { panic!("one size is one record: {}", records.len()) };
        assert_eq!((record.status, record.strategy.name.as_str()), (Status::Complete, "rfc2544"));
        assert_eq!(record.test, "rfc2544 64b quick");
        let found = record.rfc2544.as_ref().unwrap();
        for word in ["NOT CONFORMANT", "Throughput (26.1)", "deviation: short-trials", "reset-of-interfaces"]
        {
            assert!(stderr.contains(word), "{word} is missing: {stderr}");
        }
        assert!(found.quick && (found.theoretical_pps / 297_619.05 - 1.0).abs() < 1e-6);

        // What follows is true on a machine that is left alone long enough.
        let near = |what: &str, value: f64, truth: f64, tolerance: f64| {
            let close = (value / truth - 1.0).abs() <= tolerance;
            if close { Ok(()) } else { Err(format!("{what} of {value}, not {truth}")) }
        };
        let throughput = found.throughput.ok_or("no throughput")?;
        near("throughput", throughput.pps, CAPACITY, 0.03)?;
        if throughput.limited_by != LimitedBy::Dut {
            return Err(format!("limited by {:?}", throughput.limited_by));
        }
        let full = found.loss.first().ok_or("no loss rate")?;
        near("loss at line rate", full.loss_ratio, 1.0 - CAPACITY / found.theoretical_pps, 0.03)?;
        let lossless = found.loss.iter().rev().take(2).all(|point| point.loss_ratio == 0.0);
        if !lossless || found.loss.len() < 8 {
            return Err(format!("the loss curve does not end as it should: {:?}", found.loss));
        }
        let latency = found.latency.as_ref().ok_or("no latency")?;
        assert_eq!((latency.streams.len(), latency.mean_ns.len()), (2, 1));
        let bursts = found.back_to_back.as_ref().ok_or("no bursts")?;
        if bursts.bursts.len() != 3 || bursts.average <= 1.0 {
            return Err(format!("bursts are not as they should be: {bursts:?}"));
        }
        found.recovery.as_ref().ok_or("no recovery")?;
        let reset = found.reset.as_ref().ok_or("no reset")?;
        if !reset.came_back || reset.lost == 0 {
            return Err(format!("the reset is not as it should be: {reset:?}"));
        }
        Ok(())
    });
}

#[test]
fn genomes_and_256_networks_pass_a_router_that_is_reset() {
    if !has_namespaces() {
        return;
    }
    let line = "rfc2544 --quick --tests reset --sizes imix:aabg --networks 256 --line-rate 20mbps --json";
    eventually(|| {
        let (records, _) = records(&format!("{line} --dut linux-router"));
        let [record] = records.as_slice() else { panic!("one genome is one record") };
        assert_eq!((record.profile.mean_frame_size, record.profile.flows), (443.5, 256));
        let found = record.rfc2544.as_ref().unwrap();
        let reset = found.reset.as_ref().ok_or_else(|| format!("no reset: {:?}", found.not_run))?;
        if reset.came_back { Ok(()) } else { Err(format!("it did not come back: {reset:?}")) }
    });
}

#[test]
fn what_cannot_be_tested_is_refused() {
    let refused = linerate("rfc2544 --sizes imix:aj").run();
    assert!(refused.refusal(2).contains("16000 bytes"));
}
