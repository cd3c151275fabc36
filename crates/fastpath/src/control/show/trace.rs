//! Traces: what every node saw of the packets that were to be traced.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::dataplane::trace::Traced;

/// The packets that were traced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The first ones first.
    pub packets: Vec<Traced>,
    /// How many are still to be traced.
    pub wanted: u32,
}

impl fmt::Display for Trace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, packet) in self.packets.iter().enumerate() {
            write!(formatter, "Packet {}, ", at + 1)?;
            packet.fmt(formatter)?;
        }
        writeln!(formatter, "{} traced, {} still to be traced", self.packets.len(), self.wanted)
    }
}
