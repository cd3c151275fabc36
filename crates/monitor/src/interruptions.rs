//! When cores did not do our work: cores and the threads that are ours enter; leaves, to the
//! nanosecond, what the hypervisor and kernel threads took, and a log of the stretches.
//!
//! A kernel program watches the cores change threads. Where the kernel does not let it (no type
//! information, no permission), the ticks of `/proc/stat` remain, and nobody knows when it was.

use std::fmt;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::process;
use std::thread;
use std::time::Duration;

use libbpf_rs::libbpf_sys::{bpf_prog_test_run_opts, bpf_test_run_opts};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle};
use perf_event::events::Software;
use perf_event::{Builder, Counter};

#[allow(clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod program {
    include!(concat!(env!("OUT_DIR"), "/interruptions.skel.rs"));
}

/// Cores that can be watched at once, and stretches kept of each, as in `interruptions.bpf.c`.
const MAX_WATCHED: usize = 64;
const KEPT: u64 = 2048;
/// How often the timer of a core strikes: some 0.4 % of the core.
const TIMER_NS: u64 = 250_000;
/// Words of `struct core` there.
const WORDS: usize = 8;
/// Words of `struct stretch` there: three numbers, and a name.
const STRETCH: usize = 5;

/// A stretch of time in which a core did not do our work. Ends are nanoseconds of
/// `CLOCK_MONOTONIC`. Of time in which the core stood still altogether, they are when its timer struck
/// before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// The core.
    pub core: usize,
    /// When it began.
    pub start_ns: u64,
    /// When it was over.
    pub end_ns: u64,
    /// How much of the stretch was taken: all of it by a thread, some of it by a standstill.
    pub taken_ns: u64,
    /// The thread that had the core. `None` if the core stood still, or if the thread is of this process.
    pub task: Option<TaskName>,
}

/// What a thread is called: 15 bytes at most, which its program may choose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskName([u8; 16]);

impl TaskName {
    /// The name in the kernel's form, which ends at the first zero. `None` if it is empty.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().filter(|name| name[0] != 0).copied().map(Self)
    }

    /// The name of up to 15 letters, for tests.
    #[cfg(test)]
    pub(super) fn named(name: &str) -> Self {
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Self(bytes)
    }
}

impl fmt::Display for TaskName {
    /// Without what would be more than a letter to a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.split(|byte| *byte == 0).next().unwrap_or_default();
        f.write_str(&String::from_utf8_lossy(name).replace(char::is_control, "?"))
    }
}

impl fmt::Debug for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What was taken from one core, since the machine or the watch began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// By the hypervisor.
    pub(super) steal: Duration,
    /// By kernel threads that are not ours.
    pub(super) kernel_threads: Duration,
    /// Stretches logged.
    logged: u64,
}

/// Watches cores until it is dropped.
pub(super) struct Watch {
    read: OwnedFd,
    variables: MapHandle,
    logs: MapHandle,
    cores: Vec<usize>,
    _links: Vec<Link>,
}

impl Watch {
    /// What the threads `ours` do is no interruption. `None` where the kernel does not tell.
    pub(super) fn start(cores: &[usize], ours: &[i32]) -> Option<Self> {
        let mut object = MaybeUninit::uninit();
        let mut open = program::InterruptionsSkelBuilder::default().open(&mut object).ok()?;
        let constants = open.maps.rodata_data.as_deref_mut()?;
        constants.period_ns = TIMER_NS;
        constants.own_process = process::id();
        for (place, core) in (1..=MAX_WATCHED).zip(cores) {
            *constants.watched.get_mut(*core)? = u8::try_from(place).ok()?;
        }
        open.maps.logs.set_max_entries(u32::try_from(cores.len()).ok()?.max(1)).ok()?;
        let loaded = open.load().ok()?;
        for thread in ours {
            loaded.maps.ours.update(&thread.to_ne_bytes(), &[1], MapFlags::ANY).ok()?;
        }
        let find = loaded.progs.find.as_fd();
        let found = thread::scope(|scope| {
            // On a thread of its own, which moves from core to core.
            let found = scope
                .spawn(|| cores.iter().all(|core| scheduling::pin(*core).is_ok() && run(&find) == Some(0)));
            found.join().unwrap_or(false)
        });
        let mut links = vec![loaded.progs.on_switch.attach().ok()?];
        for core in cores {
            // The link closes the timer.
            let timer = timer_of(*core)?.into_raw_fd();
            links.push(loaded.progs.on_timer.attach_perf_event(timer).ok()?);
        }
        let watch = Self {
            read: loaded.progs.read.as_fd().try_clone_to_owned().ok()?,
            variables: MapHandle::try_from(&loaded.maps.bss).ok()?,
            logs: MapHandle::try_from(&loaded.maps.logs).ok()?,
            cores: cores.to_vec(),
            _links: links,
        };
        (found && cores.len() <= MAX_WATCHED).then_some(watch).filter(|watch| watch.read().is_some())
    }

