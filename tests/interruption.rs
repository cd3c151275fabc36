//! Bad luck: Ctrl-C, kill -9 at any moment, a full disk. What was measured stays, and nothing else.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::holdings::Holdings;
use crate::common::namespace::{Namespace, mount_memory};
use crate::common::{Running, has_namespaces, linerate, machine, records, wait_until};
use nix::sys::signal::Signal;
use results::Record;
use results::record::{Phase, Sample, Status};

/// A ramp of a minute.
const LONG: &str = "ramp --dut linux-router --rate 2kpps --step 100ms \
                    --warm-up-duration 500ms --duration 60s --drain 200ms";

#[test]
fn an_interrupted_run_keeps_what_was_measured_and_ends_at_once() {
    if !has_namespaces() {
        return;
    }
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let home = Namespace::new();
        let before = trace(&home);
        let mut run = linerate(LONG).arg("--json").inside(&home).start();
        let measured = |record: &Record| {
            record
                .samples
                .iter()
                .any(|sample| sample.phase == Phase::Ramp && sample.directions[0].offered > 0)
        };
        run.wait_for_record(measured);
        let holdings = Holdings::of(run.pid(), &home);
        let asked = Instant::now();
        run.signal(signal);
        let finished = run.finish();
        assert!(asked.elapsed() < Duration::from_secs(3), "{signal}: ended after {:?}", asked.elapsed());
        assert_eq!(finished.status.code(), Some(1), "{signal}: {}", finished.stderr);
        let record = finished.record();
        assert_eq!(record.status, Status::Interrupted, "{signal}");
        assert_eq!(finished.records(), std::slice::from_ref(&record), "{signal}");
        assert!(finished.stderr.contains("interrupted"), "{signal}: {}", finished.stderr);
        assert!(measured(&record) && record.directions[0].forwarded > 0, "{signal}");
        assert!(
            wait_until(Duration::from_secs(10), || holdings.remaining().is_empty()),
            "{:?}",
            holdings.remaining()
        );
        assert_eq!(trace(&home), before, "{signal}");
    }
}

#[test]
fn an_interrupted_bench_keeps_the_runs_that_are_complete_and_reports_them() {
    if !has_namespaces() {
        return;
    }
    let line = "bench --quick --dut xdp-xconnect --line-rate 10mbps --duration 300ms";
    let run = linerate(line).start();
    let runs = |run: &Running| run.stderr().matches("/8] ").count();
    assert!(wait_until(Duration::from_secs(30), || runs(&run) >= 1), "{}", run.stderr());
    run.signal(Signal::SIGINT);
    let finished = run.finish();
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    assert!(finished.directory.join("report.html").exists());
    let records = records(&finished.directory.join("runs/quick"));
    assert!((1..8).contains(&records.len()) && records[0].status == Status::Complete, "{}", records.len());
    assert!(records.iter().all(|record| record.status != Status::Running));
}

/// What must be as before once a process is dead: the namespace that it was started in.
fn trace(home: &Namespace) -> (Vec<String>, Vec<String>) {
    (home.interfaces(), home.abstract_sockets())
}

/// Kills `run`, which was started in `home`, and waits until nothing of it remains.
fn kill_and_look(run: Running, home: &Namespace, moment: &str) -> Holdings {
    let holdings = Holdings::of(run.pid(), home);
    run.signal(Signal::SIGKILL);
    assert_eq!(run.finish().status.code(), None, "{moment}: it had ended before");
    let mut remaining = Vec::new();
    let gone = wait_until(Duration::from_secs(10), || {
        remaining = holdings.remaining();
        remaining.is_empty()
    });
    assert!(gone, "{moment}: left behind: {remaining:?}");
    holdings
}

#[test]
fn killed_in_any_phase_a_run_leaves_its_record_and_nothing_else() {
    if !has_namespaces() {
        return;
    }
    let _machine = machine();
    let home = Namespace::new();
    let before = trace(&home);
    let line = "ramp --dut xdp-router --rate 2kpps --step 100ms --warm-up-duration 1500ms \
                --duration 1500ms --hold-duration 60s --drain 100ms";
    for phase in [Phase::WarmUp, Phase::Ramp, Phase::Hold] {
        let moment = format!("{phase:?}");
        let directory = tempfile::tempdir().unwrap();
        let mut run = linerate(line).inside(&home).in_directory(directory.path()).on_my_machine().start();
        run.wait_for_record(|record| record.samples.last().is_some_and(|sample| sample.phase == phase));
        let holdings = kill_and_look(run, &home, &moment);
        assert!(
            holdings.programs.len() >= 3,
            "{moment}: it held {holdings:?}: the test looks at the wrong things"
        );
        assert_eq!(trace(&home), before, "{moment}");

        let [record] = records(&directory.path().join("runs")).try_into().unwrap();
        assert_eq!(record.status, Status::Running, "{moment}");
        assert_eq!(record.samples.last().unwrap().phase, phase, "{moment}");
        let sent = |sample: &Sample| sample.directions[0].offered + sample.directions[0].unsent > 0;
        assert!(record.samples.iter().all(sent), "{moment}");
    }
}

