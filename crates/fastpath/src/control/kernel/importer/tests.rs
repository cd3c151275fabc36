//! Against a plain map of routes.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use wire::MacAddress;

use super::*;
use crate::control::kernel::Hop as KernelHop;

/// The kernel's indices of the router's two interfaces.
const INDICES: [u32; 2] = [11, 12];
/// An interface that only the kernel has.
const ELSEWHERE: u32 = 13;

/// A router with two interfaces, 10.0.0.1/24 and 10.0.1.1/24 and the like of IPv6, joined with the kernel's.
fn router() -> (Router, Importer) {
    let (mut router, mut importer) = (Router::new().unwrap(), Importer::default());
    for (number, index) in (0..).zip(INDICES) {
        let mac = MacAddress([2, 0, 0, 0, 0, number]);
        let interface = router.add_device(&format!("port{number}"), mac, 1500).unwrap();
        router.add_address(interface, [10, 0, number, 1].into(), 24).unwrap();
        router.add_address(interface, format!("2001:db8:{number}::1").parse().unwrap(), 64).unwrap();
        importer.join(index, interface);
    }
    (router, importer)
}

fn prefix4(text: &str) -> Prefix<u32> {
    let (address, length) = text.split_once('/').unwrap();
    Prefix::new(address.parse::<Ipv4Addr>().unwrap().to_bits(), length.parse().unwrap()).unwrap()
}

fn route4(prefix: &str, path: Option<Path>) -> Change {
    Change::Route4(RouteChange { prefix: prefix4(prefix), path: path.map(Arc::new) })
}

fn through(hops: &[(u32, Option<[u8; 4]>, u16)]) -> Option<Path> {
    let hop = |(interface, gateway, weight): &(u32, Option<[u8; 4]>, u16)| KernelHop {
        interface: *interface,
        gateway: gateway.map(IpAddr::from),
        weight: *weight,
    };
    Some(Path::through(hops.iter().map(hop).collect()))
}

/// Of 256 flows to an address, how many take each hop.
fn shares(router: &Router, address: [u8; 4]) -> Vec<(Hop, usize)> {
    let mut reader = router.ip4();
    let pass = reader.pass();
    let mut shares: Vec<(Hop, usize)> = Vec::new();
    for flow in 0..256 {
        let index = pass.lookup(u32::from_be_bytes(address), flow).index();
        let hop = router.forwarding().adjacencies[index as usize].hop;
        match shares.iter_mut().find(|(other, _)| *other == hop) {
            Some((_, count)) => *count += 1,
            None => shares.push((hop, 1)),
        }
    }
    shares.sort_by_key(|(_, count)| *count);
    shares
}

#[test]
fn every_kind_of_route_leads_where_it_should() {
    let (mut router, importer) = router();
    let first = Hop::Neighbour(0, [10, 0, 0, 2].into());
    let second = Hop::Neighbour(1, [10, 0, 1, 2].into());
    let [one, two] = [(INDICES[0], Some([10, 0, 0, 2])), (INDICES[1], Some([10, 0, 1, 2]))];
    let cases = [
        (through(&[(one.0, one.1, 1)]), vec![(first, 256)]),
        (through(&[(one.0, one.1, 1), (two.0, two.1, 3)]), vec![(first, 64), (second, 192)]),
        (through(&[(INDICES[1], None, 1)]), vec![(Hop::Glean(1, [10, 0, 1, 1].into()), 256)]),
        (through(&[(ELSEWHERE, Some([10, 9, 9, 9]), 1), (ELSEWHERE, None, 1)]), vec![(Hop::Punt, 256)]),
        (Some(Path::Kernel), vec![(Hop::Punt, 256)]),
        (Some(Path::Blackhole), vec![(Hop::Drop(Reason::Ip4Blackhole), 256)]),
        (Some(Path::Unreachable), vec![(Hop::Drop(Reason::Ip4Unreachable), 256)]),
        (Some(Path::Prohibit), vec![(Hop::Drop(Reason::Ip4Prohibited), 256)]),
        (None, vec![(Hop::Drop(Reason::Ip4NoRoute), 256)]),
    ];
    for (path, expected) in cases {
        importer.apply(&route4("192.0.2.0/24", path.clone()), &mut router).unwrap();
        assert_eq!(shares(&router, [192, 0, 2, 9]), expected, "{path:?}");
    }
    // The router has no gateways of the other kind.
    let gateway = Some("2001:db8::2".parse().unwrap());
    let other = Path::through(vec![KernelHop { interface: INDICES[0], gateway, weight: 1 }]);
    importer.apply(&route4("0.0.0.0/0", Some(other)), &mut router).unwrap();
    assert_eq!(shares(&router, [8, 8, 8, 8]), [(Hop::Punt, 256)]);
}

