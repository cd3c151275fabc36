//! The routes of a router, to be looked at: a family and what is asked for enter, routes and their hops
//! leave.

use std::collections::BinaryHeap;
use std::net::IpAddr;

use super::{Hop, Router, Source};
use crate::fib::{Address, Fib, Prefix, Usage, Via};

/// What routes are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<A> {
    /// All.
    All,
    /// Those of a prefix and of longer ones within it.
    Within(Prefix<A>),
    /// The one that packets to an address take.
    To(A),
}

/// Hops, and how many of 256 flows take each.
pub type Shares = Vec<(Hop, usize)>;

/// A route that packets take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<A> {
    /// Of which destinations.
    pub prefix: Prefix<A>,
    /// Who says so.
    pub source: Source,
    /// What they go by.
    pub hops: Shares,
}

/// Routes, the first ones by prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes<A> {
    /// Those that there is room for.
    pub routes: Vec<Listed<A>>,
    /// How many there are besides.
    pub more: usize,
    /// What the table uses.
    pub usage: Usage,
}

impl Router {
    /// The IPv4 routes that are asked for, at most so many.
    #[must_use]
    pub fn routes4(&self, asked: Asked<u32>, most: usize) -> Routes<u32> {
        self.routes(&self.ip4.fib, asked, most)
    }

    /// The IPv6 routes that are asked for, at most so many.
    #[must_use]
    pub fn routes6(&self, asked: Asked<u128>, most: usize) -> Routes<u128> {
        self.routes(&self.ip6.fib, asked, most)
    }

    fn routes<A: Address>(&self, fib: &Fib<A>, asked: Asked<A>, most: usize) -> Routes<A> {
        // The greatest of those that were found so far goes when there is a lesser one.
        let mut first = BinaryHeap::new();
        let mut found = 0;
        let mut note = |prefix: Prefix<A>| {
            found += 1;
            first.push(prefix);
            if first.len() > most {
                first.pop();
            }
        };
        match asked {
            Asked::All => fib.routes().for_each(|(prefix, _)| note(prefix)),
            Asked::Within(whole) => {
                let is_within = |prefix: &Prefix<A>| {
                    prefix.length() >= whole.length()
                        && prefix.address().network(whole.length()) == whole.address()
                };
                fib.routes().map(|(prefix, _)| prefix).filter(is_within).for_each(note);
            }
            Asked::To(address) => longest(fib, address).into_iter().for_each(note),
        }
        let listed = |prefix| {
            let via = fib.get(prefix)?;
            Some(Listed { prefix, source: Source::of_mark(via.mark()), hops: self.hops(fib, via) })
        };
        let routes: Vec<_> = first.into_sorted_vec().into_iter().filter_map(listed).collect();
        Routes { more: found - routes.len(), routes, usage: fib.usage() }
    }

    fn hops<A: Address>(&self, fib: &Fib<A>, via: Via) -> Shares {
        let shares = fib.shares(via).into_iter();
        let hop = |index: u32| self.forwarding.adjacencies.get(index as usize).map(|adjacency| adjacency.hop);
        shares.filter_map(|(next, share)| Some((hop(next.index())?, share))).collect()
    }

    /// Whether the address of a neighbour was set by hand, where it is known.
    #[must_use]
    pub fn is_set(&self, interface: u16, address: IpAddr) -> Option<bool> {
        self.neighbours.get(&(interface, address)).map(|neighbour| !neighbour.learned)
    }
}

/// The longest prefix with a route that holds an address.
pub(super) fn longest<A: Address>(fib: &Fib<A>, address: A) -> Option<Prefix<A>> {
    let prefixes =
        (0..=A::WIDTH).rev().filter_map(|length| Prefix::new(address.network(length), length).ok());
    let mut prefixes = prefixes.filter(|prefix| fib.get(*prefix).is_some());
    prefixes.next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::counters::Reason;
    use std::net::Ipv4Addr;

    fn prefix(text: &str) -> Prefix<u32> {
        let (address, length) = text.split_once('/').unwrap();
        Prefix::new(address.parse::<Ipv4Addr>().unwrap().to_bits(), length.parse().unwrap()).unwrap()
    }

    #[test]
    fn routes_are_found_by_prefix_and_address_in_their_order() {
        let mut router = Router::new().unwrap();
        let interface = router.add_device("lan", wire::MacAddress([2, 0, 0, 0, 0, 1]), 1500).unwrap();
        let usual = router.routes4(Asked::All, 1000).routes.len();
        let hop = |last| Hop::Neighbour(interface, IpAddr::from([10, 0, 0, last]));
        router.add_route(prefix("16.0.0.0/8"), &[hop(2), hop(3), hop(3), hop(3)]).unwrap();
        router.add_route(prefix("16.1.0.0/16"), &[Hop::Drop(Reason::Ip4Blackhole)]).unwrap();
        router.add_route(prefix("9.0.0.0/8"), &[hop(2)]).unwrap();
        let all = router.routes4(Asked::All, 2);
        assert_eq!((all.routes.len(), all.more), (2, usual + 1));
        let named = |at: usize| (all.routes[at].prefix, all.routes[at].source);
        assert_eq!(named(0), (prefix("0.0.0.0/8"), Source::Reserved));
        assert_eq!(named(1), (prefix("9.0.0.0/8"), Source::Configured));
        let listed = |text, hops: &[_]| {
            let source = Source::Configured;
            Listed { prefix: prefix(text), source, hops: hops.to_vec() }
        };
        let within = router.routes4(Asked::Within(prefix("16.0.0.0/8")), 10);
        assert_eq!(
            within.routes,
            [
                listed("16.0.0.0/8", &[(hop(2), 64), (hop(3), 192)]),
                listed("16.1.0.0/16", &[(Hop::Drop(Reason::Ip4Blackhole), 256)]),
            ]
        );
        let usage = router.routes4(Asked::All, 0).usage;
        assert_eq!((usage.routes, usage.groups), (usual + 3, 1));
        let to = |address: [u8; 4]| router.routes4(Asked::To(u32::from_be_bytes(address)), 10).routes;
        assert_eq!(to([16, 1, 2, 3])[0].prefix, prefix("16.1.0.0/16"));
        assert_eq!(to([16, 2, 2, 3])[0].prefix, prefix("16.0.0.0/8"));
        assert_eq!(to([17, 2, 2, 3]), []);
        assert!(router.routes6(Asked::To(1), 10).routes.len() == 1);
        router.add_route(prefix("16.0.0.0/8"), &[hop(2), hop(3)]).unwrap();
        assert_eq!(router.routes4(Asked::All, 0).usage.groups, 1, "the one before was given back");
        assert!(router.withdraw_route(prefix("16.0.0.0/8")).unwrap());
        assert_eq!(router.routes4(Asked::All, 0).usage.groups, 0);
    }
}
