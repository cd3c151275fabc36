//! Soaks of simulated devices: what goes wrong in a long time is found, with its time and counters.

use std::time::Duration;

use crate::common::{SECOND, any_device, any_tester, conditions, device};
use engine::simulated::{Device, Disturbance, SimulatedEngine, Stall, Tester};
use engine::{Capabilities, Counts, Engine, Error, Interval, Load, Totals};
use proptest::prelude::*;
use results::record::{self, DeviceCounted, LossPattern, Measure, Sample, SoakDirection, Status};
use trial::{
    Conditions, Failure, Observer, ObserverError, Outcome, Silent, Soak, Strategy as _, Surroundings, WarmUp,
};

fn soak(pps: f64, seconds: u32) -> Soak {
    let duration = seconds * SECOND;
    let warm_up = WarmUp { pps: 5_000.0, duration: SECOND };
    Soak {
        conditions: Conditions { warm_up, step: Soak::interval(pps, duration), ..conditions() },
        pps,
        duration,
        stop_on_stall: false,
    }
}

fn run(soak: &Soak, device: Device, tester: Tester) -> (Outcome, record::Soak) {
    let mut engine = SimulatedEngine::new(device, tester);
    let outcome = soak.run(&mut engine, &mut Silent);
    let found = outcome.finding.soak().unwrap().clone();
    found.directions.iter().for_each(check);
    (outcome, found)
}

/// What holds for every direction.
fn check(found: &SoakDirection) {
    assert!(found.lost <= found.offered && found.lost_disturbed <= found.lost);
    assert!(found.lossy_intervals <= found.intervals);
    for stall in &found.stalls {
        assert!(stall.until_s.is_none_or(|until| until >= stall.from_s), "{stall:?}");
        assert!(stall.counters.during.offered > 0, "{stall:?}");
    }
    for event in &found.losses {
        assert!(event.counters.during.offered > event.counters.during.forwarded, "{event:?}");
    }
    let has_period = found.period.is_some();
    assert!(has_period == (found.pattern == LossPattern::Periodic) || found.pattern == LossPattern::Steady);
    assert!(found.pattern != LossPattern::None || found.loss_count == 0);
}

/// A device that stops forwarding for a while.
fn outages(times: impl IntoIterator<Item = (u64, u64)>) -> Device {
    let outage = |(from, length)| Disturbance {
        from: Duration::from_millis(from),
        length: Duration::from_millis(length),
        factor: 0.0,
    };
    Device { disturbances: times.into_iter().map(outage).collect(), queue: 0, ..device(300_000.0) }
}

#[test]
fn a_soak_whose_tester_is_held_up_ends_when_it_was_planned_to() {
    let held_up = Tester { oversleeps: SECOND, ..Tester::default() };
    let (outcome, found) = run(&soak(1_000.0, 60), Device::default(), held_up);
    assert_eq!(outcome.status, Status::Complete);
    assert!((60.0..62.0).contains(&found.duration_s), "{} s", found.duration_s);
    let direction = &found.directions[0];
    assert_eq!((direction.offered as f64, direction.lost), ((found.duration_s * 1_000.0).round(), 0));
}

