//! A worker's ends of AF_XDP sockets: frames are built in the memory that the kernel sends from, and judged where
//! they arrived.

use std::sync::Arc;

use xsk::{Interface, Receiver, Sender, Sent};

use crate::user_space::{Dropped, DroppedBy, Receive, Transmit};

/// Where frames leave.
pub struct Sending {
    sender: Sender,
    interface: Arc<Interface>,
    /// Who drops frames while the interface is up.
    dropped_by: DroppedBy,
    dropped: u64,
}

impl Sending {
    pub fn new(sender: Sender, interface: &Arc<Interface>) -> Self {
        let dropped_by = if interface.hands_over_at_once() { DroppedBy::Device } else { DroppedBy::Driver };
        Self { sender, interface: Arc::clone(interface), dropped_by, dropped: 0 }
    }
}

impl Transmit for Sending {
    #[inline]
    fn place(&mut self, index: usize, length: usize) -> Option<&mut [u8]> {
        self.sender.place(index, length)
    }

    #[inline]
    fn send(&mut self, count: usize) -> usize {
        let Sent { taken, dropped } = self.sender.send(count);
        self.dropped = dropped;
        taken
    }

    #[inline]
    fn dropped(&mut self) -> Dropped {
        let frames = std::mem::take(&mut self.dropped);
        // The kernel drops what is sent without a link, and only then is it asked.
        let is_down = frames != 0 && !self.interface.is_up().unwrap_or(false);
        Dropped { frames, by: if is_down { DroppedBy::DownInterface } else { self.dropped_by } }
    }

    fn recall(&mut self, count: usize) -> usize {
        self.sender.recall(count)
    }

    fn is_up(&self) -> bool {
        self.sender.is_up()
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
