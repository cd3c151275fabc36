//! Whether a device fell silent in a trial: the trial's intervals enter; the silence leaves. Pure.

use results::record::SoakStall;

use crate::soak::interval::Interval;
use crate::soak::losses::{self, Run};

/// A silence of this share of a trial is a stall, whatever comes after it …
const LONG_SHARE: f64 = 0.2;
/// … if it is so many intervals long.
const LONG_INTERVALS: usize = 3;

/// A time without frames, in one direction of a trial.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Silence {
    pub(super) stall: SoakStall,
    /// The intervals in which none came back.
    pub(super) places: Run,
    /// Whether it is a stall for sure. Otherwise it is one if the device does not forward after the trial.
    pub(super) is_long: bool,
    /// Frames of the trial that had come back before, and how long the load had been held.
    pub(super) after_frames: u64,
    pub(super) after_s: f64,
}

/// The first silence of the trial that matters: a long one, or one that lasts to its end. All `intervals` of the run
/// until the trial's end enter; those of the trial itself are the measured ones.
pub(super) fn find(intervals: &[Interval]) -> Option<Silence> {
    let trial = || intervals.iter().enumerate().filter(|(_, interval)| interval.measured);
    let (first, began) = trial().next()?;
    let (last, _) = trial().rfind(|(_, interval)| interval.offered > 0)?;
    let held_s: f64 = trial().map(|(_, interval)| interval.duration_s).sum();
    let is_long = |run: &Run| {
        let silent_s: f64 = losses::slice(intervals, run).iter().map(|interval| interval.duration_s).sum();
        silent_s >= held_s * LONG_SHARE && run.clone().count() >= LONG_INTERVALS
    };
    let found = losses::silences(intervals).into_iter().find(|run| is_long(run) || *run.end() == last)?;
    let stall = losses::stall(intervals, &found);
    let before: u64 = intervals.get(..first)?.iter().map(|interval| interval.forwarded).sum();
    Some(Silence {
        is_long: is_long(&found),
        places: found,
        after_frames: stall.after_frames.saturating_sub(before),
        after_s: (stall.from_s - began.from_s).max(0.0),
        stall,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A warm-up of a second with 7 frames, and a trial with so many of a hundred in each tenth of a second.
    fn run(forwarded: &[u64]) -> Vec<Interval> {
        let warm_up = Interval { duration_s: 1.0, offered: 7, forwarded: 7, ..Interval::default() };
        let trial = forwarded.iter().enumerate().map(|(at, forwarded)| Interval {
            from_s: 2.0 + at as f64 / 10.0,
            duration_s: 0.1,
            offered: 100,
            forwarded: *forwarded,
            measured: true,
            ..Interval::default()
        });
        std::iter::once(warm_up).chain(trial).collect()
    }

    #[test]
    fn a_device_that_forwards_has_no_silence_and_short_ones_within_do_not_count() {
        assert_eq!(find(&run(&[100; 20])), None);
        assert_eq!(find(&run(&[60; 20])), None, "an overload is no stall");
        let mut short = [100; 20];
        short[7] = 0;
        short[8] = 0;
        assert_eq!(find(&run(&short)), None);
        assert_eq!(find(&[]), None);
    }

    #[test]
    fn a_stall_says_after_how_many_frames_of_its_trial_and_when_it_began() {
        let mut stalled = [100; 20];
        stalled[4] = 50;
        stalled[5..].fill(0);
        let found = find(&run(&stalled)).unwrap();
        assert!(found.is_long && found.stall.until_s.is_none());
        assert_eq!((found.after_frames, found.stall.after_frames), (450, 457));
        assert!((found.after_s - 0.45).abs() < 1e-9, "{found:?}");
        let at_once = find(&run(&[0; 20])).unwrap();
        assert_eq!((at_once.after_frames, at_once.after_s), (0, 0.0));
    }

    #[test]
    fn a_silence_that_ends_within_the_trial_counts_if_it_is_long() {
        let mut paused = [100; 20];
        paused[3..9].fill(0);
        let found = find(&run(&paused)).unwrap();
        assert!(found.is_long && found.stall.until_s.is_some(), "{found:?}");
    }

    #[test]
    fn a_short_silence_at_the_end_is_judged_by_the_check_after_the_trial() {
        let mut late = [100; 20];
        late[19] = 0;
        assert!(!find(&run(&late)).unwrap().is_long);
    }
}
