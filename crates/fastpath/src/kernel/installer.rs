//! Brings the kernel's routes into the router's table: changes of routes enter, inserts and withdrawals
//! of a [`Fib`] leave.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::sync::Arc;

use super::path::places;
use super::{Path, RouteChange};
use crate::fib::{Address, Error, Fib, Group, NextHop, Via};

/// The most members of a group.
const MEMBERS: usize = 256;

/// Where one next hop leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Towards {
    /// To a neighbour on an interface.
    Neighbour {
        /// The kernel's index of the interface; it may be none of the router's.
        interface: u32,
        /// The router there; without one the packet's destination is the neighbour.
        gateway: Option<IpAddr>,
    },
    /// Nowhere, and nobody is told.
    Blackhole,
    /// Nowhere, and the sender is told that the destination is unreachable.
    Unreachable,
    /// Nowhere, and the sender is told that this is prohibited.
    Prohibit,
    /// To the kernel.
    Kernel,
}

/// The router's next hops, by number.
pub trait Adjacencies {
    /// The number of the next hop that leads there, which is needed once more than before.
    /// [`NextHop::NONE`] if there is no room for another one: its packets are discarded.
    fn next_hop(&mut self, towards: Towards) -> NextHop;

    /// This next hop is needed once less than before.
    fn release(&mut self, hop: NextHop);
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
    /// Does to `fib`, always the same one, what happened to a route of the kernel. The new next hops are
    /// there before the old ones are let go.
    ///
    /// # Errors
    /// [`Error::Full`]; the route is as it was then.
    pub fn apply(
        &mut self,
        change: &RouteChange<A>,
        fib: &mut Fib<A>,
        adjacencies: &mut impl Adjacencies,
    ) -> Result<(), Error> {
        let before = match &change.path {
            None => fib.withdraw(change.prefix),
            Some(path) => {
                let via = self.hold(path, fib, adjacencies)?;
                match fib.insert(change.prefix, via) {
                    Ok(before) => before,
                    Err(error) => {
                        self.release(via, fib, adjacencies)?;
                        return Err(error);
                    }
                }
            }
        };
        before.map_or(Ok(()), |before| self.release(before, fib, adjacencies))
    }

    /// What one more route by `path` goes through.
    fn hold(
        &mut self,
        path: &Path,
        fib: &mut Fib<A>,
        adjacencies: &mut impl Adjacencies,
    ) -> Result<Via, Error> {
        let mut members = members(path, adjacencies);
        match members.as_slice() {
            [] => return Ok(NextHop::NONE.into()),
            [hop] => return Ok((*hop).into()),
            _ => {}
        }
        // Whichever numbers they have, equal members are in the same order.
        members.sort_unstable();
        if let Some(group) = self.groups.get(members.as_slice()).copied() {
            members.into_iter().for_each(|hop| adjacencies.release(hop));
            self.count(group, 1);
            return Ok(group.into());
        }
        match fib.add_group(&members) {
            Ok(group) => {
                let members: Arc<[NextHop]> = members.into();
                self.groups.insert(Arc::clone(&members), group);
                self.uses.insert(group, (members, 1));
                Ok(group.into())
            }
            Err(error) => {
                members.into_iter().for_each(|hop| adjacencies.release(hop));
                Err(error)
            }
        }
    }

    /// One route less goes through `via`. The last one takes the group along.
    fn release(
        &mut self,
        via: Via,
        fib: &mut Fib<A>,
        adjacencies: &mut impl Adjacencies,
    ) -> Result<(), Error> {
        if let Some(hop) = via.next_hop() {
            if hop != NextHop::NONE {
                adjacencies.release(hop);
            }
            return Ok(());
        }
        let Some(group) = via.group() else { return Ok(()) };
        if self.count(group, -1) > 0 {
            return Ok(());
        }
        if let Some((members, _)) = self.uses.remove(&group) {
            self.groups.remove(&members);
            fib.remove_group(group)?;
            members.iter().for_each(|hop| adjacencies.release(*hop));
        }
        Ok(())
    }

    fn count(&mut self, group: Group, more: isize) -> usize {
        let Some((_, routes)) = self.uses.get_mut(&group) else { return 1 };
        *routes = routes.saturating_add_signed(more);
        *routes
    }
}

/// The next hops of a path, each as often as its weight asks, and each needed as often.
fn members(path: &Path, adjacencies: &mut impl Adjacencies) -> Vec<NextHop> {
    let towards = match path {
        Path::Through(hops) => {
            let weights: Vec<u16> = hops.iter().map(|hop| hop.weight).collect();
            let shares = hops.iter().zip(places(&weights, MEMBERS));
            let members = shares.flat_map(|(hop, places)| {
                let towards = Towards::Neighbour { interface: hop.interface, gateway: hop.gateway };
                std::iter::repeat_n(towards, places)
            });
            return members.map(|towards| adjacencies.next_hop(towards)).collect();
        }
        Path::Blackhole => Towards::Blackhole,
        Path::Unreachable => Towards::Unreachable,
        Path::Prohibit => Towards::Prohibit,
        Path::Kernel => Towards::Kernel,
    };
    vec![adjacencies.next_hop(towards)]
}

#[cfg(test)]
mod tests;
