//! The lab on a stock kernel: a machine enters; every device, tags, `verify` and a kill are tried in it.

use results::Record;
use results::certificate::{Certificate, Verdict};
use results::record::Status;

use super::guest::Guest;

/// Devices of the lab that forward, all that need no other program.
const DEVICES: [&str; 6] =
    ["linux-router", "linux-bridge", "xdp-router", "xdp-xconnect", "calibrated:rate=10kpps", "delayed"];

/// What `verify` counts of devices in the kernel.
const COUNTED: [&str; 8] = [
    "frames offered, of those intended",
    "frames lost over a plain cross connect",
    "frames lost, of every tenth",
    "frames lost by chance",
    "frames before a stall",
    "frames returned",
    "frames reordered",
    "frames duplicated",
];

/// The doctor finds what a stock kernel has.
pub fn the_doctor_finds_all(guest: &mut Guest) {
    let output = guest.linerate("doctor --json").well().json();
    let level = |name: &str| {
        let checks = output.as_array().into_iter().flatten();
        checks.into_iter().find(|check| check["name"] == name).map(|check| check["level"].clone())
    };
    for name in ["kernel", "capabilities", "BTF", "network namespaces", "VLAN interfaces", "veth", "XDP"] {
        assert_eq!(level(name), Some("good".into()), "{name}: {output:#}");
    }
}

/// Every device of the lab passes frames, with VLAN tags, too, and a killed test leaves nothing.
pub fn all_works(guest: &mut Guest) {
    for device in DEVICES {
        let quick = "--rate 200pps --duration 1s --warm-up-duration 300ms --drain 2s --json";
        let record = guest.linerate(&format!("saturate --dut {device} {quick}")).well().record();
        let way = &record.directions[0];
        assert!(way.offered > 0, "{device}: nothing was sent: {:?}", record.notes);
        assert_eq!(way.forwarded, way.offered, "{device}: {:?} {:?}", record.notes, record.cross_check);
    }
    let sink = guest.linerate("send --dut sink --rate 200pps --duration 1s --json").well().json();
    assert!(sink["offered"].as_u64() > Some(0) && sink["offered"] == sink["dut_received"], "{sink}");
    vlan_tags_are_taken_off_and_put_on(guest, &["both", "one"]);
    nothing_stays_after_a_kill(guest);
    verify_finds_nothing_false(guest);
}

/// `benchmarks/vlan.toml`, short and slow: every cell with these `ways`, in the order of the alphabet, runs, with tags
/// and without, and loses nothing.
pub fn vlan_tags_are_taken_off_and_put_on(guest: &mut Guest, ways: &[&str]) {
    let only = if let [way] = ways { way } else { "/" };
    let said = guest.run(&format!(
        "sed 's/3mpps/200pps/; s/\"5s\"/\"500ms\"/; s/^title/repeats = 1\\ntitle/' benchmarks/vlan.toml >vlan.toml
         linerate bench vlan.toml --only {only} --runs /tmp/vlan 2>&1"
    ));
    let records = guest.run("cat /tmp/vlan/*.json; rm -r /tmp/vlan");
    let mut passed = Vec::new();
    for record in serde_json::Deserializer::from_str(&records).into_iter::<serde_json::Value>() {
        // What the bench was stands beside its runs.
        let Some(record) = record.ok().filter(|record| record["schema"] == results::record::SCHEMA) else {
            continue;
        };
        let record: Record = serde_json::from_value(record).unwrap();
        for way in &record.directions {
            assert!(way.offered > 0 && way.offered == way.forwarded, "{record:#?}");
        }
        passed.push(record.labels["cell"].clone());
    }
    passed.sort_unstable();
    let cells =
        ["VLAN 100", "untagged"].map(|profile| ways.iter().map(move |way| format!("router/{profile}/{way}")));
    assert_eq!(passed, cells.into_iter().flatten().collect::<Vec<_>>(), "{said}");
    assert!(!said.contains("not run"), "{said}");
}

