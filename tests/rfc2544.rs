//! The tests of RFC 2544 on a device of known capacity, as people run them.

use crate::common::sites::Site;
use crate::common::{Linerate, eventually, has_namespaces, linerate};
use results::Record;
use results::record::{LimitedBy, Status};

/// What the device forwards.
const CAPACITY: f64 = 100_000.0;

/// A line of 200 Mb/s carries 297,619 frames of 64 bytes a second: more than the device forwards,
/// and less than any tester sends.
const LINE: &str = "rfc2544 --quick --sizes 64 --line-rate 200mbps --dut calibrated:rate=100kpps --json";

/// Its record of one size, and what it said to people.
fn record(command: &Linerate) -> (Record, String) {
    let finished = command.run().well();
    let records: Vec<Record> = serde_json::from_str(&finished.stdout).unwrap();
    let [record] = <[Record; 1]>::try_from(records).unwrap();
    (record, finished.stderr)
}

#[test]
fn a_device_of_known_capacity_is_measured_in_all_tests() {
    if !has_namespaces() {
        return;
    }
    eventually(|| {
        let (record, stderr) = record(&linerate(LINE));
        assert_eq!((record.status, record.strategy.name.as_str()), (Status::Complete, "rfc2544"));
        assert_eq!(record.test, "rfc2544 64 B quick");
        let found = record.finding.rfc2544().unwrap();
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
        let (record, _) = record(&linerate(line).arg("--dut").arg("linux-router"));
        assert_eq!((record.profile.mean_frame_size, record.profile.flows), (443.5, 256));
        let found = record.finding.rfc2544().unwrap();
        let reset = found.reset.as_ref().ok_or_else(|| format!("no reset: {:?}", found.not_run))?;
        if reset.came_back { Ok(()) } else { Err(format!("it did not come back: {reset:?}")) }
    });
}

#[test]
fn ipv6_passes_a_router_in_both_directions_at_once() {
    if !has_namespaces() {
        return;
    }
    let line = "rfc2544 --quick --tests loss --sizes 128 --ip 6 --bidirectional --line-rate 5mbps --json";
    eventually(|| {
        let (record, stderr) = record(&linerate(line).arg("--dut").arg("linux-router"));
        assert_eq!(
            (record.test.as_str(), record.directions.len()),
            ("rfc2544 128 B IPv6 bidirectional quick", 2)
        );
        assert!(
            stderr.contains("both directions at once") && !stderr.contains("bursts-over-ipv6"),
            "{stderr}"
        );
        let loss = &record.finding.rfc2544().unwrap().loss;
        let passed = |point: &results::record::LossPoint| point.loss_ratio == 0.0 && !point.tester_limited;
        if loss.iter().rev().take(2).all(passed) {
            Ok(())
        } else {
            Err(format!("frames were lost: {loss:?}"))
        }
    });
}

#[test]
fn a_device_between_real_ports_is_reset_by_a_command() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    site.far.run(
        "ip route add 198.18.0.0/16 via 100.65.1.2
         ip route add 198.19.0.0/16 via 100.65.2.2",
    );
    // The router forwards nothing for 400 ms.
    let forward = |on: u8| format!("nsenter --net={} sysctl -qw net.ipv4.ip_forward={on}", site.far.path());
    let command = format!("{}; sleep 0.4; {}", forward(0), forward(1));
    let line = "rfc2544 --quick --tests reset --sizes 128 --line-rate 5mbps --json \
                --ports eth1,eth2 --gateways 100.65.1.1,100.65.2.1";
    eventually(|| {
        let run = linerate(line).arg("--reset-command").arg(&command).inside(&site.tester);
        let (record, stderr) = record(&run);
        assert!(stderr.contains("deviation: reset-by-command: the reset is what 'nsenter"), "{stderr}");
        let found = record.finding.rfc2544().unwrap();
        let reset = found.reset.as_ref().ok_or_else(|| format!("no reset: {:?}", found.not_run))?;
        let back_s = reset.back_s.ok_or_else(|| format!("it is not back: {reset:?}"))?;
        let right = (0.35..1.0).contains(&reset.outage_s) && (0.35..1.2).contains(&back_s);
        if right { Ok(()) } else { Err(format!("the outage was one of 400 ms: {reset:?}")) }
    });
}

#[test]
fn what_cannot_be_tested_is_refused() {
    let refused = linerate("rfc2544 --sizes imix:aj").run();
    assert!(refused.refusal(2).contains("16000 bytes"));
}
