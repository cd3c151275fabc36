//! Brings the kernel's routes into a router: changes of routes enter, routes of a [`Router`] leave.
//!
//! What nobody may send to is the router's: the kernel's routes to the same prefixes are left alone.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Change, Path, RouteChange, Towards};
use crate::control::router::{Error, Family, Hop, Router, Source};
use crate::dataplane::counters::Reason;
use crate::fib::Prefix;

/// Brings the kernel's routes into a router.
#[derive(Debug, Default)]
pub struct Importer {
    /// By the kernel's index, the router's number of the same interface.
    interfaces: HashMap<u32, u16>,
}

impl Importer {
    /// The kernel's interface of this index (that of a [`super::Tap`], say) is the router's of this number.
    /// What goes by any other interface is left to the kernel.
    pub fn join(&mut self, kernel: u32, router: u16) {
        self.interfaces.insert(kernel, router);
    }

    /// The kernel's interface of this index is none of the router's any more. Routes by it go when the
    /// kernel says so.
    pub fn part(&mut self, kernel: u32) {
        self.interfaces.remove(&kernel);
    }

    /// Does to `router` what happened to a route of the kernel. Other changes do nothing.
    ///
    /// # Errors
    /// [`Error::Fib`] when there is no room: the route is as it was then.
    pub fn apply(&self, change: &Change, router: &mut Router) -> Result<(), Error> {
        match change {
            Change::Route4(change) => self.route(change, router),
            Change::Route6(change) => self.route(change, router),
            _ => Ok(()),
        }
    }

    fn route<A: Kind>(&self, change: &RouteChange<A>, router: &mut Router) -> Result<(), Error> {
        let prefix = change.prefix;
        if A::is_nobodys(prefix) {
            return Ok(());
        }
        match &change.path {
            Some(path) => router.add_route_of(Source::Kernel, prefix, &self.hops(path, prefix, router)),
            None => router.withdraw_route_of(Source::Kernel, prefix).map(drop),
        }
    }

    /// Where the packets of a route go, each as often as its weight asks.
    fn hops<A: Kind>(&self, path: &Path, prefix: Prefix<A>, router: &Router) -> Vec<Hop> {
        let [blackhole, unreachable, prohibited] = A::REASONS;
        let hop = |towards| match towards {
            Towards::Neighbour { interface, gateway } => {
                let interface = self.interfaces.get(&interface);
                interface.and_then(|&number| neighbour(number, gateway, prefix, router)).unwrap_or(Hop::Punt)
            }
            Towards::Blackhole => Hop::Drop(blackhole),
            Towards::Unreachable => Hop::Drop(unreachable),
            Towards::Prohibit => Hop::Drop(prohibited),
            Towards::Kernel => Hop::Punt,
        };
        let mut hops: Vec<Hop> = path.members().into_iter().map(hop).collect();
        if hops.iter().all(|hop| Some(hop) == hops.first()) {
            hops.truncate(1);
        }
        hops
    }
}

/// A gateway at an interface, or the host with the destination there; `None` if the router has no such hop.
fn neighbour<A: Kind>(
    interface: u16,
    gateway: Option<IpAddr>,
    prefix: Prefix<A>,
    router: &Router,
) -> Option<Hop> {
    match gateway {
        Some(gateway) => A::has(gateway).then_some(Hop::Neighbour(interface, gateway)),
        None => {
            let own = router.interface(interface).ok()?.sender(prefix.address().ip())?;
            Some(Hop::Glean(interface, own))
        }
    }
}

/// What the importer needs to know of a kind of address.
trait Kind: Family {
    /// Why packets of blackhole, unreachable and prohibit routes are dropped.
    const REASONS: [Reason; 3];

    /// As others write it.
    fn ip(self) -> IpAddr;

    /// Whether nobody may send there, or groups and links are meant, of which the router takes care itself.
    fn is_nobodys(prefix: Prefix<Self>) -> bool;
}

impl Kind for u32 {
    const REASONS: [Reason; 3] = [Reason::Ip4Blackhole, Reason::Ip4Unreachable, Reason::Ip4Prohibited];

    fn ip(self) -> IpAddr {
        Ipv4Addr::from_bits(self).into()
    }

    fn is_nobodys(prefix: Prefix<Self>) -> bool {
        let first = prefix.address().to_be_bytes()[0];
        first == 127 || first >= 224 || first == 0 && prefix.length() >= 8
    }
}

impl Kind for u128 {
    const REASONS: [Reason; 3] = [Reason::Ip6Blackhole, Reason::Ip6Unreachable, Reason::Ip6Prohibited];

    fn ip(self) -> IpAddr {
        Ipv6Addr::from_bits(self).into()
    }

    fn is_nobodys(prefix: Prefix<Self>) -> bool {
        let address = Ipv6Addr::from_bits(prefix.address());
        let within_a_host = prefix.length() >= 96 && prefix.address() >> 48 == 0;
        within_a_host || address.is_multicast() || address.is_unicast_link_local()
    }
}

#[cfg(test)]
mod tests;
