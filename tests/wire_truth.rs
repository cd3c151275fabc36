//! What is on the wire, by tools that are not ours: tcpdump captures what `linerate send` sends,
//! etherparse reads it and verifies every checksum, and each frame is compared byte for byte with
//! what the profile's frame table says.

use std::fs;
use std::net::IpAddr;

use crate::common::capture::Capture;
use crate::common::sites::{PORT_MACS, Site};
use crate::common::{REPOSITORY, eventually, has_namespaces, linerate};
use etherparse::{EtherType, IpNumber, LinkExtSlice, NetSlice, SlicedPacket, TransportSlice, UdpSlice};
use traffic::tunable::Vm;
use traffic::{Directions, Endpoint, Endpoints, Profile, Tunables};
use wire::MacAddress;
use wire::signature::Signature;

/// What an independent reader finds in a frame, checksums verified.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    /// With the FCS, which a capture does not show.
    size: usize,
    vlan: Vec<u16>,
    source: IpAddr,
    destination: IpAddr,
    ttl: u8,
    protocol: IpNumber,
    /// Source and destination; identifier and sequence number of an echo.
    ports: (u16, u16),
    /// UDP may leave its checksum out over IPv4.
    has_checksum: bool,
}

/// Reads `frame`, which was sent from and to `endpoint`.
fn see(frame: &[u8], endpoint: Endpoint) -> Seen {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    assert_eq!(frame[..12], [endpoint.destination.0, endpoint.source.0].concat());
    let tag = |tag: &LinkExtSlice| match tag {
        LinkExtSlice::Vlan(tag) => tag.vlan_identifier().value(),
        other => panic!("{other:?}"),
    };
    let vlan: Vec<u16> = packet.link_exts.iter().map(tag).collect();
    let outer = [EtherType::VLAN_TAGGED_FRAME, EtherType::PROVIDER_BRIDGING];
    for (index, right) in outer.iter().take(vlan.len()).rev().enumerate() {
        assert_eq!(frame[12 + 4 * index..14 + 4 * index], right.0.to_be_bytes(), "tag {index}");
    }
    let headers = 14 + 4 * vlan.len();
    let (source, destination, ttl, protocol, payload) = match packet.net.as_ref().unwrap() {
        NetSlice::Ipv4(ip) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!(usize::from(header.total_len), frame.len() - headers);
            let addresses = (header.source.into(), header.destination.into());
            (addresses.0, addresses.1, header.time_to_live, header.protocol, ip.payload().payload)
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header().to_header();
            assert_eq!(usize::from(header.payload_length), frame.len() - headers - 40);
            let addresses = (header.source.into(), header.destination.into());
            (addresses.0, addresses.1, header.hop_limit, header.next_header, ip.payload().payload)
        }
        NetSlice::Arp(_) => panic!("not IP"),
    };
    let (ports, found, right) = match packet.transport.as_ref().unwrap() {
        TransportSlice::Udp(udp) => {
            assert_eq!(usize::from(udp.length()), payload.len());
            (
                (udp.source_port(), udp.destination_port()),
                udp.checksum(),
                udp_checksum(udp, source, destination),
            )
        }
        TransportSlice::Tcp(tcp) => {
            let right = match (source, destination) {
                (IpAddr::V4(a), IpAddr::V4(b)) => tcp.calc_checksum_ipv4(a.octets(), b.octets()),
                (IpAddr::V6(a), IpAddr::V6(b)) => tcp.calc_checksum_ipv6(a.octets(), b.octets()),
                mixed => panic!("{mixed:?}"),
            };
            ((tcp.source_port(), tcp.destination_port()), tcp.checksum(), right.unwrap())
        }
        TransportSlice::Icmpv4(icmp) => {
            let right = icmp.icmp_type().calc_checksum(icmp.payload());
            (echo(payload), icmp.checksum(), right)
        }
        TransportSlice::Icmpv6(icmp) => {
            let (IpAddr::V6(a), IpAddr::V6(b)) = (source, destination) else { panic!("ICMPv6 over IPv4") };
            let right = icmp.icmp_type().calc_checksum(a.octets(), b.octets(), icmp.payload()).unwrap();
            (echo(payload), icmp.checksum(), right)
        }
        TransportSlice::Igmp(_) => panic!("IGMP"),
    };
    // Zero in UDP over IPv4 says that there is none.
    let has_checksum = found != 0 || protocol != IpNumber::UDP || source.is_ipv6();
    if has_checksum {
        assert_eq!(found, right, "the checksum is wrong: {frame:02x?}");
    }
    Seen { size: frame.len() + 4, vlan, source, destination, ttl, protocol, ports, has_checksum }
}

