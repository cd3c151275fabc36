//! A device in ordinary memory: what a test puts in arrives, what is sent can be taken out.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Input, Output, Queues};
use crate::dataplane::vector::Frame;

/// Room that a frame has to grow, in bytes.
const ROOM: usize = 256;

/// The other end of a simulated device.
#[derive(Clone, Debug, Default)]
pub struct Wire(Arc<Mutex<Frames>>);

#[derive(Debug, Default)]
struct Frames {
    arriving: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
    /// How many sent frames fit.
    room: usize,
}

impl Wire {
    /// A device with one queue each way, and its other end, which holds up to `room` sent frames.
    #[must_use]
    pub fn device(room: usize) -> (Self, Queues) {
        let wire = Self::default();
        wire.with(|frames| frames.room = room);
        let queue = || Box::new(Queue { wire: wire.clone(), lent: Vec::new() });
        let queues = Queues { inputs: vec![queue()], outputs: vec![queue()] };
        (wire, queues)
    }

    /// Has a frame arrive at the device.
    pub fn put(&self, frame: impl Into<Vec<u8>>) {
        self.with(|frames| frames.arriving.push_back(frame.into()));
    }

    /// The first frame that the device has sent and nobody has taken yet.
    #[must_use]
    pub fn take(&self) -> Option<Vec<u8>> {
        self.with(|frames| frames.sent.pop_front())
    }

    /// How many frames have not been received yet.
    #[must_use]
    pub fn arriving(&self) -> usize {
        self.with(|frames| frames.arriving.len())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Frames) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Queue {
    wire: Wire,
    lent: Vec<Vec<u8>>,
}

impl Input for Queue {
    fn receive(&mut self, frames: &mut [Frame]) -> usize {
        let count = self.wire.arriving().min(frames.len());
        let arrived: Vec<_> = self.wire.with(|frames| frames.arriving.drain(..count).collect());
        self.lent = arrived;
        for (buffer, frame) in self.lent.iter_mut().zip(frames) {
            let length = buffer.len();
            buffer.resize(length + ROOM, 0);
            // SAFETY: the buffer stays where it is, untouched, until `release`; it has so many bytes.
            *frame = unsafe { Frame::new(buffer.as_mut_ptr(), length as u32, (length + ROOM) as u32) };
        }
        count
    }

    fn release(&mut self) {
        self.lent.clear();
    }
}

impl Output for Queue {
    fn transmit(&mut self, frames: &[Frame]) -> usize {
        self.wire.with(|wire| {
            let count = frames.len().min(wire.room.saturating_sub(wire.sent.len()));
            wire.sent.extend(frames[..count].iter().map(|frame| frame.bytes().to_vec()));
            count
        })
    }
}
