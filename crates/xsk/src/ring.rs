//! A ring that this process shares with the kernel: one side writes entries, the other takes them.
//!
//! Every word is read once, as an atomic, and an index of the kernel's is checked before it is used.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use memmap2::MmapRaw;
use nix::libc::XDP_RING_NEED_WAKEUP;

/// Where the parts of a ring are in its memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub producer: usize,
    pub consumer: usize,
    pub flags: usize,
    pub entries: usize,
}

/// A ring.
struct Ring {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<AtomicU64>,
    /// Entries; a power of two.
    size: u32,
    /// Words of an entry: 1 for an address, 2 for a descriptor.
    words: usize,
    /// Keeps it mapped.
    _memory: Arc<MmapRaw>,
}

// SAFETY: all that the pointers lead to are atomics, which stay mapped as long as this does.
unsafe impl Send for Ring {}

impl Ring {
    /// The ring in `memory`; `None` where it is not all inside, or its words are not aligned.
    fn new(memory: Arc<MmapRaw>, layout: Layout, size: u32, words: usize) -> Option<Self> {
        let bytes = memory.len();
        let at = |offset: usize, length: usize, alignment: usize| -> Option<NonNull<u8>> {
            let inside = offset.checked_add(length)? <= bytes && offset.is_multiple_of(alignment);
            // SAFETY: `offset` is inside the mapping.
            inside.then(|| NonNull::new(unsafe { memory.as_mut_ptr().add(offset) }))?
        };
        if !size.is_power_of_two() || !(1..=2).contains(&words) {
            return None;
        }
        let entries = (size as usize).checked_mul(words * size_of::<u64>())?;
        Some(Self {
            producer: at(layout.producer, 4, 4)?.cast(),
            consumer: at(layout.consumer, 4, 4)?.cast(),
            flags: at(layout.flags, 4, 4)?.cast(),
            entries: at(layout.entries, entries, 8)?.cast(),
            size,
            words,
            _memory: memory,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: it is inside the mapping and aligned, and only touched as an atomic.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    fn needs_wakeup(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.flags.as_ref() }.load(Ordering::Relaxed) & XDP_RING_NEED_WAKEUP != 0
    }

    /// Word `word` of the entry at `index`, which may exceed the size.
    #[inline]
    fn word(&self, index: u32, word: usize) -> &AtomicU64 {
        let place = (index & (self.size - 1)) as usize * self.words + word.min(self.words - 1);
        // SAFETY: the slot is below the size and the word below the words, so it is inside the mapping.
        unsafe { self.entries.add(place).as_ref() }
    }
}

/// What stands in a transmit or receive ring: where a frame is, and its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Bytes from the start of the frames' memory.
    pub address: u64,
    pub length: u32,
    pub options: u32,
}

impl Descriptor {
    /// The second word of it in memory: two numbers of 32 bits, the length first.
    fn second(self) -> u64 {
        let ([a, b, c, d], [e, f, g, h]) = (self.length.to_ne_bytes(), self.options.to_ne_bytes());
        u64::from_ne_bytes([a, b, c, d, e, f, g, h])
    }

    fn of(address: u64, second: u64) -> Self {
        let [a, b, c, d, e, f, g, h] = second.to_ne_bytes();
        let (length, options) = (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]));
        Self { address, length, options }
    }
}

/// The side of a ring that this process writes: fill and transmit.
pub struct Producer {
    ring: Ring,
    /// The index of the next entry.
    next: u32,
}

impl Producer {
    /// As [`Ring::new`].
    pub fn new(memory: impl Into<Arc<MmapRaw>>, layout: Layout, size: u32, words: usize) -> Option<Self> {
        let ring = Ring::new(memory.into(), layout, size, words)?;
        let next = ring.producer().load(Ordering::Relaxed);
        Some(Self { ring, next })
    }

    /// The index of the next entry.
    #[inline]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Entries before this index were taken by the other side. An index that cannot be counts as none taken.
    #[inline]
    pub fn consumed(&self) -> u32 {
        let consumer = self.ring.consumer().load(Ordering::Acquire);
        let inside = self.next.wrapping_sub(consumer) <= self.ring.size;
        if inside { consumer } else { self.next.wrapping_sub(self.ring.size) }
    }

    /// Entries that there is room for.
    #[inline]
    pub fn room(&self) -> u32 {
        self.ring.size - self.next.wrapping_sub(self.consumed())
    }