fn udp_checksum(udp: &UdpSlice, source: IpAddr, destination: IpAddr) -> u16 {
    let header = udp.to_header();
    let right = match (source, destination) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            header.calc_checksum_ipv4_raw(a.octets(), b.octets(), udp.payload())
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            header.calc_checksum_ipv6_raw(a.octets(), b.octets(), udp.payload())
        }
        mixed => panic!("{mixed:?}"),
    };
    right.unwrap()
}

/// Identifier and sequence number of an ICMP echo.
fn echo(icmp: &[u8]) -> (u16, u16) {
    let number = |at: usize| u16::from_be_bytes([icmp[at], icmp[at + 1]]);
    (number(4), number(6))
}

/// Sends about `frames` frames of what `flags` say and captures them at the other end of `eth1`, with
/// [`Directions::Both`] at that of `eth2`: in the order of departure, none missing, each as the
/// frame table of `profile` says. Nothing where the machine is not at rest.
fn on_the_wire(flags: &str, profile: &Profile, directions: Directions, frames: usize) -> Option<Vec<Seen>> {
    // Without gateways, frames go to the other port.
    let [zero, one] = PORT_MACS.map(MacAddress);
    let endpoints =
        Endpoints([Endpoint { source: zero, destination: one }, Endpoint { source: one, destination: zero }]);
    let table = profile.table(&endpoints, directions);
    let (flag, direction, end) = match directions {
        Directions::Forward => ("", 0, "far1"),
        Directions::Both => ("--bidirectional", 1, "far2"),
    };
    let rows: Vec<usize> =
        (0..table.rows.len()).filter(|row| table.rows[*row].direction == direction).collect();
    let site = Site::cables();
    eventually(|| {
        let capture = Capture::start(&site.far, end);
        let milliseconds = frames / 2;
        let line =
            format!("send --ports eth1,eth2 --rate 2kpps --duration {milliseconds}ms --json {flag} {flags}");
        let sent = linerate(&line).inside(&site.tester).run().well().json()["offered"].as_u64().unwrap();
        let sent = sent as usize / table.directions();
        let captured = capture.frames();
        if captured.len().abs_diff(sent) >= table.directions() || captured.len() < frames * 9 / 10 {
            return Err(format!("{} frames captured, {sent} sent, {frames} expected", captured.len()));
        }
        let mut sequences = vec![0; 256];
        for (number, (frame, signature)) in captured.iter().enumerate() {
            let row = rows[number % rows.len()];
            let stream = table.rows[row].stream;
            let sequence = &mut sequences[usize::from(stream)];
            let right = Signature { stream, direction, worker: 0, sequence: *sequence, ..*signature };
            assert_eq!(*signature, right, "frame {number}");
            same(frame, &table.finished_frame(row, signature), number);
            *sequence += 1;
        }
        let departures = captured.iter().map(|(_, signature)| signature.departure);
        assert!(departures.is_sorted(), "frames left out of order");
        Ok(captured.iter().map(|(frame, _)| see(frame, endpoints.0[usize::from(direction)])).collect())
    })
}

/// Compares frames byte for byte.
fn same(found: &[u8], right: &[u8], number: usize) {
    assert_eq!(found.len(), right.len(), "frame {number}");
    if let Some(at) = (0..right.len()).find(|at| found[*at] != right[*at]) {
        let around = at..right.len().min(at + 20);
        let (found, right) = (&found[around.clone()], &right[around]);
        panic!("frame {number} differs from offset {at}: {found:02x?}, should be {right:02x?}");
    }
}

/// The same of the built-in profile `name` with `tunables`.
fn builtin(name: &str, tunables: &[(&str, &str)], frames: usize) -> Option<Vec<Seen>> {
    let value = |key: &str| tunables.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
    let applied = Tunables {
        size: value("size").map(|text| text.parse().unwrap()),
        vm: value("vm").map(|text| text.parse().unwrap()),
        ip: value("ip").map(|text| text.parse().unwrap()),
        vlan: value("vlan").map(|text| text.parse().unwrap()),
    };
    let flags: Vec<String> = tunables.iter().map(|(key, value)| format!("--{key} {value}")).collect();
    let profile = Profile::builtin(name, &applied).unwrap();
    on_the_wire(&format!("--profile {name} {}", flags.join(" ")), &profile, Directions::Forward, frames)
}

