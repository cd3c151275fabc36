//! Every device under test forwards real frames as it should.

#![allow(clippy::unwrap_used)] // a test may panic

mod support;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use lab::Lab;
use support::{RawPort, can_build_labs, start, start_with_frames_of};

const PAYLOAD: &[u8] = b"linerate tests this";

/// A UDP datagram from behind one port to behind the other, as it leaves `from`.
fn datagram(lab: &Lab, from: usize, ipv6: bool, payload: &[u8]) -> Vec<u8> {
    let port = &lab.ports()[from];
    let builder = PacketBuilder::ethernet2(port.mac.0, port.next_hop_mac.0);
    let (v4, v6) = ([[16, 0, 0, 1], [48, 0, 0, 1]], ["2001:2:0:16::1", "2001:2:0:48::1"]);
    let builder = if ipv6 {
        let address = |index: usize| v6[index].parse::<std::net::Ipv6Addr>().unwrap().octets();
        builder.ipv6(address(from), address(1 - from), 64)
    } else {
        builder.ipv4(v4[from], v4[1 - from], 64)
    };
    let mut frame = Vec::new();
    builder.udp(1025, 12).write(&mut frame, payload).unwrap();
    frame
}

fn raw_ports(lab: &Lab) -> [RawPort; 2] {
    [RawPort::open(lab, &lab.ports()[0]), RawPort::open(lab, &lab.ports()[1])]
}

/// TTL or hop limit, and whether all checksums are right.
fn judge(frame: &[u8]) -> (u8, bool) {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(TransportSlice::Udp(udp)) = packet.transport else { panic!("no UDP in {frame:?}") };
    let header = udp.to_header();
    match packet.net {
        Some(NetSlice::Ipv4(ip)) => {
            let ip = ip.header();
            let sum = header.calc_checksum_ipv4_raw(ip.source(), ip.destination(), udp.payload()).unwrap();
            (
                ip.ttl(),
                ip.header_checksum() == ip.to_header().calc_header_checksum() && sum == header.checksum,
            )
        }
        Some(NetSlice::Ipv6(ip)) => {
            let ip = ip.header();
            let sum = header.calc_checksum_ipv6_raw(ip.source(), ip.destination(), udp.payload()).unwrap();
            (ip.hop_limit(), sum == header.checksum)
        }
        other => panic!("no IP: {other:?}"),
    }
}

#[test]
fn routers_forward_with_one_hop_less() {
    if !can_build_labs() {
        return;
    }
    for dut in [
        "linux-router",
        "linux-router:gro=off",
        "linux-router:jail=on",
        "linux-router:gro=off,jail=on",
        "linux-router:gro=off,jail=moved",
        "xdp-router",
    ] {
        let lab = start(dut);
        let raw = raw_ports(&lab);
        for (from, ipv6) in [(0, false), (0, true), (1, false), (1, true)] {
            let sent = datagram(&lab, from, ipv6, PAYLOAD);
            raw[from].send(&sent);
            let context = format!("{dut} from port {from}, IPv6 {ipv6}");
            let received = raw[1 - from].receive_one(|frame| frame.ends_with(PAYLOAD));
            let received = received.unwrap_or_else(|| panic!("{context}: nothing came"));
            assert_eq!(judge(&received), (63, true), "{context}");
            let (to, back) = (&lab.ports()[1 - from], lab.ports()[1 - from].next_hop_mac);
            assert_eq!((&received[..6], &received[6..12]), (&to.mac.0[..], &back.0[..]), "{context}");
            assert_eq!(received.len(), sent.len(), "{context}");
        }
    }
}

/// `frame` from another source: a host of 10.0.0.0/8, or of fd00::/64.
fn from_source(mut frame: Vec<u8>, source: std::net::IpAddr) -> Vec<u8> {
    let at = match source {
        std::net::IpAddr::V4(source) => {
            frame[26..30].copy_from_slice(&source.octets());
            let header: [u8; 20] = frame[14..34].try_into().unwrap();
            let (parsed, _) = etherparse::Ipv4Header::from_slice(&header).unwrap();
            frame[24..26].copy_from_slice(&parsed.calc_header_checksum().to_be_bytes());
            return frame;
        }
        std::net::IpAddr::V6(source) => source.octets(),
    };
    frame[22..38].copy_from_slice(&at);
    frame
}

