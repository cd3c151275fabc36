//! `linerate send` and `linerate count`: the free-running generator and counter.

use std::fs;
use std::time::Duration;

use crate::common::holdings::Holdings;
use crate::common::namespace::Namespace;
use crate::common::sites::Site;
use crate::common::{
    Finished, PROGRAM, REPOSITORY, Running, eventually, has_namespaces, linerate, wait_until,
};
use nix::sys::signal::Signal;

/// The whole number in field `name` of what was printed as JSON.
fn number(finished: &Finished, name: &str) -> u64 {
    finished.json()[name].as_u64().unwrap_or_else(|| panic!("no {name}: {}", finished.stdout))
}

#[test]
fn every_intended_frame_is_offered_or_unsent_and_every_offered_one_arrives() {
    if !has_namespaces() {
        return;
    }
    for (flags, directions) in [("--flows var2", 1.0), ("--flows var2 --bidirectional", 2.0)] {
        let Some(()) = eventually(|| {
            let line = format!("send --dut sink --rate 10kpps --duration 1s --json {flags}");
            let run = linerate(&line).run().well();
            let (offered, unsent) = (number(&run, "offered"), number(&run, "unsent"));
            let received = number(&run, "dut_received");
            assert!(received <= offered, "{received} received: {}", run.stderr);
            let intended = directions * 10e3 * run.json()["elapsed_s"].as_f64().unwrap();
            let accounted = (offered + unsent) as f64;
            if (accounted / intended - 1.0).abs() > 0.01 || received < offered {
                let of = format!("of {intended} intended, {received} received");
                return Err(format!("{offered} offered, {unsent} unsent, {of}"));
            }
            let rate = run.json()["l1_bps"].as_f64().unwrap() / run.json()["offered_pps"].as_f64().unwrap();
            assert!((rate - 84.0 * 8.0).abs() < 1e-6, "{rate} bits of line a frame");
            Ok(())
        }) else {
            return;
        };
    }
}

#[test]
fn a_rate_in_bits_a_second_is_one_of_frames() {
    if !has_namespaces() {
        return;
    }
    // 84 bytes of line, or 64 without its overhead, a frame.
    for rate in ["6.72mbpsl1", "5.12mbps", "67.2%"] {
        let Some(()) = eventually(|| {
            let run = linerate(&format!("send --rate {rate} --line-rate 10mbps --duration 500ms --json"))
                .run()
                .well();
            let intended = 10e3 * run.json()["elapsed_s"].as_f64().unwrap();
            let accounted = (number(&run, "offered") + number(&run, "unsent")) as f64;
            let right = (accounted / intended - 1.0).abs() < 0.02;
            right.then_some(()).ok_or(format!("{rate}: {accounted} frames of {intended}"))
        }) else {
            return;
        };
    }
}

#[test]
fn at_the_maximum_rate_everything_that_left_is_counted() {
    if !has_namespaces() {
        return;
    }
    let run = linerate("send --dut sink --rate max --flows var2 --duration 500ms --json").run().well();
    let (offered, received) = (number(&run, "offered"), number(&run, "dut_received"));
    assert_eq!(number(&run, "unsent"), 0);
    assert!(offered > 10_000, "{offered}");
    // The device's queue overflows when the machine is busy elsewhere: then it refuses frames, each counted.
    assert_eq!(number(&run, "interface_sent"), offered - number(&run, "refused"), "{}", run.stdout);
    assert!(received <= number(&run, "interface_sent") && received > 0, "{received}: {}", run.stdout);
}

#[test]
fn it_generates_until_interrupted() {
    if !has_namespaces() {
        return;
    }
    eventually(|| {
        let run = linerate("send --rate 2kpps --json --interval 100ms").start();
        assert!(
            wait_until(Duration::from_secs(60), || run.stderr().lines().count() >= 3),
            "{}",
            run.stderr()
        );
        run.signal(Signal::SIGINT);
        let finished = run.finish().well();
        let (offered, received) = (number(&finished, "offered"), number(&finished, "dut_received"));
        assert!(received <= offered && offered > 0, "{}", finished.stdout);
        if received == offered { Ok(()) } else { Err(finished.stdout) }
    });
}

