//! Load tests over ports of DPDK, with testpmd as the device, in shared memory.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use common::linerate;

#[test]
fn ports_of_dpdk_are_asked_for_in_one_way() {
    for (flags, clue) in [
        ("--engine netmap", "xdp and dpdk"),
        ("--port0 net_null0", "--port1"),
        ("--port0 net_null0 --port1 net_null1", "--engine dpdk"),
        ("--port0 net_null0 --port1 net_null1 --dut sink", "--dut"),
        ("--dut testpmd:mode=txonly", "io or macswap"),
    ] {
        let finished = linerate(&format!("ramp {flags}")).run();
        assert!(finished.refusal(2).contains(clue), "{flags}: {}", finished.stderr);
    }
}

#[cfg(not(feature = "dpdk"))]
#[test]
fn without_dpdk_its_engine_is_refused_with_the_remedy() {
    let finished = linerate("ramp --engine dpdk --dut testpmd").run();
    assert!(finished.refusal(2).contains("--features dpdk"), "{}", finished.stderr);
}

#[cfg(feature = "dpdk")]
mod with_dpdk {
    use std::fs;
    use std::time::Duration;

    use nix::sys::signal::Signal;
    use results::record::Status;

    use super::common::{QUICK, eventually, has_namespaces, linerate, wait_until};

    /// The testpmd processes that belong to the linerate process `pid`, as the machine sees them.
    fn devices_of(pid: u32) -> usize {
        let prefix = format!("linerate-{pid}-dut");
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
        lines.filter(|line| line.contains(&prefix)).count()
    }

    #[test]
    fn a_ramp_through_testpmd_is_a_record_like_any_other() {
        // A process namespace for the device needs root.
        if !has_namespaces() {
            return;
        }
        for flags in ["--dut testpmd", "--dut testpmd:mode=macswap --bidirectional --size 9216"] {
            eventually(|| {
                let line = format!("ramp --engine dpdk {flags} --target 20kpps --json {QUICK}");
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
            });
        }
    }

    #[test]
    fn the_device_dies_with_a_run_that_is_killed_and_leaves_nothing() {
        if !has_namespaces() {
            return;
        }
        let run = linerate("saturate --engine dpdk --dut testpmd --rate 1kpps --duration 30s").start();
        let pid = run.pid();
        assert!(wait_until(Duration::from_secs(20), || devices_of(pid) > 0), "{}", run.stderr());
        run.signal(Signal::SIGKILL);
        assert!(wait_until(Duration::from_secs(5), || devices_of(pid) == 0), "testpmd lives on");
        let sockets = fs::read_to_string("/proc/net/unix").unwrap();
        assert!(!sockets.contains(&format!("/linerate-{pid}-")), "a socket is left");
    }

    #[test]
    fn commands_that_send_by_the_kernel_alone_say_so() {
        let null = "--engine dpdk --port0 net_null0 --port1 net_null1";
        for command in ["gen --duration 100ms", "self-test"] {
            let finished = linerate(&format!("{command} {null}")).run();
            assert!(finished.refusal(2).contains("by the kernel alone"), "{command}: {}", finished.stderr);
        }
    }

    #[test]
    fn ports_can_be_any_driver_and_a_missing_one_is_named() {
        let finished = linerate("ramp --engine dpdk --port0 net_nil0 --port1 net_null1").run();
        assert!(finished.refusal(2).contains("net_nil0"), "{}", finished.stderr);
    }
}
