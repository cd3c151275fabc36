//! Brings the kernel's routes into the router's table: changes of routes enter, inserts and withdrawals
//! of a [`Fib`] leave.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

use super::{Path, RouteChange, Towards};
use crate::fib::{Address, Error, Fib, Group, NextHop, Via};

/// The router's next hops, by number.
pub trait Adjacencies {
    /// The number of the next hop that leads there, which is needed once more than before.
    /// [`NextHop::NONE`] if there is no room for another one: its packets are discarded.
    fn next_hop(&mut self, towards: Towards) -> NextHop;

    /// This next hop is needed once less than before. It may also be one that somebody else's route went
    /// through, if a route of the kernel to the same prefix took its place.
    fn release(&mut self, hop: NextHop);
}

/// A router's table of one kind of address, with the next hops that its routes lead to.
pub trait Routing<A>: Adjacencies {
    /// The table.
    fn fib(&mut self) -> &mut Fib<A>;
}

/// Keeps track of the groups that the routes of one [`Fib`] need. All its routes with several next hops
/// are its own; who adds others to the table joins them with these before.
pub struct Installer<A> {
    /// The groups, by their members.
    groups: HashMap<Arc<[NextHop]>, Group>,
    /// The members of a group, and how many routes go through it.
    uses: HashMap<Group, (Arc<[NextHop]>, usize)>,
    address: PhantomData<A>,
}

impl<A: Address> Default for Installer<A> {
    fn default() -> Self {
        Self { groups: HashMap::new(), uses: HashMap::new(), address: PhantomData }
    }
}

impl<A: Address> Installer<A> {
    /// Does to the table of `routing`, always the same one, what happened to a route of the kernel. The new
    /// next hops are there before the old ones are let go.
    ///
    /// # Errors
    /// [`Error::Full`]; the route is as it was then.
    pub fn apply(&mut self, change: &RouteChange<A>, routing: &mut impl Routing<A>) -> Result<(), Error> {
        let before = match &change.path {
            None => routing.fib().withdraw(change.prefix),
            Some(path) => {
                let via = self.hold(path, routing)?;
                match routing.fib().insert(change.prefix, via) {
                    Ok(before) => before,
                    Err(error) => {
                        self.release(via, routing)?;
                        return Err(error);
                    }
                }
            }
        };
        before.map_or(Ok(()), |before| self.release(before, routing))
    }

    /// What one more route by `path` goes through.
    fn hold(&mut self, path: &Path, routing: &mut impl Routing<A>) -> Result<Via, Error> {
        let mut members: Vec<NextHop> =
            path.members().into_iter().map(|towards| routing.next_hop(towards)).collect();
        match members.as_slice() {
            [] => return Ok(NextHop::NONE.into()),
            [hop] => return Ok((*hop).into()),
            _ => {}
        }
        // Whichever numbers they have, equal members are in the same order.
        members.sort_unstable();
        if let Some(group) = self.groups.get(members.as_slice()).copied() {
            members.into_iter().for_each(|hop| routing.release(hop));
            self.count(group, 1);
            return Ok(group.into());
        }
        match routing.fib().add_group(&members) {
            Ok(group) => {
                let members: Arc<[NextHop]> = members.into();
                self.groups.insert(Arc::clone(&members), group);
                self.uses.insert(group, (members, 1));
                Ok(group.into())
            }
            Err(error) => {
                members.into_iter().for_each(|hop| routing.release(hop));
                Err(error)
            }
        }
    }

    /// One route less goes through `via`. The last one takes the group along.
    fn release(&mut self, via: Via, routing: &mut impl Routing<A>) -> Result<(), Error> {
        if let Some(hop) = via.next_hop() {
            if hop != NextHop::NONE {
                routing.release(hop);
            }
            return Ok(());
        }
        let Some(group) = via.group() else { return Ok(()) };
        if self.count(group, -1) > 0 {
            return Ok(());
        }
        if let Some((members, _)) = self.uses.remove(&group) {
            self.groups.remove(&members);
            routing.fib().remove_group(group)?;
            members.iter().for_each(|hop| routing.release(*hop));
        }
        Ok(())
    }

    fn count(&mut self, group: Group, more: isize) -> usize {
        let Some((_, routes)) = self.uses.get_mut(&group) else { return 1 };
        *routes = routes.saturating_add_signed(more);
        *routes
    }
}

#[cfg(test)]
mod tests;
