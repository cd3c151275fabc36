//! What access lists cost fastpath: `cargo bench -p fastpath --bench acl`, on an otherwise idle machine.
//!
//! First lookups alone: lists of 10 to 10,000 rules, how long they take to make ready, how much memory they take, and
//! the clocks of the time stamp counter for a packet, with warm caches, of vectors of 256 as the router has them, beside
//! a walk over the rules. Then whole nodes of the graph without a list and with ones. All rows take turns; figures
//! are medians of the turns.

#![allow(clippy::unwrap_used)] // a benchmark may end at its first error

#[path = "nodes/filtered.rs"]
mod filtered;
#[path = "nodes/memory.rs"]
mod memory;
#[path = "forwarding/template.rs"]
mod template;
#[path = "nodes/turn.rs"]
mod turn;

use std::hint::black_box;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use fastpath::acl::classifier::{Classifier, Key, NONE, Ranges};
use fastpath::acl::key::{ANY_PORT, ANY_SERVICE, NO_PORT, service};
use fastpath::acl::{AccessList, Action, Addresses, Carried, Filters, Rule};
use fastpath::clock::clocks;
use fastpath::fib::Prefix;
use fastpath::vector::VECTOR;
use stats::random::Random;

use crate::filtered::{FORWARDING, NODES, set_up};
use crate::turn::{TURNS, median, turn};

/// Packets that lookups take turns with.
const PACKETS: usize = 4096;
/// How long a row looks packets up in a turn.
const TURN: Duration = Duration::from_millis(100);

fn main() {
    lookups();
    println!();
    nodes();
}

/// Kinds of rules.
#[derive(Clone, Copy)]
enum Kind {
    /// Hosts that send nothing, and at last one for all: as the benches of firewalls have them.
    Hosts,
    /// Networks at both ends, protocols and ports, which packets match.
    Services,
}

