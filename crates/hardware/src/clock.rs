//! The rate of the processor's time stamp counter, measured against the kernel's clock.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// How long it is measured. Reading two clocks one after the other is off by less than a microsecond mostly.
const LONG: Duration = Duration::from_millis(10);

/// In hertz; `None` where this processor has none that may be read. It is measured once.
pub fn tsc_hz() -> Option<f64> {
    static RATE: OnceLock<Option<f64>> = OnceLock::new();
    *RATE.get_or_init(measure)
}

fn measure() -> Option<f64> {
    let (began, first) = (Instant::now(), read()?);
    thread::sleep(LONG);
    let (time, last) = (began.elapsed(), read()?);
    Some(last.checked_sub(first)? as f64 / time.as_secs_f64())
}

#[cfg(target_arch = "x86_64")]
fn read() -> Option<u64> {
    // SAFETY: the instruction reads a register, and is there on every x86-64 processor; Linux lets programs use it
    // unless one asks to be kept from it (PR_SET_TSC), which Linerate does not.
    Some(unsafe { std::arch::x86_64::_rdtsc() })
}

#[cfg(not(target_arch = "x86_64"))]
fn read() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_runs_at_the_rate_of_a_processor() {
        let rate = tsc_hz();
        assert_eq!(rate, tsc_hz());
        assert!(rate.is_none_or(|hz| (1e8..1e10).contains(&hz)), "{rate:?}");
    }
}
