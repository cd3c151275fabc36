//! Whether a device that loses frames in most intervals loses each n-th frame: intervals enter, n
//! leaves. Pure.
//!
//! Of such a device it is known at any time how many frames it has lost: the n-th part of those
//! offered, to one frame. Random losses keep no such count. That is why it is looked for whole
//! numbers n for which it holds at the end of every interval; and a chance is stated: how probable
//! it is that random losses at the same rate are spread as evenly over the intervals (their index of
//! dispersion, which is about chi-square distributed then; Chernoff's bound).

use super::interval::Interval;

/// Losses that the intervals of a pool share at least: the index of dispersion needs some.
const POOL: u64 = 5;
/// The highest chance to be taken for a finding.
const CHANCE: f64 = 1e-3;

/// Each so many-th frame is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Every {
    pub(crate) frames: u64,
    pub(crate) chance: f64,
}

/// `None` if the losses are not those of a device that counts frames, or chance explains them. What
/// was lost in disturbed intervals counts like all else: the device goes on to count there.
pub(crate) fn find(intervals: &[Interval]) -> Option<Every> {
    let counted: Vec<(u64, u64)> = intervals
        .iter()
        .filter(|interval| interval.measured && interval.offered > 0)
        .map(|interval| (interval.offered, interval.lost()))
        .collect();
    let (offered, lost) = counted.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if lost < 2 {
        return None;
    }
    let candidates = (offered / (lost + 1)).max(2)..=offered.div_ceil(lost - 1);
    let fitting: Vec<u64> = candidates.clone().filter(|frames| keeps_count(&counted, *frames)).collect();
    let tried = (candidates.end() - candidates.start() + 1) as f64;
    let chance = (evenness(&counted, lost as f64 / offered as f64) * tried).min(1.0);
    let frames = *fitting.get(fitting.len() / 2)?;
    (chance <= CHANCE).then_some(Every { frames, chance })
}

/// Whether at the end of every interval the losses are those of a device that drops each so many-th
/// frame, from any one on.
fn keeps_count(counted: &[(u64, u64)], frames: u64) -> bool {
    // How far the device's count is ahead of what was lost, in frames.
    let (mut ahead, mut least, mut most) = (0_i128, 0_i128, 0_i128);
    for (offered, lost) in counted {
        ahead += i128::from(*offered) - i128::from(*lost) * i128::from(frames);
        (least, most) = (least.min(ahead), most.max(ahead));
    }
    most - least < i128::from(frames)
}

/// The chance that losses at random, each frame with chance `ratio`, are spread so evenly.
fn evenness(counted: &[(u64, u64)], ratio: f64) -> f64 {
    let (mut pool, mut pools, mut spread) = ((0, 0), 0_u32, 0.0);
    for (offered, lost) in counted {
        pool = (pool.0 + offered, pool.1 + lost);
        let expected = pool.0 as f64 * ratio;
        if expected >= POOL as f64 {
            spread += (pool.1 as f64 - expected).powi(2) / (expected * (1.0 - ratio));
            (pool, pools) = ((0, 0), pools + 1);
        }
    }
    let freedom = f64::from(pools) - 1.0;
    let share = spread / freedom;
    match freedom >= 1.0 && share < 1.0 {
        true => (freedom / 2.0 * (share.max(f64::MIN_POSITIVE).ln() + 1.0 - share)).exp(),
        false => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn intervals(counted: impl IntoIterator<Item = (u64, u64)>) -> Vec<Interval> {
        let interval = |(offered, lost)| Interval {
            offered,
            forwarded: offered - lost,
            measured: true,
            ..Interval::default()
        };
        counted.into_iter().map(interval).collect()
    }

    /// What a device that drops each `frames`-th one loses of these, which counts from `from`.
    fn counting(offered: &[u64], frames: u64, from: u64) -> Vec<Interval> {
        let mut count = from;
        intervals(offered.iter().map(|offered| {
            let before = count / frames;
            count += offered;
            (*offered, count / frames - before)
        }))
    }

    /// From 0 to 1, without order.
    fn noise(at: u64) -> f64 {
        let mixed = (at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 11) as f64 / (1u64 << 53) as f64
    }

    #[test]
    fn random_losses_are_those_of_no_counter() {
        for seed in 0..2_000 {
            let (ratio, length) = (0.01 + 0.3 * noise(seed), 20 + seed % 50);
            let random = (0..length).map(|at| {
                let lost = (0..100).filter(|frame| noise(seed << 32 | at << 8 | frame) < ratio).count();
                (100, lost as u64)
            });
            let random = intervals(random);
            assert_eq!(find(&random), None, "seed {seed}");
        }
    }

    #[test]
    fn few_losses_or_none_prove_nothing() {
        assert_eq!(find(&[]), None);
        assert_eq!(find(&intervals([(100, 0); 50])), None);
        assert_eq!(find(&intervals([(100, 100); 50])), None);
        assert_eq!(find(&intervals([(100, 1); 4])), None);
    }

    proptest! {
        #[test]
        fn whatever_the_count_it_is_found(
            frames in 2..80u64, from in 0..80u64, offered in proptest::collection::vec(60..140u64, 200..400),
        ) {
            let found = find(&counting(&offered, frames, from)).unwrap();
            prop_assert_eq!(found.frames, frames);
            prop_assert!(found.chance < 1e-6, "{:?}", found);
        }

        #[test]
        fn one_more_loss_is_no_counters(
            frames in 2..80u64, offered in proptest::collection::vec(60..140u64, 200..400), at in 50..150usize,
        ) {
            let mut counted = counting(&offered, frames, 0);
            counted[at].forwarded = counted[at].forwarded.saturating_sub(frames.min(3));
            prop_assert!(find(&counted).is_none_or(|found| found.frames != frames));
        }
    }
}
