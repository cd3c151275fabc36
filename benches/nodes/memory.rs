//! A device of benchmarks: destinations enter, frames to them leave, in memory that was written long before.

use fastpath::device::Input;
use fastpath::vector::Frame;
use wire::MacAddress;

use crate::template::{FRAME, HEADERS, Template};

const BUFFERS: usize = 2048;
/// Bytes of a buffer, of which the frame has the first 60.
const BUFFER: usize = 2048 + 64;
/// The link address that frames are sent to.
pub const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

/// A device that lends frames to ever other destinations.
pub struct Memory {
    buffers: Box<[u8]>,
    at: usize,
    template: Template,
    destinations: Vec<u32>,
    next: usize,
    vector: usize,
}

impl Memory {
    /// One that lends `vector` frames at a time.
    pub fn new(destinations: Vec<u32>, vector: usize) -> Self {
        Self {
            buffers: vec![0; BUFFERS * BUFFER].into(),
            at: 0,
            template: Template::new(OURS),
            destinations,
            next: 0,
            vector,
        }
    }
}

impl Input for Memory {
    fn receive(&mut self, frames: &mut [Frame]) -> usize {
        let count = self.vector.min(frames.len());
        for frame in &mut frames[..count] {
            let buffer = &mut self.buffers[self.at * BUFFER..][..BUFFER];
            self.at = (self.at + 1) % BUFFERS;
            let destination = self.destinations[self.next];
            self.next = if self.next + 1 == self.destinations.len() { 0 } else { self.next + 1 };
            buffer[..HEADERS].copy_from_slice(&self.template.to(destination));
            // SAFETY: the buffer has so many bytes, and is touched again only 2,048 frames later.
            *frame = unsafe { Frame::new(buffer.as_mut_ptr(), FRAME as u32, BUFFER as u32) };
        }
        count
    }

    fn release(&mut self) {}
}
