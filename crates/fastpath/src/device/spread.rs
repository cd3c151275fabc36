//! Several transmit queues as one: each frame goes to a queue by the hash of its flow, so that a flow keeps
//! its order, and a peer with a queue for each of its cores has them all busy (RSS in software).

use super::Output;
use crate::flow::toeplitz::{KEY, Toeplitz};
use crate::vector::{Frame, PACKETS};

/// Entries of the indirection table, as cards have it: the low bits of a hash choose one.
const INDIRECTION: usize = 128;

/// The queues, and how frames are spread over them.
pub struct Spread {
    queues: Vec<Queue>,
    toeplitz: Toeplitz,
}

struct Queue {
    output: Box<dyn Output>,
    /// The frames of a call that are for it.
    frames: Vec<Frame>,
}

impl Spread {
    /// Spreads over `outputs` by the Toeplitz hash under `key`; see [`crate::flow::toeplitz`] for two.
    #[must_use]
    pub fn new(outputs: Vec<Box<dyn Output>>, key: &[u8; KEY]) -> Self {
        let queue = |output| Queue { output, frames: Vec::with_capacity(PACKETS) };
        Self { queues: outputs.into_iter().map(queue).collect(), toeplitz: Toeplitz::new(key) }
    }
}

impl Output for Spread {
    /// As of one queue, but that a full queue does not keep the others from taking frames. How many were
    /// taken is right; that it were the first ones, as the caller takes it, need not be.
    fn transmit(&mut self, frames: &[Frame]) -> usize {
        let count = self.queues.len();
        if count == 0 {
            return 0;
        }
        for &frame in frames {
            let hash = self.toeplitz.of_frame(frame.bytes());
            self.queues[hash as usize % INDIRECTION % count].frames.push(frame);
        }
        let send = |queue: &mut Queue| {
            let sent = if queue.frames.is_empty() { 0 } else { queue.output.transmit(&queue.frames) };
            queue.frames.clear();
            sent
        };
        self.queues.iter_mut().map(send).sum()
    }
}
