//! The interval of a ramp against the truth: simulated devices whose limit is known, on a host that
//! interrupts them, mostly seen and sometimes not.

use std::time::Duration;

use crate::common::{conditions, device};
use engine::Load;
use engine::simulated::{Device, Disturbance, SimulatedEngine, Tester};
use results::record::{Phase, RateInterval, Sample};
use stats::Random;
use trial::{
    Conditions, Interruption, Noise, Observer, ObserverError, Ramp, Strategy as _, Surroundings, WarmUp,
};

const RUNS: usize = 100;
const STEP: Duration = Duration::from_millis(100);

/// Steps of a hundredth of the target, and no warm-up, so that intervals follow each other without a gap.
fn ramp() -> Ramp {
    let warm_up = WarmUp { pps: 1_000.0, duration: Duration::ZERO };
    Ramp {
        conditions: Conditions { warm_up, step: STEP, ..conditions() },
        target_pps: 1e6,
        rise: 100 * STEP,
        hold: 10 * STEP,
        search: Duration::ZERO,
    }
}

/// Sees those interruptions of a device that last for a few milliseconds.
struct Host {
    interruptions: Vec<Disturbance>,
    /// Whether it tells when they were.
    tells_when: bool,
    ended_s: f64,
}

impl Observer for Host {
    fn phase(&mut self, _phase: Phase, _planned: Duration) {}

    fn sample(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        self.ended_s = sample.at_s + sample.duration_s;
        Ok(())
    }

    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Host {
    fn noise(&mut self, _load: Load) -> Noise {
        let (from, until) = (self.ended_s, self.ended_s + STEP.as_secs_f64());
        let seen = || self.interruptions.iter().filter(|it| it.length >= Duration::from_millis(3));
        let taken: f64 = seen()
            .map(|it| {
                let (start, length) = (it.from.as_secs_f64(), it.length.as_secs_f64());
                ((start + length).min(until) - start.max(from)).max(0.0)
            })
            .sum();
        let cost = (taken / (until - from) * 1.5).min(1.0);
        let disturbed = (taken > 0.0).then(|| "another task ran on core 1".to_owned());
        let in_time = seen().filter(|it| (from..until).contains(&it.from.as_secs_f64()));
        let told = in_time.map(|it| Interruption {
            start_ns: it.from.as_nanos() as u64,
            end_ns: (it.from + it.length).as_nanos() as u64,
            taken_ns: it.length.as_nanos() as u64,
        });
        let interruptions = self.tells_when.then(|| told.collect());
        Noise { cost, disturbed, interruptions, ..Noise::default() }
    }
}

/// About `rate` of them a second, of 1 to 20 ms.
fn interruptions(random: &mut Random, rate: f64) -> Vec<Disturbance> {
    let mut at = 0.0;
    let mut found = Vec::new();
    while at < 11.0 {
        at += -random.uniform().max(1e-9).ln() / rate;
        let length = 0.001 * (1.0 + 19.0 * random.uniform());
        let (from, length) = (Duration::from_secs_f64(at), Duration::from_secs_f64(length));
        found.push(Disturbance { from, length, factor: 0.0 });
        at += length.as_secs_f64();
    }
    found
}

#[test]
fn intervals_hold_the_truth_on_a_host_that_interrupts() {
    let share_alone = intervals_hold_the_truth(false);
    let with_times = intervals_hold_the_truth(true);
    assert!(with_times <= share_alone, "{with_times} wide intervals, {share_alone} without times");
}

/// How many intervals are wide.
fn intervals_hold_the_truth(tells_when: bool) -> usize {
    let mut random = Random::new(7);
    let (mut wrong, mut wide) = (Vec::new(), 0);
    for _ in 0..RUNS {
        let capacity = 30_000.0 * (900.0_f64 / 30.0).powf(random.uniform());
        let queue = 16 + (random.uniform() * 1_000.0) as u64;
        let disturbances = interruptions(&mut random, 2.0);
        let device = Device { queue, disturbances: disturbances.clone(), ..device(capacity) };
        let mut engine = SimulatedEngine::new(device, Tester::default());
        let mut host = Host { interruptions: disturbances, tells_when, ended_s: 0.0 };
        let outcome = ramp().run(&mut engine, &mut host);
        let found = outcome.directions.first().and_then(|direction| direction.evidence?.limit);
        let limit = found.unwrap_or(RateInterval { lower_pps: f64::INFINITY, upper_pps: None });
        // A rate of the threshold above the capacity is still held.
        let holds = limit.lower_pps <= capacity * 1.001 && limit.upper_pps.is_none_or(|it| it >= capacity);
        if !holds {
            wrong.push((capacity, limit));
        }
        let width = limit.upper_pps.map_or(f64::INFINITY, |upper| upper - limit.lower_pps);
        wide += usize::from(width > capacity * 0.1 + 30_000.0);
    }
    assert!(wrong.len() <= RUNS / 20, "{} wrong: {wrong:?}", wrong.len());
    assert!(wide <= RUNS / 2, "{wide} of {RUNS} intervals are too wide to be of use");
    wide
}
