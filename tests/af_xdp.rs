//! The engine on AF_XDP sockets from end to end: routers and devices of known behaviour, what the interfaces
//! counted, and what is left when it is killed.

use std::time::Duration;

use crate::common::namespace::Namespace;
use crate::common::sites::Site;
use crate::common::{Finished, eventually, has_namespaces, linerate, wait_until};
use crate::real_ports::{self, GATEWAYS, passes};
use nix::sys::signal::Signal;
use results::record::{LimitedBy, Phase};
use serde_json::Value;

/// A ramp to 2 kpps through `site` by this engine, in its record.
fn ramp(site: &Site, flags: &str) -> Finished {
    real_ports::ramp(site, &format!("--engine af_xdp {flags}"))
}

#[test]
fn a_ramp_through_a_router_agrees_with_every_interface_on_its_way() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    eventually(|| {
        let record = ramp(&site, &format!("{GATEWAYS} --flows var2 --bidirectional")).well().record();
        assert_eq!(record.tester.engine, "af_xdp");
        for port in &record.tester.ports {
            assert_eq!(
                port.xdp_mode,
                "af_xdp, copy (the driver has no zero copy); arrivals counted by the XDP program in the driver"
            );
        }
        assert_eq!(record.cross_check.len(), 2);
        assert!(record.cross_check.iter().all(|check| check.agrees), "{:?}", record.cross_check);
        passes(&record, 2)
    });
}

#[test]
fn of_a_device_that_drops_every_tenth_frame_nine_tenths_return() {
    if !has_namespaces() {
        return;
    }
    eventually(|| {
        let line = "saturate --engine af_xdp --dut calibrated:drop-every=10 --rate 5kpps --duration 1s";
        let line =
            format!("{line} --step 100ms --warm-up-duration 200ms --drain 200ms --bidirectional --json");
        let record = linerate(&line).run().well().record();
        for direction in &record.directions {
            let (offered, forwarded) = (direction.offered, direction.forwarded);
            if forwarded != offered - offered / 10 {
                return Err(format!("{}: {forwarded} of {offered} frames returned", direction.name));
            }
            assert!(direction.limited_by == LimitedBy::Dut || direction.unsent > 0, "{direction:?}");
        }
        Ok(())
    });
}

#[test]
fn a_search_finds_the_rate_of_a_calibrated_device() {
    if !has_namespaces() {
        return;
    }
    eventually(|| {
        let line = "search --engine af_xdp --goal ndr:width=1%,queue=64,initial=100ms,final=250ms,sum=1s --time-limit 6s \
                    --warm-up-duration 300ms --drain 100ms --json --dut calibrated:rate=20kpps,burst=64";
        let ndr = linerate(line).run().well().record().directions[0].results["ndr"];
        let holds = ndr.lower_pps <= 20.4e3
            && ndr.lower_pps > 10e3
            && ndr.upper_pps.is_none_or(|upper| upper >= 20e3);
        if holds { Ok(()) } else { Err(format!("{ndr:?}")) }
    });
}

/// What `interface` counted: frames that left, and that it dropped.
fn sent_by(namespace: &Namespace, interface: &str) -> (u64, u64) {
    let text = namespace.run(&format!("ip -s -j link show {interface}"));
    let links: Value = serde_json::from_str(&text).unwrap();
    let sent = &links[0]["stats64"]["tx"];
    (sent["packets"].as_u64().unwrap(), sent["dropped"].as_u64().unwrap())
}

#[test]
fn traffic_by_one_port_is_what_the_interface_counted_to_the_frame() {
    if !has_namespaces() {
        return;
    }
    let site = Site::cables();
    site.tester.run("sysctl -qw net.ipv6.conf.eth1.disable_ipv6=1");
    for rate in ["5kpps", "max"] {
        let before = sent_by(&site.tester, "eth1");
        let line = format!(
            "send --engine af_xdp --port eth1 --to 02:00:00:00:01:01 --rate {rate} --duration 300ms --json"
        );
        let told = linerate(&line).inside(&site.tester).run().well().json();
        let after = sent_by(&site.tester, "eth1");
        // A veth hands frames to the other end itself: what finds no room there was sent, and refused.
        let left = after.0 - before.0 + after.1 - before.1;
        assert!(left > 0, "{told}");
        assert_eq!(told["offered"], left, "{rate}: {told}");
    }
}

#[test]
fn several_cores_and_queues_share_a_load_and_every_interface_agrees() {
    if !has_namespaces() {
        return;
    }
    if std::thread::available_parallelism().unwrap().get() < 2 {
        eprintln!("skipped: two queues need two cores");
        return;
    }
    let site = Site::router();
    for number in [1, 2] {
        site.far.run(&format!("ethtool -L far{number} rx 2 tx 2"));
        site.tester.run(&format!("ethtool -L eth{number} rx 2 tx 2"));
    }
    for (cores, by) in [
        ("--cores 0,1", "arrivals counted by the XDP program in the driver"),
        (
            "--cores 0 --receive-cores 1,0",
            "arrivals counted by AF_XDP sockets, because --receive-cores names cores for them",
        ),
    ] {
        let Some(()) = eventually(|| {
            let finished = ramp(&site, &format!("{GATEWAYS} --flows var2 {cores}")).well();
            assert!(finished.stderr.contains(by), "{}", finished.stderr);
            let record = finished.record();
            assert!(record.tester.ports.iter().all(|port| port.xdp_mode.ends_with(by)), "{by}");
            assert_eq!(record.tester.ports[0].facts.as_ref().unwrap().queues.unwrap().transmit, 2);
            assert!(record.cross_check.iter().all(|check| check.agrees), "{:?}", record.cross_check);
            passes(&record, 1)
        }) else {
            return;
        };
    }
}

#[test]
fn killed_in_mid_run_it_leaves_nothing_at_the_ports() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    let line =
        format!("saturate --engine af_xdp --ports eth1,eth2 {GATEWAYS} --rate 2kpps --duration 60s --json");
    let mut run = linerate(&line).inside(&site.tester).start();
    run.wait_for_record(|record| record.samples.iter().any(|sample| sample.phase == Phase::Hold));
    let programs =
        || site.tester.run("ip -d link show eth1; ip -d link show eth2").matches("prog/xdp").count();
    assert_eq!(programs(), 2);
    run.signal(Signal::SIGKILL);
    run.finish();
    assert!(wait_until(Duration::from_secs(10), || programs() == 0), "a program is still attached");
    ramp(&site, GATEWAYS).well();
}

#[test]
fn what_cannot_be_is_refused_with_the_remedy() {
    if !has_namespaces() {
        return;
    }
    let site = Site::cables();
    for (flags, clues) in [
        ("--size 9216", ["mtu 9198", "--size"]),
        ("--size 1600", ["eth1", "mtu"]),
        ("--cores 0,1 --flows var2", ["fewer queues to send by (1)", "ethtool -L eth1 combined 2"]),
    ] {
        let finished = ramp(&site, flags);
        let refusal = &finished.stderr;
        assert!(!finished.status.success(), "{flags}");
        for clue in clues {
            assert!(
                refusal.to_lowercase().contains(&clue.to_lowercase()),
                "{flags}: no '{clue}' in: {refusal}"
            );
        }
    }
    let finished = linerate("ramp --engine af_xdp --port0 memif:socket=/a --port1 memif:socket=/b").run();
    assert!(finished.refusal(2).contains("--ports A,B"));
}
