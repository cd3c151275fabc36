//! Two clocks: the time stamp counter, by which nodes' work is measured, and the kernel's coarse one, by which what
//! lives for seconds ages.

use nix::time::{ClockId, clock_gettime};

/// Clocks of the time stamp counter; nanoseconds where there is none. Not ordered with what stands around
/// it: it costs some twenty clocks, where an ordered one would cost more than a node does for few packets.
#[inline(always)]
#[must_use]
pub fn clocks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        static START: std::sync::LazyLock<std::time::Instant> =
            std::sync::LazyLock::new(std::time::Instant::now);
        START.elapsed().as_nanos() as u64
    }
}

/// Milliseconds since some moment before the start, as the kernel last noted them: some milliseconds late, for a
/// few nanoseconds.
#[must_use]
pub fn milliseconds() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE);
    now.map_or(0, |now| now.tv_sec().cast_unsigned() * 1000 + now.tv_nsec().cast_unsigned() / 1_000_000)
}
