//! A ramp over a simulated device finds the truth that the device was given, and ends as it must.

use std::time::Duration;

use crate::common::{SECOND, Witness, check, conditions, device, ramp, run};
use engine::simulated::{Capacity, Device, Disturbance, SimulatedEngine, Stall, Tester};
use engine::{Capabilities, Counts, Engine, Error, Interval, Load, Totals};
use results::record::{Finding, LimitedBy, Phase, Sample, Status};
use trial::{Conditions, Failure, Ramp, Silent, Strategy as _, WarmUp};

/// When the rise begins: after a second of warm-up, and its drain, which ends at the first look for what has returned.
const WARMED_UP_S: f64 = 1.05;

#[test]
fn the_capacity_is_found_within_one_percent_or_one_step() {
    for capacity in [50_000.0, 123_456.0, 300_000.0, 555_555.0, 800_000.0, 900_000.0] {
        let (outcome, _) = run(&ramp(), device(capacity), Tester::default());
        let found = &outcome.directions[0];
        let bound = f64::max(capacity * 0.01, 1e6 / 300.0);
        assert!((found.max_rate_pps - capacity).abs() <= bound, "{} of {capacity}", found.max_rate_pps);
        // A queue of 64 frames that fills within a step adds 640 frames a second, and a frame
        // more or less in a step is another 10.
        let excess = found.max_forwarded_pps - capacity;
        assert!((-10.0..=650.0).contains(&excess), "{excess} above {capacity}");
        assert_eq!((found.limited_by, found.lossy_samples_below), (LimitedBy::Dut, 0));
        assert_eq!((outcome.status, outcome.notes.as_slice()), (Status::Complete, [].as_slice()));
        assert_eq!(outcome.samples.len(), 10 + 300 + 20);
    }
}

#[test]
fn directions_that_share_a_capacity_get_half_of_it_each() {
    let shared = Device { capacity: Capacity::Shared(500_000.0), ..device(0.0) };
    let (outcome, _) = run(&ramp(), shared, Tester { directions: 2, ..Tester::default() });
    assert_eq!(outcome.directions.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["0->1", "1->0"]);
    for found in &outcome.directions {
        assert!((found.max_rate_pps - 250_000.0).abs() <= 1e6 / 300.0, "{found:?}");
        assert!((found.max_forwarded_pps - 250_000.0).abs() <= 500.0, "{found:?}");
    }
}

#[test]
fn a_device_faster_than_the_line_is_limited_by_it() {
    let line = Ramp { target_pps: 1_488_095.0, ..ramp() };
    let (outcome, _) = run(&line, device(5e6), Tester::default());
    let found = &outcome.directions[0];
    assert_eq!(found.limited_by, LimitedBy::LineRate);
    assert!((found.max_rate_pps / 1_488_095.0 - 1.0).abs() < 1e-4);
    assert!((found.line_rate_percent - 100.0).abs() < 0.01 && (found.l1_bps / 1e9 - 1.0).abs() < 1e-4);
}

#[test]
fn a_tester_that_cannot_send_more_is_named() {
    let tester = Tester { max_pps: 400_000.0, ..Tester::default() };
    let (outcome, _) = run(&ramp(), device(5e6), tester.clone());
    let found = &outcome.directions[0];
    assert_eq!(found.limited_by, LimitedBy::Tester);
    assert!((found.max_rate_pps / 400_000.0 - 1.0).abs() < 0.001, "{found:?}");
    assert!(found.unsent > 1_000_000 && found.offered - found.forwarded == 0);
    let (outcome, _) = run(&ramp(), device(200_000.0), tester);
    assert_eq!(outcome.directions[0].limited_by, LimitedBy::Dut);
}

#[test]
fn dropping_every_thousandth_frame_is_within_the_threshold_and_every_five_hundredth_is_not() {
    let every = |frames| Device { drop_every: Some(frames), ..Device::default() };
    let (outcome, _) = run(&ramp(), every(1_000), Tester::default());
    let found = &outcome.directions[0];
    assert_eq!((found.limited_by, found.lossy_samples_below), (LimitedBy::LineRate, 0));
    assert!((found.max_rate_pps / 1e6 - 1.0).abs() < 1e-3);
    let (outcome, _) = run(&ramp(), every(500), Tester::default());
    let found = &outcome.directions[0];
    assert_eq!(found.limited_by, LimitedBy::Dut);
    assert!(found.max_rate_pps < 20_000.0, "{found:?}");
}

