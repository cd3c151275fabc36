//! A worker's ends of a memif's queues: frames are built in one ring, and judged in the other.

use std::slice;

use memif::{Frame, Receiver, Sender};

use crate::user_space::{BURST, Receive, Transmit, room};

/// Where frames leave.
pub struct Sending {
    sender: Sender,
    /// Places in the ring for the frames that are built next.
    frames: [Frame; BURST],
    reserved: usize,
    /// Where frames are built that find no room. They cost what others cost, so that a tester that sends as
    /// fast as it can offers no more than it could send.
    spare: Box<[u8]>,
}

impl Sending {
    /// Frames have up to `longest` bytes.
    pub fn new(sender: Sender, longest: usize) -> Self {
        let spare = vec![0; room(longest)].into_boxed_slice();
        Self { sender, frames: [Frame::NONE; BURST], reserved: 0, spare }
    }
}

impl Transmit for Sending {
    #[inline]
    fn place(&mut self, index: usize, length: usize) -> Option<&mut [u8]> {
        if index == 0 {
            self.reserved = self.sender.reserve(&mut self.frames);
        }
        if index >= self.reserved {
            return Some(&mut self.spare);
        }
        let frame = self.frames.get_mut(index)?;
        if length > frame.capacity() {
            // Buffers of the other end's that are too short: the frame stays due until it counts as unsent.
            return None;
        }
        frame.set_length(length);
        // SAFETY: the whole buffer is ours until the commit, and this is its only slice.
        Some(unsafe { slice::from_raw_parts_mut(frame.start(), frame.capacity()) })
    }

    #[inline]
    fn send(&mut self, count: usize) -> usize {
        let count = count.min(std::mem::take(&mut self.reserved));
        self.sender.commit(&self.frames[..count]);
        count
    }

    fn is_up(&self) -> bool {
        self.sender.is_connected()
    }

    fn refusal(&self, length: usize) -> Option<String> {
        let is_short = self.frames[..self.reserved].iter().any(|frame| length > frame.capacity());
        is_short.then(|| {
            format!("a frame of {length} bytes is longer than the other end's buffers: give it longer ones")
        })
    }
}

/// Where frames arrive.
pub struct Receiving {
    receiver: Receiver,
    frames: [Frame; BURST],
    count: usize,
}

impl Receiving {
    pub fn new(receiver: Receiver) -> Self {
        Self { receiver, frames: [Frame::NONE; BURST], count: 0 }
    }
}

impl Receive for Receiving {
    #[inline]
    fn receive(&mut self) -> usize {
        self.count = self.receiver.receive(&mut self.frames);
        self.count
    }

    #[inline]
    fn frame(&self, index: usize) -> Option<&[u8]> {
        // SAFETY: it is lent until the release, and nobody has another slice of it. A peer that breaks the
        // protocol may write to it: no unsafe code rests on what is in a frame.
        self.frames[..self.count].get(index).map(|frame| unsafe { &*frame.bytes() })
    }

    #[inline]
    fn release(&mut self) {
        self.count = 0;
        self.receiver.release();
    }
}
