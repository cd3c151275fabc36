//! Whether losses come at equal distances: the times of losses enter, their period leaves. Pure.
//!
//! The times are folded at many trial periods: the hand of a clock that turns once in a period
//! points in the same direction at every loss if that is theirs, and anywhere if not. How far the
//! mean of the hands reaches (Rayleigh's statistic) is the score; it is also high where the clock
//! turns two or three times between losses, so the slowest of the best clocks is taken. What is
//! then counted is how many losses fall on the period, to an interval, and in how many of the
//! periods there was one; and a chance is stated: how probable it is that as many losses at random
//! times fall so on any of the periods tried.

use std::f64::consts::TAU;

use stats::Trend;

/// Losses that make a period.
const MIN_LOSSES: usize = 8;
/// Losses that are folded at most.
const MAX_FOLDED: usize = 400;
/// The shortest period, in intervals: below, most intervals lose frames.
const SHORTEST: f64 = 2.5;
/// Trial periods in the width of a peak of the score.
const FINENESS: f64 = 5.0;
/// The slowest clock whose score is at least this share of the best one's is taken.
const GOOD: f64 = 0.8;
/// A loss falls on the period if it is no further off than this, in intervals: it was anywhere in its
/// interval, and the period is known to a part of one.
const TOLERANCE: f64 = 1.0;
/// The share of periods with a loss, and of losses on the period, that make one.
const OCCUPIED: f64 = 0.75;
/// The share of losses that must fall on it.
const ON_PERIOD: f64 = 0.5;
/// The highest chance to be taken for a finding.
const CHANCE: f64 = 1e-3;

/// A period and what speaks for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Period {
    pub(crate) period_s: f64,
    /// When the first loss of the period was.
    pub(crate) phase_s: f64,
    /// Whether each of the losses falls on the period.
    pub(crate) on_period: Vec<bool>,
    /// The share of periods in which there was a loss.
    pub(crate) occupied: f64,
    pub(crate) chance: f64,
}

/// The period of losses at `times`, which rise and are known to `interval_s`; `None` if they have
/// none that chance does not explain.
pub(crate) fn find(times: &[f64], interval_s: f64) -> Option<Period> {
    let folded = times.get(..times.len().min(MAX_FOLDED))?;
    let span = folded.last()? - folded.first()?;
    let (lowest, highest) = ((MIN_LOSSES - 2) as f64 / span, 1.0 / (SHORTEST * interval_s));
    if times.len() < MIN_LOSSES || !(lowest < highest && highest.is_finite()) {
        return None;
    }
    let step = 1.0 / (FINENESS * span);
    let trials = ((highest - lowest) / step) as usize + 1;
    let frequency = |trial: usize| lowest + step * trial as f64;
    let scores: Vec<f64> = (0..trials).map(|trial| score(folded, frequency(trial))).collect();
    let best = scores.iter().copied().fold(0.0, f64::max);
    let slowest = scores.iter().position(|score| *score >= best * GOOD)?;
    // Its peak is up to half of a peak's width further on.
    let near = slowest..trials.min(slowest + FINENESS as usize + 1);
    let peak = near.max_by(|one, two| score_at(&scores, *one).total_cmp(&score_at(&scores, *two)))?;
    let line = line(folded, 1.0 / frequency(peak))?;
    evidence(times, line.slope, line.intercept, interval_s, trials as f64 / FINENESS)
}

fn score_at(scores: &[f64], trial: usize) -> f64 {
    scores.get(trial).copied().unwrap_or_default()
}

/// The mean of the clock's hands: how far it reaches to the right and up.
fn mean_hand(times: &[f64], frequency: f64) -> (f64, f64) {
    let first = times.first().copied().unwrap_or_default();
    let hands = times.iter().map(|time| (TAU * frequency * (time - first)).sin_cos());
    let (up, right) = hands.fold((0.0, 0.0), |sum, hand| (sum.0 + hand.0, sum.1 + hand.1));
    (right / times.len() as f64, up / times.len() as f64)
}

/// How far the mean of the clock's hands reaches, 0 to 1.
fn score(times: &[f64], frequency: f64) -> f64 {
    let (right, up) = mean_hand(times, frequency);
    right.hypot(up)
}

/// The line through losses by the number of turns before them, for a clock that turns about once in
/// `period_s`: its slope is the period, and losses off the period do not move it.
fn line(times: &[f64], period_s: f64) -> Option<Trend> {
    let first = *times.first()?;
    let (right, up) = mean_hand(times, 1.0 / period_s);
    let origin = first + up.atan2(right) / TAU * period_s;
    let points: Vec<(f64, f64)> =
        times.iter().map(|time| (((time - origin) / period_s).round(), *time)).collect();
    Trend::of(&points)
}