#[test]
fn a_stall_ends_the_ramp_early_with_its_second_and_count() {
    let stall = Some(Stall::AfterFrames(1_000_000));
    let (outcome, engine) = run(&ramp(), Device { stall, ..device(5e6) }, Tester::default());
    let found = &outcome.directions[0];
    let stalled = found.stalled.unwrap();
    assert_eq!((stalled.after_frames, found.forwarded), (1_000_000, 1_000_000));
    // 1000 frames of warm-up; then the rise offers t²·1e6/60 in t seconds, staircase aside.
    let second = WARMED_UP_S + (999_000.0 * 60.0 / 1e6f64).sqrt();
    assert!((stalled.at_s - second).abs() < 0.15, "{stalled:?} for {second}");
    assert_eq!((outcome.status, found.limited_by), (Status::Complete, LimitedBy::Dut));
    assert!(outcome.notes[0].starts_with("ended early"), "{:?}", outcome.notes);
    assert!(engine.now() < Duration::from_secs_f64(second) + 7 * SECOND);
    assert!((found.max_rate_pps - 257_000.0).abs() < 5_000.0, "{found:?}");
}

/// An engine whose caller is held up each time that a load has begun.
struct HeldUp(SimulatedEngine);

impl Engine for HeldUp {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn directions(&self) -> usize {
        self.0.directions()
    }

    fn begin(&mut self, load: Load) -> Result<Interval, Error> {
        let interval = self.0.begin(load)?;
        if load != Load::Idle {
            self.0.wait(Duration::from_millis(90))?;
        }
        Ok(interval)
    }

    fn wait(&mut self, duration: Duration) -> Result<(), Error> {
        self.0.wait(duration)
    }

    fn now(&self) -> Duration {
        self.0.now()
    }

    fn counts(&mut self, interval: Interval) -> Result<Vec<Counts>, Error> {
        self.0.counts(interval)
    }

    fn totals(&mut self) -> Result<Vec<Totals>, Error> {
        self.0.totals()
    }
}

#[test]
fn what_left_in_an_interval_that_a_stall_ends_at_once_is_in_a_sample() {
    let device = Device { stall: Some(Stall::AfterFrames(1_000_000)), ..device(5e6) };
    let (mut engine, mut witness) =
        (HeldUp(SimulatedEngine::new(device, Tester::default())), Witness::default());
    let outcome = ramp().run(&mut engine, &mut witness);
    let offered = |samples: &[Sample]| samples.iter().map(|it| it.directions[0].offered).sum::<u64>();
    assert!(outcome.directions[0].stalled.is_some());
    assert_eq!(offered(&outcome.samples), outcome.directions[0].offered);
    assert_eq!(offered(&witness.settled), outcome.directions[0].offered);
}

#[test]
fn a_device_that_stalls_at_low_load_stalls_in_the_warm_up() {
    let stall = Some(Stall::below_rate(5_000.0, 3 * SECOND));
    let slow = Conditions { warm_up: WarmUp { pps: 1_000.0, duration: 30 * SECOND }, ..conditions() };
    let (outcome, engine) =
        run(&Ramp { conditions: slow, ..ramp() }, Device { stall, ..Device::default() }, Tester::default());
    let stalled = outcome.directions[0].stalled.unwrap();
    assert!((stalled.at_s - 3.0).abs() < 0.11 && stalled.after_frames.abs_diff(3_000) <= 2, "{stalled:?}");
    assert!(outcome.samples.iter().all(|sample| sample.phase == Phase::WarmUp));
    assert!(engine.now() < 10 * SECOND);
}

#[test]
fn an_outage_shorter_than_the_patience_is_a_disturbance() {
    let outage = Disturbance { from: 10 * SECOND, length: 4 * SECOND, factor: 0.0 };
    let (outcome, _) =
        run(&ramp(), Device { disturbances: vec![outage], ..device(500_000.0) }, Tester::default());
    let found = &outcome.directions[0];
    assert_eq!((found.stalled, outcome.status), (None, Status::Complete));
    assert!(found.lossy_samples_below.abs_diff(40) <= 1, "{found:?}");
    assert!((found.max_rate_pps - 500_000.0).abs() <= 1e6 / 300.0);
}

