//! Devices: where frames come from and go to. A device *lends* the frames that have arrived until the pass
//! over them ends, so that they are rewritten where they lie; what is sent is copied, once.

pub mod af_xdp;
#[cfg(feature = "dpdk")]
pub mod dpdk;
pub mod memif;
pub mod null;
pub mod simulated;

use std::os::fd::BorrowedFd;

use crate::dataplane::vector::Frame;

/// A receive queue of a device.
pub trait Input: Send {
    /// Lends the frames that have arrived, as many as there are places in `frames`, and says how many.
    /// Only after [`Self::release`] does it lend others.
    fn receive(&mut self, frames: &mut [Frame]) -> usize;

    /// Takes back all that it has lent.
    fn release(&mut self);

    /// What becomes readable when frames arrive, where a thread can wait for them so.
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A transmit queue of a device.
pub trait Output: Send {
    /// Sends `frames` in their order, and says how many of them it took; for the others it had no room.
    fn transmit(&mut self, frames: &[Frame]) -> usize;

    /// Whether [`Self::transmit`] stopped at a frame that is longer than the device can send, and would take
    /// those behind it.
    fn stopped_at_long(&self) -> bool {
        false
    }
}

/// What a device brings: its queues, each of which one worker gets.
pub struct Queues {
    /// Receive queues.
    pub inputs: Vec<Box<dyn Input>>,
    /// Transmit queues, one for each worker at least.
    pub outputs: Vec<Box<dyn Output>>,
}
