//! Precedence on a core: a thread enters, and other processes wait for it from then on.
//!
//! Niceness alone does not do: where sessions or services have groups of their own (autogroups,
//! control groups), it weighs only within a group, and a compiler next door takes half of the
//! core. The real-time class stands above all groups. It is taken only where other cores are left
//! for everyone else; round robin, so that two load tests on one core disturb each other, and
//! neither waits for the other's end.
//!
//! But the kernel takes the core from a real-time thread that never sleeps, for 50 ms in every
//! second: it throttles it, even on an idle core (where control groups share out real time, and
//! everywhere before 6.12), or has a server for ordinary threads that starve (since 6.12). Frames
//! that wait so long are too late. So such a thread is in the real-time class [in turns](in_turns):
//! it leaves it for a millisecond in twenty, when all others go before it. Were it the least nice then,
//! its own process and the kernel's threads would starve wherever they are of one group with it: they
//! would have one seventieth of a fifteenth of the core, and a load test of seconds took minutes.

use std::fs;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::unistd::{Pid, gettid};
use scheduling::{Level, MOST_URGENT, Order, Policy, Slice};

use crate::Error;

/// Who goes first among Linerate's own threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Threads that generate.
    Worker,
    /// The thread that sets loads and reads counters: for microseconds, so it goes first.
    Control,
}

/// How a thread came to have precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// It is in the real-time class.
    RealTime,
    /// It is as little nice as can be; other groups of processes may still disturb it.
    Nice,
    /// It has none: other processes on its core disturb it.
    None,
}

/// Gives the calling thread precedence on its core. `others` says that cores are left for
/// everyone else.
pub fn take(rank: Rank, others: bool) -> Precedence {
    // One that sleeps most of the time is never stopped.
    let lasting = rank == Rank::Control || !is_throttled();
    if others && lasting && schedule(THIS, real_time(rank)) {
        return Precedence::RealTime;
    }
    if schedule(THIS, ordinary(rank)) { Precedence::Nice } else { Precedence::None }
}

/// Makes the calling thread an ordinary one again.
pub fn give_back() {
    schedule(THIS, USUAL);
}

/// A worker that never sleeps, not even without a load, and that another thread lets give way meanwhile: where
/// there are few cores, what prepares the next load, and all other programs, would wait for one.
#[derive(Clone, Copy, Debug)]
pub struct Worker {
    thread: Pid,
    precedence: Precedence,
}

impl Worker {
    /// The calling thread, which is given precedence as by [`take`].
    pub fn take(others: bool) -> Self {
        Self { thread: gettid(), precedence: take(Rank::Worker, others) }
    }

    /// Lets all other threads go before it.
    pub fn give_way(&self) {
        schedule(self.thread, Policy::Idle);
    }

    /// Gives it back the precedence that it had.
    pub fn go_first(&self) {
        let policy = match self.precedence {
            Precedence::RealTime => real_time(Rank::Worker),
            Precedence::Nice => ordinary(Rank::Worker),
            Precedence::None => USUAL,
        };
        if !schedule(self.thread, policy) {
            schedule(self.thread, USUAL);
        }
    }
}

/// A thread that is in the real-time class in turns, until this is dropped.
#[derive(Debug)]
pub struct Turns {
    end: Option<Sender<()>>,
    keeper: Option<JoinHandle<()>>,
}

/// A turn in the real-time class, and one behind all other threads: 94.5 % and 5.5 % of the time. The former
/// must stay below the 95 % that the kernel grants by default. The latter must stay below 1/16: a late worker
/// sends 1/15 faster ([`crate::pacing`]), so that it makes up for what others took even where they always want its
/// core. Where it does not, it falls behind until it gives frames up.
pub(crate) const TURNS: [Duration; 2] = [Duration::from_micros(18_900), Duration::from_micros(1_100)];
/// What the kernel must grant for that, as a share.
const GRANTED: f64 = 0.95;

