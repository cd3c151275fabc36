//! A cable between two ports, in a namespace of its own: what an engine sees without a device.

#![allow(dead_code, clippy::unwrap_used)] // each test binary uses a part of it; a test may panic

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::xdp::{Config, PortRef, XdpEngine};
use nix::sched::{CloneFlags, unshare};
use traffic::{Apart, FrameTable, Row};

/// Moves this thread into a new network namespace with a veth pair `port0`–`port1`.
/// `None`, with the reason printed, where that is impossible.
pub fn cable() -> Option<[PortRef; 2]> {
    cable_of(1)
}

/// As [`cable`], with so many queues each way at both ends.
pub fn cable_of(queues: usize) -> Option<[PortRef; 2]> {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: namespaces need root");
        return None;
    }
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).unwrap();
    run("mount --make-rprivate /");
    run("mount -t sysfs sysfs /sys");
    let queues = format!("numtxqueues {queues} numrxqueues {queues}");
    run(&format!("ip link add port0 {queues} type veth peer name port1 {queues}"));
    for port in ["port0", "port1"] {
        run(&format!("sysctl -qw net.ipv6.conf.{port}.disable_ipv6=1"));
        run(&format!("ip link set {port} up"));
    }
    let port =
        |name: &str| PortRef { name: name.into(), index: nix::net::if_::if_nametoindex(name).unwrap() };
    Some([port("port0"), port("port1")])
}

/// An interface over `port` whose driver has no XDP.
pub fn without_xdp(port: &PortRef) -> PortRef {
    let name = port.name.replace("port", "card");
    run(&format!("ip link add link {} name {name} type macvlan mode passthru", port.name));
    run(&format!("sysctl -qw net.ipv6.conf.{name}.disable_ipv6=1"));
    run(&format!("ip link set {name} up"));
    PortRef { index: nix::net::if_::if_nametoindex(name.as_str()).unwrap(), name }
}

/// Detaches one of the XDP programs that this process has at its interfaces, as somebody else may.
pub fn detach_a_program() {
    use libbpf_rs::libbpf_sys::{bpf_link_detach, bpf_link_get_fd_by_id};
    let links = std::fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    let mut texts = links.filter_map(|link| std::fs::read_to_string(link.path()).ok());
    let text = texts.find(|text| text.contains("link_type:\txdp")).unwrap();
    let number = text.lines().find_map(|line| line.strip_prefix("link_id:")).unwrap().trim().parse().unwrap();
    // SAFETY: system calls without pointers.
    assert_eq!(unsafe { bpf_link_detach(bpf_link_get_fd_by_id(number)) }, 0);
}

/// Moves the receiving work of both ports to `core`. To be called once an engine is attached.
pub fn receive_on(core: usize) {
    for port in ["port0", "port1"] {
        std::fs::write(format!("/sys/class/net/{port}/threaded"), "1").unwrap();
    }
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        if name.starts_with("napi/port") {
            let pid = process.file_name().into_string().unwrap().parse().unwrap();
            let mut cores = nix::sched::CpuSet::new();
            cores.set(core).unwrap();
            nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(pid), &cores).unwrap();
        }
    }
}

pub fn run(command: &str) {
    let mut words = command.split(' ');
    let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(status.success(), "{command}");
}

/// A table of `flows` UDP/IPv4-like frames of `sizes` (FCS included) in `directions` directions.
pub fn table(sizes: &[u16], flows: u8, directions: u8) -> FrameTable {
    let header_length = 48;
    let (mut rows, mut headers) = (Vec::new(), Vec::new());
    for flow in 0..flows {
        for size in sizes {
            for direction in 0..directions {
                rows.push(Row { length: size - 4, stream: 0, direction, checksum: None });
                let mut header = vec![b'x'; header_length];
                header[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
                header[14] = flow;
                headers.extend(header);
            }
        }
    }
    let period = rows.len() as u64;
    let times = Vec::new();
    FrameTable { rows, headers, header_length, fill: b'x', period, times, apart: Apart::default() }
}

pub fn start(ports: &[PortRef; 2], table: &FrameTable) -> XdpEngine {
    start_on(&[0], ports, table)
}

/// The engine with a worker on each of `cores`.
pub fn start_on(cores: &[usize], ports: &[PortRef; 2], table: &FrameTable) -> XdpEngine {
    let config = Config {
        ports: ports.clone(),
        namespace: None,
        cores,
        table,
        stop: Arc::new(AtomicBool::new(false)),
    };
    XdpEngine::start(&config).unwrap()
}
