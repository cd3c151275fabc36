//! How cores are arranged: `/sys/devices/system` enters, a [`Topology`] leaves.

use std::collections::{BTreeMap, BTreeSet};

use results::record::{Cache, Core, Topology};

use crate::{System, parse_list};

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";

/// Reads it; of a system without such a directory there are no cores.
pub fn read(system: &System) -> Topology {
    let online = online(system);
    let nodes = nodes(system);
    let core = |number: &usize| {
        let topology = format!("{CPU}/cpu{number}/topology");
        let threads = system.list(&format!("{topology}/thread_siblings_list"));
        let is_other = |other: &usize| other != number && online.contains(other);
        Core {
            number: *number,
            package: system
                .number(&format!("{topology}/physical_package_id"))
                .and_then(|id| usize::try_from(id).ok()),
            siblings: threads.into_iter().filter(is_other).collect(),
            node: nodes.get(number).copied(),
        }
    };
    let among_online = |file: &str| {
        let listed = system.list(&format!("{CPU}/{file}"));
        listed.into_iter().filter(|core| online.contains(core)).collect()
    };
    Topology {
        cores: online.iter().map(core).collect(),
        isolated: among_online("isolated"),
        nohz_full: among_online("nohz_full"),
        smt: system.text(&format!("{CPU}/smt/control")),
        caches: caches(system, &online),
    }
}

fn online(system: &System) -> BTreeSet<usize> {
    system.list(&format!("{CPU}/online")).into_iter().collect()
}

/// The node of each core.
fn nodes(system: &System) -> BTreeMap<usize, usize> {
    let number = |name: &String| name.strip_prefix("node")?.parse::<usize>().ok();
    let nodes = system.entries(NODE).into_iter().filter_map(|name| Some((number(&name)?, name)));
    let cores = |(node, name): (usize, String)| {
        system.list(&format!("{NODE}/{name}/cpulist")).into_iter().map(move |core| (core, node))
    };
    nodes.flat_map(cores).collect()
}

/// Each kind of cache. One that several cores share is told of by each of them.
fn caches(system: &System, online: &BTreeSet<usize>) -> Vec<Cache> {
    let mut kinds: BTreeMap<(u8, String, u64), BTreeSet<Vec<usize>>> = BTreeMap::new();
    for core in online {
        let directory = format!("{CPU}/cpu{core}/cache");
        for index in system.entries(&directory).into_iter().filter(|name| name.starts_with("index")) {
            let read = |file: &str| system.text(&format!("{directory}/{index}/{file}"));
            let (level, size) = (read("level").and_then(|text| text.parse().ok()), read("size"));
            let (Some(level), Some(kind), Some(kib)) =
                (level, read("type"), size.and_then(|size| kib(&size)))
            else {
                continue;
            };
            let shared = read("shared_cpu_list").map_or_else(|| vec![*core], |text| parse_list(&text));
            let shared = shared.into_iter().filter(|core| online.contains(core)).collect();
            kinds.entry((level, kind, kib)).or_default().insert(shared);
        }
    }
    let kind = |((level, kind, kib), sets): ((u8, String, u64), BTreeSet<Vec<usize>>)| Cache {
        level,
        kind,
        kib,
        count: sets.len(),
        cores: sets.iter().map(Vec::len).max().unwrap_or(1),
    };
    kinds.into_iter().map(kind).collect()
}

/// `32768K` in KiB.
fn kib(text: &str) -> Option<u64> {
    match text.strip_suffix('M') {
        Some(mebibytes) => mebibytes.parse::<u64>().ok()?.checked_mul(1024),
        None => text.strip_suffix('K')?.parse().ok(),
    }
}
