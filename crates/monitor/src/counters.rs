//! What the kernel counts: cores and threads enter; leaves what they did between two readings.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use lab::NapiThread;
use lab::napi;
use nix::time::{ClockId, clock_gettime};

use crate::usage::{self, Ticks};

use crate::interruptions::{Interruption, Taken, Watch};

/// The unit of `/proc/stat`: 1 / `USER_HZ` (proc(5)).
const TICK: Duration = Duration::from_millis(10);

/// Reads the counters of some cores, and of the threads pinned to them whose work is ours.
#[derive(Debug)]
pub(super) struct Reader {
    cores: Vec<Core>,
    interrupts_are_apart: bool,
    watch: Option<Watch>,
}

#[derive(Debug)]
struct Core {
    number: usize,
    threads: Vec<Thread>,
}

/// A thread whose `/proc/PID/schedstat` stays open: a reading costs one system call.
#[derive(Debug)]
struct Thread {
    schedstat: File,
    /// Whether it belongs to this process.
    own: bool,
}

/// All counters at one moment. What the kernel does not tell is zero, or `None` where that makes
/// a difference.
#[derive(Clone, Debug)]
pub(super) struct Counters {
    wall: Duration,
    process: Duration,
    cores: Vec<CoreCounters>,
}

#[derive(Clone, Debug)]
struct CoreCounters {
    ticks: Option<Ticks>,
    /// Taken by the hypervisor.
    steal: Option<Duration>,
    kernel_threads: Option<Duration>,
    threads: Vec<ThreadTimes>,
    own: Duration,
}

/// What a thread did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadTimes {
    /// It ran.
    pub(super) ran: Duration,
    /// It could have run, but another had the core.
    pub(super) waited: Duration,
    /// How often it got the core.
    pub(super) turns: u64,
}

/// What happened between two readings.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Times {
    /// Time that passed.
    pub(super) wall: Duration,
    /// This process ran, but not in one of the threads pinned to the cores.
    pub(super) at_large: Duration,
    /// In the order of the cores.
    pub(super) cores: Vec<CoreTimes>,
}

/// What a core did between two readings.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CoreTimes {
    /// Neither idle nor stolen; `None` where the kernel does not tell.
    pub(super) busy: Option<Duration>,
    /// Taken by the hypervisor.
    pub(super) steal: Option<Duration>,
    /// In kernel threads that are not ours; `None` where the kernel does not tell.
    pub(super) kernel_threads: Option<Duration>,
    /// In interrupts and soft interrupts.
    pub(super) interrupts: Duration,
    /// Each of our threads there.
    pub(super) threads: Vec<ThreadTimes>,
}

impl Reader {
    pub(super) fn open(cores: &[usize], ours: &[NapiThread]) -> Self {
        let own = own_pinned_threads();
        let core = |number: usize| {
            let kernel = ours.iter().filter(|thread| thread.core == Some(number)).map(|thread| thread.pid);
            // Soft interrupts that became too many for their moment.
            let kernel = kernel.chain(ksoftirqd(number)).map(|pid| (pid, false));
            let own = own.iter().filter(|(_, core)| *core == number).map(|(pid, _)| (*pid, true));
            Core {
                number,
                threads: kernel.chain(own).filter_map(|(pid, own)| Thread::open(pid, own)).collect(),
            }
        };
        let softirqs = cores.iter().filter_map(|core| ksoftirqd(*core));
        let own_pids = own.iter().map(|(pid, _)| *pid);
        let workers: Vec<i32> =
            ours.iter().map(|thread| thread.pid).chain(softirqs).chain(own_pids).collect();
        Self {
            cores: cores.iter().copied().map(core).collect(),
            interrupts_are_apart: interrupts_are_apart(),
            watch: Watch::start(cores, &workers),
        }
    }

    /// Whether stolen time is told to the nanosecond, not in ticks.
    pub(super) fn steal_is_exact(&self) -> bool {
        self.watch.is_some()
    }

    /// When the cores did not do our work, after `since_ns`; `None` where that is not known.
    pub(super) fn interruptions(&self, since_ns: u64) -> Option<Vec<Interruption>> {
        self.watch.as_ref()?.since(since_ns)
    }

    /// Whether the kernel counts interrupts apart from the threads that they interrupt
    /// (`CONFIG_IRQ_TIME_ACCOUNTING`). Where its configuration cannot be found: it does not,
    /// which is its default.
    pub(super) fn interrupts_are_apart(&self) -> bool {
        self.interrupts_are_apart
    }

