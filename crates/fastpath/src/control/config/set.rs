//! Changes that users ask a running router for: the same words as in the configuration enter, and are read
//! by the same rules; changes leave.

use std::collections::HashSet;
use std::sync::Arc;

use toml::Spanned;

use super::document::{HopEntry, NeighbourEntry, Problems, RouteEntry};
use super::validate::{self, Names};
use super::{Change, Config};
use crate::control::protocol::{Set, To};

/// What `set` changes of `config`.
///
/// # Errors
/// All that is wrong with it.
pub fn changes_of(config: &Config, set: &Set) -> Result<Vec<Change>, String> {
    let mut problems = Problems::default();
    let misread = HashSet::new();
    let names = Names(&config.interfaces, &misread);
    let changes = match set {
        Set::Interface { name, up, mtu } => interface(&names, name, *up, *mtu, &mut problems),
        Set::Route { prefix, to } => route(config, &names, prefix, to, &mut problems).into_iter().collect(),
        Set::Neighbour { interface, address, mac } => {
            neighbour(config, &names, [interface, address], mac.as_ref(), &mut problems).into_iter().collect()
        }
    };
    let problems = problems.reasons();
    if problems.is_empty() { Ok(changes) } else { Err(problems.join("; ")) }
}

fn interface(
    names: &Names,
    name: &str,
    up: Option<bool>,
    mtu: Option<u32>,
    problems: &mut Problems,
) -> Vec<Change> {
    let Some(interface) = names.any(&word(name), problems) else { return Vec::new() };
    let name = || interface.name.clone();
    let up = up.filter(|up| *up != interface.up).map(|up| Change::Up(name(), up));
    let mtu = mtu.map(|mtu| validate::mtu(&Spanned::new(0..0, mtu), problems));
    let mtu = mtu.filter(|mtu| *mtu != interface.mtu).map(|mtu| Change::Mtu(name(), mtu));
    up.into_iter().chain(mtu).collect()
}

fn route(config: &Config, names: &Names, prefix: &str, to: &To, problems: &mut Problems) -> Option<Change> {
    let via = match to {
        To::Nothing => {
            let prefix = problems.check(0, prefix.parse())?;
            if config.routes.get(prefix).is_none() {
                problems.add(0, format!("no route of {prefix} was configured: see fastpathctl show fib"));
            }
            return Some(Change::NoRoute(prefix));
        }
        To::Drop => None,
        To::Via(hops) => {
            let hop = |hop: &crate::control::protocol::Hop| HopEntry {
                gateway: word(&hop.gateway),
                interface: hop.interface.as_deref().map(word),
                weight: hop.weight.map(|weight| Spanned::new(0..0, weight)),
            };
            Some(hops.iter().map(hop).collect())
        }
    };
    let entry = RouteEntry { prefix: word(prefix), drop: via.is_none(), via };
    validate::route(&entry, names, problems).map(|(prefix, route)| Change::Route(prefix, Arc::new(route)))
}

fn neighbour(
    config: &Config,
    names: &Names,
    [interface, address]: [&str; 2],
    mac: Option<&String>,
    problems: &mut Problems,
) -> Option<Change> {
    let Some(mac) = mac else {
        let parsed = address.parse().ok();
        let key = parsed.map(|address| (interface.to_owned(), address));
        return match key.filter(|key| config.neighbours.contains_key(key)) {
            Some((interface, address)) => Some(Change::NoNeighbour(interface, address)),
            None => {
                problems.add(0, format!("no neighbour {address} was configured at '{interface}'"));
                None
            }
        };
    };
    let entry = NeighbourEntry { interface: word(interface), address: word(address), mac: word(mac) };
    let read = validate::neighbours(&[entry], names, problems);
    read.into_iter().next().map(|((interface, address), mac)| Change::Neighbour(interface, address, mac))
}

fn word(text: &str) -> Spanned<String> {
    Spanned::new(0..0, text.to_owned())
}
