//! Against a kernel of a few lines, whose notifications all come, come late, or are lost.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::Hop;
use super::*;

fn path(hops: impl IntoIterator<Item = u32>) -> Path {
    Path::through(hops.into_iter().map(|interface| Hop { interface, gateway: None, weight: 1 }).collect())
}

fn ten() -> Prefix<u32> {
    Prefix::new(10 << 24, 8).unwrap()
}

fn documentation() -> Prefix<u128> {
    Prefix::new(0x2001_0db8 << 96, 32).unwrap()
}

/// What who follows the changes believes.
#[derive(Default)]
struct Believer(Option<Arc<Path>>);

impl Believer {
    /// Only changes are said.
    fn hear<A>(&mut self, change: Option<RouteChange<A>>) {
        if let Some(change) = change {
            assert_ne!(self.0, change.path);
            self.0 = change.path;
        }
    }

    fn path(&self) -> Option<Path> {
        self.0.as_deref().cloned()
    }
}

/// What somebody does to the IPv4 routes of one prefix; each path has one next hop.
#[derive(Clone, Copy, Debug)]
enum Act4 {
    Add(u32, u32, Place),
    Remove(u32, u32),
}

/// The kernel's list of IPv4 routes of one prefix, as `fib_table_insert` keeps it.
#[derive(Clone, Debug, Default)]
struct Kernel4(Vec<(u32, u32)>);

impl Kernel4 {
    /// Whether the kernel does it, and tells.
    fn act(&mut self, act: Act4) -> bool {
        let list = &mut self.0;
        match act {
            Act4::Add(metric, hop, _) if list.contains(&(metric, hop)) => return false,
            Act4::Add(metric, hop, place) => {
                let start = list.partition_point(|route| route.0 < metric);
                let end = list.partition_point(|route| route.0 <= metric);
                match place {
                    Place::Replace if start < end => list[start] = (metric, hop),
                    Place::Last => list.insert(end, (metric, hop)),
                    _ => list.insert(start, (metric, hop)),
                }
            }
            Act4::Remove(metric, hop) => {
                let Some(at) = list.iter().position(|route| *route == (metric, hop)) else { return false };
                list.remove(at);
            }
        }
        true
    }

    fn best(&self) -> Option<Path> {
        self.0.first().map(|(_, hop)| path([*hop]))
    }
}

fn tell4(candidates: &mut Candidates<u32>, act: Act4, believer: &mut Believer) {
    believer.hear(match act {
        Act4::Add(metric, hop, place) => candidates.add(ten(), metric, path([hop]), place),
        Act4::Remove(metric, hop) => candidates.remove(ten(), metric, &path([hop])).0,
    });
}

fn read4(candidates: &mut Candidates<u32>, kernel: &Kernel4, believer: &mut Believer) {
    candidates.begin_reading();
    for (metric, hop) in &kernel.0 {
        believer.hear(candidates.read(ten(), *metric, path([*hop])));
    }
    candidates.end_reading(|change| believer.hear(Some(change)));
}

fn places() -> impl Strategy<Value = Place> {
    prop_oneof![Just(Place::First), Just(Place::Last), Just(Place::Replace)]
}

fn acts4(places: impl Strategy<Value = Place>) -> impl Strategy<Value = Act4> {
    let remove = (0..3u32, 0..4u32).prop_map(|(metric, hop)| Act4::Remove(metric, hop));
    let add = (0..3u32, 0..4u32, places).prop_map(|(metric, hop, place)| Act4::Add(metric, hop, place));
    prop_oneof![add, remove]
}

/// The kernel's IPv6 routes of one prefix: by metric, next hops of which one route is made.
#[derive(Clone, Debug, Default)]
struct Kernel6(BTreeMap<u32, BTreeSet<u32>>);

