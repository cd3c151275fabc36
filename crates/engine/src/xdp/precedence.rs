//! Precedence on a core: a thread enters, and other processes wait for it from then on.
//!
//! Niceness does not do: where sessions or services have groups of their own (autogroups,
//! control groups), it weighs only within a group, and a compiler next door takes half of the
//! core. The real-time class stands above all groups. It is taken only where the kernel still
//! lets ordinary processes run beside it (the fair server of Linux 6.12 gives them 5 % when they
//! starve; older kernels would stop a busy real-time thread for 50 ms in every second even on an
//! idle machine), and only where other cores are left for everyone else. Round robin, so that two
//! load tests on one core disturb each other, and neither waits for the other's end.

use nix::libc;

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

/// The least nice there is.
const LEAST_NICE: i32 = -20;

/// Gives the calling thread precedence on its core. `others` says that cores are left for
/// everyone else.
pub fn take(rank: Rank, others: bool) -> Precedence {
    let level = match rank {
        Rank::Worker => 1,
        Rank::Control => 2,
    };
    let parameters = libc::sched_param { sched_priority: level };
    // SAFETY: a valid pointer to parameters that outlive the call; 0 means the calling thread.
    if others
        && has_fair_server()
        && unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const parameters) } == 0
    {
        return Precedence::RealTime;
    }
    // SAFETY: a system call without pointers; on Linux, 0 means the calling thread.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LEAST_NICE) } {
        0 => Precedence::Nice,
        _ => Precedence::None,
    }
}

/// Makes the calling thread an ordinary one again.
pub fn give_back() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: as in `take`. Becoming ordinary is always permitted.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters);
        libc::setpriority(libc::PRIO_PROCESS, 0, 0);
    }
}

/// Whether this kernel lets ordinary processes run beside a busy real-time thread, and the
/// thread run on when there are none.
fn has_fair_server() -> bool {
    let release = nix::sys::utsname::uname().map(|names| names.release().to_string_lossy().into_owned());
    release.is_ok_and(|release| is_at_least(&release, (6, 12)))
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
    fn precedence_is_given_back() {
        std::thread::spawn(|| {
            take(Rank::Control, true);
            give_back();
            // SAFETY: a system call without pointers.
            assert_eq!(unsafe { libc::sched_getscheduler(0) }, libc::SCHED_OTHER);
        })
        .join()
        .unwrap();
    }
}
