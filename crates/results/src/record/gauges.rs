//! What the machine took and how it ran beside a run: power, frequency and temperature, once a second.

use serde::{Deserialize, Serialize};

/// The series, and where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Gauges {
    /// What the watts are of, and who says so; absent where nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watts_source: Option<String>,
    /// What this machine does not report, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// What a kilowatt hour costs, as the user says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_kwh: Option<f64>,
    /// What the device costs, as the user says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_price: Option<f64>,
    /// In order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<GaugeReading>,
}

/// One interval of the series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GaugeReading {
    /// When it began, in seconds since the run's start, as of samples.
    pub at_s: f64,
    /// How long it was, in seconds.
    pub duration_s: f64,
    /// The mean power, in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watts: Option<f64>,
    /// The frequency of the slowest core in use at its end, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mhz: Option<f64>,
    /// The temperature of the hottest sensor at its end, in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub celsius: Option<f64>,
}
