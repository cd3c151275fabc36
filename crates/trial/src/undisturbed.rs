//! What a trial shows of the device itself: frames by their departure and the moments when the machine
//! kept something from working enter; what became of all other frames leaves. Pure.
//!
//! A core that is taken away for a millisecond loses what arrives meanwhile, whatever the load. On a
//! machine where that happens ten times a second no trial of half a second is free of it, but most of
//! its milliseconds are. What is left out depends on when cores were interrupted and on what left
//! the tester, never on what came back: a device that loses frames of its own does so in all bins.

use std::ops::Range;

use engine::{Bin, Timeline};
use results::record::Undisturbed;

/// A stretch in which a core did not do the tester's or the device's work. On the clock of
/// [`Timeline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// When it began.
    pub start_ns: u64,
    /// When it was over.
    pub end_ns: u64,
    /// How much of it was taken.
    pub taken_ns: u64,
}

/// After an interruption a queue is fuller, and a tester catches up by one part in fifteen: it lasts
/// this many times as long …
const SETTLING: u64 = 15;
/// … and at least and at most so long, in nanoseconds.
const SETTLING_NS: (u64, u64) = (2_000_000, 100_000_000);
/// The share by which the frames of a bin may differ from what the load asks for.
const IRREGULAR: f64 = 0.02;
/// Frames by which they may differ however few they are.
const ROUNDING: f64 = 2.0;
/// The least share of the bins that must be left to tell anything.
const ENOUGH: f64 = 0.2;

/// The end of a trial, as a share of it.
const LATE: f64 = 0.25;

/// What became of the frames of a constant load of `pps` that left while nothing was interrupted and
/// the tester kept to its schedule. `None` where that is too little to tell anything.
pub(crate) fn undisturbed(
    timeline: &Timeline,
    pps: f64,
    interruptions: &[Interruption],
) -> Option<Undisturbed> {
    let (clean, _) = clean_bins(timeline, pps, interruptions)?;
    Some(sum(clean.into_iter().map(|(_, bin)| bin)))
}

/// The same of a trial, and what became of those that left in its last quarter.
pub(crate) fn undisturbed_trial(
    timeline: &Timeline,
    pps: f64,
    interruptions: &[Interruption],
) -> Option<Undisturbed> {
    let (clean, bins) = clean_bins(timeline, pps, interruptions)?;
    let end = bins.end - ((bins.len() as f64 * LATE) as usize);
    let late = sum(clean.iter().filter(|(at, _)| *at >= end).map(|(_, bin)| *bin));
    let all = sum(clean.iter().map(|(_, bin)| *bin));
    Some(Undisturbed { late_offered: late.offered, late_forwarded: late.forwarded, ..all })
}

/// The frames of `bins` together.
fn sum<'a>(bins: impl Iterator<Item = &'a Bin>) -> Undisturbed {
    bins.fold(Undisturbed::default(), |sum, bin| Undisturbed {
        offered: sum.offered + bin.offered,
        forwarded: sum.forwarded + bin.forwarded,
        ..sum
    })
}

/// Bins with their places in the timeline.
type PlacedBins<'a> = Vec<(usize, &'a Bin)>;

