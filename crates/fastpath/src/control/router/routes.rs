//! Routes: prefixes, their sources and next hops enter; of each prefix the best source's route is followed, and
//! holds adjacencies and groups as long as it is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Error, Family, Hop, Router, Source};
use crate::dataplane::counters::Reason;
use crate::fib::{self, NextHop, Prefix};

impl Router {
    /// Has packets to a prefix go to one of `hops` each, chosen by flow where there are several. It counts as
    /// configured.
    ///
    /// # Errors
    /// [`Error::Fib`] when there is no room, or no hop; [`Error::Family`].
    pub fn add_route<A: Family>(&mut self, prefix: Prefix<A>, hops: &[Hop]) -> Result<(), Error> {
        self.add_route_of(Source::Configured, prefix, hops)
    }

    /// As [`Self::add_route`], by what `source` says; that takes the place of what it said before. While a
    /// better source has a route of the same prefix, it waits.
    ///
    /// # Errors
    /// As [`Self::add_route`].
    pub fn add_route_of<A: Family>(
        &mut self,
        source: Source,
        prefix: Prefix<A>,
        hops: &[Hop],
    ) -> Result<(), Error> {
        let other = hops.iter().find_map(|hop| match *hop {
            Hop::Neighbour(_, address) if !A::has(address) => Some(address),
            _ => None,
        });
        if let Some(address) = other {
            return Err(Error::Family(address));
        }
        fib::check_members(hops.len())?;
        match A::table(self).source(prefix) {
            Some(followed) if followed < source => {
                A::table(self).hide(prefix, source, hops.to_vec());
                Ok(())
            }
            Some(followed) if followed > source => {
                let hidden = self.followed(prefix);
                self.follow(source, prefix, hops)?;
                A::table(self).hide(prefix, followed, hidden);
                Ok(())
            }
            _ => self.follow(source, prefix, hops),
        }
    }

    /// Has packets to a prefix take the route of `source`, and forgets the one that they took.
    fn follow<A: Family>(&mut self, source: Source, prefix: Prefix<A>, hops: &[Hop]) -> Result<(), Error> {
        let mut held = Vec::with_capacity(hops.len());
        for &hop in hops {
            match self.hold(hop) {
                Ok(index) => held.push(index),
                Err(error) => {
                    self.release(&held);
                    return Err(error.into());
                }
            }
        }
        // Before a route can lead to them.
        if held.iter().any(|&index| self.hops.is_new(index)) {
            self.publish();
        }
        match self.insert(source, prefix, &held) {
            Ok(before) => before.map_or(Ok(()), |before| self.let_go::<A>(before)),
            Err(error) => {
                self.release(&held);
                Err(error.into())
            }
        }
    }

    /// Where the route leads that packets to a prefix take.
    fn followed<A: Family>(&mut self, prefix: Prefix<A>) -> Vec<Hop> {
        let table = A::table(self);
        let members = table.fib.get(prefix).map(|via| table.members(via)).unwrap_or_default();
        members.into_iter().filter_map(|index| self.hops.hop(index)).collect()
    }

    /// Inserts a route through next hops that are held for it, and returns what it went through before.
    fn insert<A: Family>(
        &mut self,
        source: Source,
        prefix: Prefix<A>,
        held: &[NextHop],
    ) -> Result<Option<fib::Via>, fib::Error> {
        let (via, holds) = A::table(self).hold(held)?;
        self.edition += 1;
        match A::table(self).fib.insert(prefix, via.marked(source.mark())) {
            Ok(before) => {
                if !holds {
                    self.release(held);
                }
                Ok(before)
            }
            Err(error) => {
                // Who asked lets go of the next hops.
                if via.group().is_some() {
                    A::table(self).release(via)?;
                }
                Err(error)
            }
        }
    }

    /// A route that is gone no longer goes through `via`.
    fn let_go<A: Family>(&mut self, via: fib::Via) -> Result<(), Error> {
        let released = A::table(self).release(via)?;
        self.release(&released);
        Ok(())
    }

    /// Takes the configured route of a prefix away; that of another source takes its place. Says whether there
    /// was one.
    ///
    /// # Errors
    /// [`Error::Fib`] when there is no room for what would take its place.
    pub fn withdraw_route<A: Family>(&mut self, prefix: Prefix<A>) -> Result<bool, Error> {
        self.withdraw_route_of(Source::Configured, prefix)
    }

    /// As [`Self::withdraw_route`], of another source.
    ///
    /// # Errors
    /// As [`Self::withdraw_route`].
    pub fn withdraw_route_of<A: Family>(&mut self, source: Source, prefix: Prefix<A>) -> Result<bool, Error> {
        if A::table(self).source(prefix) != Some(source) {
            return Ok(A::table(self).forget(prefix, source));
        }
        let mut refused = Ok(true);
        while let Some((next, hops)) = A::table(self).uncover(prefix) {
            match self.follow(next, prefix, &hops) {
                Ok(()) => return refused,
                Err(error) => refused = Err(error),
            }
        }
        if let Some(before) = A::table(self).fib.withdraw(prefix) {
            self.edition += 1;
            self.let_go::<A>(before)?;
        }
        refused
    }

    /// As [`Self::add_route_of`], of one hop and either kind.
    pub(super) fn set_route(
        &mut self,
        source: Source,
        (address, length): (IpAddr, u8),
        hop: Hop,
    ) -> Result<(), Error> {
        match address {
            IpAddr::V4(address) => self.add_route_of(source, Prefix::new(address.to_bits(), length)?, &[hop]),
            IpAddr::V6(address) => self.add_route_of(source, Prefix::new(address.to_bits(), length)?, &[hop]),
        }
    }

