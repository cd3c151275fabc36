//! When frames were lost: intervals enter; stalls and runs of lossy intervals leave. Pure.

use std::ops::RangeInclusive;

use results::record::{EventCounters, LossEvent, SoakStall};

use super::interval::{Interval, counted};

/// Frames that must be missing in a row for a stall.
const MIN_SILENT: u64 = 5;
/// Silence that ordinary loss explains with a greater chance than this is no stall.
const CHANCE: f64 = 1e-6;

/// A run of intervals, by their places.
pub(crate) type Run = RangeInclusive<usize>;

/// Runs of silence that ordinary loss does not explain. What was offered nothing in between says
/// nothing, and ends no run.
pub(crate) fn silences(intervals: &[Interval]) -> Vec<Run> {
    let told =
        |at: &usize| intervals.get(*at).is_some_and(|interval| interval.measured && interval.offered > 0);
    let runs =
        runs((0..intervals.len()).filter(told), |at| intervals.get(at).is_some_and(Interval::is_silent));
    let others = || intervals.iter().filter(|interval| interval.measured && !interval.is_silent());
    let lost: u64 = others().map(Interval::lost).sum();
    let offered: u64 = others().map(|interval| interval.offered).sum();
    let ordinary = lost as f64 / offered.max(1) as f64;
    let explained = |run: &Run| {
        let silent: u64 = slice(intervals, run).iter().map(|interval| interval.offered).sum();
        silent < MIN_SILENT || ordinary.powf(silent as f64) > CHANCE
    };
    runs.into_iter().filter(|run| !explained(run)).collect()
}

/// Runs of intervals in which frames were lost, in at least one without a disturbance.
pub(crate) fn lossy(intervals: &[Interval]) -> Vec<Run> {
    let told =
        |at: &usize| intervals.get(*at).is_some_and(|interval| interval.measured && interval.offered > 0);
    let runs = runs((0..intervals.len()).filter(told), |at| {
        intervals.get(at).is_some_and(|interval| interval.lost() > 0)
    });
    let blamed = |interval: &Interval| interval.lost() > 0 && !interval.disturbed;
    runs.into_iter().filter(|run| slice(intervals, run).iter().any(blamed)).collect()
}

/// Maximal runs among `places`, which rise, of those that are `in_run`.
fn runs(places: impl Iterator<Item = usize>, in_run: impl Fn(usize) -> bool) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut goes_on = false;
    for at in places {
        match runs.last_mut().filter(|_| goes_on) {
            _ if !in_run(at) => goes_on = false,
            Some(run) => *run = *run.start()..=at,
            None => {
                runs.push(at..=at);
                goes_on = true;
            }
        }
    }
    runs
}

/// The intervals of a run.
pub(crate) fn slice<'a>(intervals: &'a [Interval], run: &Run) -> &'a [Interval] {
    intervals.get(run.clone()).unwrap_or_default()
}

/// The stall of this silence. It began when frames ceased to pass in the interval before, if some
/// were lost there, and ended likewise.
pub(crate) fn stall(intervals: &[Interval], silence: &Run) -> SoakStall {
    let (first, last) = (*silence.start(), *silence.end());
    let before = intervals.get(..first).unwrap_or_default();
    let ceasing = before.last().filter(|before| before.lost() > 0 && before.measured);
    let after = intervals.get(last + 1..).unwrap_or_default();
    let after = after
        .iter()
        .position(|interval| interval.forwarded > 0)
        .and_then(|at| Some((last + 1 + at, after.get(at)?)));
    let silent = slice(intervals, silence);
    let from = first - usize::from(ceasing.is_some());
    let until = after.filter(|(_, interval)| interval.lost() > 0).map_or(last, |(at, _)| at);
    let disturbed = silent.iter().filter(|interval| interval.disturbed).count();
    SoakStall {
        from_s: ceasing.map_or_else(
            || silent.first().map_or(0.0, |interval| interval.from_s),
            |ceasing| ceasing.from_s + ceasing.passing_s(),
        ),
        until_s: after.map(|(_, after)| after.until_s() - after.passing_s()),
        after_frames: before.iter().map(|interval| interval.forwarded).sum(),
        disturbed: disturbed * 2 > silent.len(),
        counters: counters(intervals, &(from..=until)),
    }
}

