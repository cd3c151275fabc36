//! How busy a core was: two readings of `/proc/stat` enter, shares of the time between them
//! leave. Also what single threads used, from `/proc/PID/schedstat`.

use std::fs;
use std::time::Duration;

use lab::{Error, Needs, Result};

/// What a core did between two readings, in shares of the time: 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoreUse {
    /// Share of the time that it ran anything at all, interrupts included, 0 to 1.
    pub busy: f64,
    /// Share of the time that the hypervisor took: neither busy nor idle, 0 to 1.
    pub steal: f64,
}

/// Samples how busy one core is.
#[derive(Clone, Debug)]
pub struct CoreClock {
    core: usize,
    last: Ticks,
}

impl CoreClock {
    /// Starts watching `core`.
    ///
    /// # Errors
    /// When `/proc/stat` does not tell of it.
    pub fn new(core: usize) -> Result<Self> {
        Ok(Self { core, last: read(core)? })
    }

    /// What the core did since the last call (or since [`CoreClock::new`]). The kernel counts in
    /// ticks of 10 ms: over less than a second this is coarse.
    ///
    /// # Errors
    /// When `/proc/stat` does not tell of the core any more.
    pub fn sample(&mut self) -> Result<CoreUse> {
        let now = read(self.core)?;
        let last = std::mem::replace(&mut self.last, now);
        Ok(now.since(last))
    }
}

/// The time that a thread has run, to the nanosecond. `None` when there is no such thread, or
/// the kernel was built without scheduler statistics.
#[must_use]
pub fn thread_time(pid: i32) -> Option<Duration> {
    parse_schedstat(&fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?)
}

fn parse_schedstat(text: &str) -> Option<Duration> {
    text.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// A core's counters, in ticks since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    pub(crate) busy: u64,
    /// Of these, in interrupts and soft interrupts.
    pub(crate) interrupts: u64,
    pub(crate) idle: u64,
    pub(crate) steal: u64,
}

impl Ticks {
    fn since(self, last: Self) -> CoreUse {
        // idle and iowait may run backwards by a tick (proc(5)); that is no time at all.
        let busy = self.busy.saturating_sub(last.busy);
        let idle = self.idle.saturating_sub(last.idle);
        let steal = self.steal.saturating_sub(last.steal);
        let total = (busy + idle + steal).max(1) as f64;
        CoreUse { busy: busy as f64 / total, steal: steal as f64 / total }
    }
}

fn read(core: usize) -> Result<Ticks> {
    let text = fs::read_to_string("/proc/stat")
        .map_err(|cause| Error::kernel("cannot read /proc/stat", cause, Needs::SysAdmin, "Mount /proc"))?;
    parse_stat(&text, core)
        .ok_or_else(|| Error::Unexpected(format!("/proc/stat does not tell of core {core}")))
}

/// The line `cpuN user nice system idle iowait irq softirq steal guest guest_nice` (proc(5)).
/// Guest time is contained in user and nice.
pub(crate) fn parse_stat(text: &str, core: usize) -> Option<Ticks> {
    let label = format!("cpu{core}");
    let line = text.lines().find(|line| line.split_ascii_whitespace().next() == Some(&label))?;
    let counts: Vec<u64> =
        line.split_ascii_whitespace().skip(1).map_while(|count| count.parse().ok()).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal] = *counts.first_chunk()?;
    let interrupts = irq + softirq;
    Some(Ticks { busy: user + nice + system + interrupts, interrupts, idle: idle + iowait, steal })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 0 50 1000 5 0 10 3 0 0\n\
                        cpu0 60 1 20 500 2 4 5 8 50 0\n\
                        cpu1 40 0 30 500 3 0 5 2 0 0\n\
                        cpu10 1 1 1 1 1 1 1 1 0 0\n\
                        intr 12345\n";

    #[test]
    fn the_line_of_the_core_is_read() {
        assert_eq!(parse_stat(STAT, 0), Some(Ticks { busy: 90, interrupts: 9, idle: 502, steal: 8 }));
        assert_eq!(parse_stat(STAT, 10), Some(Ticks { busy: 5, interrupts: 2, idle: 2, steal: 1 }));
        assert_eq!(parse_stat(STAT, 2), None);
        assert_eq!(parse_stat("cpu0 1 2 3", 0), None);
    }

    #[test]
    fn shares_are_of_the_time_between() {
        let before = Ticks { busy: 10, interrupts: 0, idle: 100, steal: 0 };
        let after = Ticks { busy: 85, interrupts: 0, idle: 120, steal: 5 };
        assert_eq!(after.since(before), CoreUse { busy: 0.75, steal: 0.05 });
        assert_eq!(before.since(after), CoreUse { busy: 0.0, steal: 0.0 });
    }

    #[test]
    fn this_thread_has_used_time() {
        assert_eq!(parse_schedstat("123456789 5 6\n"), Some(Duration::from_nanos(123_456_789)));
        assert_eq!(parse_schedstat(""), None);
        let mut clock = CoreClock::new(lab::placement::online().unwrap()[0]).unwrap();
        let share = clock.sample().unwrap();
        assert!((0.0..=1.0).contains(&share.busy) && (0.0..=1.0).contains(&share.steal));
    }
}
