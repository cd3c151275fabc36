//! Where routes come from, and whose counts: the sources of one prefix enter, in order of preference.

/// Who says where packets to a prefix go. Of several sources the first one in this order is followed; when
/// that has no route any more, the next one is. (Other routers call this administrative distance.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The router's own addresses and their networks.
    Connected,
    /// The configuration, as the control socket may have changed it.
    Configured,
    /// The kernel's table, into which routing daemons write.
    Kernel,
    /// Neighbours, of whose addresses interfaces have the networks.
    Neighbour,
    /// What nobody may send to, unless somebody above says otherwise.
    Reserved,
}

impl Source {
    /// All, in order of preference.
    pub const ALL: [Self; 5] =
        [Self::Connected, Self::Configured, Self::Kernel, Self::Neighbour, Self::Reserved];

    /// As users know it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Configured => "configured",
            Self::Kernel => "kernel",
            Self::Neighbour => "neighbour",
            Self::Reserved => "reserved",
        }
    }

    /// By which it is noted in a table.
    pub(super) fn mark(self) -> u8 {
        self as u8
    }

    /// The one of a mark.
    pub(super) fn of_mark(mark: u8) -> Self {
        Self::ALL.get(usize::from(mark)).copied().unwrap_or(Self::Reserved)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::net::{IpAddr, Ipv4Addr};

    use proptest::collection::vec;
    use proptest::prelude::*;
    use wire::MacAddress;

    use super::*;
    use crate::control::router::{Asked, Hop, Router};
    use crate::dataplane::counters::Reason;
    use crate::fib::Prefix;

    fn prefix(address: [u8; 4], length: u8) -> Prefix<u32> {
        Prefix::new(Ipv4Addr::from(address).to_bits(), length).unwrap()
    }

    /// The hops of the packets to an address.
    fn hops(router: &Router, address: [u8; 4]) -> BTreeSet<String> {
        let routes = router.routes4(Asked::To(u32::from_be_bytes(address)), 1).routes;
        routes.into_iter().flat_map(|route| route.hops).map(|(hop, _)| format!("{hop:?}")).collect()
    }

    fn only(hop: Hop) -> BTreeSet<String> {
        BTreeSet::from([format!("{hop:?}")])
    }

    #[test]
    fn every_source_is_known_by_its_mark() {
        assert!(Source::ALL.is_sorted());
        for source in Source::ALL {
            assert_eq!(Source::of_mark(source.mark()), source);
        }
    }

    #[test]
    fn when_the_better_route_goes_the_next_one_takes_over() {
        let mut router = Router::new().unwrap();
        let lan = router.add_device("lan", MacAddress([2, 0, 0, 0, 0, 1]), 1500).unwrap();
        let (ours, network) = (IpAddr::from([10, 0, 0, 1]), prefix([10, 0, 0, 0], 24));
        let drops = [Hop::Drop(Reason::Ip4Blackhole), Hop::Drop(Reason::Ip4Unreachable)];
        router.add_route_of(Source::Kernel, network, &drops[..1]).unwrap();
        assert_eq!(hops(&router, [10, 0, 0, 9]), only(drops[0]));
        router.add_route(network, &drops[1..]).unwrap();
        assert_eq!(hops(&router, [10, 0, 0, 9]), only(drops[1]));
        router.add_address(lan, ours, 24).unwrap();
        assert_eq!(hops(&router, [10, 0, 0, 9]), only(Hop::Glean(lan, ours)));
        // A hidden route changes and goes unseen.
        router.add_route_of(Source::Kernel, network, &[Hop::Punt]).unwrap();
        assert!(router.withdraw_route(network).unwrap() && !router.withdraw_route(network).unwrap());
        assert_eq!(hops(&router, [10, 0, 0, 9]), only(Hop::Glean(lan, ours)));
        router.remove_address(lan, ours).unwrap();
        assert_eq!(hops(&router, [10, 0, 0, 9]), only(Hop::Punt));
        assert!(router.withdraw_route_of(Source::Kernel, network).unwrap());
        assert_eq!(hops(&router, [10, 0, 0, 9]), BTreeSet::new());
    }

    #[test]
    fn a_neighbour_that_is_heard_of_does_not_hide_a_route_to_its_address() {
        let mut router = Router::new().unwrap();
        let lan = router.add_device("lan", MacAddress([2, 0, 0, 0, 0, 1]), 1500).unwrap();
        router.add_address(lan, [10, 0, 0, 1].into(), 24).unwrap();
        let (host, neighbour) = (prefix([10, 0, 0, 7], 32), IpAddr::from([10, 0, 0, 7]));
        let gateway = Hop::Neighbour(lan, [10, 0, 0, 2].into());
        router.add_route(host, &[gateway]).unwrap();
        router.set_neighbour(lan, neighbour, MacAddress([2, 0, 0, 0, 0, 7])).unwrap();
        assert_eq!(hops(&router, [10, 0, 0, 7]), only(gateway));
        router.withdraw_route(host).unwrap();
        assert_eq!(hops(&router, [10, 0, 0, 7]), only(Hop::Neighbour(lan, neighbour)));
        router.add_route(host, &[gateway]).unwrap();
        router.remove_neighbour(lan, neighbour).unwrap();
        router.withdraw_route(host).unwrap();
        assert_eq!(hops(&router, [10, 0, 0, 7]), only(Hop::Glean(lan, [10, 0, 0, 1].into())));
    }

    /// A source, a prefix, and the last bytes of gateways; none withdraws.
    fn saying() -> impl Strategy<Value = (usize, u8, BTreeSet<u8>)> {
        (0..Source::ALL.len(), 0..3u8, prop_oneof![vec(2..6u8, 1..4), Just(Vec::new())])
            .prop_map(|(source, number, gateways)| (source, number, gateways.into_iter().collect()))
    }

    proptest! {
        // A router takes some milliseconds to make.
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn the_best_source_that_says_something_is_followed(said in vec(saying(), 0..200)) {
            let mut router = Router::new().unwrap();
            let lan = router.add_device("lan", MacAddress([2, 0, 0, 0, 0, 1]), 1500).unwrap();
            let held = router.hops.iter().count();
            let hop = |last: u8| Hop::Neighbour(lan, [10, 0, 0, last].into());
            let mut model = [const { BTreeMap::<Source, BTreeSet<u8>>::new() }; 3];
            let withdrawals = (0..Source::ALL.len()).flat_map(|source| (0..3).map(move |n| (source, n, BTreeSet::new())));
            for (source, number, gateways) in said.into_iter().chain(withdrawals) {
                let (source, prefix) = (Source::ALL[source], prefix([192, 0, number, 0], 24));
                let known = &mut model[usize::from(number)];
                if gateways.is_empty() {
                    let there = known.remove(&source).is_some();
                    prop_assert_eq!(router.withdraw_route_of(source, prefix).unwrap(), there);
                } else {
                    let hops: Vec<Hop> = gateways.iter().copied().map(hop).collect();
                    router.add_route_of(source, prefix, &hops).unwrap();
                    known.insert(source, gateways);
                }
                for (number, known) in (0..).zip(&model) {
                    let best = known.first_key_value().map(|(_, gateways)| gateways.clone()).unwrap_or_default();
                    let expected: BTreeSet<String> = best.into_iter().map(|last| format!("{:?}", hop(last))).collect();
                    prop_assert_eq!(hops(&router, [192, 0, number, 1]), expected);
                }
            }
            // Nothing is held for what is gone.
            prop_assert_eq!(router.hops.iter().count(), held);
            prop_assert_eq!(router.routes4(Asked::All, 0).usage.groups, 0);
        }
    }
}
