//! Whether losses come at equal distances: the places of losses enter, their period leaves. Pure.
//! A place is a time, or a count of the frames offered until then.
//!
//! The places are folded at many trial periods: the hand of a clock that turns once in a period
//! points in the same direction at every loss if that is theirs, and anywhere if not. How far the
//! mean of the hands reaches (Rayleigh's statistic) is the score; it is also high where the clock
//! turns two or three times between losses, so the slowest of the best clocks is taken. What is
//! then counted is how many losses fall on the period, to an interval, and in how many of the
//! periods there was one; and a chance is stated: how probable it is that as many losses at random
//! places fall so on any of the periods tried. That is at most [`CHANCE`] of what is found, however
//! few losses there are (a test draws them). Few must be the further apart for that: four losses some
//! 280 intervals, five 65, six 30.

use std::f64::consts::TAU;

use stats::trend::median;

/// Losses that make a period: with three, the third need only fall in the middle.
const MIN_LOSSES: usize = 4;
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
/// The highest chance to be taken for a finding: so often do losses at random seem to have a period.
const CHANCE: f64 = 1e-3;
/// Losses are folded in time and by frames: two chances to be wrong.
const FOLDS: f64 = 2.0;

/// A period and what speaks for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Period {
    pub(crate) length: f64,
    /// Where the first loss of the period was.
    pub(crate) phase: f64,
    /// Whether each of the losses falls on the period.
    pub(crate) on_period: Vec<bool>,
    /// The share of periods in which there was a loss.
    pub(crate) occupied: f64,
    pub(crate) chance: f64,
}

/// The period of losses at `places`, which rise and are known to `interval`; `None` if they have
/// none that chance does not explain.
pub(crate) fn find(places: &[f64], interval: f64) -> Option<Period> {
    let folded = places.get(..places.len().min(MAX_FOLDED))?;
    let span = folded.last()? - folded.first()?;
    let (lowest, highest) = ((MIN_LOSSES - 2) as f64 / span, 1.0 / (SHORTEST * interval));
    if places.len() < MIN_LOSSES || !(lowest < highest && highest.is_finite()) {
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
    let (length, origin) = line(folded, 1.0 / frequency(peak))?;
    evidence(places, length, origin, interval, FOLDS * trials as f64 / FINENESS)
}

fn score_at(scores: &[f64], trial: usize) -> f64 {
    scores.get(trial).copied().unwrap_or_default()
}

/// The mean of the clock's hands: how far it reaches to the right and up.
fn mean_hand(places: &[f64], frequency: f64) -> (f64, f64) {
    let first = places.first().copied().unwrap_or_default();
    let hands = places.iter().map(|place| (TAU * frequency * (place - first)).sin_cos());
    let (up, right) = hands.fold((0.0, 0.0), |sum, hand| (sum.0 + hand.0, sum.1 + hand.1));
    (right / places.len() as f64, up / places.len() as f64)
}

/// How far the mean of the clock's hands reaches, 0 to 1.
fn score(places: &[f64], frequency: f64) -> f64 {
    let (right, up) = mean_hand(places, frequency);
    right.hypot(up)
}

/// The line through losses by the number of turns before them, for a clock that turns about once in
/// `length`: its slope, which is the period, and where it begins. Medians (Theil and Sen), so that
/// losses off the period hardly move it.
fn line(places: &[f64], length: f64) -> Option<(f64, f64)> {
    let first = *places.first()?;
    let (right, up) = mean_hand(places, 1.0 / length);
    let origin = first + up.atan2(right) / TAU * length;
    let points: Vec<(f64, f64)> =
        places.iter().map(|place| (((place - origin) / length).round(), *place)).collect();
    let pairs = points.iter().enumerate().flat_map(|(at, one)| {
        points.iter().skip(at + 1).filter(|other| other.0 > one.0).map(move |other| (one, other))
    });
    let slope = middle(pairs.map(|(one, other)| (other.1 - one.1) / (other.0 - one.0)))?;
    Some((slope, middle(points.iter().map(|(turn, place)| place - turn * slope))?))
}

fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    median(&values)
}

