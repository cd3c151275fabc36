//! Precedence on a core: a thread enters, and other processes wait for it from then on.
//!
//! Niceness alone does not do: where sessions or services have groups of their own (autogroups,
//! control groups), it weighs only within a group, and a compiler next door takes half of the
//! core. The real-time class stands above all groups, but most kernels stop a real-time thread
//! for 50 ms in every second, even on an idle core. It is taken only where that is known not to
//! be so, and only where other cores are left for everyone else. Round robin, so that two load
//! tests on one core disturb each other, and neither waits for the other's end.

use std::fs;

use nix::unistd::Pid;
use scheduling::{Level, MOST_URGENT, Order, Policy, Slice};

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
    let (level, slice) = match rank {
        Rank::Worker => (Level::Generator, Slice::Usual),
        Rank::Control => (Level::Control, Slice::Shortest),
    };
    let real_time = Policy::RealTime { level, order: Order::RoundRobin };
    if others && !is_throttled() && schedule(real_time) {
        return Precedence::RealTime;
    }
    if schedule(Policy::Ordinary { nice: MOST_URGENT, slice }) { Precedence::Nice } else { Precedence::None }
}

/// Makes the calling thread an ordinary one again.
pub fn give_back() {
    schedule(Policy::Ordinary { nice: 0, slice: Slice::Usual });
}

/// Asks the kernel to schedule the calling thread so, and says whether it does.
fn schedule(policy: Policy) -> bool {
    scheduling::set(Pid::from_raw(0), policy).is_ok()
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
    fn precedence_is_given_back() {
        std::thread::spawn(|| {
            take(Rank::Control, true);
            give_back();
            // SAFETY: a system call without pointers.
            assert_eq!(unsafe { nix::libc::sched_getscheduler(0) }, nix::libc::SCHED_OTHER);
        })
        .join()
        .unwrap();
    }
}
