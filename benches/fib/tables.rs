//! Tables as large as the Internet's, the same on every machine.

use std::collections::HashSet;

use fastpath::fib::Address;
use stats::random::Random;

/// Next hops of all routes: 1 to this.
pub const HOPS: usize = 16;

/// A table, and one destination inside each of its prefixes.
pub struct Table<A> {
    /// Address, length and next hop, shuffled.
    pub routes: Vec<(A, u8, u32)>,
    /// Shuffled, too.
    pub destinations: Vec<A>,
}

/// Routes by length, as the Internet's: 17 lengths, 61 % of them /24, 12 % /22, 10 % /23.
const IP4: [(u8, usize); 17] = [
    (8, 16),
    (9, 14),
    (10, 40),
    (11, 100),
    (12, 300),
    (13, 580),
    (14, 1_200),
    (15, 2_050),
    (16, 13_700),
    (17, 8_400),
    (18, 14_000),
    (19, 25_600),
    (20, 46_000),
    (21, 58_000),
    (22, 120_000),
    (23, 100_000),
    (24, 610_000),
];

/// Beyond the Internet's: routes inside a network, 2 % of what is outside.
const IP4_LONG: [(u8, usize); 4] = [(26, 4_000), (28, 4_000), (30, 4_000), (32, 8_000)];

/// Routes by length, as the Internet's: 46 % of them /48, the rest /29 to /47.
const IP6: [(u8, usize); 12] = [
    (29, 5_500),
    (30, 700),
    (32, 26_000),
    (33, 3_500),
    (34, 3_000),
    (36, 13_500),
    (38, 2_300),
    (40, 27_500),
    (42, 6_500),
    (44, 29_500),
    (46, 17_000),
    (48, 115_000),
];

/// A million IPv4 routes, `long` with some longer than /24 among them.
pub fn ip4(long: bool) -> Table<u32> {
    let mut random = Random::new(4);
    let lengths = IP4.iter().chain(if long { &IP4_LONG[..] } else { &[] });
    // From 1.0.0.0 to 223.255.255.255.
    table(lengths, &mut Random::new(44), || (0x0100_0000 + random.below(0xdf00_0000)) as u32)
}

/// A quarter of a million IPv6 routes. They crowd together: 30,000 networks were given a /29 or /32 by
/// five registries, and prefixes that are longer lie within these.
pub fn ip6() -> Table<u128> {
    const REGISTRIES: [(u128, u8); 6] =
        [(0x2001, 16), (0x2400, 12), (0x2600, 12), (0x2800, 12), (0x2a00, 12), (0x2c00, 12)];
    let mut random = Random::new(6);
    let mut draw = || u128::from(random.bits()) << 64 | u128::from(random.bits());
    let networks: Vec<u128> = (0..30_000)
        .map(|at| {
            let (first, length) = REGISTRIES[at % REGISTRIES.len()];
            // Given out from the beginning of the registry's space.
            let within = (draw() & !u128::MAX.network(length)) >> 2;
            (first << 112 | within).network(32)
        })
        .collect();
    let mut chance = Random::new(7);
    let draw = || networks[chance.below(networks.len())] | (draw() >> 29 & !u128::MAX.network(29));
    table(IP6.iter(), &mut Random::new(66), draw)
}

fn table<'a, A: Address>(
    lengths: impl Iterator<Item = &'a (u8, usize)>,
    random: &mut Random,
    mut draw: impl FnMut() -> A,
) -> Table<A> {
    let mut seen = HashSet::new();
    let (mut routes, mut destinations) = (Vec::new(), Vec::new());
    for &(length, count) in lengths {
        let enough = routes.len() + count;
        while routes.len() < enough {
            let address = draw();
            if seen.insert((address.network(length), length)) {
                routes.push((address.network(length), length, 1 + random.below(HOPS) as u32));
                destinations.push(address);
            }
        }
    }
    shuffle(&mut routes, random);
    shuffle(&mut destinations, random);
    Table { routes, destinations }
}

fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for at in (1..items.len()).rev() {
        items.swap(at, random.below(at + 1));
    }
}
