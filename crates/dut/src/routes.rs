//! A table of routes like the Internet's: how many are wanted enters; prefixes leave, each with the number of its
//! gateway, the same on every machine.

use std::collections::HashSet;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

use lab::Side;
use stats::Random;

use super::spec::Parameters;
use super::{Parameter, SpecError};

/// The most routes of a table.
const MOST: usize = 1_000_000;
/// Gateways that the routes lead to, by the same link.
pub(crate) const GATEWAYS: u8 = 16;
/// Of a million prefixes of the Internet, how many have which length.
const LENGTHS: [(u8, usize); 17] = [
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
/// Networks that no prefix of a table begins in: those of the lab, and what nobody may send to.
const KEPT: [([u8; 4], u8); 8] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([16, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([198, 18, 0, 0], 15),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];
/// A network of the lab at port 1, which has a route already.
const TAKEN: (Ipv4Addr, u8) = (Ipv4Addr::new(48, 0, 0, 0), 8);

/// The parameter that gives a router such a table.
pub(crate) const ROUTES: Parameter = Parameter {
    key: "routes",
    values: "a number from 1 to 1M, such as 100k, and only where it routes without a jail",
    meaning: "routes to port 1 whose prefixes have the lengths of the Internet's, the first of them the default route (default none)",
};

/// A route of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The first address of its prefix.
    pub network: Ipv4Addr,
    /// The length of its prefix.
    pub length: u8,
    /// The number of its gateway, below [`GATEWAYS`].
    pub gateway: u8,
}

/// How many routes a table is to have that `parameters` may ask for of a router.
pub(crate) fn read(parameters: &Parameters, routes: bool) -> Result<Option<usize>, SpecError> {
    parameters.get(ROUTES.key, |text| count(text).filter(|_| routes))
}

/// Reads a number of routes, like `100k`.
pub(crate) fn count(text: &str) -> Option<usize> {
    scaled(text).filter(|count| (1..=MOST).contains(count))
}

/// Reads a number, like `100k` or `2M`.
pub(crate) fn scaled(text: &str) -> Option<usize> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1_000_000)),
    };
    let number = digits.parse::<usize>().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    number.checked_mul(unit)
}

/// A table of `count` routes, at most a million: the default route, and prefixes from 1.0.0.0 to 223.255.255.255.
pub(crate) fn table(count: usize) -> Vec<Route> {
    let mut random = Random::new(4);
    let mut seen = HashSet::from([TAKEN]);
    let mut routes = Vec::with_capacity(count);
    routes.push(Route { network: Ipv4Addr::UNSPECIFIED, length: 0, gateway: 0 });
    for (length, wanted) in shares(count.saturating_sub(1)) {
        let enough = routes.len() + wanted;
        while routes.len() < enough {
            let address = 0x0100_0000 + random.below(0xdf00_0000) as u32;
            let network = Ipv4Addr::from_bits(first(address, length));
            if !is_kept(address) && seen.insert((network, length)) {
                let gateway = random.below(GATEWAYS.into()) as u8;
                routes.push(Route { network, length, gateway });
            }
        }
    }
    routes
}

/// The address of a gateway beyond the device's interface at `side`: the tester's own, and those after it.
pub(crate) fn gateway(side: Side, number: u8) -> IpAddr {
    match side.port_addresses[0] {
        IpAddr::V4(own) => Ipv4Addr::from_bits(own.to_bits() + u32::from(number)).into(),
        other => other,
    }
}

/// The table as text: for each route the words that `write` makes of it and of the address of its gateway at `side`.
pub(crate) fn text(count: usize, side: Side, write: impl Fn(&Route, IpAddr) -> String) -> String {
    let mut text = String::new();
    for route in table(count) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", write(&route, gateway(side, route.gateway)));
    }
    text
}

/// How many of `count` prefixes have which length: as in the million, those with the largest remainders rounded up.
fn shares(count: usize) -> Vec<(u8, usize)> {
    let exact = LENGTHS.map(|(length, of_million)| (length, count * of_million));
    let mut shares: Vec<_> = exact.map(|(length, exact)| (length, exact / MOST)).into();
    let missing = count - shares.iter().map(|(_, share)| share).sum::<usize>();
    let mut by_remainder: Vec<_> = (0..exact.len()).collect();
    by_remainder.sort_by_key(|at| std::cmp::Reverse(exact[*at].1 % MOST));
    for at in by_remainder.into_iter().take(missing) {
        shares[at].1 += 1;
    }
    shares
}