#[test]
fn nothing_passes_is_told_apart() {
    let blocked = |blocked, reflects| Device { blocked, reflects, foreign_pps: 5.0, ..Device::default() };
    let both = Tester { directions: 2, ..Tester::default() };
    let (outcome, engine) = run(&ramp(), blocked([true; 2], true), both.clone());
    assert_eq!(outcome.status, Status::Failed);
    assert!(
        matches!(
            outcome.failure,
            Some(Failure::NothingPasses {
                direction: 0,
                offered: 999..=1000,
                returned: 999..=1000,
                foreign: 9..=10,
                others_pass: false
            })
        ),
        "{:?}",
        outcome.failure
    );
    assert_eq!((outcome.samples.len(), engine.now()), (10, 2 * SECOND));

    let (outcome, _) = run(&ramp(), blocked([false, true], false), both);
    assert!(matches!(
        outcome.failure,
        Some(Failure::NothingPasses { direction: 1, returned: 0, others_pass: true, .. })
    ));
    let reason = outcome.reason().unwrap();
    assert!(reason.starts_with("1->0: none of ") && reason.contains("MTU"), "{reason}");

    let mute = Tester { max_pps: 0.0, ..Tester::default() };
    let (outcome, _) = run(&ramp(), Device::default(), mute);
    assert!(matches!(outcome.failure, Some(Failure::NothingLeaves { direction: 0 })));
}

#[test]
fn an_interruption_keeps_what_was_measured_and_counts_it_to_the_end() {
    let device = Device { base_latency: Duration::from_millis(80), ..device(5e6) };
    let tester = Tester { interrupt_after: Some(Duration::from_millis(15_050)), ..Tester::default() };
    let (outcome, engine) = run(&ramp(), device, tester);
    assert_eq!((outcome.status, outcome.reason()), (Status::Interrupted, None));
    assert_eq!(engine.now(), Duration::from_millis(15_150));
    let last = outcome.samples.last().unwrap();
    assert!((last.duration_s - 0.05).abs() < 1e-9 && (last.at_s - 15.0).abs() < 1e-9, "{last:?}");
    let found = &outcome.directions[0];
    assert_eq!((found.limited_by, found.forwarded), (LimitedBy::Unknown, found.offered));
    assert!((found.max_rate_pps - 1e6 * 140.0 / 300.0).abs() < 1_000.0, "{found:?}");
    assert!(outcome.samples.iter().all(|sample| sample.directions[0].loss_ratio == 0.0));
}

#[test]
fn an_interruption_at_any_moment_is_an_outcome() {
    for at in [0, 1, 500, 1_000, 1_050, 1_500, 2_000, 31_049, 31_050, 33_049, 33_050, 33_090, 33_100] {
        let tester = Tester { interrupt_after: Some(Duration::from_millis(at)), ..Tester::default() };
        let (outcome, engine) = run(&ramp(), device(300_000.0), tester);
        assert_eq!(outcome.status, Status::Interrupted, "{at} ms");
        assert!(engine.now() <= Duration::from_millis(at + 500), "{at} ms");
        assert_eq!(outcome.directions.len(), 1);
    }
}

#[test]
fn a_dead_engine_leaves_its_samples() {
    let tester = Tester { fail_after: Some(Duration::from_millis(10_030)), ..Tester::default() };
    let (outcome, _) = run(&ramp(), device(100_000.0), tester);
    assert_eq!(outcome.status, Status::Failed);
    assert!(matches!(outcome.failure, Some(Failure::Engine(engine::Error::Failed(_)))));
    assert_eq!(outcome.samples.len(), 10 + 89 + 1);
    assert_eq!(outcome.directions[0].limited_by, LimitedBy::Dut);
    assert!(outcome.notes[0].contains("drain was cut short"), "{:?}", outcome.notes);
}

#[test]
fn an_observer_that_fails_ends_the_run_and_keeps_the_samples() {
    let mut engine = SimulatedEngine::new(device(100_000.0), Tester::default());
    let mut witness = Witness { fail_at: Some(50), ..Witness::default() };
    let outcome = ramp().run(&mut engine, &mut witness);
    check(&outcome, &engine, 0.001);
    assert_eq!((outcome.status, witness.samples.len()), (Status::Failed, 50));
    assert!(outcome.reason().unwrap().contains("disk"));
    // The sample that could not be written is kept as well.
    assert_eq!(outcome.samples.len(), 51);
    assert!(engine.now() < Duration::from_millis(6_700));
}

