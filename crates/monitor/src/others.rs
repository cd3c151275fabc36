//! What others did on the cores: counted times and interruptions enter, the times that are not Linerate's own leave. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::counters::{CoreTimes, ThreadTimes, Times};
use crate::interruptions::{Interruption, TaskName};

/// What it takes from waking to running with nobody in the way, on average.
const TURN: Duration = Duration::from_nanos(200);

/// How long each core was busy with the work of others; `None` where the kernel does not tell.
///
/// Where those of Linerate's threads ran that may run on any core is not known: their time is taken
/// off where most is left. So is what a thread's account is ahead of its core's.
/// `interrupts_are_apart` says that a thread's time does not contain its interruptions.
pub(super) fn other_work(times: &Times, interrupts_are_apart: bool) -> Vec<Option<Duration>> {
    let mut at_large = times.at_large;
    let mut left: Vec<Option<Duration>> = Vec::with_capacity(times.cores.len());
    for core in &times.cores {
        let apart = if interrupts_are_apart { core.interrupts } else { Duration::ZERO };
        let ours = core.threads.iter().map(|thread| thread.ran).sum::<Duration>() + apart;
        at_large += core.busy.map_or(Duration::ZERO, |busy| ours.saturating_sub(busy));
        left.push(core.busy.map(|busy| busy.saturating_sub(ours)));
    }
    let mut order: Vec<&mut Duration> = left.iter_mut().flatten().collect();
    order.sort_unstable_by(|a, b| b.cmp(a));
    for rest in order {
        let taken = at_large.min(*rest);
        *rest -= taken;
        at_large -= taken;
    }
    left
}

/// The thread that had `core` longest after `since_ns`, and how long, of those that have a name.
pub(super) fn longest_task(
    interruptions: &[Interruption],
    core: usize,
    since_ns: u64,
) -> Option<(TaskName, Duration)> {
    let mut times: BTreeMap<TaskName, u64> = BTreeMap::new();
    for it in interruptions.iter().filter(|it| it.core == core) {
        if let Some(task) = it.task {
            *times.entry(task).or_default() += it.end_ns.saturating_sub(it.start_ns.max(since_ns));
        }
    }
    let (task, ns) = times.into_iter().max_by_key(|(_, ns)| *ns)?;
    Some((task, Duration::from_nanos(ns)))
}

/// The longest that one of Linerate's threads waited for its core because of the work of others.
///
/// What Linerate's other threads ran on that core, and `at_large` on any, explains as much waiting; and
/// a thread that wakes often waits a little each time.
pub(super) fn waited(core: &CoreTimes, at_large: Duration) -> Duration {
    let all: Duration = core.threads.iter().map(|thread| thread.ran).sum();
    let unexplained = |thread: &ThreadTimes| {
        let turns = TURN * u32::try_from(thread.turns).unwrap_or(u32::MAX);
        thread.waited.saturating_sub(all.saturating_sub(thread.ran) + at_large + turns)
    };
    core.threads.iter().map(unexplained).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn ran(millis: u64) -> ThreadTimes {
        ThreadTimes { ran: ms(millis), ..ThreadTimes::default() }
    }

    fn core(busy: u64, threads: &[ThreadTimes]) -> CoreTimes {
        CoreTimes {
            busy: Some(ms(busy)),
            steal: Some(ms(0)),
            threads: threads.to_vec(),
            ..CoreTimes::default()
        }
    }

    fn second(at_large: u64, cores: &[CoreTimes]) -> Times {
        Times { wall: ms(1000), at_large: ms(at_large), cores: cores.to_vec() }
    }

    #[test]
    fn other_work_is_what_ours_leaves() {
        let times = second(0, &[core(1000, &[ran(1000)]), core(700, &[ran(300), ran(100)])]);
        assert_eq!(other_work(&times, false), [Some(ms(0)), Some(ms(300))]);
    }

    #[test]
    fn work_that_is_ours_on_any_core_is_taken_off_where_most_is_left() {
        let cores = [core(1000, &[ran(980)]), core(800, &[ran(700)])];
        assert_eq!(other_work(&second(30, &cores), false), [Some(ms(20)), Some(ms(70))]);
        assert_eq!(other_work(&second(110, &cores), false), [Some(ms(10)), Some(ms(0))]);
        assert_eq!(other_work(&second(999, &cores), false), [Some(ms(0)), Some(ms(0))]);
    }

    #[test]
    fn interrupts_count_once() {
        let interrupted = CoreTimes { interrupts: ms(50), ..core(500, &[ran(400)]) };
        assert_eq!(other_work(&second(0, std::slice::from_ref(&interrupted)), false), [Some(ms(100))]);
        assert_eq!(other_work(&second(0, &[interrupted]), true), [Some(ms(50))]);
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_not_guessed() {
        let unknown = CoreTimes { busy: None, steal: None, ..core(0, &[ran(100)]) };
        assert_eq!(other_work(&second(0, &[unknown]), false), [None]);
    }

    #[test]
    fn ours_waiting_for_ours_is_no_disturbance() {
        let wait = |waited, turns| ThreadTimes { ran: ms(400), waited: ms(waited), turns };
        assert_eq!(waited(&core(1000, &[wait(400, 0), wait(390, 0)]), ms(0)), ms(0));
        assert_eq!(waited(&core(1000, &[wait(450, 0), wait(390, 0)]), ms(0)), ms(50));
        assert_eq!(waited(&core(1000, &[wait(450, 0)]), ms(100)), ms(350));
        // 0.2 µs at each of 50,000 turns.
        assert_eq!(waited(&core(1000, &[wait(60, 50_000)]), ms(0)), ms(50));
        assert_eq!(waited(&core(1000, &[]), ms(0)), ms(0));
    }

    #[test]
    fn the_thread_that_had_a_core_longest_is_found_by_its_name() {
        let stretch = |core, start_ns, end_ns, task: &str| Interruption {
            core,
            start_ns,
            end_ns,
            taken_ns: end_ns - start_ns,
            task: (!task.is_empty()).then(|| TaskName::named(task)),
        };
        let stretches = [
            stretch(0, 0, 130, "early"),
            stretch(0, 200, 220, "twice"),
            stretch(0, 300, 320, "twice"),
            stretch(0, 400, 490, ""),
            stretch(1, 400, 430, "elsewhere"),
        ];
        let longest = |core| longest_task(&stretches, core, 100);
        assert_eq!(longest(0), Some((TaskName::named("twice"), Duration::from_nanos(40))));
        assert_eq!(longest(1), Some((TaskName::named("elsewhere"), Duration::from_nanos(30))));
        assert_eq!(longest(2), None);
    }
}