fn is_kept(address: u32) -> bool {
    KEPT.into_iter().any(|(network, length)| first(address, length) == u32::from_be_bytes(network))
}

/// The first address of the prefix of this length, above 0, that holds an address.
fn first(address: u32, length: u8) -> u32 {
    address & (u32::MAX << (32 - length))
}

#[cfg(test)]
mod tests {
    use lab::SIDES;

    use super::*;

    #[test]
    fn numbers_are_read_with_their_units() {
        for (text, number) in [
            ("1", Some(1)),
            ("1000", Some(1000)),
            ("100k", Some(100_000)),
            ("1M", Some(1_000_000)),
            ("0", None),
            ("", None),
            ("k", None),
            ("+1k", None),
            ("1001k", None),
            ("2M", None),
            ("1.5k", None),
            ("18446744073709551615M", None),
        ] {
            assert_eq!(count(text), number, "{text}");
        }
    }

    #[test]
    fn prefixes_have_the_lengths_of_the_internets() {
        assert_eq!(LENGTHS.iter().map(|(_, count)| count).sum::<usize>(), MOST);
        assert_eq!(shares(MOST), LENGTHS);
        for count in [0, 1, 2, 999, 99_999, MOST - 1] {
            let shares = shares(count);
            assert_eq!(shares.iter().map(|(_, share)| share).sum::<usize>(), count);
            let is_near =
                |(share, of_million): (usize, usize)| share.abs_diff(of_million * count / MOST) <= 1;
            assert!(shares.iter().zip(LENGTHS).all(|(share, of)| is_near((share.1, of.1))), "{shares:?}");
        }
        let routes = table(50_000);
        let of_length = |length| routes.iter().filter(|route| route.length == length).count();
        assert_eq!((of_length(0), of_length(22), of_length(24)), (1, 6_000, 30_499));
        let gateways: HashSet<u8> = routes.iter().map(|route| route.gateway).collect();
        assert_eq!(gateways, (0..GATEWAYS).collect());
    }

    #[test]
    fn every_table_has_as_many_different_prefixes_as_wanted_and_none_is_the_labs() {
        for count in [1, 2, 10, 1_000, 20_000] {
            let routes = table(count);
            let prefixes: HashSet<_> = routes.iter().map(|route| (route.network, route.length)).collect();
            assert_eq!((routes.len(), prefixes.len()), (count, count));
            assert_eq!((routes[0].network, routes[0].length), (Ipv4Addr::UNSPECIFIED, 0));
            assert_eq!(routes, table(count), "the same again");
            for route in &routes[1..] {
                assert_eq!(
                    first(route.network.to_bits(), route.length),
                    route.network.to_bits(),
                    "{route:?}"
                );
                assert!((1..224).contains(&route.network.octets()[0]), "{route:?}");
                assert!(!prefixes.contains(&TAKEN) && route.gateway < GATEWAYS);
            }
        }
        for address in [[16, 9, 9, 9], [100, 65, 1, 2], [127, 0, 0, 1], [198, 19, 0, 1], [224, 0, 0, 5]] {
            assert!(is_kept(u32::from_be_bytes(address)), "{address:?}");
        }
        assert!(!is_kept(u32::from_be_bytes([48, 1, 2, 3])) && !is_kept(u32::from_be_bytes([198, 20, 0, 0])));
    }

    #[test]
    fn gateways_are_hosts_of_the_link() {
        let [zero, one] = SIDES;
        assert_eq!(gateway(one, 0), one.port_addresses[0]);
        assert_eq!(gateway(one, 15).to_string(), "100.65.2.17");
        assert_eq!(gateway(zero, 1).to_string(), "100.65.1.3");
        let lines = text(2, one, |route, gateway| format!("{}/{} {gateway}", route.network, route.length));
        assert!(lines.starts_with("0.0.0.0/0 100.65.2.2\n") && lines.lines().count() == 2, "{lines}");
    }
}
