//! Memory of tables, in huge pages where the kernel has them: a count and a value enter; that many of the value leave,
//! all of whose pages have been taken, so that no access waits for one.

use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::slice;

use memmap2::{Advice, MmapMut, MmapOptions};

/// The least that a page has, and the most that values may be aligned to.
const PAGE: usize = 4096;

/// So many values next to each other.
pub(super) struct Lines<T> {
    map: MmapMut,
    count: usize,
    values: PhantomData<T>,
}

impl<T: Copy> Lines<T> {
    /// `count` times `value`.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(count: usize, value: T) -> io::Result<Self> {
        const { assert!(align_of::<T>() <= PAGE) }
        let mut map = MmapOptions::new().len((count * size_of::<T>()).max(1)).map_anon()?;
        // Without huge pages nearly every lookup misses the TLB too. A kernel without them refuses, and
        // all works, slower.
        let _ = map.advise(Advice::HugePage);
        let first = map.as_mut_ptr().cast::<T>();
        for at in 0..count {
            // SAFETY: the map has room for `count` values, and begins at a page, so that they are aligned.
            unsafe { first.add(at).write(value) };
        }
        Ok(Self { map, count, values: PhantomData })
    }
}

impl<T: Copy> Deref for Lines<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the map begins with `count` values, which `new` has written; they live as long as it.
        unsafe { slice::from_raw_parts(self.map.as_ptr().cast(), self.count) }
    }
}

impl<T: Copy> DerefMut for Lines<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; the map is borrowed alone.
        unsafe { slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.count) }
    }
}
