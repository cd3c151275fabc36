//! The device under test of a run, and what is known of it beside its traffic.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Remote;

/// The device under test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Dut {
    /// Its name, like `linux-router`; for a device between real ports, its driver's, or `ports`.
    pub name: String,
    /// Its parameters as given.
    pub parameters: BTreeMap<String, String>,
    /// Its configuration as found: offloads, forwarding, routes, threads.
    pub configuration: BTreeMap<String, String>,
    /// The core its work was placed on, where that is known.
    pub core: Option<usize>,
    /// The core of each of its workers, where it has several; `core` is the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<usize>,
    /// How it was reached and what it counted, if it is another computer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Box<Remote>>,
    /// What a few frames before the run showed of what it filters, where sources were named that it must drop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterProof>,
    /// What it kept in memory of connections when the run ended, if it tracks them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<States>,
}

/// What became of a few frames that a device must drop, and of as many that it must pass, both directions together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FilterProof {
    /// The sources whose packets it must drop.
    pub denied: Vec<String>,
    /// Frames from those sources that were sent.
    pub denied_sent: u64,
    /// Those of them that passed: 0 where it filters as it should.
    pub denied_passed: u64,
    /// Frames of the profile that were sent.
    pub permitted_sent: u64,
    /// Those of them that passed: all where it filters as it should.
    pub permitted_passed: u64,
}

impl FilterProof {
    /// Whether it drops what it must drop, and passes what it must pass.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.denied_sent > 0
            && self.denied_passed == 0
            && self.permitted_sent > 0
            && self.permitted_passed == self.permitted_sent
    }
}

/// The connections that a device tracked when the run ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct States {
    /// How many there were.
    pub count: u64,
    /// The most that there may be.
    pub limit: u64,
    /// Buckets of the hash table that they are found by, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buckets: Option<u64>,
    /// Bytes of memory that they took, of the kernel's own count of their objects (slab), less what these took before
    /// the run; where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl Dut {
    /// Its name and parameters as `--dut` takes them, like `calibrated:burst=64,rate=300kpps`.
    #[must_use]
    pub fn label(&self) -> String {
        let parameters: Vec<String> =
            self.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        match parameters.as_slice() {
            [] => self.name.clone(),
            _ => format!("{}:{}", self.name, parameters.join(",")),
        }
    }
}
