//! The memory of a socket's frames: their number and size enter, places for bytes leave.
//!
//! The frames of one socket are used by two threads, each its own: those below a number are sent, the others
//! arrive. [`Share`] is one of the two parts, and knows which of its frames the kernel has. The kernel knows chunks,
//! of a page at most; a frame that is sent may have several, one behind the other, so that it is built in one piece.
//! Both sizes are powers of two: an address names its frame without a division.

use std::ptr::NonNull;
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};
use nix::libc::XDP_PKT_CONTD;

use crate::Error;
use crate::ring::{Consumer, Descriptor, Producer};

/// Chunks of a frame at most; a power of two.
pub const MOST_CHUNKS: usize = 8;

/// Memory for chunks of one size.
pub struct Memory {
    memory: MmapRaw,
    /// Bytes of a chunk, 2048 or 4096, as a power of two.
    chunk_shift: u32,
}

impl Memory {
    /// For `chunks` chunks of `chunk_size` bytes, a power of two, all of which are `fill`.
    pub fn new(chunks: u32, chunk_size: usize, fill: u8) -> Result<Self, Error> {
        let bytes = chunks as usize * chunk_size;
        let chunk_shift = chunk_size.max(1).ilog2();
        let mut options = MmapOptions::new();
        options.len(bytes);
        // Populated, so that no thread waits for the kernel at the first use of each page. Miri has no pages.
        if !cfg!(miri) {
            options.populate();
        }
        let mut memory = options.map_anon().map_err(|source| Error::Memory { bytes, source })?;
        memory.fill(fill);
        Ok(Self { memory: MmapRaw::from(memory), chunk_shift })
    }

    /// Where it is.
    pub fn start(&self) -> *mut u8 {
        self.memory.as_mut_ptr()
    }

    /// Its bytes.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Bytes of a chunk.
    pub fn chunk_size(&self) -> usize {
        1 << self.chunk_shift
    }

    /// The first of `length` bytes at `address`; `None` where they are not all inside one frame of `size` bytes, which
    /// is a power of two.
    #[inline]
    fn at(&self, address: u64, length: usize, size: usize) -> Option<NonNull<u8>> {
        let address = usize::try_from(address).ok()?;
        let within = address & (size - 1);
        if (address - within).checked_add(size)? > self.memory.len() || within.checked_add(length)? > size {
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
    /// Bytes of a frame, one chunk or several, as a power of two.
    shift: u32,
    /// The chunks of each that the kernel has: bit `i` is chunk `i`.
    with_kernel: Vec<u8>,
    /// Those that nobody uses. The last one given back is used first: it is in the cache.
    free: Vec<u32>,
}

impl Share {
    /// The `count` frames of `chunks` chunks each, a power of two up to [`MOST_CHUNKS`], from number `first`; none is
    /// with the kernel.
    pub fn new(memory: &Arc<Memory>, first: u32, count: u32, chunks: usize) -> Self {
        Self {
            memory: Arc::clone(memory),
            first,
            shift: memory.chunk_shift + chunks.clamp(1, MOST_CHUNKS).ilog2(),
            with_kernel: vec![0; count as usize],
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
        u64::from(frame) << self.shift
    }

    /// Bytes of a frame.
    #[inline]
    fn size(&self) -> usize {
        1 << self.shift
    }

    /// The number of the frame that has `address`.
    #[inline]
    fn frame_at(&self, address: u64) -> Option<u32> {
        u32::try_from(address >> self.shift).ok()
    }

    /// Whether no frame takes more than one chunk.
    #[inline]
    pub fn has_single_chunks(&self) -> bool {
        self.shift == self.memory.chunk_shift
    }

    /// Chunks that a frame of `length` bytes takes.
    #[inline]
    pub fn chunks(&self, length: u32) -> u32 {
        if self.has_single_chunks() { 1 } else { length.div_ceil(self.memory.chunk_size() as u32).max(1) }
    }

    /// The chunks of a frame of `length` bytes: where each begins, its bytes, and whether another follows.
    #[inline]
    pub fn pieces(&self, frame: u32, length: u32) -> impl Iterator<Item = (u64, u32, bool)> {
        let (address, size) = (self.address(frame), self.memory.chunk_size() as u32);
        let chunks = self.chunks(length);
        (0..chunks).map(move |chunk| {
            let before = chunk * size;
            let follows = chunk + 1 < chunks;
            (address + u64::from(before), if follows { size } else { length - before }, follows)
        })
    }

    /// Writes a frame of `length` bytes to a ring that has room for its chunks.
    #[inline]
    pub fn write(&self, frame: u32, length: u32, transmit: &mut Producer) {
        for (address, length, follows) in self.pieces(frame, length) {
            let options = if follows { XDP_PKT_CONTD } else { 0 };
            transmit.write(Descriptor { address, length, options });
        }
    }

    /// Gives the kernel all frames that nobody uses, to receive in, as far as the ring has room.
    #[inline]
    pub fn fill(&mut self, ring: &mut Producer) {
        let mut room = ring.room();
        while room > 0
            && let Some(frame) = self.take()
        {
            ring.write_address(self.address(frame));
            self.lend(frame, 1);
            room -= 1;
        }
        ring.publish();
    }

    /// Takes the frames back that the kernel is done with.
    #[inline]
    pub fn reap(&mut self, completion: &mut Consumer) {
        let available = completion.available();
        for ahead in 0..available {
            if let Some(frame) = self.returned(completion.address(ahead)) {
                self.give_back(frame);
            }
        }
        if available > 0 {
            completion.release(available);
        }
    }

    /// Notes that the kernel has the first `chunks` chunks of a frame.
    #[inline]
    pub fn lend(&mut self, frame: u32, chunks: u32) {
        if let Some(with_kernel) = self.with_kernel.get_mut(frame.wrapping_sub(self.first) as usize) {
            *with_kernel = u8::MAX >> (u8::BITS - chunks.clamp(1, u8::BITS));
        }
    }

    /// Takes a frame back that the kernel will not look at.
    pub fn take_back(&mut self, frame: u32) {
        if let Some(with_kernel) = self.with_kernel.get_mut(frame.wrapping_sub(self.first) as usize) {
            *with_kernel = 0;
        }
    }

    /// The frame that the kernel gave back the last chunk of, by an address in it; `None` when it has others of it,
    /// or did not have it.
    #[inline]
    pub fn returned(&mut self, address: u64) -> Option<u32> {
        let frame = self.frame_at(address)?;
        let chunk =
            (address >> self.memory.chunk_shift) & ((1 << (self.shift - self.memory.chunk_shift)) - 1);
        let with_kernel = self.with_kernel.get_mut(frame.checked_sub(self.first)? as usize)?;
        let bit = 1_u8.checked_shl(u32::try_from(chunk).ok()?)?;
        if *with_kernel & bit == 0 {
            return None;
        }
        *with_kernel &= !bit;
        (*with_kernel == 0).then_some(frame)
    }

    /// A frame's bytes. It was taken and the kernel does not have it.
    #[inline]
    pub fn bytes_mut(&mut self, frame: u32) -> Option<&mut [u8]> {
        self.check(frame)?;
        let size = self.size();
        let start = self.memory.at(self.address(frame), size, size)?;
        // SAFETY: the frame is of this share and not the kernel's, so that this is its only user, and the slice
        // borrows the share.
        Some(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), size) })
    }