    /// What was taken so far, in the order of the cores.
    pub(super) fn read(&self) -> Option<Vec<Taken>> {
        run(&self.read)?;
        let variables = self.variables.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        let taken = |place: usize| {
            let word = |at: usize| word(&variables, place * WORDS + at);
            Some(Taken {
                steal: Duration::from_nanos(word(1)?),
                kernel_threads: Duration::from_nanos(word(5)?),
                logged: word(7)?,
            })
        };
        (0..self.cores.len()).map(taken).collect()
    }

    /// The interruptions that were over after `since_ns`. `None` where not all are known any more.
    pub(super) fn since(&self, since_ns: u64) -> Option<Vec<Interruption>> {
        let mut interruptions = Vec::new();
        for ((place, core), taken) in (0_u32..).zip(&self.cores).zip(self.read()?) {
            let log = self.logs.lookup(&place.to_ne_bytes(), MapFlags::ANY).ok()??;
            interruptions.extend(parse(&log, *core, taken.logged, since_ns)?);
        }
        Some(interruptions)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("cores", &self.cores).finish_non_exhaustive()
    }
}

/// A timer that interrupts `core` over and over, whatever runs there.
fn timer_of(core: usize) -> Option<Counter> {
    let mut timer = Builder::new(Software::CPU_CLOCK);
    timer.any_pid().one_cpu(core).include_kernel().sample_period(TIMER_NS).build().ok()
}

/// Of a core's log, in which `logged` stretches were written, those that ended after `since_ns`. They
/// stand in the order of their ends. `None` if one may have been overwritten.
fn parse(log: &[u8], core: usize, logged: u64, since_ns: u64) -> Option<Vec<Interruption>> {
    let mut interruptions = Vec::new();
    for number in (0..logged).rev() {
        if logged - number >= KEPT {
            return None; // the next may be written right now
        }
        let at = (number % KEPT) as usize * STRETCH;
        let (start_ns, end_ns, taken_ns) = (word(log, at)?, word(log, at + 1)?, word(log, at + 2)?);
        if end_ns <= since_ns {
            break;
        }
        let task = log.get((at + 3) * 8..).and_then(TaskName::parse);
        interruptions.push(Interruption { core, start_ns, end_ns, taken_ns, task });
    }
    interruptions.reverse();
    Some(interruptions)
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at * 8..)?.first_chunk().copied().map(u64::from_ne_bytes)
}

