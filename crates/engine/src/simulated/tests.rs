//! The simulated device does what its parameters say, and no frame is lost track of.

use proptest::prelude::*;

use super::*;

fn run(engine: &mut SimulatedEngine, load: Load, seconds: f64) -> Interval {
    let interval = engine.begin(load).unwrap();
    engine.wait(Duration::from_secs_f64(seconds)).unwrap();
    interval
}

fn drain(engine: &mut SimulatedEngine) {
    run(engine, Load::Idle, 2.0);
}

/// Offers `pps` for a second; the final counts of each direction.
fn counted(device: Device, tester: Tester, pps: f64) -> Vec<Counts> {
    let mut engine = SimulatedEngine::new(device, tester);
    let interval = run(&mut engine, Load::Rate(pps), 1.0);
    drain(&mut engine);
    engine.counts(interval).unwrap()
}

#[test]
fn the_load_is_offered_to_the_frame_and_comes_back_after_the_base_latency() {
    let device = Device { base_latency: Duration::from_micros(50), ..Device::default() };
    let counts = counted(device, Tester { frame_size: 1514, ..Tester::default() }, 123_456.0)[0];
    assert!((counts.intended - 123_456.0).abs() < 1e-3);
    assert!(123_456 - counts.offered <= 1);
    assert_eq!((counts.forwarded, counts.unsent), (counts.offered, 0));
    assert_eq!(counts.forwarded_bytes, counts.forwarded * 1514);
    assert_eq!((counts.latency_min, counts.latency_max), (50_000, 50_000));
    assert_eq!(counts.latency_sum, 50_000 * counts.forwarded);
}

#[test]
fn above_capacity_the_excess_is_dropped_and_the_queue_delays_the_rest() {
    let device = Device { capacity: Capacity::Each(100_000.0), queue: 100, ..Device::default() };
    let mut engine = SimulatedEngine::new(device, Tester::default());
    let interval = run(&mut engine, Load::Rate(150_000.0), 1.0);
    drain(&mut engine);
    let counts = engine.counts(interval).unwrap()[0];
    assert!(counts.forwarded.abs_diff(100_100) <= 2, "{counts:?}");
    // A full queue of 100 frames takes 1 ms, besides 10 µs of service and 20 µs of latency.
    let p50 = engine.totals().unwrap()[0].latency.percentile(50.0).unwrap() as f64;
    assert!((p50 / 1_020_000.0 - 1.0).abs() < 0.04, "{p50}");
    assert!(counts.latency_min > 30_000 && counts.latency_min < 500_000, "{counts:?}");
    assert!(counts.latency_max.abs_diff(1_020_000) < 10_000, "{counts:?}");
}

#[test]
fn a_shared_capacity_is_divided_between_the_directions() {
    let device = Device { capacity: Capacity::Shared(300_000.0), queue: 64, ..Device::default() };
    let counts = counted(device, Tester { directions: 2, ..Tester::default() }, 250_000.0);
    for counts in counts {
        assert!(counts.forwarded.abs_diff(150_064) <= 4, "{counts:?}");
    }
}

#[test]
fn what_the_tester_cannot_send_is_unsent_and_not_lost() {
    let tester = Tester { max_pps: 80_000.0, ..Tester::default() };
    let counts = counted(Device::default(), tester.clone(), 100_000.0)[0];
    assert!(counts.offered.abs_diff(80_000) <= 1 && counts.forwarded == counts.offered);
    assert!((counts.offered + counts.unsent).abs_diff(100_000) <= 1);

    let mut engine = SimulatedEngine::new(Device::default(), tester);
    let interval = run(&mut engine, Load::Max, 1.0);
    let counts = engine.counts(interval).unwrap()[0];
    assert!(counts.offered.abs_diff(80_000) <= 1 && counts.unsent == 0);
    assert_eq!(counts.intended, counts.offered as f64);
}

#[test]
fn every_nth_frame_is_dropped() {
    let counts = counted(Device { drop_every: Some(1000), ..Device::default() }, Tester::default(), 50_000.0);
    assert_eq!(counts[0].offered - counts[0].forwarded, counts[0].offered / 1000);
}