#[test]
fn an_ipv6_route_comes_and_goes() {
    let (mut router, importer) = router();
    let gateway: IpAddr = "fe80::7".parse().unwrap();
    let prefix = Prefix::new(u128::from(Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 0)), 48).unwrap();
    let path = Path::through(vec![KernelHop { interface: INDICES[1], gateway: Some(gateway), weight: 1 }]);
    let mut change = RouteChange { prefix, path: Some(Arc::new(path)) };
    importer.apply(&Change::Route6(change.clone()), &mut router).unwrap();
    let index = router.ip6().pass().lookup(prefix.address() + 5, 0).index();
    assert_eq!(router.forwarding().adjacencies[index as usize].hop, Hop::Neighbour(1, gateway));
    change.path = None;
    importer.apply(&Change::Route6(change), &mut router).unwrap();
    assert_eq!(router.ip6().pass().lookup(prefix.address() + 5, 0).index(), 0);
}

#[test]
fn what_is_the_routers_own_stays() {
    let (mut router, importer) = router();
    for prefix in ["10.0.0.0/24", "10.0.0.1/32", "10.0.0.255/32", "127.0.0.0/8", "224.0.0.0/4", "0.0.0.0/8"] {
        let address = prefix4(prefix).address().to_be_bytes();
        let before = shares(&router, address);
        for path in [Some(Path::Blackhole), None] {
            importer.apply(&route4(prefix, path), &mut router).unwrap();
            assert_eq!(shares(&router, address), before, "{prefix}");
        }
    }
    // A longer prefix on a subnet is nobody's own.
    importer.apply(&route4("10.0.0.128/25", Some(Path::Blackhole)), &mut router).unwrap();
    assert_eq!(shares(&router, [10, 0, 0, 129]), [(Hop::Drop(Reason::Ip4Blackhole), 256)]);
}

fn paths() -> impl Strategy<Value = Option<Path>> {
    let hops = vec((0..2usize, 2..5u8, 1..4u16), 1..4);
    let through = hops.prop_map(|hops| {
        let hops =
            hops.into_iter().map(|(at, host, weight)| (INDICES[at], Some([10, 0, at as u8, host]), weight));
        through(&hops.collect::<Vec<_>>())
    });
    prop_oneof![6 => through, 1 => Just(Some(Path::Blackhole)), 3 => Just(None)]
}

proptest! {
    // A router takes some milliseconds to make.
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn the_router_has_the_routes_that_the_kernel_has(changes in vec((0..6u8, paths()), 0..100)) {
        let (mut router, importer) = router();
        let mut routes: BTreeMap<u8, Path> = BTreeMap::new();
        for (number, path) in changes {
            importer.apply(&route4(&format!("192.0.{number}.0/24"), path.clone()), &mut router).unwrap();
            match path {
                Some(path) => drop(routes.insert(number, path)),
                None => drop(routes.remove(&number)),
            }
        }
        for number in 0..6 {
            let expected = match routes.get(&number) {
                Some(path) => importer.hops(path, prefix4(&format!("192.0.{number}.0/24")), &router),
                None => vec![Hop::Drop(Reason::Ip4NoRoute)],
            };
            let shares = shares(&router, [192, 0, number, 1]);
            prop_assert!(expected.iter().all(|hop| shares.iter().any(|(other, _)| other == hop)));
            for (hop, count) in shares {
                let places = expected.iter().filter(|other| **other == hop).count();
                prop_assert!((count * expected.len()).abs_diff(256 * places) <= expected.len() * places);
            }
        }
    }
}
