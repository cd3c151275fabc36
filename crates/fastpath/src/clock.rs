//! The time stamp counter, by which nodes' work is measured.

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
