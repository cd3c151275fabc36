//! The built-in profiles against what TRex's bundled profiles send.

use std::collections::BTreeSet;

use traffic::builtin::{BUILTINS, TUNABLES};
use traffic::show::Flow;
use traffic::tunable::{Size, Vm};
use traffic::{Directions, Endpoint, Endpoints, FrameTable, IpVersion, Profile, Tunables};
use wire::MacAddress;

/// Ethernet type to the end of the UDP header, with the frame size, captured from the unmodified
/// TRex client v3.08 sending `bench.py -t size=64,vm=var2`; MAC addresses and payload removed.
const TREX_BENCH_64: [u8; 30] = [
    0x08, 0x00, 0x45, 0x00, 0x00, 0x2e, 0x00, 0x01, 0x00, 0x00, 0x40, 0x11, 0x3a, 0xb7, 16, 0, 0, 4, 48, 0,
    0, 4, 0x04, 0x01, 0x00, 0x0c, 0x00, 0x1a, 0x00, 0x00,
];

fn endpoints() -> Endpoints {
    let mac = |last| MacAddress([2, 0, 0, 0, 0, last]);
    Endpoints([
        Endpoint { source: mac(1), destination: mac(2) },
        Endpoint { source: mac(3), destination: mac(4) },
    ])
}

fn bench(vm: Vm) -> Tunables {
    Tunables { vm: Some(vm), ..Tunables::default() }
}

fn table(name: &str, tunables: &Tunables, directions: Directions) -> FrameTable {
    Profile::builtin(name, tunables).unwrap().table(&endpoints(), directions)
}

/// The flows of one direction in the order of departure.
fn flows(table: &FrameTable, direction: u8) -> Vec<Flow> {
    let rows = (0..table.rows.len()).filter(|index| table.rows[*index].direction == direction);
    rows.map(|index| Flow::parse(table.header(index)).unwrap()).collect()
}

fn texts(flows: &[Flow]) -> Vec<String> {
    flows.iter().map(ToString::to_string).collect()
}