/// The event of this run of losses.
pub(crate) fn event(intervals: &[Interval], run: &Run) -> LossEvent {
    let lossy = slice(intervals, run);
    LossEvent {
        from_s: lossy.first().map_or(0.0, |first| first.from_s),
        until_s: lossy.last().map_or(0.0, Interval::until_s),
        on_period: false,
        counters: counters(intervals, run),
    }
}

fn counters(intervals: &[Interval], run: &Run) -> EventCounters {
    let before = intervals.get(..*run.start()).unwrap_or_default();
    EventCounters { before: counted(None, before), during: counted(before.last(), slice(intervals, run)) }
}

#[cfg(test)]
mod tests {
    use results::record::{Counted, DeviceCounted};

    use super::*;

    /// Intervals of a second and a hundred frames, of which so many came back.
    fn intervals(forwarded: &[u64]) -> Vec<Interval> {
        let mut device = DeviceCounted::default();
        let each = forwarded.iter().enumerate().map(|(at, forwarded)| {
            device =
                DeviceCounted { received: device.received + 100, forwarded: device.forwarded + forwarded };
            Interval {
                from_s: at as f64,
                duration_s: 1.0,
                offered: 100,
                forwarded: *forwarded,
                measured: true,
                device: Some(device),
                ..Interval::default()
            }
        });
        each.collect()
    }

    #[test]
    fn a_stall_begins_and_ends_within_intervals_and_has_counters() {
        let intervals = intervals(&[100, 30, 0, 0, 80, 100]);
        let found = silences(&intervals);
        assert_eq!(found, [2..=3]);
        let stall = stall(&intervals, &found[0]);
        assert_eq!((stall.from_s, stall.until_s, stall.after_frames), (1.3, Some(4.2), 130));
        assert!(!stall.disturbed);
        let counted = |offered, forwarded, received| Counted {
            offered,
            forwarded,
            unsent: 0,
            device: Some(DeviceCounted { received, forwarded }),
        };
        assert_eq!(stall.counters.before, counted(100, 100, 100));
        assert_eq!(stall.counters.during, counted(400, 110, 400));
    }

    #[test]
    fn a_stall_until_the_end_did_not_recover() {
        let mut intervals = intervals(&[100, 100, 0, 0]);
        intervals[3].disturbed = true;
        let stall = stall(&intervals, &silences(&intervals)[0]);
        assert_eq!((stall.from_s, stall.until_s, stall.after_frames), (2.0, None, 200));
        assert!(!stall.disturbed);
    }

    #[test]
    fn silence_that_loss_explains_is_no_stall() {
        // One frame of a hundred passes: of a hundred none does in every third interval.
        assert_eq!(silences(&intervals(&[1, 0, 2, 1, 0, 1])), []);
        let mut few = intervals(&[100, 0, 100]);
        few[1].offered = 4;
        assert_eq!(silences(&few), []);
        few[1].offered = 5;
        assert_eq!(silences(&few), [1..=1]);
    }

    #[test]
    fn an_interval_without_frames_ends_no_silence() {
        let mut gap = intervals(&[100, 0, 0, 0, 100]);
        gap[2].offered = 0;
        assert_eq!(silences(&gap), [1..=3]);
    }

    #[test]
    fn losses_in_a_row_are_one_event_and_disturbed_ones_none() {
        let mut intervals = intervals(&[100, 99, 98, 100, 97, 100, 96]);
        intervals[4].disturbed = true;
        intervals[1].disturbed = true;
        assert_eq!(lossy(&intervals), [1..=2, 6..=6]);
        let event = event(&intervals, &(1..=2));
        assert_eq!((event.from_s, event.until_s, event.counters.during.forwarded), (1.0, 3.0, 197));
        intervals[6].measured = false;
        assert_eq!(lossy(&intervals), [1..=2]);
    }
}
