//! The router as a program, started with a million routes: files and a program enter; how long it takes from its start
//! until a packet is forwarded, and its memory by then, leave.

use std::fmt::Write;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use memif::{Config, Frame, Memif, Opened, Role, Socket};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use tempfile::TempDir;
use wire::{MacAddress, ethernet, ipv4};

use crate::{Measured, Routes, gateway, tables};

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(120);
const OURS: [MacAddress; 2] = [MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2])];
const THEIRS: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x20]);
const GATEWAY6: &str = "2001:db8::2";

/// How the routes are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// As `[[route]]` of the configuration.
    Configuration,
    /// In a table beside it.
    Table,
    /// In a table with a quarter of a million of IPv6.
    BothInATable,
}

/// A process that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `program` with `routes`, and waits until it forwards a packet by one of them.
pub fn start(program: &Path, written: Written, routes: &Routes) -> Measured {
    let directory = tempfile::tempdir().unwrap();
    let file = write(&directory, written, routes);
    let peer = |name: &str| {
        Memif::open(Config::new(Role::Client, Socket::Path(directory.path().join(name)))).unwrap()
    };
    let mut peers = [peer("lan"), peer("wan")];
    let &(address, _, number) = routes.iter().find(|(_, length, _)| *length == 24).unwrap();
    let frame = frame(Ipv4Addr::from(address));
    let started = Instant::now();
    let process = Running(Command::new(program).arg(&file).stderr(Stdio::null()).spawn().unwrap());
    let to = forwarded(&mut peers, &frame, started);
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!(to, mac(number), "another gateway than the route's");
    let pid = process.0.id();
    Measured { seconds, resident: memory(pid, "VmRSS"), most: memory(pid, "VmHWM") }
}

/// Where the first packet goes that is forwarded.
fn forwarded([lan, wan]: &mut [Opened; 2], frame: &[u8], started: Instant) -> MacAddress {
    loop {
        assert!(started.elapsed() < PATIENCE, "nothing is forwarded");
        for peer in [&mut *lan, &mut *wan] {
            peer.memif.poll(Duration::from_millis(1)).unwrap();
        }
        if !(lan.memif.is_connected() && wan.memif.is_connected()) {
            continue;
        }
        lan.senders[0].send(&[frame]);
        let mut received = [Frame::NONE; 64];
        if wan.receivers[0].receive(&mut received) > 0 {
            // SAFETY: it is lent until it is released, which it is not.
            let bytes = unsafe { received[0].bytes() };
            return MacAddress(*bytes.first_chunk().unwrap());
        }
    }
}

fn mac(number: u32) -> MacAddress {
    MacAddress([2, 0, 0, 0, 1, number as u8])
}

fn write(directory: &TempDir, written: Written, routes: &Routes) -> PathBuf {
    let path = |name: &str| directory.path().join(name);
    let usable = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let core = (0..CpuSet::count()).rev().find(|core| usable.is_set(*core).unwrap()).unwrap();
    let mut text = String::new();
    if written != Written::Configuration {
        text += "routes-file = \"table.txt\"\n";
    }
    let control = path("control");
    writeln!(
        text,
        "[control]\nsocket = \"{}\"\n[workers]\ncores = [{core}]\nidle = \"sleep\"",
        control.display()
    )
    .unwrap();
    for (name, mac, addresses) in
        [("lan", OURS[0], "\"10.1.0.1/24\""), ("wan", OURS[1], "\"10.0.0.1/24\", \"2001:db8::1/64\"")]
    {
        let socket = path(name);
        write!(
            text,
            "[[interface]]\nname = \"{name}\"\ndevice = \"memif:socket={}\"\nmac = \"{mac}\"\naddresses = [{addresses}]\n",
            socket.display()
        )
        .unwrap();
    }
    let gateways = (1..=tables::HOPS as u32).map(|number| (IpAddr::from(gateway(number)), mac(number)));
    for (address, mac) in gateways.chain([(GATEWAY6.parse().unwrap(), THEIRS)]) {
        write!(text, "[[neighbour]]\ninterface = \"wan\"\naddress = \"{address}\"\nmac = \"{mac}\"\n")
            .unwrap();
    }
    let mut table = String::new();
    for &(address, length, number) in routes {
        let (network, gateway) = (Ipv4Addr::from(address), gateway(number));
        match written {
            Written::Configuration => {
                write!(
                    text,
                    "[[route]]\nprefix = \"{network}/{length}\"\nvia = [{{ gateway = \"{gateway}\" }}]\n"
                )
                .unwrap();
            }
            _ => writeln!(table, "{network}/{length} via {gateway} dev wan").unwrap(),
        }
    }
    if written == Written::BothInATable {
        for (address, length, _) in tables::ip6().routes {
            writeln!(table, "{}/{length} via {GATEWAY6} dev wan", Ipv6Addr::from(address)).unwrap();
        }
    }
    fs::write(path("table.txt"), table).unwrap();
    fs::write(path("router.toml"), text).unwrap();
    path("router.toml")
}

fn frame(destination: Ipv4Addr) -> Vec<u8> {
    let header = ipv4::Header {
        source: Ipv4Addr::new(10, 1, 0, 2),
        destination,
        ttl: 64,
        protocol: ipv4::UDP,
        total_length: 46,
        tos: 0,
        identification: 0,
    };
    let ethernet = ethernet::Header { destination: OURS[0], source: THEIRS, ethertype: ethernet::IPV4 };
    let mut frame = [&ethernet.emit()[..], &header.emit()].concat();
    frame.resize(60, 0);
    frame
}

/// A line of what the kernel says of a process' memory, in MB.
fn memory(process: u32, name: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0 / 1e6
}
