//! The routes and neighbours of a configuration, and of what users set: entries enter, and the interfaces
//! that they may name; routes and neighbours leave, with a note of what cannot be.

use std::collections::BTreeMap;
use std::net::IpAddr;

use wire::MacAddress;

use super::{Names, may_be_a_host, unicast};
use crate::control::config::document::{HopEntry, NeighbourEntry, Problems, RouteEntry};
use crate::control::config::routes::Shared;
use crate::control::config::{Hop, IpPrefix, Route, Routes};

/// The most that the weights of a route's hops may add up to.
const MAX_WEIGHT: u32 = 256;

pub(crate) fn routes(entries: &[RouteEntry], names: &Names, problems: &mut Problems) -> Routes {
    let (mut read, mut shared) = (Routes::default(), Shared::default());
    let own = Own::of(names);
    for entry in entries {
        let at = entry.prefix.span().start;
        let Some((prefix, route)) = route_beside(entry, &own, names, problems) else { continue };
        if read.insert(prefix, shared.one(route)).is_some() {
            let reason = format!("there are two routes of {prefix}: keep one, with several hops if need be");
            problems.add(at, reason);
        }
    }
    read
}

/// A single route.
pub(crate) fn route(entry: &RouteEntry, names: &Names, problems: &mut Problems) -> Option<(IpPrefix, Route)> {
    route_beside(entry, &Own::of(names), names, problems)
}

/// The prefixes that have no route but the one that every router gives them, by prefix, each with the interface
/// whose network it is.
pub(crate) struct Own(BTreeMap<IpPrefix, Option<String>>);

impl Own {
    pub fn of(names: &Names) -> Self {
        let discarded = ["0.0.0.0/8", "127.0.0.0/8", "240.0.0.0/4", "224.0.0.0/4", "fe80::/10", "ff00::/8"];
        let discarded = discarded.into_iter().filter_map(|prefix| Some((prefix.parse().ok()?, None)));
        let networks = names.0.iter().flat_map(|interface| {
            let networks = interface.addresses.iter().filter_map(|subnet| IpPrefix::of(*subnet).ok());
            networks.map(|network| (network, Some(interface.name.clone())))
        });
        Self(discarded.chain(networks).collect())
    }

    /// Why a prefix can have no other route.
    pub fn reason(&self, prefix: IpPrefix) -> Option<String> {
        Some(match self.0.get(&prefix)? {
            Some(interface) => {
                format!("{prefix} is the network of {interface}: its route follows from the address")
            }
            None => format!("{prefix} is what nobody may send to by a router: leave its route out"),
        })
    }
}

fn route_beside(
    entry: &RouteEntry,
    own: &Own,
    names: &Names,
    problems: &mut Problems,
) -> Option<(IpPrefix, Route)> {
    let at = entry.prefix.span().start;
    let prefix: Option<IpPrefix> = problems.check(at, entry.prefix.get_ref().parse());
    let is_ip4 = prefix.map(|prefix| matches!(prefix, IpPrefix::Ip4(_)));
    let route = match (&entry.via, entry.drop) {
        (None, true) => Some(Route::Drop),
        (Some(hops), false) if !hops.is_empty() => via(at, hops, is_ip4, names, problems),
        _ => {
            let reason = "a route needs either via = [{ gateway = \"10.0.0.2\" }] or drop = true";
            problems.add(at, reason);
            None
        }
    };
    let (prefix, route) = (prefix?, route?);
    own.reason(prefix).into_iter().for_each(|reason| problems.add(at, reason));
    Some((prefix, route))
}

/// The route through `hops`, of which there is one.
pub(crate) fn via(
    at: usize,
    hops: &[HopEntry],
    is_ip4: Option<bool>,
    names: &Names,
    problems: &mut Problems,
) -> Option<Route> {
    let weight = |hop: &HopEntry| hop.weight.as_ref().map_or(1, |weight| *weight.get_ref());
    let weights: u32 = hops.iter().map(weight).fold(0, u32::saturating_add);
    if weights > MAX_WEIGHT {
        problems.add(at, format!("weights of {weights} in all: let them add up to {MAX_WEIGHT} at most"));
    }
    let read: Vec<_> = hops.iter().map(|hop| self::hop(hop, is_ip4, names, problems)).collect();
    read.into_iter().collect::<Option<Vec<_>>>().map(Route::Via)
}

fn hop(entry: &HopEntry, is_ip4: Option<bool>, names: &Names, problems: &mut Problems) -> Option<Hop> {
    let at = entry.gateway.span().start;
    let text = entry.gateway.get_ref();
    let gateway: Option<IpAddr> = problems.check(
        at,
        text.parse().map_err(|_| format!("'{text}' is no address: write one like 10.0.0.2 or 2001:db8::2")),
    );
    let weight = entry.weight.as_ref().map_or(1, |weight| *weight.get_ref());
    if weight == 0 {
        problems.add(
            entry.weight.as_ref().map_or(at, |weight| weight.span().start),
            "a weight of 0: write 1 or more, or leave the hop out",
        );
    }
    let gateway = gateway?;
    if !may_be_a_host(gateway) {
        problems.add(
            at,
            format!("{gateway} is no host's address, so no gateway: write one that a neighbour has"),
        );
    }
    if is_ip4.is_some_and(|is_ip4| is_ip4 != gateway.is_ipv4()) {
        problems
            .add(at, format!("{gateway} is of another version of IP than the prefix: write one of the same"));
    }
    let interface = match &entry.interface {
        Some(written) => names.router(written, problems),
        None => {
            let found = names.of_address(gateway);
            if found.is_none() {
                let reason = format!(
                    "{gateway} is in no interface's network: write interface = \"…\" beside it, or dev … in a table"
                );
                problems.add(at, reason);
            }
            found
        }
    };
    Some(Hop { gateway, interface: interface?.name.clone(), weight: u16::try_from(weight).ok()? })
}

pub(crate) fn neighbours(
    entries: &[NeighbourEntry],
    names: &Names,
    problems: &mut Problems,
) -> BTreeMap<(String, IpAddr), MacAddress> {
    let mut read = BTreeMap::new();
    for entry in entries {
        let at = entry.address.span().start;
        let text = entry.address.get_ref();
        let address = text
            .parse()
            .map_err(|_| format!("'{text}' is no address: write one like 10.0.0.2 or 2001:db8::2"));
        let address: Option<IpAddr> = problems.check(at, address);
        let interface = names.router(&entry.interface, problems);
        let mac = unicast(&entry.mac, problems);
        let (Some(address), Some(interface), Some(mac)) = (address, interface, mac) else { continue };
        if !may_be_a_host(address) {
            problems.add(at, format!("{address} is no host's address: write one that a neighbour has"));
        }
        if read.insert((interface.name.clone(), address), mac).is_some() {
            let reason = format!("{address} at {} is there twice: keep one", interface.name);
            problems.add(at, reason);
        }
    }
    read
}
