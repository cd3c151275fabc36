//! The routes of one kind of address and their groups: next hops of a route enter, what they go through leaves.
//! Routes with the same next hops share a group. Routes that a better source's one hides wait beside the table.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Hop, Source};
use crate::fib::{Address, Error, Fib, Group, NextHop, Prefix, Via};

/// A table of routes.
pub(crate) struct Table<A> {
    pub(super) fib: Fib<A>,
    by_members: HashMap<Arc<[NextHop]>, Group>,
    /// The members of each group, in their order, and how many routes go through it.
    groups: HashMap<Group, (Arc<[NextHop]>, usize)>,
    /// Of prefixes with routes of several sources those that are not followed.
    hidden: HashMap<Prefix<A>, BTreeMap<Source, Vec<Hop>>>,
}

impl<A: Address> Table<A> {
    /// Of `fib`, which has no groups yet.
    pub fn new(fib: Fib<A>) -> Self {
        Self { fib, by_members: HashMap::new(), groups: HashMap::new(), hidden: HashMap::new() }
    }

    /// The source whose route of a prefix is followed.
    pub fn source(&self, prefix: Prefix<A>) -> Option<Source> {
        self.fib.get(prefix).map(|via| Source::of_mark(via.mark()))
    }

    /// Keeps a route until those of better sources are gone.
    pub fn hide(&mut self, prefix: Prefix<A>, source: Source, hops: Vec<Hop>) {
        self.hidden.entry(prefix).or_default().insert(source, hops);
    }

    /// The hidden route of a source.
    pub fn hidden(&self, prefix: Prefix<A>, source: Source) -> Option<&[Hop]> {
        self.hidden.get(&prefix)?.get(&source).map(Vec::as_slice)
    }

    /// Forgets a hidden route; says whether there was one.
    pub fn forget(&mut self, prefix: Prefix<A>, source: Source) -> bool {
        let Some(routes) = self.hidden.get_mut(&prefix) else { return false };
        let known = routes.remove(&source).is_some();
        if routes.is_empty() {
            self.hidden.remove(&prefix);
        }
        known
    }

    /// The hidden route of the best source, which is to be followed from now on.
    pub fn uncover(&mut self, prefix: Prefix<A>) -> Option<(Source, Vec<Hop>)> {
        let routes = self.hidden.get_mut(&prefix)?;
        let best = routes.pop_first();
        if routes.is_empty() {
            self.hidden.remove(&prefix);
        }
        best
    }

    /// The next hops that a route goes through, each as often as it stands among the members of a group.
    pub fn members(&self, via: Via) -> Vec<NextHop> {
        match via.group() {
            Some(group) => self.groups.get(&group).map(|(members, _)| members.to_vec()).unwrap_or_default(),
            None => via.next_hop().into_iter().collect(),
        }
    }

    /// What a route through `members` goes through, held once more; and whether that holds the members
    /// themselves, as a group does not that was there before.
    pub fn hold(&mut self, members: &[NextHop]) -> Result<(Via, bool), Error> {
        if let [hop] = *members {
            return Ok((hop.into(), true));
        }
        let mut members = members.to_vec();
        members.sort_unstable();
        if let Some(&group) = self.by_members.get(members.as_slice()) {
            if let Some((_, uses)) = self.groups.get_mut(&group) {
                *uses += 1;
            }
            return Ok((group.into(), false));
        }
        let group = self.fib.add_group(&members)?;
        let members: Arc<[_]> = members.into();
        self.by_members.insert(Arc::clone(&members), group);
        self.groups.insert(group, (members, 1));
        Ok((group.into(), true))
    }

    /// A route less goes through `via`, and none in the table does that was not held; returns the next hops
    /// that this no longer holds.
    pub fn release(&mut self, via: Via) -> Result<Vec<NextHop>, Error> {
        let Some(group) = via.group() else { return Ok(via.next_hop().into_iter().collect()) };
        let Some((_, uses)) = self.groups.get_mut(&group) else { return Ok(Vec::new()) };
        *uses -= 1;
        if *uses > 0 {
            return Ok(Vec::new());
        }
        self.fib.remove_group(group)?;
        let members = self.groups.remove(&group).map(|(members, _)| members);
        let members = members.inspect(|members| _ = self.by_members.remove(members));
        Ok(members.map(|members| members.to_vec()).unwrap_or_default())
    }
}
