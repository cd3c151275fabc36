//! A memif: queues of packets in memory that is shared with another process. Several workers send by a queue each, and
//! share those that there are where the peer has fewer.

use std::sync::{Arc, Mutex, PoisonError};

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
    Ok((memif, Queues { inputs: inputs.collect(), outputs: outputs(senders) }))
}

/// What workers send by: one alone by the queue, several by one each as long as there are as many.
fn outputs(senders: Vec<Sender>) -> Vec<Box<dyn Output>> {
    if senders.len() == 1 {
        let taker = |sender| Box::new(Taker { sender, stopped: false }) as Box<dyn Output>;
        return senders.into_iter().map(taker).collect();
    }
    let takers: Vec<_> =
        senders.into_iter().map(|sender| Arc::new(Mutex::new(Taker { sender, stopped: false }))).collect();
    let sharer = |own: usize| {
        let ways = std::iter::successors(Some(own), |at| (*at > 0).then_some(at / 2));
        let ways = ways.filter_map(|at| takers.get(at)).map(Arc::clone).collect();
        Box::new(Sharer { ways, stopped: false }) as Box<dyn Output>
    };
    (0..takers.len()).map(sharer).collect()
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

/// A worker's way to one of several queues. A lock is held as long as frames are copied.
struct Sharer {
    /// The queue of its own first, the first of all last, which is there whenever a peer is.
    ways: Vec<Arc<Mutex<Taker>>>,
    /// As of the queue that it sent by.
    stopped: bool,
}

impl Output for Sharer {
    fn transmit(&mut self, frames: &[Frame]) -> usize {
        self.stopped = false;
        for way in &self.ways {
            let mut taker = way.lock().unwrap_or_else(PoisonError::into_inner);
            let sent = taker.transmit(frames);
            // It knows whether the peer has this queue once it has tried.
            if sent > 0 || taker.sender.is_connected() {
                self.stopped = taker.stopped;
                return sent;
            }
        }
        0
    }

    fn stopped_at_long(&self) -> bool {
        self.stopped
    }
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
