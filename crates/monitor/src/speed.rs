//! How fast a core runs: nothing enters, how long a fixed piece of work took leaves.
//!
//! A virtual machine's cores slow down in phases that no counter shows: the host changes its
//! clock, or runs something else on the other half of the physical core. Half of the work is one
//! chain of multiplications, each waiting for the last: it measures the clock. The other half is
//! four chains side by side: it measures what is left of the core's width.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long the work takes, about. Short enough to be rarely interrupted, long enough for the
/// clock's resolution.
const LENGTH: Duration = Duration::from_micros(5);
/// The fastest of this many in a row counts: one that was interrupted does not.
const REPEATS: u32 = 3;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_takes_as_long_as_it_should() {
        let fastest = (0..50).map(|_| measure()).min().unwrap();
        assert!(fastest > LENGTH / 4 && fastest < LENGTH * 4, "{fastest:?}");
    }
}