/// The bins in which nothing was interrupted, with their places, and where the load lasted.
fn clean_bins<'a>(
    timeline: &'a Timeline,
    pps: f64,
    interruptions: &[Interruption],
) -> Option<(PlacedBins<'a>, Range<usize>)> {
    let first = timeline.bins.iter().position(|bin| bin.offered > 0)?;
    let last = timeline.bins.iter().rposition(|bin| bin.offered > 0)?;
    let mut clean = vec![true; timeline.bins.len()];
    let settling = SETTLING_NS.0 / timeline.bin_ns.max(1) + 1;
    let mut leave_out = |from: u64, to: u64| {
        let range = from as usize..(to.saturating_add(1) as usize).min(timeline.bins.len());
        clean.get_mut(range).into_iter().flatten().for_each(|clean| *clean = false);
    };
    let bin_at = |ns: u64| ns.saturating_sub(timeline.start_ns) / timeline.bin_ns.max(1);
    for interruption in interruptions {
        let after = (interruption.taken_ns.saturating_mul(SETTLING)).clamp(SETTLING_NS.0, SETTLING_NS.1);
        let end = interruption.end_ns.saturating_add(after);
        // One that was over before may still be felt.
        if end >= timeline.start_ns {
            leave_out(bin_at(interruption.start_ns).saturating_sub(1), bin_at(end));
        }
    }
    let nominal = pps * timeline.bin_ns as f64 / 1e9;
    let is_irregular = |bin: &Bin| (bin.offered as f64 - nominal).abs() > (nominal * IRREGULAR).max(ROUNDING);
    for (at, _) in timeline.bins.iter().enumerate().filter(|(_, bin)| is_irregular(bin)) {
        // The first bin begins in the middle; that disturbs nothing.
        leave_out(at as u64, at as u64 + if at == first { 0 } else { settling });
    }
    let regular: Vec<_> = timeline.bins.iter().enumerate().filter(|(at, _)| clean[*at]).collect();
    let any = regular.iter().any(|(_, bin)| bin.offered > 0);
    let bins = first..last + 1;
    (any && regular.len() as f64 >= bins.len() as f64 * ENOUGH).then_some((regular, bins))
}

/// The share of the time `within` that interruptions took, 0 to 1. All on the clock of [`Timeline`].
pub(crate) fn interrupted_share(within: Range<u64>, interruptions: &[Interruption]) -> f64 {
    let mut parts: Vec<Range<u64>> = interruptions
        .iter()
        .map(|it| it.start_ns.max(within.start)..it.end_ns.min(within.end))
        .filter(|part| !part.is_empty())
        .collect();
    parts.sort_by_key(|part| part.start);
    let (taken, _) = parts.into_iter().fold((0, within.start), |(taken, until), part| {
        let new = part.end.saturating_sub(part.start.max(until));
        (taken + new, until.max(part.end))
    });
    taken as f64 / (within.end.saturating_sub(within.start)).max(1) as f64
}

