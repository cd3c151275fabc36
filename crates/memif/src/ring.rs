//! A ring in shared memory, and the buffers that its descriptors name.
//!
//! Every word that the peer can write is read once, as an atomic, and checked before use: that is what
//! keeps a peer that breaks the protocol from making us touch memory outside its regions.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::layout::{COOKIE, DESCRIPTOR, Descriptor, MASK_INTERRUPT, NEXT, RING_ALIGNMENT, RING_HEADER};
use crate::region::Region;

/// What is in front of the descriptors.
#[repr(C)]
struct Header {
    cookie: AtomicU32,
    flags: AtomicU16,
    head: AtomicU16,
    _pad: [AtomicU64; 7],
    tail: AtomicU16,
}

const _: () = assert!(size_of::<Header>() <= RING_HEADER && align_of::<Header>() <= RING_ALIGNMENT);

/// A ring.
pub struct Ring {
    header: NonNull<Header>,
    descriptors: NonNull<[AtomicU64; 2]>,
    /// The size less one.
    mask: u16,
    /// Keeps it mapped.
    _memory: Arc<Region>,
}

// SAFETY: all that the pointers lead to are atomics, which stay mapped as long as this does.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

/// One of the two numbers that say how far a ring is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// The client writes it.
    Head,
    /// The server writes it.
    Tail,
}

impl Ring {
    /// The one at `offset`; `None` where it is not all inside, or where its words are not aligned.
    pub fn new(memory: &Arc<Region>, offset: usize, log2_size: u8) -> Option<Self> {
        let start = memory.at(offset, RING_HEADER + DESCRIPTOR.checked_shl(u32::from(log2_size))?)?;
        if !offset.is_multiple_of(RING_ALIGNMENT) || log2_size > 15 {
            return None;
        }
        // SAFETY: all is inside the region, as was checked.
        let descriptors = unsafe { start.add(RING_HEADER) }.cast();
        let mask = (1 << log2_size) - 1;
        Some(Self { header: start.cast(), descriptors, mask, _memory: Arc::clone(memory) })
    }

    fn header(&self) -> &Header {
        // SAFETY: it is mapped and aligned, and has only atomics.
        unsafe { self.header.as_ref() }
    }

    /// Descriptors.
    #[inline]
    pub fn size(&self) -> u16 {
        self.mask + 1
    }

    /// The slot of an index.
    #[inline]
    fn slot(&self, index: u16) -> u16 {
        index & self.mask
    }

    /// The descriptor at `index`, which may exceed the size.
    #[inline]
    fn words(&self, index: u16) -> &[AtomicU64; 2] {
        let slot = usize::from(self.slot(index));
        // SAFETY: below the size, and so inside the region.
        unsafe { self.descriptors.add(slot).as_ref() }
    }

    /// A descriptor.
    #[inline]
    pub fn descriptor(&self, index: u16) -> Descriptor {
        Descriptor::unpack(self.words(index)[0].load(Ordering::Relaxed))
    }

    /// Where the buffer of a descriptor is in its region.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the other half is metadata
    pub fn place(&self, index: u16) -> u32 {
        self.words(index)[1].load(Ordering::Relaxed) as u32
    }

    /// Writes a descriptor, but for the place.
    #[inline]
    pub fn describe(&self, index: u16, descriptor: Descriptor) {
        self.words(index)[0].store(descriptor.pack(), Ordering::Relaxed);
    }

    /// Writes where the buffer of a descriptor is.
    pub fn set_place(&self, index: u16, offset: u32) {
        self.words(index)[1].store(u64::from(offset), Ordering::Relaxed);
    }

    fn index(&self, index: Index) -> &AtomicU16 {
        match index {
            Index::Head => &self.header().head,
            Index::Tail => &self.header().tail,
        }
    }

    /// Reads an index, and makes what was written before it visible.
    #[inline]
    pub fn load(&self, index: Index) -> u16 {
        self.index(index).load(Ordering::Acquire)
    }

    /// Writes an index, after all that was written before.
    #[inline]
    pub fn publish(&self, index: Index, value: u16) {
        self.index(index).store(value, Ordering::Release);
    }

    /// Marks a new ring as one.
    pub fn mark(&self) {
        self.header().cookie.store(COOKIE, Ordering::Relaxed);
    }

    /// Whether it is marked as one.
    pub fn is_marked(&self) -> bool {
        self.header().cookie.load(Ordering::Relaxed) == COOKIE
    }

    /// Says that the receiver polls.
    pub fn mask_interrupts(&self) {
        self.header().flags.store(MASK_INTERRUPT, Ordering::Relaxed);
    }

    /// Whether the receiver wants an interrupt.
    #[inline]
    pub fn wants_interrupts(&self) -> bool {
        self.header().flags.load(Ordering::Relaxed) & MASK_INTERRUPT == 0
    }
}

/// A buffer, all of which is mapped.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// Its first byte.
    pub start: NonNull<u8>,
    /// Its bytes.
    pub capacity: u32,
}

