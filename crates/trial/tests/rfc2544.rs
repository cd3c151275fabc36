//! The tests of RFC 2544 find what simulated devices truly do, and end in time whatever they do.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use std::collections::BTreeSet;
use std::time::Duration;

use common::{SECOND, any_device, any_tester, device, milliseconds};
use engine::Engine;
use engine::simulated::{Device, Disturbance, SimulatedEngine, Stall, Tester};
use proptest::prelude::*;
use results::record::{self, LimitedBy, Phase, Sample, Status, Throughput};
use trial::rfc2544::{Rfc2544, Test, Timing};
use trial::{Failure, Noise, Observer, ObserverError, Outcome, Silent, Strategy as _};

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
    let found = outcome.finding.rfc2544().unwrap();
    for test in &tests.tests {
        assert!(found.has(test.name()) || found.not_run.contains_key(test.name()), "{test} left nothing");
    }
    outcome
}

fn run(tests: &Rfc2544, device: Device) -> Outcome {
    run_with(tests, device, Tester::default(), &mut Silent)
}

fn found(outcome: &Outcome) -> &record::Rfc2544 {
    outcome.finding.rfc2544().unwrap()
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

/// A machine that may cost this share of all frames from some time on. It resets the device too.
struct Noisy {
    cost: f64,
    from_s: f64,
    now_s: f64,
}

impl Noisy {
    fn new(cost: f64, from_s: f64) -> Self {
        Self { cost, from_s, now_s: 0.0 }
    }
}

impl Observer for Noisy {
    fn sample(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        self.now_s = sample.at_s + sample.duration_s;
        Ok(())
    }

    fn noise(&mut self) -> Noise {
        if self.now_s < self.from_s {
            return Noise::default();
        }
        // What is not remarkable is not repeated.
        Noise { cost: self.cost, ..Noise::default() }
    }

    fn reset(&mut self) -> Result<(), String> {
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
    for frames in [2_500_000, 3_000_000] {
        let stall = Some(Stall::AfterFrames(frames));
        let outcome = run(&all(), Device { stall, ..device(400_000.0) });
        let notes = outcome.notes.join("; ");
        assert!(notes.contains("the device stopped forwarding"), "{frames}: {notes}");
        let found = found(&outcome);
        assert!((found.throughput.unwrap().pps / 400_000.0 - 1.0).abs() < 0.01 && found.latency.is_some());
        assert_eq!((outcome.status, &*found.not_run["reset"]), (Status::Complete, "the run ended before"));
    }
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
    let points = &outcome.finding.rfc2544().unwrap().loss;
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
    let asked = [
        "few-bursts",
        "few-streams",
        "short-before-reset",
        "short-bursts",
        "short-loss-trials",
        "short-overload",
        "short-streams",
        "short-trials",
        "short-waits",
    ];
    assert_eq!(only_quick, asked);
    assert!(!names(&tests(&[Test::Loss])).contains("latency-of-every-frame"));
}

#[test]
fn where_the_tester_is_the_limit_nothing_is_said_of_the_device() {
    let tester = Tester { max_pps: 0.5 * LINE_PPS, ..Tester::default() };
    let outcome = run_with(&all(), Device::default(), tester, &mut Resets(false));
    let found = found(&outcome);
    assert_eq!(found.throughput.unwrap().limited_by, LimitedBy::Tester);
    for test in ["loss", "back-to-back", "recovery"] {
        assert!(found.not_run[test].contains("50 % of the line rate"), "{:?}", found.not_run);
    }
    assert!(found.latency.is_some() && found.reset.is_some() && outcome.status == Status::Complete);
}

/// Keeps the samples of trials, and when the device was reset.
#[derive(Default)]
struct Watching {
    trials: Vec<Sample>,
    reset_after: Option<usize>,
}

impl Observer for Watching {
    fn sample(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        if sample.phase == Phase::Trial {
            self.trials.push(sample.clone());
        }
        Ok(())
    }

    fn reset(&mut self) -> Result<(), String> {
        self.reset_after = Some(self.trials.len());
        Ok(())
    }
}

/// What the RFCs ask for: RFC 2544 sections 23, 24, 26.1 to 26.6, and RFC 6201 section 4.1.1.1.
#[test]
fn a_standard_run_does_what_the_rfcs_ask_for() {
    // 1 Mb/s, of which the device forwards two fifths; it holds 64 frames.
    let standard = Rfc2544 { timing: Timing::standard(), line_rate_bps: 1e6, min_pps: 10.0, ..all() };
    let line = standard.theoretical_pps();
    let mut watching = Watching::default();
    let outcome = run_with(&standard, device(600.0), Tester::default(), &mut watching);
    let found = found(&outcome);
    assert!(!found.quick && found.not_run.is_empty(), "{:?}", found.not_run);
    let seconds = |sample: &Sample| sample.duration_s.round();
    let rate = |sample: &Sample| sample.directions[0].intended_pps;
    let throughput = found.throughput.unwrap();

    // 26.1 and 24: both ends of the throughput were proved in trials of 60 s.
    let search = outcome.finding.search().unwrap();
    let decides = |pps: f64| {
        let at = |trial: &&record::Trial| (trial.load_pps / pps - 1.0).abs() < 0.002;
        search.trials.iter().filter(at).any(|trial| trial.duration_s == 60.0)
    };
    assert!(decides(throughput.pps) && decides(throughput.upper_pps.unwrap()), "{throughput:?}");
    assert!(throughput.pps / throughput.upper_pps.unwrap() > 0.994);

    // 23: two seconds for the last frames and five for the device between any two trials.
    let trials = &watching.trials;
    let gaps = trials.windows(2).map(|pair| pair[1].at_s - pair[0].at_s - pair[0].duration_s);
    let gaps: Vec<f64> = gaps.filter(|gap| *gap > 0.001).collect();
    assert!(gaps.iter().all(|gap| *gap >= 6.999), "{gaps:?}");

    // 26.2: 20 streams of 120 s at the throughput.
    let latency = found.latency.as_ref().unwrap();
    assert_eq!((latency.streams.len(), latency.stream_s, latency.load_pps), (20, 120.0, throughput.pps));
    assert_eq!(trials.iter().filter(|trial| seconds(trial) == 120.0).count(), 20);

    // 26.3: from line rate down in tenths of it, until two trials of 60 s lose nothing.
    let loads: Vec<f64> = found.loss.iter().map(|point| point.load_percent).collect();
    assert_eq!(loads, [100.0, 90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0]);
    for load in loads {
        let at = |trial: &&Sample| rate(trial) == line * load / 100.0 && seconds(trial) == 60.0;
        assert!(trials.iter().any(|trial| at(&trial)), "{load}");
    }

    // 26.4: 50 repeats of bursts at line rate, of up to 2 s.
    let bursts = found.back_to_back.as_ref().unwrap();
    assert_eq!((bursts.bursts.len(), bursts.longest_tried), (50, (2.0 * line) as u64));

    // 26.5: 110 % of the throughput for 60 s, then at once half of that.
    let overload = throughput.pps * 1.1;
    let overloads: Vec<usize> =
        (0..trials.len()).filter(|at| (rate(&trials[*at]) / overload - 1.0).abs() < 1e-9).collect();
    assert_eq!(overloads.len(), found.recovery.as_ref().unwrap().repeats.len());
    for at in overloads {
        let (before, after) = (&trials[at], &trials[at + 1]);
        assert_eq!((seconds(before), rate(after) / rate(before)), (60.0, 0.5));
        assert!(after.at_s - before.at_s - before.duration_s < 1e-6);
    }

    // 26.6 and RFC 6201: 15 s at the throughput before the reset, in the interval that goes on then.
    let before = &trials[watching.reset_after.unwrap()];
    assert_eq!((seconds(before), rate(before)), (15.0, throughput.pps));
    let hours = standard.planned().as_secs_f64() / 3600.0;
    assert!((2.0..6.0).contains(&hours), "{hours} h");
}

#[test]
fn a_quick_run_takes_less_than_half_a_minute() {
    for (capacity, queue) in [(30_000.0, 64), (123_456.0, 5_000), (700_000.0, 512), (1_400_000.0, 64)] {
        let device = Device { queue, ..device(capacity) };
        let mut engine = SimulatedEngine::new(device, Tester::default());
        let outcome = all().run(&mut engine, &mut Resets(false));
        assert_eq!((outcome.status, found(&outcome).not_run.len()), (Status::Complete, 0));
        assert!(engine.now() <= 20 * SECOND, "{capacity}: {:?}", engine.now());
        // A trial of a second hides what the queue holds.
        let Throughput { pps, upper_pps, irregular, .. } = found(&outcome).throughput.unwrap();
        assert!(pps <= capacity + queue as f64 + 2.0 && capacity <= upper_pps.unwrap() + 1.0, "{pps}");
        assert_eq!(irregular, None);
    }
    assert!(all().planned() < 75 * SECOND, "{:?}", all().planned());
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
            settle: drain / 2,
            search_trial,
            trial,
            loss_trial: trial,
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