#[test]
fn a_bridge_that_stops_at_a_low_load_is_caught() {
    // As the netmap bridge of the article on VPP on FreeBSD: fine at the warm-up's load, dead at 1 kpps.
    let bridge = Device { stall: Some(Stall::below_rate(2_000.0, 30 * SECOND)), ..device(10e6) };
    let (outcome, found) = run(&soak(1_000.0, 120), bridge.clone(), Tester::default());
    assert_eq!(outcome.status, Status::Complete);
    let direction = &found.directions[0];
    assert_eq!(direction.stalls.len(), 1);
    let stall = direction.stalls[0];
    // It began after warm-up, its drain and 30 s; 5,000 frames had passed before, then 30,000.
    assert!((stall.from_s - 31.05).abs() < 0.11 && stall.until_s.is_none(), "{stall:?}");
    assert!(stall.after_frames.abs_diff(35_000) < 10, "{stall:?}");
    assert_eq!(stall.counters.before.forwarded + stall.counters.during.forwarded, stall.after_frames);
    assert_eq!((stall.disturbed, outcome.directions[0].stalled.is_some()), (false, true));
    assert!((found.duration_s - 120.0).abs() < 0.2);

    let hasty = Soak { stop_on_stall: true, ..soak(1_000.0, 120) };
    let (outcome, found) = run(&hasty, bridge, Tester::default());
    assert!((35.0..36.0).contains(&found.duration_s), "{}", found.duration_s);
    assert!(outcome.notes.iter().any(|note| note.contains("ended early")), "{:?}", outcome.notes);
    assert_eq!(found.directions[0].stalls.len(), 1);
}

#[test]
fn a_stall_after_so_many_frames_says_so_in_both_directions() {
    let device = Device { stall: Some(Stall::AfterFrames(60_000)), ..device(300_000.0) };
    let (_, found) = run(&soak(1_000.0, 60), device, Tester { directions: 2, ..Tester::default() });
    let after: u64 = found.directions.iter().map(|direction| direction.stalls[0].after_frames).sum();
    assert_eq!(after, 60_000);
}

#[test]
fn a_stall_that_recovers_has_a_beginning_and_an_end() {
    let (outcome, found) = run(&soak(1_000.0, 60), outages([(20_000, 3_450)]), Tester::default());
    let [stall] = found.directions[0].stalls[..] else { panic!("{:?}", found.directions[0].stalls) };
    assert!((stall.from_s - 20.0).abs() < 0.1 && (stall.until_s.unwrap() - 23.45).abs() < 0.1, "{stall:?}");
    assert_eq!((found.directions[0].loss_count, found.directions[0].pattern), (1, LossPattern::Scattered));
    assert!(outcome.directions[0].stalled.is_none());
    let lost = stall.counters.during.offered - stall.counters.during.forwarded;
    assert_eq!((lost, found.directions[0].lost), (lost, lost));
}

#[test]
fn one_frame_a_second_is_enough() {
    let (_, found) = run(&soak(1.0, 3_600), outages([(600_000, 300_000)]), Tester::default());
    assert_eq!(found.interval_s, 10.0);
    let [stall] = found.directions[0].stalls[..] else { panic!("{:?}", found.directions[0].stalls) };
    assert!(
        (stall.from_s - 600.0).abs() < 12.0 && (stall.until_s.unwrap() - 900.0).abs() < 12.0,
        "{stall:?}"
    );
    // A few seconds of outage are lost frames, and no stall.
    let (_, found) = run(&soak(1.0, 600), outages([(300_000, 3_000)]), Tester::default());
    assert_eq!((found.directions[0].stall_count, found.directions[0].loss_count), (0, 1));
}

#[test]
fn every_nth_frame_lost_is_a_period_of_as_many_frames() {
    let every = |frames, seconds| {
        let device = Device { drop_every: Some(frames), ..device(300_000.0) };
        run(&soak(1_000.0, seconds), device, Tester::default()).1.directions.remove(0)
    };
    let found = every(7_300, 200);
    let period = found.period.unwrap();
    assert!((period.frames - 7_300.0).abs() < 3.0 && (period.period_s - 7.3).abs() < 0.003, "{period:?}");
    assert_eq!((period.on_period, period.occupied), (period.losses, 1.0));
    assert!(period.chance < 1e-6 && found.losses.iter().all(|event| event.on_period), "{period:?}");
    assert!((period.phase_s - found.losses[0].from_s).abs() < 0.2, "{period:?}");
    // Shorter than an interval: the counts tell it to the frame.
    let found = every(70, 60);
    assert_eq!((found.pattern, found.losses.len()), (LossPattern::Steady, 0));
    assert!(found.lossy_intervals == found.intervals && found.lost.abs_diff(60_000 / 70) <= 2, "{found:?}");
    let period = found.period.unwrap();
    assert_eq!((period.measure, period.frames, period.on_period as u64), (Measure::Frames, 70.0, found.lost));
    assert!(period.chance < 1e-6, "{period:?}");
    // Random losses that are as many have none.
    let device = Device { random_loss: 1.0 / 70.0, ..device(300_000.0) };
    let found = run(&soak(1_000.0, 60), device, Tester::default()).1.directions.remove(0);
    assert_eq!((found.pattern, found.period), (LossPattern::Steady, None));
}

