//! Where packets and time go: queues of real interfaces.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use common::namespace::Namespace;
use common::{eventually, has_namespaces, linerate, machine};
use results::record::Basis;

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
    let watch = linerate(&format!("queues far --netns {path} --interval 2s --json")).start();
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
    let shown = linerate("queues lo --interval 100ms --count 2").run().well();
    assert_eq!(shown.stdout, "");
    assert!(shown.stderr.contains("/proc/net/softnet_stat"), "{}", shown.stderr);
    assert!(shown.stderr.contains("core 0"), "{}", shown.stderr);
    assert_eq!(shown.stderr.lines().filter(|line| line.starts_with('[')).count(), 1, "{}", shown.stderr);
}

#[test]
fn a_frame_costs_the_less_the_higher_the_load() {
    if !has_namespaces() {
        return;
    }
    let line = "explain cost --dut linux-router --duration 1s --warm-up-duration 200ms --watts 20 --json";
    let _machine = machine();
    eventually(|| {
        let record = linerate(line).on_my_machine().run().well().record();
        let found = record.cost.as_ref().unwrap();
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
        let half = middle.offered_pps / saturation.forwarded_pps;
        let per_frame = low.ns_per_frame.unwrap() / saturation.ns_per_frame.unwrap();
        if (0.45..0.55).contains(&half) && per_frame > 1.5 && saturation.busy > 0.8 && low.busy < 0.2 {
            Ok(())
        } else {
            Err(format!("{:#?}", found.loads))
        }
    });
}

#[test]
fn what_cannot_be_watched_is_refused() {
    for (line, reason) in [
        ("queues no-such-if", "there is no interface 'no-such-if'"),
        ("queues lo --interval 0s", "--interval above 0"),
        ("explain cost --ports lo,lo", "lo"),
        ("explain cost --watts 0", "is no power"),
        ("queues lo --netns no-such-namespace", "there is no network namespace"),
    ] {
        let finished = linerate(line).run();
        assert!(finished.refusal(2).contains(reason), "{line}: {}", finished.stderr);
    }
}
