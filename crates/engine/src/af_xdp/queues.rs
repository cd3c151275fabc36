//! A worker's ends of AF_XDP sockets: frames are built in the memory that the kernel sends from, and judged where
//! they arrived.

use xsk::{Receiver, Sender, Sent};

use crate::user_space::{Receive, Transmit};

/// Where frames leave.
pub struct Sending {
    sender: Sender,
    dropped: u64,
}

impl Sending {
    pub fn new(sender: Sender) -> Self {
        Self { sender, dropped: 0 }
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
    fn dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
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