/// What speaks for this period, if it is enough.
fn evidence(
    times: &[f64],
    period_s: f64,
    origin: f64,
    interval_s: f64,
    periods_tried: f64,
) -> Option<Period> {
    let turn = |time: &f64| ((time - origin) / period_s).round();
    let on_period: Vec<bool> = times
        .iter()
        .map(|time| (time - origin - turn(time) * period_s).abs() <= TOLERANCE * interval_s)
        .collect();
    let mut turns: Vec<f64> =
        times.iter().zip(&on_period).filter(|(_, on)| **on).map(|(time, _)| turn(time)).collect();
    let hits = turns.len();
    turns.dedup();
    let occupied = turns.len() as f64 / (turns.last()? - turns.first()? + 1.0);
    let by_chance = (2.0 * TOLERANCE * interval_s / period_s).min(1.0);
    // One loss sets the phase, any of them.
    let losses = times.len() as f64;
    let chance = tail(times.len() - 1, hits.saturating_sub(1), by_chance) * losses * periods_tried.max(1.0);
    let sound = occupied >= OCCUPIED && hits as f64 >= losses * ON_PERIOD && chance <= CHANCE;
    sound.then_some(Period {
        period_s,
        phase_s: origin + turns.first()? * period_s,
        on_period,
        occupied,
        chance,
    })
}

/// The chance of at least `hits` of `tries`, each of chance `each`: an upper bound (Chernoff's).
fn tail(tries: usize, hits: usize, each: f64) -> f64 {
    let share = hits as f64 / tries.max(1) as f64;
    if share <= each || each <= 0.0 {
        return 1.0;
    }
    let part = |share: f64, each: f64| if share > 0.0 { share * (share / each).ln() } else { 0.0 };
    (-(tries as f64) * (part(share, each) + part(1.0 - share, 1.0 - each))).exp()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The middles of the intervals of 1 s that hold `times`, each once.
    fn seen(times: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut seen: Vec<f64> = times.map(|time| time.floor() + 0.5).collect();
        seen.sort_by(f64::total_cmp);
        seen.dedup();
        seen
    }

    /// From 0 to 1, without order.
    fn noise(at: u64) -> f64 {
        let mixed = (at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 11) as f64 / (1u64 << 53) as f64
    }

    #[test]
    fn losses_at_random_have_no_period() {
        for seed in 0..300u64 {
            let count = 5 + seed % 60;
            let times = seen((0..count).map(|at| 2_000.0 * noise(seed * 1_000 + at)));
            assert_eq!(find(&times, 1.0), None, "{times:?}");
        }
    }

    #[test]
    fn some_missing_and_some_others_do_not_hide_it() {
        let periodic = (0..100).filter(|at| at % 9 != 4).map(|at| 17.0 + 37.3 * at as f64);
        let times = seen(periodic.chain((0..12).map(|at| 3_600.0 * noise(at))));
        let found = find(&times, 1.0).unwrap();
        assert!((found.period_s - 37.3).abs() < 0.01, "{found:?}");
        assert!((found.phase_s - 17.0).abs() < 1.0 && found.occupied > 0.85, "{found:?}");
        assert!(found.chance < 1e-30 && found.on_period.iter().filter(|on| !**on).count() >= 8, "{found:?}");
    }

    #[test]
    fn few_or_dense_losses_have_none() {
        assert_eq!(find(&[], 1.0), None);
        assert_eq!(find(&seen((0..7).map(|at| 10.0 * f64::from(at))), 1.0), None);
        assert_eq!(find(&[3.5; 8], 1.0), None);
        assert_eq!(find(&seen((0..100).map(f64::from)), 1.0), None);
    }

    proptest! {
        #[test]
        fn whatever_the_period_it_is_found(period in 5.0..200.0f64, phase in 0.0..1.0f64, count in 20..60u32) {
            let times = seen((0..count).map(|at| period * (phase + f64::from(at))));
            let found = find(&times, 1.0).unwrap();
            // From the first loss the last one is predicted to two intervals.
            prop_assert!((found.period_s - period).abs() * f64::from(count) < 2.0, "{:?}", found);
            let missed = found.on_period.iter().filter(|on| !**on).count();
            prop_assert!(found.occupied > 0.9 && missed <= 1, "{:?}", found);
        }
    }
}
