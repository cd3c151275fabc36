//! Load tests over ports of DPDK, in shared memory: with testpmd as the device, and with one whose truth is
//! known.

use crate::common::linerate;

#[test]
fn ports_of_dpdk_are_asked_for_in_one_way() {
    for (flags, clue) in [
        ("--engine netmap", "auto, xdp, af_xdp, dpdk and memif"),
        ("--port0 net_null0", "--port1"),
        ("--port0 net_null0 --port1 net_null1", "--engine dpdk"),
        ("--port0 net_null0 --port1 net_null1 --dut sink", "--dut"),
        ("--dut testpmd:mode=txonly", "io or macswap"),
        ("--receive-cores 0", "dpdk or memif"),
        ("--engine dpdk --dut testpmd --receive-cores 4000", "core 4000"),
        ("--gateway-macs 02:00:00:00:00:09,02:00:00:00:00:08", "--port0"),
    ] {
        let finished = linerate(&format!("ramp {flags}")).run();
        assert!(finished.refusal(2).contains(clue), "{flags}: {}", finished.stderr);
    }
}

#[cfg(feature = "dpdk")]
mod with_dpdk {
    use std::fs;
    use std::time::Duration;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use results::Record;
    use results::record::Status;
    use traffic::Capture;
    use traffic::capture::Writer;

    use crate::common::namespace::Namespace;
    use crate::common::{
        Finished, QUICK, eventually, has_namespaces, linerate, refusal_without_privileges, wait_until,
    };

