//! Load tests in the lab: every device passes what every profile sends, and the record adds up.

use std::collections::BTreeMap;

use crate::common::{Finished, QUICK, REPOSITORY, eventually, has_namespaces, linerate};
use results::Record;
use results::record::{LimitedBy, Phase, Status};
use serde_json::Value;

/// How much later than an interval begins a busy machine may read the clock.
const CLOCK_S: f64 = 0.05;

/// Checks what must hold in every record: frames are neither invented nor forgotten.
fn adds_up(record: &Record) {
    assert_eq!(record.status, Status::Complete, "{:?}", record.reason);
    let last = record.samples.last().unwrap();
    assert!(last.at_s + last.duration_s <= record.elapsed_s + CLOCK_S, "samples outlast the run");
    let mut end = 0.0;
    for sample in &record.samples {
        assert!(sample.at_s >= end - CLOCK_S, "samples overlap at {} s", sample.at_s);
        end = sample.at_s + sample.duration_s;
        assert_eq!(sample.directions.len(), record.directions.len());
        for direction in &sample.directions {
            assert!(direction.forwarded <= direction.offered, "more came back than left: {direction:?}");
            let lost = (direction.offered - direction.forwarded) as f64 / direction.offered.max(1) as f64;
            assert!((direction.loss_ratio - lost).abs() < 1e-9, "{direction:?}");
            let offered = direction.offered_pps * sample.duration_s;
            assert!((offered - direction.offered as f64).abs() < 0.01, "{direction:?}");
        }
    }
    for (number, direction) in record.directions.iter().enumerate() {
        let samples = || record.samples.iter().map(|sample| &sample.directions[number]);
        assert_eq!(samples().map(|sample| sample.offered).sum::<u64>(), direction.offered);
        assert_eq!(samples().map(|sample| sample.forwarded).sum::<u64>(), direction.forwarded);
        assert_eq!(samples().map(|sample| sample.unsent).sum::<u64>(), direction.unsent);
        let latencies: u64 = direction.latency_ns.iter().map(|(_, count)| count).sum();
        assert_eq!(latencies, direction.forwarded, "each frame that came back has a latency");
        let departures: u64 = direction.lateness_ns.iter().map(|(_, count)| count).sum();
        assert_eq!(departures, direction.offered, "each frame that left was on time or late");
        assert_eq!((direction.duplicates, direction.returned), (0, 0));
        assert!(direction.max_rate_pps <= direction.max_forwarded_pps * 1.002 + 1.0, "{direction:?}");
    }
}

/// Whether nearly all frames of all directions passed. How many a busy machine left unsent is no
/// matter of the device's.
fn passes(record: &Record) -> Result<(), String> {
    for direction in &record.directions {
        let (offered, forwarded, unsent) = (direction.offered, direction.forwarded, direction.unsent);
        if offered < 200 || forwarded * 10 < offered * 9 {
            let what = format!("{}: {forwarded} of {offered} frames passed, {unsent} unsent", record.name);
            return Err(what);
        }
    }
    Ok(())
}

/// Runs `line` until nearly all passes, and checks each record.
fn must_pass(line: &str, check: impl Fn(&Record)) {
    eventually(|| {
        let record = linerate(line).arg("--json").run().well().record();
        adds_up(&record);
        check(&record);
        passes(&record)
    });
}

/// A third of a second at 2 kpps.
const BRIEF: &str = "--rate 2kpps --warm-up-duration 100ms --duration 300ms --step 100ms --drain 100ms";

#[test]
fn a_ramp_prints_its_record_on_standard_output_alone_and_keeps_the_same() {
    if !has_namespaces() {
        return;
    }
    let finished: Finished =
        linerate(&format!("ramp --dut linux-router {QUICK} --rate 2kpps --json")).run().well();
    adds_up(&finished.record());
    assert_eq!(finished.records(), [finished.record()]);
    assert!(
        finished.stderr.contains("linux-router") && finished.stderr.contains("0->1"),
        "{}",
        finished.stderr
    );
    assert!(finished.stderr.contains(&finished.record().id), "where the record is: {}", finished.stderr);

    let quiet = linerate(&format!("saturate --dut linux-router {BRIEF}")).run().well();
    assert_eq!(quiet.stdout, "", "standard output is for machines");
}

