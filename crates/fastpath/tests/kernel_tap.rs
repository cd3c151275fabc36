//! TAP devices: frames pass between the kernel and a test, and daemons speak over them.

use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastpath::kernel::{Settings, Tap};
use nix::poll::{PollFd, PollFlags, poll};
use wire::MacAddress;

use crate::namespace::bird::Bird;
use crate::namespace::{Namespace, through};

fn tap(namespace: &Namespace, name: &str, mac: u8, addresses: &[(&str, u8)]) -> Tap {
    let addresses: Vec<(IpAddr, u8)> =
        addresses.iter().map(|(address, length)| (address.parse().unwrap(), *length)).collect();
    let settings = Settings { name, mac: MacAddress([2, 0, 0, 0, 0, mac]), mtu: 1500, addresses: &addresses };
    namespace.inside(|| Tap::create(&settings)).unwrap()
}

/// The next frame of this Ethernet type that the kernel sends.
fn next(tap: &Tap, ethertype: u16) -> Vec<u8> {
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut frame = [0; 1518];
    while Instant::now() < deadline {
        poll(&mut [PollFd::new(tap.as_fd(), PollFlags::POLLIN)], 100u8).unwrap();
        while let Some(length) = tap.read(&mut frame) {
            if frame[12..14] == ethertype.to_be_bytes() {
                return frame[..length].to_vec();
            }
        }
    }
    panic!("no frame of type {ethertype:#06x}");
}

#[test]
fn frames_pass_in_both_directions() {
    let Some(namespace) = Namespace::new() else { return };
    let tap = tap(&namespace, "lan0", 1, &[("10.0.0.1", 24), ("2001:db8::1", 64)]);
    let mut follower = namespace.follow();
    let index = tap.index();
    follower.until_route("10.0.0.0/24", through(&[(index, "", 1)]));
    follower.until_route("2001:db8::/64", through(&[(index, "", 1)]));
    assert!(follower.known.addresses.contains(&(index, "2001:db8::1".parse().unwrap(), 64)));
    let shown = namespace.run("ip link show lan0");
    assert!(shown.contains("mtu 1500") && shown.contains("LOWER_UP") && shown.contains("02:00:00:00:00:01"));

    // The kernel asks who has the neighbour's address; the neighbour answers; the datagram follows.
    let socket = namespace.inside(|| UdpSocket::bind("10.0.0.1:7").unwrap());
    socket.send_to(b"to you", "10.0.0.2:9").unwrap();
    let request = next(&tap, 0x0806);
    assert_eq!(request[6..12], [2, 0, 0, 0, 0, 1]);
    assert_eq!(request[38..42], [10, 0, 0, 2]);
    let neighbour = [2, 0, 0, 0, 0, 2];
    let answer = [&[0, 2], &neighbour[..], &[10, 0, 0, 2], &request[22..32]].concat();
    assert!(tap.try_write(&[&request[6..12], &neighbour[..], &request[12..20], &answer].concat()));
    let datagram = next(&tap, 0x0800);
    assert_eq!((&datagram[..6], &datagram[42..]), (&neighbour[..], &b"to you"[..]));
    let known = (index, "10.0.0.2".parse().unwrap());
    let mac = (MacAddress(neighbour), false);
    follower.until("the neighbour is known", |now| now.neighbours.get(&known) == Some(&mac));

    // The same datagram, sent back. Its UDP checksum does not change with the direction.
    let mut back = datagram.clone();
    (0..6).for_each(|at| back.swap(at, at + 6));
    (0..4).for_each(|at| back.swap(26 + at, 30 + at));
    (0..2).for_each(|at| back.swap(34 + at, 36 + at));
    assert!(tap.try_write(&back));
    let mut text = [0; 100];
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let (length, from) = socket.recv_from(&mut text).unwrap();
    assert_eq!((&text[..length], from.to_string()), (&b"to you"[..], "10.0.0.2:9".to_owned()));

    namespace.run("ip neighbour del 10.0.0.2 dev lan0");
    follower.until("the neighbour is forgotten", |now| !now.neighbours.contains_key(&known));
    tap.remove_address("10.0.0.1".parse().unwrap(), 24).unwrap();
    follower.until_route("10.0.0.0/24", None);
    drop(tap);
    follower.until("all is gone with it", |now| {
        !now.routes.contains_key(&("2001:db8::".parse().unwrap(), 64))
            && now.addresses.iter().all(|(interface, ..)| *interface != index)
    });
    assert!(!namespace.run("ip -o link").contains("lan0"));
}

#[test]
fn what_the_kernel_does_not_take_is_counted() {
    let Some(namespace) = Namespace::new() else { return };
    let tap = tap(&namespace, "lan0", 1, &[("10.0.0.1", 24)]);
    assert!(!tap.try_write(&[0; 13]));
    assert!(tap.try_write(&[0; 60]));
    tap.set_up(false).unwrap();
    assert!(!tap.try_write(&[0; 60]));
    tap.set_up(true).unwrap();
    tap.set_carrier(false).unwrap();
    assert!(namespace.run("ip link show lan0").contains("NO-CARRIER"));
    tap.set_carrier(true).unwrap();
    assert!(namespace.run("ip link show lan0").contains("LOWER_UP"));
    // Only a frame that does not fit is waiting, and after it nothing.
    let mut small = [0; 20];
    while tap.read(&mut [0; 1518]).is_some() {}
    let before = tap.counters();
    namespace.run("ip neighbour add 10.0.0.2 lladdr 02:00:00:00:00:02 dev lan0");
    namespace.inside(|| UdpSocket::bind("10.0.0.1:0").unwrap().send_to(&[1; 99], "10.0.0.2:9").unwrap());
    assert_eq!(tap.read(&mut small), None);
    let now = tap.counters();
    assert!(now.too_long > before.too_long && now.read == before.read);
    assert_eq!((now.written, now.malformed, now.down, now.full), (1, 1, 1, 0));
}

