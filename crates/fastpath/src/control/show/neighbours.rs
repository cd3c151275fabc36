//! Neighbours: those that the router knows enter.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::table::{self, Column};
use crate::control::router::Router;

/// All neighbours whose link address is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbours {
    /// By interface and address.
    pub neighbours: Vec<Row>,
}

/// A neighbour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The interface that it is at.
    pub interface: String,
    /// Its address.
    pub address: String,
    /// Its link address.
    pub mac: String,
    /// `static` if it was configured or set, `learned` if it said so itself.
    pub source: String,
}

/// The neighbours of a router.
#[must_use]
pub fn neighbours(router: &Router) -> Neighbours {
    let mut known: Vec<_> = router.neighbours().collect();
    known.sort_unstable_by_key(|(interface, address, _)| (*interface, *address));
    let row = |(interface, address, mac)| {
        let name =
            router.interface(interface).map_or_else(|_| interface.to_string(), |found| found.name.clone());
        let source = if router.is_set(interface, address) == Some(true) { "static" } else { "learned" };
        let mac: wire::MacAddress = mac;
        Row { interface: name, address: address.to_string(), mac: mac.to_string(), source: source.to_owned() }
    };
    Neighbours { neighbours: known.into_iter().map(row).collect() }
}

impl fmt::Display for Neighbours {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = ["Interface", "Address", "MAC", "Source"].map(Column::Left);
        let rows = self
            .neighbours
            .iter()
            .map(|row| vec![row.interface.clone(), row.address.clone(), row.mac.clone(), row.source.clone()]);
        table::write(formatter, &columns, rows)
    }
}
