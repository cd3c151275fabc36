//! The tests of RFC 2544 find what simulated devices truly do, and end in time whatever they do.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use std::collections::BTreeSet;
use std::time::Duration;

use common::{SECOND, any_device, any_tester, device, milliseconds};
use engine::Engine;
use engine::simulated::{Device, Disturbance, SimulatedEngine, Stall, Tester};
use proptest::prelude::*;
use results::record::{self, LimitedBy, Sample, Status};
use trial::rfc2544::{Rfc2544, Test, Timing};
use trial::{Failure, Observer, ObserverError, Outcome, Silent};

/// 1 Gb/s in frames of 64 bytes.
const LINE_PPS: f64 = 1_488_095.24;

fn tests(tests: &[Test]) -> Rfc2544 {
    Rfc2544 {
        tests: tests.iter().copied().collect(),
        timing: Timing::quick(),
        frame_size: 64.0,
        line_rate_bps: 1e9,
        min_pps: 1_000.0,
        deviations: Vec::new(),
    }
}

fn all() -> Rfc2544 {
    tests(&Test::ALL)
}

fn run_with(tests: &Rfc2544, device: Device, tester: Tester, observer: &mut dyn Observer) -> Outcome {
    let mut engine = SimulatedEngine::new(device, tester);
    let outcome = tests.run(&mut engine, observer);
    assert!(engine.now() <= tests.planned(), "{:?}, not {:?}", engine.now(), tests.planned());
    let found = outcome.rfc2544.as_ref().unwrap();
    for test in &tests.tests {
        let there = match test {
            Test::Throughput => found.throughput.is_some(),
            Test::Latency => found.latency.is_some(),
            Test::Loss => !found.loss.is_empty(),
            Test::BackToBack => found.back_to_back.is_some(),
            Test::Recovery => found.recovery.is_some(),
            Test::Reset => found.reset.is_some(),
        };
        assert!(there || found.not_run.contains_key(test.name()), "{test} left nothing");
    }
    outcome
}

fn run(tests: &Rfc2544, device: Device) -> Outcome {
    run_with(tests, device, Tester::default(), &mut Silent)
}

fn found(outcome: &Outcome) -> &record::Rfc2544 {
    outcome.rfc2544.as_ref().unwrap()
}

/// Resets the device by doing nothing: what happens is in the device's disturbances.
struct Resets(bool);

impl Observer for Resets {
    fn sample(&mut self, _sample: &Sample) -> Result<(), ObserverError> {
        Ok(())
    }

    fn reset(&mut self) -> Result<(), String> {
        self.0 = true;
        Ok(())
    }
}

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
        assert_eq!(outcome.directions[0].max_lossless_pps, throughput.pps);
        assert!(outcome.search.is_some(), "the trials of the search are kept");
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
    assert_eq!((latency.streams.len(), latency.stream_s), (2, 1.0));
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

#[test]
fn a_reset_lasts_as_long_as_frames_are_lost() {
    let asked = tests(&[Test::Reset]);
    let mut resets = Resets(false);
    let quiet = run_with(&asked, device(400_000.0), Tester::default(), &mut resets);
    let reset = found(&quiet).reset.as_ref().unwrap();
    assert!(resets.0 && reset.came_back && reset.lost == 0 && reset.outage_s == 0.0, "{reset:?}");

    // 400 ms of silence after the reset, which came a second after the load.
    let load_pps = reset.load_pps;
    let [before, after, end] = quiet.samples.last_chunk().unwrap();
    let seconds = [before, after, end].map(|sample| sample.duration_s.round());
    assert_eq!(seconds, [1.0, 2.0, 1.0]);
    let from = Duration::from_secs_f64(after.at_s);
    let silent = Disturbance { from, length: Duration::from_millis(400), factor: 0.0 };
    let outcome = run_with(
        &asked,
        Device { disturbances: vec![silent], queue: 2, ..device(400_000.0) },
        Tester::default(),
        &mut Resets(false),
    );
    let reset = found(&outcome).reset.as_ref().unwrap();
    assert!((reset.outage_s - 0.4).abs() < 0.01 && reset.came_back, "{reset:?}");
    assert!((reset.load_pps / load_pps - 1.0).abs() < 0.01);

    let silent = Disturbance { from, length: 1000 * SECOND, factor: 0.0 };
    let gone = Device { disturbances: vec![silent], ..device(400_000.0) };
    let outcome = run_with(&asked, gone, Tester::default(), &mut Resets(false));
    assert!(!found(&outcome).reset.as_ref().unwrap().came_back);

    let outcome = run(&asked, device(400_000.0));
    assert!(found(&outcome).not_run["reset"].contains("nothing is known that resets"));
}

