//! Words in huge pages: a count enters, that many zeroed words leave, which threads share.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{Advice, MmapOptions, MmapRaw};

use super::entry::Entry;

/// Entries that several threads read and one writes. Their pages are taken when first written.
pub(super) struct Words {
    map: MmapRaw,
}

impl Words {
    /// `count` entries, all [`Entry::NONE`].
    pub fn zeroed(count: usize) -> io::Result<Self> {
        let bytes = count.max(1) * size_of::<AtomicU32>();
        let map = MmapOptions::new().len(bytes).no_reserve_swap().map_anon()?;
        // Without huge pages nearly every lookup misses the TLB too. A kernel without them refuses, and
        // all works, slower.
        let _ = map.advise(Advice::HugePage);
        Ok(Self { map: map.into() })
    }

    #[inline(always)]
    fn words(&self) -> &[AtomicU32] {
        let count = self.map.len() / size_of::<AtomicU32>();
        // SAFETY: the map begins at a page, so that words are aligned; it has room for `count` of them,
        // and lives as long as `self`. Any bits are a valid word. It belongs to nobody else, and nothing
        // here touches it but through these atomics.
        unsafe { &*ptr::slice_from_raw_parts(self.map.as_ptr().cast(), count) }
    }

    /// As it is now; whatever else it leads to may be older.
    #[inline(always)]
    pub fn relaxed(&self, at: usize) -> Entry {
        Entry(self.words()[at].load(Ordering::Relaxed))
    }

    /// As it is now, with all that was written before it.
    #[inline(always)]
    pub fn acquire(&self, at: usize) -> Entry {
        Entry(self.words()[at].load(Ordering::Acquire))
    }

    /// Has readers see `entry`, with all that was written before.
    pub fn publish(&self, at: usize, entry: Entry) {
        self.words()[at].store(entry.0, Ordering::Release);
    }

    /// Writes `entry` where no reader looks yet.
    pub fn prepare(&self, at: usize, entry: Entry) {
        self.words()[at].store(entry.0, Ordering::Relaxed);
    }
}