/// Buffers of one size at equal distances, one for each slot of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spaced {
    /// The region that they are in.
    pub region: u16,
    /// Where in it the first is.
    pub first: usize,
    /// Bytes from one to the next.
    pub stride: usize,
    /// Bytes of each.
    pub size: u32,
}

impl Spaced {
    /// Where the buffer of a slot is.
    #[inline]
    fn place(&self, slot: u16) -> usize {
        self.first + usize::from(slot) * self.stride
    }

    /// How a peer has spaced the buffers of a ring, if it has, by its descriptors; all inside `regions`.
    pub fn find(ring: &Ring, regions: &[Arc<Region>]) -> Option<Self> {
        let Descriptor { region, length, .. } = ring.descriptor(0);
        let first = ring.place(0) as usize;
        let last = ring.place(ring.size() - 1) as usize;
        let stride = last.checked_sub(first)? / usize::from(ring.size() - 1).max(1);
        let spaced = Self { region, first, stride, size: length };
        let as_spaced = |slot| {
            let descriptor = ring.descriptor(slot);
            (descriptor.region, descriptor.length) == (region, length)
                && ring.place(slot) as usize == spaced.place(slot)
        };
        let apart = ring.size() == 1 || stride >= length as usize;
        let inside = regions.get(usize::from(region))?.at(last, length as usize).is_some();
        (length > 0 && apart && inside && (0..ring.size()).all(as_spaced)).then_some(spaced)
    }
}

/// Which buffers the descriptors of a ring name.
pub enum Buffers {
    /// Ours, wherever descriptors say that they are.
    Own {
        /// The first.
        first: NonNull<u8>,
        /// Where they are.
        spaced: Spaced,
        /// Keeps them mapped.
        _memory: Arc<Region>,
    },
    /// The peer's.
    Peers {
        /// By index.
        regions: Vec<Arc<Region>>,
        /// How they were spaced when the peer offered them.
        spaced: Option<Spaced>,
    },
}

// SAFETY: `first` is an address in the region beside it, which can be used from any thread.
unsafe impl Send for Buffers {}
// SAFETY: as above.
unsafe impl Sync for Buffers {}

impl Buffers {
    /// Ours, spaced so; `None` where the last does not fit.
    pub fn own(memory: &Arc<Region>, spaced: Spaced, ring: &Ring) -> Option<Self> {
        memory.at(spaced.place(ring.size() - 1), spaced.size as usize)?;
        let first = memory.at(spaced.first, spaced.size as usize)?;
        Some(Self::Own { first, spaced, _memory: Arc::clone(memory) })
    }

    /// The buffer of a frame that was received, at `index` of `ring` with `descriptor`; `None` where the
    /// frame would not be all inside.
    ///
    /// The capacity of a peer's buffer is what the peer said when it offered the ring, as long as its
    /// buffers stay where they were; of others, no more than the frame's length is known.
    #[inline]
    pub fn filled(&self, ring: &Ring, index: u16, descriptor: Descriptor) -> Option<Buffer> {
        match self {
            Self::Own { .. } => {
                let buffer = self.own_at(ring, index)?;
                (descriptor.length <= buffer.capacity).then_some(buffer)
            }
            Self::Peers { regions, spaced } => {
                let (region, place) = (descriptor.region, ring.place(index) as usize);
                let capacity = match spaced {
                    Some(spaced)
                        if region == spaced.region
                            && place == spaced.place(ring.slot(index))
                            && descriptor.length <= spaced.size =>
                    {
                        spaced.size
                    }
                    _ => descriptor.length,
                };
                let start = regions.get(usize::from(region))?.at(place, capacity as usize)?;
                Some(Buffer { start, capacity })
            }
        }
    }

    /// The buffer to fill at `index` of `ring`, and its region; `None` where what the peer offers is empty
    /// or not all inside.
    #[inline]
    pub fn empty(&self, ring: &Ring, index: u16) -> Option<(Buffer, u16)> {
        match self {
            Self::Own { spaced, .. } => Some((self.own_at(ring, index)?, spaced.region)),
            Self::Peers { regions, .. } => {
                let Descriptor { region, length, .. } = ring.descriptor(index);
                let place = ring.place(index) as usize;
                let start = regions.get(usize::from(region))?.at(place, length as usize)?;
                (length > 0).then_some((Buffer { start, capacity: length }, region))
            }
        }
    }

    #[inline]
    fn own_at(&self, ring: &Ring, index: u16) -> Option<Buffer> {
        let Self::Own { first, spaced, .. } = self else { return None };
        let slot = usize::from(ring.slot(index));
        // SAFETY: the last of the ring's buffers is inside the region, and so is this.
        let start = unsafe { first.add(slot * spaced.stride) };
        Some(Buffer { start, capacity: spaced.size })
    }

    /// Has every descriptor of a new ring name its buffer.
    pub fn describe(&self, ring: &Ring) {
        if let Self::Own { spaced, .. } = self {
            for slot in 0..ring.size() {
                self.reset(ring, slot);
                #[allow(clippy::cast_possible_truncation)] // the configuration was checked: below 4 GiB
                ring.set_place(slot, spaced.place(slot) as u32);
            }
        }
    }

