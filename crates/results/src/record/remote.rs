//! A device under test that is another computer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How such a device was reached and configured, and what it counted itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Remote {
    /// The host, as ssh takes it, or `virtual machine`. No password and no key.
    pub host: String,
    /// The driver's name.
    pub driver: String,
    /// The text of a driver that is not built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The driver's options, those too that the user left as they are.
    pub options: BTreeMap<String, String>,
    /// What it counted, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, Count>,
    /// What each of its cores counted, by name, like `busy` and `NET_RX`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<RemoteCore>,
}

/// A core of the device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RemoteCore {
    /// Its number there.
    pub core: usize,
    /// What it counted.
    pub counters: BTreeMap<String, Count>,
}

/// A counter of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Count {
    /// Its value before the first frame.
    pub before: u64,
    /// Its value after the drain.
    pub after: u64,
}

impl Count {
    /// What was counted meanwhile; absent if the counter was set back.
    #[must_use]
    pub fn meanwhile(self) -> Option<u64> {
        self.after.checked_sub(self.before)
    }
}
