//! Frames that are sent or received together.

use std::ptr;
use std::slice;
use std::sync::Arc;

use crate::environment::Dpdk;
use crate::pool::Pool;
use crate::shim::{self, rte_mbuf};

/// Up to [`Burst::MOST`] frames, in order. Dropping it gives their buffers back.
#[derive(Debug)]
pub struct Burst {
    mbufs: [*mut rte_mbuf; Burst::MOST],
    count: usize,
    _dpdk: Arc<Dpdk>,
}

// SAFETY: the frames belong to the burst alone, and any thread may free them.
unsafe impl Send for Burst {}

impl Burst {
    /// The most frames of a burst.
    pub const MOST: usize = 256;

    /// An empty burst.
    #[must_use]
    pub fn new(dpdk: &Arc<Dpdk>) -> Self {
        Self { mbufs: [ptr::null_mut(); Self::MOST], count: 0, _dpdk: Arc::clone(dpdk) }
    }

    /// How many frames it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds buffers of `pool` until it holds `count` frames, at most [`Burst::MOST`], and says
    /// whether it does: a pool may be short of buffers for a while.
    pub fn stock(&mut self, pool: &Pool, count: usize) -> bool {
        let missing = count.min(Self::MOST).saturating_sub(self.count);
        if missing == 0 {
            return true;
        }
        let places = &mut self.mbufs[self.count..self.count + missing];
        // SAFETY: the pool exists, and there are `missing` places to write to.
        let result = unsafe { shim::linerate_alloc(pool.pointer(), places.as_mut_ptr(), missing as u32) };
        if result < 0 {
            return false;
        }
        self.count += missing;
        true
    }

    /// Makes frame `index` `length` bytes long, and returns its whole buffer, which begins with them,
    /// as it was before. `None` when there is no such frame, or it has no room.
    #[inline]
    pub fn buffer(&mut self, index: usize, length: usize) -> Option<&mut [u8]> {
        let mbuf = *self.mbufs[..self.count].get(index)?;
        // SAFETY: the frame is the burst's own; the fields stand where the C compiler says.
        unsafe {
            let offset = usize::from(*field::<u16>(mbuf, shim::LINERATE_DATA_OFF));
            let room = usize::from(*field::<u16>(mbuf, shim::LINERATE_BUF_LEN)).saturating_sub(offset);
            if length > room {
                return None;
            }
            *field::<u16>(mbuf, shim::LINERATE_DATA_LEN) = length as u16;
            *field::<u32>(mbuf, shim::LINERATE_PKT_LEN) = length as u32;
            let buffer = *field::<*mut u8>(mbuf, shim::LINERATE_BUF_ADDR);
            Some(slice::from_raw_parts_mut(buffer.add(offset), room))
        }
    }

    /// All of the buffer of frame `index` that it may have, and how many bytes of that it has. `None` when
    /// there is no such frame, or it is in several pieces.
    #[inline]
    pub fn lend(&mut self, index: usize) -> Option<(&mut [u8], usize)> {
        let length = self.frame(index)?.len();
        Some((self.buffer(index, length)?, length))
    }

    /// The bytes of frame `index`. `None` when there is no such frame, or it is in several pieces.
    #[inline]
    #[must_use]
    pub fn frame(&self, index: usize) -> Option<&[u8]> {
        let mbuf = *self.mbufs[..self.count].get(index)?;
        // SAFETY: the frame is the burst's own; the fields stand where the C compiler says, and its
        // data is within its buffer.
        unsafe {
            if *field::<u16>(mbuf, shim::LINERATE_NB_SEGS) != 1 {
                return None;
            }
            let offset = usize::from(*field::<u16>(mbuf, shim::LINERATE_DATA_OFF));
            let length = usize::from(*field::<u16>(mbuf, shim::LINERATE_DATA_LEN));
            let buffer = *field::<*const u8>(mbuf, shim::LINERATE_BUF_ADDR);
            Some(slice::from_raw_parts(buffer.add(offset), length))
        }
    }

    /// Keeps, in their order, the frames of whose bytes `keep` says so, and gives the other buffers back.
    /// Of a frame in several pieces it sees no bytes.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8]) -> bool) {
        let mut kept = 0;
        for index in 0..self.count {
            if keep(self.frame(index).unwrap_or_default()) {
                self.mbufs.swap(kept, index);
                kept += 1;
            }
        }
        let others = &mut self.mbufs[kept..self.count];
        if !others.is_empty() {
            // SAFETY: these frames are the burst's own, and it forgets them.
            unsafe { shim::linerate_free(others.as_mut_ptr(), others.len() as u32) };
            self.count = kept;
        }
    }

    /// Gives all buffers back.
    pub fn clear(&mut self) {
        if self.count > 0 {
            // SAFETY: the first `count` frames are the burst's own, and it forgets them.
            unsafe { shim::linerate_free(self.mbufs.as_mut_ptr(), self.count as u32) };
            self.count = 0;
        }
    }

    /// The places of the first frames, at most `count`.
    pub(crate) fn first(&mut self, count: usize) -> &mut [*mut rte_mbuf] {
        let count = count.min(self.count);
        &mut self.mbufs[..count]
    }

    /// Forgets the first `count` frames, which are somebody else's now.
    pub(crate) fn forget_first(&mut self, count: usize) {
        let count = count.min(self.count);
        self.mbufs.copy_within(count..self.count, 0);
        self.count -= count;
    }

    /// The free places.
    pub(crate) fn rest(&mut self) -> &mut [*mut rte_mbuf] {
        &mut self.mbufs[self.count..]
    }

    /// Takes up `count` frames that were written to the free places.
    pub(crate) fn take_up(&mut self, count: usize) {
        self.count = (self.count + count).min(Self::MOST);
    }
}

impl Drop for Burst {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The place of the field at `offset` of `mbuf`.
///
/// # Safety
/// `mbuf` is valid, and has a `T` there.
#[inline]
unsafe fn field<T>(mbuf: *mut rte_mbuf, offset: u32) -> *mut T {
    // SAFETY: within the mbuf, as the caller promises.
    unsafe { mbuf.byte_add(offset as usize).cast() }
}