#[test]
fn bench_64_var2_is_trexs_byte_for_byte() {
    let table = table("bench", &bench(Vm::Var2), Directions::Forward);
    let frame = table.frame(0);
    assert_eq!(frame.len(), 60);
    assert_eq!(frame[..12], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    assert_eq!(frame[12..42], TREX_BENCH_64);
    assert_eq!(frame[42..], *b"Lnrt\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    assert_eq!(table.rows[0].checksum, None);
}

#[test]
fn what_the_signature_leaves_of_the_payload_is_trexs() {
    let tunables = Tunables { size: Some(Size::Bytes(128)), ..bench(Vm::None) };
    let frame = table("bench", &tunables, Directions::Forward).frame(0);
    assert_eq!(frame.len(), 124);
    assert!(frame[42..124 - 18].iter().all(|byte| *byte == b'x'));
}

#[test]
fn var2_sends_251_pairs_in_lockstep_both_ways() {
    let table = table("bench", &bench(Vm::Var2), Directions::Both);
    assert_eq!((table.rows.len(), table.period, table.directions()), (502, 502, 2));
    assert!(
        table.rows.iter().zip([0, 1].into_iter().cycle()).all(|(row, direction)| row.direction == direction)
    );
    let expected = |from: u8, to: u8| -> Vec<String> {
        (4..=254).map(|host| format!("{from}.0.0.{host}:1025 > {to}.0.0.{host}:12")).collect()
    };
    assert_eq!(texts(&flows(&table, 0)), expected(16, 48));
    assert_eq!(texts(&flows(&table, 1)), expected(48, 16));
    assert_eq!((table.flows(0), table.flows(1)), (251, 251));
    assert_eq!(table.header(1)[..12], [2, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0, 3]);
}

#[test]
fn none_and_var1_vary_as_in_trex() {
    let none = table("bench", &Tunables::default(), Directions::Both);
    assert_eq!(texts(&flows(&none, 0)), ["16.0.0.4:1025 > 48.0.0.4:12"]);
    assert_eq!(texts(&flows(&none, 1)), ["48.0.0.4:1025 > 16.0.0.4:12"]);
    // In the reverse direction too it is the source that varies.
    let var1 = table("bench", &bench(Vm::Var1), Directions::Both);
    assert_eq!(texts(&flows(&var1, 0))[1], "16.0.0.5:1025 > 48.0.0.4:12");
    assert_eq!(texts(&flows(&var1, 1))[1], "48.0.0.5:1025 > 16.0.0.4:12");
    assert_eq!((var1.flows(0), var1.flows(1)), (251, 251));
}

#[test]
fn random_draws_sources_and_says_that_it_is_a_sample() {
    let table = table("bench", &bench(Vm::Random), Directions::Forward);
    assert_eq!((table.period, table.rows.len(), table.flows(0)), (u64::MAX, 65_536, 251));
    let hosts: BTreeSet<String> = flows(&table, 0).iter().map(|flow| flow.source.to_string()).collect();
    assert!(hosts.contains("16.0.0.4") && hosts.contains("16.0.0.254"));
    assert!(flows(&table, 0).iter().all(|flow| flow.destination.to_string() == "48.0.0.4"));
    insta::assert_snapshot!(table.note().unwrap(), @"the table is a sample of 65,536 frames of a profile that does not repeat");
}

#[test]
fn tuple_steps_the_port_after_each_round_of_addresses() {
    let table = table("bench", &bench(Vm::Tuple), Directions::Forward);
    assert_eq!(table.period, 251 * (65_500 - 1234 + 1));
    assert_eq!(table.rows.len(), FrameTable::MAX_ROWS);
    assert_eq!(table.flows(0), FrameTable::MAX_ROWS as u64);
    let flows = texts(&flows(&table, 0)[..252]);
    assert_eq!(flows[0], "16.0.0.4:1234 > 48.0.0.4:12");
    assert_eq!(flows[250], "16.0.0.254:1234 > 48.0.0.4:12");
    assert_eq!(flows[251], "16.0.0.4:1235 > 48.0.0.4:12");
    insta::assert_snapshot!(table.note().unwrap(), @"the table is a sample: the first 1,048,576 of 16,131,017 frames");
}

#[test]
fn cached_repeats_after_255_frames() {
    let table = table("bench", &bench(Vm::Cached), Directions::Forward);
    let flows = texts(&flows(&table, 0));
    assert_eq!((flows.len(), table.flows(0)), (255, 251));
    assert_eq!(
        (flows[250].as_str(), flows[251].as_str()),
        ("16.0.0.254:1025 > 48.0.0.4:12", "16.0.0.4:1025 > 48.0.0.4:12")
    );
}

#[test]
fn size_draws_sizes_up_to_the_largest() {
    let all = table("bench", &bench(Vm::Size), Directions::Forward);
    let sizes: BTreeSet<u16> = all.rows.iter().map(|row| row.length + 4).collect();
    assert_eq!((sizes.first(), sizes.last()), (Some(&64), Some(&9216)));
    let bounded =
        table("bench", &Tunables { size: Some(Size::Bytes(1518)), ..bench(Vm::Size) }, Directions::Forward);
    assert_eq!(bounded.rows.iter().map(|row| row.length + 4).max(), Some(1518));
    for index in (0..all.rows.len()).step_by(1000) {
        let frame = all.frame(index);
        assert_eq!(usize::from(u16::from_be_bytes([frame[16], frame[17]])), frame.len() - 14);
        assert_eq!(usize::from(u16::from_be_bytes([frame[38], frame[39]])), frame.len() - 34);
    }
}

/// Frames of each size in one cycle of the weights.
fn sizes(table: &FrameTable, cycle: usize) -> Vec<(u16, usize)> {
    let mut sizes: Vec<u16> = table.rows[..cycle].iter().map(|row| row.length + 4).collect();
    sizes.sort_unstable();
    sizes.chunk_by(|a, b| a == b).map(|chunk| (chunk[0], chunk.len())).collect()
}

#[test]
fn the_mixes_are_trexs() {
    let bench = table("bench", &Tunables { size: Some(Size::Imix), ..bench(Vm::Var2) }, Directions::Forward);
    assert_eq!(sizes(&bench, 12), [(68, 7), (590, 4), (1514, 1)]);
    assert_eq!(bench.period, 12 * 251);
    assert_eq!(texts(&flows(&bench, 0)[..1]), ["16.0.0.4:1025 > 48.0.0.4:12"]);

    let imix = table("imix", &Tunables::default(), Directions::Both);
    assert_eq!(sizes(&imix, 24), [(64, 14), (594, 8), (1518, 2)]);
    // The 254 pairs of the middle stream, 4 in a cycle, come round after 127 cycles.
    assert_eq!(imix.period, 2 * 12 * 254);
    assert_eq!(texts(&flows(&imix, 0)[..1]), ["16.0.0.1:53 > 48.0.0.1:53"]);
    assert_eq!(texts(&flows(&imix, 1)[..1]), ["48.0.0.1:53 > 16.0.0.1:53"]);
    assert_eq!(imix.flows(0), 254);
    assert!((imix.mean_frame_size() + 20.0 - 381.8).abs() < 0.1);
}

#[test]
fn bimodal_has_small_and_large_frames_of_the_same_hosts() {
    let table = table("bimodal", &Tunables::default(), Directions::Forward);
    let share = |size: u16| {
        let frames = table.rows.iter().filter(|row| row.length + 4 == size).count();
        frames as f64 / table.rows.len() as f64
    };
    assert_eq!([share(64), share(594), share(1518)], [0.44, 0.19, 0.37]);
    assert_eq!(table.flows(0), 254);
}

#[test]
fn udp_1pkt_simple_is_one_flow_of_64_bytes() {
    let table = table("udp_1pkt_simple", &Tunables::default(), Directions::Both);
    assert_eq!(table.rows.len(), 2);
    assert_eq!(table.mean_frame_size(), 64.0);
    assert_eq!(texts(&flows(&table, 0)), ["16.0.0.1:1025 > 48.0.0.1:12"]);
    assert_eq!(texts(&flows(&table, 1)), ["48.0.0.1:1025 > 16.0.0.1:12"]);
    assert!(table.rows.iter().all(|row| row.checksum.is_some()));
}

#[test]
fn ipv6_has_the_same_hosts_and_needs_84_bytes() {
    let v6 = |size| Tunables { size, ip: Some(IpVersion::V6), ..bench(Vm::Var2) };
    insta::assert_snapshot!(
        Profile::builtin("bench", &v6(Some(Size::Bytes(64)))).unwrap_err(),
        @"stream 'udp': frames of 64 bytes do not hold IPv6 and UDP and the signature: the smallest that fits is 84"
    );
    let least = Profile::builtin("bench", &v6(None)).unwrap();
    assert_eq!((least.largest_size(), least.tunables()["size"].as_str()), (84, "84"));
    let table = table("bench", &v6(Some(Size::Bytes(84))), Directions::Both);
    assert_eq!(texts(&flows(&table, 0)[..1]), ["[2001:2:0:16::4]:1025 > [2001:2:0:48::4]:12"]);
    assert_eq!(texts(&flows(&table, 1)[250..]), ["[2001:2:0:48::fe]:1025 > [2001:2:0:16::fe]:12"]);
    assert!(table.rows.iter().all(|row| row.checksum.is_some()));

    let mix = Profile::builtin("bench", &v6(Some(Size::Imix))).unwrap();
    assert_eq!(mix.notes(), ["frames of 68 bytes do not hold IPv6 and UDP and the signature: raised to 84"]);
    assert_eq!(sizes(&mix.table(&endpoints(), Directions::Forward), 12), [(84, 7), (590, 4), (1514, 1)]);
}

#[test]
fn tags_stand_before_ip() {
    let tagged =
        |vlan: &str, size| Tunables { vlan: Some(vlan.parse().unwrap()), size, ..Tunables::default() };
    let error = Profile::builtin("bench", &tagged("100", Some(Size::Bytes(64)))).unwrap_err();
    assert!(error.to_string().ends_with("the smallest that fits is 68"), "{error}");
    let one = table("bench", &tagged("100", Some(Size::Bytes(68))), Directions::Forward).frame(0);
    assert_eq!(one[12..18], [0x81, 0x00, 0, 100, 0x08, 0x00]);
    let two = table("bench", &tagged("200,100", Some(Size::Bytes(72))), Directions::Forward).frame(0);
    assert_eq!(two[12..22], [0x88, 0xa8, 0, 200, 0x81, 0x00, 0, 100, 0x08, 0x00]);
    let simple = Profile::builtin("udp_1pkt_simple", &tagged("100", None)).unwrap();
    assert_eq!(simple.largest_size(), 68);
    assert_eq!(
        simple.notes(),
        ["frames have 68 bytes, the fewest that hold 1 VLAN tag, IPv4 and UDP and the signature"]
    );
}

#[test]
fn mistakes_name_what_is_known() {
    insta::assert_snapshot!(
        Profile::builtin("imx", &Tunables::default()).unwrap_err(),
        @"there is no profile 'imx': known are bench, imix, bimodal, udp_1pkt_simple, and files that end in .toml, .pcap, .pcapng or .py"
    );
    insta::assert_snapshot!(
        Profile::builtin("imix", &bench(Vm::Var1)).unwrap_err(),
        @"profile 'imix' has no tunable 'vm': it has ip, vlan"
    );
    insta::assert_snapshot!(
        Profile::builtin("bench", &Tunables { size: Some(Size::Imix), ..bench(Vm::Size) }).unwrap_err(),
        @"flows of the kind size draw each frame's size up to the one given: give a number of bytes, not imix"
    );
}

#[test]
fn the_listing_names_every_profile_and_tunable() {
    let listing = traffic::builtin::listing();
    insta::assert_snapshot!(listing);
    for builtin in BUILTINS {
        assert!(listing.contains(builtin.name) && listing.contains(builtin.description));
        assert!(builtin.tunables.iter().all(|name| TUNABLES.iter().any(|tunable| tunable.name == *name)));
    }
    // What the list offers is what can be written.
    for tunable in TUNABLES.iter().filter(|tunable| tunable.name == "vm") {
        assert!(tunable.values.split(", ").all(|value| value.parse::<Vm>().is_ok()));
    }
}

#[test]
fn tunables_are_kept_as_applied() {
    let profile = Profile::builtin("bench", &bench(Vm::Var2)).unwrap();
    let tunables: Vec<_> = profile.tunables().iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(tunables, ["ip=4", "size=64", "vm=var2"]);
}

#[test]
fn a_table_shows_its_rows() {
    let tunables = Tunables { size: Some(Size::Imix), vlan: Some("7".parse().unwrap()), ..bench(Vm::Tuple) };
    insta::assert_snapshot!(table("bench", &tunables, Directions::Both).show(6));
}
