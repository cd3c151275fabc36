//! What the RFCs ask for, what a quick run leaves out of it, and which parameters are refused.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::Engine;
use engine::simulated::{Device, SimulatedEngine, Tester};
use proptest::prelude::*;
use results::record::{self, Phase, Sample, Status, Throughput};
use trial::rfc2544::{Rfc2544, Test, Timing};
use trial::{Failure, Observer, ObserverError, Silent, Strategy as _, Surroundings};

use super::{Resets, all, found, run, run_with, tests};
use crate::common::{SECOND, any_device, any_tester, device, milliseconds};

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

    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Watching {
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
