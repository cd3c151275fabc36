//! Hints to the processor which cache lines will be needed: an address enters, and its line is on its way.
//!
//! An address may be any: a hint reads nothing that the program sees, and never faults. On processors other than those
//! of x86-64, nothing happens; under Miri, which knows no assembly, nothing is fetched to be written.

/// Has the cache line at an address fetched, to be read.
#[inline(always)]
pub fn to_read(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, for whatever address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Has the cache line at an address fetched for this core alone, to be written.
///
/// It is the instruction itself, since the compiler makes its hint `_MM_HINT_ET0` a fetch to be read unless it may use
/// `prefetchw`, which it may not by default. A line that was fetched to be read waits for the other cores once more when
/// it is written.
#[inline(always)]
pub fn to_write(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint, for whatever address; a processor that does not know it does nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    let _ = address;
}
