//! The line that rates refer to: rates as they are written enter, frames a second leave.

use anyhow::Result;
use testbed::port;
use wire::rate::Rate;

/// A line, and the frames that it carries.
pub struct Line {
    /// The line rate (L1) of each direction, in bits a second.
    pub rate_bps: f64,
    /// In bytes, FCS included.
    pub mean_frame_size: f64,
}

impl Line {
    /// `rate` in frames a second of each direction.
    ///
    /// # Errors
    /// When it is no number, or less than one frame a second.
    pub fn pps(&self, rate: Rate) -> Result<f64> {
        port::to_pps(rate, self.mean_frame_size, self.rate_bps)
    }
}
