//! Captures as profiles: every frame against an independent parser.

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use proptest::prelude::*;
use traffic::capture::Writer;
use traffic::{Directions, Endpoint, Endpoints, FrameTable, IpVersion, Profile};
use wire::MacAddress;
use wire::signature::Signature;

const ENDPOINTS: Endpoints = Endpoints([
    Endpoint { source: MacAddress([2, 0, 0, 0, 0, 1]), destination: MacAddress([2, 0, 0, 0, 0, 2]) },
    Endpoint { source: MacAddress([2, 0, 0, 0, 0, 3]), destination: MacAddress([2, 0, 0, 0, 0, 4]) },
]);
const SIGNATURE: Signature =
    Signature { stream: 0, direction: 0, worker: 3, interval: 77, sequence: 0x0102_0304, departure: 987_654 };

fn file(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    (0..).zip(frames).for_each(|(number, frame)| writer.frame(number * 10_000, frame).unwrap());
    writer.finish().unwrap()
}

fn profile(frames: &[Vec<u8>]) -> Profile {
    Profile::from_capture("a/b/some.pcap", &file(frames)).unwrap()
}

/// A captured frame of these layers and this much payload.
fn captured(v6: bool, transport: u8, tags: u8, options: bool, payload: usize) -> Vec<u8> {
    let payload = vec![0x5a; payload];
    let link = PacketBuilder::ethernet2([9; 6], [8; 6]);
    let mut frame = Vec::new();
    let end = match (tags, v6) {
        (0, false) => link.ipv4([16, 0, 0, 1], [48, 0, 0, 7], 61),
        (0, true) => link.ipv6([0x16; 16], [0x48; 16], 61),
        (_, false) => link.single_vlan(100.try_into().unwrap()).ipv4([16, 0, 0, 1], [48, 0, 0, 7], 61),
        (_, true) => link.single_vlan(100.try_into().unwrap()).ipv6([0x16; 16], [0x48; 16], 61),
    };
    match transport {
        0 => end.udp(1025, 53).write(&mut frame, &payload).unwrap(),
        1 if options => {
            let end = end.tcp(1025, 443, 7, 1000).options_raw(&[1; 12]).unwrap();
            end.write(&mut frame, &payload).unwrap();
        }
        1 => end.tcp(1025, 443, 7, 1000).write(&mut frame, &payload).unwrap(),
        _ if v6 => end.icmpv6_echo_request(1, 2).write(&mut frame, &payload).unwrap(),
        _ => end.icmpv4_echo_request(1, 2).write(&mut frame, &payload).unwrap(),
    }
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Parses `frame` with etherparse and verifies lengths and every checksum in it.
fn verify(frame: &[u8], captured: &[u8], reverse: bool) {
    let [packet, original] = [frame, captured].map(|frame| SlicedPacket::from_ethernet(frame).unwrap());
    assert_eq!(packet.vlan_ids(), original.vlan_ids());
    let order = |(a, b): ([u8; 16], [u8; 16])| if reverse { (b, a) } else { (a, b) };
    let wide = |bytes: [u8; 4]| u128::from(u32::from_be_bytes(bytes)).to_be_bytes();
    let (v4, v6, payload) = match (packet.net.unwrap(), original.net.unwrap()) {
        (NetSlice::Ipv4(ip), NetSlice::Ipv4(was)) => {
            let (header, was) = (ip.header().to_header(), was.header().to_header());
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!((header.time_to_live, header.identification), (61, was.identification));
            let now = (wide(header.source), wide(header.destination));
            assert_eq!(now, order((wide(was.source), wide(was.destination))));
            (Some((header.source, header.destination)), None, ip.payload().payload)
        }
        (NetSlice::Ipv6(ip), NetSlice::Ipv6(was)) => {
            let (header, was) = (ip.header().to_header(), was.header().to_header());
            assert_eq!((header.source, header.destination), order((was.source, was.destination)));
            (None, Some((header.source, header.destination)), ip.payload().payload)
        }
        other => panic!("{other:?}"),
    };
    assert!(frame.ends_with(payload), "no padding");
    match packet.transport.unwrap() {
        TransportSlice::Udp(udp) => {
            assert_eq!(usize::from(udp.length()), payload.len());
            let header = udp.to_header();
            let sum = match (v4, v6) {
                (Some((a, b)), _) => header.calc_checksum_ipv4_raw(a, b, udp.payload()),
                (_, Some((a, b))) => header.calc_checksum_ipv6_raw(a, b, udp.payload()),
                _ => unreachable!(),
            };
            assert_eq!(header.checksum, sum.unwrap());
        }
        TransportSlice::Tcp(tcp) => {
            let header = tcp.to_header();
            let sum = match (v4, v6) {
                (Some((a, b)), _) => header.calc_checksum_ipv4_raw(a, b, tcp.payload()),
                (_, Some((a, b))) => header.calc_checksum_ipv6_raw(a, b, tcp.payload()),
                _ => unreachable!(),
            };
            assert_eq!(header.checksum, sum.unwrap());
            let TransportSlice::Tcp(was) = original.transport.unwrap() else { unreachable!() };
            assert_eq!((tcp.sequence_number(), tcp.options()), (was.sequence_number(), was.options()));
        }
        TransportSlice::Icmpv4(icmp) => {
            let header = icmp.header();
            assert_eq!(header.checksum, header.icmp_type.calc_checksum(icmp.payload()));
        }
        TransportSlice::Icmpv6(icmp) => {
            let (a, b) = v6.unwrap();
            assert!(icmp.is_checksum_valid(a, b));
        }
        other => panic!("{other:?}"),
    }
}

fn check(table: &FrameTable, captured: &[Vec<u8>], lanes: usize) {
    assert_eq!(table.rows.len(), captured.len() * lanes);
    assert!(table.header_length <= FrameTable::MAX_HEADER && table.header_length.is_multiple_of(8));
    for (index, row) in table.rows.iter().enumerate() {
        assert!(
            table.header_length <= usize::from(row.length).next_multiple_of(8),
            "an engine copies it all"
        );
        let frame = table.finished_frame(index, &SIGNATURE);
        assert_eq!(Signature::parse(&frame), Some(SIGNATURE));
        let Endpoint { source, destination } = ENDPOINTS.0[usize::from(row.direction)];
        assert_eq!((&frame[..6], &frame[6..12]), (&destination.0[..], &source.0[..]));
        verify(&frame, &captured[index / lanes], row.direction == 1);
    }
}

proptest! {
    #[test]
    fn frames_keep_their_headers_and_are_right(
        kinds in prop::collection::vec((any::<bool>(), 0u8..3, 0u8..2, any::<bool>(), 0usize..1400), 1..8),
        both: bool,
    ) {
        let frames: Vec<Vec<u8>> =
            kinds.into_iter().map(|(v6, kind, tags, options, payload)| captured(v6, kind, tags, options, payload)).collect();
        let directions = if both { Directions::Both } else { Directions::Forward };
        check(&profile(&frames).table(&ENDPOINTS, directions), &frames, 1 + usize::from(both));
    }
}

#[test]
fn long_frames_keep_their_length_and_short_ones_are_noted() {
    let frames = [captured(false, 0, 0, false, 100), captured(false, 1, 0, false, 0)];
    let profile = profile(&frames);
    let table = profile.table(&ENDPOINTS, Directions::Forward);
    assert_eq!(table.rows.iter().map(|row| row.length).collect::<Vec<_>>(), [142, 72]);
    assert_eq!(profile.notes().len(), 1, "{:?}", profile.notes());
    assert!(profile.notes()[0].starts_with("1 frames of the capture are longer"), "{:?}", profile.notes());
    assert_eq!((profile.name(), profile.largest_size(), profile.base_pps()), ("some", 146, Some(100_000.0)));
    assert!(profile.uses(IpVersion::V4) && !profile.uses(IpVersion::V6));
}

#[test]
fn what_is_not_ip_is_left_out_and_named() {
    let mut arp = vec![0xff; 12];
    arp.extend([8, 6]);
    arp.resize(60, 0);
    let frames = [arp.clone(), captured(false, 0, 0, false, 20)];
    let profile = profile(&frames);
    assert_eq!(profile.table(&ENDPOINTS, Directions::Forward).rows.len(), 1);
    assert!(profile.notes()[0].contains("1 frames of the capture are not IP"), "{:?}", profile.notes());
    let error = Profile::from_capture("x.pcap", &file(&[arp])).unwrap_err().to_string();
    assert!(error.starts_with("x.pcap: ") && error.contains("not IP"), "{error}");
}

#[test]
fn a_datagram_without_checksum_stays_so() {
    let mut frame = captured(false, 0, 0, false, 30);
    frame[40..42].fill(0);
    let table = profile(&[frame]).table(&ENDPOINTS, Directions::Forward);
    assert_eq!(table.rows[0].checksum, None);
    assert_eq!(table.frame(0)[40..42], [0, 0]);
}

#[test]
fn a_table_of_fewer_rows_is_a_sample_that_says_so() {
    let frames = vec![captured(false, 0, 0, false, 30); 10];
    let table = profile(&frames).table_up_to(&ENDPOINTS, Directions::Both, 7);
    assert_eq!((table.rows.len(), table.period), (6, 20));
    assert!(table.note().unwrap().contains("first 6 of 20"), "{:?}", table.note());
}