#[test]
fn a_stall_comes_after_exactly_as_many_frames_and_lasts() {
    let device = Device { stall: Some(Stall::AfterFrames(12_345)), ..Device::default() };
    let mut engine = SimulatedEngine::new(device, Tester { directions: 2, ..Tester::default() });
    run(&mut engine, Load::Rate(10_000.0), 1.0);
    drain(&mut engine);
    let later = run(&mut engine, Load::Rate(10_000.0), 1.0);
    drain(&mut engine);
    assert_eq!(engine.totals().unwrap().iter().map(|totals| totals.forwarded).sum::<u64>(), 12_345);
    assert_eq!(engine.counts(later).unwrap()[0].forwarded, 0);
}

#[test]
fn a_low_load_stalls_the_device_that_cannot_bear_it() {
    let stall = Stall::below_rate(5_000.0, Duration::from_secs(2));
    let device = Device { stall: Some(stall), ..Device::default() };
    let mut engine = SimulatedEngine::new(device, Tester::default());
    run(&mut engine, Load::Rate(1_000.0), 1.5);
    let fast = run(&mut engine, Load::Rate(10_000.0), 1.0);
    run(&mut engine, Load::Rate(1_000.0), 2.5);
    let after = run(&mut engine, Load::Rate(10_000.0), 1.0);
    drain(&mut engine);
    assert!(engine.counts(fast).unwrap()[0].forwarded > 9_990);
    assert_eq!(engine.counts(after).unwrap()[0].forwarded, 0);
}

#[test]
fn a_device_that_stalls_at_some_rates_forwards_again_when_it_is_reset_or_after_a_pause() {
    let stall = Stall::BetweenRates { above: 5_000.0, below: 50_000.0, length: Duration::from_secs(1) };
    let device = Device { stall: Some(stall), ..Device::default() };
    let forwards = |engine: &mut SimulatedEngine, pps| {
        let interval = run(engine, Load::Rate(pps), 2.0);
        let last = run(engine, Load::Rate(pps), 0.1);
        drain(engine);
        let counted = engine.counts(interval).unwrap()[0];
        (counted.forwarded == counted.offered, engine.counts(last).unwrap()[0].forwarded > 0)
    };
    let mut engine = SimulatedEngine::new(device.clone(), Tester::default());
    assert_eq!(forwards(&mut engine, 5_000.0), (true, true));
    assert_eq!(forwards(&mut engine, 50_000.0), (true, true));
    assert_eq!(forwards(&mut engine, 10_000.0), (false, false));
    assert_eq!(forwards(&mut engine, 50_000.0), (false, false), "it has stalled for good");
    engine.reset_switch().store(true, Ordering::Relaxed);
    assert_eq!(forwards(&mut engine, 50_000.0), (true, true));
    let device = Device { recovers_after: Some(Duration::from_millis(200)), ..device };
    let mut engine = SimulatedEngine::new(device, Tester::default());
    assert_eq!(forwards(&mut engine, 10_000.0), (false, false));
    assert_eq!(forwards(&mut engine, 50_000.0), (true, true), "the drain was a pause");
}

#[test]
fn a_blocked_direction_reflects_and_foreign_frames_are_counted() {
    let blocked = [false, true];
    let device = Device { blocked, reflects: true, foreign_pps: 10.0, ..Device::default() };
    let mut engine = SimulatedEngine::new(device, Tester { directions: 2, ..Tester::default() });
    run(&mut engine, Load::Rate(1_000.0), 1.0);
    drain(&mut engine);
    let totals = engine.totals().unwrap();
    assert_eq!((totals[0].forwarded, totals[0].returned), (totals[0].offered, 0));
    assert_eq!((totals[1].forwarded, totals[1].returned), (0, totals[1].offered));
    assert!(totals[1].foreign.abs_diff(30) <= 1);
}