/// What speaks for this period, if it is enough.
fn evidence(places: &[f64], length: f64, origin: f64, interval: f64, periods_tried: f64) -> Option<Period> {
    let turn = |place: &f64| ((place - origin) / length).round();
    let on_period: Vec<bool> = places
        .iter()
        .map(|place| (place - origin - turn(place) * length).abs() <= TOLERANCE * interval)
        .collect();
    let mut turns: Vec<f64> =
        places.iter().zip(&on_period).filter(|(_, on)| **on).map(|(place, _)| turn(place)).collect();
    let hits = turns.len();
    turns.dedup();
    let occupied = turns.len() as f64 / (turns.last()? - turns.first()? + 1.0);
    let by_chance = (2.0 * TOLERANCE * interval / length).min(1.0);
    // One loss sets the phase, any of them.
    let losses = places.len() as f64;
    let chance = tail(places.len() - 1, hits.saturating_sub(1), by_chance) * losses * periods_tried.max(1.0);
    let sound = occupied >= OCCUPIED && hits as f64 >= losses * ON_PERIOD && chance <= CHANCE;
    sound.then_some(Period { length, phase: origin + turns.first()? * length, on_period, occupied, chance })
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
    fn losses_at_random_have_a_period_no_more_often_than_stated() {
        // Both folds together may be wrong once in a thousand; each alone half as often.
        for (count, draws) in [(4, 8_000), (5, 4_000), (6, 4_000), (8, 2_000), (30, 400)] {
            let alarm = |seed: &u64| {
                let span = [200.0, 2_000.0][(seed % 2) as usize];
                find(&seen((0..count).map(|at| span * noise(seed * 1_000 + at))), 1.0).is_some()
            };
            let alarms = (0..draws).filter(alarm).count() as f64;
            let expected = draws as f64 * CHANCE / FOLDS;
            assert!(alarms <= expected + 3.0 * expected.sqrt() + 1.0, "{count} losses: {alarms} of {draws}");
        }
    }

    #[test]
    fn four_losses_are_enough_if_they_are_far_apart() {
        let at = |distance: f64| seen((0..4).map(|turn| 7.3 + distance * f64::from(turn)));
        let found = find(&at(300.7), 1.0).unwrap();
        assert!((found.length - 300.7).abs() < 0.5 && found.on_period == [true; 4], "{found:?}");
        assert_eq!(find(&at(200.0), 1.0), None);
        // One that is off the period, or missing, takes too much of the evidence.
        assert_eq!(find(&seen([0.0, 300.0, 420.0, 900.0].into_iter()), 1.0), None);
        assert_eq!(find(&at(300.7)[..3], 1.0), None);
        let more = |count, distance: f64| find(&seen((0..count).map(|turn| distance * f64::from(turn))), 1.0);
        assert!(more(5, 65.0).is_some() && more(6, 30.0).is_some());
        assert_eq!((more(5, 30.0), more(6, 10.0)), (None, None));
    }

    #[test]
    fn some_missing_and_some_others_do_not_hide_it() {
        let periodic = (0..100).filter(|at| at % 9 != 4).map(|at| 17.0 + 37.3 * at as f64);
        let times = seen(periodic.chain((0..12).map(|at| 3_600.0 * noise(at))));
        let found = find(&times, 1.0).unwrap();
        assert!((found.length - 37.3).abs() < 0.01, "{found:?}");
        assert!((found.phase - 17.0).abs() < 1.0 && found.occupied > 0.85, "{found:?}");
        assert!(found.chance < 1e-30 && found.on_period.iter().filter(|on| !**on).count() >= 8, "{found:?}");
    }

    #[test]
    fn few_or_dense_losses_have_none() {
        assert_eq!(find(&[], 1.0), None);
        assert_eq!(find(&[3.5; 8], 1.0), None);
        assert_eq!(find(&seen((0..100).map(f64::from)), 1.0), None);
    }

    proptest! {
        #[test]
        fn whatever_the_period_it_is_found(period in 5.0..200.0f64, phase in 0.0..1.0f64, count in 20..60u32) {
            let times = seen((0..count).map(|at| period * (phase + f64::from(at))));
            let found = find(&times, 1.0).unwrap();
            // From the first loss the last one is predicted to two intervals.
            prop_assert!((found.length - period).abs() * f64::from(count) < 2.0, "{:?}", found);
            let missed = found.on_period.iter().filter(|on| !**on).count();
            prop_assert!(found.occupied > 0.9 && missed <= 1, "{:?}", found);
        }
    }
}
