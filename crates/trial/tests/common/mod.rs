//! What the tests of strategies share.

pub mod host;

use std::time::Duration;

use engine::simulated::{Capacity, Device, Disturbance, SimulatedEngine, Stall, Tester};
use proptest::prelude::*;
use results::record::{Phase, Sample};
use trial::{
    Conditions, Observer, ObserverError, Outcome, Ramp, Silent, Strategy as _, Surroundings, WarmUp,
};

pub const SECOND: Duration = Duration::from_secs(1);

pub fn conditions() -> Conditions {
    Conditions {
        warm_up: WarmUp { pps: 1_000.0, duration: SECOND },
        step: Duration::from_millis(100),
        drain: SECOND,
        loss_threshold: 0.001,
        line_rate_bps: 1e9,
    }
}

/// 300 steps to 1 Mpps in 30 s, 2 s of hold.
pub fn ramp() -> Ramp {
    Ramp {
        conditions: conditions(),
        target_pps: 1e6,
        rise: 30 * SECOND,
        hold: 2 * SECOND,
        search: Duration::ZERO,
    }
}

/// A device of this capacity in each direction.
pub fn device(capacity: f64) -> Device {
    Device { capacity: Capacity::Each(capacity), queue: 64, ..Device::default() }
}

/// Runs the ramp, and checks what holds whatever the device does.
pub fn run(ramp: &Ramp, device: Device, tester: Tester) -> (Outcome, SimulatedEngine) {
    let mut engine = SimulatedEngine::new(device, tester);
    let outcome = ramp.run(&mut engine, &mut Silent);
    check(&outcome, &engine, ramp.conditions.loss_threshold);
    (outcome, engine)
}

/// Samples and verdicts account for every frame, and follow each other in time.
pub fn check(outcome: &Outcome, engine: &SimulatedEngine, threshold: f64) {
    let shortest = outcome.samples.iter().map(|sample| sample.duration_s).fold(f64::INFINITY, f64::min);
    for (direction, (verdict, truth)) in outcome.directions.iter().zip(engine.truth()).enumerate() {
        assert_eq!(verdict.offered, verdict.forwarded + truth.dropped + truth.inside);
        let sum = |frames: fn(&results::record::DirectionSample) -> u64| -> u64 {
            outcome.samples.iter().map(|sample| frames(&sample.directions[direction])).sum()
        };
        assert!(sum(|sample| sample.offered) <= verdict.offered);
        assert!(sum(|sample| sample.forwarded) <= verdict.forwarded);
        // A sample in a window that is not lossy loses its share and three frames at most.
        let most = (verdict.max_forwarded_pps + 3.0 / shortest) / (1.0 - threshold);
        assert!(verdict.max_rate_pps <= most * (1.0 + 1e-9), "{verdict:?}");
    }
    for pair in outcome.samples.windows(2) {
        assert!(pair[0].at_s + pair[0].duration_s <= pair[1].at_s + 1e-9);
    }
}

/// Remembers what it saw, and fails at a given sample.
#[derive(Debug, Default)]
pub struct Witness {
    pub phases: Vec<(Phase, Duration)>,
    pub drains: usize,
    pub samples: Vec<Sample>,
    pub settled: Vec<Sample>,
    pub asked: usize,
    pub fail_at: Option<usize>,
}

impl Observer for Witness {
    fn phase(&mut self, phase: Phase, planned: Duration) {
        self.phases.push((phase, planned));
    }

    fn drain(&mut self, _planned: Duration) {
        self.drains += 1;
    }

    fn sample(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        if self.fail_at == Some(self.samples.len()) {
            return Err("no space left on the disk of the record: free some".into());
        }
        self.samples.push(sample.clone());
        Ok(())
    }

    fn settled(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        // It is told of before the run ends, but not before it ended itself.
        assert!(self.settled.len() < self.samples.len());
        self.settled.push(sample.clone());
        Ok(())
    }

    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Witness {
    fn dut_core_busy(&mut self) -> Option<f64> {
        self.asked += 1;
        Some(self.asked as f64 / 1e6)
    }
}

pub fn milliseconds(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

fn any_disturbances() -> impl Strategy<Value = Vec<Disturbance>> {
    let disturbance = (milliseconds(0..8_000), milliseconds(0..3_000), 0.0..1.0f64)
        .prop_map(|(from, length, factor)| Disturbance { from, length, factor });
    proptest::collection::vec(disturbance, 0..3)
}

/// Any device, sensible or not.
pub fn any_device() -> impl Strategy<Value = Device> {
    let capacity = prop_oneof![
        Just(Capacity::Unlimited),
        (0.0..1e6f64).prop_map(Capacity::Each),
        (0.0..1e6f64).prop_map(Capacity::Shared),
    ];
    let stall = prop_oneof![
        (0..500_000u64).prop_map(Stall::AfterFrames),
        (0.0..1e5f64, milliseconds(0..2_000)).prop_map(|(pps, length)| Stall::below_rate(pps, length)),
    ];
    let random_loss = prop_oneof![Just(0.0), 0.0..0.01f64, 0.0..=1.0f64];
    let drop_every = proptest::option::of(0..5_000u64);
    (
        (capacity, 0..5_000u64, random_loss, drop_every),
        proptest::option::weighted(0.3, stall),
        (milliseconds(0..800), any::<[bool; 2]>(), any::<bool>(), any_disturbances(), any::<u64>()),
    )
        .prop_map(|((capacity, queue, random_loss, drop_every), stall, rest)| {
            let (base_latency, blocked, reflects, disturbances, seed) = rest;
            Device {
                capacity,
                queue,
                random_loss,
                drop_every,
                stall,
                recovers_after: None,
                base_latency,
                blocked: if seed.is_multiple_of(4) { blocked } else { [false; 2] },
                reflects,
                foreign_pps: 3.0,
                disturbances,
                seed,
            }
        })
}

pub fn any_tester() -> impl Strategy<Value = Tester> {
    let end = || proptest::option::weighted(0.2, milliseconds(0..12_000));
    (1..=2usize, 64..1514u64, 0.0..1e6f64, milliseconds(0..5), any_disturbances(), end(), end()).prop_map(
        |(directions, frame_size, max_pps, lateness, disturbances, interrupt_after, fail_after)| Tester {
            directions,
            frame_size,
            max_pps,
            lateness,
            oversleeps: Duration::ZERO,
            disturbances,
            interrupt_after,
            fail_after,
        },
    )
}