/// Starts `linerate count` with these words in a namespace, and waits until it counts.
fn start_counter(words: &str, namespace: &Namespace) -> Running {
    let counter = linerate(&format!("count {words} --json --interval 100ms")).inside(namespace).start();
    // It counts once it has told of an interval.
    let counts = || counter.stderr().contains("others");
    assert!(wait_until(Duration::from_secs(60), counts), "{}", counter.stderr());
    counter
}

/// Ends a counter, and what it counted.
fn end(counter: Running) -> Finished {
    counter.signal(Signal::SIGINT);
    counter.finish().well()
}

#[test]
fn a_counter_counts_ours_and_passes_others_by_every_engine_for_interfaces() {
    if !has_namespaces() {
        return;
    }
    for (engine, name) in [("auto", "xdp"), ("af_xdp", "af_xdp")] {
        let found = eventually(|| {
            let site = Site::router();
            let counter = start_counter(&format!("far1 --engine {engine}"), &site.far);
            let line = "send --ports eth1,eth2 --rate 2kpps --flows var2 --duration 500ms --json";
            let sent = number(&linerate(line).inside(&site.tester).run().well(), "offered");
            site.tester.run("ping -q -c 3 -i 0.1 -w 5 100.65.1.1");
            let counted = end(counter);
            assert_eq!(counted.json()["engine"], name);
            assert!(number(&counted, "foreign") >= 3, "{}", counted.stdout);
            assert_eq!((number(&counted, "duplicates"), number(&counted, "reordered")), (0, 0));
            let frames = number(&counted, "frames");
            assert!(frames <= sent, "{frames} counted, {sent} sent");
            assert!(!site.far.run("ip -details link show far1").contains("prog/xdp"), "a program is left");
            (frames == sent).then_some(()).ok_or(format!("{frames} counted, {sent} sent"))
        });
        if found.is_none() {
            return;
        }
    }
}

#[test]
fn a_counter_at_two_ports_tells_them_apart() {
    if !has_namespaces() {
        return;
    }
    for engine in ["xdp", "af_xdp"] {
        let found = eventually(|| {
            let site = Site::cables();
            // Frames of direction 0 arrive at port 1, as at the ports of a load test.
            let counter = start_counter(&format!("--ports far2,far1 --engine {engine}"), &site.far);
            let line = "send --ports eth1,eth2 --rate 1kpps --bidirectional --duration 500ms --json";
            let sent = number(&linerate(line).inside(&site.tester).run().well(), "offered");
            let counted = end(counter);
            let ports = counted.json()["ports"].clone();
            assert_eq!((&ports[0]["port"], &ports[1]["port"]), (&"far2".into(), &"far1".into()));
            let frames = [0, 1].map(|port: usize| ports[port]["frames"].as_u64().unwrap());
            assert!(ports[1]["latency_p50_ns"].as_u64().is_some_and(|median| median > 0), "{ports}");
            assert!(frames.iter().sum::<u64>() <= sent, "{sent} sent: {ports}");
            assert_eq!(number(&counted, "frames"), frames.iter().sum::<u64>());
            let right = frames.iter().sum::<u64>() == sent && frames[0].abs_diff(frames[1]) <= 1;
            right.then_some(()).ok_or(format!("{sent} sent: {ports}"))
        });
        if found.is_none() {
            return;
        }
    }
}

#[test]
fn a_counter_counts_in_a_lab_that_is_open() {
    if !has_namespaces() {
        return;
    }
    let home = Namespace::new();
    linerate("lab up counted --dut linux-router").inside(&home).run().well();
    let counter = start_counter("port1 --lab counted --engine xdp", &home);
    // The device sends a frame of Linerate's itself.
    let line = "lab exec counted dut";
    let send =
        ["send", "--port", "dut1", "--to", "02:00:00:00:00:09", "--rate", "1kpps", "--duration", "300ms"];
    let send = send.iter().fold(linerate(line).arg("--").arg(PROGRAM), |line, word| line.arg(*word));
    let sent = send.arg("--json").inside(&home).run().well();
    let counted = end(counter);
    let both = linerate("count --lab counted --duration 200ms --json").inside(&home).run().well();
    linerate("lab down counted").inside(&home).run().well();
    let (frames, offered) = (number(&counted, "frames"), number(&sent, "offered"));
    assert!(frames > 0 && frames <= offered, "{frames} of {offered}");
    assert_eq!(both.json()["ports"][1]["port"], "port1", "{}", both.stdout);
}