/// Gives the calling thread, which never sleeps, precedence on its core. `others` says that cores are
/// left for everyone else. Where the kernel grants no real time, it is as little nice as can be.
///
/// # Errors
/// When no other thread can be started, which would give it its turns.
pub fn in_turns(others: bool) -> Result<Option<Turns>, Error> {
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok();
    let granted = is_granted(read("sched_rt_runtime_us"), read("sched_rt_period_us"));
    // Also for the case that there is no real time.
    schedule(THIS, ordinary(Rank::Worker));
    if !(others && granted && schedule(THIS, real_time(Rank::Worker))) {
        return Ok(None);
    }
    let worker = gettid();
    let (end, ended) = mpsc::channel();
    let keeper = thread::Builder::new()
        .name("turns".to_owned())
        .spawn(move || give_turns(worker, &ended))
        .map_err(|error| Error::Failed(format!("cannot start a thread: {error}; raise `ulimit -u`")))?;
    Ok(Some(Turns { end: Some(end), keeper: Some(keeper) }))
}

impl Drop for Turns {
    fn drop(&mut self) {
        // In this order; and while the thread is there, whose number another may have afterwards.
        drop(self.end.take());
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

/// Gives `worker` its turns until told to end. Runs on the worker's core, before it.
fn give_turns(worker: Pid, ended: &Receiver<()>) {
    take(Rank::Control, true);
    let policies = [real_time(Rank::Worker), Policy::Idle];
    for (policy, turn) in policies.into_iter().zip(TURNS).cycle() {
        if !schedule(worker, policy) || ended.recv_timeout(turn) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    schedule(worker, ordinary(Rank::Worker));
}

/// Whether the kernel grants enough real time, of which `runtime` in each `period`: all if that is -1.
fn is_granted(runtime: Option<f64>, period: Option<f64>) -> bool {
    let share = |(runtime, period)| if runtime < 0.0 { 1.0 } else { runtime / period };
    runtime.zip(period).map(share).is_some_and(|share: f64| share >= GRANTED)
}

/// The calling thread.
const THIS: Pid = Pid::from_raw(0);
/// What threads are that nobody has asked for anything.
const USUAL: Policy = Policy::Ordinary { nice: 0, slice: Slice::Usual };

fn real_time(rank: Rank) -> Policy {
    let level = match rank {
        Rank::Worker => Level::Generator,
        Rank::Control => Level::Control,
    };
    Policy::RealTime { level, order: Order::RoundRobin }
}

fn ordinary(rank: Rank) -> Policy {
    let slice = match rank {
        Rank::Worker => Slice::Usual,
        Rank::Control => Slice::Shortest,
    };
    Policy::Ordinary { nice: MOST_URGENT, slice }
}

/// Asks the kernel to schedule `thread` so, and says whether it does.
fn schedule(thread: Pid, policy: Policy) -> bool {
    scheduling::set(thread, policy).is_ok()
}

/// Whether the kernel may stop a busy real-time thread for a part of every second. Since 6.12 it
/// does so only where control groups share out real time; ordinary threads that starve have a
/// server of their own then.
fn is_throttled() -> bool {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    if read("/proc/sys/kernel/sched_rt_runtime_us").trim() == "-1" {
        return false;
    }
    let release = read("/proc/sys/kernel/osrelease");
    let release = release.trim();
    !is_at_least(release, (6, 12)) || shares_real_time(&read(&format!("/boot/config-{release}")))
}

/// Whether a kernel of this configuration shares out real time among control groups. One whose
/// configuration is not known might.
fn shares_real_time(configuration: &str) -> bool {
    !configuration.lines().any(|line| {
        line == "# CONFIG_RT_GROUP_SCHED is not set" || line == "CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y"
    })
}

fn is_at_least(release: &str, wanted: (u32, u32)) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    matches!((numbers.next(), numbers.next()), (Some(major), Some(minor)) if (major, minor) >= wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_number() {
        assert!(is_at_least("6.18.44-generic", (6, 12)));
        assert!(is_at_least("6.12.0", (6, 12)));
        assert!(is_at_least("10.1", (6, 12)));
        assert!(!is_at_least("6.9.3", (6, 12)));
        assert!(!is_at_least("6.1.0-44-amd64", (6, 12)));
        assert!(!is_at_least("nonsense", (6, 12)));
    }

    #[test]
    fn real_time_is_shared_unless_the_configuration_denies_it() {
        assert!(shares_real_time(""));
        assert!(shares_real_time("CONFIG_SMP=y\nCONFIG_RT_GROUP_SCHED=y\n"));
        assert!(!shares_real_time("CONFIG_SMP=y\n# CONFIG_RT_GROUP_SCHED is not set\n"));
        assert!(!shares_real_time("CONFIG_RT_GROUP_SCHED=y\nCONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y\n"));
    }

    #[test]
    fn real_time_is_taken_where_the_kernel_grants_enough_of_it() {
        assert!(is_granted(Some(950_000.0), Some(1_000_000.0)) && is_granted(Some(-1.0), Some(1_000_000.0)));
        assert!(!is_granted(Some(900_000.0), Some(1_000_000.0)) && !is_granted(Some(0.0), Some(1_000_000.0)));
        assert!(!is_granted(None, Some(1_000_000.0)));
        let [real_time, others] = TURNS.map(|turn| turn.as_secs_f64());
        let share = real_time / (real_time + others);
        assert!(share < GRANTED - 0.004, "{share}");
    }

    /// The policy of the calling thread.
    fn policy() -> i32 {
        // SAFETY: a system call without pointers.
        let policy = unsafe { nix::libc::sched_getscheduler(0) };
        policy & !nix::libc::SCHED_RESET_ON_FORK
    }

    /// A thread of its own works for longer than turns take, and says under which policies it was.
    fn policies_in_turns(others: bool) -> Vec<i32> {
        let work = move || {
            let turns = in_turns(others).unwrap();
            assert!(others || turns.is_none());
            let begun = std::time::Instant::now();
            let mut seen = Vec::new();
            while begun.elapsed() < 20 * TURNS[0] && seen.len() < 3 {
                let policy = policy();
                if seen.last() != Some(&policy) {
                    seen.push(policy);
                }
            }
            drop(turns);
            assert_eq!(policy(), nix::libc::SCHED_OTHER);
            seen
        };
        std::thread::spawn(work).join().unwrap()
    }

    #[test]
    fn a_thread_that_never_sleeps_is_real_time_in_turns() {
        assert_eq!(policies_in_turns(false), [nix::libc::SCHED_OTHER]);
        if !policies_in_turns(true).contains(&nix::libc::SCHED_RR) {
            eprintln!("skipped: no real time is granted here");
            return;
        }
        let seen = policies_in_turns(true);
        assert!(seen.len() == 3 && seen.contains(&nix::libc::SCHED_IDLE), "{seen:?}");
    }

    #[test]
    fn a_worker_gives_way_and_goes_first_again() {
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send((Worker::take(true), policy())).unwrap();
            let _ = ended.recv();
            policy()
        });
        let (worker, before) = told.recv().unwrap();
        worker.give_way();
        // SAFETY: a system call without pointers.
        let meanwhile = unsafe { nix::libc::sched_getscheduler(worker.thread.as_raw()) };
        assert_eq!(meanwhile & !nix::libc::SCHED_RESET_ON_FORK, nix::libc::SCHED_IDLE);
        worker.go_first();
        drop(end);
        assert_eq!(thread.join().unwrap(), before);
    }

    #[test]
    fn precedence_is_given_back() {
        std::thread::spawn(|| {
            take(Rank::Control, true);
            give_back();
            assert_eq!(policy(), nix::libc::SCHED_OTHER);
        })
        .join()
        .unwrap();
    }
}
