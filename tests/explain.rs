//! Where packets and time go: queues of real interfaces.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::common::namespace::Namespace;
use crate::common::{eventually, has_namespaces, linerate, machine};
use results::record::{Basis, LoadCost};

#[test]
fn a_veth_s_queues_are_told_by_its_driver_and_served_by_its_thread() {
    if !has_namespaces() {
        return;
    }
    let namespace = Namespace::new();
    namespace.run(
        "ip link add near type veth peer name far
         ethtool -K far gro on
         ethtool -K near tso off # else frames pass the other end's queue by
         ip address add 100.65.9.1/24 dev near
         ip link set near up
         ip link set far up
         echo 1 > /sys/class/net/far/threaded
         ip neighbour add 100.65.9.2 lladdr 02:00:00:00:09:02 dev near
         for pid in $(grep -l napi/far /proc/[0-9]*/comm | cut -d/ -f3); do taskset -pc 0 $pid; done",
    );
    let path = namespace.path();
    let watch = linerate(&format!("explain queues far --netns {path} --interval 2s --json")).start();
    namespace.run("ping -q -c 200 -i 0.002 -W 1 100.65.9.2 || true # nobody answers");
    let usage = &watch.finish().well().json()["usage"];
    assert_eq!(usage["source"], "ethtool", "{usage}");
    let place = &usage["places"][0];
    assert_eq!(
        (place["place"]["kind"].as_str(), place["place"]["number"].as_u64()),
        (Some("receive"), Some(0))
    );
    assert!(place["pps"].as_f64().unwrap() > 10.0, "{usage}");
    assert_eq!(usage["receive"]["imbalance"], 0.0, "it is the only one");
    let missing = usage["missing"].as_array().unwrap();
    assert!(missing.iter().any(|why| why.as_str().unwrap().contains("from the kernel")), "{usage}");
}

#[test]
fn an_interface_without_queues_of_its_own_is_told_by_core() {
    let shown = linerate("explain queues lo --interval 100ms --count 2").run().well();
    assert_eq!(shown.stdout, "");
    assert!(shown.stderr.contains("/proc/net/softnet_stat"), "{}", shown.stderr);
    assert!(shown.stderr.contains("core 0"), "{}", shown.stderr);
    assert_eq!(shown.stderr.lines().filter(|line| line.starts_with('[')).count(), 1, "{}", shown.stderr);
}

#[test]
fn a_run_keeps_which_queues_its_frames_took() {
    if !has_namespaces() {
        return;
    }
    let line =
        "saturate --dut linux-router:queues=2 --rate 10kpps --duration 1s --warm-up-duration 100ms --json";
    let finished = linerate(line).run().well();
    let record = finished.record();
    let names: Vec<&str> = record.queues.iter().map(|queues| queues.interface.as_str()).collect();
    assert_eq!(names, ["dut0", "dut1"]);
    let received = record.queues[0].queues.iter().filter(|queue| queue.place.starts_with("rx"));
    let received: Vec<f64> = received.map(|queue| queue.pps).collect();
    assert_eq!(received.len(), 2, "{:?}", record.queues);
    // A second at 10 kpps, spread over as long as the run waited for a quiet machine.
    assert!(received.iter().sum::<f64>() > 100.0, "{received:?}");
    // One core generates, so one queue takes all.
    assert!(record.queues[0].receive_imbalance.unwrap() > 0.9, "{:?}", record.queues[0]);
    assert!(finished.stderr.contains("queues of dut0: rx"), "{}", finished.stderr);
}

#[test]
fn a_run_keeps_its_machine_and_its_meter_and_says_what_stands_out() {
    if !has_namespaces() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let line = "saturate --dut calibrated:rate=5kpps --rate 10kpps --duration 600ms --warm-up-duration 100ms \
                --price-per-kwh 0.3 --json";
    let line = linerate(line).arg("--watts-command").arg("echo 19.5 W").arg("--runs").arg(runs.path());
    let finished = line.run().well();
    let record = finished.record();
    let host = record.environment.host.as_ref().unwrap();
    assert!(!host.topology.cores.is_empty() && host.command_line.is_some(), "{host:?}");
    let gauges = record.gauges.as_ref().unwrap();
    // Energy over time, which is not always the power to the last bit.
    let as_told = |watts: Option<f64>| watts.is_some_and(|watts| (watts - 19.5).abs() < 1e-9);
    assert!(gauges.readings.len() >= 2 && gauges.readings.iter().all(|it| as_told(it.watts)), "{gauges:?}");
    assert!(finished.stderr.contains("price of the energy of a year: "), "{}", finished.stderr);
    let found = linerate("explain findings --json").arg(runs.path()).run().well().json();
    assert_eq!(found[0]["run"], record.id, "{found}");
    assert!(found[0]["findings"].is_array(), "{found}");
    let text = linerate("explain findings").arg(runs.path()).run().well().stderr;
    assert!(text.contains("source of the power: what --watts-command prints (echo 19.5 W)"), "{text}");
}

