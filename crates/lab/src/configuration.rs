//! What a device under test really is: a namespace and its interfaces enter, the settings found
//! there leave.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::namespace::Namespace;
use crate::napi::{self, NapiThread, ThreadFinder};
use crate::netlink::{Link, Netlink, TABLE_MAIN};
use crate::offloads;
use crate::settings;

/// The threads that receive for `interfaces`.
pub(crate) fn threads(
    namespace: &Namespace,
    interfaces: [&str; 2],
    finder: &ThreadFinder,
) -> Result<Vec<NapiThread>> {
    namespace.netlink(|netlink| {
        let mut threads = Vec::new();
        for name in interfaces {
            for pid in finder.find(name, netlink.expect_link(name)?.index) {
                threads.push(NapiThread { interface: name.to_owned(), pid, core: napi::core_of(pid) });
            }
        }
        Ok(threads)
    })
}

/// Everything that a reader needs to know of a device, by name.
pub(crate) fn read(
    namespace: &Namespace,
    interfaces: [&str; 2],
    finder: &ThreadFinder,
) -> Result<BTreeMap<String, String>> {
    namespace.netlink(|netlink| {
        let ethtool = offloads::open()?;
        let mut found = BTreeMap::new();
        let mut both = |key: &str, values: [String; 2]| {
            found.insert(key.to_owned(), merge(interfaces, values));
        };
        let [zero, one] = interfaces;
        let links = [netlink.expect_link(zero)?, netlink.expect_link(one)?];
        let on_each = |read: &dyn Fn(&Link) -> String| [read(&links[0]), read(&links[1])];
        let switch = |feature: &str| {
            let state = |link: &Link| match ethtool.active(&link.name) {
                Ok(active) => if active.contains(feature) { "on" } else { "off" }.to_owned(),
                Err(_) => "unknown".to_owned(),
            };
            on_each(&state)
        };
        both("mtu", on_each(&|link| link.mtu.to_string()));
        both("gro", switch(offloads::GRO));
        both("tx-checksum-offload", switch(offloads::TX_CHECKSUM));
        both("xdp", on_each(&|link| link.xdp.unwrap_or("none").to_owned()));
        both("threaded-napi", on_each(&|link| napi::is_threaded(&link.name).to_string()));
        let threads = |link: &Link| finder.find(&link.name, link.index);
        both("napi-core", on_each(&|link| of_threads(&threads(link), napi::core_of)));
        both("napi-nice", on_each(&|link| of_threads(&threads(link), napi::nice_of)));
        found.extend(routing(netlink)?);
        Ok(found)
    })
}

/// The part of it that makes a namespace a router, in that of `netlink`.
pub(crate) fn routing(netlink: &Netlink) -> Result<BTreeMap<String, String>> {
    let static_neighbours = netlink.neighbours()?.iter().filter(|neighbour| neighbour.permanent).count();
    let found = [
        ("ipv4-forwarding", setting("ipv4/ip_forward")),
        ("ipv6-forwarding", setting("ipv6/conf/all/forwarding")),
        ("routes", routes(netlink)?),
        ("static-neighbours", static_neighbours.to_string()),
    ];
    Ok(found.map(|(name, value)| (name.to_owned(), value)).into())
}

/// One value where both interfaces agree, else both with their names.
fn merge([zero, one]: [&str; 2], [of_zero, of_one]: [String; 2]) -> String {
    if of_zero == of_one { of_zero } else { format!("{zero}: {of_zero}, {one}: {of_one}") }
}

/// What holds of each thread; `any` where nothing in particular does, `none` without threads.
fn of_threads<T: ToString>(pids: &[i32], what: fn(i32) -> Option<T>) -> String {
    let each = pids.iter().map(|pid| what(*pid).map_or("any".to_owned(), |value| value.to_string()));
    let all = each.collect::<Vec<_>>().join(" ");
    if all.is_empty() { "none".to_owned() } else { all }
}

fn setting(name: &str) -> String {
    match settings::get(name).as_deref() {
        Some("0") => "off",
        Some(_) => "on",
        None => "unknown",
    }
    .to_owned()
}

fn routes(netlink: &Netlink) -> Result<String> {
    let mut routes = netlink.routes()?;
    routes.retain(|route| route.table == TABLE_MAIN);
    let (v4, v6): (Vec<_>, Vec<_>) =
        routes.iter().filter_map(|route| route.destination).partition(|(address, _)| address.is_ipv4());
    Ok(format!("{} IPv4, {} IPv6", v4.len(), v6.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_that_agree_are_one_value() {
        let merged = |a: &str, b: &str| merge(["dut0", "dut1"], [a.to_owned(), b.to_owned()]);
        assert_eq!(merged("on", "on"), "on");
        assert_eq!(merged("on", "off"), "dut0: on, dut1: off");
    }
}