#[test]
fn a_device_that_passes_everything_has_no_buffer_to_measure() {
    let outcome = run(&all(), Device::default());
    let found = found(&outcome);
    let throughput = found.throughput.unwrap();
    assert_eq!((throughput.limited_by, throughput.upper_pps), (LimitedBy::LineRate, None));
    assert!(found.not_run["back-to-back"].contains("the throughput is the line rate"));
    assert_eq!(found.loss.len(), 2, "two trials without loss are enough");
    assert_eq!(outcome.status, Status::Complete);
}

#[test]
fn a_device_that_always_loses_has_no_throughput() {
    let outcome = run(&all(), Device { random_loss: 0.05, ..Device::default() });
    let found = found(&outcome);
    assert_eq!(found.throughput.unwrap().pps, 0.0);
    for test in ["latency", "back-to-back", "recovery", "reset"] {
        assert!(found.not_run[test].contains("no load passed without loss"), "{:?}", found.not_run);
    }
    assert!(found.loss.len() > 10 && found.loss.iter().all(|point| point.loss_ratio > 0.01));
    assert_eq!(outcome.status, Status::Complete);
}

#[test]
fn a_dead_device_is_diagnosed() {
    let blocked = Device { blocked: [true, true], ..Device::default() };
    for asked in [all(), tests(&[Test::Loss])] {
        let outcome = run(&asked, blocked.clone());
        assert!(matches!(outcome.failure, Some(Failure::NothingPasses { .. })), "{outcome:?}");
        assert!(outcome.reason().unwrap().contains("check the link"));
        assert!(found(&outcome).not_run.values().all(|reason| reason == "the run ended before"));
    }
}

#[test]
fn a_device_that_dies_in_the_middle_leaves_what_was_found_before() {
    let stall = Some(Stall::AfterFrames(4_000_000));
    let outcome = run(&all(), Device { stall, ..device(400_000.0) });
    assert_eq!(outcome.status, Status::Complete);
    assert!(outcome.directions[0].stalled.is_some() || !outcome.notes.is_empty());
}

#[test]
fn what_the_tester_cannot_send_is_not_the_devices_loss() {
    let tester = Tester { max_pps: 0.85 * LINE_PPS, ..Tester::default() };
    let outcome = run_with(&all(), device(700_000.0), tester.clone(), &mut Silent);
    let found = found(&outcome);
    assert!((found.throughput.unwrap().pps / 700_000.0 - 1.0).abs() < 0.006);
    let limited: Vec<bool> = found.loss.iter().map(|point| point.tester_limited).collect();
    assert_eq!(limited[..4], [true, true, false, false]);
    assert!((found.loss[0].offered_pps / (0.85 * LINE_PPS) - 1.0).abs() < 0.01);
    let bursts = found.back_to_back.as_ref().unwrap();
    assert!(bursts.tester_limited && bursts.bursts.is_empty(), "{bursts:?}");

    // A load that was not sent has not been survived.
    let outcome = run_with(&tests(&[Test::Loss]), Device::default(), tester, &mut Silent);
    let points = &outcome.rfc2544.as_ref().unwrap().loss;
    assert_eq!(points.len(), 4, "100 and 90 % were not sent, 80 and 70 % passed");
}