    /// Sets all bytes of the buffers of a new ring.
    pub fn fill(&self, ring: &Ring, byte: u8) {
        for slot in 0..ring.size() {
            if let Some(buffer) = self.own_at(ring, slot) {
                // SAFETY: it is inside our mapping, and the peer does not know of it yet.
                unsafe { buffer.start.as_ptr().write_bytes(byte, buffer.capacity as usize) };
            }
        }
    }

    /// Offers our own buffer at `index` anew.
    #[inline]
    pub fn reset(&self, ring: &Ring, index: u16) {
        if let Self::Own { spaced, .. } = self {
            ring.describe(index, Descriptor { flags: 0, region: spaced.region, length: spaced.size });
        }
    }
}

/// Whether a descriptor's frame goes on in the next one.
#[inline]
pub fn is_chained(descriptor: Descriptor) -> bool {
    descriptor.flags & NEXT != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_must_be_inside_its_region_and_aligned() {
        let memory = Arc::new(Region::unshared(4096));
        // 128 bytes and 16 for each descriptor.
        assert!(Ring::new(&memory, 0, 4).is_some() && Ring::new(&memory, 4096 - 384, 4).is_some());
        for (offset, log2) in [(4096 - 376, 4), (4, 0), (1, 0), (0, 8), (0, 16), (0, 63), (0, 255), (8192, 0)]
        {
            assert!(Ring::new(&memory, offset, log2).is_none(), "{offset} {log2}");
        }
    }

    #[test]
    fn fields_are_where_the_protocol_has_them() {
        let memory = Arc::new(Region::unshared(4096));
        let ring = Ring::new(&memory, 64, 1).unwrap();
        ring.mark();
        ring.mask_interrupts();
        ring.publish(Index::Head, 0x1122);
        ring.publish(Index::Tail, 0x3344);
        ring.describe(3, Descriptor { flags: 1, region: 2, length: 3 });
        ring.set_place(3, 0x5566);
        // SAFETY: inside the region, which nobody else uses.
        let bytes = unsafe { std::slice::from_raw_parts(memory.at(64, 160).unwrap().as_ptr(), 160) };
        assert_eq!(bytes[..8], [0x20, 0x1F, 0xE3, 0x03, 1, 0, 0x22, 0x11]);
        assert_eq!(bytes[64..66], [0x44, 0x33]);
        assert_eq!(bytes[144..156], [1, 0, 2, 0, 3, 0, 0, 0, 0x66, 0x55, 0, 0]);
    }

    /// A ring of four whose buffers of 256 bytes begin at 1024.
    fn peers() -> (Arc<Region>, Ring) {
        let memory = Arc::new(Region::unshared(4096));
        let ring = Ring::new(&memory, 0, 2).unwrap();
        for slot in 0..4 {
            ring.describe(slot, Descriptor { flags: 0, region: 0, length: 256 });
            ring.set_place(slot, 1024 + 512 * u32::from(slot));
        }
        (memory, ring)
    }

    #[test]
    fn spaced_buffers_are_known_to_be_larger_than_their_frames() {
        let (memory, ring) = peers();
        let regions = vec![Arc::clone(&memory)];
        let spaced = Spaced::find(&ring, &regions);
        assert_eq!(spaced, Some(Spaced { region: 0, first: 1024, stride: 512, size: 256 }));
        let buffers = Buffers::Peers { regions, spaced };
        let frame = Descriptor { flags: 0, region: 0, length: 60 };
        assert_eq!(buffers.filled(&ring, 5, frame).unwrap().capacity, 256);
        // Another buffer than was offered.
        ring.set_place(1, 4000);
        assert_eq!(buffers.filled(&ring, 5, frame).unwrap().capacity, 60);
        assert!(buffers.filled(&ring, 5, Descriptor { length: 97, ..frame }).is_none());
        assert!(buffers.filled(&ring, 5, Descriptor { region: 1, ..frame }).is_none());
    }

    #[test]
    fn buffers_at_odd_distances_or_outside_are_not_spaced() {
        let (memory, ring) = peers();
        let regions = [memory];
        ring.set_place(2, 2047);
        assert_eq!(Spaced::find(&ring, &regions), None);
        ring.set_place(2, 2048);
        ring.describe(3, Descriptor { flags: 0, region: 0, length: 255 });
        assert_eq!(Spaced::find(&ring, &regions), None);
        for slot in 0..4 {
            ring.describe(slot, Descriptor { flags: 0, region: 0, length: 513 });
        }
        assert_eq!(Spaced::find(&ring, &regions), None, "they overlap");
        for slot in 0..4 {
            ring.describe(slot, Descriptor { flags: 0, region: 0, length: 512 });
            ring.set_place(slot, 2056 + 512 * u32::from(slot));
        }
        assert_eq!(Spaced::find(&ring, &regions), None, "the last is not all inside");
    }
}