    /// As [`Self::withdraw_route_of`], of either kind.
    pub(super) fn unset_route(
        &mut self,
        source: Source,
        (address, length): (IpAddr, u8),
    ) -> Result<bool, Error> {
        match address {
            IpAddr::V4(address) => self.withdraw_route_of(source, Prefix::new(address.to_bits(), length)?),
            IpAddr::V6(address) => self.withdraw_route_of(source, Prefix::new(address.to_bits(), length)?),
        }
    }

    /// Whether a source has a route of an address alone, to `hop` alone.
    pub(super) fn leads_to(&mut self, source: Source, address: IpAddr, hop: Hop) -> bool {
        match address {
            IpAddr::V4(address) => self.has_route(source, Prefix::new(address.to_bits(), 32), hop),
            IpAddr::V6(address) => self.has_route(source, Prefix::new(address.to_bits(), 128), hop),
        }
    }

    fn has_route<A: Family>(
        &mut self,
        source: Source,
        prefix: Result<Prefix<A>, fib::Error>,
        hop: Hop,
    ) -> bool {
        let Ok(prefix) = prefix else { return false };
        if A::table(self).source(prefix) == Some(source) {
            return self.followed(prefix) == [hop];
        }
        A::table(self).hidden(prefix, source) == Some(&[hop])
    }

    /// Of IPv4 this network, loopback, and what is reserved (RFC 1812, 4.2.2.11 and 5.3.7); what is for groups
    /// or for all stations is the kernel's. Of IPv6 the unspecified address, loopback, addresses of IPv4
    /// within a host, groups, and what never leaves its link (RFC 4291, 2.5 and 2.7; RFC 6890, table 20).
    pub(super) fn discard_what_nobody_may_send_to(&mut self) -> Result<(), Error> {
        let martian = Hop::Drop(Reason::Ip6MartianDestination);
        for (first, length, hop) in [
            ([0, 0, 0, 0, 0, 0, 0, 0], 128, martian),
            ([0, 0, 0, 0, 0, 0, 0, 1], 128, martian),
            ([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, martian),
            ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, Hop::Link),
            ([0xff02, 0, 0, 0, 0, 0, 0, 0], 16, Hop::Link),
            ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, Hop::Drop(Reason::Ip6Multicast)),
        ] {
            let prefix = Prefix::new(u128::from(Ipv6Addr::from(first)), length)?;
            self.add_route_of(Source::Reserved, prefix, &[hop])?;
        }
        for (address, length) in [([0, 0, 0, 0], 8), ([127, 0, 0, 0], 8), ([240, 0, 0, 0], 4)] {
            let prefix = Prefix::new(u32::from(Ipv4Addr::from(address)), length)?;
            self.add_route_of(Source::Reserved, prefix, &[Hop::Drop(Reason::Ip4MartianDestination)])?;
        }
        for (address, length) in [(Ipv4Addr::new(224, 0, 0, 0), 4), (Ipv4Addr::BROADCAST, 32)] {
            self.add_route_of(Source::Reserved, Prefix::new(address.to_bits(), length)?, &[Hop::Punt])?;
        }
        Ok(())
    }

    /// The index of the adjacency of a hop that is held once more. It is still to be published if it is new.
    pub(super) fn hold(&mut self, hop: Hop) -> Result<NextHop, fib::Error> {
        let (index, new) = self.hops.hold(hop)?;
        if new {
            let (at, adjacency) = (index.index() as usize, self.adjacency(hop));
            let adjacencies = &mut self.forwarding.adjacencies;
            match adjacencies.get_mut(at) {
                Some(place) => *place = adjacency,
                None => adjacencies.push(adjacency),
            }
            self.changed = true;
        }
        Ok(index)
    }

    /// Next hops are held once less.
    pub(super) fn release(&mut self, held: &[NextHop]) {
        held.iter().for_each(|&index| self.hops.release(index));
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use wire::MacAddress;

    use super::*;

    #[test]
    fn workers_hear_of_many_next_hops_once_and_before_a_route_leads_to_them() {
        let mut router = Router::new().unwrap();
        let lan = router.add_device("lan", MacAddress([2, 0, 0, 0, 0, 1]), 1500).unwrap();
        let mut updates = router.attach().updates;
        updates.news();
        let held = router.hops.iter().count();
        let hops: Vec<Hop> =
            (2..200u8).map(|last| Hop::Neighbour(lan, IpAddr::from([10, 0, 0, last]))).collect();
        let prefix = |number: usize| Prefix::new(0xc000_0000 | (number as u32) << 8, 24).unwrap();
        let routed = router.with_next_hops(&hops, |router| {
            let known = updates.news().unwrap();
            assert_eq!(known.adjacencies.len(), router.forwarding().adjacencies.len());
            for (number, hop) in hops[..100].iter().enumerate() {
                router.add_route(prefix(number), &[*hop])?;
            }
            Ok::<bool, Error>(updates.news().is_none())
        });
        assert!(routed.unwrap().unwrap(), "nothing was to be told of");
        // Those that no route goes through are let go.
        assert_eq!(router.hops.iter().count(), held + 100);
        (0..100).for_each(|number| assert!(router.withdraw_route(prefix(number)).unwrap()));
        assert_eq!(router.hops.iter().count(), held);
    }
}