/// Of `lost` frames, those that were lost in what is left out; `None` where that is not known.
pub(crate) fn left_out(lost: u64, undisturbed: Option<Undisturbed>) -> Option<u64> {
    let Undisturbed { offered, forwarded, .. } = undisturbed?;
    Some(lost.saturating_sub(offered.saturating_sub(forwarded)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A thousand frames a millisecond, of which `lost` says what is lost in each.
    fn timeline(lost: impl Fn(usize) -> u64) -> Timeline {
        let bin = |at| Bin { offered: 1000, forwarded: 1000 - lost(at) };
        let mut bins: Vec<Bin> = (0..500).map(bin).collect();
        // As it is: the load begins and ends in the middle of a bin.
        (bins[0], bins[499]) = (Bin { offered: 300, forwarded: 300 }, Bin { offered: 600, forwarded: 600 });
        Timeline { start_ns: 7_000 * MS, bin_ns: MS, bins }
    }

    fn interruption(at_ms: u64, us: u64) -> Interruption {
        let start_ns = (7_000 + at_ms) * MS + 500_000;
        Interruption { start_ns, end_ns: start_ns + us * 1000, taken_ns: us * 1000 }
    }

    fn loss(undisturbed: Option<Undisturbed>) -> Option<u64> {
        undisturbed.map(|sum| sum.offered - sum.forwarded)
    }

    #[test]
    fn what_is_lost_in_an_interruption_is_not_the_device_s() {
        let lossy = timeline(|at| if (100..103).contains(&at) { 700 } else { 0 });
        assert_eq!(loss(undisturbed(&lossy, 1e6, &[])), Some(2100));
        let sum = undisturbed(&lossy, 1e6, &[interruption(99, 2_000)]);
        // 98 to 131, 30 ms of settling with them, and the two at the ends.
        assert_eq!(sum, Some(Undisturbed { offered: 464_000, forwarded: 464_000, ..Undisturbed::default() }));
        assert_eq!(loss(undisturbed(&lossy, 1e6, &[interruption(300, 2_000)])), Some(2100));
        assert_eq!(loss(undisturbed(&lossy, 1e6, &[interruption(103, 50)])), Some(1400), "not before it");
    }

    #[test]
    fn an_interruption_that_was_over_before_is_still_felt() {
        let lossy = timeline(|at| if (1..4).contains(&at) { 700 } else { 0 });
        let before = |us: u64| Interruption {
            start_ns: (7_000 * MS) - 3 * MS,
            end_ns: 7_000 * MS - MS,
            taken_ns: us * 1000,
        };
        assert_eq!(loss(undisturbed(&lossy, 1e6, &[before(2_000)])), Some(0));
        let long_ago = Interruption { start_ns: 6_000 * MS, end_ns: 6_002 * MS, taken_ns: 2 * MS };
        assert_eq!(loss(undisturbed(&lossy, 1e6, &[long_ago])), Some(2100));
    }

    #[test]
    fn interruptions_that_overlap_count_once_and_only_within_the_time() {
        let interruption = |start_ns, end_ns| Interruption { start_ns, end_ns, taken_ns: end_ns - start_ns };
        let some =
            [interruption(150, 160), interruption(50, 120), interruption(155, 170), interruption(190, 900)];
        assert_eq!(interrupted_share(100..200, &some), 0.5);
        assert_eq!(interrupted_share(100..200, &[interruption(0, 100), interruption(200, 300)]), 0.0);
        assert_eq!(interrupted_share(100..200, &[interruption(0, 300), interruption(150, 160)]), 1.0);
        assert_eq!(interrupted_share(100..100, &some), 0.0);
    }

    #[test]
    fn what_the_device_loses_all_the_time_stays() {
        let overloaded = timeline(|_| 10);
        let sum = undisturbed(&overloaded, 1e6, &[interruption(50, 500), interruption(200, 3_000)]).unwrap();
        assert!((sum.loss_ratio() - 0.01_f64).abs() < 1e-9);
    }

    #[test]
    fn a_tester_off_its_schedule_proves_nothing_for_a_moment() {
        let mut bursty = timeline(|at| if at == 250 { 60 } else { 0 });
        bursty.bins[250].offered = 1060;
        assert_eq!(loss(undisturbed(&bursty, 1e6, &[])), Some(0));
        bursty.bins[250].offered = 1010;
        assert_eq!(loss(undisturbed(&bursty, 1e6, &[])), Some(70));
    }

    #[test]
    fn a_loss_that_passed_is_told_from_one_that_lasts() {
        let late =
            |timeline: &Timeline| undisturbed_trial(timeline, 1e6, &[]).unwrap().late_loss_ratio().unwrap();
        let passing = timeline(|at| if (100..103).contains(&at) { 700 } else { 0 });
        assert_eq!(late(&passing), 0.0);
        let lasting = timeline(|at| if at < 300 { 0 } else { 10 });
        assert!((late(&lasting) - 0.01).abs() < 1e-9);
        let at_the_end = [interruption(375, 50_000), interruption(430, 50_000)];
        let unknown = undisturbed_trial(&lasting, 1e6, &at_the_end).unwrap();
        assert_eq!(unknown.late_loss_ratio(), None, "{unknown:?}");
    }

    #[test]
    fn too_little_is_nothing() {
        let often: Vec<_> = (0..10).map(|at| interruption(at * 50, 3_200)).collect();
        assert_eq!(undisturbed(&timeline(|_| 0), 1e6, &often), None);
        assert_eq!(undisturbed(&timeline(|_| 0), 2e6, &[]), None, "never on its schedule");
        assert_eq!(undisturbed(&Timeline::default(), 1e6, &[]), None);
        let far = Interruption { start_ns: 0, end_ns: u64::MAX, taken_ns: u64::MAX };
        assert_eq!(undisturbed(&timeline(|_| 0), 1e6, &[far]), None);
    }
}
