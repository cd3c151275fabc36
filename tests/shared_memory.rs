//! Load tests through shared memory by memifs of our own: devices in user space, without DPDK.

use crate::common::{QUICK, eventually, has_namespaces, linerate};

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
