//! A worker's ends of AF_XDP sockets: frames are built in the memory that the kernel sends from, and judged where
//! they arrived.

use std::sync::Arc;

use xsk::{Interface, Receiver, Sender, Sent};

use crate::user_space::{Dropped, DroppedBy, Queues, Receive, Transmit, WhenFull};

/// Where frames leave, if there is a port.
pub struct Sending(Option<Socket>);

struct Socket {
    sender: Sender,
    interface: Arc<Interface>,
    /// Who drops frames while the interface is up.
    dropped_by: DroppedBy,
    dropped: u64,
}

impl Sending {
    pub fn new(sender: Sender, interface: &Arc<Interface>) -> Self {
        let dropped_by = if interface.hands_over_at_once() { DroppedBy::Device } else { DroppedBy::Driver };
        Self(Some(Socket { sender, interface: Arc::clone(interface), dropped_by, dropped: 0 }))
    }
}

/// The queues of a port that is not there, for so many workers.
pub fn none(workers: usize) -> Queues<Sending, Receiving> {
    let transmit = (0..workers).map(|_| Sending(None)).collect();
    Queues { transmit, receive: Vec::new(), when_full: WhenFull::Waits }
}

impl Transmit for Sending {
    #[inline]
    fn place(&mut self, index: usize, length: usize) -> Option<&mut [u8]> {
        self.0.as_mut()?.sender.place(index, length)
    }

    #[inline]
    fn send(&mut self, count: usize) -> usize {
        let Some(socket) = &mut self.0 else { return 0 };
        let Sent { taken, dropped } = socket.sender.send(count);
        socket.dropped = dropped;
        taken
    }

    #[inline]
    fn dropped(&mut self) -> Dropped {
        let Some(socket) = &mut self.0 else { return Dropped::default() };
        let frames = std::mem::take(&mut socket.dropped);
        // The kernel drops what is sent without a link, and only then is it asked.
        let is_down = frames != 0 && !socket.interface.is_up().unwrap_or(false);
        Dropped { frames, by: if is_down { DroppedBy::DownInterface } else { socket.dropped_by } }
    }

    fn recall(&mut self, count: usize) -> usize {
        self.0.as_mut().map_or(count, |socket| socket.sender.recall(count))
    }

    fn is_up(&self) -> bool {
        self.0.as_ref().is_none_or(|socket| socket.sender.is_up())
    }
}

/// Where frames arrive.
pub struct Receiving {
    receiver: Receiver,
}

impl Receiving {
    pub fn new(receiver: Receiver) -> Self {
        Self { receiver }
    }
}

impl Receive for Receiving {
    #[inline]
    fn receive(&mut self) -> usize {
        self.receiver.receive()
    }

    #[inline]
    fn frame(&self, index: usize) -> Option<&[u8]> {
        self.receiver.frame(index)
    }

    #[inline]
    fn release(&mut self) {
        self.receiver.release();
    }
}
