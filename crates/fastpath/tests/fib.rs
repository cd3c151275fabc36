//! Tables against the reference, while routes come and go, and while others look.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastpath::fib::{Address, Capacity, Error, Fib, NextHop, Prefix, Reader, Via};
use proptest::prelude::*;
use stats::random::Random;

use crate::reference::Reference;

/// How often what draws at random is repeated: more where it is fast.
const MANY: usize = if cfg!(debug_assertions) { 1 } else { 10 };

fn table<A: Address>() -> Fib<A> {
    Fib::new(Capacity::of::<A>()).unwrap()
}

fn hop(index: u32) -> NextHop {
    NextHop::new(index).unwrap()
}

fn prefix<A: Address>(address: A, length: u8) -> Prefix<A> {
    Prefix::new(address.network(length), length).unwrap()
}

fn ip4(text: &str) -> Prefix<u32> {
    let (address, length) = text.split_once('/').unwrap();
    Prefix::new(address.parse::<Ipv4Addr>().unwrap().into(), length.parse().unwrap()).unwrap()
}

fn find(reader: &mut Reader<u32>, address: &str) -> u32 {
    reader.pass().lookup(address.parse::<Ipv4Addr>().unwrap().into(), 0).index()
}

fn expected<A: Address>(reference: &Reference, address: A) -> NextHop {
    reference.lookup(address).and_then(Via::next_hop).unwrap_or(NextHop::NONE)
}

/// Compares single and bulk lookups of `addresses` with the reference.
fn compare<A: Address>(reader: &mut Reader<A>, reference: &Reference, addresses: &[A]) {
    let mut hops = vec![NextHop::NONE; addresses.len()];
    let mut pass = reader.pass();
    pass.lookup_bulk(addresses, |_| 0, &mut hops);
    for (address, hop) in addresses.iter().zip(hops) {
        let expected = expected(reference, *address);
        assert_eq!((pass.lookup(*address, 0), hop), (expected, expected), "{address:x?}");
    }
}

/// What makes numbers of the two families.
trait Draw: Address {
    fn draw(random: &mut Random) -> Self;
    fn lowest(self, bits: u8) -> Self;
    fn flip(self, bit: u8) -> Self;
    fn or(self, other: Self) -> Self;
}

macro_rules! draw {
    ($address:ty) => {
        impl Draw for $address {
            fn draw(random: &mut Random) -> Self {
                (u128::from(random.bits()) << 64 | u128::from(random.bits())) as Self
            }
            fn lowest(self, bits: u8) -> Self {
                self & !self.network(Self::WIDTH - bits)
            }
            fn flip(self, bit: u8) -> Self {
                self ^ (1 << (Self::WIDTH - 1 - bit))
            }
            fn or(self, other: Self) -> Self {
                self | other
            }
        }
    };
}
draw!(u32);
draw!(u128);

