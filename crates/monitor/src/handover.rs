//! How far two cores are from each other: the probes of both meet; how long a cache line takes from
//! one to the other and back leaves.
//!
//! A frame is written on the tester's core and read on the device's, so what a device forwards hangs
//! on that distance. A virtual machine's cores are threads, and a hypervisor moves them: to another
//! cache, or another socket, where a line takes four times as long, for seconds or minutes, and
//! nothing else in the machine tells. (Seen: 85 ns and 380 ns; a router that forwards 820 kpps in the
//! one phase forwards 620 in the other.)

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lab::napi::{self, Turn};

use crate::past::Past;
use crate::usual::Usual;

/// How long the host waits for its guest, who may have to wait for its core.
const PATIENCE: Duration = Duration::from_micros(100);
/// How long the guest waits for its host, and either for the other's next turn.
const HASTE: Duration = Duration::from_micros(10);
/// Turns that are timed together. The fastest of [`REPEATS`] counts: one that was interrupted does not.
const TURNS: u64 = 8;
const REPEATS: u64 = 4;
/// Meetings that are enough to know a distance, and how long they are tried.
const MEETINGS: usize = 3;
const MEETING: Duration = Duration::from_millis(20);
/// The ball's values in a round: two for the meeting, then two for each turn.
const ROUND: u64 = 2 * (1 + TURNS * REPEATS) + 1;

/// What is usual on each guest's core.
pub(super) static USUAL: Usual = Usual::new();

/// The line that goes to and fro, alone on its own (and on the one that processors fetch with it).
#[derive(Debug, Default)]
#[repr(align(128))]
struct Ball(AtomicU64);

/// Where the probes of two cores meet.
#[derive(Debug)]
pub(super) struct Handover {
    /// The guest's core.
    guest: usize,
    ball: Ball,
    timings: Past<Duration>,
}

impl Handover {
    pub(super) fn new(guest: usize) -> Self {
        Self { guest, ball: Ball::default(), timings: Past::new() }
    }

    /// Waits for the guest and times the turns. `round` counts up from 1, the same for both.
    pub(super) fn host(&self, round: u64) {
        let first = round * ROUND;
        let ball = &self.ball.0;
        ball.store(first, Ordering::Release);
        if !self.comes(first + 1, PATIENCE) {
            // A guest that comes later finds nobody; one that came just now gives up on the first turn.
            ball.store(0, Ordering::Release);
            return;
        }
        let mut at = first + 1;
        let mut fastest: Option<Duration> = None;
        for _ in 0..REPEATS {
            let began = Instant::now();
            for _ in 0..TURNS {
                ball.store(at + 1, Ordering::Release);
                if !self.comes(at + 2, HASTE) {
                    return;
                }
                at += 2;
            }
            let took = began.elapsed();
            fastest = Some(fastest.map_or(took, |fastest| fastest.min(took)));
        }
        if let Some(fastest) = fastest {
            self.keep(fastest / TURNS as u32);
        }
    }

    /// Plays along if the host is there.
    pub(super) fn join(&self, round: u64) {
        let first = round * ROUND;
        let ball = &self.ball.0;
        if !self.comes(first, HASTE) {
            return;
        }
        if ball.compare_exchange(first, first + 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return;
        }
        let mut at = first + 1;
        for _ in 0..REPEATS * TURNS {
            if !self.comes(at + 1, HASTE) {
                return;
            }
            ball.store(at + 2, Ordering::Release);
            at += 2;
        }
    }

    /// Whether the ball has this value before `patience` is over. Without the processor's hint for
    /// such loops, on which a hypervisor may take the core away.
    fn comes(&self, value: u64, patience: Duration) -> bool {
        let began = Instant::now();
        loop {
            for _ in 0..64 {
                if self.ball.0.load(Ordering::Acquire) == value {
                    return true;
                }
            }
            if began.elapsed() > patience {
                return false;
            }
        }
    }

    fn keep(&self, timing: Duration) {
        USUAL.remember(self.guest, timing);
        self.timings.add(Instant::now(), timing);
    }

    /// How quickly a line came and went from `from` to `to`, as a share of the usual; `None` if the
    /// two did not meet.
    pub(super) fn index(&self, from: Instant, to: Instant) -> Option<f64> {
        USUAL.index(self.guest, self.timings.between(from, to))
    }
}

/// How long a cache line takes from the first of `cores` to the second and back, now: the fastest of a few
/// milliseconds. `None` where the two did not meet in that time, or no thread may be put on them.
#[must_use]
pub fn core_distance([first, second]: [usize; 2]) -> Option<Duration> {
    let handover = Handover::new(second);
    let began = Instant::now();
    let (announced, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let pinned = napi::pin(0, second, Turn::BeforeAll).is_ok();
            let mut seen = 0;
            while pinned && !over.load(Ordering::Acquire) {
                let round = announced.load(Ordering::Acquire);
                if round > seen {
                    handover.join(round);
                    seen = round;
                }
            }
        });
        scope.spawn(|| {
            if napi::pin(0, first, Turn::BeforeAll).is_ok() {
                for round in 1.. {
                    announced.store(round, Ordering::Release);
                    handover.host(round);
                    let met = handover.timings.between(began, Instant::now()).len();
                    if met >= MEETINGS || began.elapsed() > MEETING {
                        break;
                    }
                }
            }
            over.store(true, Ordering::Release);
        });
    });
    handover.timings.between(began, Instant::now()).into_iter().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_two_cores_is_that_of_a_cache_line() {
        let Some(other) = lab::placement::online().ok().and_then(|cores| cores.get(1).copied()) else {
            eprintln!("skipped: there is only one core");
            return;
        };
        // On a busy machine one of the two may be away for all of the time.
        let found = (0..100).find_map(|_| core_distance([0, other]));
        let Some(found) = found else {
            eprintln!("skipped: the two cores never met, or no thread may be put on them");
            return;
        };
        assert!(found > Duration::from_nanos(5) && found < HASTE, "{found:?}");
        assert_eq!(core_distance([0, usize::MAX]), None);
    }

    #[test]
    fn two_that_meet_learn_how_far_they_are() {
        let handover = Handover::new(77);
        let began = Instant::now();
        let (announced, over) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut seen = 0;
                while !over.load(Ordering::Acquire) {
                    let round = announced.load(Ordering::Acquire);
                    if round > seen {
                        handover.join(round);
                        seen = round;
                    }
                }
            });
            for round in 1.. {
                announced.store(round, Ordering::Release);
                handover.host(round);
                let met = handover.timings.between(began, Instant::now()).len();
                // On a busy machine one of them may be away.
                if met >= 3 || began.elapsed() > Duration::from_secs(20) {
                    break;
                }
            }
            over.store(true, Ordering::Release);
        });
        let timings = handover.timings.between(began, Instant::now());
        let fastest = timings.iter().min().expect("they never met in 20 s");
        assert!(*fastest > Duration::from_nanos(5) && *fastest < HASTE, "{fastest:?}");
        assert!(handover.index(began, Instant::now()).is_some_and(|index| index > 0.0));
    }

    #[test]
    fn who_is_alone_learns_nothing_and_waits_no_longer_than_said() {
        let handover = Handover::new(78);
        let began = Instant::now();
        handover.host(1);
        handover.join(2);
        handover.join(1);
        assert!(began.elapsed() >= PATIENCE + HASTE);
        assert_eq!(handover.index(began, Instant::now()), None);
    }
}
