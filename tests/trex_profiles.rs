//! Profiles of TRex, run by its own library: its client sends them by `linerate serve`, load tests take them as
//! `--profile x.py`. Counts are exact.

use std::env;

use crate::common::{REPOSITORY, eventually, has_namespaces, linerate};
use crate::trex::{pair, python, script, serve};
use nix::sys::signal::Signal;

/// A profile of TRex's, in the form of its own examples.
pub const IMIX: &str = r#"
from trex_stl_lib.api import *

class STLImix(object):
    def get_streams(self, direction=0, **kwargs):
        print("what a profile prints is no answer")
        source, destination = ("16.0.0.1", "48.0.0.1") if direction == 0 else ("48.0.0.1", "16.0.0.1")
        streams = []
        for size, pps in ((60, 28), (590, 16), (1514, 4)):
            base = Ether() / IP(src=source, dst=destination) / UDP(dport=12, sport=1025)
            vm = STLScVmRaw([
                STLVmFlowVar(name="port", min_value=1025, max_value=1034, size=2, op="inc"),
                STLVmWrFlowVar(fv_name="port", pkt_offset="UDP.sport"),
            ])
            packet = STLPktBuilder(pkt=base / ((size - len(base)) * "x"), vm=vm)
            streams.append(STLStream(packet=packet, mode=STLTXCont(pps=pps)))
        return streams

def register():
    return STLImix()
"#;

#[test]
fn a_profile_of_trex_is_sent_by_every_load_test() {
    let Some(python) = python().filter(|_| has_namespaces()) else { return };
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("imix.py"), IMIX).unwrap();
    let with_library = |line: &str| {
        linerate(line).in_directory(directory.path()).env("LINERATE_TREX_PYTHON", python.to_str().unwrap())
    };
    eventually(|| {
        let line =
            "ramp --profile imix.py --bidirectional --dut calibrated:drop-every=10 --rate 5kpps --json";
        let line =
            format!("{line} --step 100ms --duration 500ms --warm-up-duration 200ms --hold-duration 500ms");
        let record = with_library(&line).run().well().record();
        assert_eq!((record.profile.name.as_str(), record.profile.source.as_deref()), ("imix", Some(IMIX)));
        let mean = (28.0 * 64.0 + 16.0 * 594.0 + 4.0 * 1518.0) / 48.0;
        assert!(
            (record.profile.mean_frame_size / mean - 1.0).abs() < 1e-6,
            "{}",
            record.profile.mean_frame_size
        );
        for direction in &record.directions {
            let (offered, forwarded) = (direction.offered, direction.forwarded);
            if forwarded != offered - offered / 10 {
                return Err(format!("{}: {forwarded} of {offered} frames returned", direction.name));
            }
        }
        Ok(())
    });
    let shown = with_library("profile show --profile imix.py").run().well();
    assert!(shown.stdout.contains("16.0.0.1"), "{}", shown.stdout);
    let broken = "def register():\n    raise ValueError('not today')\n";
    std::fs::write(directory.path().join("broken.py"), broken).unwrap();
    let finished = with_library("send --profile broken.py --dut calibrated").run();
    assert!(finished.refusal(2).contains("not today"), "{}", finished.refusal(2));
    let without = linerate("send --profile imix.py --dut calibrated")
        .in_directory(directory.path())
        .env("LINERATE_TREX_PYTHON", "/nowhere/python3")
        .run();
    assert!(without.refusal(1).contains("linerate doctor --fix"), "{}", without.refusal(1));
}

/// Two streams in turn, as in TRex's burst_3st_loop_x_times.py but without end, beside one of microbursts.
const BURSTS: &str = r#"
from trex_stl_lib.api import *

class STLBursts(object):
    def one(self, name, mode, size=64, **options):
        base = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12, sport=1025)
        return STLStream(name=name, packet=STLPktBuilder(pkt=base / ((size - 4 - len(base)) * "x")), mode=mode, **options)

    def get_streams(self, direction=0, **kwargs):
        burst, bursts = STLTXSingleBurst, STLTXMultiBurst
        return [
            self.one("S0", burst(pps=100000, total_pkts=10), next="S1", isg=9000),
            self.one("S1", burst(pps=100000, total_pkts=30), size=128, self_start=False, next="S0"),
            self.one("S2", bursts(pps=1000000, pkts_per_burst=60, count=2, ibg=9340)),
        ]