/// Random routes come and go, most of them close together, with lookups between.
fn random_updates<A: Draw>(seed: u64, updates: usize, lengths: &[u8]) {
    let (mut fib, mut reference, mut random) = (table::<A>(), Reference::default(), Random::new(seed));
    let mut reader = fib.reader();
    let mut present: Vec<Prefix<A>> = Vec::new();
    let near = A::draw(&mut random);
    let default = prefix(A::draw(&mut random), 0);
    for update in 0..updates {
        // The default route comes once and goes once, since it fills the whole root.
        if update == updates / 4 {
            reference.insert(default, hop(7).into());
            assert_eq!(fib.insert(default, hop(7)).unwrap(), None);
        } else if update == updates / 2 {
            assert_eq!(fib.withdraw(default), reference.withdraw(default));
        } else if !present.is_empty() && random.below(5) < 2 {
            let gone = present.swap_remove(random.below(present.len()));
            assert_eq!(fib.withdraw(gone), reference.withdraw(gone));
        } else {
            let length = lengths[random.below(lengths.len())];
            // Half of them differ in the last bits only, where many share nodes.
            let far = A::draw(&mut random);
            let address =
                if random.below(2) == 0 { far } else { near.network(A::WIDTH - 14).or(far.lowest(14)) };
            let prefix = prefix(address, length);
            let via = Via::from(hop(1 + random.below(1000) as u32));
            let before = reference.insert(prefix, via);
            assert_eq!(fib.insert(prefix, via).unwrap(), before);
            if before.is_none() {
                present.push(prefix);
            }
        }
        if update % 64 == 0 {
            let mut draw = |_| {
                let far = A::draw(&mut random);
                match (random.below(4), present.is_empty()) {
                    (0, _) | (_, true) => far,
                    (1, _) => near.network(A::WIDTH - 14).or(far.lowest(14)),
                    // Within a route, or just outside it.
                    (which, _) => {
                        let route = present[random.below(present.len())];
                        let inside = route.address().or(far.lowest(A::WIDTH - route.length()));
                        let flip = which == 3 && route.length() > 0;
                        if flip { inside.flip(route.length() - 1) } else { inside }
                    }
                }
            };
            let addresses: Vec<A> = (0..300).map(&mut draw).collect();
            compare(&mut reader, &reference, &addresses);
        }
    }
    assert_eq!(fib.usage().routes, present.len());
    assert!(fib.routes().all(|(prefix, via)| fib.get(prefix) == Some(via)));
    for prefix in present {
        fib.withdraw(prefix).unwrap();
    }
    assert_eq!((fib.usage().routes, fib.usage().nodes), (0, 0));
    let addresses: Vec<A> = (0..1000).map(|_| A::draw(&mut random)).collect();
    compare(&mut reader, &Reference::default(), &addresses);
}

#[test]
fn ipv4_routes_come_and_go_as_in_the_reference() {
    let lengths: Vec<u8> = (12..=32).chain([24, 24, 24]).collect();
    random_updates::<u32>(4, 100_000 * MANY, &lengths);
}

#[test]
fn ipv6_routes_come_and_go_as_in_the_reference() {
    let lengths: Vec<u8> = (19..=64).chain(110..=128).chain([48; 20]).collect();
    random_updates::<u128>(6, 60_000 * MANY, &lengths);
}

/// Prefixes that often hold each other.
fn close<A: Draw>() -> impl Strategy<Value = (Prefix<A>, u32)> {
    let length = prop_oneof![1 => 8..=A::WIDTH, 5 => 20..=32u8, 2 => Just(A::WIDTH)];
    (any::<u64>(), 0..3u8, length, 1..50u32).prop_map(|(seed, bits, length, via)| {
        let base = A::draw(&mut Random::new(1));
        let address = base.flip(19 + bits).or(A::draw(&mut Random::new(seed % 64)).lowest(A::WIDTH - 20));
        (prefix(address, length), via)
    })
}