#[test]
fn disturbances_pass() {
    let second = Duration::from_secs(1);
    let outage = vec![Disturbance { from: second, length: second, factor: 0.0 }];
    let device = Device {
        capacity: Capacity::Each(1e6),
        queue: 10,
        disturbances: outage.clone(),
        ..Device::default()
    };
    let tester = Tester {
        disturbances: vec![Disturbance { from: 3 * second, ..outage[0] }],
        lateness: Duration::from_micros(3),
        ..Tester::default()
    };
    let mut engine = SimulatedEngine::new(device, tester);
    let intervals: Vec<_> = (0..5).map(|_| run(&mut engine, Load::Rate(10_000.0), 1.0)).collect();
    drain(&mut engine);
    let counts: Vec<_> = intervals.into_iter().map(|i| engine.counts(i).unwrap()[0]).collect();
    assert_eq!(counts[0].forwarded, counts[0].offered);
    assert!(counts[1].forwarded <= 11, "{:?}", counts[1]);
    assert_eq!(counts[2].forwarded, counts[2].offered);
    assert!(counts[3].unsent >= 9_999 && counts[4].unsent == 0);
    let totals = engine.totals().unwrap();
    assert_eq!(totals[0].lateness.total(), totals[0].offered);
}

#[test]
fn an_interrupt_comes_once_and_a_failure_stays() {
    let tester = Tester {
        interrupt_after: Some(Duration::from_millis(1_500)),
        fail_after: Some(Duration::from_secs(4)),
        ..Tester::default()
    };
    let mut engine = SimulatedEngine::new(Device::default(), tester);
    engine.begin(Load::Rate(1e5)).unwrap();
    assert!(matches!(engine.wait(Duration::from_secs(2)), Err(Error::Interrupted)));
    assert_eq!(engine.now(), Duration::from_millis(1_500));
    engine.wait(Duration::from_secs(1)).unwrap();
    for _ in 0..2 {
        assert!(matches!(engine.wait(Duration::from_secs(9)), Err(Error::Failed(_))));
        assert!(matches!(engine.begin(Load::Idle), Err(Error::Failed(_))));
    }
    assert_eq!(engine.now(), Duration::from_secs(4));
}

#[test]
fn a_burst_fills_the_queue_by_what_the_capacity_leaves_of_it() {
    const OFFERED: f64 = 1e6;
    for (capacity, queue) in [(100e3, 100), (500e3, 100), (900e3, 1_000), (333_333.0, 5_000)] {
        let device = Device { capacity: Capacity::Each(capacity), queue, ..Device::default() };
        let lossless = |frames| {
            let mut engine = SimulatedEngine::new(device.clone(), Tester::default());
            let burst = run(&mut engine, Load::Burst { pps: OFFERED, frames }, 0.2);
            drain(&mut engine);
            let counts = engine.counts(burst).unwrap()[0];
            assert_eq!((counts.offered, counts.unsent), (frames, 0));
            counts.forwarded == frames
        };
        let most = queue as f64 * OFFERED / (OFFERED - capacity);
        assert!(lossless((most * 0.98) as u64 - 2), "{most} through {capacity}");
        assert!(!lossless((most * 1.02) as u64 + 12), "{most} through {capacity}");
    }
}

#[test]
fn only_the_last_thousand_intervals_can_be_read() {
    let mut engine = SimulatedEngine::new(Device::default(), Tester::default());
    assert!(engine.counts(0).is_err());
    for expected in 0..1_001 {
        assert_eq!(engine.begin(Load::Idle).unwrap(), expected);
    }
    assert!(engine.counts(0).is_err() && engine.counts(1).is_ok());
    assert!(engine.counts(1_000).is_ok() && engine.counts(1_001).is_err());
    assert!(engine.begin(Load::Rate(f64::NAN)).is_err() && engine.begin(Load::Rate(-1.0)).is_err());
}

