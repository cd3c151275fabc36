//! The program on Debian's stock kernels, with emulated network cards: machines under QEMU, by hardware where that
//! works and by emulation where not. Emulation is slow: no test looks at a time, all look at counts.
//!
//! The lab and the newest kernel are tested by `make test-long`. Kernels are downloaded by apt-get and stay in
//! `target/vm`, which may be removed.

mod guest;
mod initramfs;
mod kernels;

use guest::Guest;

use crate::common::shared_machine;

/// A kernel of Debian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// That of the release: 6.1.
    Release,
    /// The newest that the archive of the release offers: 6.12.
    Backports,
}

impl Kernel {
    fn name(self) -> &'static str {
        match self {
            Self::Release => "bookworm",
            Self::Backports => "bookworm-backports",
        }
    }

    /// The parts of the archive that have it.
    fn suites(self) -> &'static [&'static str] {
        match self {
            Self::Release => &["bookworm", "bookworm-security"],
            Self::Backports => &["bookworm-backports"],
        }
    }
}

/// A card that QEMU emulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Card {
    VirtioNet,
    Vmxnet3,
    E1000e,
}

impl Card {
    /// Its name in QEMU.
    fn device(self) -> &'static str {
        match self {
            Self::VirtioNet => "virtio-net-pci",
            Self::Vmxnet3 => "vmxnet3",
            Self::E1000e => "e1000e",
        }
    }

    /// Its driver in Linux.
    fn driver(self) -> &'static str {
        match self {
            Self::VirtioNet => "virtio_net",
            Self::Vmxnet3 => "vmxnet3",
            Self::E1000e => "e1000e",
        }
    }
}

/// Runs `test` on a machine, unless none can run here.
fn on(kernel: Kernel, card: Card, test: impl FnOnce(&mut Guest)) {
    let pair = format!("{card:?} on the kernel of {}", kernel.name());
    if let Some(reason) = guest::unavailable() {
        return eprintln!("skipped: {pair}: {reason}");
    }
    let _machine = shared_machine();
    match Guest::boot(kernel, card) {
        Ok(mut guest) => test(&mut guest),
        Err(reason) => eprintln!("skipped: {pair}: {reason}"),
    }
}

/// Devices of the lab, all that need no other program.
const DEVICES: [&str; 6] =
    ["linux-router", "linux-bridge", "xdp-router", "xdp-xconnect", "calibrated:rate=10kpps", "delayed"];

/// Two cards are the tester's, the other two a router's. Every frame that left, by what the program says,
/// arrived at the router's card; what came back is what it received, by `engine`, which the cards call for.
fn counts_are_those_of_the_cards(guest: &mut Guest, engine: &str) {
    let mac = guest.run(
        "ip netns add router
         for n in 0 1; do
             ip link set dev$n netns router
             ip address add 100.65.$((n + 1)).2/24 dev port$n
             ip link set port$n up
             ip -n router address add 100.65.$((n + 1)).1/24 dev dev$n
             ip -n router link set dev$n up
         done
         ip netns exec router sysctl -qw net.ipv4.ip_forward=1
         ip -n router route add 16.0.0.0/8 via 100.65.1.2
         ip -n router route add 48.0.0.0/8 via 100.65.2.2
         sleep 2
         ip netns exec router cat /sys/class/net/dev0/address",
    );
    let arrived = |guest: &mut Guest| {
        let count = guest.run("ip netns exec router cat /sys/class/net/dev0/statistics/rx_packets");
        count.trim().parse::<u64>().unwrap()
    };
    let before = arrived(guest);
    let line = format!("send --port port0 --to {} --rate 300pps --duration 2s --json", mac.trim());
    let sent = guest.linerate(&line).well();
    assert!(sent.stderr.contains(&format!("engine: {engine}, because")), "{}", sent.stderr);
    let offered = sent.json()["offered"].as_u64().unwrap();
    assert!(offered > 0, "{}", sent.stderr);
    let mut came = arrived(guest) - before;
    for _ in 0..10 {
        if came == offered {
            break;
        }
        guest.run("sleep 0.5");
        came = arrived(guest) - before;
    }
    let cards = guest.run("ip -s link show port0; ip netns exec router ip -s link show dev0");
    assert_eq!(came, offered, "{}{}{cards}", sent.stdout, sent.stderr);

    let line = "ramp --ports port0,port1 --gateways 100.65.1.1,100.65.2.1 --rate 300pps --duration 2s --step 500ms \
                --hold-duration 500ms --drain 2s --json";
    let record = guest.linerate(line).well().record();
    let way = &record.directions[0];
    assert!(way.offered > 0, "{:?}", record.notes);
    assert_eq!(way.forwarded, way.offered, "{:?} {:?}", record.notes, record.cross_check);
    assert!(record.cross_check.iter().all(|check| check.agrees), "{:?}", record.cross_check);
    let programs = guest.run("ip -details link show port0; ip -details link show port1");
    assert!(!programs.contains("prog/xdp"), "{programs}");
}

