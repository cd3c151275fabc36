//! A load that a person changes while it goes on.

use serde::{Deserialize, Serialize};

/// The load in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steering {
    /// Of the line rate (L1), in per cent.
    pub percent: f64,
    /// Whether nothing is sent for now.
    pub paused: bool,
}

impl Steering {
    /// Whether a load can be this.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(self) -> Result<(), &'static str> {
        if self.percent > 0.0 && self.percent <= 100.0 {
            Ok(())
        } else {
            Err("the load must be above 0 % of the line rate, and at most 100 %: use pause for nothing")
        }
    }

    /// So many times as much, within what a load can be.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { percent: (self.percent * factor).clamp(0.001, 100.0), ..self }
    }

    /// Paused where it was not, and the other way round.
    #[must_use]
    pub fn toggled(self) -> Self {
        Self { paused: !self.paused, ..self }
    }
}