/// Frames over a page leave whole on `large-0` where AF_XDP sockets know pieces, and are refused by name where not.
pub fn large_frames_leave_or_are_refused(guest: &mut Guest, has_large_frames: bool) {
    guest.run(
        "ip link add large-0 type veth peer name large-1
         for end in large-0 large-1; do ip link set $end mtu 9000 up; done",
    );
    let line = "send --engine af_xdp --port large-0 --to 02:00:00:00:00:01 --size 8000 --rate 200pps --duration 1s --json";
    let output = guest.linerate(line);
    if has_large_frames {
        let told = output.well().json();
        let offered = told["offered"].as_u64().unwrap();
        let arrived = guest.run("cd /sys/class/net/large-1/statistics; cat rx_packets rx_bytes");
        let arrived: Vec<u64> = arrived.lines().map(|line| line.parse().unwrap()).collect();
        assert!(offered > 0 && arrived == [offered, offered * 7996], "{told}: {arrived:?}");
    } else {
        assert_ne!(output.status, 0, "{}", output.stdout);
        for clue in ["frames of 8000 bytes", "up to 3844 bytes", "since Linux 6.6"] {
            assert!(output.stderr.contains(clue), "no '{clue}' in: {}", output.stderr);
        }
    }
    guest.run("ip link delete large-0");
}

/// A kernel looks for a module whenever it is asked for a family of netlink that it does not have, as Linux 6.1 has no
/// `netdev`: a process asks once at most.
pub fn no_family_is_asked_for_twice(guest: &mut Guest) {
    guest.run(
        "printf '#!/bin/sh\\necho \"$*\" >>/tmp/sought\\nexec /sbin/modprobe \"$@\"\\n' >/tmp/modprobe
         chmod +x /tmp/modprobe
         : >/tmp/sought
         cat /proc/sys/kernel/modprobe >/tmp/usual
         echo /tmp/modprobe >/proc/sys/kernel/modprobe",
    );
    let quick = "--rate 200pps --duration 300ms --warm-up-duration 300ms --drain 500ms --json";
    guest.linerate(&format!("saturate --dut linux-router {quick}")).well();
    let sought = guest.run("cat /tmp/usual >/proc/sys/kernel/modprobe; cat /tmp/sought");
    let families = sought.lines().filter(|line| line.contains("-family-netdev")).count();
    assert!(families <= 1, "{sought}");
}

/// Killed in the middle, the program leaves neither processes nor namespaces, interfaces or programs.
pub fn nothing_stays_after_a_kill(guest: &mut Guest) {
    let look = "ip -o link | sed 's/:.*@.*//; s/ mtu.*//'
                grep -l linerate /proc/[0-9]*/comm 2>/dev/null || true
                lsmod | awk '$1 == \"veth\" { print $3 }'";
    let before = guest.run(look);
    guest.run(
        "linerate send --dut linux-router --rate 200pps >/tmp/killed 2>&1 &
         pid=$!
         for try in $(seq 300); do grep -q pps /tmp/killed && break; sleep 0.2; done
         grep -q pps /tmp/killed || { cat /tmp/killed >&2; exit 1; }
         kill -9 $pid",
    );
    // The kernel cleans up a namespace when nobody looks.
    let mut after = String::new();
    for _ in 0..50 {
        after = guest.run(&format!("sleep 0.3; {look}"));
        if after == before {
            return;
        }
    }
    panic!("before: {before}\nafter: {after}");
}

/// A stock kernel measures what is true, or says what kept it from that; nothing is false.
fn verify_finds_nothing_false(guest: &mut Guest) {
    let output = guest.linerate("verify --quick --seed 11 --json");
    let certificate: Certificate = serde_json::from_str(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", output.stdout, output.stderr));
    eprintln!("{}", output.stderr);
    let count = |verdict| certificate.count(verdict);
    assert_eq!(count(Verdict::Failed), 0, "{}", output.stderr);
    assert_eq!(certificate.status, Status::Complete, "{}", output.stderr);
    // Counts need no fast machine. Rates and latencies do.
    for name in COUNTED {
        let check = certificate.checks.iter().find(|check| check.name == name);
        assert!(check.is_some_and(|check| check.measured.is_some()), "{name}: {}", output.stderr);
    }
    let passed = count(Verdict::Passed);
    assert!(
        2 * passed > certificate.checks.len(),
        "{passed} of {}: {}",
        certificate.checks.len(),
        output.stderr
    );
}
