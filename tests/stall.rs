//! Stall searches in the lab: the rates at which a reference device stops are found, each stall is ended by a reset, and
//! one file has the evidence.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

use flate2::read::GzDecoder;
use results::Record;
use results::record::{Recovered, StallRange, StallSearch, StallVerdict, Status};

use crate::common::{eventually, has_namespaces, linerate};

/// Trials of a third of a second. The check whether the device forwards is made at a rate at which it does.
const BRIEF: &str = "--hold-duration 300ms --repeats 1 --steps 2 --warm-up 20kpps --warm-up-duration 100ms \
                     --json";
/// A rate in the lab is never as steady as a clock.
const JITTER: f64 = 0.03;

fn search(dut: &str, loads: &str) -> Record {
    let record = linerate(&format!("stall --dut {dut} {loads} --width 60% --drain 100ms {BRIEF}"))
        .run()
        .well()
        .record();
    assert_eq!((record.status, record.strategy.name.as_str()), (Status::Complete, "stall"));
    record
}

fn verdicts(found: &StallSearch) -> Vec<StallVerdict> {
    found.ranges.iter().map(|range| range.verdict).collect()
}

/// Whether the edge at `pps` lies where `range` begins.
fn begins_at(range: &StallRange, pps: f64) -> bool {
    range
        .above_pps
        .is_some_and(|above| above * (1.0 - JITTER) <= pps && pps <= range.from_pps * (1.0 + JITTER))
}

#[test]
fn the_rates_between_which_a_device_stalls_are_found_and_a_reset_ends_each_stall() {
    if !has_namespaces() {
        return;
    }
    eventually(|| {
        let dut = "calibrated:stall-rate=2kpps..10kpps,stall-time=100ms";
        let record = search(dut, "--lowest 1kpps --highest 20kpps");
        let found = record.finding.stall_search().unwrap();
        let edges = verdicts(found) == [StallVerdict::Forwards, StallVerdict::Stalls, StallVerdict::Forwards]
            && begins_at(&found.ranges[1], 2_000.0)
            && begins_at(&found.ranges[2], 10_000.0);
        if !edges {
            return Err(format!("{:?}, {:?}", found.ranges, record.notes));
        }
        for rate in found.rates.iter().filter(|rate| rate.verdict == StallVerdict::Stalls) {
            for seen in &rate.stalls {
                assert_eq!(seen.recovery, Recovered::ByReset, "{seen:?}");
                // The device itself says that it took frames and sent none on.
                let during = seen.stall.counters.during.device.unwrap();
                assert!(during.received > during.forwarded, "{seen:?}");
                if !(0.05..0.4).contains(&seen.after_s) {
                    return Err(format!("stalled after {} s", seen.after_s));
                }
            }
        }
        Ok(())
    });
}

#[test]
fn a_device_that_recovers_in_a_pause_is_not_reset_and_one_file_has_the_evidence() {
    if !has_namespaces() {
        return;
    }
    eventually(|| {
        let dut = "calibrated:stall-rate=..3kpps,stall-time=100ms,stall-ends=pause";
        let line =
            format!("stall --dut {dut} --lowest 2kpps --highest 8kpps --width 90% --drain 400ms {BRIEF}");
        let run = linerate(&line).run().well();
        let record = run.record();
        let found = record.finding.stall_search().unwrap();
        let stalled: Vec<_> = found.rates.iter().flat_map(|rate| &rate.stalls).collect();
        if verdicts(found) != [StallVerdict::Stalls, StallVerdict::Forwards] || stalled.is_empty() {
            return Err(format!("{:?}, {:?}", found.ranges, record.notes));
        }
        assert!(stalled.iter().all(|seen| seen.recovery == Recovered::ByItself), "{stalled:?}");
        assert!(
            run.stderr.contains("█") && run.stderr.contains("it forwarded again by itself"),
            "{}",
            run.stderr
        );

        let export = "export --format bundle --output stall.tar.gz runs";
        linerate(export).in_directory(&run.directory).run().well();
        let files = unpacked(&fs::read(run.directory.join("stall.tar.gz")).unwrap());
        assert_eq!(serde_json::from_slice::<Record>(&files["record.json"]).unwrap(), record);
        let frames = traffic::Capture::read(&files["frames.pcap"]).unwrap();
        assert_eq!(frames.frames[0].bytes.len(), 60, "64 bytes without FCS");
        let readme = String::from_utf8_lossy(&files["README.txt"]);
        assert!(readme.contains("linerate stall") || readme.contains(" stall --dut"), "{readme}");
        assert!(readme.contains("kpps: 0→1 stalled"), "{readme}");
        assert!(files.contains_key("stalls.csv") && files.contains_key("report.html"));
        Ok(())
    });
}

/// The files of an archive by their names.
fn unpacked(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    let mut files = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        files.insert(name, content);
    }
    files
}

#[test]
#[ignore = "takes half a minute: make test-long runs it"]
fn a_device_that_stalls_below_a_rate_or_above_one_or_never_is_found() {
    if !has_namespaces() {
        return;
    }
    use StallVerdict::{Forwards, Stalls};
    for (dut, expected, edge) in [
        ("calibrated:stall-rate=..3kpps,stall-time=100ms", vec![Stalls, Forwards], Some(3_000.0)),
        ("calibrated:stall-rate=30kpps..,stall-time=100ms", vec![Forwards, Stalls], Some(30_000.0)),
        ("calibrated", vec![Forwards], None),
        ("calibrated:rate=10kpps", vec![Forwards], None),
    ] {
        eventually(|| {
            let record = search(dut, "--lowest 500pps --highest 60kpps");
            let found = record.finding.stall_search().unwrap();
            let at_edge =
                edge.is_none_or(|edge| found.ranges.last().is_some_and(|last| begins_at(last, edge)));
            let is_found = verdicts(found) == expected && at_edge;
            is_found.then_some(()).ok_or_else(|| format!("{dut}: {:?}, {:?}", found.ranges, record.notes))
        });
    }
}

#[test]
fn what_cannot_be_searched_is_refused_with_the_remedy() {
    let refused = |line: &str, clue: &str| {
        let finished = linerate(&format!("stall {line}")).on_my_machine().run();
        assert!(finished.refusal(2).contains(clue), "no '{clue}' in: {}", finished.stderr);
    };
    refused("--lowest 2kpps --highest 1kpps", "exchange them");
    refused("--lowest 1pps --hold-duration 2s", "too few to tell a stall");
    refused("--repeats 0", "--repeats");
    refused("--reset-command reboot", "--ports");
    refused("--dut calibrated:stall-rate=5kpps", "two rates with ..");
}