fn any_sequence<A: Draw>(routes: &[(Prefix<A>, u32)], withdrawn: &[prop::sample::Index]) {
    let (mut fib, mut reference) = (table::<A>(), Reference::default());
    let mut reader = fib.reader();
    let edges: Vec<A> = routes
        .iter()
        .flat_map(|(prefix, _)| {
            let (first, length) = (prefix.address(), prefix.length());
            let last = (length..A::WIDTH).fold(first, |address, bit| address.flip(bit));
            [first, last, first.flip(length - 1), last.flip(length - 1)]
        })
        .collect();
    for (prefix, via) in routes {
        let via = hop(*via).into();
        assert_eq!(fib.insert(*prefix, via).unwrap(), reference.insert(*prefix, via));
    }
    compare(&mut reader, &reference, &edges);
    for index in withdrawn {
        let (prefix, _) = index.get(routes);
        assert_eq!(fib.withdraw(*prefix), reference.withdraw(*prefix));
        compare(&mut reader, &reference, &edges);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_ipv4_sequence_ends_as_in_the_reference(
        routes in prop::collection::vec(close::<u32>(), 1..40),
        withdrawn in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        any_sequence(&routes, &withdrawn);
    }

    #[test]
    fn any_ipv6_sequence_ends_as_in_the_reference(
        routes in prop::collection::vec(close::<u128>(), 1..40),
        withdrawn in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        any_sequence(&routes, &withdrawn);
    }
}

#[test]
fn a_covering_route_comes_back() {
    let mut fib = table();
    let mut reader = fib.reader();
    assert_eq!(find(&mut reader, "10.1.2.3"), 0);
    for (text, via) in [("0.0.0.0/0", 1), ("10.0.0.0/8", 2), ("10.1.2.0/24", 3), ("10.1.2.3/32", 4)] {
        assert_eq!(fib.insert(ip4(text), hop(via)).unwrap(), None);
        assert_eq!(find(&mut reader, "10.1.2.3"), via);
    }
    assert_eq!(find(&mut reader, "10.1.2.2"), 3);
    assert_eq!(fib.withdraw(ip4("10.1.2.0/24")), Some(hop(3).into()));
    assert_eq!((find(&mut reader, "10.1.2.3"), find(&mut reader, "10.1.2.2")), (4, 2));
    assert_eq!(fib.insert(ip4("10.1.2.3/32"), hop(5)).unwrap(), Some(hop(4).into()));
    assert_eq!(find(&mut reader, "10.1.2.3"), 5);
    fib.withdraw(ip4("10.1.2.3/32")).unwrap();
    fib.withdraw(ip4("10.0.0.0/8")).unwrap();
    assert_eq!((find(&mut reader, "10.1.2.3"), fib.usage().nodes), (1, 0));
    fib.withdraw(ip4("0.0.0.0/0")).unwrap();
    assert_eq!((find(&mut reader, "10.1.2.3"), fib.withdraw(ip4("0.0.0.0/0"))), (0, None));
}

#[test]
fn a_full_table_refuses_and_stays_as_it_is() {
    let mut fib = Fib::new(Capacity { nodes: 1, groups: 1 }).unwrap();
    let mut reader = fib.reader();
    fib.insert(ip4("10.0.0.0/25"), hop(1)).unwrap();
    assert!(matches!(fib.insert(ip4("10.0.1.0/25"), hop(2)), Err(Error::Full { capacity: 1, .. })));
    assert_eq!((find(&mut reader, "10.0.1.1"), fib.usage().routes), (0, 1));
    fib.withdraw(ip4("10.0.0.0/25")).unwrap();
    fib.insert(ip4("10.0.1.0/25"), hop(2)).unwrap();
    assert_eq!((find(&mut reader, "10.0.0.1"), find(&mut reader, "10.0.1.1")), (0, 2));

    // IPv6 needs several nodes for one route: none of them stays when the last is missing.
    let mut fib = Fib::new(Capacity { nodes: 10, groups: 1 }).unwrap();
    assert!(matches!(fib.insert(prefix(1u128, 128), hop(1)), Err(Error::Full { .. })));
    assert_eq!((fib.usage().nodes, fib.usage().routes), (0, 0));
}

#[test]
fn what_a_pass_may_be_in_is_not_used_again() {
    let mut fib = table();
    let mut reader = fib.reader();
    fib.insert(ip4("10.0.0.0/24"), hop(1)).unwrap();
    fib.insert(ip4("10.0.0.0/25"), hop(2)).unwrap();
    let bytes = fib.usage().bytes;
    let pass = reader.pass();
    fib.withdraw(ip4("10.0.0.0/25")).unwrap();
    assert_eq!((fib.usage().nodes, fib.usage().retired), (0, 1));
    fib.insert(ip4("10.0.1.0/25"), hop(3)).unwrap();
    assert!(fib.usage().bytes > bytes && fib.usage().retired == 1);
    drop(pass);
    let bytes = fib.usage().bytes;
    fib.insert(ip4("10.0.2.0/25"), hop(4)).unwrap();
    assert!(fib.usage().bytes == bytes && fib.usage().retired == 0);
}

#[test]
fn groups_spread_flows_evenly_and_move_few() {
    let mut fib = table();
    let mut reader = fib.reader();
    let group = fib.add_group(&[hop(1), hop(2), hop(3)]).unwrap();
    fib.insert(ip4("10.0.0.0/8"), group).unwrap();
    let addresses = [0x0a00_0001u32; 3 * 256];
    let mut look = || {
        let mut hops = [NextHop::NONE; 3 * 256];
        reader.pass().lookup_bulk(&addresses, |at| at as u32, &mut hops);
        assert_eq!(reader.pass().lookup(addresses[0], 299), hops[299]);
        hops
    };
    let count = |hops: &[NextHop], index| hops.iter().filter(|found| **found == hop(index)).count();
    let before = look();
    assert_eq!([1, 2, 3].map(|index| count(&before, index)), [258, 255, 255]);
    fib.set_group(group, &[hop(1), hop(3)]).unwrap();
    let after = look();
    assert!(before.iter().zip(&after).all(|(old, new)| old == new || *old == hop(2)));
    assert_eq!([1, 2, 3].map(|index| count(&after, index)), [384, 0, 384]);

    assert!(matches!(fib.remove_group(group), Err(Error::GroupInUse { routes: 1, .. })));
    assert_eq!(fib.insert(ip4("10.0.0.0/8"), hop(9)).unwrap(), Some(group.into()));
    fib.remove_group(group).unwrap();
    assert!(matches!(fib.insert(ip4("10.0.0.0/8"), group), Err(Error::NoGroup { .. })));
    assert!(matches!(fib.set_group(group, &[hop(1)]), Err(Error::NoGroup { .. })));
    assert!(matches!(fib.add_group(&[]), Err(Error::Members { count: 0 })));
    assert_eq!(fib.usage().groups, 0);
}

/// Networks 10.0.N.0/24 go through next hop 1 + 2N; of each, a part goes through 2 + 2N now and then.
/// Nodes wander from network to network meanwhile, which a reader must never notice.
#[test]
fn readers_see_the_old_next_hop_or_the_new_one() {
    const NETWORKS: u32 = 64;
    const TIME: Duration = Duration::from_millis(1_500);
    let mut fib = table();
    let network = |number: u32| 10 << 24 | number << 8;
    for number in 0..NETWORKS {
        fib.insert(prefix(network(number), 24), hop(1 + 2 * number)).unwrap();
    }
    let addresses: Vec<u32> =
        (0..NETWORKS).flat_map(|number| [1, 17, 200, 31].map(|host| network(number) | host)).collect();
    let (stop, seen_new, passes) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let mut updates = 0;
    thread::scope(|scope| {
        for reader in [fib.reader(), fib.reader()] {
            scope.spawn(|| {
                let mut reader = reader;
                let mut hops = vec![NextHop::NONE; addresses.len()];
                while !stop.load(Ordering::Relaxed) {
                    reader.pass().lookup_bulk(&addresses, |_| 0, &mut hops);
                    for (address, found) in addresses.iter().zip(&hops) {
                        let (number, host) = (address >> 8 & 0xff, address & 0xff);
                        let is_new = (16..32).contains(&host) && *found == hop(2 + 2 * number);
                        assert!(is_new || *found == hop(1 + 2 * number), "{address:x} {found:?}");
                        seen_new.fetch_add(u64::from(is_new), Ordering::Relaxed);
                    }
                    passes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let (mut random, end) = (Random::new(1), Instant::now() + TIME);
        while Instant::now() < end {
            let part = prefix(network(random.below(NETWORKS as usize) as u32) | 16, 28);
            let gone = fib.withdraw(part);
            if gone.is_none() {
                fib.insert(part, hop(2 + 2 * (part.address() >> 8 & 0xff))).unwrap();
            }
            updates += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
    let usage = fib.usage();
    let touched = usage.bytes - table::<u32>().usage().bytes;
    assert!(seen_new.into_inner() > 0 && passes.into_inner() > 100 && updates > 1_000);
    // Nodes were used again and again, though readers were always about.
    assert!(touched / 1024 < updates / 4, "{touched} bytes of nodes after {updates} updates");
}
