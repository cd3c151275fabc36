//! What a new configuration changes: the running one and the new one enter; the changes leave, in an order
//! in which they can be made, or what cannot change while the router runs.

use std::net::IpAddr;
use std::sync::Arc;

use wire::MacAddress;

use super::{Bridge, Config, Filters, IpPrefix, Role, Route, Routes};
use crate::dataplane::acl::Rule;
use crate::dataplane::states::Timeouts;
use crate::subnet::Subnet;

/// One change of a running router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An interface goes up or down.
    Up(String, bool),
    /// Packets at an interface may have so many bytes.
    Mtu(String, u16),
    /// An interface has another MAC address.
    Mac(String, MacAddress),
    /// An interface does something else with what arrives.
    Role(String, Role),
    /// The bridge of this number is called and set like this; it forgets its stations if it was set otherwise.
    Bridge(u16, Bridge),
    /// States of flows stay so long.
    Timeouts(Timeouts),
    /// An access list has these rules.
    AccessList(String, Vec<Rule>),
    /// There is no such access list any more.
    NoAccessList(String),
    /// An interface has these access lists.
    Filters(String, Filters),
    /// An interface has one more address.
    Address(String, Subnet),
    /// An interface has lost an address.
    NoAddress(String, Subnet),
    /// A neighbour has this address.
    Neighbour(String, IpAddr, MacAddress),
    /// A neighbour's address is no longer given.
    NoNeighbour(String, IpAddr),
    /// Packets to a prefix go there.
    Route(IpPrefix, Arc<Route>),
    /// A prefix has lost its route.
    NoRoute(IpPrefix),
    /// All routes are these, of which some are others than before.
    Routes(Arc<Routes>),
}

/// What a running router cannot change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} cannot change while the router runs: restart it, or leave that as it is")]
pub struct Fixed(pub String);

/// What makes `old` into `new`: bridges, access lists and interfaces first, then addresses, neighbours and routes; what
/// goes before what comes, but for access lists.
///
/// # Errors
/// All that cannot change while the router runs.
pub fn difference(old: &Config, new: &Config) -> Result<Vec<Change>, Vec<Fixed>> {
    let fixed = fixed(old, new);
    if !fixed.is_empty() {
        return Err(fixed);
    }
    let set =
        new.bridges.iter().enumerate().filter(|(number, bridge)| old.bridges.get(*number) != Some(*bridge));
    let mut changes: Vec<_> =
        set.map(|(number, bridge)| Change::Bridge(number as u16, bridge.clone())).collect();
    if old.states.timeouts != new.states.timeouts {
        changes.push(Change::Timeouts(new.states.timeouts));
    }
    let come = new.access_lists.iter().filter(|(name, rules)| old.access_lists.get(*name) != Some(*rules));
    changes.extend(come.map(|(name, rules)| Change::AccessList(name.clone(), rules.clone())));
    for (old, new) in old.interfaces.iter().zip(&new.interfaces) {
        let name = || new.name.clone();
        if old.mac != new.mac {
            changes.push(Change::Mac(name(), new.mac));
        }
        if old.mtu != new.mtu {
            changes.push(Change::Mtu(name(), new.mtu));
        }
        if old.role != new.role {
            changes.push(Change::Role(name(), new.role.clone()));
        }
        if old.filters != new.filters {
            changes.push(Change::Filters(name(), new.filters.clone()));
        }
        if old.up != new.up {
            changes.push(Change::Up(name(), new.up));
        }
    }
    let gone = old.access_lists.keys().filter(|name| !new.access_lists.contains_key(*name));
    changes.extend(gone.map(|name| Change::NoAccessList(name.clone())));
    for (old, new) in old.interfaces.iter().zip(&new.interfaces) {
        let gone = old.addresses.iter().filter(|address| !new.addresses.contains(address));
        changes.extend(gone.map(|address| Change::NoAddress(old.name.clone(), *address)));
    }
    for (old, new) in old.interfaces.iter().zip(&new.interfaces) {
        let come = new.addresses.iter().filter(|address| !old.addresses.contains(address));
        changes.extend(come.map(|address| Change::Address(new.name.clone(), *address)));
    }
    let gone = old.neighbours.keys().filter(|key| !new.neighbours.contains_key(key));
    changes.extend(gone.map(|(interface, address)| Change::NoNeighbour(interface.clone(), *address)));
    let come = new.neighbours.iter().filter(|(key, mac)| old.neighbours.get(key) != Some(mac));
    changes.extend(come.map(|((name, address), mac)| Change::Neighbour(name.clone(), *address, *mac)));
    if old.routes != new.routes {
        changes.push(Change::Routes(Arc::clone(&new.routes)));
    }
    Ok(changes)
}

fn fixed(old: &Config, new: &Config) -> Vec<Fixed> {
    let mut fixed = Vec::new();
    if old.socket != new.socket {
        fixed.push(Fixed("the control socket".into()));
    }
    if old.workers != new.workers {
        fixed.push(Fixed("workers, which have their cores and queues,".into()));
    }
    if old.routes_from_kernel != new.routes_from_kernel {
        fixed.push(Fixed("routes-from-kernel".into()));
    }
    if old.states.maximum != new.states.maximum {
        fixed.push(Fixed("the maximum of states, whose memory is taken at once,".into()));
    }
    if old.metrics != new.metrics {
        fixed.push(Fixed("the address of the metrics".into()));
    }
    for interface in &new.interfaces {
        match old.interface(&interface.name) {
            None => fixed.push(Fixed(format!("the set of devices and VLANs ({} is new)", interface.name))),
            Some(before) if before.attachment != interface.attachment => {
                fixed.push(Fixed(format!("the device of {}", interface.name)));
            }
            Some(before) if before.tap != interface.tap => {
                fixed.push(Fixed(format!("the tap of {}", interface.name)));
            }
            Some(before) if before.rss != interface.rss => {
                fixed.push(Fixed(format!("whether {} has rss", interface.name)));
            }
            Some(_) => {}
        }
    }
    let gone = old.interfaces.iter().filter(|interface| new.interface(&interface.name).is_none());
    fixed.extend(gone.map(|gone| Fixed(format!("the set of devices and VLANs ({} is missing)", gone.name))));
    let names = |config: &Config| {
        config.interfaces.iter().map(|interface| interface.name.clone()).collect::<Vec<_>>()
    };
    if fixed.is_empty() && names(old) != names(new) {
        fixed.push(Fixed("the order of interfaces, by which they are numbered,".into()));
    }
    fixed
}
