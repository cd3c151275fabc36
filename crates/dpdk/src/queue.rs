//! Queues of a port that runs: bursts enter and leave.

use std::sync::Arc;

use crate::burst::Burst;
use crate::environment::Dpdk;
use crate::pool::Pool;
use crate::running::Running;
use crate::shim;

/// The queues of a port, one of each for every index.
#[derive(Debug)]
pub struct Queues {
    /// What arrives.
    pub receive: Vec<RxQueue>,
    /// What leaves.
    pub send: Vec<TxQueue>,
}

/// One receive queue. Nobody else receives from it.
#[derive(Debug)]
pub struct RxQueue {
    pub(crate) port: Arc<Running>,
    pub(crate) index: u16,
    /// Where the driver takes buffers from.
    pub(crate) _pool: Pool,
}

impl RxQueue {
    /// Adds what has arrived to `burst`, at most `count` frames, and says how many.
    #[inline]
    pub fn receive(&mut self, burst: &mut Burst, count: usize) -> usize {
        let places = burst.rest();
        let count = places.len().min(count) as u16;
        // SAFETY: the port runs, the queue is this one's alone, and there are `count` places.
        let received =
            unsafe { shim::linerate_receive(self.port.number(), self.index, places.as_mut_ptr(), count) };
        burst.take_up(usize::from(received));
        usize::from(received)
    }

    /// DPDK, which this queue keeps going.
    #[must_use]
    pub fn dpdk(&self) -> &Arc<Dpdk> {
        self.port.dpdk()
    }
}

/// One transmit queue. Nobody else sends by it.
#[derive(Debug)]
pub struct TxQueue {
    pub(crate) port: Arc<Running>,
    pub(crate) index: u16,
}

impl TxQueue {
    /// Sends the first `count` frames of `burst`, and says how many the port took: those are no
    /// longer in the burst, whose first frame is now the first that was refused.
    #[inline]
    pub fn send(&mut self, burst: &mut Burst, count: usize) -> usize {
        let frames = burst.first(count);
        // SAFETY: the port runs, the queue is this one's alone, and the frames are the burst's own.
        let sent = unsafe {
            shim::linerate_send(self.port.number(), self.index, frames.as_mut_ptr(), frames.len() as u16)
        };
        burst.forget_first(usize::from(sent));
        usize::from(sent)
    }

    /// DPDK, which this queue keeps going.
    #[must_use]
    pub fn dpdk(&self) -> &Arc<Dpdk> {
        self.port.dpdk()
    }

    /// Whether the other end is there.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.port.link().is_some_and(|link| link.up)
    }
}
