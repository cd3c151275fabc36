//! A memif: queues of packets in memory that is shared with another process.

use memif::{Memif, Opened, Receiver, Sender};

use super::{Input, Output, Queues};
use crate::dataplane::vector::Frame;

/// Opens an interface: its control end, to be polled by one thread, and its queues.
///
/// # Errors
/// As [`Memif::open`].
pub fn open(config: memif::Config) -> Result<(Memif, Queues), memif::Error> {
    let Opened { memif, receivers, senders } = Memif::open(config)?;
    let inputs = receivers.into_iter().map(|receiver| Box::new(Lender { receiver }) as Box<dyn Input>);
    let outputs =
        senders.into_iter().map(|sender| Box::new(Taker { sender, stopped: false }) as Box<dyn Output>);
    let (inputs, outputs) = (inputs.collect(), outputs.collect());
    Ok((memif, Queues { inputs, outputs }))
}

struct Lender {
    receiver: Receiver,
}

impl Input for Lender {
    fn receive(&mut self, frames: &mut [Frame]) -> usize {
        let most = frames.len();
        let mut places = frames.iter_mut();
        self.receiver.receive_each(most, |lent| {
            if let Some(place) = places.next() {
                // SAFETY: the receiver lends it until `release`, to us alone. A peer that breaks the
                // protocol may write to it: no unsafe code here rests on what is in a frame.
                *place = unsafe { Frame::new(lent.start(), lent.length() as u32, lent.capacity() as u32) };
            }
        })
    }

    fn release(&mut self) {
        self.receiver.release();
    }
}

struct Taker {
    sender: Sender,
    /// Whether it stopped at a frame that is longer than its buffer.
    stopped: bool,
}

impl Output for Taker {
    fn transmit(&mut self, frames: &[Frame]) -> usize {
        // SAFETY: they are lent until the pass ends, and only read.
        let (sent, stopped) = unsafe {
            self.sender.send_each_that_fits(frames.len(), |at| {
                let frame = frames.get(at).copied().unwrap_or(Frame::NONE);
                (frame.pointer(), frame.len())
            })
        };
        self.stopped = stopped;
        sent
    }

    fn stopped_at_long(&self) -> bool {
        self.stopped
    }
}
