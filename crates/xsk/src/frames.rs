//! The memory of a socket's frames: their number and size enter, places for bytes leave.
//!
//! The frames of one socket are used by two threads, each its own: those below a number are sent, the others
//! arrive. [`Share`] is one of the two parts, and knows which of its frames the kernel has.

use std::ptr::NonNull;
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};

use crate::Error;

/// Memory for frames of one size.
pub struct Memory {
    memory: MmapRaw,
    /// Bytes of a frame: 2048 or 4096.
    frame_size: usize,
}

impl Memory {
    /// For `frames` frames of `frame_size` bytes, all of which are `fill`.
    pub fn new(frames: u32, frame_size: usize, fill: u8) -> Result<Self, Error> {
        let bytes = frames as usize * frame_size;
        // Populated, so that no thread waits for the kernel at the first use of each page.
        let mut memory = MmapOptions::new()
            .len(bytes)
            .populate()
            .map_anon()
            .map_err(|source| Error::Memory { bytes, source })?;
        memory.fill(fill);
        Ok(Self { memory: MmapRaw::from(memory), frame_size })
    }

    /// Where it is.
    pub fn start(&self) -> *mut u8 {
        self.memory.as_mut_ptr()
    }

    /// Its bytes.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Bytes of a frame.
    pub fn frame_size(&self) -> usize {
        self.frame_size
    }

    /// The first of `length` bytes at `address`; `None` where they are not all inside one frame.
    #[inline]
    fn at(&self, address: u64, length: usize) -> Option<NonNull<u8>> {
        let address = usize::try_from(address).ok()?;
        let within = address % self.frame_size;
        if address >= self.memory.len() || within.checked_add(length)? > self.frame_size {
            return None;
        }
        // SAFETY: `address` is inside the mapping.
        NonNull::new(unsafe { self.memory.as_mut_ptr().add(address) })
    }
}

/// Frames that one thread and the kernel pass to each other.
pub struct Share {
    memory: Arc<Memory>,
    /// The number of the first.
    first: u32,
    /// Whether the kernel has each.
    with_kernel: Vec<bool>,
    /// Those that nobody uses. The last one given back is used first: it is in the cache.
    free: Vec<u32>,
}

impl Share {
    /// The `count` frames from number `first`; none is with the kernel.
    pub fn new(memory: &Arc<Memory>, first: u32, count: u32) -> Self {
        Self {
            memory: Arc::clone(memory),
            first,
            with_kernel: vec![false; count as usize],
            free: (first..first + count).rev().collect(),
        }
    }

    /// A frame that nobody uses.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Gives a frame back that was taken, and that the kernel does not have.
    #[inline]
    pub fn give_back(&mut self, frame: u32) {
        self.free.push(frame);
    }

    /// Frames that nobody uses.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Where a frame begins.
    #[inline]
    pub fn address(&self, frame: u32) -> u64 {
        u64::from(frame) * self.memory.frame_size as u64
    }

    /// Notes that the kernel has a frame.
    #[inline]
    pub fn lend(&mut self, frame: u32) {
        if let Some(with_kernel) = self.with_kernel.get_mut(frame.wrapping_sub(self.first) as usize) {
            *with_kernel = true;
        }
    }

    /// The frame that the kernel gave back, by an address in it; `None` when the kernel did not have it.
    #[inline]
    pub fn returned(&mut self, address: u64) -> Option<u32> {
        let frame = u32::try_from(address / self.memory.frame_size as u64).ok()?;
        let with_kernel = self.with_kernel.get_mut(frame.checked_sub(self.first)? as usize)?;
        std::mem::take(with_kernel).then_some(frame)
    }

    /// A frame's bytes. It was taken and the kernel does not have it.
    #[inline]
    pub fn bytes_mut(&mut self, frame: u32) -> Option<&mut [u8]> {
        self.check(frame)?;
        let size = self.memory.frame_size;
        let start = self.memory.at(self.address(frame), size)?;
        // SAFETY: the frame is of this share and not the kernel's, so that this is its only user, and the slice
        // borrows the share.
        Some(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), size) })
    }

    /// `length` bytes at `address`, in a frame that was returned.
    #[inline]
    pub fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        self.check(u32::try_from(address / self.memory.frame_size as u64).ok()?)?;
        let start = self.memory.at(address, length)?;
        // SAFETY: as above; nothing writes to it while the share is borrowed.
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), length) })
    }

    /// Whether a frame is of this share, and not the kernel's.
    #[inline]
    fn check(&self, frame: u32) -> Option<()> {
        let with_kernel = self.with_kernel.get(frame.checked_sub(self.first)? as usize)?;
        (!with_kernel).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_shares_have_no_frame_in_common() {
        let memory = Arc::new(Memory::new(8, 2048, 7).unwrap());
        let (mut one, mut other) = (Share::new(&memory, 0, 3), Share::new(&memory, 3, 5));
        let mut frames: Vec<u32> = std::iter::from_fn(|| one.take()).collect();
        assert_eq!((frames.len(), one.free()), (3, 0));
        frames.extend(std::iter::from_fn(|| other.take()));
        frames.sort_unstable();
        assert_eq!(frames, (0..8).collect::<Vec<_>>());
        assert!(one.bytes_mut(2).is_some_and(|bytes| bytes == [7; 2048]));
        assert!(one.bytes_mut(3).is_none() && other.bytes_mut(2).is_none() && other.bytes_mut(8).is_none());
        assert!(other.bytes(2 * 2048, 1).is_none() && other.bytes(3 * 2048 + 100, 1948).is_some());
        assert!(other.bytes(3 * 2048 + 100, 1949).is_none(), "it would reach into the next frame");
    }

    proptest! {
        #[test]
        fn whatever_address_comes_back_names_a_frame_that_was_lent_once(
            lent in 3_u32..8, addresses in prop::collection::vec(prop_oneof![any::<u64>(), 0_u64..20_000], 1..50)
        ) {
            let memory = Arc::new(Memory::new(8, 2048, 0).unwrap());
            let mut share = Share::new(&memory, 3, 5);
            share.lend(lent);
            prop_assert!(share.bytes_mut(lent).is_none(), "the kernel has it");
            let mut back = 0;
            for address in addresses {
                if let Some(frame) = share.returned(address) {
                    prop_assert_eq!((frame, address / 2048), (lent, u64::from(lent)));
                    back += 1;
                }
            }
            prop_assert!(back <= 1);
        }
    }
}
