//! fastpath as a device, over shared memory and at the interfaces of the lab: it forwards, says what its nodes
//! did, and leaves nothing behind.

use std::fs;
use std::time::Duration;

use crate::common::holdings::Holdings;
use crate::common::namespace::Namespace;
use crate::common::{QUICK, eventually, has_namespaces, linerate, machine, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use results::Record;

/// The engine that sends to it in user space: shared memory, by DPDK where that is built in.
const USER_SPACE: &str = if cfg!(feature = "dpdk") { "dpdk" } else { "memif" };

/// The routers that linerate has started.
fn routers() -> Vec<i32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_router = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.contains("user-space-router"))
    };
    numbers.filter(is_router).collect()
}

/// Fails if a router is left soon, or a file where it has its own.
fn assert_nothing_left() {
    assert!(wait_until(Duration::from_secs(30), || routers().is_empty()), "a process is left");
    for file in ["fastpath.sock", "fastpath.toml", "memif0.sock", "memif1.sock"] {
        assert!(!fs::exists(format!("/dev/shm/{file}")).unwrap(), "{file} is left");
    }
}

/// A short ramp with `flags`, in which more than a thousand frames came back and what the device counted is
/// known. Nothing where the machine is not at rest.
fn ramp(flags: &str) -> Option<Record> {
    eventually(|| {
        let line = format!("ramp {flags} --flows var2 --rate 10kpps --json {QUICK}");
        let finished = linerate(&line).run();
        let record = if finished.status.success() { finished.record() } else { return Err(finished.stderr) };
        let is_enough = record.directions.iter().all(|direction| direction.forwarded > 1000);
        // What is on its way when the device is asked is not yet counted there.
        let is_followed =
            !record.cross_check.is_empty() && record.cross_check.iter().all(|check| check.agrees);
        let is_known = is_followed && !record.nodes.is_empty();
        if is_enough && is_known {
            Ok(record)
        } else {
            Err(format!("{flags}: {:?} {:?}", record.directions, record.notes))
        }
    })
}

#[test]
fn it_routes_and_connects_both_protocols_in_both_directions() {
    if !has_namespaces() {
        return;
    }
    for (flags, node) in [
        ("--dut fastpath --size 9000", "ip4-rewrite"),
        ("--dut fastpath --ip 6 --bidirectional", "ip6-rewrite"),
        // What goes to port 1 is held against the list there.
        ("--dut fastpath:acl=4999,states=on", "acl-plugin-out-ip4-fa"),
        ("--dut fastpath:mode=xconnect --bidirectional", "l2-output"),
        ("--dut fastpath:mode=bridge,vlan=100 --vlan 100 --size 68 --bidirectional", "l2-fwd"),
        ("--dut fastpath:routes=1k,vlan=100 --vlan 100 --size 68", "ip4-rewrite"),
    ] {
        let Some(record) = ramp(&format!("--engine {USER_SPACE} {flags}")) else { break };
        assert_tells(&record, node, ["role=server", "fastpath's port 0"]);
    }
    assert_nothing_left();
}

#[test]
fn in_the_lab_it_does_the_same_between_interfaces_of_the_kernel() {
    if !has_namespaces() {
        return;
    }
    for (flags, node) in [
        ("--dut fastpath", "ip4-rewrite"),
        ("--dut fastpath --ip 6 --bidirectional --size 3412", "ip6-rewrite"),
        ("--dut fastpath:mode=xconnect --bidirectional", "l2-output"),
    ] {
        let Some(record) = ramp(flags) else { break };
        assert_tells(&record, node, ["device = \"af_xdp:dut0\"", "dut0"]);
        assert_eq!((record.tester.engine.as_str(), record.dut.core.is_some()), ("xdp", true), "{flags}");
        // Veth pairs lend no frames; where they do one day, nothing is said of copies.
        let (mode, found) = (&record.dut.configuration["af_xdp"], &record.dut.configuration["xdp"]);
        let copies = mode.starts_with("copy (the driver has no zero copy)");
        assert!(copies || mode.starts_with("zero-copy"), "{mode}");
        assert_ne!(found, "none", "{flags}");
        let is_noted = record.notes.iter().any(|note| note.contains("AF_XDP, which copies each"));
        assert_eq!(is_noted, copies, "{:?}", record.notes);
    }
    assert_nothing_left();
}

