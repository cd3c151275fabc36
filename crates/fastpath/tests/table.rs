//! A router with a table of 100,000 routes beside its configuration: it forwards by them, takes little memory for each,
//! and refuses tables that are none.

use std::fmt::Write;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use crate::common::{OURS, frame};
use fastpath::client::Client;
use memif::{Config, Frame, Memif, Opened, Role, Socket};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use tempfile::TempDir;

use crate::process::{Router, fastpath, until};

const ROUTES: u32 = 100_000;
const GATEWAYS: u32 = 16;
/// More bytes than a route of IPv4 takes, in the configuration and in the tables that are looked up.
const BYTES_OF_A_ROUTE: u64 = 160;

/// The files of a router between two memifs.
struct Site(TempDir);

impl Site {
    fn new() -> Self {
        let site = Self(tempfile::tempdir().unwrap());
        let usable = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let core = (0..CpuSet::count()).find(|core| usable.is_set(*core).unwrap()).unwrap();
        let mut text = format!(
            "routes-file = \"table.txt\"\n[control]\nsocket = \"{}\"\n[workers]\ncores = [{core}]\nidle = \"sleep\"\n",
            site.path("control").display()
        );
        for (name, number) in [("lan", 0), ("wan", 1)] {
            let (socket, mac) = (site.path(name), OURS[number]);
            let _ = write!(
                text,
                "[[interface]]\nname = \"{name}\"\ndevice = \"memif:socket={}\"\nmac = \"{mac}\"\n\
                 addresses = [\"10.{number}.0.1/24\"]\n",
                socket.display()
            );
        }
        for number in 0..GATEWAYS {
            let _ = write!(
                text,
                "[[neighbour]]\ninterface = \"wan\"\naddress = \"{}\"\nmac = \"{}\"\n",
                gateway(number),
                wire::MacAddress(mac(number))
            );
        }
        fs::write(site.path("router.toml"), text).unwrap();
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn ctl(&self, words: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fastpathctl"));
        command.arg("--socket").arg(self.path("control")).args(words.split(' ')).output().unwrap()
    }

    fn said(&self, words: &str) -> String {
        let output = self.ctl(words);
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    fn peer(&self, name: &str) -> Opened {
        Memif::open(Config::new(Role::Client, Socket::Path(self.path(name)))).unwrap()
    }
}

fn gateway(number: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, 0, 2 + (number % GATEWAYS) as u8)
}

fn mac(number: u32) -> [u8; 6] {
    [2, 0, 0, 0, 1, (number % GATEWAYS) as u8]
}

/// The network of a route: every other /24, so that none has a neighbour.
fn network(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x2000_0000 + (number << 9))
}

/// The lines of all routes, as `ip route` writes them; those of odd numbers lead elsewhere after a `shift`.
fn table(shift: u32) -> String {
    let mut text = String::new();
    for number in 0..ROUTES {
        let _ = writeln!(
            text,
            "{}/24 via {} dev wan proto bird",
            network(number),
            gateway(number + shift * (number % 2))
        );
    }
    text
}

