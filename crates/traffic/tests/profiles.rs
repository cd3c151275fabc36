//! Profiles in TOML: those we ship, and every mistake that can be made in one.

use traffic::{Directions, Endpoint, Endpoints, IpVersion, Profile};
use wire::MacAddress;

const ENDPOINTS: Endpoints = Endpoints([
    Endpoint { source: MacAddress([2, 0, 0, 0, 0, 1]), destination: MacAddress([2, 0, 0, 0, 0, 2]) },
    Endpoint { source: MacAddress([2, 0, 0, 0, 0, 3]), destination: MacAddress([2, 0, 0, 0, 0, 4]) },
]);

/// One of the profiles in `profiles/`.
fn shipped(name: &str) -> Profile {
    let path = format!("{}/../../profiles/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let profile = Profile::from_toml(&path, &std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(profile.name(), name);
    assert!(profile.source().is_some_and(|text| text.contains("[[stream]]")));
    profile
}

#[test]
fn every_shipped_profile_is_one() {
    let directory = format!("{}/../../profiles", env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let profile = shipped(path.file_stem().unwrap().to_str().unwrap());
        assert!(!profile.description().is_empty());
        assert!(profile.largest_size() <= 1518);
        count += 1;
    }
    assert!(count >= 3);
}

#[test]
fn mixed_interleaves_its_streams() {
    let profile = shipped("mixed");
    assert!(profile.uses(IpVersion::V4) && profile.uses(IpVersion::V6));
    assert_eq!((profile.total_weight(), profile.base_pps()), (49, None));
    let table = profile.table(&ENDPOINTS, Directions::Both);
    insta::assert_snapshot!(table.show(16));
}

#[test]
fn a_million_flows_are_a_million() {
    let table = shipped("million-flows").table(&ENDPOINTS, Directions::Forward);
    assert_eq!((table.rows.len(), table.period, table.flows(0)), (1_000_000, 1_000_000, 1_000_000));
    assert_eq!(table.note(), None);
    let both = shipped("million-flows").table(&ENDPOINTS, Directions::Both);
    assert_eq!((both.rows.len(), both.period), (1 << 20, 2_000_000));
    assert_eq!((both.flows(0), both.flows(1)), (1 << 19, 1 << 19));
}

#[test]
fn rates_scale_together() {
    let profile = shipped("syn-flood");
    assert_eq!(profile.base_pps(), Some(100_000.0));
    let table = profile.table(&ENDPOINTS, Directions::Forward);
    let web = table.rows.iter().filter(|row| row.stream == 1).count();
    assert_eq!(web * 100, table.rows.len());
    // Smoothly: one in each hundred.
    assert!(table.rows.chunks(100).all(|rows| rows.iter().filter(|row| row.stream == 1).count() == 1));
}

#[test]
fn rates_in_bits_count_frames_of_their_size() {
    let stream = |rate, size| {
        format!(
            "[[stream]]\nrate = \"{rate}\"\nsize = {size}\nipv4 = {{ source = \"16.0.0.1\", destination = \"48.0.0.1\" }}\nudp = {{}}\n"
        )
    };
    let text = stream("672kbpsl1", 64) + &stream("512kbps", 64) + &stream("2kpps", 1518);
    let profile = Profile::from_toml("a/b/rates.toml", &text).unwrap();
    assert_eq!((profile.name(), profile.base_pps()), ("rates", Some(4000.0)));
    let weights: Vec<u64> = profile.streams()[0].iter().map(|stream| stream.weight).collect();
    assert_eq!(weights, [1_000_000, 1_000_000, 2_000_000]);
    let table = profile.table(&ENDPOINTS, Directions::Forward);
    assert_eq!(table.rows.iter().map(|row| row.stream).collect::<Vec<_>>(), [2, 0, 1, 2]);
}

#[test]
fn own_addresses_change_places_in_the_reverse_direction() {
    let text = r#"
        [[stream]]
        size = 68
        vlan = { id = { increment = [1, 10] } }
        ethernet = { source = { increment = ["02:00:00:00:00:10", "02:00:00:00:00:12"] } }
        ipv4 = { source = "16.0.0.1", destination = "48.0.0.1" }
        udp = {}
    "#;
    let table = Profile::from_toml("own", text).unwrap().table(&ENDPOINTS, Directions::Both);
    assert_eq!(table.rows.len(), 2 * 30);
    let macs = |index: usize| table.header(index)[..12].to_vec();
    assert_eq!(macs(0), [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 0x10]);
    assert_eq!(macs(1), [2, 0, 0, 0, 0, 0x10, 2, 0, 0, 0, 0, 3]);
    assert_eq!(macs(4), [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 0x12]);
    assert!(table.show(2).contains("1 -> 0  48.0.0.1:1025 > 16.0.0.1:12  udp vlan 1  68 B"));
}

/// A profile whose line 3 on is `lines`, one per line, within a stream.
fn stream(lines: &str) -> String {
    format!(
        "# line 1\n[[stream]]\n{lines}\n[stream.ipv4]\nsource = \"16.0.0.1\"\ndestination = \"48.0.0.1\"\n[stream.udp]\n"
    )
}

/// A profile with `value` as its source address, in line 3.
fn source(value: &str) -> String {
    format!(
        "[[stream]]\n[stream.ipv4]\nsource = {value}\ndestination = \"48.0.0.1\"\n[stream.udp]\ndestination = {{ increment = [1, 3] }}\n"
    )
}

#[test]
fn every_mistake_has_its_line_and_a_remedy() {
    let ip = "ipv4 = { source = \"1.1.1.1\", destination = \"2.2.2.2\" }";
    let cases = [
        // Not TOML, or no profile.
        "name = ".to_owned(),
        "name = \"a\"\nname = \"b\"".to_owned(),
        String::new(),
        "stream = []".to_owned(),
        "name = 5".to_owned(),
        "fill = 256".to_owned(),
        "\nspeed = 1\n[[stream]]\nudp = {}\nipv4 = { source = \"1.1.1.1\", destination = \"2.2.2.2\" }".to_owned(),
        // Streams.
        stream("sise = 64"),
        stream("size = 63"),
        stream("size = 9217"),
        stream("size = \"64\""),
        stream("size = -64"),
        stream("size = { increment = [1500, 64] }"),
        stream("weight = 0"),
        stream("rate = \"10\"\nweight = 1"),
        stream("rate = \"97%\""),
        stream("rate = \"10kbs\""),
        stream("rate = \"0pps\""),
        stream("vlan = 4095"),
        stream("size = 80\nvlan = [1, 2, 3]"),
        stream("vlan = 1"),
        stream("vlan = { id = 1, prio = 2 }"),
        stream("tcp = {}"),
        stream("ethernet = { source = \"02:00\" }"),
        // Layers.
        "[[stream]]\nudp = {}".to_owned(),
        format!("[[stream]]\n{ip}"),
        "[[stream]]\nudp = {}\nipv4 = { source = \"1.1.1.1\" }".to_owned(),
        "[[stream]]\nudp = {}\nipv6 = { source = \"1.1.1.1\", destination = \"::1\" }".to_owned(),
        "[[stream]]\nsize = 100\nudp = { checksum = false }\nipv6 = { source = \"::1\", destination = \"::2\" }".to_owned(),
        format!("[[stream]]\n{ip}\nudp = {{ source = 65536 }}"),
        format!("[[stream]]\nsize = 76\n{ip}\ntcp = {{ flags = [\"sin\"] }}"),
        format!("[[stream]]\n{ip}\n[stream.icmp]\nid = 1"),
        format!("[[stream]]\n{ip}\nudp = {{}}\n[[stream]]\n{ip}\ntcp = {{}}"),
        format!("[[stream]]\nname = 'small'\n{ip}\nudp = {{}}\n[[stream]]\nname = 'tagged'\nvlan = [1, 2]\nsize = 120\ntcp = {{}}\nipv6 = {{ source = '::1', destination = '::2' }}"),
        format!("[[stream]]\n{ip}\nudp = {{}}\nrate = '1kpps'\n[[stream]]\n{ip}\nudp = {{}}"),
        // Bursts and chains.
        stream("rate = '1kpps'\nburst = 0"),
        stream("rate = '1kpps'\nburst = 5\npause = '1 moment'"),
        stream("rate = '1kpps'\nburst = 5\npause = '25h'"),
        stream("rate = '1kpps'\npause = '1ms'"),
        stream("rate = '1kpps'\nburst = 5"),
        stream("burst = 5\npause = '1ms'"),
        stream("rate = '1kpps'\nburst = 5\npause = '1ms'\nbursts = 2"),
        stream("rate = '1kpps'\nburst = 5\nnext = 'nobody'"),
        stream("rate = '1kpps'\nburst = 300_000\npause = '1ms'"),
        stream("rate = '1kpps'\nstarts = false"),
        // Field programs.
        source("\"16.0.0\""),
        source("16"),
        source("{ increment = [\"16.0.0.9\", \"16.0.0.1\"] }"),
        source("{ decrement = [\"16.0.0.1\", \"16.0.0.9\"] }"),
        source("{ increment = [\"16.0.0.1\"] }"),
        source("{ increment = [\"16.0.0.1\", \"16.0.0.9\"], step = 0 }"),
        source("{ increment = [\"16.0.0.1\", \"16.0.0.9\"], seed = 1 }"),
        source("{ step = 2 }"),
        source("{ increment = [\"16.0.0.1\", \"16.0.0.9\"], list = [] }"),
        source("{ list = [] }"),
        source("{ list = [\"16.0.0.1\", \"16.0.0.256\"] }"),
        source("{ random = [\"16.0.0.9\", \"16.0.0.1\"] }"),
        source("{ random = [\"16.0.0.1\", \"16.0.0.9\"], repeat-after = 0 }"),
        source("{ list = [\"16.0.0.1\"], after = \"udp.sport\" }"),
        source("{ list = [\"16.0.0.1\"], with = \"udp.destination\" }"),
        source("{ list = [\"16.0.0.1\"], after = \"ipv4.source\" }"),
        source("{ list = [\"16.0.0.1\"], after = \"udp.destination\", with = \"udp.destination\" }"),
    ];
    let report: String = cases
        .iter()
        .map(|text| {
            let error = Profile::from_toml("p.toml", text).expect_err(text).to_string();
            assert!(error.starts_with("p.toml:"), "{error}");
            format!("{error}\n")
        })
        .collect();
    insta::assert_snapshot!(report);
}

#[test]
fn bursts_leave_at_their_rate_and_pause_between() {
    let profile = shipped("bursts");
    assert!((profile.base_pps().unwrap() - 80_000.0).abs() < 1.0, "{:?}", profile.base_pps());
    assert_eq!(profile.streams()[0].iter().map(|stream| stream.weight).collect::<Vec<_>>(), [16, 64]);
    assert!(profile.notes()[0].contains("up to 12"), "{:?}", profile.notes());
    let table = profile.table(&ENDPOINTS, Directions::Forward);
    // 80 frames a period, of which both streams vary in 254 ways.
    assert_eq!((table.rows.len(), table.times.len(), table.flows(0)), (80 * 127, 80 * 127, 508));
    for (period, rows) in table.rows.chunks(80).enumerate() {
        let of_burst = |row: &&traffic::Row| row.stream == 1;
        assert_eq!(rows.iter().filter(of_burst).count(), 64);
        assert_eq!(rows[..66].iter().filter(of_burst).count(), 64, "the burst comes first");
        // In 2^-16 of the mean distance, which is 12.5 us: the burst lasts 64 us.
        let ns = |row: usize| table.times[period * 80 + row] * 12_500 / 65_536 - period as u64 * 1_000_000;
        assert!(ns(0) <= 1 && (62_000..64_000).contains(&ns(65)) && (63_990..64_010).contains(&ns(66)));
    }
    let both = profile.table(&ENDPOINTS, Directions::Both);
    assert_eq!((both.rows.len(), both.times.len()), (2 * 80 * 127, 2 * 80 * 127));
    assert!(both.times.is_sorted() && both.rows.chunks(2).all(|rows| rows[0].stream == rows[1].stream));
    let few = profile.table_up_to(&ENDPOINTS, Directions::Forward, 40);
    assert_eq!((few.rows.len(), few.times.len(), few.times[0]), (40, 40, 0));
    assert!(*few.times.last().unwrap() < 40 << 16);
}

#[test]
fn the_guides_chain_is_a_profile() {
    let guide = include_str!("../../../docs/profiles.md");
    let example = guide.split("```toml\n").nth(2).unwrap().split("```").next().unwrap();
    let profile = Profile::from_toml("docs/profiles.md", example).unwrap();
    let table = profile.table(&ENDPOINTS, Directions::Forward);
    let streams: Vec<u8> = table.rows.iter().map(|row| row.stream).collect();
    assert_eq!(streams, [vec![0; 10], vec![1; 200]].concat());
    // 1 ms, 10 frames at 100 kpps, 200 at 1 Mpps.
    assert!((profile.base_pps().unwrap() - 210.0 / 1.3e-3).abs() < 1.0);
}

#[test]
fn links_make_pairs_and_rounds() {
    let text = r#"
        [[stream]]
        [stream.ipv4]
        source = { list = ["16.0.0.1", "16.0.0.2"], after = "udp.source" }
        destination = { list = ["48.0.0.8", "48.0.0.9"], with = "ipv4.source" }
        [stream.udp]
        source = { decrement = [3, 1] }
        destination = { random = [1, 9], seed = 5, repeat-after = 2, after = "ipv4.source" }
    "#;
    let table = Profile::from_toml("links", text).unwrap().table(&ENDPOINTS, Directions::Forward);
    assert_eq!(table.period, 12);
    insta::assert_snapshot!(table.show(7));
}

#[test]
fn three_hundred_streams_are_too_many() {
    let one = "[[stream]]\nudp = {}\nipv4 = { source = \"1.1.1.1\", destination = \"2.2.2.2\" }\n";
    assert!(Profile::from_toml("many", &one.repeat(256)).is_ok());
    let error = Profile::from_toml("many", &one.repeat(300)).unwrap_err();
    assert_eq!(error.to_string(), "many:1: a profile has 1 to 256 streams, not 300");
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "([a-z0-9.=\\[\\]{}\", \n-]|stream|ipv4|udp|increment|source|size){0,60}") {
        let _ = Profile::from_toml("fuzz", &text);
    }
}

#[test]
fn the_guides_example_is_a_profile() {
    let guide = include_str!("../../../docs/profiles.md");
    let example = guide.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let profile = Profile::from_toml("docs/profiles.md", example).unwrap();
    assert_eq!((profile.name(), profile.fill(), profile.total_weight()), ("web", b'x', 4));
}
