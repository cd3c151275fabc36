//! Which cores a thread has, and when it gets them: a thread and [`Cores`] or a [`Policy`] enter, the kernel's answer
//! leaves.

use nix::errno::Errno;
use nix::libc;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// How the kernel schedules a thread, `sched(7)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Before all threads of the other policies. Control groups that share out real time may have
    /// none for it, and most kernels stop it for 50 ms in every second.
    RealTime {
        /// From 1 to 99: a thread replaces any of a lower level at once.
        level: Level,
        /// Among threads of its own level.
        order: Order,
    },
    /// The usual: a waking thread replaces a running one whose slice is longer.
    Ordinary {
        /// Its share of the core, from [`MOST_URGENT`] to 19; 0 is the usual. The kernel takes what
        /// is beyond for the nearest.
        nice: i32,
        /// How long it runs at a time.
        slice: Slice,
    },
    /// As `Ordinary`, but a waking thread never replaces a running one: it waits for the slice's end.
    Batch {
        /// See `Ordinary`.
        nice: i32,
        /// See `Ordinary`.
        slice: Slice,
    },
    /// Only while no thread of another policy wants the core.
    Idle,
}

/// Linerate's real-time threads, in the order of who goes first: the last one before all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Generates frames, and never sleeps; or forwards them, before those who bring them.
    Generator = 1,
    /// Sets loads and reads counters, for microseconds.
    Control = 2,
    /// Watches what a core does, for microseconds; a generator must not hide it.
    Watch = 3,
}

/// Who runs among real-time threads of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The first one, until it sleeps.
    FirstInFirstOut,
    /// Each in turn.
    RoundRobin,
}

/// How long a thread runs before others of its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// What the kernel gives to all.
    Usual,
    /// The shortest that the kernel grants, 100 µs: when it wakes, the thread replaces one with the
    /// usual slice at once (Linux 6.12; before, the kernel takes no notice of it).
    Shortest,
}

/// The nice value of the largest share: 87 times that of an ordinary thread. Where sessions or
/// services have groups of their own, it weighs only within a group.
pub const MOST_URGENT: i32 = -20;

/// The kernel does not schedule a thread as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the kernel does not schedule {} so: {}; {}", name(*.thread), .cause.desc(), remedy(*.cause))]
pub struct Error {
    /// The thread; 0 is the calling one.
    pub thread: Pid,
    /// What the kernel answered.
    pub cause: Errno,
}

/// Has the kernel schedule `thread` so; 0 is the calling thread. What it starts is ordinary again.
///
/// # Errors
/// When this process may not do so, the thread has ended, or it is of a kind that does not change.
pub fn set(thread: Pid, policy: Policy) -> Result<(), Error> {
    let attributes = attributes(policy);
    // SAFETY: the attributes say their own size and outlive the call.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, thread.as_raw(), &raw const attributes, 0) };
    Errno::result(answer).map(drop).map_err(|cause| Error { thread, cause })
}

/// A set of cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores(CpuSet);

impl Cores {
    /// These, by their numbers.
    ///
    /// # Errors
    /// `EINVAL`, when one is beyond what the kernel could have.
    pub fn of(cores: &[usize]) -> Result<Self, Errno> {
        let mut set = CpuSet::new();
        cores.iter().try_for_each(|core| set.set(*core))?;
        Ok(Self(set))
    }

    /// Those that `thread` may run on; 0 is the calling thread.
    ///
    /// # Errors
    /// `ESRCH`, when there is no such thread.
    pub fn of_thread(thread: Pid) -> Result<Self, Errno> {
        sched_getaffinity(thread).map(Self)
    }

    /// Keeps `thread` on them; 0 is the calling thread. It allocates nothing, so that it can be called between fork
    /// and exec.
    ///
    /// # Errors
    /// `EINVAL`, when none of them is online; `EPERM`; `ESRCH`, when there is no such thread.
    pub fn keep(&self, thread: Pid) -> Result<(), Errno> {
        sched_setaffinity(thread, &self.0)
    }

    /// Whether `core` is among them.
    #[must_use]
    pub fn has(&self, core: usize) -> bool {
        self.0.is_set(core).unwrap_or(false)
    }

    /// Their numbers, in order.
    pub fn numbers(&self) -> impl Iterator<Item = usize> + '_ {
        (0..CpuSet::count()).filter(|core| self.has(*core))
    }
}

/// Keeps the calling thread on `core`.
///
/// # Errors
/// As [`Cores::of`] and [`Cores::keep`].
pub fn pin(core: usize) -> Result<(), Errno> {
    Cores::of(&[core])?.keep(Pid::from_raw(0))
}

