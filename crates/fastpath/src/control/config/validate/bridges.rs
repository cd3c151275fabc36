//! The bridges of a configuration: entries enter, of bridges and of interfaces that are ports of them; bridges
//! leave, by number, with a note of what cannot be.

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;

use crate::control::config::Bridge;
use crate::control::config::document::{BridgeEntry, Document, InterfaceEntry, Problems};
use crate::dataplane::bridge::Settings;

/// Seconds, as IEEE 802.1Q, 8.8.3, has them.
const AGEING: RangeInclusive<u32> = 10..=1_000_000;
/// Each takes 24 bytes, and is looked at every second.
const STATIONS: RangeInclusive<u32> = 1..=1 << 20;

/// The numbers of bridges, by their names.
pub(super) fn numbers(entries: &[InterfaceEntry]) -> HashMap<String, u16> {
    let of_vlans = entries.iter().flat_map(|entry| &entry.vlan).filter_map(|vlan| vlan.bridge.as_ref());
    let of_devices = entries.iter().filter_map(|entry| entry.bridge.as_ref());
    let names: BTreeSet<&String> = of_devices.chain(of_vlans).map(Spanned::get_ref).collect();
    names.into_iter().cloned().zip(0..).collect()
}

/// The bridges, by number; set as usual where no entry says otherwise.
pub(super) fn bridges(document: &Document, problems: &mut Problems) -> Vec<Bridge> {
    let numbers = numbers(&document.interfaces);
    let mut read: Vec<Bridge> =
        numbers.keys().map(|name| Bridge { name: name.clone(), settings: Settings::default() }).collect();
    read.sort_unstable_by_key(|bridge| numbers[&bridge.name]);
    let mut seen = BTreeSet::new();
    for entry in &document.bridges {
        let (at, name) = (entry.name.span().start, entry.name.get_ref());
        if !seen.insert(name) {
            problems.add(at, format!("the bridge {name} is set twice: keep one"));
        }
        let settings = settings(entry, problems);
        match read.iter_mut().find(|bridge| bridge.name == *name) {
            Some(bridge) => bridge.settings = settings,
            // What was not understood may be its port.
            None if !document.misread.is_empty() => {}
            None => problems.add(
                at,
                format!(
                    "no interface is a port of the bridge '{name}': write bridge = \"{name}\" at those that are"
                ),
            ),
        }
    }
    read
}

fn settings(entry: &BridgeEntry, problems: &mut Problems) -> Settings {
    let usual = Settings::default();
    let mut number = |written: Option<&Spanned<u32>>, range: RangeInclusive<u32>, what: &str| {
        let number = *written?.get_ref();
        if !range.contains(&number) {
            let reason = format!("{what} of {number}: write {} to {}", range.start(), range.end());
            problems.add(written?.span().start, reason);
        }
        Some(number)
    };
    let ageing = number(entry.ageing.as_ref(), AGEING, "an ageing time in seconds");
    let stations = number(entry.stations.as_ref(), STATIONS, "a table for stations");
    Settings {
        ageing: ageing.map_or(usual.ageing, |seconds| Duration::from_secs(seconds.into())),
        stations: stations.unwrap_or(usual.stations),
    }
}