/// Runs a program, and returns what it returns.
fn run(program: &impl AsRawFd) -> Option<u32> {
    let mut options =
        bpf_test_run_opts { sz: size_of::<bpf_test_run_opts>() as _, ..bpf_test_run_opts::default() };
    // SAFETY: the descriptor is open, and the options say their own size and outlive the call.
    let result = unsafe { bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    (result == 0).then_some(options.retval)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Instant;

    use nix::time::{ClockId, clock_gettime};

    use super::*;
    use crate::usage;

    /// A core that is watched; `None`, with the reason printed, where the kernel does not allow it.
    fn watched() -> Option<(usize, Watch)> {
        let core = lab::placement::online().unwrap()[0];
        let watch = Watch::start(&[core], &[]);
        if watch.is_none() {
            eprintln!("skipped: the kernel does not let its changes of threads be watched");
        }
        Some((core, watch?))
    }

    #[test]
    fn a_log_gives_what_was_over_since() {
        let stretch = |start: u64| [start, start + 5, 5, 0, 0].map(u64::to_ne_bytes).concat();
        let mut log = [stretch(10), stretch(20), stretch(30)].concat();
        let starts = |log: &[u8], logged, since| {
            let interruptions = parse(log, 1, logged, since)?;
            Some(interruptions.iter().map(|it| it.start_ns).collect::<Vec<_>>())
        };
        assert_eq!(starts(&log, 3, 25), Some(vec![30]));
        assert_eq!(starts(&log, 3, 0), Some(vec![10, 20, 30]));
        assert_eq!(starts(&log, 0, 0), Some(Vec::new()));
        // Once around, the oldest are gone: asked for them, it says so.
        log.resize(KEPT as usize * STRETCH * 8, 0xff);
        assert_eq!(starts(&log, KEPT + 3, 25), Some(vec![30]));
        assert_eq!(starts(&log, KEPT + 3, 0), None);
    }

    #[test]
    fn a_name_is_what_a_terminal_can_show() {
        let name = |bytes: &[u8; 16]| TaskName::parse(bytes).map(|name| name.to_string());
        assert_eq!(name(b"kworker/0:1\0\0\0\0\0").as_deref(), Some("kworker/0:1"));
        assert_eq!(name(b"\x1b[2J\xff and more\0\0").as_deref(), Some("?[2J\u{fffd} and more"));
        assert_eq!(name(&[0; 16]), None);
    }

    #[test]
    fn another_program_s_work_has_its_name_and_ours_has_none() {
        let Some((core, watch)) = watched() else { return };
        let ours = thread::spawn(move || {
            assert!(scheduling::pin(core).is_ok());
            let until = Instant::now() + Duration::from_millis(20);
            while Instant::now() < until {}
            // A child has the cores of its parent.
            let burn = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
            Command::new("sh").args(["-c", burn]).status().unwrap().success()
        });
        assert!(ours.join().unwrap());
        let interruptions = watch.since(0).unwrap();
        let taken = |of: fn(&str) -> bool| {
            let named =
                interruptions.iter().filter(|it| of(&it.task.map_or(String::new(), |it| it.to_string())));
            named.map(|it| it.taken_ns).sum::<u64>()
        };
        assert!(taken(|name| name == "sh") > 1_000_000, "{interruptions:?}");
        assert!(taken(str::is_empty) > 1_000_000, "{interruptions:?}");
    }

    #[test]
    fn a_stranger_s_work_on_a_core_is_seen_and_timed() {
        let Some((core, watch)) = watched() else { return };
        let ns = |clock| Duration::from(clock_gettime(clock).unwrap()).as_nanos() as u64;
        let now = move || ns(ClockId::CLOCK_MONOTONIC);
        let busy = |length: Duration| {
            thread::spawn(move || {
                assert!(scheduling::pin(core).is_ok());
                let (start, ran) = (now(), ns(ClockId::CLOCK_THREAD_CPUTIME_ID));
                let until = Instant::now() + length;
                while Instant::now() < until {}
                (start, now(), ns(ClockId::CLOCK_THREAD_CPUTIME_ID) - ran)
            })
        };
        let (start, end, ran) = busy(Duration::from_millis(20)).join().unwrap();
        let interruptions = watch.since(start).unwrap();
        let seen: u64 =
            interruptions.iter().map(|it| it.end_ns.min(end).saturating_sub(it.start_ns.max(start))).sum();
        // Threads of other tests may have had the core meanwhile; those are no strangers.
        assert!(seen as f64 > ran as f64 * 0.9, "{seen} of {ran} ns");
        assert!(interruptions.iter().all(|it| it.core == core && it.start_ns < it.end_ns));
    }

    #[test]
    fn the_timer_of_each_core_strikes() {
        let Some((_, watch)) = watched() else { return };
        let struck = || {
            let variables = watch.variables.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
            word(&variables, 2).unwrap()
        };
        thread::sleep(Duration::from_millis(20));
        let before = struck();
        thread::sleep(Duration::from_millis(20));
        assert!(before > 0 && struck() > before + 10_000_000, "{before}, {}", struck());
    }

    #[test]
    fn the_clocks_agree_with_the_ticks() {
        let Some(watch) = Watch::start(&[0], &[]) else {
            eprintln!("skipped: the kernel does not tell what the hypervisor takes");
            return;
        };
        let stat = std::fs::read_to_string("/proc/stat").unwrap();
        let ticks = usage::parse_stat(&stat, 0).unwrap().steal;
        let told = watch.read().unwrap()[0].steal.as_secs_f64() * 100.0;
        assert!((told - ticks as f64).abs() <= 3.0, "{told} ticks, /proc/stat says {ticks}");
        assert!(Watch::start(&[512], &[]).is_none());
    }
}
