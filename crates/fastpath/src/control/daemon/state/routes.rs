//! The routes of the configuration in the router: one or all of them enter; the router follows them, or the ones
//! before.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result};

use super::State;
use crate::control::config::{IpPrefix, Route, Routes};
use crate::control::router::{self, Hop, Router};
use crate::dataplane::counters::Reason;

/// The hops of routes, by the place of the route, which many prefixes share. They live as long as the tables do that
/// they were made of.
type Ways = HashMap<*const Route, Vec<Hop>>;

impl State {
    /// Has packets to a prefix take another route.
    pub(super) fn set_route(&mut self, prefix: IpPrefix, route: &Route) -> Result<()> {
        let hops = self.hops(route)?;
        follow(&mut self.router, prefix, hops.as_deref())
    }

    /// Takes the route of a prefix away.
    pub(super) fn withdraw(&mut self, prefix: IpPrefix) -> Result<()> {
        withdraw(&mut self.router, prefix)
    }

    /// Has the router follow other routes: all of them, or none but those before. Workers hear once of the next hops
    /// that this needs.
    pub(super) fn set_routes(&mut self, new: Arc<Routes>) -> Result<()> {
        let old = Arc::clone(&self.config.routes);
        let Err(error) = self.change_routes(&old, &new) else {
            self.config.routes = new;
            return Ok(());
        };
        // Whatever was done, this makes all that differs what it was.
        Err(match self.change_routes(&new, &old) {
            Ok(()) => error,
            Err(why) => error.context(format!("not all routes are as before ({why:#}): mend it, and reload")),
        })
    }

    /// Does what makes one table into another: what goes before what comes, which may need its room.
    fn change_routes(&mut self, old: &Routes, new: &Routes) -> Result<()> {
        let mut ways = Ways::new();
        for (_, route) in old.changes(new) {
            let Some(route) = route.filter(|route| !ways.contains_key(&Arc::as_ptr(route))) else { continue };
            if let Some(hops) = self.hops(route)? {
                ways.insert(Arc::as_ptr(route), hops);
            }
        }
        let hops: Vec<Hop> = ways.values().flatten().copied().collect();
        self.router.with_next_hops(&hops, |router| {
            let gone = old.changes(new).filter(|(_, route)| route.is_none());
            gone.map(|(prefix, _)| prefix).try_for_each(|prefix| withdraw(router, prefix))?;
            let come = old.changes(new).filter_map(|(prefix, route)| Some((prefix, route?)));
            let mut come = come.map(|(prefix, route)| (prefix, ways.get(&Arc::as_ptr(route))));
            come.try_for_each(|(prefix, hops)| follow(router, prefix, hops.map(Vec::as_slice)))
        })?
    }

    /// The hops of a route, each as often as its weight asks; none of one that leads nowhere.
    fn hops(&self, route: &Route) -> Result<Option<Vec<Hop>>> {
        let Route::Via(hops) = route else { return Ok(None) };
        let mut list = Vec::new();
        for hop in hops {
            let to = Hop::Neighbour(self.number(&hop.interface)?, hop.gateway);
            list.extend(std::iter::repeat_n(to, usize::from(hop.weight)));
        }
        Ok(Some(list))
    }
}

/// Has packets to a prefix go by `hops`, or nowhere without.
fn follow(router: &mut Router, prefix: IpPrefix, hops: Option<&[Hop]>) -> Result<()> {
    let nowhere = |reason| [Hop::Drop(reason)];
    match prefix {
        IpPrefix::Ip4(prefix) => router.add_route(prefix, hops.unwrap_or(&nowhere(Reason::Ip4Blackhole))),
        IpPrefix::Ip6(prefix) => router.add_route(prefix, hops.unwrap_or(&nowhere(Reason::Ip6Blackhole))),
    }
    .with_context(|| prefix.to_string())
}

fn withdraw(router: &mut Router, prefix: IpPrefix) -> Result<()> {
    let withdrawn: Result<bool, router::Error> = match prefix {
        IpPrefix::Ip4(prefix) => router.withdraw_route(prefix),
        IpPrefix::Ip6(prefix) => router.withdraw_route(prefix),
    };
    withdrawn.map(drop).with_context(|| prefix.to_string())
}