    pub(super) fn read(&self) -> Counters {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let taken = self.watch.as_ref().and_then(Watch::read);
        let core = |(at, core): (usize, &Core)| {
            let threads: Vec<_> = core.threads.iter().map(Thread::read).collect();
            let own = core.threads.iter().zip(&threads).filter(|(thread, _)| thread.own);
            let own = own.map(|(_, times)| times.ran).sum();
            let ticks = usage::parse_stat(&stat, core.number);
            let taken: Option<Taken> = taken.as_ref().and_then(|taken| taken.get(at).copied());
            let steal = taken.map(|taken| taken.steal).or_else(|| ticks.map(|ticks| in_time(ticks.steal)));
            let kernel_threads = taken.map(|taken| taken.kernel_threads);
            CoreCounters { ticks, steal, kernel_threads, threads, own }
        };
        Counters {
            wall: now(ClockId::CLOCK_MONOTONIC),
            process: now(ClockId::CLOCK_PROCESS_CPUTIME_ID),
            cores: self.cores.iter().enumerate().map(core).collect(),
        }
    }
}

impl Thread {
    fn open(pid: i32, own: bool) -> Option<Self> {
        File::open(format!("/proc/{pid}/schedstat")).ok().map(|schedstat| Self { schedstat, own })
    }

    /// Nothing, once the thread is gone.
    fn read(&self) -> ThreadTimes {
        let mut text = [0; 96];
        let length = self.schedstat.read_at(&mut text, 0).unwrap_or(0);
        std::str::from_utf8(text.get(..length).unwrap_or_default())
            .ok()
            .and_then(parse_schedstat)
            .unwrap_or_default()
    }
}

/// Time running, time waiting (both in ns), turns (Linux, Documentation/scheduler/sched-stats).
fn parse_schedstat(text: &str) -> Option<ThreadTimes> {
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse().ok());
    let mut next = || fields.next().flatten();
    let (ran, waited) = (Duration::from_nanos(next()?), Duration::from_nanos(next()?));
    Some(ThreadTimes { ran, waited, turns: next()? })
}

impl Counters {
    /// When they were read: nanoseconds of `CLOCK_MONOTONIC`.
    pub(super) fn wall_ns(&self) -> u64 {
        u64::try_from(self.wall.as_nanos()).unwrap_or(u64::MAX)
    }

    pub(super) fn since(&self, earlier: &Self) -> Times {
        let wall = self.wall.saturating_sub(earlier.wall);
        let own = |counters: &Self| counters.cores.iter().map(|core| core.own).sum::<Duration>();
        let pinned = own(self).saturating_sub(own(earlier));
        Times {
            wall,
            at_large: self.process.saturating_sub(earlier.process).saturating_sub(pinned),
            cores: self.cores.iter().zip(&earlier.cores).map(|(now, then)| now.since(then, wall)).collect(),
        }
    }
}

impl CoreCounters {
    fn since(&self, earlier: &Self, wall: Duration) -> CoreTimes {
        let ticks = self.ticks.zip(earlier.ticks);
        let passed = |count: fn(&Ticks) -> u64| {
            let (now, then) = ticks?;
            Some(in_time(count(&now).saturating_sub(count(&then))))
        };
        let grown = |clock: fn(&Self) -> Option<Duration>| {
            clock(self).zip(clock(earlier)).map(|(now, then)| now.saturating_sub(then))
        };
        let steal = grown(|core| core.steal);
        // Not the busy ticks: those go to the thread that runs when the timer strikes. Idle time the
        // kernel takes by the clock.
        let idle = passed(|ticks| ticks.idle);
        let threads = self.threads.iter().zip(&earlier.threads);
        CoreTimes {
            busy: idle.zip(steal).map(|(idle, steal)| wall.saturating_sub(idle + steal)),
            steal,
            kernel_threads: grown(|core| core.kernel_threads),
            interrupts: passed(|ticks| ticks.interrupts).unwrap_or_default(),
            threads: threads.map(|(now, then)| now.since(*then)).collect(),
        }
    }
}

impl ThreadTimes {
    fn since(self, earlier: Self) -> Self {
        Self {
            ran: self.ran.saturating_sub(earlier.ran),
            waited: self.waited.saturating_sub(earlier.waited),
            turns: self.turns.saturating_sub(earlier.turns),
        }
    }
}

fn in_time(ticks: u64) -> Duration {
    Duration::from_nanos(ticks.saturating_mul(TICK.as_nanos() as u64))
}

/// The threads of this process that may run on one core only, and that core.
fn own_pinned_threads() -> Vec<(i32, usize)> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let pids = threads.flatten().filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, napi::core_of(pid)?))).collect()
}

