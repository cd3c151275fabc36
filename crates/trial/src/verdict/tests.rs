//! The verdict on samples made by hand.

use proptest::prelude::*;

use super::*;

const JUDGE: Judge =
    Judge { loss_threshold: 0.001, line_rate_bps: 1e9, target_pps: Some(100_000.0), complete: true };

/// One direction of 64-byte frames: per sample of 100 ms (phase, intended rate, offered and
/// forwarded frames).
fn samples(points: &[(Phase, f64, u64, u64)]) -> Vec<Sample> {
    let sample = |(index, (phase, intended_pps, offered, forwarded)): (usize, &(Phase, f64, u64, u64))| {
        let forwarded_pps = *forwarded as f64 * 10.0;
        let direction = DirectionSample {
            intended_pps: *intended_pps,
            offered_pps: *offered as f64 * 10.0,
            forwarded_pps,
            offered: *offered,
            forwarded: *forwarded,
            loss_ratio: offered.saturating_sub(*forwarded) as f64 / (*offered).max(1) as f64,
            l1_bps: forwarded_pps * 84.0 * 8.0,
            l2_bps: forwarded_pps * 64.0 * 8.0,
            ..DirectionSample::default()
        };
        Sample {
            at_s: index as f64 / 10.0,
            duration_s: 0.1,
            phase: *phase,
            dut_core_busy: None,
            disturbed: None,
            noise: None,
            directions: vec![direction],
        }
    };
    points.iter().enumerate().map(sample).collect()
}

/// A ramp of 100 steps to 100 kpps and a hold of 20, through a device that forwards as
/// `forward` says of (sample, offered).
fn ramp(forward: impl Fn(u64, u64) -> u64) -> Vec<(Phase, f64, u64, u64)> {
    let step = |index: u64| {
        let phase = if index < 100 { Phase::Ramp } else { Phase::Hold };
        let offered = (index + 1).min(100) * 100;
        (phase, offered as f64 * 10.0, offered, forward(index, offered))
    };
    (0..120).map(step).collect()
}

fn verdict_by(judge: Judge, points: &[(Phase, f64, u64, u64)]) -> Direction {
    judge.directions(&samples(points), &[Totals::default()]).remove(0)
}

fn verdict(points: &[(Phase, f64, u64, u64)]) -> Direction {
    verdict_by(JUDGE, points)
}

#[test]
fn a_capacity_is_found_to_one_stair_and_the_device_is_named() {
    let found = verdict(&ramp(|_, offered| offered.min(4_250)));
    assert_eq!((found.max_rate_pps, found.max_forwarded_pps), (42_000.0, 42_500.0));
    assert_eq!((found.limited_by, found.lossy_samples_below), (LimitedBy::Dut, 0));
    assert_eq!(found.l2_bps, 42_500.0 * 64.0 * 8.0);
    assert!((found.line_rate_percent - 42_500.0 * 84.0 * 8.0 / 1e7).abs() < 1e-9);
    assert_eq!((found.name.as_str(), found.stalled), ("0->1", None));
}

#[test]
fn a_device_that_collapses_under_overload_keeps_its_peak() {
    let found = verdict(&ramp(|_, offered| if offered <= 4_000 { offered } else { 500 }));
    assert_eq!((found.max_rate_pps, found.limited_by), (40_000.0, LimitedBy::Dut));
    assert_eq!(found.max_forwarded_pps, 40_000.0);
}

#[test]
fn without_loss_the_line_is_the_limit() {
    let found = verdict(&ramp(|_, offered| offered));
    assert_eq!((found.max_rate_pps, found.limited_by), (100_000.0, LimitedBy::LineRate));
    assert_eq!(found.max_forwarded_pps, 100_000.0);
}

#[test]
fn a_disturbance_below_is_counted_and_does_not_set_the_limit() {
    let found =
        verdict(&ramp(|index, offered| if (30..35).contains(&index) { offered / 2 } else { offered }));
    assert_eq!((found.max_rate_pps, found.limited_by), (100_000.0, LimitedBy::LineRate));
    assert_eq!(found.lossy_samples_below, 5);
}

#[test]
fn a_disturbance_in_the_last_tenth_of_the_hold_is_passing_and_a_longer_one_is_not() {
    let found = verdict(&ramp(|index, offered| if index >= 118 { offered / 2 } else { offered }));
    assert_eq!((found.limited_by, found.lossy_samples_below), (LimitedBy::LineRate, 2));
    let found = verdict(&ramp(|index, offered| if index >= 117 { offered / 2 } else { offered }));
    assert_eq!((found.limited_by, found.lossy_samples_below), (LimitedBy::Dut, 0));
    assert_eq!(found.max_rate_pps, 100_000.0);
}

