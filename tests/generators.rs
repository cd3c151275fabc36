//! `linerate generator`: other programs and our own in one lab, counted alike.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::common::sites::Site;
use crate::common::{Finished, REPOSITORY, eventually, has_namespaces, has_tool, linerate, wait_until};
use nix::sys::signal::Signal;
use results::record::{Generator, Status};

/// All generators, and what must be installed for each.
const GENERATORS: [(&str, &str); 12] = [
    ("linerate", "sh"),
    ("linerate-af-xdp", "sh"),
    ("linerate-memif", "sh"),
    ("linerate-null", "sh"),
    ("testpmd-memif", "dpdk-testpmd"),
    ("testpmd-null", "dpdk-testpmd"),
    ("iperf3", "iperf3"),
    ("trafgen", "trafgen"),
    ("tcpreplay", "tcpreplay"),
    ("testpmd-af_packet", "dpdk-testpmd"),
    ("testpmd-af_xdp", "dpdk-testpmd"),
    ("xdp-trafficgen", "xdp-trafficgen"),
];
/// Packets that a ring between the ends holds, and a burst more.
const RING: u64 = 1024 + 64;
/// What a generator says may differ by this share from what left: some still sends when it is asked.
const TOLERANCE: f64 = 0.02;

fn is_installed(tool: &str) -> bool {
    let there = has_tool(tool);
    if !there {
        eprintln!("skipped: {tool} is not installed");
    }
    there
}

fn generate(program: &str, datagram: u16) -> Finished {
    let brief = "--warm-up-duration 100ms --duration 300ms --step 100ms --cores 0 --json";
    linerate(&format!("generator --program {program} --datagram {datagram} {brief}")).run()
}

/// What a generator did, or why it cannot.
fn outcome(program: &str, datagram: u16) -> Result<Generator, String> {
    let finished = generate(program, datagram);
    if finished.status.code() == Some(1) && finished.stdout.is_empty() {
        return Err(finished.refusal(1).to_owned());
    }
    let record = finished.well().record();
    assert_eq!((record.status, record.strategy.name.as_str()), (Status::Complete, "generator"));
    let direction = &record.directions[0];
    // What was on its way when the measurement began counts at the far end alone: a ring full, at most.
    assert!(direction.forwarded > 0 && direction.forwarded <= direction.offered + RING, "{direction:?}");
    assert!(direction.max_forwarded_pps > 0.0);
    let generator = record.finding.generator().unwrap().clone();
    assert!(generator.left + generator.refused >= direction.offered, "{generator:?}");
    assert!(record.notes.iter().any(|note| note.contains(" left its port")), "{:?}", record.notes);
    Ok(generator)
}

#[test]
fn every_generator_is_counted_by_the_kernel_and_says_as_much_itself() {
    if !has_namespaces() {
        return;
    }
    for (program, _) in GENERATORS.into_iter().filter(|(_, tool)| is_installed(tool)) {
        let Some(()) = eventually(|| {
            let found = match outcome(program, 18) {
                Ok(found) => found,
                // Where huge pages are not free, or the kernel does not have what it needs.
                Err(reason) if matches!(program, "testpmd-af_xdp" | "xdp-trafficgen") => {
                    assert!(reason.contains("huge pages") || reason.contains("does not load"), "{reason}");
                    eprintln!("skipped: {reason}");
                    return Ok(());
                }
                // Where this program was built without DPDK.
                Err(reason) if program.ends_with("-null") && !cfg!(feature = "dpdk") => {
                    assert!(reason.contains("--features dpdk"), "{reason}");
                    eprintln!("skipped: {reason}");
                    return Ok(());
                }
                Err(reason) => panic!("{program}: {reason}"),
            };
            assert_eq!((found.program.as_str(), found.datagram), (program, 18));
            assert!(found.version.contains('.'), "{program}: version {}", found.version);
            let said = found.said.unwrap_or_else(|| panic!("{program} does not say what it sent"));
            let Generator { left, refused, .. } = found;
            // What a full queue refused, some take for sent, and others send again.
            let (least, most) =
                (left as f64 * (1.0 - TOLERANCE), (left + refused) as f64 * (1.0 + TOLERANCE));
            let agrees = (least..=most).contains(&(said as f64));
            agrees.then_some(()).ok_or(format!("{program} says {said}, {left} left, {refused} refused"))
        }) else {
            return;
        };
    }
}

