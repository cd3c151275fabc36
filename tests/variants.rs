//! Variants of a device: the user's commands configure it before anything is measured, and labels
//! tell later which run was which.

use std::fs;
use std::time::Duration;

use crate::common::sites::Site;
use crate::common::{Linerate, eventually, has_namespaces, linerate, wait_until};
use nix::sys::signal::Signal;
use results::Record;
use results::record::Status;

/// A third of a second at 2 kpps.
const BRIEF: &str = "--rate 2kpps --warm-up-duration 100ms --duration 300ms --step 100ms --drain 100ms";

/// A brief load through `dut`, which `commands` configure.
fn saturate<'a>(dut: &str, commands: &[&str]) -> Linerate<'a> {
    let line = linerate(&format!("saturate {dut} {BRIEF} --json"));
    commands.iter().fold(line, |line, command| line.arg("--dut-command").arg(*command))
}

/// The share of the frames that came back.
fn passed(record: &Record) -> f64 {
    let direction = &record.directions[0];
    direction.forwarded as f64 / direction.offered as f64
}

/// A rule of the packet filter for what is forwarded.
fn rule(rule: &str) -> String {
    format!(
        "nft 'add table ip filter
              add chain ip filter forward {{ type filter hook forward priority 0; }}
              add rule ip filter forward {rule}'"
    )
}

#[test]
fn a_packet_filter_drops_the_share_that_a_command_says() {
    if !has_namespaces() {
        return;
    }
    let filter = rule("numgen inc mod 4 0 drop");
    eventually(|| {
        let record = saturate("--dut linux-router", &[&filter]).run().well().record();
        assert_eq!(record.dut.configuration["command 1"], filter);
        let passed = passed(&record);
        if (0.7..0.76).contains(&passed) {
            Ok(())
        } else {
            Err(format!("{passed} passed, not three of four"))
        }
    });
}

#[test]
fn what_receiving_costs_is_measured_on_a_device_with_the_same_commands() {
    if !has_namespaces() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let noted = format!("readlink /proc/self/ns/net >> {}", log.display());
    let finished = saturate("--dut linux-router", &[&noted]).run().well();
    let measured = finished.record().tester.receive_cost_ns.is_some();
    let text = fs::read_to_string(&log).unwrap();
    let namespaces: std::collections::BTreeSet<&str> = text.lines().collect();
    // The first time it is measured twice.
    let labs = if measured { 2..=3 } else { 1..=1 };
    assert!(labs.contains(&namespaces.len()), "{text}");
}

#[test]
fn a_device_that_drops_all_says_so() {
    if !has_namespaces() {
        return;
    }
    let finished = saturate("--dut linux-router", &[&rule("drop")]).run();
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    let record = finished.record();
    assert_eq!(record.status, Status::Failed);
    assert!(record.reason.is_some_and(|reason| !reason.is_empty()));
}

#[test]
fn a_firewall_is_measured_only_once_it_is_proven() {
    if !has_namespaces() {
        return;
    }
    let record = saturate("--dut linux-router:firewall=nftables,rules=10,states=on -b --ip 6 --size 84", &[]);
    let record = record.run().well().record();
    let proof = record.dut.filter.clone().unwrap();
    assert!(proof.holds() && proof.denied == ["10.0.0.9", "fd00::9"], "{proof:?}");
    assert!(record.notes.iter().any(|note| note.contains("dropped all of")), "{:?}", record.notes);
    let states = record.dut.states.clone().unwrap();
    assert!(states.count >= 1 && states.limit > states.count, "{states:?}");
    assert!(record.notes.iter().any(|note| note.contains("tracked")), "{:?}", record.notes);

    // What passes all is no firewall, and gets no record.
    let finished = saturate("--dut linux-router --dut-denies 10.0.0.9", &[]).run();
    let refusal = finished.refusal(1);
    assert!(refusal.contains("frames from 10.0.0.9, which it must drop"), "{refusal}");
    assert!(finished.records().is_empty());
    let filter = rule("ip saddr 10.0.0.9 drop");
    let told = saturate("--dut linux-router --dut-denies 10.0.0.9", &[&filter]).run().well().record();
    assert!(told.dut.filter.is_some_and(|proof| proof.holds()));
    // What drops all is none either.
    let finished = saturate("--dut linux-router --dut-denies 10.0.0.9", &[&rule("drop")]).run();
    assert!(finished.refusal(1).contains("of the profile, which it must pass"), "{}", finished.stderr);
    let finished = saturate("--dut linux-router --dut-denies fd00::1", &[]).run();
    assert!(finished.refusal(2).contains("this profile cannot prove"), "{}", finished.stderr);
}