#[test]
fn an_observer_sees_every_phase_and_sample() {
    let device = Device { base_latency: Duration::from_millis(150), ..device(5e6) };
    let mut engine = SimulatedEngine::new(device, Tester::default());
    let mut witness = Witness::default();
    let outcome = ramp().run(&mut engine, &mut witness);
    let phases = [(Phase::WarmUp, SECOND), (Phase::Ramp, 30 * SECOND), (Phase::Hold, 2 * SECOND)];
    assert_eq!((witness.phases.as_slice(), witness.drains), (phases.as_slice(), 2));
    assert_eq!(witness.asked, 330 + 3);
    // Both drains end when the last frames are back.
    assert_eq!(engine.now(), 33 * SECOND + 2 * Duration::from_millis(150));
    // Live samples are preliminary: with 150 ms of latency, frames are still on their way.
    for (live, last) in witness.samples.iter().zip(&outcome.samples) {
        assert_eq!((live.at_s, live.dut_core_busy), (last.at_s, last.dut_core_busy));
        assert!(live.directions[0].forwarded < last.directions[0].forwarded);
        assert_eq!(last.directions[0].loss_ratio, 0.0);
    }
    assert_eq!(witness.samples.len(), outcome.samples.len());
    assert!(outcome.samples.iter().all(|sample| sample.dut_core_busy.is_some()));
    // They are told once more when their frames had time to return.
    assert_eq!(counts_of(&witness.settled), counts_of(&outcome.samples));
}

fn counts_of(samples: &[Sample]) -> Vec<(f64, u64, u64)> {
    let count = |it: &Sample| (it.at_s, it.directions[0].offered, it.directions[0].forwarded);
    samples.iter().map(count).collect()
}

/// What is told as settled, and what is final, of a run in steps of 10 ms that ends with its sample 500.
fn told(base_latency: Duration) -> (Vec<Sample>, Vec<Sample>) {
    let conditions = Conditions { step: Duration::from_millis(10), drain: 2 * SECOND, ..conditions() };
    let device = Device { base_latency, ..device(5e6) };
    let mut engine = SimulatedEngine::new(device, Tester::default());
    let mut witness = Witness { fail_at: Some(500), ..Witness::default() };
    let outcome = Ramp { conditions, ..ramp() }.run(&mut engine, &mut witness);
    assert_eq!((outcome.status, outcome.samples.len()), (Status::Failed, 501));
    (witness.settled, outcome.samples)
}

#[test]
fn samples_are_told_as_settled_when_their_frames_had_time_to_return() {
    let (settled, last) = told(Duration::from_millis(30));
    assert!((490..=498).contains(&settled.len()), "{}", settled.len());
    assert_eq!(counts_of(&settled), counts_of(&last)[..settled.len()]);
}

#[test]
fn after_a_second_samples_are_told_as_settled_in_any_case() {
    let (settled, _) = told(Duration::from_millis(1_500));
    assert!((396..=402).contains(&settled.len()), "{}", settled.len());
    assert_eq!(settled.last().unwrap().directions[0].forwarded, 0);
}

#[test]
fn latency_rises_where_the_device_is_saturated() {
    let (outcome, _) = run(&ramp(), Device { queue: 500, ..device(500_000.0) }, Tester::default());
    let latency = |second: f64| {
        let sample = outcome.samples.iter().rfind(|sample| sample.at_s <= second).unwrap();
        sample.directions[0].latency.unwrap()
    };
    // 20 µs and 2 µs of service below capacity; a queue of 500 frames, 1 ms, above.
    let (below, above) = (latency(10.0), latency(25.0));
    assert_eq!((below.min_ns, below.max_ns), (22_000, 22_000));
    assert_eq!((below.p50_ns, below.p99_ns), (22_000, 22_000));
    assert!((above.mean_ns / 1_020_000.0 - 1.0).abs() < 0.01, "{above:?}");
    assert!((above.p99_ns as f64 / 1_020_000.0 - 1.0).abs() < 0.05, "{above:?}");
}

#[test]
fn short_steps_pool_their_percentiles_and_all_are_settled() {
    let conditions = Conditions { step: Duration::from_millis(10), ..conditions() };
    let device = Device { base_latency: Duration::from_millis(30), ..device(300_000.0) };
    let (outcome, _) = run(&Ramp { conditions, ..ramp() }, device, Tester::default());
    assert_eq!(outcome.samples.len(), 100 + 3_000 + 200);
    let found = &outcome.directions[0];
    assert!((found.max_rate_pps - 300_000.0).abs() <= 3_000.0, "{found:?}");
    assert!(
        outcome.samples.iter().filter(|sample| sample.directions[0].forwarded > 0).all(|sample| {
            sample.directions[0].latency.is_some_and(|latency| latency.p50_ns >= 30_000_000)
        })
    );
}

