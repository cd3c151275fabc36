//! Against a plain map of routes, and next hops that are counted.

use std::collections::{BTreeMap, HashMap};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::fib::{Capacity, Prefix};
use crate::kernel::Hop;

/// Gives numbers from 1 on, in the order in which they are asked for.
#[derive(Default)]
struct Recorder {
    numbers: HashMap<Towards, NextHop>,
    needed: BTreeMap<NextHop, usize>,
}

impl Adjacencies for Recorder {
    fn next_hop(&mut self, towards: Towards) -> NextHop {
        let next = NextHop::new(self.numbers.len() as u32 + 1).unwrap();
        let hop = *self.numbers.entry(towards).or_insert(next);
        *self.needed.entry(hop).or_default() += 1;
        hop
    }

    fn release(&mut self, hop: NextHop) {
        let needed = self.needed.get_mut(&hop).unwrap();
        *needed -= 1;
        if *needed == 0 {
            self.needed.remove(&hop);
        }
    }
}

/// A table of routes, and its next hops.
struct Router {
    fib: Fib<u32>,
    recorder: Recorder,
}

impl Router {
    fn new(capacity: Capacity) -> Self {
        Self { fib: Fib::new(capacity).unwrap(), recorder: Recorder::default() }
    }
}

impl Adjacencies for Router {
    fn next_hop(&mut self, towards: Towards) -> NextHop {
        self.recorder.next_hop(towards)
    }

    fn release(&mut self, hop: NextHop) {
        self.recorder.release(hop);
    }
}

impl Routing<u32> for Router {
    fn fib(&mut self) -> &mut Fib<u32> {
        &mut self.fib
    }
}

/// The numbers of a path's next hops, each needed as often as it is there.
fn members(path: &Path, adjacencies: &mut impl Adjacencies) -> Vec<NextHop> {
    path.members().into_iter().map(|towards| adjacencies.next_hop(towards)).collect()
}

fn hop(interface: u32, weight: u16) -> Hop {
    Hop { interface, gateway: Some([10, 0, 0, interface as u8].into()), weight }
}

fn network(number: u8) -> Prefix<u32> {
    Prefix::new(10 << 24 | u32::from(number) << 8, 24).unwrap()
}

/// How many of 256 flows take each next hop.
fn shares(fib: &Fib<u32>, number: u8) -> BTreeMap<NextHop, usize> {
    let mut reader = fib.reader();
    let pass = reader.pass();
    let mut shares = BTreeMap::new();
    (0..256).for_each(|flow| *shares.entry(pass.lookup(network(number).address(), flow)).or_default() += 1);
    shares
}

fn paths() -> impl Strategy<Value = Option<Path>> {
    let hops = vec((1..5u32, 1..4u16), 1..4);
    let through =
        hops.prop_map(|hops| Path::through(hops.into_iter().map(|(at, weight)| hop(at, weight)).collect()));
    let other =
        prop_oneof![Just(Path::Blackhole), Just(Path::Unreachable), Just(Path::Prohibit), Just(Path::Kernel)];
    prop_oneof![6 => through.prop_map(Some), 1 => other.prop_map(Some), 3 => Just(None)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn routes_lead_where_they_should_and_nothing_is_kept_for_none(
        changes in vec((0..6u8, paths()), 0..40),
    ) {
        let (mut installer, mut router) = (Installer::default(), Router::new(Capacity { nodes: 64, groups: 16 }));
        let mut routes: BTreeMap<u8, Path> = BTreeMap::new();
        for (number, path) in changes {
            let change = RouteChange { prefix: network(number), path: path.clone().map(Arc::new) };
            installer.apply(&change, &mut router).unwrap();
            match path {
                Some(path) => drop(routes.insert(number, path)),
                None => drop(routes.remove(&number)),
            }
            // Next hops are needed by routes with one, and by each group once.
            let (mut needed, mut groups) = (BTreeMap::<NextHop, usize>::new(), Vec::new());
            for path in routes.values() {
                let mut hops = members(path, &mut Recorder { numbers: router.recorder.numbers.clone(), ..Recorder::default() });
                hops.sort();
                if hops.len() == 1 || !groups.contains(&hops) {
                    hops.iter().for_each(|hop| *needed.entry(*hop).or_default() += 1);
                }
                if hops.len() > 1 && !groups.contains(&hops) {
                    groups.push(hops);
                }
            }
            prop_assert_eq!(&router.recorder.needed, &needed);
            prop_assert_eq!((router.fib.usage().routes, router.fib.usage().groups), (routes.len(), groups.len()));
        }
        for (number, path) in &routes {
            let shares = shares(&router.fib, *number);
            let mut due: BTreeMap<NextHop, usize> = BTreeMap::new();
            let hops = members(path, &mut router);
            hops.iter().for_each(|hop| *due.entry(*hop).or_default() += 1);
            prop_assert!(shares.keys().eq(due.keys()));
            for (hop, count) in due {
                let off = (shares[&hop] * hops.len()).abs_diff(256 * count);
                prop_assert!(off <= hops.len() * count, "{shares:?} for {hops:?}");
            }
        }
    }
}

#[test]
fn a_full_table_leaves_everything_as_it_was() {
    let (mut installer, mut router) = (Installer::default(), Router::new(Capacity { nodes: 0, groups: 1 }));
    let two = |second| Some(Arc::new(Path::through(vec![hop(1, 1), hop(second, 1)])));
    let route = |prefix, path| RouteChange { prefix, path };
    installer.apply(&route(network(1), two(2)), &mut router).unwrap();
    let needed = router.recorder.needed.clone();
    let error = installer.apply(&route(network(1), two(3)), &mut router).unwrap_err();
    assert!(matches!(error, Error::Full { what: "groups", .. }));
    let host = Prefix::new(10 << 24 | 1, 32).unwrap();
    let error = installer.apply(&route(host, two(2)), &mut router).unwrap_err();
    assert!(matches!(error, Error::Full { what: "nodes", .. }));
    assert_eq!(router.recorder.needed, needed);
    assert_eq!((router.fib.usage().routes, router.fib.usage().groups), (1, 1));
    installer.apply(&route(network(1), None), &mut router).unwrap();
    assert!(router.recorder.needed.is_empty() && router.fib.usage().groups == 0);
}

#[test]
fn large_groups_are_scaled() {
    let (mut installer, mut router) = (Installer::default(), Router::new(Capacity { nodes: 0, groups: 1 }));
    let path = Path::through(vec![hop(1, 201), hop(2, 100)]);
    let change = RouteChange { prefix: network(1), path: Some(Arc::new(path)) };
    installer.apply(&change, &mut router).unwrap();
    let shares: Vec<usize> = shares(&router.fib, 1).into_values().collect();
    assert_eq!(shares, [171, 85]);
}