#[test]
fn losing_exactly_the_threshold_is_not_lossy_wherever_windows_begin() {
    // Every 1000th frame is lost; samples begin anywhere between two losses.
    for shift in [0, 1, 500, 999] {
        let mut sent = shift;
        let mut points = ramp(|_, offered| offered);
        for (_, _, offered, forwarded) in &mut points {
            let before = sent / 1000;
            sent += *offered;
            *forwarded = *offered - (sent / 1000 - before);
        }
        let found = verdict(&points);
        assert_eq!((found.limited_by, found.lossy_samples_below), (LimitedBy::LineRate, 0), "{shift}");
        let strict = verdict_by(Judge { loss_threshold: 0.0005, ..JUDGE }, &points);
        assert_eq!(strict.limited_by, LimitedBy::Dut, "{shift}");
        assert!(strict.max_rate_pps < 50_000.0, "{shift}: {}", strict.max_rate_pps);
    }
}

#[test]
fn small_counts_are_pooled_until_they_tell() {
    // Samples of 100 frames. One lost frame in ten samples is within the threshold…
    let hold = |lost: &dyn Fn(usize) -> u64| -> Vec<_> {
        (0..100).map(|index| (Phase::Hold, 1_000.0, 100, 100 - lost(index))).collect()
    };
    let judge = Judge { target_pps: Some(1_000.0), ..JUDGE };
    let one = verdict_by(judge, &hold(&|index| u64::from(index % 10 == 3)));
    assert_eq!((one.limited_by, one.max_rate_pps), (LimitedBy::LineRate, 1_000.0));
    // … and one in every third is not, though no sample alone loses more than one frame.
    let many = verdict_by(judge, &hold(&|index| u64::from(index % 3 == 0)));
    assert_eq!((many.limited_by, many.max_rate_pps), (LimitedBy::Dut, 0.0));
    // With a threshold of zero, one frame is loss, and in one sample only.
    let zero = verdict_by(Judge { loss_threshold: 0.0, ..judge }, &hold(&|index| u64::from(index == 50)));
    assert_eq!((zero.limited_by, zero.lossy_samples_below), (LimitedBy::LineRate, 1));
}

/// The ramp of [`ramp`], offered by a tester that cannot send more than `most` frames a sample.
fn limited(most: u64, forward: impl Fn(u64) -> u64) -> Vec<(Phase, f64, u64, u64)> {
    let mut points = ramp(|_, offered| offered);
    for (_, _, offered, forwarded) in &mut points {
        *offered = (*offered).min(most);
        *forwarded = forward(*offered);
    }
    points
}

#[test]
fn a_tester_that_falls_short_is_named() {
    let found = verdict(&limited(6_000, |offered| offered));
    assert_eq!((found.limited_by, found.max_rate_pps), (LimitedBy::Tester, 60_000.0));
    // Losses that begin while it falls short are its own as well.
    let mut points = limited(6_000, |offered| offered);
    points.iter_mut().skip(80).for_each(|(_, _, _, forwarded)| *forwarded -= 200);
    assert_eq!(verdict(&points).limited_by, LimitedBy::Tester);
    // But not if most is lost: then what it did offer was too much for the device.
    points.iter_mut().skip(80).for_each(|(_, _, _, forwarded)| *forwarded = 2_000);
    assert_eq!(verdict(&points).limited_by, LimitedBy::Dut);
    // Losses that begin before are the device's, as near to each other as they may be.
    for capacity in [3_000, 5_900] {
        let found = verdict(&limited(6_000, |offered| offered.min(capacity)));
        assert_eq!((found.limited_by, found.max_rate_pps), (LimitedBy::Dut, capacity as f64 * 10.0));
    }
}

#[test]
fn a_tester_whose_queue_fills_up_at_the_target_is_named() {
    // 99 is the first sample at the target.
    let weak = |from: usize| {
        let mut points = ramp(|_, offered| offered);
        points
            .iter_mut()
            .skip(from)
            .for_each(|(_, _, offered, forwarded)| (*offered, *forwarded) = (6_000, 6_000));
        verdict(&points)
    };
    assert_eq!((weak(101).limited_by, weak(101).max_rate_pps), (LimitedBy::Tester, 100_000.0));
    assert_eq!(weak(112).limited_by, LimitedBy::LineRate);
}