#[test]
fn a_counter_whose_interface_vanishes_says_so_and_what_it_counted() {
    if !has_namespaces() {
        return;
    }
    for engine in ["xdp", "af_xdp"] {
        let site = Site::cables();
        let counter = start_counter(&format!("far1 --engine {engine}"), &site.far);
        linerate("send --ports eth1,eth2 --rate 1kpps --duration 300ms").inside(&site.tester).run().well();
        site.far.run("ip link del far1");
        let ended = counter.finish();
        assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains("far1") && ended.stderr.contains("vanished"), "{}", ended.stderr);
        assert!(number(&ended, "frames") > 0, "{}", ended.stdout);
        assert!(ended.json()["failure"].as_str().is_some_and(|failure| failure.contains("far1")));
    }
}

#[cfg(feature = "dpdk")]
#[test]
fn a_counter_counts_at_a_port_of_dpdk() {
    if !has_namespaces() {
        return;
    }
    eventually(|| {
        let site = Site::cables();
        let counter = start_counter("net_af_packet0,iface=far1 --engine dpdk --cores 1", &site.far);
        let line = "send --ports eth1,eth2 --rate 1kpps --duration 500ms --json";
        let sent = number(&linerate(line).inside(&site.tester).run().well(), "offered");
        let counted = end(counter);
        let frames = number(&counted, "frames");
        assert!(counted.json()["engine"] == "dpdk" && frames <= sent, "{}", counted.stdout);
        (frames == sent).then_some(()).ok_or(format!("{frames} counted, {sent} sent"))
    });
}

#[test]
fn a_counter_measures_how_long_frames_were_on_their_way() {
    if !has_namespaces() {
        return;
    }
    let site = Site::cables();
    let counter = linerate("count far1 --json --interval 100ms").inside(&site.far).start();
    assert!(wait_until(Duration::from_secs(60), || !counter.stderr().is_empty()), "{}", counter.stderr());
    linerate("send --ports eth1,eth2 --rate 1kpps --duration 300ms").inside(&site.tester).run().well();
    counter.signal(Signal::SIGINT);
    let counted = counter.finish().well();
    let [median, most] = ["latency_p50_ns", "latency_p99_ns"].map(|name| number(&counted, name));
    assert!(0 < median && median <= most && most < 1_000_000_000, "{}", counted.stdout);
}

#[test]
fn a_counter_ends_by_itself_and_leaves_the_interface_as_it_was() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    let before = site.far.run("ip -details link show far1 | grep -c xdp || true");
    let counted =
        linerate("count far1 --duration 200ms --interval 50ms --json").inside(&site.far).run().well();
    assert_eq!(number(&counted, "frames"), 0);
    assert!((0.2..5.0).contains(&counted.json()["elapsed_s"].as_f64().unwrap()), "{}", counted.stdout);
    assert_eq!(site.far.run("ip -details link show far1 | grep -c xdp || true"), before);
}

#[test]
fn a_million_flows_take_less_than_200_megabytes() {
    if !has_namespaces() {
        return;
    }
    const LIMIT: u64 = 200 << 20;
    let home = Namespace::new();
    let line =
        format!("send --profile {REPOSITORY}/profiles/million-flows.toml --rate 10kpps --interval 100ms");
    let run = linerate(&line).inside(&home).start();
    assert!(wait_until(Duration::from_secs(60), || run.stderr().lines().count() >= 3), "{}", run.stderr());
    let status = fs::read_to_string(format!("/proc/{}/status", run.pid())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
    let most = 1024 * most.strip_suffix(" kB").unwrap().parse::<u64>().unwrap();
    let maps = Holdings::of(run.pid(), &home).map_memory();
    run.signal(Signal::SIGINT);
    run.finish().well();
    eprintln!("at most {} MiB of its own, {} MiB of BPF maps", most >> 20, maps >> 20);
    assert!(most < LIMIT, "{most} bytes of its own");
    assert!(maps > 1 << 20, "the frame table is somewhere else");
    assert!(most + maps < LIMIT, "{most} bytes of its own and {maps} in the kernel");
}
