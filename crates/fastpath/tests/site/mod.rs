//! The router between two hosts, each in a network namespace of its own, at the ends of cables.

use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::time::Duration;

use fastpath::client::Client;
use fastpath::control::{Answer, Request, Show};
use fastpath::show::hardware::Hardware;
use nix::sched::sched_getaffinity;
use nix::unistd::Pid;
use tempfile::TempDir;
use wire::{MacAddress, ethernet, ipv4};
use xsk::{Interface, Poster};

use crate::namespace::Namespace;
use crate::process::{Router, fastpath, until};

/// What a router says that does not start.
pub fn refusal_of(child: Child) -> String {
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    assert!(!status.success());
    String::from_utf8(stderr).unwrap()
}

/// The routers' end of each cable, by number.
pub const ENDS: [&str; 2] = ["left", "right"];

/// A router's namespace, cables to two hosts, and a directory for the router's files.
pub struct Site {
    pub router: Namespace,
    pub hosts: [Namespace; 2],
    directory: TempDir,
}

impl Site {
    /// `None`, with the reason printed, where there can be none.
    pub fn new() -> Option<Self> {
        let (router, hosts) = (Namespace::new()?, [Namespace::new()?, Namespace::new()?]);
        for (number, (host, end)) in hosts.iter().zip(ENDS).enumerate() {
            router.run(&format!("ip link add {end} type veth peer name host netns {}", host.path()));
            // The router knows the host at this address, so that it asks for none and makes no packet.
            host.run(&format!(
                "ip link set host address 02:00:00:00:00:2{number}\n\
                 ip address add 10.0.{number}.2/24 dev host\n\
                 ip address add 2001:db8:{number}::2/64 dev host nodad\n\
                 ip link set host up\n"
            ));
            router.run(&format!("ip link set {end} up"));
            host.run(&format!(
                "ip route add default via 10.0.{number}.1\n\
                 ip -6 route add default via 2001:db8:{number}::1\n"
            ));
        }
        Some(Self { router, hosts, directory: tempfile::tempdir().unwrap() })
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("control")
    }

    /// Writes a configuration of both ends, and what else it says of the first.
    pub fn write(&self, more: &str) -> PathBuf {
        let usable = sched_getaffinity(Pid::from_raw(0)).unwrap();
        // Where there are two, both send by the one queue of each interface.
        let cores: Vec<usize> = (0..1024).filter(|core| usable.is_set(*core).unwrap()).take(2).collect();
        let mut text = format!(
            "[control]\nsocket = \"{}\"\n[workers]\ncores = {cores:?}\nidle = \"sleep\"\n\
             precedence = \"urgent\"\n",
            self.socket().display(),
        );
        for (number, end) in ENDS.into_iter().enumerate() {
            text += &format!(
                "[[interface]]\nname = \"{end}\"\ndevice = \"af_xdp:{end}\"\n\
                 addresses = [\"10.0.{number}.1/24\", \"2001:db8:{number}::1/64\"]\n{}\n",
                if number == 0 { more } else { "" }
            );
        }
        for (number, end) in ENDS.into_iter().enumerate() {
            for address in [format!("10.0.{number}.2"), format!("2001:db8:{number}::2")] {
                text += &format!(
                    "[[neighbour]]\ninterface = \"{end}\"\naddress = \"{address}\"\n\
                     mac = \"02:00:00:00:00:2{number}\"\n"
                );
            }
        }
        let path = self.directory.path().join("router.toml");
        fs::write(&path, text).unwrap();
        path
    }

    /// Starts the router and waits until it says that it is in control.
    pub fn start(&self, file: &Path) -> Router {
        Router::started(self.spawn(file))
    }

    pub fn spawn(&self, file: &Path) -> Child {
        self.router.inside(|| fastpath(file).spawn().unwrap())
    }

    /// What the router says that does not start.
    pub fn refusal(&self, file: &Path) -> String {
        refusal_of(self.spawn(file))
    }

    /// Pings from one host the other one, by IPv4 and by IPv6, until both have answered.
    pub fn ping(&self) {
        self.ping4();
        self.ping_at("2001:db8:1::2");
    }

    pub fn ping4(&self) {
        self.ping_at("10.0.1.2");
    }

    pub fn ping_at(&self, address: &str) {
        let ping = format!("ping -c 1 -W 0.2 {address} || true");
        until(address, || self.hosts[0].run(&ping).contains("bytes from").then_some(()));
    }

    /// What the kernel says of the router's ends.
    pub fn programs(&self) -> String {
        self.router.run("ip link show")
    }

    pub fn hardware(&self) -> Hardware {
        match Client::connect(&self.socket()).unwrap().ask(&Request::Show(Show::Hardware)).unwrap() {
            Answer::Hardware(hardware) => hardware,
            other => panic!("{other:?}"),
        }
    }
}

/// A socket of a host, with some patience.
pub fn udp(host: &Namespace, address: IpAddr) -> UdpSocket {
    let socket = host.inside(|| UdpSocket::bind((address, 0)).unwrap());
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

/// Sends something, which must arrive.
pub fn exchange(from: &UdpSocket, to: &UdpSocket, address: SocketAddr, what: &[u8]) {
    from.send_to(what, address).unwrap();
    let mut received = [0; 64];
    let length = to.recv(&mut received).unwrap();
    assert_eq!(&received[..length], what);
}

/// By which a host sends frames.
pub fn poster(host: &Namespace) -> Poster {
    host.inside(|| {
        let config = xsk::Config { receives: false, ..xsk::Config::new() };
        let mut socket = xsk::open(&Interface::find("host").unwrap(), 0, &config).unwrap();
        socket.sender.take().unwrap().into_poster()
    })
}

/// A packet of UDP from the first host to an address, for a router with the MAC address 02:00:00:00:00:10.
pub fn frame(destination: [u8; 4]) -> Vec<u8> {
    let [ours, theirs] = [[2, 0, 0, 0, 0, 0x10], [2, 0, 0, 0, 0, 0x20]].map(MacAddress);
    let ethernet = ethernet::Header { destination: ours, source: theirs, ethertype: ethernet::IPV4 };
    let header = ipv4::Header {
        source: [10, 0, 0, 2].into(),
        destination: destination.into(),
        ttl: 64,
        protocol: ipv4::UDP,
        total_length: 46,
        tos: 0,
        identification: 0,
    };
    let mut frame = ethernet.emit().to_vec();
    frame.extend(header.emit());
    frame.resize(60, 0xab);
    frame
}