#[test]
fn a_passing_weakness_of_the_tester_changes_nothing() {
    let mut points = ramp(|_, offered| offered.min(4_250));
    for (_, _, offered, forwarded) in points.iter_mut().skip(42).take(1) {
        (*offered, *forwarded) = (3_000, 2_000);
    }
    assert_eq!(verdict(&points).limited_by, LimitedBy::Dut);
}

#[test]
fn without_a_target_the_line_rate_decides() {
    let judge = Judge { target_pps: None, ..JUDGE };
    let hold = |offered: u64, forwarded| vec![(Phase::Hold, offered as f64 * 10.0, offered, forwarded); 20];
    // 1 Gb/s carries 1.488 Mpps of 64 bytes.
    assert_eq!(verdict_by(judge, &hold(148_800, 148_800)).limited_by, LimitedBy::LineRate);
    assert_eq!(verdict_by(judge, &hold(140_000, 140_000)).limited_by, LimitedBy::Tester);
    let lossy = verdict_by(judge, &hold(140_000, 90_000));
    assert_eq!((lossy.limited_by, lossy.max_rate_pps), (LimitedBy::Dut, 0.0));
    assert!((lossy.max_forwarded_pps - 900_000.0).abs() < 1e-6);
}

#[test]
fn a_stall_is_placed_within_its_sample() {
    let mut points = ramp(|index, offered| if index < 50 { offered } else { 0 });
    points[50].3 = points[50].2 / 4;
    let found = verdict(&points);
    let stall = found.stalled.unwrap();
    assert!((stall.at_s - 5.025).abs() < 0.001, "{stall:?}");
    assert_eq!(stall.after_frames, points.iter().map(|point| point.3).sum::<u64>());
    assert_eq!((found.limited_by, found.max_rate_pps), (LimitedBy::Dut, 50_000.0));
}

#[test]
fn an_outage_that_passes_or_that_began_before_all_else_is_no_stall() {
    assert_eq!(verdict(&ramp(|index, offered| if index < 110 { 0 } else { offered })).stalled, None);
    assert_eq!(verdict(&ramp(|_, _| 0)).stalled, None);
    assert_eq!(verdict(&ramp(|index, offered| if index < 118 { offered } else { 0 })).stalled, None);
    let idle_at_end = ramp(|index, offered| if index < 110 { offered } else { 0 });
    let idle_at_end: Vec<_> = idle_at_end
        .into_iter()
        .map(|point| if point.3 == 0 { (point.0, 0.0, 0, 0) } else { point })
        .collect();
    assert_eq!(verdict(&idle_at_end).stalled, None);
}

#[test]
fn the_warm_up_counts_for_a_stall_and_for_nothing_else() {
    let warm_up = (Phase::WarmUp, 90_000.0, 9_000, 9_000);
    let silent = (Phase::Ramp, 1_000.0, 100, 0);
    let found = verdict(&[warm_up, silent, silent, silent]);
    assert_eq!(found.stalled.unwrap().after_frames, 9_000);
    assert_eq!((found.max_rate_pps, found.max_forwarded_pps), (0.0, 0.0));
}

#[test]
fn one_burst_is_no_peak() {
    let found = verdict(&ramp(|index, offered| if index == 80 { offered } else { offered.min(4_000) }));
    // The burst sets the lossless rate only if it held without loss, as here, and then the peak.
    assert_eq!((found.max_rate_pps, found.max_forwarded_pps), (81_000.0, 81_000.0));
    let found = verdict(&ramp(|index, offered| if index == 80 { offered / 2 } else { offered.min(4_000) }));
    assert!((found.max_forwarded_pps - (4.0 * 40_000.0 + 40_500.0) / 5.0).abs() < 1e-6);
}

#[test]
fn jitter_of_the_clock_raises_no_rate() {
    let mut points = ramp(|_, offered| offered);
    points[110].2 += 500;
    points[110].3 += 500;
    let found = verdict(&points);
    assert_eq!((found.max_rate_pps, found.max_forwarded_pps), (100_000.0, 100_000.0));
}