    /// `length` bytes at `address`, in a frame that was returned.
    #[inline]
    pub fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        self.check(self.frame_at(address)?)?;
        let start = self.memory.at(address, length, self.size())?;
        // SAFETY: as above; nothing writes to it while the share is borrowed.
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), length) })
    }

    /// The bytes from `address` to the end of its frame, which was returned.
    #[inline]
    pub fn room_mut(&mut self, address: u64) -> Option<&mut [u8]> {
        self.check(self.frame_at(address)?)?;
        let size = self.size();
        let length = size - (usize::try_from(address).ok()? & (size - 1));
        let start = self.memory.at(address, length, size)?;
        // SAFETY: as in `bytes_mut`.
        Some(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), length) })
    }

    /// Whether a frame is of this share, and not the kernel's.
    #[inline]
    fn check(&self, frame: u32) -> Option<()> {
        let with_kernel = self.with_kernel.get(frame.checked_sub(self.first)? as usize)?;
        (*with_kernel == 0).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_shares_have_no_frame_in_common() {
        let memory = Arc::new(Memory::new(8, 2048, 7).unwrap());
        let (mut one, mut other) = (Share::new(&memory, 0, 3, 1), Share::new(&memory, 3, 5, 1));
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

    #[test]
    fn a_frame_of_several_chunks_is_back_when_all_are() {
        let memory = Arc::new(Memory::new(13, 2048, 7).unwrap());
        let mut share = Share::new(&memory, 0, 3, 4);
        let frame = share.take().unwrap();
        assert_eq!(share.bytes_mut(frame).map(|bytes| bytes.len()), Some(4 * 2048));
        let pieces: Vec<_> = share.pieces(1, 5000).collect();
        assert_eq!(pieces, [(8192, 2048, true), (10240, 2048, true), (12288, 904, false)]);
        assert_eq!(share.pieces(1, 60).collect::<Vec<_>>(), [(8192, 60, false)]);
        assert_eq!(share.pieces(1, 4096).count(), 2);
        share.lend(1, 3);
        assert_eq!(
            [12288, 8192, 8192, 14336, 10240].map(|address| share.returned(address)),
            [None, None, None, None, Some(1)]
        );
        assert!(share.bytes_mut(3).is_none(), "it is not of this share");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

        #[test]
        fn whatever_address_comes_back_names_a_frame_that_was_lent_once(
            lent in 3_u32..8, addresses in prop::collection::vec(prop_oneof![any::<u64>(), 0_u64..20_000], 1..50)
        ) {
            let memory = Arc::new(Memory::new(8, 2048, 0).unwrap());
            let mut share = Share::new(&memory, 3, 5, 1);
            share.lend(lent, 1);
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
