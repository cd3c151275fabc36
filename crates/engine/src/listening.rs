//! Counting without sending: one port or two enter, totals of what arrives at each leave.
//!
//! Who sends is another process, or another computer: frames of any load test and of any number of streams are known
//! by their signature alone.

use crate::{Error, Totals};

/// Streams whose order is told apart: as many as a signature names.
pub const STREAMS: usize = 256;
/// Sending workers whose order is told apart; frames of more are counted as foreign.
pub const WORKERS: usize = 16;

/// Counts what arrives at ports. Dropping it closes them.
pub trait Listener {
    /// Its name, as in `--engine`.
    fn engine(&self) -> &'static str;

    /// Whether all still goes well.
    ///
    /// # Errors
    /// Why frames that arrive are not counted any longer, with the remedy. What was counted stays.
    fn check(&mut self) -> Result<(), Error>;

    /// What arrived at port 0 or port 1 since the start; of what left nothing is known. Frames that belong to the
    /// other direction are `returned`, and neither their order nor their latency is known.
    ///
    /// # Errors
    /// When the counters cannot be read.
    fn totals(&self, port: usize) -> Result<Totals, Error>;

    /// Frames that arrived at port 0 or port 1 and found no room, so that they are not in the totals; 0 where nothing
    /// is known of such frames.
    ///
    /// # Errors
    /// When the counter cannot be read.
    fn missed(&self, port: usize) -> Result<u64, Error> {
        let _ = port;
        Ok(0)
    }
}

/// The direction whose frames arrive at port `port` of so many: a single port has those of direction 0, as port 1.
pub(crate) fn direction_at(port: usize, ports: usize) -> usize {
    if ports < 2 { 0 } else { 1 - port.min(1) }
}