#[test]
fn settings_of_the_machine_are_put_back_whatever_ends_the_run() {
    if !has_namespaces() {
        return;
    }
    const LIMIT: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
    let read = || fs::read_to_string(LIMIT).unwrap_or_default();
    let before = read();
    let Ok(other) = before.trim().parse::<u64>().map(|limit| limit + 12_345) else {
        eprintln!("skipped: this kernel tracks no connections");
        return;
    };
    if fs::write(LIMIT, &before).is_err() {
        eprintln!(
            "skipped: the limit of connections can be changed in the machine's first network namespace alone"
        );
        return;
    }
    let line = format!("saturate --dut linux-router:conntrack-max={other} {BRIEF}");
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let run = linerate(&line.replace("--duration 300ms", "--duration 60s")).start();
        assert!(
            wait_until(Duration::from_secs(20), || read().trim() == other.to_string()),
            "{}",
            run.stderr()
        );
        run.signal(signal);
        run.finish();
        assert!(wait_until(Duration::from_secs(10), || read() == before), "{signal}: {}", read());
    }
}

#[test]
fn commands_see_the_settings_of_the_device_alone() {
    if !has_namespaces() {
        return;
    }
    let here = fs::read_to_string("/proc/sys/net/ipv6/conf/all/forwarding").unwrap();
    let commands = [
        "sysctl -w net.ipv6.conf.all.forwarding=0",
        "echo 1 > /sys/class/net/dut0/queues/rx-0/rps_cpus",
        "test $(ls /sys/class/net | tr '\\n' ' ' | grep -c port0) = 0",
        "ethtool -k dut1 | grep -q 'tx-checksumming: off'",
        // Paths begin where the program does.
        "cat /sys/class/net/dut0/queues/rx-0/rps_cpus > rps_cpus",
    ];
    let finished = saturate("--dut linux-router", &commands).run().well();
    let configuration = finished.record().dut.configuration;
    assert_eq!((&configuration["ipv4-forwarding"][..], &configuration["ipv6-forwarding"][..]), ("on", "off"));
    for (number, command) in commands.iter().enumerate() {
        assert_eq!(configuration[&format!("command {}", number + 1)], *command);
    }
    let steering = fs::read_to_string(finished.directory.join("rps_cpus")).unwrap();
    assert_eq!(steering.trim().trim_start_matches(['0', ',']), "1");
    assert_eq!(fs::read_to_string("/proc/sys/net/ipv6/conf/all/forwarding").unwrap(), here);
}

#[test]
fn real_ports_have_their_commands_run_on_this_machine() {
    if !has_namespaces() {
        return;
    }
    let site = Site::bridge();
    eventually(|| {
        let command = "cat /sys/class/net/eth1/ifindex > seen";
        let finished = saturate("--ports eth1,eth2", &[command]).inside(&site.tester).run().well();
        let index = site.tester.run("cat /sys/class/net/eth1/ifindex");
        assert_eq!(fs::read_to_string(finished.directory.join("seen")).unwrap(), index);
        let record = finished.record();
        assert_eq!(record.dut.configuration["command 1"], command);
        if passed(&record) > 0.9 { Ok(()) } else { Err(format!("{} passed", passed(&record))) }
    });
}

#[test]
fn a_command_that_fails_is_named_with_what_it_said() {
    if !has_namespaces() {
        return;
    }
    let finished =
        saturate("--dut linux-router", &["sysctl -w net.ipv4.no_such_setting=1", "touch later"]).run();
    let refusal = finished.refusal(1);
    for clue in ["'sysctl -w net.ipv4.no_such_setting=1'", "No such file", "linerate lab up NAME"] {
        assert!(refusal.contains(clue), "no '{clue}' in: {refusal}");
    }
    assert!(finished.records().is_empty(), "nothing was measured");
    assert!(!finished.directory.join("later").exists(), "nothing runs after it");
}

#[test]
fn labels_are_in_the_record() {
    if !has_namespaces() {
        return;
    }
    let labelled = saturate("--dut linux-router", &[]).arg("--label").arg("cell=10 rules/64 B/both");
    let record = labelled.arg("--label").arg("repeat=3").run().well().record();
    let labels: Vec<(&str, &str)> =
        record.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(labels, [("cell", "10 rules/64 B/both"), ("repeat", "3")]);

    let unlabelled = saturate("--dut linux-router", &[]).run().well();
    assert!(!unlabelled.stdout.contains("\"labels\""), "{}", unlabelled.stdout);
}

#[test]
fn bad_labels_are_refused() {
    for (line, clues) in [
        ("ramp --label fast", ["'fast'", "KEY=VALUE"]),
        ("soak --label =x", ["'=x'", "KEY=VALUE"]),
        ("search --label a=1 --label a=2", ["--label a=", "once"]),
        ("rfc2544 --label a=1 --label a=2", ["--label a=", "once"]),
    ] {
        let finished = linerate(line).run();
        let refusal = finished.refusal(2);
        assert!(clues.iter().all(|clue| refusal.contains(clue)), "{refusal}");
    }
}
