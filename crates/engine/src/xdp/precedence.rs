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
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::unistd::{Pid, gettid};
use scheduling::{Level, MOST_URGENT, Order, Policy, Slice};

use crate::Error;

/// Gives the calling thread precedence before workers: it sets loads and reads counters, for microseconds, and
/// sleeps most of the time, so that the kernel never stops it. `others` says that cores are left for everyone else.
pub fn control(others: bool) {
    let real_time = Policy::RealTime { level: Level::Control, order: Order::RoundRobin };
    let _ = (others && schedule(THIS, real_time))
        || schedule(THIS, Policy::Ordinary { nice: MOST_URGENT, slice: Slice::Shortest });
}

/// Makes the calling thread as little nice as can be: other groups of processes still get turns on its core.
pub fn be_urgent() {
    schedule(THIS, URGENT);
}

/// Makes the calling thread an ordinary one again.
pub fn give_back() {
    schedule(THIS, USUAL);
}

/// A worker's precedence on its core, until this is dropped.
#[derive(Debug)]
pub struct Turns {
    way: Way,
    keeper: Option<JoinHandle<()>>,
}

/// Lets a worker that never sleeps give way to all other threads while it has no load, and go first again. Where
/// there are few cores, what prepares the next load, and all other programs, would wait for one.
#[derive(Clone, Debug)]
pub struct Way {
    worker: Pid,
    first: Policy,
    shared: Arc<Shared>,
}

/// What a worker is to do, as its keeper is told. Not by a channel: who receives from one waits for a message that is half
/// sent by yielding its core, over and over, and the keeper, which goes before the worker on one core, would never let it
/// send the rest. Who waits for a lock sleeps.
#[derive(Debug, Default)]
struct Shared {
    mode: Mutex<Mode>,
    changed: Condvar,
}

/// How a worker is scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// It has its turns.
    #[default]
    InTurns,
    /// It lets all others go first.
    Behind,
    /// It has no turns any more.
    Ended,
}

impl Shared {
    fn mode(&self) -> MutexGuard<'_, Mode> {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `worker` scheduled by `policy` from now on, if one is given, and tells the keeper what it is to do.
    fn set(&self, mode: Mode, worker: Pid, policy: Option<Policy>) {
        let mut now = self.mode();
        // The worker's number may be another thread's by now.
        if *now == Mode::Ended {
            return;
        }
        policy.map(|policy| schedule(worker, policy));
        *now = mode;
        drop(now);
        self.changed.notify_one();
    }
}

/// A turn in the real-time class, and one behind all other threads: 94.5 % and 5.5 % of the time. The former
/// must stay below the 95 % that the kernel grants by default. The latter must stay below 1/16: a late worker
/// sends 1/15 faster ([`crate::pacing`]), so that it makes up for what others took even where they always want its
/// core. Where it does not, it falls behind until it gives frames up.
pub(crate) const TURNS: [Duration; 2] = [Duration::from_micros(18_900), Duration::from_micros(1_100)];
/// What the kernel must grant for that, as a share.
const GRANTED: f64 = 0.95;
/// Where there is no real time, a worker has one turn without an end.
const ENDLESS: Duration = Duration::from_secs(3600);

/// Gives the calling thread, which never sleeps, precedence on its core. `others` says that cores are
/// left for everyone else. Where the kernel grants no real time, it is as little nice as can be.
///
/// # Errors
/// When no other thread can be started, which would give it its turns.
pub fn in_turns(others: bool) -> Result<Turns, Error> {
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok();
    let granted = is_granted(read("sched_rt_runtime_us"), read("sched_rt_period_us"));
    let real_time = others && granted && schedule(THIS, REAL_TIME);
    // Also until the first turn: in the real-time class it would keep its core from the thread that gives it turns.
    schedule(THIS, URGENT);
    let turns = if real_time {
        vec![(REAL_TIME, TURNS[0]), (Policy::Idle, TURNS[1])]
    } else {
        vec![(URGENT, ENDLESS)]
    };
    let (begin, begun) = mpsc::channel();
    let way = Way { worker: gettid(), first: turns[0].0, shared: Arc::default() };
    let (worker, shared) = (way.worker, Arc::clone(&way.shared));
    let keeper = thread::Builder::new()
        .name("turns".to_owned())
        .spawn(move || {
            control(true);
            drop(begin);
            give_turns(worker, &turns, &shared);
            schedule(worker, URGENT);
        })
        .map_err(|error| Error::Failed(format!("cannot start a thread: {error}; raise `ulimit -u`")))?;
    // Its end says that the thread is there.
    let _: Result<(), _> = begun.recv();
    Ok(Turns { way, keeper: Some(keeper) })
}