#[test]
fn quick_tests_list_how_they_deviate_and_standard_ones_only_what_is_always_so() {
    let names = |tests: &Rfc2544| -> BTreeSet<String> {
        let outcome = run(tests, Device { blocked: [true; 2], ..Device::default() });
        found(&outcome).deviations.iter().map(|deviation| deviation.name.clone()).collect()
    };
    let quick = names(&all());
    let standard = names(&Rfc2544 { timing: Timing::standard(), ..all() });
    assert!(standard.is_subset(&quick) && standard.contains("latency-of-every-frame"), "{standard:?}");
    let only_quick: Vec<&str> = quick.difference(&standard).map(String::as_str).collect();
    let short = ["short-bursts", "short-overload", "short-streams", "short-trials", "short-waits"];
    assert_eq!(only_quick, [&["few-bursts", "few-streams"][..], &short].concat());
    assert!(!names(&tests(&[Test::Loss])).contains("latency-of-every-frame"));
}

#[test]
fn a_standard_run_takes_the_rfcs_time() {
    let standard = Rfc2544 { timing: Timing::standard(), ..all() };
    let hours = standard.planned().as_secs_f64() / 3600.0;
    assert!((2.0..5.0).contains(&hours), "{hours} h");
    assert!(all().planned() < 180 * SECOND, "{:?}", all().planned());
}

#[test]
fn senseless_parameters_are_refused_each_with_its_own_message() {
    let timing = |change: fn(&mut Timing)| {
        let mut timing = Timing::quick();
        change(&mut timing);
        Rfc2544 { timing, ..all() }
    };
    let cases = [
        (tests(&[]), "no test is asked for"),
        (Rfc2544 { frame_size: 0.0, ..all() }, "frame size"),
        (Rfc2544 { line_rate_bps: f64::NAN, ..all() }, "line rate"),
        (Rfc2544 { min_pps: 2e6, ..all() }, "raise the line rate"),
        (timing(|timing| timing.trial = Duration::ZERO), "a trial of 0ns is out of range"),
        (timing(|timing| timing.bursts = 0), "0 bursts are out of range"),
        (timing(|timing| timing.stream = Duration::MAX), "out of range"),
        (timing(|timing| (timing.streams, timing.stream) = (1000, 3600 * SECOND)), "at most 7 days"),
    ];
    for (tests, message) in cases {
        let outcome = run(&tests, Device::default());
        let reason = outcome.reason().unwrap_or_default();
        assert!(matches!(outcome.failure, Some(Failure::Refused(_))), "{message}");
        assert!(reason.contains(message), "'{reason}' does not say '{message}'");
    }
}

fn any_timing() -> impl Strategy<Value = Timing> {
    let times = || milliseconds(50..700);
    ((times(), times(), times()), (times(), times(), times()), (1..4u32, 1..4u32, 1..3u32)).prop_map(
        |((drain, search_trial, trial), (stream, burst, overload), (streams, bursts, overloads))| Timing {
            drain,
            search_trial,
            trial,
            stream,
            streams,
            burst,
            bursts,
            overload,
            overloads,
            recovery_watch: trial,
            reset_watch: stream,
            ..Timing::quick()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// `run_with` checks the bound, and that every test left something.
    #[test]
    fn any_tests_of_any_device_end_in_their_time(
        timing in any_timing(),
        device in any_device(),
        tester in any_tester(),
        which in proptest::sample::subsequence(Test::ALL.to_vec(), 1..=6),
        line_rate_bps in 2e6..1e9f64,
        resets: bool,
    ) {
        let asked = Rfc2544 { timing, line_rate_bps, ..tests(&which) };
        let outcome = if resets {
            run_with(&asked, device, tester, &mut Resets(false))
        } else {
            run_with(&asked, device, tester, &mut Silent)
        };
        prop_assert_eq!(outcome.status == Status::Failed, outcome.failure.is_some());
        if let Some(bursts) = &found(&outcome).back_to_back {
            prop_assert!(bursts.bursts.iter().all(|burst| *burst <= bursts.longest_tried));
        }
    }
}
