//! A device without another end: nothing ever arrives, and what is sent is gone.

use super::{Input, Output, Queues};
use crate::dataplane::vector::Frame;

/// Its queues.
struct Null;

/// One with `receive` queues, and `transmit` ones.
#[must_use]
pub fn queues(receive: usize, transmit: usize) -> Queues {
    Queues {
        inputs: (0..receive).map(|_| Box::new(Null) as Box<dyn Input>).collect(),
        outputs: (0..transmit).map(|_| Box::new(Null) as Box<dyn Output>).collect(),
    }
}

impl Input for Null {
    fn receive(&mut self, _: &mut [Frame]) -> usize {
        0
    }

    fn release(&mut self) {}
}

impl Output for Null {
    fn transmit(&mut self, frames: &[Frame]) -> usize {
        frames.len()
    }
}
