//! Devices whose frames lie between guards: code that writes beside a frame, or sends what lies beside one,
//! is found out.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use fastpath::device::{Input, Output};
use fastpath::vector::Frame;

/// Bytes before and behind a frame and its room.
const GUARD: usize = 64;
/// What they hold.
const MARK: u8 = 0xa5;
/// A guard that nobody wrote to.
const UNTOUCHED: [u8; GUARD] = [MARK; GUARD];

/// The memory of all devices.
#[derive(Clone)]
pub struct Memory(Arc<Mutex<Frames>>);

struct Frames {
    /// By device.
    arriving: Vec<VecDeque<Buffer>>,
    lent: Vec<Buffer>,
    /// Where the lent frames and their room are, by address.
    places: Vec<Range<usize>>,
    sent: u64,
    /// How many frames a device takes at once.
    room: usize,
}

struct Buffer {
    bytes: Box<[u8]>,
    length: usize,
}

impl Buffer {
    /// From the frame's begin to the end of its room.
    fn inside(&self) -> Range<usize> {
        let begin = self.bytes.as_ptr() as usize;
        begin + GUARD..begin + self.bytes.len() - GUARD
    }
}

impl Memory {
    /// Of so many devices.
    pub fn new(devices: usize) -> Self {
        let arriving = (0..devices).map(|_| VecDeque::new()).collect();
        let (lent, places) = (Vec::new(), Vec::new());
        Self(Arc::new(Mutex::new(Frames { arriving, lent, places, sent: 0, room: 4096 })))
    }

    /// The receive queue of a device.
    pub fn input(&self, device: u16) -> Box<dyn Input> {
        Box::new(Lender { memory: self.clone(), device })
    }

    /// A transmit queue, by which no frame leaves that has more than `longest` bytes.
    pub fn output(&self, longest: usize) -> Box<dyn Output> {
        Box::new(Taker(self.clone(), longest))
    }

    /// A frame arrives that can grow by `room` bytes.
    pub fn arrive(&self, device: u16, frame: &[u8], room: usize) {
        let mut bytes = vec![MARK; GUARD + frame.len() + room + GUARD].into_boxed_slice();
        bytes[GUARD..][..frame.len()].copy_from_slice(frame);
        self.frames().arriving[usize::from(device)].push_back(Buffer { bytes, length: frame.len() });
    }

    /// How many frames were sent.
    pub fn sent(&self) -> u64 {
        self.frames().sent
    }

    /// How many frames a device takes at once.
    pub fn set_room(&self, room: usize) {
        self.frames().room = room;
    }

    fn frames(&self) -> MutexGuard<'_, Frames> {
        self.0.lock().unwrap()
    }
}

struct Lender {
    memory: Memory,
    device: u16,
}

impl Input for Lender {
    fn receive(&mut self, frames: &mut [Frame]) -> usize {
        let mut memory = self.memory.frames();
        assert!(memory.lent.is_empty(), "what was lent was not released");
        let arriving = &mut memory.arriving[usize::from(self.device)];
        let count = arriving.len().min(frames.len());
        memory.lent = arriving.drain(..count).collect();
        memory.places = memory.lent.iter().map(Buffer::inside).collect();
        memory.places.sort_unstable_by_key(|inside| inside.start);
        for (buffer, frame) in memory.lent.iter_mut().zip(frames) {
            let capacity = buffer.bytes.len() - 2 * GUARD;
            // SAFETY: the buffer stays where it is until `release`; between its guards it has so many bytes.
            *frame = unsafe {
                Frame::new(buffer.bytes.as_mut_ptr().add(GUARD), buffer.length as u32, capacity as u32)
            };
        }
        count
    }

    fn release(&mut self) {
        let mut memory = self.memory.frames();
        memory.places.clear();
        for Buffer { bytes, .. } in memory.lent.drain(..) {
            let (before, behind) = (&bytes[..GUARD], &bytes[bytes.len() - GUARD..]);
            assert!(before == UNTOUCHED && behind == UNTOUCHED, "bytes beside a frame were written");
        }
    }
}

/// Sends frames of up to so many bytes.
struct Taker(Memory, usize);

impl Output for Taker {
    fn transmit(&mut self, frames: &[Frame]) -> usize {
        let mut memory = self.0.frames();
        for frame in frames {
            let (begin, end) = (frame.pointer() as usize, frame.pointer() as usize + frame.len());
            // Frames that nodes made lie elsewhere.
            let first = memory.places.partition_point(|inside| inside.end + GUARD <= begin);
            let mut near = memory.places[first..].iter().take_while(|inside| end > inside.start - GUARD);
            assert!(
                near.all(|inside| begin >= inside.start && end <= inside.end),
                "sent what is beside a frame"
            );
            assert!(frame.len() >= 14, "sent a frame without a header");
            assert!(frame.len() <= self.1, "sent {} bytes, more than the MTU allows", frame.len());
        }
        let count = frames.len().min(memory.room);
        memory.sent += count as u64;
        count
    }
}
