//! The program as it is built by default, without DPDK: what needs DPDK says so before anything runs.

#![allow(clippy::unwrap_used)] // a test may panic
#![cfg(not(feature = "dpdk"))]

mod common;

use common::{QUICK, has_namespaces, linerate};

#[test]
fn without_dpdk_its_places_are_refused_and_named() {
    let finished = linerate("generator --onto null").run();
    assert!(finished.refusal(2).contains("--features dpdk"), "{}", finished.stderr);
    let left_out = linerate("generator --onto --sizes 64 --cores 0 --duration 10ms").run().well();
    assert!(left_out.stderr.contains("net_memif are left out"), "{}", left_out.stderr);
    assert!(left_out.stderr.contains("\nmemif "), "{}", left_out.stderr);
}

#[test]
fn without_dpdk_its_engine_is_refused_with_the_remedy() {
    let finished = linerate("ramp --engine dpdk --dut testpmd").run();
    assert!(finished.refusal(2).contains("--features dpdk"), "{}", finished.stderr);
}

#[test]
fn without_dpdk_fastpath_forwards_in_the_lab() {
    if !has_namespaces() {
        return;
    }
    let line = format!("ramp --dut fastpath --flows var2 --rate 10kpps --json {QUICK}");
    let record = linerate(&line).run().well().record();
    assert!(record.directions[0].forwarded > 100, "{:?}", record.directions);
    assert!(record.nodes.iter().any(|node| node.name == "ip4-rewrite"), "{:?}", record.nodes);
}
