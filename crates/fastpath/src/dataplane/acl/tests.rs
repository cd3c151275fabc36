use std::ops::RangeInclusive;

use proptest::prelude::*;
use proptest::sample::Index;

use super::classifier::{Classifier, Key, NONE, Ranges};
use super::field::Value;
use super::key::{ANY_PORT, ANY_SERVICE, NO_PORT, UNREADABLE, service};
use super::*;

/// What rules and packets are made of: few values, and ranges around them, so that many rules overlap and match.
const PORTS: [u32; 8] = [0, 1, 22, 80, 443, 1023, 1024, 65_535];
const PROTOCOLS: [u8; 4] = [1, 6, 17, 255];

/// An address near one of a few: their last bits differ.
fn address4() -> impl Strategy<Value = u32> {
    (prop::sample::select(vec![0, 0x0a00_0000, 0x0a01_0000, 0xc0a8_0100, u32::MAX - 63]), 0..64u32)
        .prop_map(|(base, low)| base + low)
}

fn address6() -> impl Strategy<Value = u128> {
    let bases = vec![0, 0x2001_0db8 << 96, (0x2001_0db8 << 96) + (1 << 64), u128::MAX - 63];
    (prop::sample::select(bases), 0..64u128).prop_map(|(base, low)| base + low)
}

/// The range of a prefix of an address: of a host, of a few, of many, or of all.
fn prefix4() -> impl Strategy<Value = RangeInclusive<u32>> {
    let lengths = prop::sample::select(vec![0u8, 0, 8, 15, 16, 26, 29, 30, 31, 32]);
    (address4(), lengths)
        .prop_map(|(address, length)| addresses4(Prefix::new(address.network(length), length).unwrap()))
}

fn prefix6() -> impl Strategy<Value = RangeInclusive<u128>> {
    let lengths = prop::sample::select(vec![0u8, 0, 32, 63, 64, 122, 125, 127, 128]);
    (address6(), lengths)
        .prop_map(|(address, length)| addresses6(Prefix::new(address.network(length), length).unwrap()))
}

fn port() -> impl Strategy<Value = u32> {
    prop_oneof![8 => prop::sample::select(&PORTS[..]), 1 => Just(NO_PORT), 1 => 0..NO_PORT]
}

fn ports() -> impl Strategy<Value = RangeInclusive<u32>> {
    let between = (0..NO_PORT, 0..NO_PORT).prop_map(|(one, other)| one.min(other)..=one.max(other));
    let exact = prop::sample::select(&PORTS[..]).prop_map(|port| port..=port);
    prop_oneof![3 => Just(ANY_PORT), 2 => exact, 2 => between, 1 => Just(0..=NO_PORT - 1)]
}

fn services() -> impl Strategy<Value = RangeInclusive<u32>> {
    let of_one = (prop::sample::select(&PROTOCOLS[..]), ports())
        .prop_map(|(protocol, ports)| service(protocol, *ports.start())..=service(protocol, *ports.end()));
    prop_oneof![1 => Just(ANY_SERVICE), 3 => of_one]
}

fn rule<A: Value, S: Strategy<Value = RangeInclusive<A>>>(
    prefix: fn() -> S,
) -> impl Strategy<Value = Option<Ranges<A>>> {
    let ranges = (prefix(), prefix(), services(), ports());
    let ranges = ranges.prop_map(|(source, destination, service, source_port)| Ranges {
        source,
        destination,
        service,
        source_port,
    });
    prop_oneof![20 => ranges.prop_map(Some), 1 => Just(None)]
}

/// By which a packet is made of the borders of rules, each field of a rule of its own or all of one.
type Seed = ([Index; 4], [bool; 4], bool);

fn seed() -> impl Strategy<Value = Seed> {
    any::<([Index; 4], [bool; 4], bool)>()
}

/// The packets at the borders of rules that `seeds` choose, and just behind these.
fn packets<A: Value>(rules: &[Option<Ranges<A>>], seeds: &[Seed]) -> Vec<Key<A>> {
    let rules: Vec<_> = rules.iter().flatten().collect();
    if rules.is_empty() {
        return Vec::new();
    }
    let key = |(of, first, of_one): &Seed| {
        let rule = |field: usize| of[if *of_one { 0 } else { field }].get(&rules);
        Key {
            source: border(&rule(0).source, first[0]),
            destination: border(&rule(1).destination, first[1]),
            service: border(&rule(2).service, first[2]),
            source_port: border(&rule(3).source_port, first[3]),
        }
    };
    let at = seeds.iter().map(key);
    let behind = seeds.iter().map(|seed| {
        let key = key(seed);
        let after = |value: A| value.next().unwrap_or(value);
        Key { source: after(key.source), destination: after(key.destination), ..key }
    });
    at.chain(behind).collect()
}

