//! What runs without root: nothing that only shares memory needs rights, and everything else needs the capabilities
//! that `linerate doctor` names, and no others.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::namespace::Namespace;
use crate::common::{QUICK, eventually, has_namespaces, linerate, machine, wait_until};
use nix::sys::signal::Signal;

/// What `linerate doctor` names, as setpriv(1) does.
const NEEDED: [&str; 9] = [
    "dac_override",
    "ipc_lock",
    "net_admin",
    "net_raw",
    "sys_chroot",
    "sys_admin",
    "sys_nice",
    "perfmon",
    "bpf",
];

/// The processes of devices that are this program itself, as directories of /proc.
fn devices() -> Vec<PathBuf> {
    let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let line = |process: &Path| fs::read_to_string(process.join("cmdline")).unwrap_or_default();
    all.filter(|process| line(process).contains("user-space-")).collect()
}

/// The threads of a process that have given up system calls which its first thread has not, by name.
fn confined(process: &Path) -> Vec<String> {
    let filters = |thread: &Path| -> u32 {
        let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
        line.map_or(0, |number| number.trim().parse().unwrap())
    };
    let threads = fs::read_dir(process.join("task")).unwrap().flatten().map(|entry| entry.path());
    let threads = threads.filter(|thread| filters(thread) > filters(process));
    threads.map(|thread| fs::read_to_string(thread.join("comm")).unwrap().trim().to_owned()).collect()
}

#[test]
fn devices_in_user_space_are_tested_without_any_rights() {
    if !has_namespaces() {
        return;
    }
    let mut duts = vec!["fastpath --bidirectional", "calibrated", "fastpath:routes=1k"];
    if std::process::Command::new("dpdk-testpmd").arg("--version").output().is_ok() {
        duts.push("testpmd");
    } else {
        eprintln!("skipped: the device testpmd needs Debian's dpdk-dev");
    }
    for dut in duts {
        let line = format!("ramp --engine memif --dut {dut} --rate 10kpps --json {QUICK}");
        let found = eventually(|| {
            let run = linerate(&line).by_nobody(&[]).run();
            let record = if run.status.success() { run.record() } else { return Err(run.stderr) };
            let is_told = record.notes.iter().any(|note| note.starts_with("without CAP_SYS_NICE"));
            assert!(is_told, "{:?}", record.notes);
            let is_enough = record.directions.iter().all(|direction| direction.forwarded > 1000);
            if is_enough { Ok(run) } else { Err(format!("{dut}: {:?}", record.directions)) }
        });
        let Some(run) = found else { return };
        let directory = run.directory.clone();
        linerate("report runs --output page.html").by_nobody(&[]).in_directory(&directory).run().well();
        assert!(directory.join("page.html").exists());
    }
    assert!(!fs::exists("/tmp/dpdk").unwrap(), "a directory of DPDK is left");
}

#[test]
fn without_any_rights_workers_are_confined_and_nothing_is_left_after_a_kill() {
    if !has_namespaces() {
        return;
    }
    let _machine = machine();
    let home = Namespace::new();
    let before = home.abstract_sockets();
    let line = "saturate --engine memif --dut fastpath --rate 1kpps --warm-up-duration 300ms --duration 30s";
    let mut run = linerate(line).by_nobody(&[]).inside(&home).on_my_machine().start();
    run.wait_for_record(|record| record.samples.iter().any(|sample| sample.directions[0].forwarded > 0));
    let devices_now = devices();
    let [device] = devices_now.as_slice() else { panic!("{devices_now:?}") };
    let of_run = confined(Path::new(&format!("/proc/{}", run.pid())));
    assert!(!of_run.is_empty() && of_run.iter().all(|name| name.starts_with("memif-")), "{of_run:?}");
    assert_eq!(confined(device), ["worker 0"]);
    run.signal(Signal::SIGKILL);
    assert!(wait_until(Duration::from_secs(30), || devices().is_empty()), "the device is left");
    assert!(wait_until(Duration::from_secs(30), || home.abstract_sockets() == before), "a socket is left");
}

#[test]
fn the_capabilities_that_doctor_names_are_enough() {
    if !has_namespaces() {
        return;
    }
    let _machine = machine();
    let home = Namespace::new();
    let run = |line: &str| linerate(line).by_nobody(&NEEDED).inside(&home).on_my_machine().run();
    let found = run("doctor --json").well().json();
    let checks = found.as_array().unwrap().iter();
    let missing: Vec<_> = checks.filter(|check| check["level"] == "missing").collect();
    assert!(missing.is_empty(), "{missing:?}");
    for line in [
        format!("ramp --dut linux-router --rate 10kpps --json {QUICK}"),
        format!("ramp --dut fastpath --rate 10kpps --json {QUICK}"),
        "search --dut calibrated:rate=20kpps --time-limit 4s --warm-up-duration 100ms --drain 100ms --json"
            .to_owned(),
    ] {
        let record = run(&line).well().record();
        assert!(record.directions[0].forwarded > 100, "{line}: {:?}", record.directions);
    }
    run("lab up demo --dut xdp-router").well();
    run("lab exec demo tester -- ping -q -c 1 -w 5 100.65.1.1").well();
    run("lab down demo").well();
}

#[test]
fn each_missing_capability_is_named_by_doctor() {
    if !has_namespaces() {
        return;
    }
    for missing in NEEDED {
        let others: Vec<&str> = NEEDED.into_iter().filter(|name| *name != missing).collect();
        let run = linerate("doctor --json").by_nobody(&others).run();
        let checks = run.json();
        let check = checks.as_array().unwrap().iter().find(|check| check["name"] == "capabilities").unwrap();
        let said = format!("without CAP_{}", missing.to_uppercase());
        assert_eq!((&check["level"], &check["found"]), (&"missing".into(), &said.into()));
    }
}