proptest! {
    #[test]
    fn the_best_is_the_one_that_the_kernel_uses(acts in vec((acts4(places()), any::<bool>()), 0..60)) {
        let (mut kernel, mut candidates) = (Kernel4::default(), Candidates::new());
        let mut believer = Believer::default();
        for (act, read) in acts {
            if kernel.act(act) {
                tell4(&mut candidates, act, &mut believer);
            }
            prop_assert_eq!(believer.path(), kernel.best());
            if read {
                read4(&mut candidates, &kernel, &mut believer);
                prop_assert_eq!(believer.path(), kernel.best());
            }
        }
        for (metric, hop) in kernel.0.clone() {
            let (change, agreement) = candidates.remove(ten(), metric, &path([hop]));
            believer.hear(change);
            prop_assert_eq!(agreement, Agreement::Agrees);
        }
        prop_assert_eq!((believer.path(), candidates.len(), candidates.others.len()), (None, 0, 0));
    }

    #[test]
    fn reading_makes_up_for_what_was_lost(
        acts in vec((acts4(places()), any::<bool>()), 0..40),
        later in vec(acts4(places()), 0..20),
    ) {
        let (mut kernel, mut candidates) = (Kernel4::default(), Candidates::new());
        let mut believer = Believer::default();
        for (act, lost) in acts {
            if kernel.act(act) && !lost {
                tell4(&mut candidates, act, &mut believer);
            }
        }
        read4(&mut candidates, &kernel, &mut believer);
        prop_assert_eq!(believer.path(), kernel.best());
        for act in later {
            if kernel.act(act) {
                tell4(&mut candidates, act, &mut believer);
            }
            prop_assert_eq!(believer.path(), kernel.best());
        }
    }

    /// What happened while the table was read is told once more after it. (Daemons keep one route a
    /// metric: they replace and never append.)
    #[test]
    fn what_was_read_may_be_told_again(acts in vec(acts4(Just(Place::Replace)), 0..40), heard in 0..40usize, read in 0..40usize) {
        let (mut kernel, mut candidates) = (Kernel4::default(), Candidates::new());
        let mut believer = Believer::default();
        let mut told = Vec::new();
        for act in acts {
            if kernel.act(act) {
                told.push((act, kernel.clone()));
            }
        }
        let heard = heard.min(told.len());
        let read = read.clamp(heard, told.len());
        if let Some(state) = read.checked_sub(1).map(|last| &told[last].1) {
            read4(&mut candidates, state, &mut believer);
        }
        told[heard..].iter().for_each(|(act, _)| tell4(&mut candidates, *act, &mut believer));
        prop_assert_eq!(believer.path(), kernel.best());
    }

    /// IPv6 routes grow and shrink by next hops: (metric, next hops, what is done to them).
    #[test]
    fn next_hops_of_ipv6_come_and_go_one_by_one(acts in vec((0..2u32, vec(0..5u32, 1..3), 0..4u8), 0..60)) {
        let (mut kernel, mut candidates) = (Kernel6::default(), Candidates::new());
        let mut believer = Believer::default();
        for (metric, hops, act) in acts {
            let all = kernel.0.entry(metric).or_default();
            let change = match act {
                0 => {
                    *all = hops.iter().copied().collect();
                    candidates.add(documentation(), metric, path(all.iter().copied()), Place::Replace)
                }
                // The kernel tells the whole route.
                1 => {
                    all.extend(&hops);
                    candidates.add(documentation(), metric, path(all.iter().copied()), Place::Join)
                }
                // It tells the next hop that went.
                2 if all.remove(&hops[0]) => candidates.remove(documentation(), metric, &path([hops[0]])).0,
                3 if !all.is_empty() => {
                    let gone = std::mem::take(all);
                    let (change, agreement) = candidates.remove(documentation(), metric, &path(gone));
                    prop_assert_eq!(agreement, Agreement::Agrees);
                    change
                }
                _ => None,
            };
            believer.hear(change);
            let best = kernel.0.values().find(|hops| !hops.is_empty());
            prop_assert_eq!(believer.path(), best.map(|hops| path(hops.iter().copied())));
        }
    }
}

#[test]
fn an_ipv4_route_that_is_not_as_known_is_doubtful() {
    let mut candidates = Candidates::new();
    candidates.add(ten(), 0, path([1, 2]), Place::First).unwrap();
    let (change, agreement) = candidates.remove(ten(), 0, &path([2, 3]));
    assert_eq!(change.unwrap().path.as_deref(), Some(&path([1])));
    assert_eq!(agreement, Agreement::Doubtful);
    assert_eq!(candidates.remove(ten(), 0, &path([7])), (None, Agreement::Agrees));
}

#[test]
fn paths_are_kept_once_and_not_for_ever() {
    let mut candidates = Candidates::new();
    for hop in 0..1000 {
        let change = candidates.add(ten(), 0, path([hop]), Place::Replace).unwrap();
        assert_eq!(change.path.as_deref(), Some(&path([hop])));
    }
    assert!(candidates.paths.known.len() < 200, "{}", candidates.paths.known.len());
    let again = candidates.add(Prefix::new(11 << 24, 8).unwrap(), 0, path([999]), Place::First).unwrap();
    assert!(Arc::ptr_eq(&again.path.unwrap(), &candidates.best[&ten()].path));
}
