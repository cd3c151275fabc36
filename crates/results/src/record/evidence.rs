//! What the samples of one direction prove of its headline.

use serde::{Deserialize, Serialize};

/// The evidence of a ramp or a saturation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Where the highest load at or below the loss threshold lies; absent where the load did not rise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<RateInterval>,
    /// Where the ramp alone placed it, where a search narrowed that to `limit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp: Option<RateInterval>,
    /// Where a second search placed it, minutes later and with the device set up anew; `limit` reaches over both, and as
    /// far as all such pairs of a bench differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<RateInterval>,
    /// The spread of the forwarded rate over half seconds of a load that did not rise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded: Option<RateInterval>,
    /// The lowest load at which any frame was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_began: Option<LossBegan>,
    /// Samples of this direction without the warm-up, and the trials of a search after a ramp.
    pub samples: usize,
    /// Those of them that other activity on the host affected.
    pub affected: usize,
    /// Whether that may have changed the result.
    pub interference_matters: bool,
}

/// Two rates between which another one lies, in frames a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RateInterval {
    /// The lower bound, in frames per second.
    pub lower_pps: f64,
    /// The upper bound, in frames per second; absent where nothing showed one.
    pub upper_pps: Option<f64>,
}

impl RateInterval {
    /// That of so many directions of this rate together.
    #[must_use]
    pub fn times(self, directions: usize) -> Self {
        let all = |pps: f64| pps * directions as f64;
        Self { lower_pps: all(self.lower_pps), upper_pps: self.upper_pps.map(all) }
    }
}

/// The lowest load at which frames were lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LossBegan {
    /// The load that was offered, in frames a second.
    pub pps: f64,
    /// The share of its frames that was lost, 0 to 1.
    pub loss_ratio: f64,
    /// Whether other activity on the host may account for that.
    pub excused: bool,
}