/// The same of a profile in TOML.
fn document(text: &str, frames: usize) -> Option<Vec<Seen>> {
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap();
    let profile = Profile::from_toml(path, text).unwrap();
    on_the_wire(&format!("--profile {path}"), &profile, Directions::Forward, frames)
}

/// The address of host number `host` in a network.
fn host(network: &str, host: u16) -> IpAddr {
    match network.parse().unwrap() {
        IpAddr::V4(first) => IpAddr::V4((first.to_bits() + u32::from(host)).into()),
        IpAddr::V6(first) => IpAddr::V6((first.to_bits() + u128::from(host)).into()),
    }
}

#[test]
fn bench_var2_of_64_bytes_steps_through_251_pairs_of_hosts() {
    if !has_namespaces() {
        return;
    }
    let Some(seen) = builtin("bench", &[("size", "64"), ("vm", "var2")], 600) else { return };
    for (number, frame) in seen.iter().enumerate() {
        let step = 4 + (number % 251) as u16;
        let right = Seen {
            size: 64,
            vlan: vec![],
            source: host("16.0.0.0", step),
            destination: host("48.0.0.0", step),
            ttl: frame.ttl,
            protocol: IpNumber::UDP,
            ports: (1025, 12),
            has_checksum: false, // as in TRex's bench.py
        };
        assert_eq!(*frame, right, "frame {number}");
    }
}

#[test]
fn the_reverse_direction_swaps_sources_and_destinations() {
    if !has_namespaces() {
        return;
    }
    let profile = Profile::builtin("bench", &Tunables { vm: Some(Vm::Var1), ..Tunables::default() }).unwrap();
    let Some(seen) = on_the_wire("--flows var1", &profile, Directions::Both, 300) else { return };
    for (number, frame) in seen.iter().enumerate() {
        let step = 4 + (number % 251) as u16;
        assert_eq!(
            (frame.source, frame.destination),
            (host("48.0.0.0", step), host("16.0.0.0", 4)),
            "frame {number}"
        );
        assert_eq!((frame.ports, frame.size), ((1025, 12), 64));
    }
}

#[test]
fn bench_imix_has_its_three_sizes_28_to_16_to_4() {
    if !has_namespaces() {
        return;
    }
    let Some(seen) = builtin("bench", &[("size", "imix"), ("vm", "var1")], 960) else { return };
    for round in seen.chunks_exact(48) {
        let of = |size: usize| round.iter().filter(|frame| frame.size == size).count();
        assert_eq!((of(68), of(590), of(1514)), (28, 16, 4));
    }
    assert!(seen.iter().all(|frame| frame.destination == host("48.0.0.0", 4)));
}

#[test]
fn ipv6_has_a_udp_checksum_and_it_is_right() {
    if !has_namespaces() {
        return;
    }
    for (size, sizes) in [("84", vec![84]), ("85", vec![85]), ("imix", vec![84, 590, 1514])] {
        let Some(seen) = builtin("bench", &[("size", size), ("vm", "var2"), ("ip", "6")], 300) else {
            return;
        };
        let right = |frame: &Seen| {
            frame.has_checksum && frame.protocol == IpNumber::UDP && sizes.contains(&frame.size)
        };
        assert!(seen.iter().all(right), "{size}");
        assert_eq!((seen[0].source, seen[0].ttl), (host("2001:2:0:16::", 4), 64));
        assert_eq!(seen[0].destination, host("2001:2:0:48::", 4));
    }
}

#[test]
fn tags_are_outer_first() {
    if !has_namespaces() {
        return;
    }
    for (tags, right) in [("100", vec![100]), ("200,100", vec![200, 100])] {
        for ip in ["4", "6"] {
            let Some(seen) = builtin("bench", &[("size", "128"), ("vlan", tags), ("ip", ip)], 100) else {
                return;
            };
            assert!(seen.iter().all(|frame| frame.vlan == right && frame.size == 128), "{tags} {ip}");
        }
    }
}

#[test]
fn tuples_vary_the_port_after_each_round_of_hosts() {
    if !has_namespaces() {
        return;
    }
    let Some(seen) = builtin("bench", &[("vm", "tuple")], 600) else { return };
    for (number, frame) in seen.iter().enumerate() {
        let (step, round) = ((number % 251) as u16, (number / 251) as u16);
        assert_eq!((frame.source, frame.ports.0), (host("16.0.0.4", step), 1234 + round), "frame {number}");
    }
}

