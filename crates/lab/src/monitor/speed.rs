//! How fast a core runs: timings of a fixed piece of work enter, its speed against what is usual
//! leaves.
//!
//! A virtual machine's cores slow down in phases that no counter shows: the host changes its
//! clock, or runs something else on the other half of the physical core. Half of the work is one
//! chain of multiplications, each waiting for the last: it measures the clock. The other half is
//! four chains side by side: it measures what is left of the core's width.

use std::collections::{BTreeMap, VecDeque};
use std::hint::black_box;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long the work takes, about. Short enough to be rarely interrupted, long enough for the
/// clock's resolution.
const LENGTH: Duration = Duration::from_micros(5);
/// The fastest of this many in a row counts: one that was interrupted does not.
const REPEATS: u32 = 3;
/// Timings that tell what is usual: at ten a second, those of seven minutes.
const HISTORY: usize = 4096;

/// The work, `rounds` long.
fn work(rounds: u32, seed: u64) -> u64 {
    let mut chain = black_box(seed);
    for _ in 0..rounds {
        chain = black_box(chain.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    let [mut a, mut b, mut c, mut d] = black_box([chain, 3, 5, 7]);
    for round in 0..rounds / 2 {
        a = a.wrapping_mul(3).rotate_left(5);
        b = b.wrapping_add(b << 3).rotate_left(7);
        c ^= (c << 1).wrapping_add(u64::from(round));
        d = (d ^ (d >> 3)).wrapping_add(0x9E37_79B9);
    }
    a ^ b ^ c ^ d
}

fn time(rounds: u32) -> Duration {
    let began = Instant::now();
    black_box(work(black_box(rounds), 1));
    began.elapsed()
}

/// The length of the work, in rounds: the same for all cores, as long as this process lives.
fn rounds() -> u32 {
    static ROUNDS: OnceLock<u32> = OnceLock::new();
    *ROUNDS.get_or_init(|| {
        const TRIED: u32 = 2000;
        let fastest = (0..8).map(|_| time(TRIED)).min().unwrap_or(LENGTH).as_nanos().max(1);
        let rounds = u128::from(TRIED) * LENGTH.as_nanos() / fastest;
        u32::try_from(rounds).unwrap_or(TRIED).clamp(100, 100_000)
    })
}

/// Times the work on the calling thread's core.
pub(super) fn measure() -> Duration {
    let rounds = rounds();
    (0..REPEATS).map(|_| time(rounds)).min().unwrap_or_default()
}

/// What is usual on each core, in this process so far.
static USUAL: Mutex<BTreeMap<usize, VecDeque<Duration>>> = Mutex::new(BTreeMap::new());

/// Adds a timing to what is known of `core`.
pub(super) fn remember(core: usize, timing: Duration) {
    let mut usual = USUAL.lock().unwrap_or_else(PoisonError::into_inner);
    let history = usual.entry(core).or_default();
    if history.len() == HISTORY {
        history.pop_front();
    }
    history.push_back(timing);
}

/// The speed that `timings` of a stretch show, as a share of the usual one; `None` without any.
pub(super) fn index(core: usize, timings: Vec<Duration>) -> Option<f64> {
    let history: Vec<_> = {
        let usual = USUAL.lock().unwrap_or_else(PoisonError::into_inner);
        usual.get(&core)?.iter().copied().collect()
    };
    compare(timings, history)
}

/// What is usual is the fast phase: the time that one timing in ten does not exceed. (Not the
/// very fastest: a core may run faster for a moment, while all others are idle.) A stretch is
/// as slow as its slower quarter, so that a phase shows that takes a part of it.
fn compare(timings: Vec<Duration>, history: Vec<Duration>) -> Option<f64> {
    let (now, usual) = (quantile(timings, 0.75)?, quantile(history, 0.1)?);
    (!now.is_zero()).then(|| usual.as_secs_f64() / now.as_secs_f64())
}

/// By nearest rank.
fn quantile(mut timings: Vec<Duration>, share: f64) -> Option<Duration> {
    timings.sort_unstable();
    let rank = (timings.len() as f64 * share).ceil() as usize;
    timings.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(values: &[u64]) -> Vec<Duration> {
        values.iter().copied().map(Duration::from_micros).collect()
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        assert_eq!(quantile(micros(&[4, 1, 3, 2]), 0.75), Some(Duration::from_micros(3)));
        assert_eq!(quantile(micros(&[7]), 0.1), Some(Duration::from_micros(7)));
        assert_eq!(quantile(Vec::new(), 0.5), None);
    }

    #[test]
    fn a_slow_phase_is_one_against_the_fast_ones() {
        let history = micros(&[5, 5, 5, 5, 5, 9, 9, 9, 9, 9]);
        assert_eq!(compare(micros(&[5, 5, 5, 5]), history.clone()), Some(1.0));
        assert_eq!(compare(micros(&[9, 9, 10, 9]), history.clone()), Some(5.0 / 9.0));
        // One slow probe of four may be an accident; of eight, three are a phase.
        assert_eq!(compare(micros(&[5, 9, 5, 5]), history.clone()), Some(1.0));
        assert_eq!(compare(micros(&[5, 5, 5, 5, 5, 9, 9, 9]), history.clone()), Some(5.0 / 9.0));
        assert_eq!(compare(Vec::new(), history), None);
    }

    #[test]
    fn a_moment_of_more_speed_does_not_make_all_else_slow() {
        let mut history = micros(&[5; 30]);
        history[3] = Duration::from_micros(3);
        assert_eq!(compare(micros(&[5, 5]), history.clone()), Some(1.0));
        assert_eq!(compare(micros(&[3]), history), Some(5.0 / 3.0));
    }

    #[test]
    fn the_work_takes_as_long_as_it_should() {
        let fastest = (0..50).map(|_| measure()).min().unwrap();
        assert!(fastest > LENGTH / 4 && fastest < LENGTH * 4, "{fastest:?}");
    }
}