fn border<T: Copy>(range: &RangeInclusive<T>, first: bool) -> T {
    if first { *range.start() } else { *range.end() }
}

/// Checks that the classifier of rules finds of each packet what a walk over them finds, alone and with the others;
/// says how many packets a rule matches.
fn same_as_walk<A: Value>(rules: &[Option<Ranges<A>>], packets: &[Key<A>]) -> usize {
    let walk = |packet: &Key<A>| {
        let holds = |rule: &Option<Ranges<A>>| rule.as_ref().is_some_and(|rule| rule.hold(packet));
        rules.iter().position(holds).map_or(NONE, |number| number as u32)
    };
    let expected: Vec<u32> = packets.iter().map(walk).collect();
    let classifier = Classifier::new(rules);
    let mut found = vec![0; packets.len()];
    classifier.find_all(|at| packets[at], &mut found);
    assert_eq!(found, expected);
    assert_eq!(packets.iter().map(|packet| classifier.find(*packet)).collect::<Vec<_>>(), expected);
    expected.iter().filter(|found| **found != NONE).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_lookup_of_ip4_finds_what_a_walk_finds(
        rules in prop::collection::vec(rule(prefix4), 0..200),
        seeds in prop::collection::vec(seed(), 0..40),
        others in prop::collection::vec((address4(), address4(), services(), port()), 0..40),
    ) {
        let others = others.into_iter().map(|(source, destination, service, source_port)|
            Key { source, destination, service: *service.start(), source_port });
        let packets: Vec<_> = packets(&rules, &seeds).into_iter().chain(others).collect();
        same_as_walk(&rules, &packets);
    }

    #[test]
    fn a_lookup_of_ip6_finds_what_a_walk_finds(
        rules in prop::collection::vec(rule(prefix6), 0..200),
        seeds in prop::collection::vec(seed(), 0..40),
        others in prop::collection::vec((address6(), address6(), services(), port()), 0..40),
    ) {
        let others = others.into_iter().map(|(source, destination, service, source_port)|
            Key { source, destination, service: *service.start(), source_port });
        let packets: Vec<_> = packets(&rules, &seeds).into_iter().chain(others).collect();
        same_as_walk(&rules, &packets);
    }
}

