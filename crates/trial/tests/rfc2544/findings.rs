//! What each test finds.

use std::time::Duration;

use engine::simulated::{Device, Disturbance, Tester};
use results::record::{self, LimitedBy, Sample};
use trial::rfc2544::{Rfc2544, Test, Timing};
use trial::{Observer, Outcome, Silent};

use super::{LINE_PPS, Noisy, Resets, all, found, run, run_with, tests};
use crate::common::{SECOND, device};

#[test]
fn throughput_is_found_to_its_width() {
    for capacity in [30_000.0, 123_456.0, 700_000.0, 1_400_000.0] {
        let outcome = run(&tests(&[Test::Throughput]), device(capacity));
        let throughput = found(&outcome).throughput.unwrap();
        // The queue of 64 frames hides as many in a trial of 1 s.
        let upper = throughput.upper_pps.unwrap();
        assert!(throughput.pps <= capacity + 66.0 && capacity <= upper + 1.0, "{throughput:?}");
        assert!(throughput.pps / upper >= 0.995 - 1e-6, "{throughput:?}");
        assert_eq!((throughput.limited_by, throughput.irregular), (LimitedBy::Dut, None));
        assert_eq!(outcome.directions[0].max_rate_pps, throughput.pps);
        assert!(outcome.finding.search().is_some(), "the trials of the search are kept");
    }
}

#[test]
fn rates_are_those_of_each_direction() {
    let tester = Tester { directions: 2, ..Tester::default() };
    let outcome = run_with(&all(), device(400_000.0), tester, &mut Silent);
    let found = found(&outcome);
    assert!((found.throughput.unwrap().pps / 400_000.0 - 1.0).abs() < 0.006);
    assert!((found.theoretical_pps / LINE_PPS - 1.0).abs() < 1e-6);
    let latency = found.latency.as_ref().unwrap();
    assert_eq!((latency.mean_ns.len(), latency.streams[0].directions.len()), (2, 2));
}

#[test]
fn latency_is_the_mean_of_streams_at_the_throughput() {
    let slow = Device { base_latency: Duration::from_micros(300), ..device(500_000.0) };
    let outcome = run(&tests(&[Test::Latency]), slow);
    let latency = found(&outcome).latency.as_ref().unwrap();
    assert_eq!((latency.streams.len(), latency.stream_s), (2, 0.5));
    assert_eq!(latency.load_pps, found(&outcome).throughput.unwrap().pps);
    let means: Vec<f64> =
        latency.streams.iter().map(|stream| stream.directions[0].unwrap().mean_ns).collect();
    assert!((latency.mean_ns[0] - (means[0] + means[1]) / 2.0).abs() < 1e-6);
    assert!((300e3..600e3).contains(&latency.mean_ns[0]), "{:?}", latency.mean_ns);
}

#[test]
fn the_loss_curve_is_that_of_the_device_and_ends_after_two_trials_without_loss() {
    let outcome = run(&tests(&[Test::Loss]), device(700_000.0));
    let points = &found(&outcome).loss;
    let loads: Vec<f64> = points.iter().map(|point| point.load_percent).collect();
    assert_eq!(loads, [100.0, 90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0]);
    for point in points {
        let truth = (1.0 - 700_000.0 / point.intended_pps).max(0.0);
        assert!((point.loss_ratio - truth).abs() < 1e-3, "{point:?}, not {truth}");
        assert!(!point.tester_limited && point.disturbed.is_none());
    }
    assert_eq!(found(&outcome).throughput, None, "the loss rate needs no throughput");

    // Below 10 % the steps are halves.
    let outcome = run(&tests(&[Test::Loss]), device(60_000.0));
    let loads: Vec<f64> = found(&outcome).loss.iter().map(|point| point.load_percent).collect();
    assert_eq!(loads[9..], [10.0, 5.0, 2.5, 1.25]);
}

#[test]
fn back_to_back_finds_the_queue() {
    for (capacity, queue) in [(700_000.0, 10_000_u64), (1_000_000.0, 5_000), (300_000.0, 40_000)] {
        let outcome = run(&tests(&[Test::BackToBack]), Device { queue, ..device(capacity) });
        let bursts = found(&outcome).back_to_back.as_ref().unwrap();
        // While a burst arrives, the device forwards: queue × line / (line − capacity).
        let truth = queue as f64 * LINE_PPS / (LINE_PPS - capacity);
        assert!((bursts.average / truth - 1.0).abs() < 0.12, "{bursts:?}, not {truth}");
        assert_eq!((bursts.bursts.len(), bursts.tester_limited, bursts.longest_passed), (3, false, false));
        let buffer = queue as f64 / LINE_PPS;
        assert!((bursts.corrected_buffer_s / buffer - 1.0).abs() < 0.12, "{bursts:?}, not {buffer}");
        assert!(bursts.min <= bursts.max && bursts.implied_buffer_s > bursts.corrected_buffer_s);
    }
}

/// When the overload ended, since the run began.
fn end_of_overload(outcome: &Outcome) -> Duration {
    let recovery = found(outcome).recovery.as_ref().unwrap();
    let reduced = |sample: &&Sample| {
        sample.directions[0].intended_pps == recovery.reduced_pps && sample.duration_s < 0.02
    };
    Duration::from_secs_f64(outcome.samples.iter().find(reduced).unwrap().at_s)
}

