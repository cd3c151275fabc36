//! What really leaves: a frame is sent when the driver took it. What a port does not take is told with its
//! reason, and a port that fails in the middle of a run ends it; what was counted stays.

use std::time::Duration;

use crate::common::namespace::Namespace;
use crate::common::sites::Site;
use crate::common::{Finished, Running, has_namespaces, linerate, wait_until};
use nix::sys::signal::Signal;
use results::record::{LimitedBy, Phase, Status};

/// What `send` says of itself as JSON: frames offered, unsent, and by the count of the interface.
fn counts(finished: &Finished) -> [u64; 3] {
    let json = finished.json();
    ["offered", "unsent", "interface_sent"].map(|name| json[name].as_u64().unwrap_or_default())
}

/// Waits until `send` has told of frames for two intervals.
fn is_sending(run: &Running) {
    let two = || run.stderr().lines().count() >= 2;
    assert!(wait_until(Duration::from_secs(60), two), "{}", run.stderr());
}

#[test]
fn an_interface_that_cannot_transmit_redirected_frames_is_refused_or_sent_on_by_af_xdp() {
    if !has_namespaces() {
        return;
    }
    let home = Namespace::new();
    // Not every kernel has dummy interfaces; a bridge has no way to transmit such frames either.
    home.run("ip link add nothing type dummy || ip link add nothing type bridge; ip link set nothing up");
    let line = |engine: &str| {
        let flags = "--rate 10kpps --duration 500ms --interval 100ms --json";
        linerate(&format!("send --port nothing --to 02:00:00:00:00:01 --engine {engine} {flags}"))
    };
    let run = line("xdp").inside(&home).run();
    let refusal = run.refusal(2);
    assert!(refusal.contains("nothing") && refusal.contains("af_xdp"), "{refusal}");
    let run = line("auto").inside(&home).run().well();
    assert!(run.stderr.contains("engine: af_xdp, because"), "{}", run.stderr);
    let [offered, _, interface_sent] = counts(&run);
    assert!(offered > 0 && interface_sent.abs_diff(offered) <= 64, "{}", run.stdout);
}

#[test]
fn while_the_other_end_takes_nothing_frames_are_unsent_and_the_interface_agrees() {
    if !has_namespaces() {
        return;
    }
    let site = Site::cables();
    let line = "send --ports eth1,eth2 --rate 5kpps --duration 2s --interval 100ms --json";
    let run = linerate(line).inside(&site.tester).start();
    is_sending(&run);
    site.far.run("ip link set far1 down");
    let run = run.finish();
    assert_eq!(run.status.code(), Some(0), "{}", run.stderr);
    let [offered, unsent, interface_sent] = counts(&run);
    assert!(offered > 0 && unsent > 0, "{}", run.stdout);
    assert!(interface_sent.abs_diff(offered) <= 64, "{}", run.stdout);
    assert!(
        run.stderr.contains("were not sent: the driver could not transmit redirected frames"),
        "{}",
        run.stderr
    );
}

#[test]
fn an_interface_that_goes_down_or_vanishes_ends_a_generator_and_its_counts_stay() {
    if !has_namespaces() {
        return;
    }
    for engine in ["xdp", "af_xdp"] {
        for (command, words) in
            [("ip link set eth1 down", "eth1 went down"), ("ip link del eth1", "vanished")]
        {
            let site = Site::cables();
            let line = "send --ports eth1,eth2 --rate 5kpps --duration 60s --interval 100ms --json --engine";
            let run = linerate(&format!("{line} {engine}")).inside(&site.tester).start();
            is_sending(&run);
            site.tester.run(command);
            let run = run.finish();
            assert_eq!(run.status.code(), Some(1), "{engine}: {}", run.stderr);
            assert!(run.stderr.contains(words) && run.stderr.contains("eth1"), "{engine}: {}", run.stderr);
            assert!(counts(&run)[0] > 0, "{engine}: {}", run.stdout);
            assert!(!is_left(&site), "{engine}, {command}");
        }
    }
}

#[test]
fn a_replay_whose_port_goes_down_or_vanishes_tells_what_it_sent() {
    if !has_namespaces() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut capture =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0];
    capture.extend([0, 0, 0, 0, 0, 0, 0, 0, 60, 0, 0, 0, 60, 0, 0, 0]);
    capture.extend([0x55; 60]);
    std::fs::write(directory.path().join("one.pcap"), capture).unwrap();
    for (engine, command) in [("auto", "ip link set eth1 down"), ("auto", "ip link del eth1")] {
        let site = Site::cables();
        let line =
            format!("send one.pcap --ports eth1,eth2 --rate 1kpps --loops 60000 --json --engine {engine}");
        let run = linerate(&line).inside(&site.tester).in_directory(directory.path()).start();
        let sent = || site.tester.run("cat /proc/thread-self/net/dev | sed -n 's/.*eth1://p'");
        let many = || sent().split_whitespace().nth(9).is_some_and(|sent| sent.parse::<u64>().unwrap() > 100);
        assert!(wait_until(Duration::from_secs(60), many), "{}", run.stderr());
        site.tester.run(command);
        let run = run.finish();
        let told = format!("{engine}, {command}: {}{}", run.stdout, run.stderr);
        assert_eq!(run.status.code(), Some(1), "{told}");
        assert!(run.json()["sent"].as_u64().is_some_and(|sent| (100..60_000).contains(&sent)), "{told}");
        assert!(run.stderr.contains("ended early: ") && run.stderr.contains("eth1"), "{told}");
        assert!(!is_left(&site), "{told}");
    }
}