#[test]
fn the_profiles_of_one_flow_and_of_imix_have_checksums() {
    if !has_namespaces() {
        return;
    }
    let Some(one) = builtin("udp_1pkt_simple", &[], 100) else { return };
    let right = |frame: &Seen| {
        (frame.size, frame.source, frame.ports) == (64, host("16.0.0.0", 1), (1025, 12)) && frame.has_checksum
    };
    assert!(one.iter().all(right), "{:?}", one[0]);
    let Some(imix) = builtin("imix", &[], 480) else { return };
    assert!(imix.iter().all(|frame| frame.has_checksum && [64, 594, 1518].contains(&frame.size)));
}

#[test]
fn own_profiles_with_tcp_and_icmp_have_right_checksums() {
    if !has_namespaces() {
        return;
    }
    let text = r#"
        name = "own"
        [[stream]]
        name = "syn"
        weight = 3
        size = 93
        [stream.ipv4]
        source = { increment = ["16.0.0.1", "16.0.0.9"] }
        destination = "48.0.0.1"
        [stream.tcp]
        source = { random = [1024, 65535], seed = 1 }
        destination = 443
        sequence = { random = [0, 4294967295], seed = 2 }
        flags = ["syn"]

        [[stream]]
        name = "tcp over ipv6"
        weight = 2
        size = 1001
        vlan = [200, 100]
        [stream.ipv6]
        source = "2001:2:0:16::1"
        destination = { list = ["2001:2:0:48::1", "2001:2:0:48::ffff"] }
        [stream.tcp]
        source = 1
        destination = 65535

        [[stream]]
        name = "ping"
        size = { list = [99, 100] }
        [stream.ipv4]
        source = "16.0.0.1"
        destination = "48.0.0.1"
        [stream.icmp]
        identifier = 7
        sequence = { increment = [0, 65535] }

        [[stream]]
        name = "ping over ipv6"
        size = 101
        vlan = 5
        [stream.ipv6]
        source = "2001:2:0:16::1"
        destination = "2001:2:0:48::1"
        [stream.icmp]
        identifier = 8
        sequence = { increment = [0, 65535] }
    "#;
    let Some(seen) = document(text, 700) else { return };
    let of = |protocol: IpNumber, v6: bool| {
        seen.iter().filter(move |frame| frame.protocol == protocol && frame.source.is_ipv6() == v6)
    };
    // Three, two, one and one of seven frames.
    assert!(of(IpNumber::TCP, false).count().abs_diff(seen.len() * 3 / 7) <= 3);
    assert!(of(IpNumber::TCP, true).count().abs_diff(seen.len() * 2 / 7) <= 3);
    assert!(of(IpNumber::TCP, false).all(|frame| frame.size == 93 && frame.ports.1 == 443));
    assert!(of(IpNumber::TCP, true).all(|frame| frame.vlan == [200, 100] && frame.ports == (1, 65535)));
    for (number, frame) in of(IpNumber::ICMP, false).enumerate() {
        assert_eq!((frame.ports, frame.size), ((7, number as u16), 99 + number % 2));
    }
    for (number, frame) in of(IpNumber::IPV6_ICMP, true).enumerate() {
        assert_eq!((frame.ports, &frame.vlan[..]), ((8, number as u16), &[5][..]));
    }
}

#[test]
fn the_smallest_frames_beside_long_headers_leave() {
    if !has_namespaces() {
        return;
    }
    // 78 bytes of the longer headers, copied in words of 8, end at 80; the shorter frames at 77.
    let text = r#"
        [[stream]]
        name = "long headers"
        size = 500
        vlan = 100
        [stream.ipv6]
        source = "2001:2:0:16::1"
        destination = "2001:2:0:48::1"
        [stream.tcp]
        [[stream]]
        name = "short frames"
        size = 81
        [stream.ipv4]
        source = "16.0.0.1"
        destination = "48.0.0.1"
        [stream.udp]
    "#;
    let Some(seen) = document(text, 100) else { return };
    assert!(seen.iter().filter(|frame| frame.size == 81).count().abs_diff(seen.len() / 2) <= 1);
}

#[test]
fn the_shipped_profiles_are_on_the_wire_as_they_say() {
    if !has_namespaces() {
        return;
    }
    for file in ["mixed", "syn-flood", "million-flows", "bursts"] {
        let text = fs::read_to_string(format!("{REPOSITORY}/profiles/{file}.toml")).unwrap();
        let Some(seen) = document(&text, 500) else { return };
        assert!(!seen.is_empty(), "{file}");
    }
}
