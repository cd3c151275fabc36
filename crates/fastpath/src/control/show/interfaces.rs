//! Interfaces and what went through them: what workers forward by, and a snapshot of what all of them
//! counted, enter.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::table::{self, Column};
use crate::control::snapshot::{InterfaceCounts, Snapshot};
use crate::dataplane::forwarding::{Forwarding, Interface, Role};

/// All interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interfaces {
    /// By number.
    pub interfaces: Vec<Row>,
}

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: usize,
    /// Whether it takes and sends packets.
    pub up: bool,
    /// Bytes that a packet may have, without link header.
    pub mtu: u16,
    /// Its address.
    pub mac: String,
    /// `router`, `cross connect to …` or `bridge …`.
    pub role: String,
    /// Packets that arrived.
    pub rx_packets: u64,
    /// Their bytes, without FCS.
    pub rx_bytes: u64,
    /// Packets that were sent.
    pub tx_packets: u64,
    /// Their bytes, without FCS.
    pub tx_bytes: u64,
    /// Packets that were to leave there, and found the TX ring full.
    #[serde(default)]
    pub tx_no_room: u64,
    /// Packets that had arrived there, and were dropped.
    pub drops: u64,
    /// Packets that had arrived there, and went to the kernel.
    pub punts: u64,
}

/// The interfaces of `forwarding`, of which `counted` was counted.
#[must_use]
pub fn interfaces(forwarding: &Forwarding, counted: &Snapshot) -> Interfaces {
    let row = |(index, interface): (usize, &Interface)| {
        let counts = counted.interfaces.get(index).copied().unwrap_or_default();
        let InterfaceCounts { received, received_bytes, sent, sent_bytes, no_room, dropped, punted } = counts;
        Row {
            name: interface.name.clone(),
            index,
            up: interface.up,
            mtu: interface.mtu,
            mac: interface.mac.to_string(),
            role: role(forwarding, &interface.role),
            rx_packets: received,
            rx_bytes: received_bytes,
            tx_packets: sent,
            tx_bytes: sent_bytes,
            tx_no_room: no_room,
            drops: dropped,
            punts: punted,
        }
    };
    Interfaces { interfaces: forwarding.interfaces.iter().enumerate().map(row).collect() }
}

fn role(forwarding: &Forwarding, role: &Role) -> String {
    match *role {
        Role::Router => "router".into(),
        Role::CrossConnect(to) => {
            let to = forwarding.interfaces.get(usize::from(to)).map_or("?", |interface| &interface.name);
            format!("cross connect to {to}")
        }
        Role::Bridge(number) => format!("bridge {number}"),
    }
}

impl fmt::Display for Interfaces {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Column::{Left, Right};
        let columns = [
            Left("Name"),
            Right("Idx"),
            Left("State"),
            Right("MTU"),
            Left("Role"),
            Left("Counter"),
            Right("Count"),
        ];
        table::write(formatter, &columns, self.interfaces.iter().flat_map(lines))
    }
}

/// A line for each counter that is not zero, and one at least; the first one says whose they are.
fn lines(row: &Row) -> Vec<Vec<String>> {
    let counters = [
        ("rx packets", row.rx_packets),
        ("rx bytes", row.rx_bytes),
        ("tx packets", row.tx_packets),
        ("tx bytes", row.tx_bytes),
        ("tx no room", row.tx_no_room),
        ("drops", row.drops),
        ("punts", row.punts),
    ];
    let mut lines: Vec<Vec<String>> = counters
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| {
            let blank = std::iter::repeat_n(String::new(), 5);
            blank.chain([(*name).to_owned(), count.to_string()]).collect()
        })
        .collect();
    if lines.is_empty() {
        lines.push(vec![String::new(); 5]);
    }
    let state = if row.up { "up" } else { "down" };
    let head =
        [row.name.clone(), row.index.to_string(), state.to_owned(), row.mtu.to_string(), row.role.clone()];
    for (cell, text) in lines[0].iter_mut().zip(head) {
        *cell = text;
    }
    lines
}