#[test]
fn a_datagram_beyond_the_mtu_leaves_in_two_packets_or_is_refused() {
    if !has_namespaces() {
        return;
    }
    for (program, _) in GENERATORS.into_iter().filter(|(_, tool)| is_installed(tool)) {
        match outcome(program, 1500) {
            Ok(found) => {
                assert_eq!(found.frames, [1518, 66], "{program}");
                assert!(matches!(program, "iperf3" | "trafgen" | "tcpreplay"), "{program} sends fragments");
            }
            Err(reason) => {
                let is_absent = program.ends_with("-null") && !cfg!(feature = "dpdk");
                let clues = if is_absent { ["--features", "dpdk"] } else { ["no fragments", "choose"] };
                assert!(clues.iter().all(|clue| reason.contains(clue)), "{program}: {reason}");
                assert!(!matches!(program, "iperf3" | "trafgen" | "tcpreplay"), "{program}: {reason}");
            }
        }
    }
}

#[test]
fn a_file_defines_a_generator_and_real_interfaces_take_one_that_the_device_drops() {
    if !has_namespaces() || !is_installed("mausezahn") {
        return;
    }
    let file = Path::new(REPOSITORY).join("generators/mausezahn.toml");
    let brief = "--warm-up-duration 100ms --duration 300ms --step 100ms --cores 0 --json";
    let site = Site::cables();
    for place in ["", "--ports eth1,eth2"] {
        eventually(|| {
            let line = format!("generator --program {} {place} {brief}", file.display());
            let record = linerate(&line).inside(&site.tester).run().well().record();
            let found = record.finding.generator().unwrap();
            assert_eq!(
                (found.program.as_str(), found.said, found.frames.as_slice()),
                ("mausezahn", None, &[64][..])
            );
            assert!(found.command.iter().any(|word| word == "sp=9,dp=9"), "{:?}", found.command);
            let direction = &record.directions[0];
            assert!(direction.forwarded > 0 && found.left >= direction.forwarded, "{direction:?} {found:?}");
            let counted_here =
                record.notes.iter().any(|note| note.starts_with("what arrived was not counted"));
            assert_eq!(counted_here, !place.is_empty(), "{:?}", record.notes);
            Ok(())
        });
    }
}

#[test]
fn ports_that_take_no_redirected_frames_are_sent_to_by_af_xdp() {
    if !has_namespaces() {
        return;
    }
    let site = Site::cables();
    site.far.run("ethtool -K far1 gro off");
    site.tester.run("ip link set eth1 down && ip link set eth1 up");
    let line =
        "generator --ports eth1,eth2 --warm-up-duration 100ms --duration 300ms --step 100ms --cores 0 --json";
    let run = linerate(line).inside(&site.tester).run().well();
    let record = run.record();
    let found = record.finding.generator().unwrap();
    assert_eq!(
        (record.tester.engine.as_str(), found.program.as_str()),
        ("linerate-af-xdp", "linerate-af-xdp")
    );
    assert!(run.stderr.contains("engine: af_xdp, because"), "{}", run.stderr);
    assert!(record.directions[0].forwarded > 0, "{found:?}");
}

