//! Two interfaces with a device in between that is not ours: a router or a bridge made with the
//! system's own tools, found by ARP and neighbour discovery.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::common::sites::Site;
use crate::common::{Finished, QUICK, eventually, has_namespaces, linerate, wait_until};
use nix::sys::signal::Signal;
use results::Record;
use results::record::{Phase, Status};

pub const GATEWAYS: &str = "--gateways 100.65.1.1,100.65.2.1";
const GATEWAYS_V6: &str = "--gateways 2001:2:0:1::1,2001:2:0:2::1";

/// A ramp to 2 kpps through `site`, in its record.
pub fn ramp(site: &Site, flags: &str) -> Finished {
    linerate(&format!("ramp --ports eth1,eth2 {QUICK} --rate 2kpps --json {flags}"))
        .inside(&site.tester)
        .run()
}

/// Whether nearly all frames of all directions passed.
pub fn passes(record: &Record, directions: usize) -> Result<(), String> {
    assert_eq!(record.directions.len(), directions);
    for direction in &record.directions {
        let (offered, forwarded) = (direction.offered, direction.forwarded);
        if offered < 1000 || forwarded * 10 < offered * 9 {
            return Err(format!("{}: {forwarded} of {offered} frames passed", direction.name));
        }
    }
    Ok(())
}

#[test]
fn a_router_is_found_by_arp_and_forwards_both_ways() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    eventually(|| {
        let record = ramp(&site, &format!("{GATEWAYS} --flows var2 --bidirectional")).well().record();
        let ports = &record.tester.ports;
        assert_eq!((ports[0].name.as_str(), ports[1].name.as_str()), ("eth1", "eth2"));
        assert_eq!((ports[0].xdp_mode.as_str(), ports[0].driver.as_deref()), ("native", Some("veth")));
        let facts = ports[1].facts.as_ref().unwrap();
        assert_eq!(
            (facts.name.as_str(), facts.driver.as_deref(), facts.carrier),
            ("eth2", Some("veth"), true)
        );
        assert_eq!(record.tester.engine, "xdp");
        let why = record.tester.engine_reason.as_deref().unwrap();
        assert!(why.contains("eth1 and eth2 transmit redirected frames"), "{why}");
        assert_eq!(record.dut.name, "ports");
        passes(&record, 2)
    });
    let neighbours = site.tester.run("ip neighbour");
    assert!(neighbours.contains("100.65.1.1 dev eth1 lladdr 02:00:00:00:01:01"), "{neighbours}");
}

#[test]
fn a_router_is_found_by_neighbour_discovery_and_forwards_both_ways() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    eventually(|| {
        let flags = format!("{GATEWAYS_V6} --ip 6 --size imix --flows var2 --bidirectional");
        passes(&ramp(&site, &flags).well().record(), 2)
    });
    let neighbours = site.tester.run("ip neighbour");
    assert!(neighbours.contains("2001:2:0:2::1 dev eth2 lladdr 02:00:00:00:02:01"), "{neighbours}");
}

#[test]
fn a_bridge_needs_no_gateways() {
    if !has_namespaces() {
        return;
    }
    let site = Site::bridge();
    eventually(|| passes(&ramp(&site, "--vlan 200,100 --bidirectional").well().record(), 2));
}

#[test]
fn a_gateway_that_does_not_answer_is_named_with_what_to_check() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    let silent = ramp(&site, "--gateways 100.65.1.1,100.65.2.99");
    let refusal = silent.refusal(2);
    for clue in ["100.65.2.99", "'eth2'", "ARP", "subnet"] {
        assert!(refusal.contains(clue), "no '{clue}' in: {refusal}");
    }
}

#[test]
fn the_kernel_still_answers_ping_and_arp_on_a_loaded_port() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    let line =
        format!("saturate --ports eth1,eth2 {GATEWAYS} --rate 2kpps --duration 2s --step 100ms --json");
    eventually(|| {
        let mut run = linerate(&line).inside(&site.tester).start();
        run.wait_for_record(|record| record.samples.iter().any(|sample| sample.phase == Phase::Hold));
        for port in [Ipv4Addr::new(100, 65, 1, 2), Ipv4Addr::new(100, 65, 2, 2)] {
            site.far.run(&format!("ip neighbour flush to {port}\nping -q -c 3 -i 0.1 -w 30 {port}"));
        }
        // On a busy machine they may answer when the run is over.
        let foreign = run.finish().well().record().directions[0].foreign;
        if foreign >= 3 { Ok(()) } else { Err(format!("the receiver saw {foreign} other frames")) }
    });
}

#[test]
fn when_nothing_passes_the_run_fails_with_a_diagnosis_and_keeps_its_record() {
    if !has_namespaces() {
        return;
    }
    let site = Site::cables();
    let finished = ramp(&site, "");
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    let [record] = finished.records().try_into().unwrap();
    assert_eq!((record.status, record.id), (Status::Failed, finished.record().id));
    let reason = record.reason.unwrap();
    for text in [&reason, &finished.stderr] {
        for clue in ["0->1: none of ", " came back", "link", "neighbours", "routes", "MTU"] {
            assert!(text.contains(clue), "no '{clue}' in: {text}");
        }
    }
    assert!(record.samples.iter().all(|sample| sample.phase == Phase::WarmUp), "it measured all the same");
    assert_eq!((record.directions[0].forwarded, record.directions[0].max_rate_pps), (0, 0.0));
}

