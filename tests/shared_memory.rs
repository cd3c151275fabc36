//! Load tests through shared memory by memifs of our own: devices in user space, without DPDK.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::leftovers::{MARK, command_of, marked};
use crate::common::{QUICK, eventually, has_namespaces, linerate, listening, wait_until};
use nix::sys::signal::Signal;

#[test]
fn devices_in_user_space_are_reached_without_dpdk() {
    if !has_namespaces() {
        return;
    }
    let mut duts = vec!["fastpath --bidirectional", "fastpath:mode=xconnect --size 9216", "calibrated"];
    if std::process::Command::new("dpdk-testpmd").arg("--version").output().is_ok() {
        duts.push("testpmd:mode=macswap");
    } else {
        eprintln!("skipped: the device testpmd needs Debian's dpdk-dev");
    }
    for dut in duts {
        let found = eventually(|| {
            let run =
                linerate(&format!("ramp --engine memif --dut {dut} --rate 10kpps --json {QUICK}")).run();
            let record = if run.status.success() { run.record() } else { return Err(run.stderr) };
            assert_eq!(record.tester.engine, "memif");
            for direction in record.samples.iter().flat_map(|sample| &sample.directions) {
                assert!(direction.forwarded <= direction.offered, "{direction:?}");
            }
            let is_known = record.cross_check.iter().all(|check| check.agrees && check.points.len() >= 4);
            let is_enough = record.directions.iter().all(|direction| direction.forwarded > 1000);
            if is_known && is_enough { Ok(()) } else { Err(format!("{dut}: {:?}", record.cross_check)) }
        });
        if found.is_none() {
            return;
        }
    }
}

#[test]
fn a_device_of_known_truth_leaves_its_core_while_nothing_arrives() {
    if !has_namespaces() {
        return;
    }
    let mark = format!("rest-{}", std::process::id());
    let line = "serve --engine memif --dut calibrated --rpc-port 0 --publish-port 0";
    let Some((server, _)) = listening(linerate(line).env(MARK, &mark).start()) else { return };
    let is_device = |pid: &u32| command_of(*pid).contains("user-space-device");
    let device = marked(&mark).into_iter().find(is_device).expect("the server has started the device");
    // Known to a hundredth of a second.
    let before = processor_time(device);
    let clock = Instant::now();
    thread::sleep(Duration::from_millis(500));
    let share = (processor_time(device) - before).as_secs_f64() / clock.elapsed().as_secs_f64();
    assert!(share < 0.5, "at rest it takes {share:.2} of its core");
    server.signal(Signal::SIGINT);
    server.finish().well();
}

/// How long a process has run on cores.
fn processor_time(pid: u32) -> Duration {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // Fields 14 and 15, of which the second, the name, may hold blanks. There are a hundred ticks a second.
    let (_, fields) = status.rsplit_once(')').unwrap();
    let ticks = fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap());
    Duration::from_millis(10 * ticks.sum::<u64>())
}

#[test]
fn what_a_device_of_known_truth_counts_is_what_comes_back_to_the_frame() {
    if !has_namespaces() {
        return;
    }
    let line = "saturate --engine memif --dut calibrated:drop-every=10 --rate 5kpps --duration 600ms --step 100ms \
                --warm-up-duration 200ms --drain 200ms --bidirectional";
    let _ = eventually(|| {
        let record = linerate(line).arg("--json").run().well().record();
        for (direction, check) in record.directions.iter().zip(&record.cross_check) {
            let (offered, forwarded) = (direction.offered, direction.forwarded);
            let counted: Vec<_> = check.points.iter().map(|point| point.frames).collect();
            if counted[1] != offered || offered < 2000 {
                return Err(format!("{} of {offered} offered frames reached it", counted[1]));
            }
            assert_eq!(forwarded, offered - offered / 10, "{}", direction.name);
            assert!(check.agrees);
        }
        Ok(())
    });
}

/// Both ends of one memif: one worker does everything, so nothing can be lost.
#[test]
fn two_ends_of_one_memif_are_a_cable() {
    let socket = format!("@/linerate-cable-{}", std::process::id());
    let ports = format!("--port0 memif:socket={socket} --port1 memif:socket={socket},role=client");
    let line = format!(
        "saturate --engine memif {ports} --cores 0 --rate 5kpps --duration 500ms --warm-up-duration 100ms --size imix"
    );
    let record = linerate(&line).arg("--json").run().well().record();
    let direction = &record.directions[0];
    assert!(direction.offered > 0 && direction.forwarded == direction.offered, "{direction:?}");
    assert_eq!((record.dut.name.as_str(), record.tester.ports[0].name.as_str()), ("ports", "memif0"));
    assert!(!std::fs::read_to_string("/proc/net/unix").unwrap().contains(&socket), "a socket is left");
}

