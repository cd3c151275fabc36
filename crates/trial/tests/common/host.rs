//! A host that disturbs a device, and the monitor that sees most of it: a seed enters; disturbances of a
//! simulated device leave, and noise as the real monitor tells it.
//!
//! What it does is what was seen on a virtual machine of two cores (benchmarks/results/2026-11-21-epyc-2-cores/search.md):
//! daemons and the hypervisor take a core up to ten times a second, mostly for less than 2 ms, seldom for 50;
//! together up to 8 % of it. For a tenth of the time, in stretches of seconds, the cores are far apart and a
//! device forwards seven tenths. What a monitor cannot see are stretches shorter than its timer's period, a
//! quarter of a millisecond, and here one in fifty of the others.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use engine::simulated::{Disturbance, SimulatedEngine};
use engine::{Capabilities, Counts, Engine, Error, Interval, Load, Timeline, Totals};
use stats::Random;
use trial::{Interruption, Noise, Observer, Surroundings};

/// What a host does in this long is drawn.
const DRAWN_S: f64 = 150.0;
/// The monitor's timer strikes this often.
const TIMER: Duration = Duration::from_micros(250);
/// The share of longer interruptions that it misses.
const MISSED: f64 = 0.02;
/// What a device forwards while the cores are far apart.
const FAR: f64 = 0.7;
/// The share of a stretch that must be taken for a word of it.
const WORTH_A_WORD: f64 = 0.01;

/// An engine that tells the time to others.
pub struct Clocked {
    engine: SimulatedEngine,
    now: Rc<Cell<Duration>>,
}

impl Clocked {
    /// With the clock of `host`.
    pub fn new(engine: SimulatedEngine, host: &Host) -> Self {
        Self { engine, now: Rc::clone(&host.now) }
    }
}

impl Engine for Clocked {
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
        let result = self.engine.wait(duration);
        self.now.set(self.engine.now());
        result
    }

    fn now(&self) -> Duration {
        self.engine.now()
    }

    fn counts(&mut self, interval: Interval) -> Result<Vec<Counts>, Error> {
        self.engine.counts(interval)
    }

    fn timeline(&mut self, interval: Interval) -> Result<Option<Vec<Timeline>>, Error> {
        self.engine.timeline(interval)
    }

    fn totals(&mut self) -> Result<Vec<Totals>, Error> {
        self.engine.totals()
    }
}

/// The host, and what its monitor saw until when.
pub struct Host {
    interruptions: Vec<Disturbance>,
    seen: Vec<Disturbance>,
    far: Vec<Disturbance>,
    now: Rc<Cell<Duration>>,
    asked: Duration,
}

impl Host {
    /// One that interrupts `rate` times a second.
    pub fn new(random: &mut Random, rate: f64) -> Self {
        let interruptions = interruptions(random, rate);
        let is_seen = |it: &&Disturbance| it.length >= TIMER && random.uniform() >= MISSED;
        let seen = interruptions.iter().filter(is_seen).copied().collect();
        let far = far_stretches(random);
        Self { interruptions, seen, far, now: Rc::default(), asked: Duration::ZERO }
    }

    /// All that it does to a device.
    pub fn disturbances(&self) -> Vec<Disturbance> {
        self.interruptions.iter().chain(&self.far).copied().collect()
    }

    /// The share of the time from `from` to `until` that `stretches` took.
    fn share(stretches: &[Disturbance], from: Duration, until: Duration) -> f64 {
        let taken = |it: &Disturbance| {
            (it.from + it.length).min(until).saturating_sub(it.from.max(from)).as_secs_f64()
        };
        stretches.iter().map(taken).sum::<f64>() / (until - from).as_secs_f64().max(1e-9)
    }
}

impl Observer for Host {
    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Host {
    fn noise(&mut self, _load: Load) -> Noise {
        let (from, until) = (std::mem::replace(&mut self.asked, self.now.get()), self.now.get());
        let taken = Self::share(&self.seen, from, until);
        // As the probe, which looks ten times a second, is fooled by short ones.
        let is_far = Self::share(&self.far, from, until) > 0.1;
        let lasting = if is_far { 1.0 } else { 0.0 };
        let over = self.seen.iter().filter(|it| it.from + it.length > from && it.from < until);
        let told = over.map(|it| Interruption {
            start_ns: it.from.as_nanos() as u64,
            end_ns: (it.from + it.length).as_nanos() as u64,
            taken_ns: it.length.as_nanos() as u64,
        });
        let words = if is_far { "the cores were far apart" } else { "another task ran on core 1" };
        Noise {
            cost: (2.0 * taken).min(1.0).max(lasting),
            lasting,
            interruptions: Some(told.collect()),
            disturbed: (is_far || taken > WORTH_A_WORD).then(|| words.to_owned()),
        }
    }
}

/// About `rate` a second. Of a hundred, 70 take less than a millisecond, 25 up to 4, and 5 up to 50.
fn interruptions(random: &mut Random, rate: f64) -> Vec<Disturbance> {
    let mut at = 0.0;
    let mut found = Vec::new();
    while at < DRAWN_S {
        at += -random.uniform().ln() / rate;
        let longest = match random.below(100) {
            0..70 => 0.001,
            70..95 => 0.004,
            _ => 0.05,
        };
        let length = longest * random.uniform();
        let (from, length) = (Duration::from_secs_f64(at), Duration::from_secs_f64(length));
        found.push(Disturbance { from, length, factor: 0.0 });
        at += length.as_secs_f64();
    }
    found
}

/// Stretches of 3 to 10 s, one in a minute.
fn far_stretches(random: &mut Random) -> Vec<Disturbance> {
    let mut at = 0.0;
    let mut found = Vec::new();
    while at < DRAWN_S {
        at += -random.uniform().ln() * 55.0;
        let length = 3.0 + 7.0 * random.uniform();
        found.push(Disturbance {
            from: Duration::from_secs_f64(at),
            length: Duration::from_secs_f64(length),
            factor: FAR,
        });
        at += length;
    }
    found
}