#[test]
fn when_one_direction_passes_the_other_is_named() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    site.far.run("ip route replace unreachable 16.0.0.0/8\nip route del 16.0.0.0/8 via 100.65.1.2 || true");
    let finished = ramp(&site, &format!("{GATEWAYS} --bidirectional"));
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    let reason = finished.record().reason.unwrap();
    assert!(
        reason.starts_with("1->0: none of ") && reason.contains("the other direction passes"),
        "{reason}"
    );
}

#[test]
fn a_port_that_cannot_transmit_frames_of_xdp_is_refused_not_counted_as_sending() {
    if !has_namespaces() {
        return;
    }
    let site = Site::cables();
    // Without NAPI at its other end, a veth drops what is redirected to it.
    site.far.run("ethtool -K far1 gro off");
    let finished = ramp(&site, "--engine xdp");
    let refusal = finished.refusal(2);
    for clue in ["--engine xdp", "the other end of the veth eth1", "gro on", "XDP program"] {
        assert!(refusal.contains(clue), "no '{clue}' in: {refusal}");
    }
}

#[test]
fn auto_takes_af_xdp_where_a_port_cannot_transmit_redirected_frames() {
    if !has_namespaces() {
        return;
    }
    let site = Site::bridge();
    site.far.run("ethtool -K far1 gro off\nethtool -K far2 gro off");
    eventually(|| {
        let finished = ramp(&site, "").well();
        let record = finished.record();
        assert_eq!(record.tester.engine, "af_xdp");
        let why = record.tester.engine_reason.clone().unwrap();
        assert!(why.contains("the other end of the veth eth1"), "{why}");
        assert!(finished.stderr.contains(&why), "{}", finished.stderr);
        passes(&record, 1)
    });
}

#[test]
fn an_address_that_the_device_asks_for_and_no_port_has_is_named_with_its_command() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    // The device's route leads to an address that the port has no more.
    site.tester.run("ip address replace 100.65.2.77/24 dev eth2\nip address del 100.65.2.2/24 dev eth2");
    site.far.run("ip neighbour flush dev far2");
    let finished = ramp(&site, GATEWAYS);
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    let reason = finished.record().reason.unwrap();
    for clue in ["(100.65.2.1) asks at eth2 by ARP for 100.65.2.2", "ip address add 100.65.2.2/24 dev eth2"] {
        assert!(reason.contains(clue), "no '{clue}' in: {reason}");
        assert!(finished.stderr.contains(clue), "no '{clue}' in: {}", finished.stderr);
    }
}

#[test]
fn a_port_of_a_bridge_and_one_with_another_program_are_refused_with_what_frees_them() {
    if !has_namespaces() {
        return;
    }
    let site = Site::cables();
    site.tester.run("ip link add br0 type bridge\nip link set eth1 master br0");
    let finished = ramp(&site, "");
    let refusal = finished.refusal(2);
    assert!(refusal.contains("bridge br0") && refusal.contains("ip link set eth1 nomaster"), "{refusal}");
    site.tester.run("ip link set eth1 nomaster");

    let counting = linerate("count eth2 --duration 60s").inside(&site.tester).start();
    let attached = || site.tester.run("ip link show eth2").contains("xdp");
    assert!(wait_until(Duration::from_secs(20), attached), "{}", counting.stderr());
    let finished = ramp(&site, "");
    let refusal = finished.refusal(2);
    assert!(refusal.contains("eth2 has an XDP program of another process"), "{refusal}");
    assert!(refusal.contains("ip link set dev eth2 xdp off"), "{refusal}");
    counting.signal(Signal::SIGINT);
    counting.finish();
}

#[test]
fn doctor_tells_what_ports_are_and_can_and_leaves_nothing_there() {
    if !has_namespaces() {
        return;
    }
    let site = Site::cables();
    site.far.run("ethtool -K far2 gro off");
    let lines = linerate("doctor --ports eth1,eth2,eth9 --json").inside(&site.tester).run().json();
    let found = |name: &str| {
        let line = lines.as_array().unwrap().iter().find(|line| line["name"] == name).unwrap();
        line["found"].as_str().unwrap().to_owned()
    };
    assert!(found("eth1").starts_with("veth, ") && found("eth1").contains("10000 Mb/s, MTU 1500"));
    assert!(found("eth1 engine").starts_with("xdp"), "{}", found("eth1 engine"));
    assert!(found("eth2 engine").contains("the other end of the veth eth2"), "{}", found("eth2 engine"));
    assert!(found("eth9").contains("no interface 'eth9'"));
    assert!(!site.tester.run("ip link").contains("xdp"), "a program is left at a port");
}