fn attributes(policy: Policy) -> libc::sched_attr {
    // SAFETY: sched_attr holds only numbers, for which zero is valid.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    attributes.size = size_of::<libc::sched_attr>() as u32;
    attributes.sched_flags = u64::from(libc::SCHED_FLAG_RESET_ON_FORK.cast_unsigned());
    let number = match policy {
        Policy::RealTime { level, order } => {
            attributes.sched_priority = level as u32;
            match order {
                Order::FirstInFirstOut => libc::SCHED_FIFO,
                Order::RoundRobin => libc::SCHED_RR,
            }
        }
        Policy::Ordinary { nice, slice } | Policy::Batch { nice, slice } => {
            attributes.sched_nice = nice;
            attributes.sched_runtime = slice.nanoseconds();
            if matches!(policy, Policy::Batch { .. }) { libc::SCHED_BATCH } else { libc::SCHED_OTHER }
        }
        Policy::Idle => libc::SCHED_IDLE,
    };
    attributes.sched_policy = number.cast_unsigned();
    attributes
}

impl Slice {
    /// As the kernel takes it: 0 is the usual.
    fn nanoseconds(self) -> u64 {
        match self {
            Self::Usual => 0,
            Self::Shortest => 100_000,
        }
    }
}

fn name(thread: Pid) -> String {
    match thread.as_raw() {
        0 => "this thread".to_owned(),
        id => format!("thread {id}"),
    }
}

fn remedy(cause: Errno) -> &'static str {
    match cause {
        Errno::EPERM => {
            "run as root, or with CAP_SYS_NICE, in a control group that has real time of its own or shares none"
        }
        Errno::ESRCH => "it has ended, or belongs to another container: run on the machine itself",
        _ => "Linux 3.14 or newer is needed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How the kernel schedules the calling thread.
    fn seen() -> libc::sched_attr {
        // SAFETY: as in `attributes`.
        let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::sched_attr>() as u32;
        // SAFETY: the attributes have the size that is said, and outlive the call.
        let answer = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
        assert_eq!(answer, 0);
        attributes
    }

    /// Sets `policy` on a thread of its own, if this process may, and says what the kernel made of it.
    fn set_and_see(policy: Policy) -> Option<libc::sched_attr> {
        let see = move || set(Pid::from_raw(0), policy).map(|()| seen());
        match std::thread::spawn(see).join().unwrap() {
            Ok(seen) => Some(seen),
            Err(error) => {
                assert_eq!(error.cause, Errno::EPERM, "{error}");
                eprintln!("skipped: {error}");
                None
            }
        }
    }

    #[test]
    fn a_thread_stays_on_the_core_that_it_is_given() {
        let this = Pid::from_raw(0);
        let pinned = move || {
            let last = Cores::of_thread(this).unwrap().numbers().last().unwrap();
            pin(last).unwrap();
            assert!(Cores::of_thread(this).unwrap().numbers().eq([last]));
            assert!(Cores::of_thread(this).unwrap().has(last));
        };
        std::thread::spawn(pinned).join().unwrap();
        assert_eq!(pin(1 << 20), Err(Errno::EINVAL));
        assert_eq!(pin(1023), Err(Errno::EINVAL), "it is not there");
    }

    #[test]
    fn anyone_may_be_nicer() {
        for (policy, number) in [
            (Policy::Ordinary { nice: 7, slice: Slice::Usual }, libc::SCHED_OTHER),
            (Policy::Batch { nice: 7, slice: Slice::Usual }, libc::SCHED_BATCH),
        ] {
            let seen = set_and_see(policy).unwrap();
            assert_eq!((seen.sched_policy, seen.sched_nice), (number.cast_unsigned(), 7));
        }
        let seen = set_and_see(Policy::Idle).unwrap();
        assert_eq!(seen.sched_policy, libc::SCHED_IDLE.cast_unsigned());
    }

    #[test]
    fn what_is_asked_for_is_what_the_kernel_does() {
        let urgent = Policy::Ordinary { nice: MOST_URGENT, slice: Slice::Shortest };
        if let Some(seen) = set_and_see(urgent) {
            assert_eq!(
                (seen.sched_policy, seen.sched_nice),
                (libc::SCHED_OTHER.cast_unsigned(), MOST_URGENT)
            );
        }
        for (order, number) in
            [(Order::FirstInFirstOut, libc::SCHED_FIFO), (Order::RoundRobin, libc::SCHED_RR)]
        {
            if let Some(seen) = set_and_see(Policy::RealTime { level: Level::Control, order }) {
                assert_eq!((seen.sched_policy, seen.sched_priority), (number.cast_unsigned(), 2));
            }
        }
    }

    #[test]
    fn what_a_real_time_thread_starts_is_ordinary() {
        let real_time = Policy::RealTime { level: Level::Control, order: Order::RoundRobin };
        let started = move || {
            set(Pid::from_raw(0), real_time).map(|()| std::thread::spawn(seen).join().unwrap().sched_policy)
        };
        match std::thread::spawn(started).join().unwrap() {
            Ok(policy) => assert_eq!(policy, libc::SCHED_OTHER.cast_unsigned()),
            Err(error) => eprintln!("skipped: {error}"),
        }
    }

    #[test]
    fn a_thread_that_is_not_there_is_named() {
        let nobody = Pid::from_raw(i32::MAX);
        let error = set(nobody, Policy::Ordinary { nice: 0, slice: Slice::Usual }).unwrap_err();
        assert_eq!(error, Error { thread: nobody, cause: Errno::ESRCH });
        assert!(error.to_string().contains("thread 2147483647"), "{error}");
    }
}