#[test]
fn refusals_say_what_to_do() {
    let Some(namespace) = Namespace::new() else { return };
    let _first = tap(&namespace, "lan0", 1, &[]);
    let refused = |name, mac, mtu, addresses: &[(IpAddr, u8)]| {
        let settings = Settings { name, mac: MacAddress([mac, 0, 0, 0, 0, 1]), mtu, addresses };
        namespace.inside(|| Tap::create(&settings)).err().unwrap().to_string()
    };
    let cases = [
        (refused("lan0", 2, 1500, &[]), "choose another, or remove it"),
        (refused("lo", 2, 1500, &[]), "choose another, or remove it"),
        (refused("lan%d", 2, 1500, &[]), "give 1 to 15 characters"),
        (refused("lan1", 3, 1500, &[]), "02:00:00:00:00:01"),
        (refused("lan2", 2, 10, &[]), "68 to 65521"),
        (refused("lan3", 2, 1500, &[([10, 0, 0, 1].into(), 33)]), "no longer than it"),
    ];
    for (error, remedy) in cases {
        assert!(error.contains(remedy), "{error}");
    }
    // What another test starts just now has our files until it is another program.
    let deadline = Instant::now() + Duration::from_secs(5);
    while ["lan1", "lan2", "lan3"].iter().any(|name| namespace.run("ip -o link").contains(name)) {
        assert!(Instant::now() < deadline, "a device that was refused is left");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Ends the cable, a failed test too.
struct Cut<'a>(&'a AtomicBool);

impl Drop for Cut<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Carries frames between two TAP devices until it is cut: a cable.
fn carry(taps: [&Tap; 2], cut: &AtomicBool) {
    let mut frame = [0; 1518];
    while !cut.load(Ordering::Relaxed) {
        let mut ends = taps.map(|tap| PollFd::new(tap.as_fd(), PollFlags::POLLIN));
        poll(&mut ends, 20u8).unwrap();
        for (from, to) in [(taps[0], taps[1]), (taps[1], taps[0])] {
            while let Some(length) = from.read(&mut frame) {
                to.try_write(&frame[..length]);
            }
        }
    }
}

#[test]
fn routes_that_bird_learns_over_taps_come_and_go() {
    if !Bird::is_installed() {
        return;
    }
    let Some(here) = Namespace::new() else { return };
    let there = Namespace::new().unwrap();
    let ours = tap(&here, "lan0", 1, &[("10.0.0.1", 24), ("2001:db8::1", 64)]);
    let theirs = tap(&there, "lan0", 2, &[("10.0.0.2", 24), ("2001:db8::2", 64)]);
    let directory = tempfile::tempdir().unwrap();
    let mut follower = here.follow();
    let (lan, cut) = (ours.index(), AtomicBool::new(false));
    // The one that waits to be called is started first. What one end announces, the other end learns.
    let speaker = |own: u8, other: u8, more: &str| {
        format!(
            "router id 10.0.0.{own};
             protocol device {{ }}
             protocol bgp {{
                 local 10.0.0.{own} as 6500{own}; neighbor 10.0.0.{other} as 6500{other}; {more}
                 connect delay time 1; connect retry time 1; error wait time 1, 1;
                 ipv4 {{ import all; export where source = RTS_STATIC; }};
                 ipv6 {{ import all; export where source = RTS_STATIC; }};
             }}"
        )
    };
    let to_kernel = "protocol kernel { ipv4 { export where source = RTS_BGP; }; }
        protocol kernel { ipv6 { export where source = RTS_BGP; }; }";
    let announced = "protocol static { ipv4; route 192.0.2.0/24 blackhole; route 198.51.100.0/24 blackhole; }
        protocol static { ipv6; route 2001:db8:9::/48 blackhole; }";
    let learned = [
        ("192.0.2.0/24", through(&[(lan, "10.0.0.2", 1)])),
        ("198.51.100.0/24", through(&[(lan, "10.0.0.2", 1)])),
        ("2001:db8:9::/48", through(&[(lan, "2001:db8::2", 1)])),
    ];
    thread::scope(|scope| {
        scope.spawn(|| carry([&ours, &theirs], &cut));
        let _cut = Cut(&cut);
        let (listens, calls) = (speaker(1, 2, "passive;") + to_kernel, speaker(2, 1, "") + announced);
        let _bird = Bird::start(&here, directory.path(), "listens", &listens);
        let neighbour = Bird::start(&there, directory.path(), "calls", &calls);
        for (net, path) in &learned {
            follower.until_route(net, path.clone());
        }
        drop(neighbour);
        for (net, _) in &learned {
            follower.until_route(net, None);
        }
    });
}