#[test]
fn a_generator_sends_across_a_device_and_is_counted_behind_it() {
    if !has_namespaces() || !is_installed("iperf3") || !is_installed("trafgen") {
        return;
    }
    let site = Site::router();
    let ports = "--ports eth1,eth2 --gateways 100.65.1.1,100.65.2.1";
    for (program, place, dut, address) in [
        ("iperf3", "", "linux-router", "100.65.2.2"),
        ("iperf3", "--dut linux-bridge", "linux-bridge", "198.19.0.1"),
        ("iperf3", ports, "ports", "100.65.2.2"),
        // That the port has no stand-in any more, the next one shows.
        ("trafgen", ports, "ports", ""),
    ] {
        let brief = "--warm-up-duration 100ms --duration 300ms --step 100ms --cores 0 --json";
        let line = format!("generator --program {program} --across {place} {brief}");
        let record = linerate(&line).inside(&site.tester).run().well().record();
        assert_eq!(record.dut.name, dut, "{line}");
        assert_eq!((record.status, record.test.as_str()), (Status::Complete, "18 B across"), "{line}");
        let found = record.finding.generator().unwrap();
        assert!(found.across && (address.is_empty() || found.command.iter().any(|word| word == address)));
        let [direction] = record.directions.as_slice() else { panic!("{:?}", record.directions) };
        assert!(direction.forwarded > 0 && direction.forwarded <= direction.offered + RING, "{direction:?}");
        assert!(found.left + found.refused >= direction.offered, "{line}: {found:?}");
        assert!(!record.notes.iter().any(|note| note.contains("was not counted")), "{:?}", record.notes);
    }
}

#[test]
fn a_waterfall_has_every_step_in_one_record() {
    if !has_namespaces() {
        return;
    }
    let line = "generator --waterfall --sizes 128 --cores 0 --onto memory,memif --warm-up-duration 100ms --duration 300ms \
                --step 100ms --json";
    let run = linerate(line).run().well();
    let record = run.record();
    let found = record.finding.generator().unwrap();
    let names: Vec<&str> = found.waterfall.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["memory", "memif", "af_xdp", "xdp"], "{:?}", record.notes);
    assert!(found.waterfall.iter().all(|step| step.ns_per_frame() > 0.0), "{found:?}");
    assert_eq!(found.built.len(), 2 * 2, "two places, 64 and 128 bytes: {found:?}");
    assert!(
        found.waterfall[3].pps >= record.directions[0].max_forwarded_pps * 0.5,
        "what a full queue refused counts"
    );
    assert!(run.stderr.contains("more than building it"), "{}", run.stderr);
}

#[test]
fn what_cannot_be_is_refused_with_the_remedy() {
    let refused = |line: &str, clues: &[&str]| {
        let finished = linerate(&format!("generator {line}")).on_my_machine().run();
        let refusal = finished.refusal(2);
        clues.iter().for_each(|clue| assert!(refusal.contains(clue), "no '{clue}' in: {refusal}"));
    };
    refused("--program pktgen", &["'pktgen'", "trafgen"]);
    refused("--datagram 0", &["'0'", "1 to 65507"]);
    refused("--ports a,b --program iperf3", &["iperf3", "leave --ports out"]);
    refused("--program /nonexistent.toml", &["/nonexistent.toml", "cannot read"]);
    refused("--program iperf3 --dut sink", &["iperf3", "--dut linux-router"]);
    refused("--program iperf3 --dut linux-bridge", &["iperf3", "--across"]);
    refused("--across --dut sink", &["comes out of a sink", "another --dut"]);
    refused("--across --program linerate-memif", &["linerate-memif", "leave --across out"]);
    refused("--duration 0s", &["duration"]);
}

/// The processes whose program is called so.
fn processes(name: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let named = |process: &Path| {
        fs::read_to_string(process.join("comm")).is_ok_and(|comm| comm.trim() == name)
            && process.join("exe").exists()
    };
    all.filter(|path| named(path)).map(|path| path.display().to_string()).collect()
}

#[test]
fn a_generator_ends_with_us_however_we_end() {
    if !has_namespaces() || !is_installed("trafgen") {
        return;
    }
    let before = processes("trafgen");
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let mut run = linerate("generator --program trafgen --duration 60s --step 100ms --cores 0").start();
        run.wait_for_record(|record| !record.samples.is_empty());
        // It leaves the work to a child.
        assert_eq!(processes("trafgen").len(), before.len() + 2);
        run.signal(signal);
        let finished = run.finish();
        assert_eq!(finished.status.code(), (signal == Signal::SIGINT).then_some(1), "{}", finished.stderr);
        assert!(
            wait_until(Duration::from_secs(30), || processes("trafgen") == before),
            "{signal}: {:?} go on",
            processes("trafgen")
        );
    }
}
