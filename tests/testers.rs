//! `--engine trex:…`: Linerate drives TRex stateless servers, which are `linerate serve` here. Loads are shared, counts
//! are exact, and servers are free again afterwards.

use crate::common::namespace::Namespace;
use crate::common::sites::Site;
use crate::common::{Finished, Linerate, Running, eventually, has_namespaces, linerate, listening, machine};
use nix::sys::signal::Signal;
use results::Record;
use results::record::{LimitedBy, Phase, Status};

/// A server in `namespace` that is told so, and the port for calls.
fn serve(namespace: &Namespace, flags: &str) -> Option<(Running, String)> {
    let line = format!("serve --rpc-port 0 --publish-port 0 {flags}");
    let (server, [calls, _]) = listening(linerate(&line).inside(namespace).on_my_machine().start())?;
    Some((server, calls))
}

/// A command that uses the servers at these ports.
fn by<'a>(namespace: &'a Namespace, ports: &[&str], line: &str) -> Linerate<'a> {
    let testers: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let line = format!("{line} --engine trex:{} --json", testers.join(","));
    linerate(&line).inside(namespace).on_my_machine()
}

/// A router with four interfaces, a pair for each of two testers.
fn four_ports() -> Site {
    let site = Site::router();
    let far = site.far.path();
    for number in [3, 4] {
        site.tester.run(&format!(
            "ip link add eth{number} address 02:00:00:00:0{number}:02 type veth \
                 peer name far{number} address 02:00:00:00:0{number}:01 netns {far}"
        ));
        site.far.run(&format!(
            "ethtool -K far{number} rx off tx off gro on
             ip link set far{number} up
             ip address add 100.65.{number}.1/24 dev far{number}"
        ));
        site.tester.run(&format!(
            "ethtool -K eth{number} rx off tx off
             ip link set eth{number} up
             ip address add 100.65.{number}.2/24 dev eth{number}"
        ));
    }
    // What the second tester sends comes back to it.
    site.far.run(
        "for name in all far1 far2 far3 far4; do sysctl -qw net.ipv4.conf.$name.rp_filter=0; done
         ip route add 48.0.0.0/8 via 100.65.4.2 table 103
         ip route add 16.0.0.0/8 via 100.65.3.2 table 104
         ip rule add iif far3 lookup 103
         ip rule add iif far4 lookup 104",
    );
    site
}

/// That all samples of the hold have the load that was asked for, to 0.1 %.
fn offers(record: &Record) -> Result<(), String> {
    let held = record.samples.iter().filter(|sample| sample.phase == Phase::Hold);
    for direction in held.flat_map(|sample| &sample.directions) {
        let error = direction.offered_pps / direction.intended_pps - 1.0;
        if error.abs() > 1e-3 {
            return Err(format!("{} pps instead of {}", direction.offered_pps, direction.intended_pps));
        }
    }
    Ok(())
}

#[test]
fn two_servers_share_the_load_of_one_device() {
    if !has_namespaces() {
        return;
    }
    let site = four_ports();
    eventually(|| {
        // Not while the machine is watched after a failure, which needs it alone.
        let _alone = machine();
        // Two generators on one core take turns of a tenth of a second: each has its own.
        let pair = |flags: &str| serve(&site.tester, flags);
        let [first, second] = [
            "--cores 0 --ports eth1,eth2 --gateways 100.65.1.1,100.65.2.1",
            "--cores 1 --ports eth3,eth4 --gateways 100.65.3.1,100.65.4.1",
        ];
        let Some((one, port_one)) = pair(first) else { return Ok(()) };
        let Some((two, port_two)) = pair(second) else { return Ok(()) };
        let line = "ramp --rate 4kpps --duration 2s --step 2s --hold-duration 4s --warm-up-duration 500ms \
                    --bidirectional --flows var2 --name shared";
        let record = by(&site.tester, &[&port_one, &port_two], line).run().well().record();
        for server in [one, two] {
            server.signal(Signal::SIGINT);
            server.finish().well();
        }
        assert_eq!((record.tester.engine.as_str(), record.status), ("trex", Status::Complete));
        let apart = record.notes.iter().find(|note| note.contains("one load began at most"));
        assert!(apart.is_some_and(|note| note.contains("their clocks ran apart by")), "{:?}", record.notes);
        assert!(record.directions.iter().all(|direction| direction.latency_ns.is_empty()), "made-up latency");
        let hold = record.samples.iter().rfind(|sample| sample.phase == Phase::Hold).unwrap();
        for direction in &hold.directions {
            assert_eq!(direction.intended_pps, 4_000.0);
            if direction.forwarded != direction.offered {
                return Err(format!("{} of {} frames came back", direction.forwarded, direction.offered));
            }
        }
        offers(&record)
    });
}

