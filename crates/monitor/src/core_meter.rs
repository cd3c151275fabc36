//! A core's use while a load test runs: the core enters, how busy it was in each window leaves.

use std::time::Instant;

/// How busy a core is, over windows long enough for the kernel's 10 ms ticks.
pub struct CoreMeter {
    clock: crate::CoreClock,
    since: Instant,
    last: Option<f64>,
}

impl CoreMeter {
    const WINDOW_S: f64 = 0.24;

    /// Begins to watch `core`, where the kernel tells of it.
    pub fn new(core: usize) -> Option<Self> {
        Some(Self { clock: crate::CoreClock::new(core).ok()?, since: Instant::now(), last: None })
    }

    /// Forgets what was: a new phase begins, and what the core did before is not told of it.
    pub fn restart(&mut self) {
        _ = self.clock.sample();
        (self.since, self.last) = (Instant::now(), None);
    }

    /// The share of the last window that the core was busy, 0 to 1.
    pub fn busy(&mut self) -> Option<f64> {
        if self.since.elapsed().as_secs_f64() >= Self::WINDOW_S {
            self.last = self.clock.sample().ok().map(|usage| usage.busy);
            self.since = Instant::now();
        }
        self.last
    }
}