#[test]
fn a_frame_costs_the_less_the_higher_the_load() {
    if !has_namespaces() {
        return;
    }
    let line = "explain cost --dut linux-router --duration 1s --warm-up-duration 200ms --watts 20 --json";
    eventually(|| {
        let _machine = machine();
        let record = linerate(line).on_my_machine().run().well().record();
        let found = record.finding.cost().unwrap();
        assert_eq!(found.basis, Basis::WithoutIdlePolling);
        let names: Vec<&str> = found.loads.iter().map(|load| load.name.as_str()).collect();
        assert_eq!(names, ["low", "middle", "saturation"]);
        for load in &found.loads {
            let ns = load.ns_per_frame.unwrap();
            assert!((ns * load.forwarded as f64 / 1e9 / load.busy_s - 1.0).abs() < 1e-6, "{load:?}");
            let joules = load.uj_per_frame.unwrap() * load.forwarded as f64 / 1e6;
            assert!((joules / 20.0 / load.duration_s - 1.0).abs() < 0.01, "{load:?}");
            assert_eq!(load.cycles_per_frame.is_some(), load.clock_hz.is_some());
        }
        let [low, middle, saturation] = &found.loads[..] else { unreachable!() };
        let counted = low.cycles_per_frame.is_some();
        assert_eq!(found.missing.iter().any(|missing| missing.starts_with("cycles: ")), !counted);
        assert!(record.directions[0].offered > 0);
        let intended = record.samples.last().unwrap().directions[0].intended_pps;
        assert!((intended / saturation.forwarded_pps - 0.5).abs() < 1e-9, "the middle is half: {intended}");
        // How busy a core is, and what leaves the tester, is known where nobody else took their time.
        let undisturbed = |load: &LoadCost| load.disturbed.is_none();
        assert!(!undisturbed(low) || low.busy < 0.2, "{low:#?}");
        assert!(!undisturbed(saturation) || saturation.busy > 0.8, "{saturation:#?}");
        let half = middle.offered_pps / saturation.forwarded_pps;
        assert!(!undisturbed(middle) || (0.45..0.55).contains(&half), "{half} in {:#?}", found.loads);
        // What runs once a batch costs the less a frame, the more of them there are.
        let per_frame = low.ns_per_frame.unwrap() / saturation.ns_per_frame.unwrap();
        if per_frame > 1.5 && low.busy < saturation.busy {
            Ok(())
        } else {
            Err(format!("{:#?}", found.loads))
        }
    });
}

#[test]
fn the_thread_of_a_device_in_user_space_is_timed() {
    if !has_namespaces() {
        return;
    }
    let line = "explain cost --dut delayed --low-rate 5kpps --duration 500ms --warm-up-duration 200ms --json";
    eventually(|| {
        let _machine = machine();
        let record = linerate(line).on_my_machine().run().well().record();
        let low = &record.finding.cost().unwrap().loads[0];
        // It looks for frames all the time while there is a load, however low.
        if low.busy > 0.7 { Ok(()) } else { Err(format!("{low:?}")) }
    });
}

/// Whether the kernel's profiler may be used here.
fn has_perf() -> bool {
    let tried = Command::new("perf").args(["record", "-e", "cpu-clock", "-a", "-o", "-", "true"]).output();
    let has = has_namespaces() && tried.is_ok_and(|output| output.status.success());
    if !has {
        eprintln!("skipped: 'perf' is missing, or may not sample a core");
    }
    has
}

/// The lines of folded stacks, each with its samples.
fn folded(text: &str) -> Vec<(&str, u64)> {
    let parse = |line| str::rsplit_once(line, ' ').map(|(stack, count)| (stack, count.parse().unwrap()));
    text.lines().map(|line| parse(line).unwrap()).collect()
}

#[test]
fn a_flame_graph_shows_where_a_router_works_and_says_what_it_rests_on() {
    if !has_perf() {
        return;
    }
    let line = "explain flamegraph --dut linux-router --rate 100kpps --duration 2s -o router.svg --json";
    eventually(|| {
        let _machine = machine();
        let finished = linerate(line).on_my_machine().run().well();
        assert!(finished.records().is_empty(), "it is no measurement");
        let shown = finished.json();
        let profile = &shown["profiles"][0];
        let svg = fs::read_to_string(finished.directory.join("router.svg")).unwrap();
        assert!(svg.contains("Where the core of linux-router works, at 100.00 kpps"), "{}", shown["title"]);
        assert!(svg.contains(shown["basis"].as_str().unwrap().split(';').next().unwrap()));
        let text = fs::read_to_string(finished.directory.join("router.folded")).unwrap();
        let stacks = folded(&text);
        let samples: u64 = stacks.iter().map(|(_, count)| count).sum();
        assert_eq!(Some(samples), profile["samples"].as_u64());
        let taken = samples + profile["idle_samples"].as_u64().unwrap();
        assert!(taken < 997 * 3, "{taken} samples in 2 s: the load's time alone is sampled");
        let with = |frame: &str| -> u64 {
            stacks.iter().filter(|(stack, _)| stack.contains(frame)).map(|(_, count)| count).sum()
        };
        let (polling, routing) = (with(";veth_poll"), with(";ip_"));
        if polling * 2 > samples && routing * 20 > samples && profile["own_share"].as_f64().unwrap() > 0.5 {
            Ok(())
        } else {
            Err(format!("{polling} poll, {routing} route: {shown:#}"))
        }
    });
}

