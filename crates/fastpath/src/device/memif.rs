//! A memif: queues of packets in memory that is shared with another process.

use memif::{Memif, Opened, Receiver, Sender};

use super::{Input, Output, Queues};
use crate::vector::{Frame, PACKETS, VECTOR};

/// Opens an interface: its control end, to be polled by one thread, and its queues.
///
/// # Errors
/// As [`Memif::open`].
pub fn open(config: memif::Config) -> Result<(Memif, Queues), memif::Error> {
    let Opened { memif, receivers, senders } = Memif::open(config)?;
    let input = |receiver| {
        Box::new(Lender { receiver, frames: Box::new([memif::Frame::NONE; VECTOR]) }) as Box<dyn Input>
    };
    let output = |sender| {
        Box::new(Taker { sender, frames: Box::new([memif::Frame::NONE; PACKETS]) }) as Box<dyn Output>
    };
    let inputs = receivers.into_iter().map(input).collect();
    let outputs = senders.into_iter().map(output).collect();
    Ok((memif, Queues { inputs, outputs }))
}

struct Lender {
    receiver: Receiver,
    frames: Box<[memif::Frame; VECTOR]>,
}

impl Input for Lender {
    fn receive(&mut self, frames: &mut [Frame]) -> usize {
        let most = frames.len().min(VECTOR);
        let count = self.receiver.receive(&mut self.frames[..most]);
        for (lent, frame) in self.frames[..count].iter().zip(frames) {
            // SAFETY: the receiver lends it until `release`, to us alone. A peer that breaks the protocol
            // may write to it: no unsafe code here rests on what is in a frame.
            *frame = unsafe { Frame::new(lent.start(), lent.length() as u32, lent.capacity() as u32) };
        }
        count
    }

    fn release(&mut self) {
        self.receiver.release();
    }
}

struct Taker {
    sender: Sender,
    frames: Box<[memif::Frame; PACKETS]>,
}

impl Output for Taker {
    fn transmit(&mut self, frames: &[Frame]) -> usize {
        let count = frames.len().min(PACKETS);
        for (frame, place) in frames.iter().zip(self.frames.iter_mut()) {
            let length = frame.len() as u32;
            *place = memif::Frame::new(frame.pointer().cast_mut(), length, length);
        }
        // SAFETY: they are lent until the pass ends, and only read.
        unsafe { self.sender.send_frames(&self.frames[..count]) }
    }
}