/// What takes them comes to no worker, and each frame counts all the same.
#[test]
fn in_the_lab_the_kernel_forwards_by_shortcuts() {
    if !has_namespaces() {
        return;
    }
    for flags in ["", "--ip 6 --bidirectional"] {
        let line = format!(
            "saturate --dut fastpath:shortcuts=on --rate 20kpps {flags} --warm-up-duration 2s --duration 1s --json"
        );
        eventually(|| {
            let record = linerate(&line).run().well().record();
            let rewrites = record.nodes.iter().filter(|node| node.name.ends_with("rewrite"));
            let worked: u64 = rewrites.filter_map(|node| node.meanwhile()).map(|did| did.vectors).sum();
            let all =
                record.directions.iter().all(|way| way.offered > 10_000 && way.forwarded == way.offered);
            // Those before the first shortcut, of which the kernel may know only a second after the ports are ready.
            let offered: u64 = record.directions.iter().map(|way| way.offered).sum();
            if !all || worked >= offered / 2 {
                return Err(format!("{worked} of {:?}", record.directions));
            }
            assert!(
                record.notes.iter().any(|note| note.contains("its kernel forwarded")),
                "{:?}",
                record.notes
            );
            Ok(())
        });
    }
    for (line, clue) in [
        ("saturate --dut fastpath:shortcuts=on,vlan=7 --vlan 7", "shortcuts"),
        ("saturate --dut fastpath:shortcuts=on,acl=10", "shortcuts"),
        ("saturate --dut fastpath:shortcuts=on,mode=bridge", "shortcuts"),
        ("saturate --engine memif --dut fastpath:shortcuts=on", "leave --engine out"),
    ] {
        let said = linerate(line).run().refusal(2).to_owned();
        assert!(said.contains(clue), "{line}: {said}");
    }
    assert_nothing_left();
}

#[test]
fn in_the_lab_two_workers_share_the_flows() {
    if !has_namespaces() || std::thread::available_parallelism().unwrap().get() < 2 {
        return;
    }
    let Some(record) = ramp("--dut fastpath:workers=2,cores=1+0,rss=on") else { return };
    assert_eq!((record.dut.core, record.dut.cores.as_slice()), (Some(1), &[1, 0][..]));
    let by = |worker: &str| {
        let its = record.nodes.iter().find(|node| node.thread == worker && node.name == "ip4-rewrite");
        its.and_then(|node| node.meanwhile()).map_or(0, |did| did.vectors)
    };
    let [zero, one] = ["worker 0", "worker 1"].map(by);
    let forwarded: u64 = record.directions.iter().map(|direction| direction.forwarded).sum();
    assert!(zero + one >= forwarded, "{zero} + {one} of {forwarded}");
    assert!(zero.min(one) * 100 > (zero + one) * 40, "unevenly: {zero} and {one}");
    assert_nothing_left();
}

#[test]
fn in_the_lab_a_low_rate_passes_without_loss() {
    if !has_namespaces() {
        return;
    }
    eventually(|| {
        let line = "saturate --dut fastpath --bidirectional --rate 2kpps --warm-up-duration 300ms \
                    --duration 1s --drain 300ms --json";
        let finished = linerate(line).run();
        let record = if finished.status.success() { finished.record() } else { return Err(finished.stderr) };
        let all = record.directions.iter().all(|way| way.offered > 100 && way.forwarded == way.offered);
        if all { Ok(()) } else { Err(format!("{:?} {:?}", record.directions, record.notes)) }
    });
}