#[test]
fn a_record_has_what_its_schema_promises() {
    if !has_namespaces() {
        return;
    }
    let line =
        format!("ramp --dut linux-router:gro=off --flows var2 {QUICK} --rate 2kpps --name mine --json");
    let json = linerate(&line).run().well().json();
    let text = |pointer: &str| json.pointer(pointer).and_then(Value::as_str).unwrap_or("nothing").to_owned();
    let number = |pointer: &str| json.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
    assert_eq!(text("/schema"), "linerate/run/1");
    assert_eq!((text("/name"), text("/status")), ("mine".to_owned(), "complete".to_owned()));
    let command: Vec<&str> =
        json["command"].as_array().unwrap().iter().skip(1).flat_map(Value::as_str).collect();
    assert_eq!(command.join(" "), format!("{} --json", line.trim_end_matches(" --json")));

    assert_eq!(
        (text("/profile/name"), text("/profile/tunables/vm")),
        ("bench".to_owned(), "var2".to_owned())
    );
    assert_eq!((number("/profile/flows"), number("/profile/mean_frame_size")), (251.0, 64.0));
    assert_eq!(text("/strategy/name"), "ramp");
    let parameters: BTreeMap<String, String> =
        serde_json::from_value(json["strategy"]["parameters"].clone()).unwrap();
    for name in ["target", "ramp-duration", "hold-duration", "warm-up", "warm-up-duration", "step", "drain"] {
        assert!(parameters.contains_key(name), "{parameters:?}");
    }

    // The device and its configuration as the kernel tells it.
    assert_eq!(
        (text("/dut/name"), text("/dut/parameters/gro")),
        ("linux-router".to_owned(), "off".to_owned())
    );
    for (setting, value) in
        [("gro", "off"), ("ipv4-forwarding", "on"), ("ipv6-forwarding", "on"), ("mtu", "1500")]
    {
        assert_eq!(text(&format!("/dut/configuration/{setting}")), value, "{setting}");
    }

    // The machine.
    assert_eq!(text("/environment/linerate"), env!("CARGO_PKG_VERSION"));
    assert_eq!(
        text("/environment/kernel"),
        std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim()
    );
    assert!(number("/environment/cores") >= 1.0 && text("/environment/cpu") != "nothing");
    assert_eq!(number("/line_rate_bps"), 10e9);

    // The verdict.
    assert_eq!(json["directions"].as_array().unwrap().len(), 1);
    assert_eq!(text("/directions/0/name"), "0->1");
    let [lossless, forwarded] =
        ["max_rate_pps", "max_forwarded_pps"].map(|field| number(&format!("/directions/0/{field}")));
    assert!(lossless <= 2000.0 && (1.0..=2100.0).contains(&forwarded), "{lossless} {forwarded}");
    let near = |found: f64, right: f64| assert!((found / right - 1.0).abs() < 1e-6, "{found}, not {right}");
    near(number("/directions/0/l1_bps"), forwarded * 84.0 * 8.0);
    near(number("/directions/0/l2_bps"), forwarded * 64.0 * 8.0);
    near(number("/directions/0/line_rate_percent"), forwarded * 84.0 * 8.0 / 10e9 * 100.0);
    assert!(["dut", "line-rate", "tester", "unknown"].contains(&text("/directions/0/limited_by").as_str()));
}

#[test]
fn a_ramp_rises_in_equal_steps_and_reaches_its_target() {
    if !has_namespaces() {
        return;
    }
    let line = format!("ramp --dut xdp-xconnect {QUICK} --step 100ms --rate 4kpps");
    eventually(|| {
        let record = linerate(&line).arg("--json").run().well().record();
        adds_up(&record);
        let of = |phase| record.samples.iter().filter(move |sample| sample.phase == phase);
        let rise: Vec<f64> =
            of(Phase::Ramp).map(|sample| sample.directions[0].intended_pps.round()).collect();
        assert_eq!(rise, [800.0, 1600.0, 2400.0, 3200.0, 4000.0]);
        assert_eq!((of(Phase::WarmUp).count(), of(Phase::Hold).count()), (1, 2));
        assert!(of(Phase::Hold).all(|sample| sample.directions[0].intended_pps == 4000.0));
        let verdict = &record.directions[0];
        if verdict.limited_by != LimitedBy::LineRate || verdict.max_rate_pps < 3950.0 {
            return Err(format!("limited by {:?} at {} pps", verdict.limited_by, verdict.max_rate_pps));
        }
        Ok(())
    });
}

#[test]
fn a_target_is_a_share_of_the_line_rate() {
    if !has_namespaces() {
        return;
    }
    let line = format!("ramp --dut xdp-xconnect {QUICK} --line-rate 2mbps --rate 50% --json");
    let record = linerate(&line).run().well().record();
    assert_eq!(record.line_rate_bps, 2e6);
    let target = 1e6 / (84.0 * 8.0);
    let hold = record.samples.last().unwrap();
    assert!((hold.directions[0].intended_pps - target).abs() < 1e-6, "{hold:?}");
}

#[test]
fn every_device_passes_traffic_both_ways() {
    if !has_namespaces() {
        return;
    }
    for dut in
        ["linux-router", "linux-router:gro=off", "linux-bridge", "xdp-router", "xdp-xconnect", "calibrated"]
    {
        must_pass(&format!("saturate --dut {dut} {BRIEF} --bidirectional --flows var2"), |record| {
            assert_eq!(record.dut.label(), dut);
            assert_eq!(
                record.directions.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(),
                ["0->1", "1->0"]
            );
            assert!(record.profile.bidirectional);
        });
    }
}