/// The doctor finds what a stock kernel has.
fn the_doctor_finds_all(guest: &mut Guest) {
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
fn the_lab_works(guest: &mut Guest) {
    for device in DEVICES {
        let quick = "--rate 200pps --duration 1s --warm-up-duration 300ms --drain 2s --json";
        let record = guest.linerate(&format!("saturate --dut {device} {quick}")).well().record();
        let way = &record.directions[0];
        assert!(way.offered > 0, "{device}: nothing was sent: {:?}", record.notes);
        assert_eq!(way.forwarded, way.offered, "{device}: {:?} {:?}", record.notes, record.cross_check);
    }
    vlan_tags_are_taken_off_and_put_on(guest);
    nothing_stays_after_a_kill(guest);
}

/// `benchmarks/vlan.toml`, short and slow: both devices run, and with tags, too.
fn vlan_tags_are_taken_off_and_put_on(guest: &mut Guest) {
    guest.run(
        "sed 's/3mpps/200pps/; s/\"5s\"/\"1s\"/; s/^title/repeats = 1\\ntitle/' benchmarks/vlan.toml >vlan.toml
         linerate bench vlan.toml --only one --runs /tmp/vlan >/dev/null",
    );
    let records = guest.run("cat /tmp/vlan/*.json");
    let records = serde_json::Deserializer::from_str(&records).into_iter::<serde_json::Value>();
    let mut passed = Vec::new();
    for record in records.flatten().filter(|record| record["directions"].is_array()) {
        let way = &record["directions"][0];
        assert!(way["offered"].as_u64() > Some(0), "{record:#}");
        assert_eq!(way["offered"], way["forwarded"], "{record:#}");
        passed.push(record["name"].to_string());
    }
    passed.sort();
    assert!(
        passed.len() == 2 && passed[0].contains("VLAN 100") && passed[1].contains("untagged"),
        "{passed:?}"
    );
}

/// Killed in the middle, the program leaves neither processes nor namespaces, interfaces or programs.
fn nothing_stays_after_a_kill(guest: &mut Guest) {
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

#[test]
fn the_doctor_finds_what_the_kernel_of_the_release_has() {
    on(Kernel::Release, Card::VirtioNet, the_doctor_finds_all);
}

#[test]
fn counts_are_those_of_a_virtio_card_on_the_kernel_of_the_release() {
    on(Kernel::Release, Card::VirtioNet, |guest| counts_are_those_of_the_cards(guest, "xdp"));
}

#[test]
fn counts_are_those_of_a_card_without_xdp_on_the_kernel_of_the_release() {
    on(Kernel::Release, Card::E1000e, |guest| counts_are_those_of_the_cards(guest, "af_xdp"));
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn the_lab_works_on_the_kernel_of_the_release() {
    on(Kernel::Release, Card::VirtioNet, the_lab_works);
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn the_lab_works_on_the_newest_kernel_of_the_archive() {
    on(Kernel::Backports, Card::Vmxnet3, |guest| {
        the_doctor_finds_all(guest);
        the_lab_works(guest);
    });
}