/// Fails if the record of a ramp does not say what the device was, what its `node` did, and where frames passed:
/// `clues` are of its command and of a place.
fn assert_tells(record: &Record, node: &str, clues: [&str; 2]) {
    assert_eq!(record.dut.name, "fastpath");
    let text = &record.dut.configuration["command"];
    assert!(text.contains("[[interface]]") && text.contains(clues[0]), "{text}");
    for check in &record.cross_check {
        let places: Vec<_> = check.points.iter().map(|point| point.place.as_str()).collect();
        assert!(places.iter().any(|place| place.contains(clues[1])), "{places:?}");
    }
    let found = record.nodes.iter().find(|found| found.name == node);
    let found = found.unwrap_or_else(|| panic!("{:?}: no {node} in {:?}", record.command, record.nodes));
    let forwarded: u64 = record.directions.iter().map(|direction| direction.forwarded).sum();
    assert!(found.meanwhile().unwrap().vectors >= forwarded, "{:?}: {found:?}", record.command);
}

#[test]
fn it_dies_with_a_run_that_is_killed_and_leaves_nothing() {
    if !has_namespaces() {
        return;
    }
    let line = format!(
        "saturate --engine {USER_SPACE} --dut fastpath --rate 1kpps --warm-up-duration 300ms --duration 30s"
    );
    let mut running = linerate(&line).start();
    running.wait_for_record(|record| record.samples.iter().any(|sample| sample.directions[0].forwarded > 0));
    running.signal(Signal::SIGKILL);
    assert_nothing_left();
}

/// A saturation in the lab, which takes half a minute.
const IN_LAB: &str =
    "saturate --dut fastpath --rate 1kpps --warm-up-duration 300ms --step 100ms --duration 30s";

#[test]
fn in_the_lab_nothing_of_it_is_left_when_its_run_is_killed() {
    if !has_namespaces() {
        return;
    }
    let home = Namespace::new();
    let before = (home.interfaces(), home.abstract_sockets());
    let mut run = linerate(IN_LAB).inside(&home).start();
    run.wait_for_record(|record| record.samples.iter().any(|sample| sample.directions[0].forwarded > 0));
    let holdings = [run.pid().cast_signed()].into_iter().chain(routers());
    let holdings: Vec<_> = holdings.map(|pid| Holdings::of(pid.cast_unsigned(), &home)).collect();
    assert!(holdings.len() == 2 && holdings.iter().all(|held| !held.programs.is_empty()), "{holdings:?}");
    run.signal(Signal::SIGKILL);
    let mut remaining = Vec::new();
    let is_gone = wait_until(Duration::from_secs(30), || {
        remaining = holdings.iter().flat_map(Holdings::remaining).collect();
        remaining.is_empty()
    });
    assert!(is_gone, "left behind: {remaining:?}");
    assert_nothing_left();
    assert_eq!((home.interfaces(), home.abstract_sockets()), before);
}

#[test]
fn in_the_lab_its_death_ends_the_run_with_the_cause() {
    if !has_namespaces() {
        return;
    }
    let mut run = linerate(IN_LAB).start();
    run.wait_for_record(|record| record.samples.iter().any(|sample| sample.directions[0].forwarded > 0));
    for router in routers() {
        kill(Pid::from_raw(router), Signal::SIGKILL).unwrap();
    }
    let finished = run.finish();
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("the device fastpath has ended"), "{}", finished.stderr);
    let [record] = finished.records().try_into().unwrap();
    assert!(record.directions[0].forwarded > 0, "what was measured stays: {:?}", record.directions);
    assert_nothing_left();
}

#[test]
fn a_lab_with_it_answers_and_can_be_asked() {
    if !has_namespaces() {
        return;
    }
    let _machine = machine();
    let home = Namespace::new();
    let run = |line: &str| linerate(line).inside(&home).run();
    // One that was killed may still be ending.
    let before = routers();
    run("lab up demo --dut fastpath").well();
    run("lab exec demo tester -- ping -q -c 1 -w 5 100.65.1.1").well();
    run("lab exec demo tester -- ping -q -c 1 -w 5 2001:2:0:2::1").well();
    let begun: Vec<i32> = routers().into_iter().filter(|router| !before.contains(router)).collect();
    let [router] = begun.try_into().unwrap();
    let control = format!("/proc/{router}/root/dev/shm/fastpath.sock");
    let rows = fastpath::client::Client::connect(control.as_ref()).unwrap().interfaces().unwrap().interfaces;
    assert!(rows.iter().all(|row| row.rx_packets > 0 && row.tx_packets > 0), "{rows:?}");
    run("lab down demo").well();
    assert_nothing_left();
}