    /// The processes of devices that belong to the linerate process `pid`, as the machine sees them.
    fn devices_of(pid: u32) -> Vec<i32> {
        let socket = format!("/linerate-{pid}-");
        let is_its = |process: &i32| {
            fs::read_to_string(format!("/proc/{process}/cmdline")).is_ok_and(|line| line.contains(&socket))
        };
        let processes = fs::read_dir("/proc").unwrap().flatten();
        processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_its).collect()
    }

    /// Fails if the linerate process `pid`, which has ended, left a socket or a file of DPDK's.
    fn assert_nothing_left(pid: u32) {
        let sockets = fs::read_to_string("/proc/net/unix").unwrap();
        assert!(!sockets.contains(&format!("/linerate-{pid}-")), "a socket is left");
        for directory in ["/var/run/dpdk", "/dev/hugepages", "/dev/shm"] {
            let names = fs::read_dir(directory).into_iter().flatten().flatten();
            let ours = names
                .filter(|entry| entry.file_name().to_string_lossy().contains(&format!("linerate-{pid}")));
            assert_eq!(ours.map(|entry| entry.path()).collect::<Vec<_>>(), [] as [std::path::PathBuf; 0]);
        }
    }

    fn record(line: &str) -> Record {
        linerate(line).arg("--json").run().well().record()
    }

    #[test]
    fn a_ramp_through_testpmd_is_a_record_like_any_other() {
        // A process namespace for the device needs root.
        if !has_namespaces() {
            return;
        }
        for flags in ["--dut testpmd", "--dut testpmd:mode=macswap --bidirectional --size 9216"] {
            let Some(()) = eventually(|| {
                let line = format!("ramp --engine dpdk {flags} --rate 20kpps --json {QUICK}");
                let run = linerate(&line).run();
                if !run.status.success() {
                    return Err(run.stderr);
                }
                let record = run.record();
                assert_eq!((record.status, record.tester.engine.as_str()), (Status::Complete, "dpdk"));
                assert_eq!((record.dut.name.as_str(), record.dut.core.is_some()), ("testpmd", true));
                assert!(record.dut.configuration["command"].contains("testpmd"), "{:?}", record.dut);
                for direction in record.samples.iter().flat_map(|sample| &sample.directions) {
                    assert!(direction.forwarded <= direction.offered, "{direction:?}");
                }
                let forwarded: u64 = record
                    .samples
                    .iter()
                    .flat_map(|s| &s.directions)
                    .map(|direction| direction.forwarded)
                    .sum();
                if forwarded < 1000 { Err(format!("{forwarded} frames came back")) } else { Ok(()) }
            }) else {
                return;
            };
        }
    }

    #[test]
    fn what_a_device_of_known_truth_counts_is_what_comes_back_to_the_frame() {
        if !has_namespaces() {
            return;
        }
        let line = "saturate --engine dpdk --dut calibrated:drop-every=10 --rate 5kpps --duration 600ms";
        for directions in ["", "--bidirectional"] {
            let Some(()) = eventually(|| {
                let record = record(&format!(
                    "{line} --step 100ms --warm-up-duration 200ms --drain 200ms {directions}"
                ));
                assert_eq!((record.dut.name.as_str(), record.dut.core.is_some()), ("calibrated", true));
                for (direction, check) in record.directions.iter().zip(&record.cross_check) {
                    let (offered, forwarded) = (direction.offered, direction.forwarded);
                    let places: Vec<_> = check.points.iter().map(|point| point.place.as_str()).collect();
                    assert_eq!(places[2], "sent on by its drop-every", "{places:?}");
                    let counted: Vec<_> = check.points.iter().map(|point| point.frames).collect();
                    if counted[1] != offered || offered < 3000 {
                        return Err(format!("{} of {offered} offered frames reached it", counted[1]));
                    }
                    let sent_on = offered - offered / 10;
                    assert_eq!((counted[0], counted[2]), (offered, sent_on), "{}", direction.name);
                    assert!(forwarded <= counted[3] && counted[3] <= sent_on, "{counted:?}");
                    // A core that is taken for long lets the port's queue overflow.
                    if forwarded < sent_on || counted[4] != sent_on {
                        return Err(format!("{forwarded} came back of {counted:?}"));
                    }
                    assert!(check.agrees);
                }
                Ok(())
            }) else {
                return;
            };
        }
    }

    #[test]
    fn a_device_that_dies_ends_the_run_with_the_cause_and_leaves_nothing() {
        if !has_namespaces() {
            return;
        }
        let line =
            "saturate --engine dpdk --dut testpmd --rate 1kpps --warm-up-duration 300ms --duration 30s";
        let mut run = linerate(line).start();
        let pid = run.pid();
        run.wait_for_record(|record| !record.samples.is_empty());
        for device in devices_of(pid) {
            kill(Pid::from_raw(device), Signal::SIGKILL).unwrap();
        }
        let finished = run.finish();
        assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
        assert!(finished.stderr.contains("went down"), "{}", finished.stderr);
        assert_nothing_left(pid);
    }

    #[test]
    fn a_peer_that_never_comes_is_missed_with_the_remedy() {
        for (role, code, clue) in
            [("client", 1, "start its other end first"), ("server", 2, "is its other end there")]
        {
            let socket = format!("/linerate-nobody-{}", std::process::id());
            let port = format!("net_memif0,role={role},id=0,socket={socket},socket-abstract=yes");
            let line = format!("ramp --engine dpdk --port0 {port} --port1 net_null1");
            let finished = linerate(&line).run();
            assert!(finished.refusal(code).contains(clue), "{role}: {}", finished.stderr);
            assert!(!fs::read_to_string("/proc/net/unix").unwrap().contains(&socket), "a socket is left");
        }
    }

    #[test]
    fn other_cores_may_receive_and_queues_are_shared_among_them() {
        if !has_namespaces() {
            return;
        }
        let cores = std::thread::available_parallelism().unwrap().get();
        if cores < 2 {
            eprintln!("skipped: sending and receiving apart needs two cores");
            return;
        }
        for (flags, dropped) in [
            ("--dut testpmd --cores 0", None),
            ("--dut testpmd --cores 0,1", None),
            ("--dut calibrated:drop-every=10 --cores 0,1", Some(10)),
        ] {
            let Some(()) = eventually(|| {
                let line = format!(
                    "ramp --engine dpdk {flags} --receive-cores 1 --dut-core 1 --flows var2 --rate 5kpps --json {QUICK}"
                );
                let run = linerate(&line).run();
                if !run.status.success() {
                    return Err(run.stderr);
                }
                let record = run.record();
                assert_eq!(record.tester.receive_cores, [1]);
                let direction = &record.directions[0];
                assert!(direction.forwarded <= direction.offered, "{direction:?}");
                let entered = record.cross_check[0].points[1].frames;
                let sent_on = entered - dropped.map_or(0, |every| entered / every);
                assert!(direction.forwarded <= sent_on, "over all queues: {direction:?}");
                // A core that is taken for long lets the port's queue overflow.
                let is_all = dropped.is_none() || direction.forwarded == sent_on;
                if direction.forwarded < 200 || !is_all { Err(format!("{direction:?}")) } else { Ok(()) }
            }) else {
                return;
            };
        }
    }

    #[test]
    fn a_known_capacity_is_found_and_tells_what_was_beyond_it() {
        if !has_namespaces() {
            return;
        }
        const RATE: f64 = 50e3;
        let goal = "ndr:initial=100ms,final=100ms,sum=300ms,width=2%,queue=64";
        eventually(|| {
            let record = record(&format!(
                "search --engine dpdk --dut calibrated:rate={RATE},burst=64 --goal {goal} --max-rate 150kpps \
                 --time-limit 8s --warm-up-duration 200ms --drain 50ms"
            ));
            // Whatever disturbs it, what is claimed is true, but for what the burst hides in a trial.
            let found = &record.finding.results()["ndr"];
            assert!(found.lower_pps <= RATE * 1.02, "{found:?}");
            let check = &record.cross_check[0];
            let beyond = check.points.iter().find(|point| point.place == "sent on by its rate");
            if !check.agrees {
                return Err(format!("{check:?}"));
            }
            if beyond.is_none_or(|point| point.dropped < 1000) {
                return Err(format!("hardly a trial beyond its rate: {check:?}"));
            }
            let near =
                found.lower_pps >= RATE * 0.95 && found.upper_pps.is_some_and(|upper| upper < RATE * 1.05);
            // A machine that is busy throughout proves no more.
            (near || found.disturbed).then_some(()).ok_or(format!("{found:?}"))
        });
    }

    #[test]
    fn a_stall_shows_in_the_device_s_own_counters() {
        if !has_namespaces() {
            return;
        }
        eventually(|| {
            // A machine whose cores are taken half of the time offers half of the frames, the others too late.
            let record = record(
                "soak --engine dpdk --dut calibrated:stall-after=500 --rate 1kpps --duration 2500ms \
                 --warm-up-duration 0s",
            );
            let forwarded = record.directions[0].forwarded;
            assert!(forwarded <= 500, "{forwarded} frames came back");
            let direction = &record.finding.soak().unwrap().directions[0];
            let stall = direction.stalls.first().ok_or_else(|| format!("it did not stall: {direction:?}"))?;
            let device = stall.counters.during.device.ok_or("the device did not count")?;
            assert!(device.received > device.forwarded, "{device:?}");
            if forwarded == 500 { Ok(()) } else { Err(format!("{forwarded} frames came back")) }
        });
    }

    #[test]
    fn a_device_that_is_not_in_user_space_is_refused_with_those_that_are() {
        let finished = linerate("ramp --engine dpdk --dut linux-bridge").run();
        let reason = finished.refusal(2);
        assert!(reason.contains("calibrated") && reason.contains("testpmd"), "{reason}");
        let unknown = linerate("forward").run();
        let reason = unknown.refusal(2);
        assert!(reason.contains("doctor") && !reason.contains("user-space-device"), "{reason}");
    }

    #[test]
    fn devices_die_with_a_run_that_is_killed_and_leave_nothing() {
        if !has_namespaces() {
            return;
        }
        for dut in ["testpmd", "calibrated"] {
            let run =
                linerate(&format!("saturate --engine dpdk --dut {dut} --rate 1kpps --duration 30s")).start();
            let pid = run.pid();
            assert!(wait_until(Duration::from_secs(60), || !devices_of(pid).is_empty()), "{}", run.stderr());
            run.signal(Signal::SIGKILL);
            assert!(wait_until(Duration::from_secs(30), || devices_of(pid).is_empty()), "{dut} lives on");
            assert_nothing_left(pid);
        }
    }

    #[test]
    fn the_tester_tests_itself_past_the_device_or_asks_for_a_cable() {
        if !has_namespaces() {
            return;
        }
        // A device that lets nothing through is not in the way.
        let found =
            linerate("verify ceiling --engine dpdk --dut calibrated:loss=100% --json").run().well().json();
        let ceiling = found["ceiling_pps"].as_f64().unwrap();
        assert!(ceiling > 10e3 && found["base_latency_min_ns"].as_u64().unwrap() > 0, "{found}");
        let null = linerate("verify ceiling --engine dpdk --port0 net_null0 --port1 net_null1").run();
        assert!(null.refusal(1).contains("by a cable"), "{}", null.stderr);
    }

    #[test]
    fn a_profile_is_sent_by_dpdk() {
        let null = "--engine dpdk --port0 net_null0 --port1 net_null1";
        let finished = linerate(&format!("send --duration 100ms --json {null}")).run().well();
        assert!(finished.json()["offered"].as_u64().is_some_and(|frames| frames > 0), "{}", finished.stdout);
    }

    #[test]
    fn missing_privileges_are_named_with_the_remedy() {
        if !has_namespaces() {
            return;
        }
        // At the machine's own interface: it is refused before anything is sent.
        for device in [
            "--port0 net_af_packet0,iface=lo --port1 net_null1",
            "--port0 net_af_xdp0,iface=lo --port1 net_null1",
        ] {
            let refusal = refusal_without_privileges(&format!("ramp --engine dpdk {device}"));
            assert!(refusal.contains("it as root") && refusal.contains("CAP_"), "{device}: {refusal}");
        }
    }

    #[test]
    fn ports_can_be_any_driver_and_a_missing_one_is_named() {
        let finished = linerate("ramp --engine dpdk --port0 net_nil0 --port1 net_null1").run();
        assert!(finished.refusal(2).contains("net_nil0"), "{}", finished.stderr);
    }

    /// The frames that came back in a ramp to 5 kpps; `None` where the ports were refused.
    fn forwarded(run: &Finished) -> Option<u64> {
        let is_record = run.status.success();
        is_record.then(|| {
            let record = run.record();
            record
                .samples
                .iter()
                .flat_map(|sample| &sample.directions)
                .map(|direction| direction.forwarded)
                .sum()
        })
    }

    /// A cable between `one` and `two`.
    fn cable() -> Namespace {
        let namespace = Namespace::new();
        namespace.run("ip link add one type veth peer name two && ip link set one up && ip link set two up");
        namespace
    }

    #[test]
    fn interfaces_of_the_kernel_are_ports_too() {
        if !has_namespaces() {
            return;
        }
        let namespace = cable();
        for driver in ["net_af_packet", "net_af_xdp"] {
            let Some(()) = eventually(|| {
                let ports = format!("--port0 {driver}0,iface=one --port1 {driver}1,iface=two");
                let line = format!("ramp --engine dpdk {ports} --size 256 --rate 5kpps --json {QUICK}");
                let run = linerate(&line).inside(&namespace).run();
                match forwarded(&run) {
                    Some(frames) if frames > 500 => Ok(()),
                    found => Err(format!("{found:?} {}", run.stderr)),
                }
            }) else {
                return;
            };
        }
        assert!(!namespace.run("ip link").contains("xdp"), "a program is left at an interface");
    }

    #[test]
    fn a_port_with_the_default_route_is_used_only_when_forced_twice() {
        if !has_namespaces() {
            return;
        }
        let namespace = cable();
        namespace.run("ip address add 192.0.2.2/24 dev one\nip route add default via 192.0.2.1");
        let run = |port0: &str, force: &str| {
            let ports = format!("--port0 {port0} --port1 net_null1,no-rx=1 {force}");
            linerate(&format!("saturate --engine dpdk {ports} --rate 1kpps --duration 200ms"))
                .inside(&namespace)
                .run()
        };
        for port0 in ["net_af_packet0,iface=one", "net_af_xdp0,iface=one", "net_tap0,remote=one"] {
            for once in ["", "--force"] {
                let refused = run(port0, once);
                let refusal = refused.refusal(2);
                assert!(refusal.contains("'one' carries the default route"), "{port0}: {refusal}");
            }
        }
        let forced = run("net_af_packet0,iface=one", "--force --force");
        assert!(!forced.stderr.contains("default route"), "{}", forced.stderr);
        assert!(!forced.records().is_empty(), "{}", forced.stderr);
    }

    #[test]
    fn a_run_that_is_killed_leaves_no_program_at_an_interface() {
        if !has_namespaces() {
            return;
        }
        let namespace = cable();
        let has_program = || namespace.run("ip link").contains("xdp");
        let ports = "--port0 net_af_xdp0,iface=one --port1 net_af_xdp1,iface=two";
        let line = format!("saturate --engine dpdk {ports} --rate 1kpps --duration 30s");
        let mut run = linerate(&line).inside(&namespace).start();
        // When it sends, both ports are open.
        run.wait_for_record(|record| !record.samples.is_empty());
        assert!(has_program(), "{}", run.stderr());
        run.signal(Signal::SIGKILL);
        assert!(wait_until(Duration::from_secs(30), || !has_program()), "{}", namespace.run("ip link"));
    }

    #[test]
    fn what_a_port_cannot_be_is_refused_with_the_remedy() {
        let other = "--port1 net_null1,no-rx=1";
        for (ports, code, clue) in [
            (format!("--port0 ffff:ff:1f.7 {other}"), 2, "there is no PCI device ffff:ff:1f.7"),
            (format!("--port0 net_af_packet0,iface=none-such {other}"), 2, "net_af_packet0"),
            (format!("--port0 net_pcap0,rx_pcap=/none/such.pcap {other}"), 2, "net_pcap0"),
            (
                format!("--port0 net_null0,no-rx=1 {other} --gateway-macs 02:00:00:00:00:09"),
                2,
                "two addresses",
            ),
            (
                format!("--port0 net_memif0,role=client,socket=/none/such,socket-abstract=no {other}"),
                2,
                "Invalid socket directory",
            ),
            (
                format!("--port0 net_memif0,role=client,socket=/tmp/none-such,socket-abstract=no {other}"),
                1,
                "start its other end first",
            ),
        ] {
            let finished = linerate(&format!("saturate --engine dpdk {ports} --duration 1s")).run();
            assert!(finished.refusal(code).contains(clue), "{ports}: {}", finished.stderr);
        }
    }

    #[test]
    fn a_replay_passes_testpmd_and_files_frame_by_frame() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let frames: Vec<Vec<u8>> =
            (1..=50_u8).map(|number| vec![number; 60 + usize::from(number) * 170]).collect();
        let mut writer = Writer::new(fs::File::create(at("sent.pcap")).unwrap()).unwrap();
        frames.iter().zip(0..).for_each(|(frame, number)| writer.frame(number * 1_000_000, frame).unwrap());
        writer.finish().unwrap();
        let read = |name: &str| {
            let capture = Capture::read(&fs::read(at(name)).unwrap()).unwrap();
            capture.frames.into_iter().map(|frame| frame.bytes).collect::<Vec<_>>()
        };
        let replay = |ports: &str| {
            let line = format!("send sent.pcap --engine dpdk {ports} --keep-macs --output got.pcap --json");
            linerate(&line).in_directory(directory.path()).run()
        };
        // What port 1 reads is another file, whose frames are those that were sent.
        fs::copy(at("sent.pcap"), at("other.pcap")).unwrap();
        let finished =
            replay("--port0 net_pcap0,tx_pcap=out.pcap --port1 net_pcap1,rx_pcap=other.pcap").well();
        assert_eq!(finished.json()["sent"], 50, "{}", finished.stderr);
        assert_eq!(read("out.pcap"), frames);
        assert_eq!(read("got.pcap"), frames);
        if !has_namespaces() {
            return;
        }
        eventually(|| {
            let finished = replay("--dut testpmd").well();
            let summary = finished.json();
            if summary["received"] != 50 {
                return Err(summary.to_string());
            }
            assert_eq!(read("got.pcap"), frames, "jumbo frames too");
            Ok(())
        });
    }
}
