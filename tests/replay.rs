//! Captures: replayed as they are, and as the profile of a load test, through real devices.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::common::sites::Site;
use crate::common::{QUICK, eventually, has_namespaces, linerate, wait_until};
use etherparse::{NetSlice, PacketBuilder, SlicedPacket};
use traffic::Capture;
use traffic::capture::Writer;

// The device's GRO is off where order matters: it holds segments of TCP back, and datagrams overtake them.

/// From one frame to the next, in nanoseconds.
const GAP: u64 = 2_000_000;

/// Forty frames of different lengths, the last with a VLAN tag, from beyond port 0 to beyond port 1.
fn frames() -> Vec<Vec<u8>> {
    let frame = |number: u8| {
        let link = PacketBuilder::ethernet2([2, 0, 0, 0, 9, 1], [2, 0, 0, 0, 9, 2]);
        let (source, destination) = ([16, 0, 0, number], [48, 0, 0, 1]);
        let packet = if number == 40 {
            link.single_vlan(7.try_into().unwrap()).ipv4(source, destination, 64)
        } else {
            link.ipv4(source, destination, 64)
        };
        let payload = vec![number; usize::from(number) * 30];
        let mut bytes = Vec::new();
        if number.is_multiple_of(2) {
            packet.udp(1025, 12).write(&mut bytes, &payload).unwrap();
        } else {
            packet.tcp(1025, 80, 1000 * u32::from(number), 512).write(&mut bytes, &payload).unwrap();
        }
        bytes.resize(bytes.len().max(60), 0);
        bytes
    };
    (1..=40).map(frame).collect()
}

fn write(file: &Path, frames: &[Vec<u8>]) {
    let mut writer = Writer::new(fs::File::create(file).unwrap()).unwrap();
    for (frame, number) in frames.iter().zip(0..) {
        writer.frame(1_700_000_000_000_000_000 + number * GAP, frame).unwrap();
    }
    writer.finish().unwrap();
}

/// A fresh directory with the capture `sent.pcap` in it.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    write(&directory.path().join("sent.pcap"), &frames());
    directory
}

/// The IP frames of what was written.
fn got(directory: &Path) -> Capture {
    let mut capture = Capture::read(&fs::read(directory.join("got.pcap")).unwrap()).unwrap();
    let is_ours = |frame: &[u8]| {
        let packet = SlicedPacket::from_ethernet(frame).unwrap();
        matches!(packet.net, Some(NetSlice::Ipv4(ip)) if ip.header().source()[0] == 16)
    };
    capture.frames.retain(|frame| is_ours(&frame.bytes));
    capture
}

#[test]
fn what_cannot_be_replayed_is_refused_with_the_remedy() {
    let directory = directory();
    let at = directory.path();
    let whole = fs::read(at.join("sent.pcap")).unwrap();
    fs::write(at.join("empty.pcap"), []).unwrap();
    fs::write(at.join("other.pcap"), "no capture").unwrap();
    let mut cooked = whole.clone();
    cooked[20] = 113;
    fs::write(at.join("cooked.pcap"), cooked).unwrap();
    fs::write(at.join("cut.pcap"), &whole[..50]).unwrap();
    for (words, code, clues) in [
        ("send none.pcap", 1, ["none.pcap", "No such file"]),
        ("send empty.pcap", 2, ["empty", "tcpdump"]),
        ("send other.pcap", 2, ["neither pcap nor pcapng", "Wireshark"]),
        ("send cooked.pcap", 2, ["113 (Linux cooked)", "Ethernet"]),
        ("send cut.pcap", 2, ["within frame 1", "name another"]),
        ("send sent.pcap --speed 0", 2, ["'0'", "times as fast"]),
        ("send sent.pcap --speed 2 --rate 1kpps", 2, ["--speed", "--rate"]),
        ("send sent.pcap --loops 0", 2, ["loops", "1"]),
        ("send sent.pcap --output-frames 5", 2, ["--output", "required"]),
        ("ramp --profile cooked.pcap", 2, ["113", "cooked.pcap"]),
        ("ramp --profile sent.pcap --size 128", 2, ["--size", "built-in"]),
    ] {
        let finished = linerate(words).in_directory(at).on_my_machine().run();
        let refusal = finished.refusal(code);
        clues.iter().for_each(|clue| assert!(refusal.contains(clue), "{words}: no '{clue}' in: {refusal}"));
    }
    let shown = linerate("profile show --profile sent.pcap").in_directory(at).run().well();
    assert!(shown.stdout.contains("16.0.0.1:1025 > 48.0.0.1:80"), "{}", shown.stdout);
    assert!(shown.stdout.contains("40 frames, 40 flows"), "{}", shown.stdout);
}

