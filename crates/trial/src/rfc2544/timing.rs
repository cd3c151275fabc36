//! How long and how often the tests of RFC 2544 measure: nothing enters, durations leave.

use std::time::Duration;

use crate::Failure;
use crate::conditions::refuse_unless;

/// The shortest time of anything: below it, a reading costs more than it tells.
const LEAST: Duration = Duration::from_millis(50);
/// The longest time of a single trial.
const MOST: Duration = Duration::from_secs(24 * 3600);
/// The most repeats of anything.
const MOST_REPEATS: u32 = 1000;

/// Durations and repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Whether these are short ones, which do not conform to RFC 2544.
    pub quick: bool,
    /// A low load before all, which proves that traffic passes.
    pub warm_up: Duration,
    /// Between trials nothing is sent: 2 s for the last frames and 5 s for the device to become
    /// stable again (section 23).
    pub drain: Duration,
    /// Trials of the throughput that only find the way.
    pub search_trial: Duration,
    /// Trials that decide (section 24: at least 60 s).
    pub trial: Duration,
    /// One stream of the latency test (section 26.2: at least 120 s).
    pub stream: Duration,
    /// How many of them (at least 20).
    pub streams: u32,
    /// The longest burst (section 26.4: at least 2 s).
    pub burst: Duration,
    /// How often the longest burst without loss is searched for (at least 50 times).
    pub bursts: u32,
    /// The overload before recovery (section 26.5: at least 60 s).
    pub overload: Duration,
    /// How often recovery is measured.
    pub overloads: u32,
    /// How long recovery is watched.
    pub recovery_watch: Duration,
    /// How long is watched after a reset.
    pub reset_watch: Duration,
}

impl Timing {
    /// The durations and repeats that the RFC asks for.
    #[must_use]
    pub fn standard() -> Self {
        Self {
            quick: false,
            warm_up: Duration::from_secs(2),
            drain: Duration::from_secs(7),
            search_trial: Duration::from_secs(1),
            trial: Duration::from_secs(60),
            stream: Duration::from_secs(120),
            streams: 20,
            burst: Duration::from_secs(2),
            bursts: 50,
            overload: Duration::from_secs(60),
            overloads: 3,
            recovery_watch: Duration::from_secs(5),
            reset_watch: Duration::from_secs(60),
        }
    }

    /// Short ones, to see what there is to see in half a minute.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            quick: true,
            warm_up: Duration::from_millis(500),
            drain: Duration::from_millis(200),
            search_trial: Duration::from_millis(250),
            trial: Duration::from_secs(1),
            stream: Duration::from_secs(1),
            streams: 2,
            burst: Duration::from_millis(500),
            bursts: 3,
            overload: Duration::from_secs(2),
            overloads: 1,
            recovery_watch: Duration::from_secs(1),
            reset_watch: Duration::from_secs(2),
        }
    }

    /// # Errors
    /// [`Failure::Refused`] when a duration or count is out of its range.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let durations = [
            ("warm-up", self.warm_up),
            ("drain", self.drain),
            ("trial of the search", self.search_trial),
            ("trial", self.trial),
            ("latency stream", self.stream),
            ("longest burst", self.burst),
            ("overload", self.overload),
            ("recovery watch", self.recovery_watch),
            ("reset watch", self.reset_watch),
        ];
        for (name, duration) in durations {
            refuse_unless((LEAST..=MOST).contains(&duration), || {
                format!("a {name} of {duration:?} is out of range: give {LEAST:?} to 24 hours")
            })?;
        }
        let counts =
            [("latency streams", self.streams), ("bursts", self.bursts), ("overloads", self.overloads)];
        for (name, count) in counts {
            refuse_unless((1..=MOST_REPEATS).contains(&count), || {
                format!("{count} {name} are out of range: give 1 to {MOST_REPEATS}")
            })?;
        }
        Ok(())
    }
}