    /// Writes an address as the next entry; there is room.
    #[inline]
    pub fn write_address(&mut self, address: u64) {
        self.ring.word(self.next, 0).store(address, Ordering::Relaxed);
        self.next = self.next.wrapping_add(1);
    }

    /// Writes a descriptor as the next entry; there is room.
    #[inline]
    pub fn write(&mut self, descriptor: Descriptor) {
        self.rewrite(self.next, descriptor);
        self.next = self.next.wrapping_add(1);
    }

    /// Writes the descriptor at `index` anew, which the other side has not read.
    #[inline]
    pub fn rewrite(&mut self, index: u32, descriptor: Descriptor) {
        self.ring.word(index, 0).store(descriptor.address, Ordering::Relaxed);
        self.ring.word(index, 1).store(descriptor.second(), Ordering::Relaxed);
    }

    /// Shows the other side all that was written.
    #[inline]
    pub fn publish(&mut self) {
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// Whether the kernel must be woken to look.
    #[inline]
    pub fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// The side of a ring that this process takes from: completion and receive.
pub struct Consumer {
    ring: Ring,
    /// The index of the next entry to take.
    next: u32,
}

impl Consumer {
    /// As [`Ring::new`].
    pub fn new(memory: impl Into<Arc<MmapRaw>>, layout: Layout, size: u32, words: usize) -> Option<Self> {
        let ring = Ring::new(memory.into(), layout, size, words)?;
        let next = ring.consumer().load(Ordering::Relaxed);
        Some(Self { ring, next })
    }

    /// Entries that can be taken. An index that cannot be counts as none.
    #[inline]
    pub fn available(&self) -> u32 {
        let available = self.ring.producer().load(Ordering::Acquire).wrapping_sub(self.next);
        if available <= self.ring.size { available } else { 0 }
    }

    /// The address `ahead` of the next.
    #[inline]
    pub fn address(&self, ahead: u32) -> u64 {
        self.ring.word(self.next.wrapping_add(ahead), 0).load(Ordering::Relaxed)
    }

    /// The descriptor `ahead` of the next.
    #[inline]
    pub fn descriptor(&self, ahead: u32) -> Descriptor {
        let index = self.next.wrapping_add(ahead);
        let [first, second] = [0, 1].map(|word| self.ring.word(index, word).load(Ordering::Relaxed));
        Descriptor::of(first, second)
    }

    /// Gives the places of `count` entries back.
    #[inline]
    pub fn release(&mut self, count: u32) {
        self.next = self.next.wrapping_add(count);
        self.ring.consumer().store(self.next, Ordering::Release);
    }
}

/// Both sides of one ring, in memory of this process: a kernel that is simulated.
#[cfg(test)]
pub mod simulated {
    use memmap2::MmapOptions;

    use super::*;

    pub const LAYOUT: Layout = Layout { producer: 0, consumer: 64, flags: 128, entries: 192 };

    /// Two sides of a ring of `size`, both of whose indices are at `start`.
    #[allow(clippy::unwrap_used)] // a test may panic
    pub fn ring(size: u32, words: usize, start: u32) -> (Producer, Consumer) {
        let bytes = LAYOUT.entries + size as usize * 16;
        let memory = Arc::new(MmapRaw::from(MmapOptions::new().len(bytes).map_anon().unwrap()));
        let set = Ring::new(Arc::clone(&memory), LAYOUT, size, words).unwrap();
        set.producer().store(start, Ordering::Relaxed);
        set.consumer().store(start, Ordering::Relaxed);
        (
            Producer::new(Arc::clone(&memory), LAYOUT, size, words).unwrap(),
            Consumer::new(memory, LAYOUT, size, words).unwrap(),
        )
    }

    /// Sets the index that the other side writes.
    pub fn corrupt(producer: &Producer, consumer: &Consumer, value: u32) {
        producer.ring.consumer().store(value, Ordering::Relaxed);
        consumer.ring.producer().store(value, Ordering::Relaxed);
    }

    /// Asks to be woken, or not.
    pub fn want_wakeup(ring: &Consumer, wants: bool) {
        // SAFETY: it is inside the mapping and aligned.
        let flags = unsafe { ring.ring.flags.as_ref() };
        flags.store(if wants { XDP_RING_NEED_WAKEUP } else { 0 }, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::UnsafeCell;
    use std::collections::VecDeque;
    use std::thread;

    use proptest::prelude::*;

    use super::simulated::{LAYOUT, corrupt, ring, want_wakeup};
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

        #[test]
        fn what_is_written_is_taken_in_order_wherever_the_indices_are(
            start in prop_oneof![Just(0), Just(u32::MAX - 3), any::<u32>()],
            log2 in 0_u32..6,
            steps in prop::collection::vec((any::<bool>(), 0_u32..40), 1..80),
        ) {
            let size = 1 << log2;
            let (mut producer, mut consumer) = ring(size, 2, start);
            let mut model = VecDeque::new();
            let mut number = 0;
            for (write, count) in steps {
                if write {
                    prop_assert_eq!(producer.room() as usize, size as usize - model.len());
                    for _ in 0..count.min(producer.room()) {
                        let descriptor = Descriptor { address: number, length: number as u32 ^ 7, options: 1 };
                        producer.write(descriptor);
                        model.push_back(descriptor);
                        number += 1;
                    }
                    producer.publish();
                } else {
                    prop_assert_eq!(consumer.available() as usize, model.len());
                    let count = count.min(consumer.available());
                    for ahead in 0..count {
                        prop_assert_eq!(Some(consumer.descriptor(ahead)), model.pop_front());
                    }
                    consumer.release(count);
                }
                prop_assert_eq!(producer.next().wrapping_sub(producer.consumed()) as usize, model.len());
            }
        }

        #[test]
        fn an_index_that_cannot_be_gives_nothing_and_takes_nothing(
            value in any::<u32>(), written in 0_u32..=8
        ) {
            let (mut producer, consumer) = ring(8, 1, 100);
            (0..written).for_each(|number| producer.write_address(u64::from(number)));
            producer.publish();
            corrupt(&producer, &consumer, value);
            prop_assert!(producer.room() <= 8 && consumer.available() <= 8);
            let behind = producer.next().wrapping_sub(value);
            if behind > 8 {
                prop_assert_eq!(producer.room(), 0);
            }
        }
    }

    #[test]
    fn nothing_is_visible_before_it_is_published() {
        let (mut producer, mut consumer) = ring(4, 1, 0);
        producer.write_address(7);
        assert_eq!(consumer.available(), 0);
        producer.publish();
        assert_eq!((consumer.available(), consumer.address(0)), (1, 7));
        consumer.release(1);
        assert_eq!((producer.room(), producer.consumed()), (4, 1));
        want_wakeup(&consumer, true);
        assert!(producer.needs_wakeup());
        want_wakeup(&consumer, false);
        assert!(!producer.needs_wakeup());
    }

    /// A word for each entry of a ring. Only the side that holds the entry reads or writes its word.
    struct Frames([UnsafeCell<u32>; 4]);

    // SAFETY: a word belongs to one side at a time, as the ring's indices say.
    unsafe impl Sync for Frames {}

    #[test]
    fn what_an_entry_leads_to_is_there_when_the_entry_is_taken() {
        const FRAMES: u32 = if cfg!(miri) { 200 } else { 10_000 };
        let (mut producer, mut consumer) = ring(4, 1, u32::MAX - 5);
        let frames = &Frames(Default::default());
        thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..FRAMES {
                    while producer.room() == 0 {
                        thread::yield_now();
                    }
                    // SAFETY: of the last four entries the oldest is free, so that its word is ours.
                    unsafe { *frames.0[number as usize % 4].get() = number };
                    producer.write_address(u64::from(number % 4));
                    producer.publish();
                }
            });
            for number in 0..FRAMES {
                while consumer.available() == 0 {
                    thread::yield_now();
                }
                let place = consumer.address(0) as usize;
                // SAFETY: the entry is ours until it is released, and its word too.
                assert_eq!(unsafe { *frames.0[place].get() }, number);
                consumer.release(1);
            }
        });
    }

    #[test]
    fn a_ring_must_be_inside_its_memory_and_aligned() {
        let map = || Arc::new(MmapRaw::from(memmap2::MmapOptions::new().len(4096).map_anon().unwrap()));
        assert!(Ring::new(map(), LAYOUT, 128, 2).is_some());
        assert!(Ring::new(map(), LAYOUT, 256, 2).is_none(), "it is too large");
        assert!(Ring::new(map(), LAYOUT, 100, 2).is_none(), "no power of two");
        assert!(Ring::new(map(), LAYOUT, 128, 0).is_none());
        assert!(Ring::new(map(), Layout { entries: 196, ..LAYOUT }, 8, 1).is_none());
        assert!(Ring::new(map(), Layout { producer: 4094, ..LAYOUT }, 8, 1).is_none());
        assert!(Ring::new(map(), Layout { consumer: usize::MAX, ..LAYOUT }, 8, 1).is_none());
    }
}