#[test]
fn of_a_router_in_user_space_its_own_functions_are_drawn_and_counted_as_its_work() {
    if !has_perf() {
        return;
    }
    let line = "explain flamegraph --dut fastpath --rate 20kpps --duration 1s -o router.svg --json";
    eventually(|| {
        let finished = linerate(line).run().well();
        let text = fs::read_to_string(finished.directory.join("router.folded")).unwrap();
        let of_workers = folded(&text).into_iter().filter(|(stack, _)| stack.starts_with("worker;"));
        let (mut own, mut functions) = (0, 0);
        for (stack, count) in of_workers {
            own += count;
            functions += if stack.contains("fastpath::dataplane") { count } else { 0 };
        }
        let profile = &finished.json()["profiles"][0];
        let share = profile["own_share"].as_f64().unwrap();
        let least = own as f64 / profile["samples"].as_f64().unwrap();
        assert!(share >= least - 1e-9, "{share} of the device's threads, {least} of its workers");
        if functions > 0 { Ok(()) } else { Err(format!("{own} samples of workers: {text}")) }
    });
}

#[test]
fn two_devices_are_drawn_as_a_difference_of_shares() {
    if !has_perf() {
        return;
    }
    let line = "explain flamegraph --dut xdp-router --against linux-router --duration 1s --rate 50% -o a.svg";
    let finished = {
        let _machine = machine();
        linerate(line).on_my_machine().run().well()
    };
    let again = linerate("explain flamegraph --difference a.against.folded a.folded --json")
        .in_directory(&finished.directory)
        .run()
        .well();
    let drawings = ["a.svg", "flamegraph.svg"].map(|name| {
        let svg = fs::read_to_string(finished.directory.join(name)).unwrap();
        assert!(svg.contains("red: more in the function itself than in"), "{svg}");
        svg.matches("<rect").count()
    });
    assert_eq!(drawings[0], drawings[1], "the same stacks give the same drawing");
    assert_eq!(again.json()["title"], "a.folded, against a.against.folded");
}

#[test]
fn what_cannot_be_drawn_is_refused_with_the_remedy() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [("good.folded", "t;a 3\n"), ("bad.folded", "t;a 3\nt;b\n"), ("none.folded", "")] {
        fs::write(directory.path().join(name), text).unwrap();
    }
    for (flags, code, reason) in [
        ("--output drawing.png", 2, "does not end in .svg"),
        ("--rate 0%", 2, "sends nothing"),
        ("--difference good.folded no-such-file", 1, "cannot read no-such-file"),
        ("--difference good.folded bad.folded", 2, "bad.folded: line 2 is no folded stack"),
        ("--difference none.folded good.folded", 2, "none.folded has no samples"),
        ("--difference good.folded good.folded --dut linux-router", 2, "cannot be used with"),
        ("--difference good.folded good.folded -o no-such-directory/a.svg", 1, "cannot write"),
    ] {
        let refused = linerate(&format!("explain flamegraph {flags}")).in_directory(directory.path()).run();
        assert!(refused.refusal(code).contains(reason), "{flags}: {}", refused.stderr);
    }
    let without = linerate("explain flamegraph").env("PATH", directory.path().to_str().unwrap()).run();
    assert!(without.refusal(1).contains("apt install linux-perf"), "{}", without.stderr);
    if !has_namespaces() {
        return;
    }
    let denied =
        "#!/bin/sh\n[ \"$1\" = --version ] || { echo 'Consider perf_event_paranoid' >&2; exit 255; }\n";
    let perf = directory.path().join("perf");
    fs::write(&perf, denied).unwrap();
    fs::set_permissions(&perf, fs::Permissions::from_mode(0o755)).unwrap();
    let _machine = machine();
    let line = linerate("explain flamegraph --rate 1kpps --duration 300ms").on_my_machine();
    let denied = line.env("PATH", directory.path().to_str().unwrap()).run();
    assert!(denied.refusal(1).contains("run as root, or lower"), "{}", denied.stderr);
}

#[test]
fn what_cannot_be_watched_is_refused() {
    for (line, reason) in [
        ("explain queues no-such-if", "there is no interface 'no-such-if'"),
        ("explain queues lo --interval 0s", "--interval must be greater than 0"),
        ("explain cost --ports lo,lo", "lo"),
        ("explain cost --watts 0", "is no power"),
        ("explain queues lo --netns no-such-namespace", "there is no network namespace"),
    ] {
        let finished = linerate(line).run();
        assert!(finished.refusal(2).contains(reason), "{line}: {}", finished.stderr);
    }
}
