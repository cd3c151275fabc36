//! Frames of arbitrary profiles against an independent parser.

use etherparse::{EtherType, LinkExtSlice, NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;
use traffic::field::Field;
use traffic::stream::{Ethernet, Icmp, Ipv4, Ipv6, Network, Stream, Tcp, Transport, Udp, Vlan};
use traffic::table::FrameTable;
use traffic::{Directions, Endpoint, Endpoints, Profile, finish};
use wire::MacAddress;
use wire::signature::Signature;

const ENDPOINTS: Endpoints = Endpoints([
    Endpoint { source: MacAddress([2, 0, 0, 0, 0, 1]), destination: MacAddress([2, 0, 0, 0, 0, 2]) },
    Endpoint { source: MacAddress([2, 0, 0, 0, 0, 3]), destination: MacAddress([2, 0, 0, 0, 0, 4]) },
]);

/// A field over numbers of `bits` bits.
fn field(bits: u32) -> impl Strategy<Value = Field> {
    let max = u128::MAX >> (128 - bits);
    let number = move || 0..=max;
    prop_oneof![
        number().prop_map(Field::fixed),
        (number(), number(), 1..=max)
            .prop_map(|(a, b, step)| Field::increment(a.min(b), a.max(b), step).unwrap()),
        (number(), number(), 1..=max)
            .prop_map(|(a, b, step)| Field::decrement(a.max(b), a.min(b), step).unwrap()),
        (number(), number(), any::<u64>()).prop_map(|(a, b, seed)| Field::random(
            a.min(b),
            a.max(b),
            seed,
            None
        )
        .unwrap()),
        prop::collection::vec(number(), 1..9).prop_map(|values| Field::list(values).unwrap()),
    ]
}

fn network() -> impl Strategy<Value = Network> {
    let v4 = (field(32), field(32), field(8), field(8), field(16)).prop_map(
        |(source, destination, tos, ttl, identification)| {
            Network::V4(Ipv4 { source, destination, tos, ttl, identification })
        },
    );
    let v6 = (field(128), field(128), field(8), field(8), field(20)).prop_map(
        |(source, destination, traffic_class, hop_limit, flow_label)| {
            Network::V6(Ipv6 { source, destination, traffic_class, hop_limit, flow_label })
        },
    );
    prop_oneof![v4, v6]
}

fn transport() -> impl Strategy<Value = Transport> {
    let udp = (field(16), field(16), any::<bool>())
        .prop_map(|(source, destination, checksum)| Transport::Udp(Udp { source, destination, checksum }));
    let tcp = (field(16), field(16), field(32), field(32), field(16), any::<u8>()).prop_map(
        |(source, destination, sequence, acknowledgment, window, flags)| {
            Transport::Tcp(Box::new(Tcp { source, destination, sequence, acknowledgment, window, flags }))
        },
    );
    let icmp = (field(16), field(16))
        .prop_map(|(identifier, sequence)| Transport::Icmp(Icmp { identifier, sequence }));
    prop_oneof![udp, tcp, icmp]
}

prop_compose! {
    /// A possible stream of any layers; sizes reach from the smallest up to 9,216.
    fn stream()(
        network in network(),
        transport in transport(),
        tags in prop::collection::vec((0u16..4095, 0u8..8), 0..3),
        weight in 1u64..6,
        (extra, spread) in (0u16..2000, prop_oneof![Just(0u16), 0u16..7000]),
        seed: u64,
    ) -> Stream {
        let transport = match (&network, transport) {
            (Network::V6(_), Transport::Udp(udp)) => Transport::Udp(Udp { checksum: true, ..udp }),
            (_, transport) => transport,
        };
        let vlan = tags.into_iter().map(|(id, priority)| Vlan {
            id: Field::fixed(id.into()),
            priority: Field::fixed(priority.into()),
        }).collect();
        let stream = Stream {
            name: "any".to_owned(), weight, size: Field::fixed(64), ethernet: Ethernet::default(),
            vlan, pppoe: None, network, transport,
        };
        // 93 bytes hold any stream's headers, so that profiles of several are possible too.
        let smallest = stream.smallest_size().max(93) + extra;
        let size = Field::random(smallest.into(), u128::from((smallest + spread).min(9216)), seed, None).unwrap();
        Stream { size, ..stream }
    }
}

fn signature() -> impl Strategy<Value = Signature> {
    (any::<u8>(), 0u8..2, 0u8..128, any::<u16>(), any::<u32>(), 0u64..1 << 48).prop_map(
        |(stream, direction, worker, interval, sequence, departure)| Signature {
            stream,
            direction,
            worker,
            interval,
            sequence,
            departure,
        },
    )
}

fn profile(streams: Vec<Stream>, fill: u8) -> Profile {
    let reverse = streams.iter().cloned().map(Stream::reversed).collect();
    Profile::new("any", [streams, reverse]).unwrap().with_fill(fill)
}

/// Parses `frame` with etherparse and verifies every checksum in it.
fn verify(frame: &[u8], stream: &Stream) {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let tags: Vec<u16> = packet
        .link_exts
        .iter()
        .map(|tag| match tag {
            LinkExtSlice::Vlan(tag) => tag.vlan_identifier().value(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        tags.iter().map(|id| u128::from(*id)).collect::<Vec<_>>(),
        stream.vlan.iter().map(|tag| tag.id.at(0)).collect::<Vec<_>>()
    );
    if stream.vlan.len() == 2 {
        assert_eq!(frame[12..14], EtherType::PROVIDER_BRIDGING.0.to_be_bytes());
    }
    let (payload, pseudo) = match packet.net.unwrap() {
        NetSlice::Ipv4(ip) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!(usize::from(header.total_len), frame.len() - 14 - 4 * tags.len());
            (ip.payload().payload, Ok((header.source, header.destination)))
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header().to_header();
            assert_eq!(usize::from(header.payload_length), frame.len() - 54 - 4 * tags.len());
            (ip.payload().payload, Err((header.source, header.destination)))
        }
        NetSlice::Arp(_) => panic!("not IP"),
    };
    match packet.transport.unwrap() {
        TransportSlice::Udp(udp) => {
            assert_eq!(usize::from(udp.length()), payload.len());
            let right = match pseudo {
                Ok((source, destination)) => {
                    udp.to_header().calc_checksum_ipv4_raw(source, destination, udp.payload())
                }
                Err((source, destination)) => {
                    udp.to_header().calc_checksum_ipv6_raw(source, destination, udp.payload())
                }
            };
            let wanted = matches!(&stream.transport, Transport::Udp(udp) if udp.checksum);
            assert_eq!(udp.checksum(), if wanted { right.unwrap() } else { 0 });
        }
        TransportSlice::Tcp(tcp) => {
            let right = match pseudo {
                Ok((source, destination)) => tcp.calc_checksum_ipv4(source, destination),
                Err((source, destination)) => tcp.calc_checksum_ipv6(source, destination),
            };
            assert_eq!(tcp.checksum(), right.unwrap());
        }
        TransportSlice::Icmpv4(icmp) => {
            assert_eq!(icmp.checksum(), icmp.icmp_type().calc_checksum(icmp.payload()));
        }
        TransportSlice::Icmpv6(icmp) => {
            let (source, destination) = pseudo.unwrap_err();
            assert!(icmp.is_checksum_valid(source, destination));
        }
        TransportSlice::Igmp(_) => panic!("no profile sends IGMP"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn finished_frames_parse_and_all_checksums_verify(
        streams in prop::collection::vec(stream(), 1..4),
        fill: u8,
        signatures in prop::collection::vec(signature(), 8),
        start: prop::sample::Index,
    ) {
        let profile = profile(streams, fill);
        let table = profile.table_up_to(&ENDPOINTS, Directions::Both, 200);
        let start = start.index(table.rows.len());
        for (signature, index) in signatures.iter().zip((start..table.rows.len()).chain(0..)) {
            let index = index % table.rows.len();
            let row = table.rows[index];
            let stream = &profile.streams()[usize::from(row.direction)][usize::from(row.stream)];
            let frame = table.finished_frame(index, signature);
            prop_assert_eq!(frame.len(), usize::from(row.length));
            verify(&frame, stream);
            prop_assert_eq!(Signature::parse(&frame), Some(*signature));
            // Fill stands between headers and signature, and nothing else.
            let payload = &frame[stream.header_length()..frame.len() - 18];
            prop_assert!(payload.iter().all(|byte| *byte == fill));
            // A frame with a signature of zeros already has the right checksum.
            verify(&table.frame(index), stream);
        }
    }

    #[test]
    fn tables_keep_their_promises(streams in prop::collection::vec(stream(), 1..6), both: bool) {
        let profile = profile(streams, b'x');
        let directions = if both { Directions::Both } else { Directions::Forward };
        let table = profile.table_up_to(&ENDPOINTS, directions, 500);
        let lanes = if both { 2 } else { 1 };
        prop_assert_eq!(table.directions(), lanes);
        prop_assert_eq!(table.headers.len(), table.rows.len() * table.header_length);
        prop_assert!(table.header_length.is_multiple_of(8) && table.header_length <= FrameTable::MAX_HEADER);
        let shortest = table.rows.iter().map(|row| usize::from(row.length)).min().unwrap();
        prop_assert!(table.header_length <= shortest.next_multiple_of(8));
        prop_assert!(!table.rows.is_empty() && table.rows.len() <= 500);
        prop_assert!(table.rows.len() as u64 <= table.period);
        prop_assert_eq!(table.is_complete(), table.note().is_none());
        // Whole cycles of all weights: each stream has exactly its share, in each direction.
        let total = profile.total_weight();
        for direction in 0..lanes as u8 {
            for (index, stream) in profile.streams()[0].iter().enumerate() {
                let sent = table.rows.iter().filter(|row| row.direction == direction && usize::from(row.stream) == index);
                prop_assert_eq!(sent.count() as u64 * total * lanes as u64, stream.weight * table.rows.len() as u64);
            }
        }
    }

    #[test]
    fn no_bytes_make_finishing_panic(mut frame in prop::collection::vec(any::<u8>(), 0..80), signature in signature(), offset: u16) {
        let checksum = traffic::table::Checksum { offset, swapped: false, zero_is_ffff: true };
        let row = traffic::Row { length: 60, stream: 0, direction: 0, checksum: Some(checksum) };
        finish(&mut frame, &row, &signature);
    }
}

/// The first frame that `text` sends, finished.
fn first_of(text: &str, signature: &Signature) -> (Vec<u8>, usize) {
    let profile = Profile::from_toml("tunnel.toml", text).unwrap();
    let table = profile.table(&ENDPOINTS, Directions::Forward);
    assert!(table.rows.iter().all(|row| row.stream == 0));
    (table.finished_frame(0, signature), table.flows(0) as usize)
}

#[test]
fn what_is_in_a_tunnel_is_a_packet_with_right_lengths() {
    let signature = Signature { stream: 0, direction: 0, worker: 0, interval: 1, sequence: 2, departure: 3 };
    for (network, ends) in
        [("ipv4", ["16.0.0.1", "48.0.0.1"]), ("ipv6", ["2001:2:0:16::1", "2001:2:0:48::1"])]
    {
        let [source, destination] = ends;
        let layers = format!("[stream.{network}]\nsource = \"{source}\"\ndestination = \"{destination}\"\n");
        let (frame, flows) = first_of(
            &format!(
                "[[stream]]\nsize = 200\n{layers}[stream.gre]\nsource = {{ increment = [\"10.0.0.1\", \"10.0.0.9\"] }}"
            ),
            &signature,
        );
        assert_eq!((frame.len(), flows), (196, 1), "what is in a tunnel is no flow to a router");
        assert_eq!(Signature::parse(&frame), Some(signature));
        let packet = SlicedPacket::from_ethernet(&frame).unwrap();
        let payload = packet.net.unwrap().ip_payload_ref().unwrap().payload.to_vec();
        assert_eq!(payload[..4], [0, 0, 8, 0]);
        let inner = SlicedPacket::from_ip(&payload[4..]).unwrap();
        let NetSlice::Ipv4(ip) = inner.net.as_ref().unwrap() else { panic!("not IPv4") };
        let header = ip.header().to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        assert_eq!((header.source, usize::from(header.total_len)), ([10, 0, 0, 1], payload.len() - 4));
        let Some(TransportSlice::Udp(udp)) = inner.transport else { panic!("not UDP") };
        assert_eq!((udp.checksum(), usize::from(udp.length())), (0, payload.len() - 24));

        let (frame, _) = first_of(
            &format!(
                "[[stream]]\nsize = 90\n{layers}[stream.esp]\nspi = 7\nsequence = {{ increment = [5, 9] }}"
            ),
            &signature,
        );
        let packet = SlicedPacket::from_ethernet(&frame).unwrap();
        let payload = packet.net.unwrap().ip_payload_ref().unwrap().payload.to_vec();
        assert_eq!(payload[..8], [0, 0, 0, 7, 0, 0, 0, 5]);

        let (frame, flows) = first_of(
            &format!("[[stream]]\nsize = 100\nvlan = 5\npppoe = 9\n{layers}[stream.udp]"),
            &signature,
        );
        assert_eq!((frame.len(), flows), (96, 1));
        let session = wire::pppoe::Header::parse(&frame[18..]).unwrap();
        assert_eq!((session.session, usize::from(session.length)), (9, frame.len() - 26));
        let inner = SlicedPacket::from_ip(&frame[26..]).unwrap();
        assert!(matches!(inner.transport, Some(TransportSlice::Udp(_))), "{inner:?}");
    }
}

/// A complete table really is one period: the next frames would be the first ones again.
#[test]
fn a_complete_table_wraps_without_a_seam() {
    let step = |count| Field::increment(1, count, 1).unwrap();
    let stream = |weight, hosts, ports| Stream {
        name: "s".to_owned(),
        weight,
        size: Field::list(vec![64, 80, 96, 112]).unwrap(),
        ethernet: Ethernet::default(),
        vlan: Vec::new(),
        pppoe: None,
        network: Network::V4(Ipv4::new(step(hosts), Field::fixed(9))),
        transport: Transport::Udp(Udp { source: step(ports), destination: Field::fixed(12), checksum: true }),
    };
    let streams = vec![stream(3, 5, 6), stream(2, 7, 2)];
    let table = profile(streams.clone(), 0).table(&ENDPOINTS, Directions::Forward);
    // 60 frames of the first, 3 a cycle, repeat after 20 cycles; 28 of the second, 2 a cycle,
    // after 14: all after 140 cycles of 5.
    assert_eq!((table.period, table.rows.len()), (700, 700));
    let frames: Vec<Vec<u8>> = (0..700).map(|index| table.frame(index)).collect();
    for shorter in (1..700).filter(|length| 700 % length == 0) {
        assert_ne!(frames[..700 - shorter], frames[shorter..], "it repeats after {shorter} already");
    }
}
