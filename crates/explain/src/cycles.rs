//! Cycles that threads take: their ids enter, a count leaves, where the machine counts cycles.

use std::io;

use perf_event::events::Hardware;
use perf_event::{Builder, Counter};

/// Counts the cycles of some threads, the kernel's part included.
#[derive(Debug)]
pub struct Cycles(Vec<Counter>);

impl Cycles {
    /// Counts from now on.
    ///
    /// # Errors
    /// Why there is nothing to count, with the remedy.
    pub fn of(threads: &[i32]) -> Result<Self, String> {
        let count = |pid: &i32| {
            let mut counter =
                Builder::new(Hardware::CPU_CYCLES).observe_pid(*pid).any_cpu().include_kernel().build()?;
            counter.enable()?;
            Ok(counter)
        };
        threads.iter().map(count).collect::<io::Result<_>>().map(Self).map_err(|cause| reason(&cause))
    }

    /// Cycles so far; `None` when they cannot be read any more.
    pub fn read(&mut self) -> Option<u64> {
        self.0.iter_mut().map(|counter| counter.read().ok()).sum()
    }
}

fn reason(cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported => {
            "this machine has no cycle counter that may be used; virtual machines often hide it".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "the cycle counter may not be used; run as root, or lower 'sysctl kernel.perf_event_paranoid'"
                .to_owned()
        }
        _ => format!("the cycle counter cannot be used: {cause}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_takes_cycles_where_they_are_counted() {
        let mut cycles = match Cycles::of(&[0]) {
            Ok(cycles) => cycles,
            Err(reason) => {
                assert!(reason.contains("cycle counter"), "{reason}");
                eprintln!("skipped: {reason}");
                return;
            }
        };
        let before = cycles.read().unwrap();
        let work: u64 = (0..100_000_u64).map(std::hint::black_box).sum();
        assert!(work > 0 && cycles.read().unwrap() > before);
    }

    #[test]
    fn a_thread_that_is_not_there_has_none() {
        assert!(Cycles::of(&[i32::MAX]).is_err());
    }
}
