//! VPP as a device over ports of DPDK, as far as that shows without VPP: scripts in the place of its programs
//! write down what they are told, and have testpmd forward. None of this ran on VPP itself.

#![cfg(feature = "dpdk")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::common::{Linerate, QUICK, eventually, has_namespaces, linerate, wait_until};
use nix::sys::signal::Signal;
use tempfile::TempDir;

/// Takes commands, and forwards once it is told to.
const VPP: &str = r#"#!/bin/sh
home=${0%/*}
echo "vpp $*" >> "$home/log"
core=$(echo "$*" | sed 's/.* \([0-9]*\) } memory.*/\1/')
cd /dev/shm || exit
: > cli.sock
until [ -e forward ]; do sleep 0.02; done
port() { echo "--vdev=net_memif$1,role=server,id=0,socket=/dev/shm/memif$1.sock,socket-abstract=no"; }
exec stdbuf -oL dpdk-testpmd --no-huge --no-shconf -m 256 --no-pci --no-telemetry --file-prefix "${home##*/}" \
    --lcores "0@$core,1@$core" "$(port 0)" "$(port 1)" -- --interactive --auto-start --disable-link-check --total-num-mbufs=8192 > said 2>&1
"#;

/// Writes down commands that change something, and answers others with what testpmd counts, in VPP's words.
const VPPCTL: &str = r#"#!/bin/sh
home=${0%/*} directory=${2%/*}
[ -e "$2" ] || { echo 'connect: No such file or directory' >&2; exit 1; }
shift 2
# Says what was counted since the line `lines`, once all of it is there.
said() {
    awk -v lines="$lines" 'NR <= lines { next }
        /for port/ { port = $5 } !sums && /-packets:/ { text = text port " " $1 " " $2 "\n" }
        /Accumulated/ { sums = 1 } sums && /TX-packets/ { printf "%s", text; complete = 1; exit }
        END { exit !complete }' "$directory/said"
}
count() {
    lines=$(wc -l < "$directory/said")
    echo 'show fwd stats all' > "${directory%/root/*}/fd/0"
    until said; do sleep 0.01; done
}
case "$*" in
"$REFUSED") printf 'unknown input\r\n' ;;
"show version") printf 'vpp v26.06-release built by nobody\r\n' ;;
"show interface") count | awk '
    /RX/ { printf "memif%d/0  %d  up  9000/0/0/0  rx packets  %d\r\n", $1 + 1, $1 + 1, $3 }
    /TX/ { printf "                               tx packets  %d\r\n", $3 }' ;;
"show runtime") count | awk '/RX/ { sum += $3 } END {
    printf "Thread 1 vpp_wk_0 (lcore 1)\r\nmemif-input  polling %d %d 0 2.50e1 1.00\r\n", sum, sum }' ;;
"show errors") ;;
*) echo "$*" >> "$home/log" ;;
esac
case "$*" in
"set interface l2 xconnect memif2/0 memif1/0" | "ip route add 2001:2:0:48::/64 "*)
    : > "$directory/forward"
    until grep -q 'testpmd> ' "$directory/said" 2> /dev/null; do sleep 0.02; done
    rmdir "/var/run/dpdk/${home##*/}" ;;
esac
"#;

/// A directory with both; `None`, with the reason said, where namespaces cannot be made.
fn programs() -> Option<TempDir> {
    if !has_namespaces() {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    for (name, script) in [("vpp", VPP), ("vppctl", VPPCTL)] {
        let path = directory.path().join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    Some(directory)
}

fn run<'a>(programs: &TempDir, line: &str) -> Linerate<'a> {
    let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap());
    linerate(line).env("PATH", &path)
}

/// The lines that the scripts wrote down.
fn log(programs: &TempDir) -> Vec<String> {
    let text = fs::read_to_string(programs.path().join("log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Fails if a process of the scripts' is left soon, or a file where VPP has its own.
fn assert_nothing_left(programs: &TempDir) {
    let home = programs.path().file_name().unwrap().to_str().unwrap().to_owned();
    let processes = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        all.filter(|entry| {
            fs::read_to_string(entry.path().join("cmdline")).is_ok_and(|line| line.contains(&home))
        })
        .count()
    };
    assert!(wait_until(Duration::from_secs(30), || processes() == 0), "a process is left");
    for file in
        ["/dev/shm/cli.sock", "/dev/shm/memif0.sock", "/dev/shm/said", &format!("/var/run/dpdk/{home}")]
    {
        assert!(!fs::exists(file).unwrap(), "{file} is left");
    }
}

#[test]
fn it_is_started_configured_and_asked_as_its_command_line_has_it() {
    let Some(programs) = programs() else { return };
    let measured = eventually(|| {
        let _ = fs::remove_file(programs.path().join("log"));
        let line = format!("ramp --engine dpdk --dut vpp:mode=xconnect --rate 10kpps --json {QUICK}");
        let finished = run(&programs, &line).run();
        let record = if finished.status.success() { finished.record() } else { return Err(finished.stderr) };
        let direction = &record.directions[0];
        assert!(direction.forwarded <= direction.offered, "{direction:?}");
        let ([check], [node]) = (record.cross_check.as_slice(), record.nodes.as_slice()) else {
            return Err(format!("it did not say what it counted: {:?}", record.notes));
        };
        // Frames that were on their way when the interfaces were asked are the node's alone.
        assert!(node.after.vectors >= check.points[1].frames, "{node:?} {check:?}");
        let is_all = check.agrees && node.after.vectors == check.points[1].frames;
        if direction.forwarded < 200 || !is_all {
            return Err(format!("{direction:?} {check:?} {node:?}"));
        }
        Ok(record)
    });
    assert_nothing_left(&programs);
    let Some(record) = measured else { return };
    let log = log(&programs);
    assert!(log[0].starts_with("vpp unix { nodaemon nosyslog runtime-dir /dev/shm "), "{log:?}");
    assert_eq!(
        log[1..],
        [
            "create memif socket id 1 filename /dev/shm/memif0.sock",
            "create interface memif id 0 socket-id 1 hw-addr 02:4c:6e:72:01:01 rx-queues 1 tx-queues 1 master",
            "set interface state memif1/0 up",
            "create memif socket id 2 filename /dev/shm/memif1.sock",
            "create interface memif id 0 socket-id 2 hw-addr 02:4c:6e:72:02:01 rx-queues 1 tx-queues 1 master",
            "set interface state memif2/0 up",
            "set interface l2 xconnect memif1/0 memif2/0",
            "set interface l2 xconnect memif2/0 memif1/0",
        ]
    );
    let dut = &record.dut;
    assert_eq!(
        (dut.name.as_str(), dut.configuration["version"].as_str()),
        ("vpp", "vpp v26.06-release built by nobody")
    );
    assert_eq!(dut.configuration["commands"], log[1..].join("\n"));
    assert!(dut.configuration["command"].contains("plugin memif_plugin.so { enable }"));
    let places: Vec<_> = record.cross_check[0].points.iter().map(|point| point.place.as_str()).collect();
    assert_eq!(places[1..3], ["received by vpp's port 0", "sent by vpp's port 1"]);
    let node = &record.nodes[0];
    assert_eq!(
        (node.thread.as_str(), node.name.as_str(), node.before.vectors),
        ("vpp_wk_0", "memif-input", 0)
    );
}

#[test]
fn a_router_is_addressed_and_dies_with_a_run_that_is_killed() {
    let Some(programs) = programs() else { return };
    let line = "saturate --engine dpdk --dut vpp --bidirectional --rate 1kpps --warm-up-duration 300ms --duration 30s";
    let mut running = run(&programs, line).start();
    running.wait_for_record(|record| record.samples.iter().any(|sample| sample.directions[1].forwarded > 0));
    running.signal(Signal::SIGKILL);
    assert_nothing_left(&programs);
    let log = log(&programs);
    assert!(
        log.iter().any(|line| line == "set ip neighbor memif2/0 100.65.2.2 02:00:00:00:01:01 static"),
        "{log:?}"
    );
    assert_eq!(log.last().unwrap(), "ip route add 2001:2:0:48::/64 via 2001:2:0:2::2 memif2/0");
}

#[test]
fn what_it_refuses_ends_the_run_with_its_words_and_so_does_its_absence() {
    let Some(programs) = programs() else { return };
    let refused = "set interface state memif1/0 up";
    let finished = run(&programs, "ramp --engine dpdk --dut vpp").env("REFUSED", refused).run();
    let reason = finished.refusal(1);
    assert!(
        reason.contains(refused) && reason.contains("unknown input") && reason.contains("26.06"),
        "{reason}"
    );
    assert_nothing_left(&programs);

    fs::remove_file(programs.path().join("vppctl")).unwrap();
    if std::env::split_paths(&std::env::var_os("PATH").unwrap()).any(|place| place.join("vppctl").exists()) {
        eprintln!("skipped: VPP is installed");
        return;
    }
    let finished = run(&programs, "ramp --engine dpdk --dut vpp").run();
    let reason = finished.refusal(1);
    assert!(reason.contains("vppctl is not installed") && reason.contains("fd.io"), "{reason}");
}
