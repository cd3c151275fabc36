//! What a switch counted between the tester and the device, by SNMP.

use serde::{Deserialize, Serialize};

use super::Count;

/// A switch that the ports are plugged into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Switch {
    /// Where its agent was asked, as HOST:PORT.
    pub agent: String,
    /// What it says of itself (`sysDescr`).
    pub description: String,
    /// Its interfaces at port 0 and port 1.
    pub interfaces: Vec<SwitchInterface>,
}

/// What a switch counted at one interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SwitchInterface {
    /// Its name, or its number.
    pub name: String,
    /// Unicast packets that came (`ifHCInUcastPkts`).
    pub received: Count,
    /// Unicast packets that were to leave (`ifHCOutUcastPkts`).
    pub sent: Count,
    /// Packets that came meanwhile and were dropped (`ifInDiscards`).
    pub receive_dropped: u64,
    /// Packets that were to leave meanwhile and were dropped (`ifOutDiscards`).
    pub send_dropped: u64,
}