/// The kernel's firewalls that this machine has what it takes for.
fn firewalls() -> Vec<&'static str> {
    let has = |program: &str| std::process::Command::new(program).arg("--version").output().is_ok();
    let mut found = vec!["firewall=xdp,rules=3", "firewall=xdp,rules=3,gro=off"];
    for (program, firewalls) in [
        ("nft", &["nftables,rules=3", "nftables,rules=3,states=on", "nftables-set,rules=1000"][..]),
        ("ip6tables-legacy-restore", &["iptables,rules=3", "iptables,rules=3,states=on"]),
    ] {
        if !has(program) {
            eprintln!("skipped: {program} is not installed");
            continue;
        }
        found.extend(firewalls);
    }
    found
}

#[test]
fn every_firewall_drops_the_same_and_passes_all_else() {
    if !can_build_labs() {
        return;
    }
    for firewall in firewalls() {
        let prefix = if firewall.starts_with("firewall=") { "" } else { "firewall=" };
        let dut = format!("linux-router:{prefix}{firewall}");
        let denied = dut.parse::<dut::DutSpec>().unwrap().denied();
        let lab = start(&dut);
        let raw = raw_ports(&lab);
        for (from, ipv6) in [(0, false), (0, true), (1, false), (1, true)] {
            let context = format!("{dut} from port {from}, IPv6 {ipv6}");
            let source = *denied.iter().find(|source| source.is_ipv6() == ipv6).unwrap();
            let marked = [PAYLOAD, &[b'0' + from as u8]].concat();
            let own = datagram(&lab, from, ipv6, &marked);
            raw[from].send(&from_source(datagram(&lab, from, ipv6, b"what must not pass, nowhere"), source));
            raw[from].send(&own);
            let received = raw[1 - from].receive_one(|frame| {
                assert!(!frame.ends_with(b"nowhere"), "{context}: {source} passed");
                frame.ends_with(&marked)
            });
            assert!(received.is_some(), "{context}: what must pass did not");
        }
    }
}

#[test]
fn each_of_several_jails_routes_what_is_addressed_to_it() {
    if !can_build_labs() {
        return;
    }
    for dut in ["linux-router:jails=3", "linux-router:gro=off,jails=3"] {
        let lab = start(dut);
        let raw = raw_ports(&lab);
        for (jail, last) in [(0, 1), (1, 17), (2, 18)] {
            for (from, ipv6) in [(0, false), (1, true)] {
                let marked = [PAYLOAD, &[b'0' + jail]].concat();
                let mut frame = datagram(&lab, from, ipv6, &marked);
                frame[5] = last;
                raw[from].send(&frame);
                let received = raw[1 - from].receive_one(|frame| frame.ends_with(&marked));
                let received =
                    received.unwrap_or_else(|| panic!("{dut}, jail {jail}, port {from}: nothing came"));
                assert_eq!((judge(&received), received[11]), ((63, true), last), "{dut}, jail {jail}");
            }
        }
    }
}

#[test]
fn transparent_devices_change_nothing() {
    if !can_build_labs() {
        return;
    }
    for dut in ["linux-bridge", "linux-bridge:gro=off", "xdp-xconnect", "calibrated", "delayed"] {
        let lab = start(dut);
        let raw = raw_ports(&lab);
        for (from, ipv6) in [(0, false), (1, true)] {
            let sent = datagram(&lab, from, ipv6, PAYLOAD);
            raw[from].send(&sent);
            let received = raw[1 - from].receive_one(|frame| frame.ends_with(PAYLOAD));
            assert_eq!(received.as_deref(), Some(&sent[..]), "{dut} from port {from}");
        }
    }
}

#[test]
fn the_largest_frame_that_was_asked_for_passes_every_device() {
    if !can_build_labs() {
        return;
    }
    // 9216 bytes with the FCS: 14 of Ethernet, 20 of IPv4, 8 of UDP.
    let mut payload = vec![b'x'; 9216 - 4 - 14 - 20 - 8 - PAYLOAD.len()];
    payload.extend(PAYLOAD);
    for dut in [
        "linux-router",
        "linux-router:jail=on",
        "linux-bridge",
        "xdp-router",
        "xdp-xconnect",
        "calibrated",
        "delayed",
    ] {
        let lab = start_with_frames_of(9216, dut);
        let raw = raw_ports(&lab);
        raw[0].send(&datagram(&lab, 0, false, &payload));
        let received = raw[1].receive_one(|frame| frame.ends_with(PAYLOAD));
        assert_eq!(received.map(|frame| frame.len()), Some(9212), "{dut}");
    }
}

