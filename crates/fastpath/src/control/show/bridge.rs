//! Bridges and their stations: bridges as workers see them, and their names, enter.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::table::{self, Column};
use crate::dataplane::bridge;
use crate::dataplane::forwarding::Forwarding;

/// All bridges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bridges {
    /// By number.
    pub bridges: Vec<Bridge>,
}

/// A bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bridge {
    /// Its name.
    pub name: String,
    /// Its number, as `show interfaces` has it.
    pub index: u16,
    /// Its interfaces that are up.
    pub ports: Vec<String>,
    /// Seconds after which a station is forgotten that says nothing.
    pub ageing: u64,
    /// The most stations that it can know.
    pub most: u32,
    /// How many it knows.
    pub known: usize,
    /// The first of them by their addresses.
    pub stations: Vec<Station>,
}

/// A station.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Station {
    /// Its address.
    pub mac: String,
    /// The interface that it was last seen at.
    pub interface: String,
    /// Seconds since then.
    pub age: u64,
}

/// The bridges of `forwarding`, which are called by `name`, with at most so many stations of each.
#[must_use]
pub fn bridges(forwarding: &Forwarding, name: impl Fn(u16) -> String, most: usize) -> Bridges {
    let interface = |number: u16| {
        let found = forwarding.interfaces.get(usize::from(number));
        found.map_or_else(|| number.to_string(), |interface| interface.name.clone())
    };
    let station = |station: bridge::Station| Station {
        mac: station.mac.to_string(),
        interface: interface(station.interface),
        age: station.silent.as_secs(),
    };
    let bridge = |bridge: &bridge::Bridge| {
        let mut known = bridge.stations.list();
        known.sort_unstable_by_key(|station| station.mac.0);
        let settings = bridge.stations.settings();
        Bridge {
            name: name(bridge.domain),
            index: bridge.domain,
            ports: bridge.ports.iter().map(|port| interface(*port)).collect(),
            ageing: settings.ageing.as_secs(),
            most: settings.stations,
            known: known.len(),
            stations: known.into_iter().take(most).map(station).collect(),
        }
    };
    Bridges { bridges: forwarding.bridges.iter().map(bridge).collect() }
}

impl fmt::Display for Bridges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Column::{Left, Right};
        if self.bridges.is_empty() {
            return writeln!(formatter, "no interface is a port of a bridge");
        }
        for (at, bridge) in self.bridges.iter().enumerate() {
            let Bridge { name, index, ports, ageing, most, known, stations } = bridge;
            if at > 0 {
                writeln!(formatter)?;
            }
            writeln!(
                formatter,
                "{name} (bridge {index}): ports {}; {known} of {most} stations, ageing {ageing} s",
                if ports.is_empty() { "none that are up".to_owned() } else { ports.join(", ") }
            )?;
            if stations.is_empty() {
                continue;
            }
            let rows = stations
                .iter()
                .map(|station| vec![station.mac.clone(), station.interface.clone(), station.age.to_string()]);
            table::write(formatter, &[Left("MAC"), Left("Interface"), Right("Age (s)")], rows)?;
            if stations.len() < *known {
                writeln!(formatter, "… and {} more", known - stations.len())?;
            }
        }
        Ok(())
    }
}
