//! The router between interfaces of the kernel, by AF_XDP: hosts behind them reach each other through it, no
//! packet vanishes, and the interfaces are the kernel's alone again when it has ended.

#![allow(clippy::unwrap_used)] // a test may panic

mod namespace;
mod process;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};

use fastpath::client::Client;
use fastpath::control::{Answer, Request, Show};
use fastpath::show::hardware::{Hardware, Link};
use nix::sched::sched_getaffinity;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::namespace::Namespace;
use crate::process::{Router, fastpath, until};

/// The routers' end of each cable, by number.
const ENDS: [&str; 2] = ["left", "right"];

/// A router's namespace, cables to two hosts, and a directory for the router's files.
struct Site {
    router: Namespace,
    hosts: [Namespace; 2],
    directory: TempDir,
}

impl Site {
    /// `None`, with the reason printed, where there can be none.
    fn new() -> Option<Self> {
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

    fn socket(&self) -> PathBuf {
        self.directory.path().join("control")
    }

    /// Writes a configuration of both ends, and what else it says of the first.
    fn write(&self, more: &str) -> PathBuf {
        let usable = sched_getaffinity(Pid::from_raw(0)).unwrap();
        // Where there are two, both send by the one queue of each interface.
        let cores: Vec<usize> = (0..1024).filter(|core| usable.is_set(*core).unwrap()).take(2).collect();
        let mut text = format!(
            "[control]\nsocket = \"{}\"\n[workers]\ncores = {cores:?}\nidle = \"sleep\"\n",
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
    fn start(&self, file: &Path) -> Router {
        Router::started(self.spawn(file))
    }

    fn spawn(&self, file: &Path) -> Child {
        self.router.inside(|| fastpath(file).spawn().unwrap())
    }

    /// What the router says that does not start.
    fn refusal(&self, file: &Path) -> String {
        let Output { status, stderr, .. } = self.spawn(file).wait_with_output().unwrap();
        assert!(!status.success());
        String::from_utf8(stderr).unwrap()
    }

    /// Pings from one host the other one, by IPv4 and by IPv6, until both have answered.
    fn ping(&self) {
        for address in ["10.0.1.2", "2001:db8:1::2"] {
            let ping = format!("ping -c 1 -W 0.2 {address} || true");
            until(address, || self.hosts[0].run(&ping).contains("bytes from").then_some(()));
        }
    }

    /// What the kernel says of the router's ends.
    fn programs(&self) -> String {
        self.router.run("ip link show")
    }

    fn hardware(&self) -> Hardware {
        match Client::connect(&self.socket()).unwrap().ask(&Request::Show(Show::Hardware)).unwrap() {
            Answer::Hardware(hardware) => hardware,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn hosts_reach_each_other_through_it_and_no_packet_vanishes() {
    let Some(site) = Site::new() else { return };
    let router = site.start(&site.write(""));
    site.ping();
    // Between two passes all numbers are of one moment.
    until("what arrived was sent, dropped or punted", || {
        let rows = Client::connect(&site.socket()).unwrap().interfaces().unwrap().interfaces;
        let sum = |what: fn(&fastpath::show::interfaces::Row) -> u64| rows.iter().map(what).sum::<u64>();
        assert!(rows.iter().all(|row| row.rx_packets > 0 && row.tx_packets > 0), "{rows:?}");
        let gone = sum(|row| row.tx_packets) + sum(|row| row.drops) + sum(|row| row.punts);
        (sum(|row| row.rx_packets) == gone).then_some(())
    });
    for (device, end) in site.hardware().devices.iter().zip(ENDS) {
        assert_eq!(device.driver, format!("af_xdp at {end}"));
        assert!(device.lost.is_some_and(|lost| lost.no_buffer == 0), "{device:?}");
    }
    let link = |number: usize| site.hardware().devices[number].link.clone();
    until("the links are up", || (link(0) == Link::Up && link(1) == Link::Up).then_some(()));
    // What the kernel knows of a cable, the router tells.
    site.hosts[1].run("ip link set host down");
    until("the link is down", || matches!(link(1), Link::Down(why) if why.contains("no peer")).then_some(()));

    router.stop(Signal::SIGTERM);
    assert!(!site.programs().contains("xdp"), "{}", site.programs());
    assert!(!fs::exists(site.socket()).unwrap());
}

#[test]
fn the_longest_packets_pass_too() {
    let Some(site) = Site::new() else { return };
    // Both ends of both cables, and the router, of which only the first interface is told otherwise.
    let file = site.write("mtu = 3394");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("af_xdp:right\"", "af_xdp:right\"\nmtu = 3394")).unwrap();
    for (host, end) in site.hosts.iter().zip(ENDS) {
        host.run("ip link set host mtu 3394");
        site.router.run(&format!("ip link set {end} mtu 3394"));
    }
    let router = site.start(&file);
    let ping = "ping -c 1 -W 0.2 -M do -s 3366 10.0.1.2 || true";
    until("an answer of 3394 bytes", || site.hosts[0].run(ping).contains("bytes from").then_some(()));
    router.stop(Signal::SIGTERM);
}

#[test]
fn one_that_was_killed_leaves_nothing_in_the_next_one_s_way() {
    let Some(site) = Site::new() else { return };
    let file = site.write("");
    let router = site.start(&file);
    site.ping();
    assert!(site.programs().contains("xdp"), "{}", site.programs());
    drop(router);
    until("no program is left", || (!site.programs().contains("xdp")).then_some(()));
    let router = site.start(&file);
    site.ping();
    router.stop(Signal::SIGTERM);
    assert!(!site.programs().contains("xdp"), "{}", site.programs());
}

#[test]
fn what_an_interface_cannot_be_is_refused_with_the_remedy() {
    let Some(site) = Site::new() else { return };
    let file = site.write("");
    let text = fs::read_to_string(&file).unwrap();
    for (from, to, clue) in [
        ("af_xdp:left", "af_xdp:none-such", "`ip link` lists"),
        ("af_xdp:left", "dpdk:net_nil0", "net_nil0"),
        ("af_xdp:left", "dpdk:left", "write a card's PCI address"),
        ("af_xdp:left", "dpdk:ffff:ff:1f.7", ""),
        ("af_xdp:right", "af_xdp:left", "left has the device net_af_xdp_left already"),
        ("af_xdp:left\"", "af_xdp:left\"\nmtu = 9000", "bytes for a frame"),
    ] {
        assert!(text.contains(from));
        fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let refusal = site.refusal(&file);
        assert!(refusal.contains(clue), "{to}: {refusal}");
    }
    assert!(!site.programs().contains("xdp"), "{}", site.programs());
}