def register():
    return STLBursts()
"#;

#[test]
fn bursts_and_chains_of_a_profile_of_trex_keep_their_proportions() {
    let Some(python) = python().filter(|_| has_namespaces()) else { return };
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("bursts.py"), BURSTS).unwrap();
    let with_library = |line: &str| {
        linerate(line).in_directory(directory.path()).env("LINERATE_TREX_PYTHON", python.to_str().unwrap())
    };
    eventually(|| {
        let line =
            "saturate --profile bursts.py --dut calibrated:drop-every=10 --rate 10kpps --json --step 500ms";
        let record =
            with_library(&format!("{line} --duration 2s --warm-up-duration 0s")).run().well().record();
        // A period of 9.4 ms has 10, 30 and 60 frames; those of the second stream are twice as long.
        let mean = (70.0 * 64.0 + 30.0 * 128.0) / 100.0;
        assert!((record.profile.mean_frame_size - mean).abs() < 1e-6, "{}", record.profile.mean_frame_size);
        assert!(record.notes.iter().any(|note| note.contains("has bursts")), "{:?}", record.notes);
        let direction = &record.directions[0];
        let (offered, forwarded) = (direction.offered, direction.forwarded);
        if forwarded != offered - offered / 10 || offered.abs_diff(20_000) > 200 {
            return Err(format!("{forwarded} of {offered} frames returned"));
        }
        Ok(())
    });
    let single = BURSTS.replace(", next=\"S0\"", "");
    std::fs::write(directory.path().join("single.py"), single).unwrap();
    let finished = with_library("ramp --profile single.py --dut calibrated").run();
    assert!(finished.refusal(2).contains("the bursts end after"), "{}", finished.refusal(2));
}

#[test]
fn the_examples_of_trex_are_sent_at_a_tenth_of_line_rate_with_exact_counts() {
    if python().is_none() || !has_namespaces() {
        return;
    }
    // TRex's own, where a checkout of it is at hand: its scripts/stl.
    let directory = env::var("LINERATE_TREX_STL").unwrap_or(format!("{REPOSITORY}/tests/trex_examples"));
    eventually(|| {
        // A tenth of this are 2,000 of the smallest frames a second.
        let Some((server, ports)) = serve("calibrated:drop-every=10", "13.44mbps") else { return Ok(()) };
        let seen = script(&server, &ports, "trex_client.py", &["examples", &directory]).unwrap();
        server.signal(Signal::SIGINT);
        server.finish().well();
        // The device drops every tenth frame of a direction, and counts on from one example to the next.
        let (mut before, mut lost) = ([0; 2], [0; 2]);
        // Frames, and their mean size.
        let imix = (28.0 * 64.0 + 16.0 * 594.0 + 4.0 * 1518.0) / 48.0;
        for (name, frames, size) in [
            ("udp_1pkt_simple", 4_000.0, 64.0),
            ("imix", 2.0 * 13.44e5 / 8.0 / (imix + 20.0), imix),
            ("bench", 4_000.0, 64.0),
            ("burst_3st_600pkt", 600.0, 64.0),
            // Its rate has no multiplier.
            ("flow_stats_latency", 2_000.0, 64.0),
        ] {
            let of = &seen[name];
            for port in 0..2 {
                let [sent, bytes, unsent] = ["opackets", "obytes", "oerrors"].map(|key| pair(&of[key])[port]);
                lost[port] = (before[port] + sent) / 10 - before[port] / 10;
                before[port] += sent;
                let received = pair(&of["ipackets"])[1 - port];
                if received + lost[port] != sent {
                    return Err(format!("{name}: {received} of {sent} frames of port {port} came back"));
                }
                let exactly = name == "burst_3st_600pkt";
                let tolerance = if exactly { 0.0 } else { frames * 0.05 };
                if unsent > 0 || (sent as f64 - frames).abs() > tolerance {
                    return Err(format!("{name}: {sent} frames left by port {port}, {unsent} were too late"));
                }
                let mean = bytes as f64 / sent as f64;
                assert!((mean / size - 1.0).abs() < 0.01, "{name}: {mean} bytes instead of {size}");
            }
        }
        assert_eq!(pair(&seen["flow_stats_latency"]["dropped"]), lost, "{seen}");
        Ok(())
    });
}
