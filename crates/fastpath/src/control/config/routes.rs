//! The routes of a configuration: prefixes and where their packets go enter; they leave by prefix, and so does what
//! tells two tables apart.
//!
//! A million routes have a handful of next hops. So a record is a prefix and a pointer to a [`Route`] that many share:
//! 16 bytes of IPv4 and 48 of IPv6.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::iter;
use std::sync::Arc;

use super::{IpPrefix, Route};
use crate::fib::{Address, Prefix};

type Map<A> = BTreeMap<Prefix<A>, Arc<Route>>;
/// Routes of either version of IP, best in the order of their prefixes.
pub(super) type Sorted = (Vec<(Prefix<u32>, Arc<Route>)>, Vec<(Prefix<u128>, Arc<Route>)>);

/// Routes by prefix, those of IPv4 first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    ip4: Map<u32>,
    ip6: Map<u128>,
}

impl Routes {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ip4.len() + self.ip6.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The route of this very prefix.
    #[must_use]
    pub fn get(&self, prefix: IpPrefix) -> Option<&Route> {
        match prefix {
            IpPrefix::Ip4(prefix) => self.ip4.get(&prefix),
            IpPrefix::Ip6(prefix) => self.ip6.get(&prefix),
        }
        .map(|route| &**route)
    }

    /// Sets the route of a prefix, and returns the one before.
    pub fn insert(&mut self, prefix: IpPrefix, route: Arc<Route>) -> Option<Arc<Route>> {
        match prefix {
            IpPrefix::Ip4(prefix) => self.ip4.insert(prefix, route),
            IpPrefix::Ip6(prefix) => self.ip6.insert(prefix, route),
        }
    }

    /// Takes the route of a prefix away, and returns it.
    pub fn remove(&mut self, prefix: IpPrefix) -> Option<Arc<Route>> {
        match prefix {
            IpPrefix::Ip4(prefix) => self.ip4.remove(&prefix),
            IpPrefix::Ip6(prefix) => self.ip6.remove(&prefix),
        }
    }

    /// Takes over all routes of `others`.
    pub(super) fn append(&mut self, others: Sorted) {
        // Made of a sorted list, a map has no gaps.
        self.ip4.append(&mut others.0.into_iter().collect());
        self.ip6.append(&mut others.1.into_iter().collect());
    }

    /// What makes these routes into `new`, by prefix: the route that a prefix has then, or `None` if it has lost its
    /// own.
    pub fn changes<'a>(&'a self, new: &'a Self) -> impl Iterator<Item = (IpPrefix, Option<&'a Arc<Route>>)> {
        let ip4 = changes(&self.ip4, &new.ip4).map(|(prefix, route)| (IpPrefix::Ip4(prefix), route));
        let ip6 = changes(&self.ip6, &new.ip6).map(|(prefix, route)| (IpPrefix::Ip6(prefix), route));
        ip4.chain(ip6)
    }
}

/// Routes that are alike become one.
#[derive(Default)]
pub(super) struct Shared(HashSet<Arc<Route>>);

impl Shared {
    /// The one that is like `route`.
    pub fn one(&mut self, route: Route) -> Arc<Route> {
        if let Some(one) = self.0.get(&route) {
            return Arc::clone(one);
        }
        let one = Arc::new(route);
        self.0.insert(Arc::clone(&one));
        one
    }
}

/// As [`Routes::changes`], of one version of IP: both maps are walked side by side.
fn changes<'a, A: Address>(
    old: &'a Map<A>,
    new: &'a Map<A>,
) -> impl Iterator<Item = (Prefix<A>, Option<&'a Arc<Route>>)> {
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    iter::from_fn(move || {
        loop {
            let order = match (old.peek(), new.peek()) {
                (Some((before, _)), Some((now, _))) => before.cmp(now),
                (Some(_), None) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            match order {
                Ordering::Less => return old.next().map(|(prefix, _)| (*prefix, None)),
                Ordering::Greater => return new.next().map(|(prefix, route)| (*prefix, Some(route))),
                Ordering::Equal => {
                    let (was, (prefix, is)) = old.next().zip(new.next())?;
                    if was.1 != is {
                        return Some((*prefix, Some(is)));
                    }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::btree_map;
    use proptest::prelude::*;

    use super::*;
    use crate::control::config::Hop;

    fn route(last: u8) -> Arc<Route> {
        let gateway = [10, 0, 0, last].into();
        Arc::new(Route::Via(vec![Hop { gateway, interface: "lan".into(), weight: 1 }]))
    }

    fn table(entries: &BTreeMap<(u8, bool), u8>) -> Routes {
        let mut routes = Routes::default();
        for (&(number, is_ip4), &last) in entries {
            let text = if is_ip4 { format!("10.{number}.0.0/16") } else { format!("2001:{number:x}::/32") };
            routes.insert(text.parse().unwrap(), route(last));
        }
        routes
    }

    /// Prefixes, and the last byte of their gateways.
    fn entries() -> impl Strategy<Value = BTreeMap<(u8, bool), u8>> {
        btree_map((0..12u8, any::<bool>()), 1..4u8, 0..16)
    }

    proptest! {
        #[test]
        fn the_changes_make_one_table_into_the_other_and_are_no_more_than_needed(old in entries(), new in entries()) {
            let (before, after) = (table(&old), table(&new));
            let mut made = before.clone();
            let mut count = 0;
            for (prefix, route) in before.changes(&after) {
                prop_assert_ne!(made.get(prefix), route.map(|route| &**route), "{} does not change", prefix);
                match route {
                    Some(route) => made.insert(prefix, Arc::clone(route)),
                    None => made.remove(prefix),
                };
                count += 1;
            }
            prop_assert_eq!(&made, &after);
            let same = old.iter().filter(|(key, last)| new.get(key) == Some(last)).count();
            let changed = old.keys().filter(|key| new.contains_key(key)).count() - same;
            prop_assert_eq!(count, old.len() + new.len() - 2 * same - changed);
            prop_assert_eq!(after.len(), new.len());
        }
    }
}