#[test]
fn routers_route_ipv6() {
    if !has_namespaces() {
        return;
    }
    for dut in ["linux-router", "xdp-router"] {
        must_pass(&format!("saturate --dut {dut} {BRIEF} --ip 6 --flows var2 --bidirectional"), |record| {
            assert_eq!(record.profile.tunables["ip"], "6");
        });
    }
}

#[test]
fn sizes_mix_as_on_the_internet() {
    if !has_namespaces() {
        return;
    }
    for flags in ["--size imix", "--profile imix", "--size imix --ip 6"] {
        must_pass(&format!("saturate --dut linux-router {BRIEF} {flags}"), |record| {
            let mean = record.profile.mean_frame_size;
            assert!((350.0..400.0).contains(&mean), "{mean}");
            // What came back had the sizes that left, as far as there is enough of it.
            let samples = record.samples.iter().map(|sample| &sample.directions[0]);
            for sample in samples.filter(|sample| sample.forwarded >= 100) {
                let size = sample.l2_bps / sample.forwarded_pps / 8.0;
                assert!((size / mean - 1.0).abs() < 0.2, "{size}, not {mean}");
            }
        });
    }
}

#[test]
fn tagged_frames_cross_bridges_and_cross_connects() {
    if !has_namespaces() {
        return;
    }
    for dut in ["linux-bridge", "xdp-xconnect"] {
        for vlan in ["100", "200,100"] {
            must_pass(&format!("saturate --dut {dut} {BRIEF} --vlan {vlan} --bidirectional"), |record| {
                assert_eq!(record.profile.tunables["vlan"], vlan);
            });
        }
    }
}

#[test]
fn the_shipped_profiles_pass() {
    if !has_namespaces() {
        return;
    }
    for (file, dut) in [
        ("mixed", "linux-bridge"),
        ("syn-flood", "linux-router"),
        ("million-flows", "xdp-router"),
        ("bursts", "xdp-xconnect"),
        ("gre-tunnel", "linux-router"),
        ("ipsec-esp", "linux-router"),
        ("pppoe-session", "linux-bridge"),
    ] {
        let path = format!("{REPOSITORY}/profiles/{file}.toml");
        must_pass(&format!("saturate --dut {dut} {BRIEF} --profile {path}"), |record| {
            assert_eq!(record.profile.name, file);
            assert_eq!(
                record.profile.source.as_deref(),
                Some(std::fs::read_to_string(&path).unwrap().as_str())
            );
        });
    }
}

#[test]
fn frames_of_the_engines_largest_size_pass() {
    if !has_namespaces() {
        return;
    }
    let largest = engine::xdp::MAX_FRAME;
    must_pass(&format!("saturate --dut xdp-xconnect {BRIEF} --size {largest}"), |record| {
        assert_eq!(record.profile.mean_frame_size, largest as f64);
    });
}

#[test]
fn what_the_receive_side_costs_the_device_is_stated() {
    if !has_namespaces() {
        return;
    }
    let record = linerate(&format!("saturate --dut linux-router {BRIEF} --json")).run().well().record();
    let receive = record.tester.receive_core.unwrap();
    if Some(receive) == record.dut.core {
        let note = record.notes.iter().find(|note| note.contains("tester RX and DUT share core"));
        assert!(note.is_some(), "{:?}", record.notes);
        let unknown = record.notes.iter().any(|note| note.contains("RX overhead on the DUT core: unknown"));
        let cost = record.tester.receive_cost_ns;
        assert!(unknown || cost.is_some_and(|cost| cost > 0.0), "the cost was not measured");
        assert_eq!(results::consistency::contradictions(&record), Vec::<String>::new());
    }
    assert!(
        record.samples.iter().any(|sample| sample.dut_core_busy.is_some()),
        "nothing says how busy the core was"
    );
}

#[test]
fn a_search_after_a_ramp_leaves_its_trials_and_every_frame_is_accounted_for() {
    if !has_namespaces() {
        return;
    }
    let line = "ramp --dut calibrated:rate=20kpps --line-rate 30mbps --duration 1s --step 50ms --hold-duration 200ms \
                --warm-up-duration 300ms --drain 100ms --search 1500ms --json";
    let record = linerate(line).run().well().record();
    assert_eq!(record.strategy.parameters["search"], "1.5s");
    let trials = record.finding.search().map_or(&[][..], |search| &search.trials);
    // A host may hide the limit: then there is nothing to search for.
    assert!(record.directions[0].limited_by != LimitedBy::Dut || !trials.is_empty());
    let sampled: u64 = record.samples.iter().map(|sample| sample.directions[0].offered).sum();
    let tried: u64 = trials.iter().map(|trial| trial.directions[0].offered).sum();
    assert_eq!(sampled + tried, record.directions[0].offered);
}