/// The kernel thread that takes over soft interrupts on `core`.
fn ksoftirqd(core: usize) -> Option<i32> {
    let name = format!("ksoftirqd/{core}\n");
    let processes = fs::read_dir("/proc").ok()?;
    let mut pids = processes.flatten().filter_map(|process| process.file_name().to_str()?.parse().ok());
    pids.find(|pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == name)
            && napi::core_of(*pid) == Some(core)
    })
}

fn interrupts_are_apart() -> bool {
    let Ok(release) = fs::read_to_string("/proc/sys/kernel/osrelease") else { return false };
    fs::read_to_string(format!("/boot/config-{}", release.trim()))
        .is_ok_and(|config| config.lines().any(|line| line == "CONFIG_IRQ_TIME_ACCOUNTING=y"))
}

/// The clocks that should go alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clocks {
    /// What engines and strategies time by.
    monotonic: Duration,
    /// The same clock, but nobody corrects it.
    raw: Duration,
    /// Goes on while the machine is suspended.
    boot: Duration,
}

/// Readings further apart than this were interrupted, and are tried again.
const TOGETHER: Duration = Duration::from_micros(5);

impl Clocks {
    pub(super) fn read() -> Self {
        let mut clocks = Self::default();
        for _ in 0..8 {
            let before = now(ClockId::CLOCK_MONOTONIC);
            clocks = Self {
                raw: now(ClockId::CLOCK_MONOTONIC_RAW),
                boot: now(ClockId::CLOCK_BOOTTIME),
                monotonic: now(ClockId::CLOCK_MONOTONIC),
            };
            if clocks.monotonic.saturating_sub(before) < TOGETHER {
                break;
            }
        }
        clocks
    }

    /// By how much the clocks went apart since `earlier`.
    pub(super) fn jump_since(&self, earlier: &Self) -> Duration {
        let passed = |clock: fn(&Self) -> Duration| clock(self).saturating_sub(clock(earlier));
        let monotonic = passed(|clocks| clocks.monotonic);
        passed(|clocks| clocks.raw).abs_diff(monotonic).max(passed(|clocks| clocks.boot).abs_diff(monotonic))
    }
}

fn now(clock: ClockId) -> Duration {
    clock_gettime(clock).map(Duration::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedstat_has_three_fields() {
        let times = ThreadTimes { ran: Duration::from_nanos(11), waited: Duration::from_nanos(22), turns: 3 };
        assert_eq!(parse_schedstat("11 22 3\n"), Some(times));
        assert_eq!(parse_schedstat("11 22\n"), None);
        assert_eq!(parse_schedstat("a b c"), None);
    }

    #[test]
    fn busy_is_what_is_neither_idle_nor_stolen() {
        let at = |idle, steal, interrupts| CoreCounters {
            ticks: Some(Ticks { idle, steal, interrupts, ..Ticks::default() }),
            steal: Some(in_time(steal)),
            kernel_threads: None,
            threads: Vec::new(),
            own: Duration::ZERO,
        };
        let times = at(160, 13, 2).since(&at(100, 10, 1), Duration::from_secs(1));
        let ms = Duration::from_millis;
        assert_eq!((times.busy, times.steal, times.interrupts), (Some(ms(370)), Some(ms(30)), ms(10)));
        // iowait may run backwards (proc(5)).
        assert_eq!(at(99, 10, 1).since(&at(100, 10, 1), ms(100)).busy, Some(ms(100)));
    }

    #[test]
    fn clocks_that_go_alike_do_not_jump() {
        let ms = Duration::from_millis;
        let at = |monotonic, raw, boot| Clocks { monotonic: ms(monotonic), raw: ms(raw), boot: ms(boot) };
        assert_eq!(at(1100, 2100, 3100).jump_since(&at(1000, 2000, 3000)), Duration::ZERO);
        assert_eq!(at(1100, 2097, 3100).jump_since(&at(1000, 2000, 3000)), ms(3));
        assert_eq!(at(1100, 2100, 9100).jump_since(&at(1000, 2000, 3000)), ms(6000));
    }

    #[test]
    fn this_process_is_known() {
        let core = lab::placement::online().unwrap()[0];
        let reader = Reader::open(&[core], &[]);
        let before = reader.read();
        let until = std::time::Instant::now() + Duration::from_millis(50);
        while std::time::Instant::now() < until {}
        let times = reader.read().since(&before);
        assert!(times.wall >= Duration::from_millis(50) && times.at_large > Duration::ZERO, "{times:?}");
        assert!(times.cores[0].busy.is_some());
    }
}
