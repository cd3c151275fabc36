//! The memory of the process: what reading a configuration needed and nobody uses any more goes back to the kernel.

/// Gives back what is free. The C library keeps it otherwise, as it may be wanted again.
pub(super) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, and touches only memory that is free.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}
