//! What a forwarded frame costs the device: time of its core, cycles, energy, by load.

use serde::{Deserialize, Serialize};

use super::Node;

/// Costs at several loads, the lowest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cost {
    /// What counts as work.
    pub basis: Basis,
    /// Each load.
    pub loads: Vec<LoadCost>,
    /// Where energy figures come from, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_source: Option<String>,
    /// What this host does not report, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// Whether idle polling is part of the cost. Figures of different bases must not be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The device sleeps when it has nothing to do: idle polling is no part of it.
    WithoutIdlePolling,
    /// The device never sleeps: idle polling is part of it, and weighs the more the lower the load.
    WithIdlePolling,
}

/// The costs at one load. Whatever is per frame is per forwarded frame, and absent if none was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoadCost {
    /// What it is called: `low`, `middle` or `saturation`.
    pub name: String,
    /// How long it was offered, in seconds.
    pub duration_s: f64,
    /// What left the tester, all directions added up, in frames per second.
    pub offered_pps: f64,
    /// What came back, all directions added up, in frames per second.
    pub forwarded_pps: f64,
    /// Frames that came back.
    pub forwarded: u64,
    /// How long the device's threads ran.
    pub busy_s: f64,
    /// The share of the time, 0 to 1 for one core.
    pub busy: f64,
    /// Nanoseconds of the device's core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_per_frame: Option<f64>,
    /// Cycles of the device's core for each frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles_per_frame: Option<f64>,
    /// Cycles over the time that the device ran, in hertz: the core's clock, if the two agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_hz: Option<f64>,
    /// Microjoules for each frame, of what the energy source covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uj_per_frame: Option<f64>,
    /// What the device's nodes did meanwhile, if it is a graph of them: their clocks tell work from idle polling.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// Seconds between the two readings of `nodes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes_s: Option<f64>,
    /// What the machine did meanwhile beside the measurement, if that disturbed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
}