#[test]
fn a_device_that_counts_frames_is_told_from_one_that_counts_seconds() {
    // The tester sends nothing in some seconds: from then on time and frames go apart.
    let pause =
        |from: u32, seconds: u32| Disturbance { from: from * SECOND, length: seconds * SECOND, factor: 0.0 };
    let tester =
        Tester { disturbances: vec![pause(40, 2), pause(90, 5), pause(170, 3)], ..Tester::default() };
    let counting = Device { drop_every: Some(7_300), ..device(300_000.0) };
    let found = run(&soak(1_000.0, 250), counting, tester.clone()).1.directions.remove(0);
    let period = found.period.unwrap();
    assert_eq!((period.measure, period.on_period), (Measure::Frames, period.losses));
    assert!((period.frames - 7_300.0).abs() < 3.0, "{period:?}");
    let clock = outages((0..30).map(|at| (4_000 + at * 7_300, 250)));
    let found = run(&soak(1_000.0, 250), clock, tester).1.directions.remove(0);
    let period = found.period.unwrap();
    assert!(period.measure == Measure::Time && (period.period_s - 7.3).abs() < 0.01, "{period:?}");
}

#[test]
fn four_losses_far_apart_are_a_period() {
    let (_, found) =
        run(&soak(1_000.0, 200), outages((0..4).map(|at| (20_000 + at * 50_000, 60))), Tester::default());
    let period = found.directions[0].period.unwrap();
    assert!((period.period_s - 50.0).abs() < 0.1 && period.chance <= 1e-3, "{period:?}");
    assert_eq!((period.on_period, period.losses), (4, 4));
}

#[test]
fn each_direction_is_watched_for_stalls() {
    // One direction dies after its frames; the other one goes on.
    let outcome = |stop_on_stall| {
        let soak = Soak { stop_on_stall, ..soak(1_000.0, 60) };
        let mut engine = HalfDead {
            engine: SimulatedEngine::new(device(300_000.0), Tester { directions: 2, ..Tester::default() }),
            last: 20_000,
        };
        soak.run(&mut engine, &mut Silent)
    };
    let stopped = outcome(true);
    let duration_s = stopped.finding.soak().unwrap().duration_s;
    assert!((19.0..22.0).contains(&duration_s), "{duration_s}");
    assert!(stopped.notes.iter().any(|note| note.contains("1->0: nothing came back")), "{:?}", stopped.notes);
    assert!((outcome(false).finding.soak().unwrap().duration_s - 60.0).abs() < 0.2);
}

/// A device whose direction 1->0 returns so many frames and no more.
struct HalfDead {
    engine: SimulatedEngine,
    last: u64,
}

impl Engine for HalfDead {
    fn capabilities(&self) -> Capabilities {
        self.engine.capabilities()
    }

    fn directions(&self) -> usize {
        self.engine.directions()
    }

    fn begin(&mut self, load: Load) -> Result<Interval, Error> {
        self.engine.begin(load)
    }

    fn wait(&mut self, duration: Duration) -> Result<(), Error> {
        self.engine.wait(duration)
    }

    fn now(&self) -> Duration {
        self.engine.now()
    }

    fn counts(&mut self, interval: Interval) -> Result<Vec<Counts>, Error> {
        self.engine.counts(interval)
    }

