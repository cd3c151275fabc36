//! The routing information base: the exact routes, from which the table is made.
//!
//! One map for every length of prefix. What covers a prefix is found by asking the maps of shorter ones.

use std::collections::HashMap;

use super::address::{Address, Prefix};
use super::entry::Via;

/// Routes by prefix.
pub(super) struct Rib<A> {
    by_length: Vec<HashMap<A, Via>>,
}

impl<A: Address> Default for Rib<A> {
    fn default() -> Self {
        Self { by_length: (0..=A::WIDTH).map(|_| HashMap::new()).collect() }
    }
}

impl<A: Address> Rib<A> {
    /// Sets the route of `prefix`, and returns the one before.
    pub fn insert(&mut self, prefix: Prefix<A>, via: Via) -> Option<Via> {
        self.by_length[usize::from(prefix.length())].insert(prefix.address(), via)
    }

    pub fn remove(&mut self, prefix: Prefix<A>) -> Option<Via> {
        self.by_length[usize::from(prefix.length())].remove(&prefix.address())
    }

    pub fn get(&self, prefix: Prefix<A>) -> Option<Via> {
        self.by_length[usize::from(prefix.length())].get(&prefix.address()).copied()
    }

    /// The longest route that holds all of `prefix` and is shorter.
    pub fn cover(&self, prefix: Prefix<A>) -> Option<(u8, Via)> {
        (0..prefix.length()).rev().find_map(|length| {
            let routes = &self.by_length[usize::from(length)];
            if routes.is_empty() {
                return None;
            }
            routes.get(&prefix.address().network(length)).map(|via| (length, *via))
        })
    }

    pub fn len(&self) -> usize {
        self.by_length.iter().map(HashMap::len).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Prefix<A>, Via)> + '_ {
        (0..=A::WIDTH).zip(&self.by_length).flat_map(|(length, routes)| {
            routes.iter().filter_map(move |(address, via)| Some((Prefix::new(*address, length).ok()?, *via)))
        })
    }
}