#[test]
fn a_lab_is_silent_until_something_is_sent() {
    if !can_build_labs() {
        return;
    }
    for dut in ["linux-router", "linux-router:jail=on", "linux-bridge", "sink", "delayed"] {
        let lab = start(dut);
        let raw = raw_ports(&lab);
        std::thread::sleep(Duration::from_millis(1200));
        for raw in raw {
            assert_eq!(raw.receive(Duration::from_millis(1)), None, "{dut}");
        }
    }
}

#[test]
fn a_sink_counts_and_forwards_nothing() {
    if !can_build_labs() {
        return;
    }
    let lab = start("sink");
    let raw = raw_ports(&lab);
    for _ in 0..100 {
        raw[0].send(&datagram(&lab, 0, false, PAYLOAD));
    }
    let sent = datagram(&lab, 0, false, PAYLOAD).len() as u64 + 4;
    wait_for(|| lab.dut_counters().unwrap().unwrap()[0].frames >= 100);
    let [forth, back] = lab.dut_counters().unwrap().unwrap();
    assert_eq!((forth.frames, forth.bytes, forth.dropped()), (100, 100 * sent, 100));
    assert_eq!(back.frames, 0);
    assert_eq!(raw[1].receive_one(|frame| frame.ends_with(PAYLOAD)), None);
}

#[test]
fn delayed_puts_tags_back_that_the_kernel_takes_out() {
    if !can_build_labs() {
        return;
    }
    let lab = start("delayed:delay=1ms");
    let raw = raw_ports(&lab);
    let plain = datagram(&lab, 0, false, PAYLOAD);
    // A service tag with a customer tag in it (802.1ad). The port's socket is not told the outer
    // one; had the device lost that, it would not be told the inner one.
    let (service, customer) = ([0x88, 0xa8, 0, 7], [0x81, 0, 0x20, 5]);
    let tagged = |tags: &[u8]| [&plain[..12], tags, &plain[12..]].concat();
    let sent = tagged(&[service, customer].concat());
    raw[0].send(&sent);
    let received = raw[1].receive_one(|frame| frame.ends_with(PAYLOAD));
    assert_eq!(received, Some(tagged(&customer)));
    wait_for(|| lab.dut_counters().unwrap().unwrap()[0].forwarded > 0);
    let [forth, _] = lab.dut_counters().unwrap().unwrap();
    assert_eq!((forth.frames, forth.bytes, forth.dropped()), (1, sent.len() as u64 + 4, 0));
}

#[test]
fn delayed_reorders_and_duplicates_exactly_what_it_says() {
    if !can_build_labs() {
        return;
    }
    let (mut expected, mut twice): (Vec<u8>, Vec<u8>) = ((1..=100).collect(), vec![25, 50, 75, 100]);
    (10..100).step_by(10).for_each(|number| expected.swap(number - 1, number));
    while let Some(number) = twice.pop() {
        let place = expected.iter().position(|other| *other == number).unwrap();
        expected.insert(place, number);
    }
    let attempt = || {
        let lab = start("delayed:reorder=10%,duplicate=4%");
        let raw = raw_ports(&lab);
        let frame = |number: u8| datagram(&lab, 1, true, &[PAYLOAD, &[number]].concat());
        let mut received: Vec<u8> = Vec::new();
        for number in 1..=100 {
            raw[1].send(&frame(number));
            while let Some(frame) = raw[0].receive(Duration::from_millis(2)) {
                received.extend(frame.last());
            }
        }
        // The hundredth waits for another frame, which never comes.
        while let Some(frame) = raw[0].receive(Duration::from_millis(300)) {
            received.extend(frame.last());
        }
        let [_, back] = lab.dut_counters().unwrap().unwrap();
        // Where the next frame does not come soon, on a busy machine, others wait without success too.
        assert!(back.duplicated == back.frames / 25 && back.reordered <= 9, "{back:?}");
        let counted = (back.frames, back.forwarded, back.reordered, back.duplicated);
        let is_right = received == expected && counted == (100, 100, 9, 4);
        is_right.then_some(()).ok_or(format!("{received:?} {back:?}"))
    };
    once_of_five(attempt);
}