    fn totals(&mut self) -> Result<Vec<Totals>, Error> {
        let mut totals = self.engine.totals()?;
        totals[1].forwarded = totals[1].forwarded.min(self.last);
        Ok(totals)
    }
}

#[test]
fn pauses_at_equal_distances_are_a_period_among_other_losses() {
    let pauses = (0..28).map(|at| (3_000 + at * 20_700, 250)).chain([(47_000, 150), (333_000, 150)]);
    let (_, found) = run(&soak(1_000.0, 600), outages(pauses), Tester::default());
    let direction = &found.directions[0];
    let period = direction.period.unwrap();
    assert!((period.period_s - 20.7).abs() < 0.02 && (period.phase_s - 3.0).abs() < 0.2, "{period:?}");
    assert_eq!((period.losses, period.on_period), (30, 28));
    let others: Vec<f64> =
        direction.losses.iter().filter(|event| !event.on_period).map(|event| event.from_s).collect();
    assert!((others[0] - 47.0).abs() < 0.11 && (others[1] - 333.0).abs() < 0.11, "{others:?}");
}

#[test]
fn losses_at_random_have_no_period() {
    let device = Device { random_loss: 1e-4, ..device(300_000.0) };
    let (_, found) = run(&soak(1_000.0, 600), device, Tester::default());
    let direction = &found.directions[0];
    assert_eq!((direction.pattern, direction.period), (LossPattern::Scattered, None));
    assert!((30..100).contains(&direction.loss_count) && direction.stalls.is_empty(), "{direction:?}");
}

#[test]
fn a_sound_device_has_nothing_to_report() {
    let (outcome, found) = run(&soak(1_000.0, 120), device(300_000.0), Tester::default());
    let direction = &found.directions[0];
    assert_eq!((direction.pattern, direction.lost, direction.stalls.len()), (LossPattern::None, 0, 0));
    assert!(!direction.drift.unwrap().significant && found.hiccups.is_empty(), "{direction:?}");
    assert!(outcome.notes.is_empty(), "{:?}", outcome.notes);
}

#[test]
fn an_interrupted_soak_tells_what_happened_until_then() {
    let tester = Tester { interrupt_after: Some(30 * SECOND), ..Tester::default() };
    let (outcome, found) = run(&soak(1_000.0, 3_600), outages([(20_000, 3_450)]), tester);
    assert_eq!((outcome.status, found.directions[0].stalls.len()), (Status::Interrupted, 1));
    assert!((28.0..29.5).contains(&found.duration_s), "{}", found.duration_s);
}

#[test]
fn what_the_tester_did_not_send_is_its_own_hiccup() {
    let outage = Disturbance { from: 30 * SECOND, length: 2 * SECOND, factor: 0.0 };
    let tester = Tester { disturbances: vec![outage], ..Tester::default() };
    let (_, found) = run(&soak(1_000.0, 60), device(300_000.0), tester);
    let [hiccup] = &found.hiccups[..] else { panic!("{:?}", found.hiccups) };
    assert!((hiccup.from_s - 30.0).abs() < 0.11 && (hiccup.until_s - 32.0).abs() < 0.11, "{hiccup:?}");
    assert_eq!((hiccup.unsent.abs_diff(2_000) <= 1, hiccup.lost, found.hiccup_count), (true, 0, 1));
    assert_eq!((found.directions[0].stall_count, found.directions[0].loss_count), (0, 0));
}

/// A machine that is disturbed in some samples, under a device that counts.
struct Noisy {
    sample: usize,
    disturbed: std::ops::Range<usize>,
    counted: DeviceCounted,
}