/// Any device, sensible or not.
fn any_device() -> impl Strategy<Value = Device> {
    let capacity = prop_oneof![
        Just(Capacity::Unlimited),
        (0.0..2e6).prop_map(Capacity::Each),
        (0.0..2e6).prop_map(Capacity::Shared),
    ];
    let milliseconds = |most: u64| (0..most).prop_map(Duration::from_millis);
    let stall = prop_oneof![
        (0..1_000_000u64).prop_map(Stall::AfterFrames),
        (0.0..1e5, milliseconds(2_000)).prop_map(|(pps, length)| Stall::below_rate(pps, length)),
    ];
    let disturbance = (milliseconds(5_000), milliseconds(2_000), 0.0..1.0)
        .prop_map(|(from, length, factor)| Disturbance { from, length, factor });
    let base_latency = (0..300_000u64).prop_map(Duration::from_micros);
    (
        capacity,
        0..5_000u64,
        prop_oneof![Just(0.0), 0.0..0.01, 0.0..=1.0],
        proptest::option::of(0..5_000u64),
        proptest::option::weighted(0.2, stall),
        base_latency,
        proptest::collection::vec(disturbance, 0..3),
        any::<u64>(),
    )
        .prop_map(
            |(capacity, queue, random_loss, drop_every, stall, base_latency, disturbances, seed)| Device {
                capacity,
                queue,
                random_loss,
                drop_every,
                stall,
                base_latency,
                disturbances,
                seed,
                ..Device::default()
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn offered_is_forwarded_and_dropped_and_inside_at_any_moment(
        device in any_device(),
        directions in 1..=2usize,
        max_pps in 1e4..2e6,
        loads in proptest::collection::vec((0.0..1e6, 1..500u64), 1..12),
    ) {
        let tester = Tester { directions, max_pps, ..Tester::default() };
        let mut engine = SimulatedEngine::new(device, tester);
        for (pps, milliseconds) in loads {
            let load = if pps < 1e5 { Load::Max } else { Load::Rate(pps) };
            engine.begin(load).unwrap();
            engine.wait(Duration::from_millis(milliseconds)).unwrap();
            let now = engine.now();
            let truths = engine.truth();
            let mut sums = vec![(0, 0, 0); directions];
            for interval in 0.. {
                let Ok(counts) = engine.counts(interval) else { break };
                for (sum, counts) in sums.iter_mut().zip(&counts) {
                    prop_assert!(counts.forwarded <= counts.offered);
                    prop_assert!((counts.intended - (counts.offered + counts.unsent) as f64).abs() < 1.01);
                    *sum = (sum.0 + counts.offered, sum.1 + counts.forwarded, sum.2 + counts.unsent);
                }
            }
            for ((totals, truth), sum) in engine.totals().unwrap().iter().zip(truths).zip(sums) {
                prop_assert_eq!(totals.offered, totals.forwarded + truth.dropped + truth.inside, "at {:?}", now);
                prop_assert_eq!((totals.offered, totals.forwarded, totals.unsent), sum);
                prop_assert_eq!(totals.latency.total(), totals.forwarded);
            }
        }
    }

    #[test]
    fn a_burst_is_sent_to_the_frame_or_unsent(
        pps in 1.0..2e6f64,
        frames in 0..100_000u64,
        share in 0.0..3.0f64,
        max_pps in 1e4..4e6,
        directions in 1..=2usize,
    ) {
        let tester = Tester { directions, max_pps, ..Tester::default() };
        let mut engine = SimulatedEngine::new(Device::default(), tester);
        let burst = run(&mut engine, Load::Burst { pps, frames }, frames as f64 / pps * share + 1e-6);
        let after = run(&mut engine, Load::Rate(100.0), 1.0);
        drain(&mut engine);
        for (counts, after) in engine.counts(burst).unwrap().iter().zip(engine.counts(after).unwrap()) {
            prop_assert_eq!(counts.intended, frames as f64);
            prop_assert_eq!(counts.offered + counts.unsent, frames);
            prop_assert_eq!(counts.forwarded, counts.offered);
            let due = (frames as f64 * share + 1.0).min(frames as f64);
            if max_pps > pps {
                prop_assert!((counts.offered as f64 - due).abs() <= 3.0, "{:?}, {} due", counts, due);
            }
            prop_assert!((after.intended - (after.offered + after.unsent) as f64).abs() < 1.01);
        }
        for (totals, truth) in engine.totals().unwrap().iter().zip(engine.truth()) {
            prop_assert_eq!(totals.offered, totals.forwarded + truth.dropped + truth.inside);
        }
    }

    #[test]
    fn below_capacity_nothing_is_lost_and_above_it_the_capacity_is_forwarded(
        capacity in 1_000.0..5e6f64,
        share in 0.01..3.0f64,
        queue in 2..1_000u64,
    ) {
        let device = Device { capacity: Capacity::Each(capacity), queue, ..Device::default() };
        let counts = counted(device, Tester::default(), capacity * share)[0];
        if share <= 1.0 {
            prop_assert_eq!(counts.forwarded, counts.offered);
        } else {
            let excess = (capacity * share - capacity) as u64;
            let most = capacity as u64 + queue.min(excess);
            prop_assert!(counts.forwarded.abs_diff(most) <= 3, "{:?} for {}", counts, most);
        }
    }
}