#[test]
fn a_load_test_whose_port_goes_down_keeps_what_it_counted_and_says_why_it_ended() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    let line = "ramp --ports eth1,eth2 --gateways 100.65.1.1,100.65.2.1 --rate 5kpps --step 100ms \
                --warm-up-duration 300ms --duration 500ms --hold-duration 60s --drain 100ms";
    let mut run = linerate(line).inside(&site.tester).start();
    run.wait_for_record(|record| record.samples.len() >= 10);
    site.tester.run("ip link set eth1 down");
    let run = run.finish();
    assert_eq!(run.status.code(), Some(1), "{}", run.stderr);
    let [record] = run.records().try_into().unwrap();
    assert_eq!(record.status, Status::Failed);
    let reason = record.reason.clone().unwrap_or_default();
    assert!(reason.contains("interface eth1 went down"), "{reason}");
    let direction = &record.directions[0];
    assert!(record.samples.len() >= 10 && direction.offered > 0);
    let told = direction.untaken.get("the interface was down or without a link").copied();
    assert!(told.is_some_and(|told| told <= direction.unsent), "{:?}", direction.untaken);
    let samples = record.samples.iter().flat_map(|sample| &sample.directions);
    assert_eq!(
        samples.flat_map(|direction| direction.untaken.values()).sum::<u64>(),
        told.unwrap_or_default()
    );
    assert_eq!(site.tester.run("ip -details link show eth2 | grep -c 'prog/xdp' || true").trim(), "0");
}

/// A load test between eth1 and eth2 by `engine` that would take a minute, once it measures.
fn start_long(engine: &str, duration: &str, site: &Site) -> Running {
    let line = format!(
        "saturate --engine {engine} --ports eth1,eth2 --gateways 100.65.1.1,100.65.2.1 --rate 2kpps --step 100ms \
         --warm-up-duration 300ms --duration {duration} --drain 100ms"
    );
    let mut run = linerate(&line).inside(&site.tester).start();
    run.wait_for_record(|record| {
        record.samples.iter().filter(|sample| sample.phase == Phase::Hold).count() >= 3
    });
    run
}

/// Whether a program is left at a port.
fn is_left(site: &Site) -> bool {
    site.tester.run("ip -details link").contains("prog/xdp")
}

#[test]
fn a_load_test_ends_by_name_when_a_port_goes_down_or_vanishes_by_every_engine() {
    if !has_namespaces() {
        return;
    }
    for (engine, port, command) in [
        ("xdp", "eth1", "del"),
        ("xdp", "eth2", "del"),
        ("xdp", "eth2", "down"),
        ("af_xdp", "eth1", "del"),
        ("af_xdp", "eth1", "down"),
        ("af_xdp", "eth2", "del"),
        ("af_xdp", "eth2", "down"),
    ] {
        let site = Site::router();
        let run = start_long(engine, "60s", &site);
        let (command, words) = match command {
            "down" => (format!("ip link set {port} down"), "down"),
            _ => (format!("ip link del {port}"), "vanished"),
        };
        site.tester.run(&command);
        let run = run.finish();
        let told = format!("{engine}, {command}: {}", run.stderr);
        assert_eq!(run.status.code(), Some(1), "{told}");
        let [record] = run.records().try_into().unwrap();
        let reason = record.reason.clone().unwrap_or_default();
        assert_eq!(record.status, Status::Failed, "{told}");
        for clue in [port, words] {
            assert!(reason.contains(clue) && run.stderr.contains(clue), "no '{clue}' in: {reason}, {told}");
        }
        let direction = &record.directions[0];
        assert!(direction.offered > 0 && direction.forwarded > 0, "{told}: {direction:?}");
        assert!(!is_left(&site), "{told}");
    }
}

#[test]
fn when_a_port_takes_no_frames_any_more_they_are_unsent_and_the_tester_is_the_limit() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    let run = start_long("xdp", "4s", &site);
    // Without NAPI at its other end, a veth drops what is redirected to it: the link stays.
    site.far.run("ethtool -K far1 gro off");
    let run = run.finish();
    let [record] = run.records().try_into().unwrap();
    let direction = &record.directions[0];
    let told = format!("{}: {direction:?}", run.stderr);
    assert!(direction.offered > 0 && direction.unsent > direction.offered / 4, "{told}");
    let untaken: u64 = direction.untaken.values().sum();
    assert!(untaken > 0 && untaken <= direction.unsent, "{told}");
    assert_eq!(direction.limited_by, LimitedBy::Tester, "{told}");
    // Only what was in the queue of the other end at that moment can be lost.
    assert!(direction.offered - direction.forwarded <= 512, "{told}");
    assert!(!is_left(&site), "{told}");
}