/// Fails if what a busy machine may spoil is wrong five times.
fn once_of_five(attempt: impl Fn() -> Result<(), String>) {
    let failures: Vec<String> = (0..5).map_while(|_| attempt().err()).collect();
    assert!(failures.len() < 5, "{failures:?}");
}

#[test]
fn delayed_ends_with_its_lab() {
    if !can_build_labs() {
        return;
    }
    let threads = || -> Vec<PathBuf> {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path());
        let is_device = |task: &PathBuf| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim_end() == "delayed")
        };
        tasks.filter(is_device).collect()
    };
    once_of_five(|| {
        let before = threads();
        let lab = start("delayed:delay=1s");
        let mut begun = threads();
        begun.retain(|thread| !before.contains(thread));
        assert!(!begun.is_empty());
        RawPort::open(&lab, &lab.ports()[0]).send(&datagram(&lab, 0, false, PAYLOAD));
        wait_for(|| lab.dut_counters().unwrap().unwrap()[0].frames == 1);
        let began = Instant::now();
        drop(lab);
        // Other tests may have begun a device meanwhile.
        assert!(begun.iter().any(|thread| !thread.exists()), "{begun:?}");
        let is_soon = began.elapsed() < Duration::from_millis(900);
        is_soon.then_some(()).ok_or("it waited for the frame that it held".to_owned())
    });
}

#[test]
fn calibrated_loses_exactly_what_it_says() {
    if !can_build_labs() {
        return;
    }
    for (dut, sent, passed) in [
        ("calibrated", 1000, 1000),
        ("calibrated:drop-every=10", 1000, 900),
        ("calibrated:stall-after=123", 1000, 123),
        ("calibrated:drop-every=2,stall-after=100", 1000, 100),
        ("calibrated:drop-every=1", 50, 0),
    ] {
        let lab = start(dut);
        let raw = raw_ports(&lab);
        let frame = datagram(&lab, 0, false, PAYLOAD);
        let mut received = 0;
        // In portions that fit the veth's ring, whose losses would not be the device's.
        for portion in 1..=sent / 50 {
            (0..50).for_each(|_| raw[0].send(&frame));
            wait_for(|| lab.dut_counters().unwrap().unwrap()[0].frames == portion * 50);
            while raw[1].receive(Duration::from_millis(1)).is_some() {
                received += 1;
            }
        }
        // Nothing more comes, unless the machine has kept it so far.
        while raw[1].receive(Duration::from_millis(if received < passed { 5_000 } else { 50 })).is_some() {
            received += 1;
        }
        let [forth, back] = lab.dut_counters().unwrap().unwrap();
        assert_eq!((forth.frames, forth.forwarded, received), (sent, passed, passed), "{dut}");
        assert_eq!(back.frames, 0, "{dut}");
    }
}

#[test]
fn calibrated_forwards_its_rate_after_a_burst() {
    if !can_build_labs() {
        return;
    }
    let attempt = || {
        let lab = start("calibrated:rate=2kpps,burst=200");
        let raw = RawPort::open(&lab, &lab.ports()[0]);
        let frame = datagram(&lab, 0, false, PAYLOAD);
        let began = Instant::now();
        // About twice its rate, for half a second.
        for index in 0..2000_u32 {
            while began.elapsed() < Duration::from_micros(250) * index {
                std::hint::spin_loop();
            }
            raw.send(&frame);
        }
        let elapsed = began.elapsed().as_secs_f64();
        wait_for(|| lab.dut_counters().unwrap().unwrap()[0].frames == 2000);
        let [forth, _] = lab.dut_counters().unwrap().unwrap();
        // The burst, and then the rate: never more.
        let most = 200.0 + 2000.0 * began.elapsed().as_secs_f64();
        assert!(forth.forwarded as f64 <= 1.01 * most, "{forth:?}, at most {most}");
        // The burst also covers a device that is late by up to 0.1 s; a machine may hold it up for longer.
        let expected = 200.0 + 2000.0 * elapsed;
        let is_near = (forth.forwarded as f64 - expected).abs() < 0.05 * expected;
        is_near.then_some(()).ok_or(format!("{forth:?}, expected {expected}"))
    };
    once_of_five(attempt);
}

/// Waits until the device's core has caught up.
fn wait_for(done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !done() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}