/// Bytes that a process has in memory, or had at most (`VmRSS`, `VmHWM`).
fn memory(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Sends a packet to each of these routes, and fails unless each comes back to its gateway.
fn forwards(peers: &mut [Opened; 2], routes: &[(u32, u32)]) {
    let [lan, wan] = peers;
    for &(number, gateway) in routes {
        let mut destination = network(number).octets();
        destination[3] = 77;
        assert_eq!(lan.senders[0].send(&[&frame(OURS[0], destination, 64, 46)]), 1);
        let mut received = [Frame::NONE; 8];
        until("a packet", || (wan.receivers[0].receive(&mut received) == 1).then_some(()));
        // SAFETY: it is lent until it is released.
        let (to, sent) = unsafe { (&received[0].bytes()[..6], &received[0].bytes()[30..34]) };
        assert_eq!((to, sent), (&mac(gateway)[..], &destination[..]), "route {number}");
        wan.receivers[0].release();
    }
}

#[test]
fn a_router_forwards_by_a_table_of_a_hundred_thousand_routes_in_little_memory() {
    let site = Site::new();
    fs::write(site.path("table.txt"), "# none yet\n").unwrap();
    let mut router = Router::started(fastpath(&site.path("router.toml")).spawn().unwrap());
    let mut peers = [site.peer("lan"), site.peer("wan")];
    until("two connections", || {
        peers.iter_mut().for_each(|peer| _ = peer.memif.poll(Duration::from_millis(1)));
        peers.iter().all(|peer| peer.memif.is_connected()).then_some(())
    });
    let before = memory(router.id(), "VmRSS");
    fs::write(site.path("table.txt"), table(0)).unwrap();
    let said = site.said("reload");
    assert!(said.ends_with(&format!(": {ROUTES} changes made\n")), "{said}");
    let (now, most) = (memory(router.id(), "VmRSS"), memory(router.id(), "VmHWM"));
    let [taken, peak] = [now, most].map(|bytes| bytes.saturating_sub(before) / u64::from(ROUTES));
    assert!(taken < BYTES_OF_A_ROUTE, "{taken} bytes for each route, and {peak} at most");
    assert!(peak < 3 * BYTES_OF_A_ROUTE, "{peak} bytes for each route while they were read");

    let sample = [0, 1, 2, 17, 4_711, 65_536, ROUTES - 1];
    for number in sample {
        let shown = site.said(&format!("show fib ip4 {}", network(number)));
        assert!(
            shown.contains(&format!("{}/24", network(number)))
                && shown.contains(&gateway(number).to_string()),
            "{shown}"
        );
    }
    forwards(&mut peers, &sample.map(|number| (number, number)));

    // Of a table that differs in some routes only these change; of one that is wrong none.
    fs::write(site.path("table.txt"), table(1)).unwrap();
    assert!(site.said("reload").ends_with(&format!(": {} changes made\n", ROUTES / 2)));
    forwards(&mut peers, &sample.map(|number| (number, number + number % 2)));
    let mut lines: Vec<String> = table(0).lines().map(str::to_owned).collect();
    lines[69_999] = "48.0.0.1/8 via 10.1.0.2".to_owned();
    fs::write(site.path("table.txt"), lines.join("\n")).unwrap();
    let said = site.said("reload");
    assert!(
        said.contains("table.txt:70000: 48.0.0.1/8 has bits set beyond its length: is 48.0.0.0/8 meant?"),
        "{said}"
    );
    forwards(&mut peers, &sample.map(|number| (number, number + number % 2)));

    // Routes may go, and leave no memory behind.
    fs::write(site.path("table.txt"), "").unwrap();
    assert!(site.said("reload").ends_with(&format!(": {ROUTES} changes made\n")));
    let counted = Client::connect(&site.path("control")).unwrap().interfaces().unwrap().interfaces;
    assert_eq!(counted[1].tx_packets, 3 * sample.len() as u64);
    assert!(router.line().contains("connected with"));
    router.stop(Signal::SIGTERM);
}

#[test]
fn what_is_no_table_is_refused_before_anything_is_touched() {
    let site = Site::new();
    let check = || {
        let output = fastpath(&site.path("router.toml")).arg("--check").output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = check();
    assert!(code == Some(1) && said.contains("cannot read the table of routes"), "{said}");
    // Nobody writes to it.
    mkfifo(&site.path("table.txt"), Mode::S_IRWXU).unwrap();
    let (code, said) = check();
    assert!(code == Some(1) && said.contains("name an ordinary file"), "{said}");
    fs::remove_file(site.path("table.txt")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", site.path("table.txt")).unwrap();
    let (code, said) = check();
    assert!(code == Some(1) && said.contains("name an ordinary file"), "{said}");
    fs::remove_file(site.path("table.txt")).unwrap();
    // A file with a hole takes no room on the disk.
    let huge = fs::File::create(site.path("table.txt")).unwrap();
    huge.set_len(2 << 30).unwrap();
    let (code, said) = check();
    assert!(code == Some(1) && said.contains("it holds more than"), "{said}");
    huge.set_len(1 << 20).unwrap();
    let (code, said) = check();
    assert!(code == Some(2) && said.contains("table.txt:1: a line of more than"), "{said}");
    huge.set_len(0).unwrap();
    let (code, said) = check();
    assert!(code == Some(0) && said.contains("configuration OK"), "{said}");
}