#[test]
fn a_run_cut_short_knows_what_it_saw() {
    let judge = Judge { complete: false, ..JUDGE };
    let unfinished = ramp(|_, offered| offered.min(4_250));
    assert_eq!(verdict_by(judge, &unfinished[..40]).limited_by, LimitedBy::Unknown);
    assert_eq!(verdict_by(judge, &unfinished[..40]).max_rate_pps, 40_000.0);
    assert_eq!(verdict_by(judge, &unfinished[..44]).limited_by, LimitedBy::Unknown);
    assert_eq!(verdict_by(judge, &unfinished[..45]).limited_by, LimitedBy::Dut);
    assert_eq!(verdict_by(judge, &[]).limited_by, LimitedBy::Unknown);
    assert_eq!(verdict_by(JUDGE, &[]).limited_by, LimitedBy::Unknown);
}

fn any_points() -> impl Strategy<Value = Vec<(Phase, f64, u64, u64)>> {
    let phase = prop_oneof![Just(Phase::WarmUp), Just(Phase::Ramp), Just(Phase::Hold)];
    let frames = prop_oneof![0..5u64, 0..2_000u64, 0..1_000_000u64];
    let point = (phase, 0.0..1e7f64, frames, prop_oneof![Just(1.0), Just(0.0), 0.99..=1.0, 0.0..1.2f64]);
    let count = |(phase, intended, offered, share): (Phase, f64, u64, f64)| {
        (phase, intended, offered, (offered as f64 * share) as u64)
    };
    proptest::collection::vec(point.prop_map(count), 0..60)
}

proptest! {
    #[test]
    fn any_samples_give_a_sane_verdict(points in any_points(), threshold in 0.0..0.9f64, complete: bool) {
        let judge = Judge { loss_threshold: threshold, complete, ..JUDGE };
        let found = verdict_by(judge, &points);
        let highest = points.iter().map(|point| point.1).fold(0.0, f64::max);
        prop_assert!((0.0..=highest).contains(&found.max_rate_pps));
        prop_assert!(found.max_forwarded_pps.is_finite() && found.line_rate_percent.is_finite());
        prop_assert!(found.lossy_samples_below <= points.len());
        if let Some(stall) = found.stalled {
            let forwarded: u64 = points.iter().map(|point| point.3).sum();
            prop_assert_eq!((stall.after_frames, found.limited_by), (forwarded, LimitedBy::Dut));
        }
    }

    #[test]
    fn windows_partition_the_samples_and_hold_enough(points in any_points(), enough in 0.0..1e5f64) {
        let samples = samples(&points);
        let points = Point::measured(&samples, 0);
        let windows = windows(&points, enough);
        let mut next = 0;
        for window in &windows {
            prop_assert_eq!(window.start, next);
            prop_assert!(window.end > window.start);
            next = window.end;
            let frames: u64 = points[window.clone()].iter().map(|point| point.sample.offered).sum();
            prop_assert!(frames as f64 >= enough || windows.len() == 1);
        }
        prop_assert_eq!(next, points.len());
    }

    /// Dropping every Nth frame is at most the threshold of 1/N, whatever the samples are.
    #[test]
    fn a_share_at_the_threshold_is_never_lossy(
        every in 2..5_000u64,
        phase in 0..5_000u64,
        offered in proptest::collection::vec(0..20_000u64, 1..50),
    ) {
        let mut sent = phase;
        let points: Vec<_> = offered.iter().map(|offered| {
            let before = sent / every;
            sent += offered;
            (Phase::Hold, *offered as f64 * 10.0, *offered, offered - (sent / every - before))
        }).collect();
        let judge = Judge { loss_threshold: 1.0 / every as f64, ..JUDGE };
        let samples = samples(&points);
        prop_assert!(judge.lossy(&Point::measured(&samples, 0)).iter().all(|lossy| !lossy));
    }

    /// Losing twice the threshold and a few frames is seen, however small the samples are.
    #[test]
    fn a_share_well_above_the_threshold_is_always_lossy(
        frames in 1..5_000u64,
        count in 1..100usize,
        lost_percent in 1..100u64,
    ) {
        let mut owed = 0;
        let points: Vec<_> = (0..count).map(|_| {
            owed += frames * lost_percent;
            let lost = owed / 100;
            owed %= 100;
            (Phase::Hold, frames as f64 * 10.0, frames, frames - lost)
        }).collect();
        let samples = samples(&points);
        let lossy = JUDGE.lossy(&Point::measured(&samples, 0));
        if frames * count as u64 >= 1_000 {
            prop_assert!(lossy.iter().all(|lossy| *lossy));
        }
    }
}