#[test]
fn a_bridge_brings_every_frame_back_as_it_left_and_when() {
    if !has_namespaces() {
        return;
    }
    let directory = directory();
    eventually(|| {
        let line =
            "send sent.pcap --dut linux-bridge:gro=off --keep-macs --output got.pcap --drain 200ms --json";
        let finished = linerate(line).in_directory(directory.path()).run().well();
        let summary = finished.json();
        assert_eq!([&summary["sent"], &summary["frames"]], [40, 40], "{summary}");
        let got = got(directory.path());
        let bytes: Vec<&Vec<u8>> = got.frames.iter().map(|frame| &frame.bytes).collect();
        if summary["received"] != 40 || bytes.len() != 40 {
            return Err(format!("{summary}"));
        }
        assert_eq!(bytes, frames().iter().collect::<Vec<_>>(), "frame by frame, tag included");
        // Each frame may be held up somewhere on a busy machine; all of them together are not.
        let (span, captured) = (got.duration() - got.frames[0].time, 39 * GAP);
        let is_on_time = span.abs_diff(captured) < captured / 5;
        if is_on_time { Ok(()) } else { Err(format!("they came within {span} ns, not {captured}")) }
    });
}

#[test]
fn a_router_gets_frames_addressed_to_it_and_the_rest_stays() {
    if !has_namespaces() {
        return;
    }
    let directory = directory();
    let line = "send sent.pcap --dut linux-router:gro=off --loops 3 --rate 2kpps --output got.pcap --output-frames 100 --drain 300ms --json";
    let Some(finished) = eventually(|| {
        let finished = linerate(line).in_directory(directory.path()).run().well();
        let summary = finished.json();
        assert_eq!(summary["sent"], 120, "{summary} {}", finished.stderr);
        // Tagged frames are for nobody.
        if summary["received"] == 117 { Ok(finished) } else { Err(format!("{summary} {}", finished.stderr)) }
    }) else {
        return;
    };
    let got = got(directory.path());
    for (arrived, left) in got.frames.iter().zip(frames().iter().take(39)) {
        let [arrived, left] = [&arrived.bytes, left].map(|frame| SlicedPacket::from_ethernet(frame).unwrap());
        let (Some(NetSlice::Ipv4(now)), Some(NetSlice::Ipv4(was))) = (arrived.net, left.net) else {
            panic!()
        };
        assert_eq!((now.header().ttl(), now.header().source()), (63, was.header().source()));
        assert_eq!(now.payload().payload, was.payload().payload);
    }
    assert!(finished.stderr.contains("which is full"), "{}", finished.stderr);
}

#[test]
fn a_load_test_counts_every_frame_of_a_capture() {
    if !has_namespaces() {
        return;
    }
    let directory = directory();
    eventually(|| {
        let line = format!("ramp --profile sent.pcap --dut xdp-xconnect --rate 20kpps --json {QUICK}");
        let run = linerate(&line).in_directory(directory.path()).run();
        if !run.status.success() {
            return Err(run.stderr);
        }
        let record = run.record();
        assert_eq!((record.profile.rows, record.profile.flows), (40, 40), "{:?}", record.profile);
        assert!(record.profile.source.as_ref().unwrap().contains("FNV-1a"), "{:?}", record.profile);
        let forwarded: u64 = record
            .samples
            .iter()
            .flat_map(|sample| &sample.directions)
            .map(|direction| direction.forwarded)
            .sum();
        if forwarded < 1000 { Err(format!("{forwarded} frames came back")) } else { Ok(()) }
    });
}

#[test]
fn frames_that_a_port_did_not_take_are_unsent_with_the_reason() {
    if !has_namespaces() {
        return;
    }
    let directory = directory();
    let site = Site::cables();
    site.tester.run("sysctl -qw net.ipv6.conf.eth1.disable_ipv6=1");
    let counted = |what: &str| -> u64 {
        let text = site.tester.run("ip -s -j link show eth1");
        let links: serde_json::Value = serde_json::from_str(&text).unwrap();
        links[0]["stats64"]["tx"][what].as_u64().unwrap()
    };
    let sent_by = || counted("packets");
    let (before, dropped_before) = (sent_by(), counted("dropped"));
    let line = "send sent.pcap --engine af_xdp --ports eth1,eth2 --loops 50 --rate 500 --json";
    let run = linerate(line).inside(&site.tester).in_directory(directory.path()).start();
    assert!(wait_until(Duration::from_secs(60), || sent_by() > before + 100), "{}", run.stderr());
    site.far.run("ip link set far1 down\nsleep 1\nip link set far1 up");
    let finished = run.finish();
    assert_eq!(finished.status.code(), Some(1), "not all were sent: {}", finished.stderr);
    let summary = finished.json();
    let (sent, unsent) = (summary["sent"].as_u64().unwrap(), summary["unsent"].as_u64().unwrap());
    assert!(unsent > 0 && sent + unsent == 2000, "{summary}");
    // The interface drops the unsent frames, and those that find the queue at the other end full, which were sent.
    let refused = counted("dropped") - dropped_before - unsent;
    assert_eq!(sent, sent_by() - before + refused, "{summary}");
    let reason = "the interface was down or without a link";
    assert_eq!(summary["untaken"][reason], unsent, "{summary}");
    assert!(finished.stderr.contains(&format!("were not sent: {reason}")), "{}", finished.stderr);
}