#[test]
fn a_port_whose_mtu_changes_ends_a_load_test_by_name_and_what_was_counted_stays() {
    if !has_namespaces() {
        return;
    }
    for (engine, port) in [("xdp", "eth1"), ("xdp", "eth2"), ("af_xdp", "eth1"), ("af_xdp", "eth2")] {
        let site = Site::router();
        let run = start_long(engine, "60s", &site);
        site.tester.run(&format!("ip link set {port} mtu 1400"));
        let run = run.finish();
        assert_eq!(run.status.code(), Some(1), "{engine}, {port}: {}", run.stderr);
        let [record] = run.records().try_into().unwrap();
        let reason = record.reason.clone().unwrap_or_default();
        assert_eq!(record.status, Status::Failed, "{engine}, {port}: {reason}");
        for clue in [
            format!("the MTU of interface {port} was changed from 1500 to 1400"),
            format!("ip link set {port} mtu 1500"),
        ] {
            assert!(
                reason.contains(&clue) && run.stderr.contains(&clue),
                "{engine}: no '{clue}' in: {reason}"
            );
        }
        assert!(record.directions[0].offered > 0 && record.directions[0].forwarded > 0);
        assert!(!is_left(&site), "{engine}, {port}");
    }
}

#[test]
fn another_program_in_mid_run_is_refused_and_the_load_test_goes_on() {
    if !has_namespaces() {
        return;
    }
    for engine in ["xdp", "af_xdp"] {
        let site = Site::router();
        let run = start_long(engine, "4s", &site);
        for other in ["xdp", "af_xdp"] {
            let refused = linerate(&format!("count eth2 --engine {other}")).inside(&site.tester).run();
            let refusal = refused.refusal(1);
            assert!(refusal.contains("eth2") && refusal.contains("ip link set eth2 xdp off"), "{refusal}");
        }
        // Only who attached it can take it away.
        let removed = site.tester.command("ip").args(["link", "set", "eth2", "xdp", "off"]).output().unwrap();
        assert!(!removed.status.success(), "the kernel let somebody remove the program");
        let run = run.finish().well();
        let [record] = run.records().try_into().unwrap();
        assert_eq!(record.status, Status::Complete);
        assert!(!is_left(&site), "{engine}");
    }
}

#[test]
fn a_port_that_others_have_is_refused_by_every_command_and_engine() {
    if !has_namespaces() {
        return;
    }
    let site = Site::cables();
    let refused = |clues: &[&str]| {
        for engine in ["auto", "xdp", "af_xdp"] {
            for line in ["ramp --ports eth1,eth2", "send --port eth2 --to 02:00:00:00:02:01"] {
                let run = linerate(&format!("{line} --engine {engine} --duration 100ms"));
                let run = run.inside(&site.tester).run();
                let refusal = run.refusal(2);
                for clue in clues {
                    assert!(refusal.contains(clue), "{line}, {engine}: no '{clue}' in: {refusal}");
                }
            }
        }
    };
    site.tester.run("ip link add br0 type bridge\nip link set eth2 master br0");
    refused(&["eth2 belongs to the bridge br0", "ip link set eth2 nomaster"]);
    site.tester.run("ip link set eth2 nomaster");

    let add = ["link", "add", "bond0", "type", "bond"];
    if site.tester.command("ip").args(add).output().unwrap().status.success() {
        site.tester.run("ip link set eth2 down\nip link set eth2 master bond0\nip link set eth2 up");
        refused(&["eth2 belongs to the bond bond0", "ip link set eth2 nomaster"]);
        site.tester.run("ip link set eth2 nomaster\nip link set eth2 up");
    } else {
        eprintln!("skipped: this kernel has no bonds");
    }

    let counting = linerate("count eth2 --interval 100ms").inside(&site.tester).start();
    let counts = || counting.stderr().contains("others");
    assert!(wait_until(Duration::from_secs(60), counts), "{}", counting.stderr());
    refused(&["eth2 has an XDP program of another process", "ip link set dev eth2 xdp off"]);
    counting.signal(Signal::SIGINT);
    counting.finish().well();
}

#[test]
fn a_kernel_without_af_xdp_is_named_with_the_remedy_and_nothing_stays() {
    if !has_namespaces() {
        return;
    }
    let site = Site::cables();
    for line in [
        "ramp --engine af_xdp --ports eth1,eth2 --rate 2kpps",
        "send --engine af_xdp --port eth1 --to 02:00:00:00:01:01 --duration 100ms",
        "count eth1 --engine af_xdp",
    ] {
        let run = linerate(line).inside(&site.tester).without_af_xdp().run();
        let refusal = run.refusal(1);
        for clue in ["no AF_XDP sockets", "CONFIG_XDP_SOCKETS", "another engine"] {
            assert!(refusal.contains(clue), "{line}: no '{clue}' in: {refusal}");
        }
        assert!(!is_left(&site), "{line}");
    }
}