/// A table of lookups.
fn lookups() {
    let mut rows = Vec::new();
    for (name, kind) in [("hosts that do not match", Kind::Hosts), ("networks and services", Kind::Services)]
    {
        for count in [10, 100, 1000, 10_000] {
            let (rules, packets) = rules(kind, count);
            let began = Instant::now();
            let classifier = Classifier::new(&rules);
            let built = began.elapsed();
            check(&rules, &classifier, &packets);
            rows.push((format!("{name}, {count}"), rules, packets, classifier, built, Vec::new()));
        }
    }
    for _ in 0..TURNS {
        for (_, rules, packets, classifier, _, turns) in &mut rows {
            turns.push((bulk(classifier, packets), one(classifier, packets), walk(rules, packets)));
        }
    }
    println!("| rules | ready in, ms | memory, KB | clocks | clocks, one at a time | clocks of a walk |");
    println!("|---|---|---|---|---|---|");
    for (name, _, _, classifier, built, turns) in &rows {
        let median = |of: fn(&(f64, f64, f64)) -> f64| {
            let mut values: Vec<f64> = turns.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        println!(
            "| {name} | {:.2} | {} | {:.1} | {:.1} | {:.1} |",
            built.as_secs_f64() * 1e3,
            classifier.memory().div_ceil(1000),
            median(|turn| turn.0),
            median(|turn| turn.1),
            median(|turn| turn.2)
        );
    }
}

/// So many rules of a kind, of which the last holds everything, and packets.
fn rules(kind: Kind, count: usize) -> (Vec<Option<Ranges<u32>>>, Vec<Key<u32>>) {
    let mut random = Random::new(count as u64);
    let all = Ranges {
        source: 0..=u32::MAX,
        destination: 0..=u32::MAX,
        service: ANY_SERVICE,
        source_port: ANY_PORT,
    };
    let mut rules: Vec<_> = (1..count)
        .map(|at| match kind {
            Kind::Hosts => Ranges { source: host(at)..=host(at), ..all.clone() },
            Kind::Services => of_service(&mut random),
        })
        .collect();
    rules.push(all);
    let packet = |random: &mut Random| {
        let (source, destination) =
            (0x1000_0000 + random.below(1 << 16) as u32, 0x3000_0000 + random.below(1 << 16) as u32);
        let any = Key { source, destination, service: service(17, 53), source_port: 1024 };
        match kind {
            Kind::Hosts => any,
            // Within a rule, which may not be the first that holds it.
            Kind::Services => {
                let rule = &rules[random.below(count)];
                let mut within = |range: &RangeInclusive<u32>| {
                    range.start() + random.below((range.end() - range.start()).min(1000) as usize + 1) as u32
                };
                Key {
                    source: within(&rule.source),
                    destination: within(&rule.destination),
                    service: within(&rule.service),
                    source_port: within(&rule.source_port),
                }
            }
        }
    };
    let packets = (0..PACKETS).map(|_| packet(&mut random)).collect();
    (rules.into_iter().map(Some).collect(), packets)
}

/// A host of 10.0.0.0/8.
fn host(at: usize) -> u32 {
    0x0a00_0000 + (at / 250 * 256 + at % 250) as u32
}

/// A rule between two networks for a protocol, with a port, a range of ports, or without.
fn of_service(random: &mut Random) -> Ranges<u32> {
    let network = |random: &mut Random| {
        let bits = [0, 8, 8, 12, 16][random.below(5)];
        let first = (0x1000_0000 + random.below(1 << 24) as u32) >> bits << bits;
        first..=first + ((1 << bits) - 1)
    };
    let (source, destination) = (network(random), network(random));
    let protocol = [6, 17][random.below(2)];
    let service = match random.below(4) {
        0 => service(protocol, 0)..=service(protocol, NO_PORT),
        1 => service(protocol, 1024)..=service(protocol, 65_535),
        _ => {
            let port = random.below(10_000) as u32;
            service(protocol, port)..=service(protocol, port)
        }
    };
    let source_port = if random.below(4) == 0 { 1024..=65_535 } else { ANY_PORT };
    Ranges { source, destination, service, source_port }
}

/// Ends if the classifier does not find what a walk finds.
fn check(rules: &[Option<Ranges<u32>>], classifier: &Classifier<u32>, packets: &[Key<u32>]) {
    for packet in packets {
        assert_eq!(classifier.find(*packet), first(rules, packet));
    }
}

fn first(rules: &[Option<Ranges<u32>>], packet: &Key<u32>) -> u32 {
    let holds = |rule: &Option<Ranges<u32>>| rule.as_ref().is_some_and(|rule| rule.hold(packet));
    rules.iter().position(holds).map_or(NONE, |number| number as u32)
}

/// Clocks for a packet of vectors.
fn bulk(classifier: &Classifier<u32>, packets: &[Key<u32>]) -> f64 {
    let mut found = [0; VECTOR];
    timed(packets, |packets| {
        classifier.find_all(|at| packets[at], &mut found[..packets.len()]);
        black_box(&found);
    })
}

/// Clocks for a packet, each by itself.
fn one(classifier: &Classifier<u32>, packets: &[Key<u32>]) -> f64 {
    timed(packets, |packets| {
        for packet in packets {
            black_box(classifier.find(black_box(*packet)));
        }
    })
}

/// Clocks for a packet that all rules are tried for, in their order.
fn walk(rules: &[Option<Ranges<u32>>], packets: &[Key<u32>]) -> f64 {
    timed(packets, |packets| {
        for packet in packets {
            black_box(first(rules, packet));
        }
    })
}

/// Clocks for a packet of what is done with vectors of them, time and again.
fn timed(packets: &[Key<u32>], mut work: impl FnMut(&[Key<u32>])) -> f64 {
    let (began, start, mut count) = (Instant::now(), clocks(), 0);
    while began.elapsed() < TURN {
        for vector in packets.chunks(VECTOR) {
            work(vector);
            count += vector.len();
        }
    }
    (clocks() - start) as f64 / count as f64
}

/// A table of clocks a frame by node.
fn nodes() {
    let list = |count: usize| AccessList::new("list", of_hosts(count));
    let none = Filters::default;
    let input = |count: usize| [Filters { input: Some(list(count)), output: None }, none()];
    let cases = [
        ("no list", [none(), none()]),
        ("1 rule", input(1)),
        ("10 rules", input(10)),
        ("100 rules", input(100)),
        ("1,000 rules", input(1000)),
        ("10,000 rules", input(10_000)),
        ("1,000 rules, out", [none(), Filters { input: None, output: Some(list(1000)) }]),
    ];
    let mut rows: Vec<_> =
        cases.into_iter().map(|(name, filters)| (name, set_up(filters, 1 << 16), Vec::new())).collect();
    for _ in 0..TURNS {
        for (_, (worker, counters, _router), turns) in &mut rows {
            turns.push(turn(worker, counters, NODES));
        }
    }
    let names: Vec<&str> = NODES.iter().map(|node| node.name()).collect();
    println!("| list | {} | forwarding | Mpps |\n|---|{}", names.join(" | "), "---|".repeat(NODES.len() + 2));
    for (name, _, turns) in &rows {
        let cells: Vec<_> = (0..NODES.len()).map(|node| median(turns, |turn| turn.clocks[node])).collect();
        let cells: Vec<_> = cells.iter().map(|clocks| format!("{clocks:.1}")).collect();
        let forwarding = median(turns, |turn| turn.clocks[FORWARDING].iter().sum());
        let mpps = median(turns, |turn| turn.mpps);
        println!("| {name} | {} | {forwarding:.1} | {mpps:.1} |", cells.join(" | "));
    }
}

/// So many rules, of which all but the last deny a host that sends nothing.
fn of_hosts(count: usize) -> Vec<Rule> {
    let all = Prefix::new(0, 0).unwrap();
    let deny = |at: usize| {
        let addresses = Addresses::Ip4 { source: Prefix::new(host(at), 32).unwrap(), destination: all };
        Rule { action: Action::Deny, addresses, carried: Carried::Any }
    };
    let permit = Rule { action: Action::Permit, addresses: Addresses::Any, carried: Carried::Any };
    (1..count).map(deny).chain([permit]).collect()
}