impl Turns {
    /// What lets the worker give way.
    #[must_use]
    pub fn way(&self) -> Way {
        self.way.clone()
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        // In this order; and while the thread is there, whose number another may have afterwards.
        self.way.shared.set(Mode::Ended, self.way.worker, None);
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

impl Way {
    /// Lets all other threads go before the worker, before this returns.
    pub fn give(&self) {
        self.shared.set(Mode::Behind, self.worker, Some(Policy::Idle));
    }

    /// Lets the worker go first again, before this returns.
    pub fn take(&self) {
        self.shared.set(Mode::InTurns, self.worker, Some(self.first));
    }
}

/// Gives `worker` its `turns` until told to end. Runs on the worker's core, before it.
fn give_turns(worker: Pid, turns: &[(Policy, Duration)], shared: &Shared) {
    let mut next = turns.iter().cycle();
    let mut mode = shared.mode();
    loop {
        let current = *mode;
        let stays = move |mode: &mut Mode| *mode == current;
        mode = match current {
            Mode::InTurns => {
                let Some((policy, turn)) = next.next() else { return };
                if !schedule(worker, *policy) {
                    return;
                }
                let waited = shared.changed.wait_timeout_while(mode, *turn, stays);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            Mode::Behind => {
                next = turns.iter().cycle();
                shared.changed.wait_while(mode, stays).unwrap_or_else(PoisonError::into_inner)
            }
            Mode::Ended => return,
        };
    }
}

/// Whether the kernel grants enough real time, of which `runtime` in each `period`: all if that is -1.
fn is_granted(runtime: Option<f64>, period: Option<f64>) -> bool {
    let share = |(runtime, period)| if runtime < 0.0 { 1.0 } else { runtime / period };
    runtime.zip(period).map(share).is_some_and(|share: f64| share >= GRANTED)
}

/// The calling thread.
const THIS: Pid = Pid::from_raw(0);
/// A worker with real time.
const REAL_TIME: Policy = Policy::RealTime { level: Level::Generator, order: Order::RoundRobin };
/// A worker without.
const URGENT: Policy = Policy::Ordinary { nice: MOST_URGENT, slice: Slice::Usual };
/// What threads are that nobody has asked for anything.
const USUAL: Policy = Policy::Ordinary { nice: 0, slice: Slice::Usual };

/// Asks the kernel to schedule `thread` so, and says whether it does.
fn schedule(thread: Pid, policy: Policy) -> bool {
    scheduling::set(thread, policy).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_is_taken_where_the_kernel_grants_enough_of_it() {
        assert!(is_granted(Some(950_000.0), Some(1_000_000.0)) && is_granted(Some(-1.0), Some(1_000_000.0)));
        assert!(!is_granted(Some(900_000.0), Some(1_000_000.0)) && !is_granted(Some(0.0), Some(1_000_000.0)));
        assert!(!is_granted(None, Some(1_000_000.0)));
        let [real_time, others] = TURNS.map(|turn| turn.as_secs_f64());
        let share = real_time / (real_time + others);
        assert!(share < GRANTED - 0.004, "{share}");
    }

    /// The policy of a thread.
    fn policy(thread: Pid) -> i32 {
        // SAFETY: a system call without pointers.
        let policy = unsafe { nix::libc::sched_getscheduler(thread.as_raw()) };
        policy & !nix::libc::SCHED_RESET_ON_FORK
    }

    /// A thread of its own works for longer than turns take, and says under which policies it was.
    fn policies_in_turns(others: bool) -> Vec<i32> {
        let work = move || {
            let turns = in_turns(others).unwrap();
            let begun = std::time::Instant::now();
            let mut seen = Vec::new();
            while begun.elapsed() < 20 * TURNS[0] && seen.len() < 3 {
                let policy = policy(THIS);
                if seen.last() != Some(&policy) {
                    seen.push(policy);
                }
            }
            drop(turns);
            assert_eq!(policy(THIS), nix::libc::SCHED_OTHER);
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
        // Whether there is real time or none.
        for others in [false, true] {
            let (tell, told) = mpsc::channel();
            let (end, ended) = mpsc::channel::<()>();
            let thread = std::thread::spawn(move || {
                let turns = in_turns(others).unwrap();
                tell.send(turns.way()).unwrap();
                let _ = ended.recv();
                drop(turns);
                policy(THIS)
            });
            let way = told.recv().unwrap();
            for _ in 0..3 {
                way.give();
                // A moment of that is a turn behind all others; longer than one, and it has given way.
                let since = std::time::Instant::now();
                let mut idle_since = since;
                while idle_since.elapsed() < 3 * TURNS[1] {
                    if policy(way.worker) != nix::libc::SCHED_IDLE {
                        idle_since = std::time::Instant::now();
                    }
                    assert!(since.elapsed() < Duration::from_secs(10));
                }
                way.take();
                let since = std::time::Instant::now();
                while policy(way.worker) == nix::libc::SCHED_IDLE {
                    assert!(since.elapsed() < Duration::from_secs(10));
                }
            }
            drop(end);
            assert_eq!(thread.join().unwrap(), nix::libc::SCHED_OTHER);
        }
    }

    #[test]
    fn precedence_is_given_back() {
        std::thread::spawn(|| {
            control(true);
            give_back();
            assert_eq!(policy(THIS), nix::libc::SCHED_OTHER);
        })
        .join()
        .unwrap();
    }
}