/// About as many rules as a word has bits, or few, or more; of some fields, all of them hold every value.
fn alike() -> impl Strategy<Value = Vec<Option<Ranges<u32>>>> {
    let counts = prop::sample::select(vec![1usize, 2, 63, 64, 65, 130]);
    let rules = counts.prop_flat_map(|count| prop::collection::vec(rule(prefix4), count));
    (rules, any::<[bool; 4]>()).prop_map(|(mut rules, [source, destination, service, source_port])| {
        for rule in rules.iter_mut().flatten() {
            let all = 0..=u32::MAX;
            rule.source = if source { all.clone() } else { rule.source.clone() };
            rule.destination = if destination { all } else { rule.destination.clone() };
            rule.service = if service { ANY_SERVICE } else { rule.service.clone() };
            rule.source_port = if source_port { ANY_PORT } else { rule.source_port.clone() };
        }
        rules
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_lookup_finds_what_a_walk_finds_whichever_fields_rules_differ_in(
        rules in alike(),
        seeds in prop::collection::vec(seed(), 1..40),
        other in (address4(), address4(), services(), port()),
    ) {
        let (source, destination, services, source_port) = other;
        let other = Key { source, destination, service: *services.start(), source_port };
        let packets: Vec<_> = packets(&rules, &seeds).into_iter().chain([other]).collect();
        let unreadable = packets.iter().map(|packet| Key { service: UNREADABLE, ..*packet }).collect::<Vec<_>>();
        same_as_walk(&rules, &packets);
        prop_assert_eq!(same_as_walk(&rules, &unreadable), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    /// So many rules that sets have several words of bits of words.
    #[test]
    fn a_lookup_among_thousands_of_rules_finds_what_a_walk_finds(
        rules in prop::collection::vec(rule(prefix4), 4000..9000),
        seeds in prop::collection::vec(seed(), 200),
    ) {
        same_as_walk(&rules, &packets(&rules, &seeds));
    }
}

/// The rule of one host's packets by UDP.
fn of_host(host: u32) -> Option<Ranges<u32>> {
    let service = service(17, 0)..=service(17, NO_PORT);
    Some(Ranges { source: host..=host, destination: 0..=u32::MAX, service, source_port: ANY_PORT })
}

#[test]
fn each_of_the_most_rules_is_found_and_they_are_ready_in_time() {
    let rules: Vec<_> = (0..RULES as u32).map(|host| of_host(host * 7)).collect();
    let began = std::time::Instant::now();
    let classifier = Classifier::new(&rules);
    // Unoptimized, on a machine that others use.
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    assert!(classifier.memory() < 16 << 20, "{}", classifier.memory());
    let key = |source| Key { source, destination: 9, service: service(17, 53), source_port: 1000 };
    let mut found = vec![0; 7 * RULES];
    classifier.find_all(|at| key(at as u32), &mut found);
    for (at, found) in found.iter().enumerate() {
        assert_eq!(*found, if at % 7 == 0 { at as u32 / 7 } else { NONE });
    }
}

/// Rules and packets that differ in every field make the most intervals and sets.
#[test]
fn the_worst_rules_take_no_more_memory_than_is_said() {
    let rules: Vec<_> = (0..1000u32)
        .map(|at| {
            let port = 4 * at + 1..=4 * at + 2;
            let service = service(6, *port.start())..=service(6, *port.end());
            Some(Ranges {
                source: 8 * at + 1..=8 * at + 3,
                destination: 8 * at + 1..=8 * at + 5,
                service,
                source_port: port,
            })
        })
        .collect();
    let memory = Classifier::new(&rules).memory();
    // Of four fields: 2,001 intervals at most of 8 bytes and a set of 17 words, and a table of twice as many parts.
    assert!(memory <= 4 * 2001 * (8 + 17 * 8 + 2 * 4), "{memory}");
}

#[test]
fn rules_that_differ_in_one_field_take_no_sets() {
    let any = Ranges { service: ANY_SERVICE, ..of_host(0).unwrap() };
    let rules: Vec<_> = (0..1000).map(|host| Some(Ranges { source: host..=host, ..any.clone() })).collect();
    let classifier = Classifier::new(&rules);
    // An interval has its start and its rule, and at most two parts of the table.
    assert!(classifier.memory() <= 1001 * 16, "{}", classifier.memory());
    let key = |source| Key { source, destination: 9, service: service(17, 53), source_port: NO_PORT };
    assert_eq!([0, 999, 1000].map(|source| classifier.find(key(source))), [0, 999, NONE]);
}

#[test]
fn rules_match_what_they_say() {
    let prefix = |length| Prefix::new(0x0a00_0000u32, length).unwrap();
    let any = Prefix::new(0, 0).unwrap();
    let of = |carried| Rule {
        action: Action::Permit,
        addresses: Addresses::Ip4 { source: prefix(8), destination: any },
        carried,
    };
    let rules = vec![
        of(Carried::Ports { protocol: 6, source: 0..=u16::MAX, destination: 80..=81 }),
        of(Carried::Type { protocol: 1, kind: 8 }),
        of(Carried::Protocol(6)),
        Rule { action: Action::Deny, addresses: Addresses::Any, carried: Carried::Protocol(17) },
        of(Carried::Any),
    ];
    assert_eq!(rules[0].ranges4().map(|ranges| ranges.source_port), Some(ANY_PORT));
    let list = AccessList::new("list", rules);
    let find = |source, service| list.ip4().find(Key { source, destination: 1, service, source_port: 9 });
    for (number, source, service) in [
        (0, 0x0aff_ffff, service(6, 80)),
        (0, 0x0a00_0000, service(6, 81)),
        (2, 0x0a00_0000, service(6, 82)),
        (2, 0x0a00_0000, service(6, NO_PORT)),
        (1, 0x0a00_0000, service(1, 8)),
        (4, 0x0a00_0000, service(1, 0)),
        (4, 0x0a00_0000, service(1, NO_PORT)),
        (3, 0x0a00_0000, service(17, 80)),
        (3, 0x0b00_0000, service(17, NO_PORT)),
        (NONE, 0x0b00_0000, service(6, 80)),
        (NONE, 0x0a00_0000, UNREADABLE),
    ] {
        assert_eq!(find(source, service), number, "{source:x} {service:x}");
    }
    let key = Key { source: 0x0a00_0000u128 << 96, destination: 1, service: service(17, 80), source_port: 9 };
    assert_eq!(list.ip6().find(key), 3);
    assert_eq!(list.ip6().find(Key { service: service(6, 80), ..key }), NONE);
}

#[test]
fn packets_are_counted_by_worker_and_shown_together() {
    let list = AccessList::new("list", Vec::new());
    list.counters(0)[0].add(3);
    list.counters(63)[0].add(4);
    assert!(list.counters(64).is_empty());
    assert_eq!(list.counts(), [7]);
    list.clear();
    list.counters(0)[0].add(1);
    assert_eq!(list.counts(), [1]);
}