impl Observer for Noisy {
    fn sample(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        self.counted.received += sample.directions[0].offered;
        self.sample += 1;
        Ok(())
    }

    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Noisy {
    fn noise(&mut self, _load: Load) -> trial::Noise {
        let disturbed = self.disturbed.contains(&self.sample).then(|| "a backup ran".to_owned());
        trial::Noise { disturbed, ..trial::Noise::default() }
    }

    fn device_counters(&mut self) -> Option<Vec<DeviceCounted>> {
        Some(vec![self.counted])
    }
}

#[test]
fn losses_while_the_machine_is_disturbed_are_kept_apart() {
    let device = outages([(20_000, 300), (40_000, 300)]);
    let mut engine = SimulatedEngine::new(device, Tester::default());
    // Ten samples of warm-up, whose drain ends after 50 ms; the first outage is in the samples 199 to 202.
    let mut noisy = Noisy { sample: 0, disturbed: 197..204, counted: DeviceCounted::default() };
    let found = soak(1_000.0, 60).run(&mut engine, &mut noisy);
    let found = found.finding.soak().unwrap();
    let direction = &found.directions[0];
    assert_eq!((direction.loss_count, found.hiccups.len()), (1, 1), "{direction:?}");
    assert!((direction.losses[0].from_s - 40.0).abs() < 0.11);
    assert_eq!(found.hiccups[0].cause.as_deref(), Some("a backup ran"));
    assert!(found.hiccups[0].lost > 250 && direction.lost_disturbed == found.hiccups[0].lost);
    assert!(direction.stalls.iter().map(|stall| stall.disturbed).eq([true, false]), "{:?}", direction.stalls);
    // The device's counters are those between the ends of samples.
    let during = direction.losses[0].counters.during;
    assert_eq!(during.device.unwrap().received, during.offered);
}

#[test]
fn intervals_are_few_however_long_a_soak_is() {
    let interval = |pps, seconds| Soak::interval(pps, seconds * SECOND);
    assert_eq!(interval(1e6, 60), Duration::from_millis(100));
    assert_eq!(interval(1e6, 3_600), Duration::from_millis(360));
    assert_eq!(interval(1.0, 3_600), 10 * SECOND);
    assert_eq!(interval(1.0, 5), 5 * SECOND);
    assert_eq!(interval(1e6, 30 * 86_400), Duration::from_millis(259_200));
    for (pps, seconds) in [(1e-9, 60), (f64::NAN, 60), (0.0, 60), (1e300, 2_592_000)] {
        assert!(interval(pps, seconds) >= Duration::from_millis(100));
        assert!(interval(pps, seconds) <= seconds * SECOND);
    }
}

#[test]
fn senseless_parameters_are_refused_before_anything_is_sent() {
    let base = || soak(1_000.0, 60);
    for soak in [
        Soak { pps: 0.0, ..base() },
        Soak { pps: f64::NAN, ..base() },
        Soak { duration: Duration::ZERO, ..base() },
        Soak { duration: 31 * 86_400 * SECOND, ..base() },
        Soak { pps: 0.01, ..base() },
        Soak { duration: 86_400 * SECOND, ..base() },
    ] {
        let mut engine = SimulatedEngine::new(Device::default(), Tester::default());
        let outcome = soak.run(&mut engine, &mut Silent);
        assert!(matches!(outcome.failure, Some(Failure::Refused(_))), "{soak:?}");
        assert_eq!(engine.now(), Duration::ZERO);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_happens_the_findings_add_up(
        device in any_device(), tester in any_tester(), pps in 1.0..50_000.0f64,
    ) {
        let soak = Soak { duration: 8 * SECOND, ..soak(pps, 8) };
        let mut engine = SimulatedEngine::new(device, tester);
        let outcome = soak.run(&mut engine, &mut Silent);
        let found = outcome.finding.soak().unwrap();
        found.directions.iter().for_each(check);
        for (direction, verdict) in found.directions.iter().zip(&outcome.directions) {
            prop_assert!(direction.offered <= verdict.offered);
            prop_assert!(direction.offered - direction.lost <= verdict.forwarded);
            for stall in &direction.stalls {
                prop_assert!(stall.after_frames <= verdict.forwarded);
            }
        }
        prop_assert_eq!(outcome.status == Status::Failed, outcome.failure.is_some());
    }
}
