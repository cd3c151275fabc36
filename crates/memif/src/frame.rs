//! A frame in a buffer of a ring, and how frames are copied.

use std::ptr;
use std::slice;

use crate::ring::Buffer;

/// A frame in a buffer that may be another process's memory: an address, no more. It is valid until its
/// lender takes it back, which each lender says.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    start: *mut u8,
    length: u32,
    capacity: u32,
}

// SAFETY: an address; only unsafe functions follow it.
unsafe impl Send for Frame {}

impl Frame {
    /// No frame: to fill an array with.
    pub const NONE: Self = Self { start: ptr::null_mut(), length: 0, capacity: 0 };

    /// A frame elsewhere, as in memory of the caller: `length` of `capacity` bytes at `start`.
    #[must_use]
    pub const fn new(start: *mut u8, length: u32, capacity: u32) -> Self {
        Self { start, length, capacity }
    }

    #[inline]
    pub(crate) fn within(buffer: Buffer, length: u32) -> Self {
        Self { start: buffer.start.as_ptr(), length, capacity: buffer.capacity }
    }

    /// Its first byte.
    #[inline]
    #[must_use]
    pub const fn start(&self) -> *mut u8 {
        self.start
    }

    /// Its bytes, without FCS.
    #[inline]
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length as usize
    }

    /// How long it may become: its buffer, where that is known. Of a client whose buffers are not equally
    /// spaced, as with `zero-copy=yes`, a server knows no more than the frame's length.
    #[inline]
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Makes it longer or shorter; what exceeds the capacity is cut.
    #[inline]
    pub fn set_length(&mut self, length: usize) {
        #[allow(clippy::cast_possible_truncation)] // no more than the capacity
        let length = length.min(self.capacity()) as u32;
        self.length = length;
    }

    /// Its bytes as a slice.
    ///
    /// # Safety
    /// It is lent and not yet taken back, no other slice of it is in use, and its peer keeps to the
    /// protocol; what follows where it does not, the crate's documentation says. A length above 0 needs an
    /// address.
    #[must_use]
    #[allow(clippy::mut_from_ref)] // the caller vouches for it
    pub unsafe fn bytes(&self) -> &mut [u8] {
        if self.length == 0 {
            return &mut [];
        }
        // SAFETY: the caller's promise.
        unsafe { slice::from_raw_parts_mut(self.start, self.length()) }
    }
}

/// Copies `length` bytes: short ones in a few steps of fixed size that may overlap, so that no byte
/// outside is touched and nothing is called.
///
/// # Safety
/// As for [`ptr::copy`].
#[inline]
pub unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    /// Copies the first and the last `N` bytes. All is read before anything is written.
    ///
    /// # Safety
    /// As for `copy`, and `length` is from `N` to 2 `N`.
    #[inline]
    unsafe fn ends<const N: usize>(from: *const u8, to: *mut u8, length: usize) {
        // SAFETY: both steps are inside `length`.
        unsafe {
            let first = from.cast::<[u8; N]>().read_unaligned();
            let last = from.add(length - N).cast::<[u8; N]>().read_unaligned();
            to.cast::<[u8; N]>().write_unaligned(first);
            to.add(length - N).cast::<[u8; N]>().write_unaligned(last);
        }
    }
    // SAFETY: the lengths that `ends` wants.
    unsafe {
        match length {
            33..=64 => ends::<32>(from, to, length),
            65..=128 => ends::<64>(from, to, length),
            16..=32 => ends::<16>(from, to, length),
            _ => ptr::copy(from, to, length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_and_no_byte_more() {
        let from: Vec<u8> = (0..=255).chain(0..=255).map(|byte| byte | 1).collect();
        for length in 0..300 {
            let mut to = vec![0; 310];
            // SAFETY: both are longer.
            unsafe { copy(from.as_ptr(), to.as_mut_ptr().add(1), length) };
            assert_eq!((to[0], &to[1..=length]), (0, &from[..length]));
            assert!(to[1 + length..].iter().all(|byte| *byte == 0), "{length}");
        }
    }

    #[test]
    fn a_frame_grows_no_larger_than_its_buffer() {
        let mut memory = [7; 100];
        let mut frame = Frame::new(memory.as_mut_ptr(), 60, 100);
        frame.set_length(200);
        assert_eq!(frame.length(), 100);
        // SAFETY: ours.
        assert_eq!(unsafe { frame.bytes() }, [7; 100]);
        // SAFETY: empty.
        assert!(unsafe { Frame::NONE.bytes() }.is_empty());
    }
}