#[test]
fn the_tester_s_ceiling_is_measured_without_a_device() {
    if !has_namespaces() {
        return;
    }
    let mark = format!("ceiling-{}", std::process::id());
    let ended = AtomicBool::new(false);
    let (said, devices) = thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let is_device = |pid: &u32| command_of(*pid).contains("user-space-device");
            let mut seen = BTreeSet::new();
            let has_ended = wait_until(Duration::from_secs(120), || {
                seen.extend(marked(&mark).into_iter().filter(is_device));
                ended.load(Ordering::Relaxed)
            });
            has_ended.then_some(seen)
        });
        let said = linerate("verify ceiling --engine memif --dut calibrated --json").env(MARK, &mark).run();
        ended.store(true, Ordering::Relaxed);
        (said, watching.join().unwrap())
    });
    assert!(said.well().json()["ceiling_pps"].as_f64() > Some(0.0));
    assert_eq!(devices.map(|seen| seen.len()), Some(1), "the device under test alone, which is held up");
}

#[test]
fn what_is_no_memif_or_has_no_other_end_is_refused_with_the_remedy() {
    let alone = format!("memif:socket=@/linerate-alone-{},role=client", std::process::id());
    for (ports, code, clue) in [
        ("--port0 null --port1 null".to_owned(), 2, "write memif:socket="),
        ("--port0 net_null0 --port1 net_null1".to_owned(), 2, "no device is called"),
        ("--ports lo,lo".to_owned(), 2, "give --port0 and --port1"),
        ("--dut linux-router".to_owned(), 2, "calibrated, testpmd, vpp or fastpath"),
        (format!("--port0 {alone} --port1 {alone}"), 1, "start it first"),
        (
            "--port0 memif:socket=/none/such --port1 memif:socket=/none/such,role=client".to_owned(),
            2,
            "directory",
        ),
    ] {
        let finished = linerate(&format!("saturate --engine memif {ports} --duration 1s")).run();
        assert!(finished.refusal(code).contains(clue), "{ports}: {}", finished.stderr);
    }
}

#[test]
fn frames_sent_to_a_counter_by_two_memifs_are_counted_there() {
    let socket = |number| format!("memif:socket=@/linerate-count-{}-{number}", std::process::id());
    let [a, b] = [socket(0), socket(1)];
    // Frames of direction 0 arrive at the counter's port 1, as at the ports of a load test.
    let count = format!("count --port0 {b} --port1 {a} --cores 1 --interval 100ms --json");
    let counter = linerate(&count).start();
    let counts = || counter.stderr().contains("others");
    assert!(wait_until(Duration::from_secs(60), counts), "{}", counter.stderr());
    assert!(counter.stderr().starts_with("engine: memif, because"), "{}", counter.stderr());
    let ports = format!("--port0 {a},role=client --port1 {b},role=client --cores 0");
    let line = format!("send --engine memif {ports} --rate 5kpps --bidirectional --duration 500ms --json");
    let sent = linerate(&line).run().well().json();
    counter.signal(Signal::SIGINT);
    let counted = counter.finish().well().json();
    // What finds no room in the counter's rings was offered, and is not there.
    assert_eq!(counted["frames"], sent["interface_sent"], "{sent} {counted}");
    assert!(counted["frames"].as_u64() > Some(1000), "{sent} {counted}");
    assert!(counted["latency_p50_ns"].as_u64() > Some(0), "{counted}");
    assert_eq!((&counted["duplicates"], &counted["reordered"]), (&0.into(), &0.into()));
}

#[test]
fn a_profile_is_sent_to_a_device_in_user_space_until_the_time_is_over() {
    if !has_namespaces() {
        return;
    }
    let line = "send --engine memif --rate 5kpps --duration 400ms --json";
    let sent = linerate(line).run().well().json();
    assert!(sent["offered"].as_u64() > Some(1000), "{sent}");
    assert_eq!(sent["interface_sent"], sent["dut_received"], "{sent}");
    let refusal = linerate("send --engine memif --port eth1 --to 02:00:00:00:00:01").run();
    assert!(refusal.refusal(2).contains("--port0 and --port1"), "{}", refusal.stderr);
}