#[test]
fn a_killed_latency_test_keeps_the_distributions_it_finished() {
    if !has_namespaces() {
        return;
    }
    let _machine = machine();
    let home = Namespace::new();
    let directory = tempfile::tempdir().unwrap();
    let line = "latency --dut xdp-xconnect --of 20kpps --loads 1kpps,10%,20%,30%,40%,50%,60% --duration 700ms \
                --warm-up-duration 200ms --drain 100ms";
    let mut run = linerate(line).inside(&home).in_directory(directory.path()).on_my_machine().start();
    let loads = |record: &Record| record.finding.latency().map_or(0, |latency| latency.loads.len());
    run.wait_for_record(|record| loads(record) >= 2);
    kill_and_look(run, &home, "two loads are measured");

    let [record] = records(&directory.path().join("runs")).try_into().unwrap();
    assert_eq!(record.status, Status::Running);
    assert!((2..7).contains(&loads(&record)), "{} loads", loads(&record));
    let found = record.finding.latency().unwrap();
    assert_eq!((found.reference_pps, found.searched), (Some(20_000.0), false));
    assert!(!found.unseen.is_empty());
    for (load, name) in found.loads.iter().zip(["1.00 kpps", "10%", "20%", "30%", "40%", "50%"]) {
        let distribution = &load.directions[0];
        let counted: u64 = distribution.histogram_ns.iter().map(|(_, count)| count).sum();
        assert_eq!((load.name.as_str(), counted), (name, distribution.forwarded));
        assert!(distribution.forwarded > 0, "{distribution:?}");
    }
}

#[test]
fn a_killed_lab_in_the_background_is_gone_and_its_name_is_free() {
    if !has_namespaces() {
        return;
    }
    let home = Namespace::new();
    let before = trace(&home);
    for _ in 0..2 {
        linerate("lab up doomed --dut linux-router").inside(&home).run().well();
        let labs = linerate("lab list --json").inside(&home).run().well().json();
        let pid = labs[0]["pid"].as_u64().unwrap() as u32;
        assert_eq!(labs[0]["name"], "doomed");
        let holdings = Holdings::of(pid, &home);
        assert!(!holdings.is_empty());
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), Signal::SIGKILL).unwrap();
        let mut remaining = Vec::new();
        let gone = wait_until(Duration::from_secs(10), || {
            remaining = holdings.remaining();
            remaining.is_empty() && trace(&home) == before
        });
        assert!(gone, "left behind: {remaining:?} {:?}", trace(&home));
    }
}

/// Every file of `directory`, byte for byte.
fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(directory).unwrap().flatten();
    files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap())).collect()
}

/// Writes zeros to `file` until `spare` bytes are left on its disk.
fn fill(file: &Path, spare: usize) {
    let mut file = File::create(file).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    let length = file.metadata().unwrap().len();
    file.set_len(length.saturating_sub(spare as u64)).unwrap();
}

#[test]
fn a_full_disk_is_named_and_earlier_records_stay_as_they_are() {
    if !has_namespaces() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    mount_memory(directory.path(), "256k").unwrap();
    let runs = directory.path().join("runs");
    let ramp = |flags: &str| {
        let line =
            "ramp --dut xdp-xconnect --rate 2kpps --warm-up-duration 200ms --drain 100ms --hold-duration 0s";
        linerate(&format!("{line} {flags}")).in_directory(directory.path()).run()
    };
    ramp("--duration 500ms").well();
    let earlier = contents(&runs);
    assert_eq!(earlier.len(), 1);

    // Full at the start: the run does not begin.
    fill(&directory.path().join("filler"), 0);
    let refused = ramp("--duration 500ms");
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("the disk is full"), "{}", refused.stderr);
    assert!(refused.stderr.contains("Free some space"), "{}", refused.stderr);
    assert_eq!(refused.stderr.matches("os error 28").count(), 1, "said more than once: {}", refused.stderr);
    assert_eq!(contents(&runs), earlier);

    // Full in the middle: room for the first states of the record, not for all samples.
    fill(&directory.path().join("filler"), 3 * 4096);
    let failed = ramp("--duration 4s --step 10ms");
    assert_eq!(failed.status.code(), Some(1), "{}", failed.stderr);
    assert!(failed.stderr.contains("the disk is full"), "{}", failed.stderr);
    let mut now = contents(&runs);
    for (name, bytes) in &earlier {
        assert_eq!(now.remove(name).as_ref(), Some(bytes), "{name} has changed");
    }
    now.retain(|name, _| !name.ends_with(".journal"));
    let [(name, _)] = now.into_iter().collect::<Vec<_>>().try_into().unwrap();
    let state = results::store::load(&runs.join(&name)).unwrap();
    assert!(state.status == Status::Running || state.status == Status::Failed, "{:?}", state.status);
}