/// A run by a server with this device.
fn alone(device: &str, line: &str) -> Option<Finished> {
    let _alone = machine();
    let home = Namespace::new();
    let (server, port) = serve(&home, &format!("--dut {device}"))?;
    let finished = by(&home, &[&port], line).run();
    server.signal(Signal::SIGINT);
    server.finish().well();
    Some(finished)
}

#[test]
fn every_step_of_a_ramp_counts_its_own_frames() {
    if !has_namespaces() {
        return;
    }
    eventually(|| {
        let line =
            "ramp --rate 5kpps --duration 2s --step 500ms --hold-duration 500ms --warm-up-duration 300ms";
        let Some(finished) = alone("calibrated:drop-every=10", line) else { return Ok(()) };
        let record = finished.well().record();
        let direction = &record.directions[0];
        assert_eq!(direction.limited_by, LimitedBy::Dut);
        if direction.forwarded != direction.offered - direction.offered / 10 {
            return Err(format!("{} of {} frames came back", direction.forwarded, direction.offered));
        }
        for sample in record.samples.iter().flat_map(|sample| &sample.directions) {
            let lost = sample.offered - sample.forwarded;
            if lost.abs_diff(sample.offered / 10) > 1 {
                return Err(format!("{lost} of {} frames lost in a sample", sample.offered));
            }
        }
        Ok(())
    });
}

#[test]
fn a_search_finds_what_the_device_carries() {
    if !has_namespaces() {
        return;
    }
    eventually(|| {
        let line = "search --goal pdr:initial=100ms,final=250ms,sum=1s --max-rate 40kpps --time-limit 15s \
                    --warm-up-duration 300ms";
        let Some(finished) = alone("calibrated:rate=20kpps", line) else { return Ok(()) };
        let found = finished.well().record().finding.results()["pdr"].pps;
        if (18e3..21e3).contains(&found) { Ok(()) } else { Err(format!("{found} pps instead of 20,000")) }
    });
}

#[test]
fn servers_are_free_again_after_an_interruption_and_say_whose_they_are() {
    if !has_namespaces() {
        return;
    }
    let _alone = machine();
    let home = Namespace::new();
    let Some((server, port)) = serve(&home, "--dut calibrated") else { return };
    let long = "ramp --rate 2kpps --duration 60s --step 500ms --warm-up-duration 300ms";
    let mut run = by(&home, &[&port], long).start();
    run.wait_for_record(|record| record.samples.iter().any(|sample| sample.phase == Phase::Ramp));
    let refused = by(&home, &[&port], long).run();
    let said = refused.refusal(1);
    assert!(
        said.contains(&format!("tester 127.0.0.1:{port}")) && said.contains("already taken by 'linerate'"),
        "{said}"
    );
    run.signal(Signal::SIGINT);
    let record = run.finish().record();
    assert_eq!(record.status, Status::Interrupted);
    assert!(record.directions[0].forwarded > 0);
    let short = "saturate --rate 1kpps --duration 1s --warm-up-duration 300ms";
    by(&home, &[&port], short).run().well();
    // A server that dies ends the run, which says so.
    let mut run = by(&home, &[&port], long).start();
    run.wait_for_record(|record| record.samples.iter().any(|sample| sample.phase == Phase::Ramp));
    server.signal(Signal::SIGKILL);
    let finished = run.finish();
    assert_eq!(finished.status.code(), Some(1));
    let record = finished.record();
    assert_eq!(record.status, Status::Failed);
    assert!(record.reason.unwrap().contains(&format!("tester 127.0.0.1:{port}: no answer within")));
    // Nobody is there.
    let refused = by(&home, &[&port], short).run();
    assert!(refused.refusal(1).contains("no answer within"), "{}", refused.stderr);
}