#[test]
fn recovery_lasts_until_the_last_frame_is_lost() {
    let asked = tests(&[Test::Recovery]);
    let at_once = run(&asked, device(400_000.0));
    let recovery = found(&at_once).recovery.as_ref().unwrap();
    assert_eq!(recovery.average_s, Some(0.0), "{recovery:?}");
    assert!((recovery.overload_pps / 440_000.0 - 1.0).abs() < 0.01, "{recovery:?}");
    assert!((recovery.repeats[0].overload_loss_ratio - 0.087).abs() < 0.01, "{recovery:?}");

    // The same run, but the device is slow until 345 ms after the overload.
    let end = end_of_overload(&at_once);
    let (from, length) = (end.checked_sub(SECOND).unwrap(), Duration::from_millis(1345));
    let slow = Disturbance { from, length, factor: 0.1 };
    let later = run(&asked, Device { disturbances: vec![slow], ..device(400_000.0) });
    let repeat = &found(&later).recovery.as_ref().unwrap().repeats[0];
    assert!((repeat.recovery_s.unwrap() - 0.345).abs() <= repeat.resolution_s, "{repeat:?}");
    assert!((repeat.resolution_s - 0.01).abs() < 1e-9 && repeat.lost_after > 0, "{repeat:?}");

    // It never recovers.
    let slow = Disturbance { from, length: 1000 * SECOND, factor: 0.1 };
    let never = run(&asked, Device { disturbances: vec![slow], ..device(400_000.0) });
    let recovery = found(&never).recovery.as_ref().unwrap();
    assert_eq!((recovery.average_s, recovery.repeats[0].recovery_s), (None, None));
}

/// Runs the reset test on a device of 400 kpps that is slower by `factor` for so long from the
/// reset on.
fn reset_of(timing: Timing, factor: f64, length: Duration, observer: &mut dyn Observer) -> record::Reset {
    let asked = Rfc2544 { timing, ..tests(&[Test::Reset]) };
    let quiet = run_with(&asked, device(400_000.0), Tester::default(), &mut Resets(false));
    // All before the reset is always the same, so it comes at the same time.
    let after = quiet.samples.iter().rposition(|sample| sample.duration_s > 0.3).unwrap() + 1;
    let from = Duration::from_secs_f64(quiet.samples[after].at_s);
    let slower = Disturbance { from, length, factor };
    let device = Device { disturbances: vec![slower], queue: 2, ..device(400_000.0) };
    let outcome = run_with(&asked, device, Tester::default(), observer);
    found(&outcome).reset.clone().unwrap()
}

#[test]
fn a_reset_lasts_as_long_as_frames_are_lost() {
    let mut resets = Resets(false);
    let outcome = run_with(&tests(&[Test::Reset]), device(400_000.0), Tester::default(), &mut resets);
    let reset = found(&outcome).reset.as_ref().unwrap();
    assert!(resets.0 && reset.came_back && reset.lost == 0 && reset.outage_s == 0.0, "{reset:?}");
    assert_eq!(reset.back_s, Some(0.0));

    let reset = reset_of(Timing::quick(), 0.0, Duration::from_millis(450), &mut Resets(false));
    assert!((reset.outage_s - 0.45).abs() < 0.01 && reset.came_back, "{reset:?}");
    // It was back in the fifth interval of a tenth of a second.
    assert!((reset.back_s.unwrap() - 0.5).abs() < 0.01, "{reset:?}");
    assert!((reset.load_pps / 400_000.0 - 1.0).abs() < 0.01);

    let reset = reset_of(Timing::quick(), 0.0, 1000 * SECOND, &mut Resets(false));
    assert_eq!((reset.came_back, reset.back_s), (false, None));

    let outcome = run(&tests(&[Test::Reset]), device(400_000.0));
    assert!(found(&outcome).not_run["reset"].contains("does not know how to reset"));
}

#[test]
fn a_device_that_still_loses_frames_is_not_back() {
    // It forwards nine frames in ten after the reset.
    let lame = |observer: &mut dyn Observer| reset_of(Timing::quick(), 0.9, 1000 * SECOND, observer);
    let reset = lame(&mut Resets(false));
    assert_eq!((reset.came_back, reset.back_s), (false, None), "{reset:?}");
    // Where the machine may have cost a fifth of the frames, nothing shows that it is not.
    let reset = lame(&mut Noisy::new(0.2, 0.0));
    assert!(reset.came_back && reset.lost > 0, "{reset:?}");
}

#[test]
fn a_long_reset_is_waited_for() {
    let timing = Timing { reset_watch: 20 * SECOND, ..Timing::quick() };
    let reset = reset_of(timing, 0.0, 12 * SECOND, &mut Resets(false));
    assert!((reset.outage_s - 12.0).abs() < 0.01 && reset.came_back, "{reset:?}");
}

#[test]
fn losses_that_the_machine_explains_do_not_prolong_recovery() {
    let asked = tests(&[Test::Recovery]);
    let end = end_of_overload(&run(&asked, device(400_000.0)));
    // It loses a few frames 300 ms after the overload, in one tenth of a second.
    let slow = Disturbance {
        from: end + Duration::from_millis(300),
        length: Duration::from_millis(20),
        factor: 0.4,
    };
    let device = Device { disturbances: vec![slow], ..device(400_000.0) };
    let recovered = |observer: &mut dyn Observer| {
        let outcome = run_with(&asked, device.clone(), Tester::default(), observer);
        found(&outcome).recovery.as_ref().unwrap().repeats[0].clone()
    };
    let repeat = recovered(&mut Silent);
    assert!((repeat.recovery_s.unwrap() - 0.32).abs() < 0.02, "{repeat:?}");
    let repeat = recovered(&mut Noisy::new(0.1, end.as_secs_f64() - 0.1));
    assert!(repeat.recovery_s == Some(0.0) && repeat.lost_after > 0, "{repeat:?}");
}