#[test]
fn a_drain_too_short_and_departures_too_late_are_noted() {
    let conditions = Conditions { drain: Duration::from_millis(200), ..conditions() };
    let device = Device { base_latency: Duration::from_millis(300), ..device(5e6) };
    let tester = Tester { lateness: Duration::from_millis(3), ..Tester::default() };
    let (outcome, _) = run(&Ramp { conditions, ..ramp() }, device, tester);
    let has_note = |text: &str| outcome.notes.iter().any(|note| note.contains(text));
    assert!(has_note("frames still returned when a drain of 200ms ended"), "{:?}", outcome.notes);
    assert!(has_note("p99 transmit delay"), "{:?}", outcome.notes);
    // Those of the warm-up's last 100 ms, of which the totals know.
    let sampled: u64 = outcome.samples.iter().map(|sample| sample.directions[0].forwarded).sum();
    let later = outcome.directions[0].forwarded - sampled;
    assert!((90..=110).contains(&later), "{later}");
    assert!(
        has_note(&format!("0->1: {later} frames returned after the drain of their load")),
        "{:?}",
        outcome.notes
    );
}

#[test]
fn parameters_without_sense_are_refused_before_anything_is_sent() {
    let good = ramp();
    let with = |conditions: Conditions| Ramp { conditions, ..good };
    let common = good.conditions;
    let refused = [
        (Ramp { target_pps: 0.0, ..good }, "target load"),
        (Ramp { target_pps: f64::NAN, ..good }, "target load"),
        (Ramp { rise: Duration::ZERO, hold: Duration::ZERO, ..good }, "neither rises nor holds"),
        (Ramp { rise: Duration::MAX, ..good }, "rise"),
        (Ramp { rise: 20_000 * SECOND, ..good }, "longer step"),
        (with(Conditions { step: Duration::ZERO, ..common }), "step"),
        (with(Conditions { loss_threshold: 1.0, ..common }), "loss threshold"),
        (with(Conditions { loss_threshold: f64::NAN, ..common }), "loss threshold"),
        (with(Conditions { line_rate_bps: -1.0, ..common }), "line rate"),
        (with(Conditions { drain: Duration::MAX, ..common }), "drain"),
        (with(Conditions { warm_up: WarmUp { pps: 0.0, duration: SECOND }, ..common }), "warm-up load"),
    ];
    for (ramp, reason) in refused {
        let mut engine = SimulatedEngine::new(Device::default(), Tester::default());
        let outcome = ramp.run(&mut engine, &mut Silent);
        assert!(matches!(outcome.failure, Some(Failure::Refused(_))), "{reason}: {outcome:?}");
        assert!(outcome.reason().unwrap().contains(reason), "{reason}: {:?}", outcome.reason());
        assert_eq!((engine.now(), outcome.samples.len()), (Duration::ZERO, 0));
        let _ = ramp.planned();
    }
}

#[test]
fn a_search_after_a_ramp_narrows_its_interval() {
    for directions in 1..=2 {
        let tester = Tester { directions, ..Tester::default() };
        let alone = Ramp { rise: 5 * SECOND, hold: SECOND, ..ramp() };
        let searched = Ramp { search: 5 * SECOND, ..alone };
        let (before, _) = run(&alone, device(300_000.0), tester.clone());
        let (outcome, engine) = run(&searched, device(300_000.0), tester);
        assert!(engine.now() <= searched.planned());
        let Finding::Ramp(Some(search)) = &outcome.finding else { panic!("{:?}", outcome.finding) };
        assert!(!search.trials.is_empty() && outcome.samples.iter().all(|it| it.phase != Phase::Trial));
        let found = search.results["limit"];
        for (direction, before) in outcome.directions.iter().zip(&before.directions) {
            let (evidence, alone) = (direction.evidence.unwrap(), before.evidence.unwrap().limit.unwrap());
            let limit = evidence.limit.unwrap();
            let (lower, upper) = (limit.lower_pps, limit.upper_pps.unwrap());
            assert!(
                (298_000.0..=301_500.0).contains(&lower) && (300_000.0..=303_100.0).contains(&upper),
                "{limit:?}"
            );
            assert_eq!((evidence.ramp, direction.max_rate_pps), (Some(alone), lower));
            assert_eq!(
                found.lower_pps,
                lower * directions as f64,
                "directions added up are what the search found"
            );
            assert!(upper - lower < (alone.upper_pps.unwrap() - alone.lower_pps) / 2.0, "{alone:?}");
        }
    }
}

#[test]
fn nothing_is_searched_for_where_the_ramp_reached_its_target() {
    let searched = Ramp { search: 5 * SECOND, ..ramp() };
    for (device, tester) in
        [(device(2e6), Tester::default()), (device(2e6), Tester { max_pps: 5e5, ..Tester::default() })]
    {
        let (outcome, _) = run(&searched, device, tester);
        assert_eq!(outcome.finding, Finding::Ramp(None));
        assert_eq!(outcome.directions[0].evidence.unwrap().ramp, None);
    }
}
