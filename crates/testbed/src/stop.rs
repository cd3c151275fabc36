//! Ctrl-C: the first one asks a run to end and keeps what was measured, the second one ends the
//! process at once; the kernel then removes all that was ours.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// A flag that becomes true when the user asks to stop.
pub fn flag() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the flag unset and sets it.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .context("cannot install a signal handler")?;
    }
    Ok(stop)
}

/// Whether the user asked to stop.
pub fn is_set(stop: &AtomicBool) -> bool {
    stop.load(Ordering::SeqCst)
}

/// Sleeps for `duration`, or until the user asks to stop.
pub fn sleep(stop: &AtomicBool, duration: Duration) {
    let end = Instant::now() + duration;
    while !is_set(stop) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(Duration::from_millis(50)));
    }
}
