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
    /// After a trial nothing is sent, so that the last frames can return (section 23: 2 s).
    pub drain: Duration,
    /// Then the device has this time to become stable again (section 23: at least 5 s). Zero also
    /// ends the drain as soon as all frames have returned.
    pub settle: Duration,
    /// Trials of the throughput that only find the way (section 24 allows short ones).
    pub search_trial: Duration,
    /// Trials that decide on the throughput (section 24: at least 60 s).
    pub trial: Duration,
    /// How long the throughput is searched for at most.
    pub search: Duration,
    /// Trials of the frame loss rate (section 24: at least 60 s).
    pub loss_trial: Duration,
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
    /// How long the device forwards before it is reset (RFC 6201 section 4.1: at least 15 s).
    pub before_reset: Duration,
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
            drain: Duration::from_secs(2),
            settle: Duration::from_secs(5),
            search_trial: Duration::from_secs(1),
            trial: Duration::from_secs(60),
            search: Duration::from_secs(30 * 60),
            loss_trial: Duration::from_secs(60),
            stream: Duration::from_secs(120),
            streams: 20,
            burst: Duration::from_secs(2),
            bursts: 50,
            overload: Duration::from_secs(60),
            overloads: 3,
            recovery_watch: Duration::from_secs(5),
            before_reset: Duration::from_secs(15),
            reset_watch: Duration::from_secs(60),
        }
    }

    /// Short ones, to see what there is to see in less than half a minute. Trials of the throughput
    /// remain the longest, because a queue hides an overload from short ones; and all of them are
    /// equally long, because those that find the way would be led astray in the same manner.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            quick: true,
            warm_up: Duration::from_millis(300),
            drain: Duration::from_millis(200),
            settle: Duration::ZERO,
            search_trial: Duration::from_secs(1),
            trial: Duration::from_secs(1),
            search: Duration::from_secs(9),
            loss_trial: Duration::from_millis(200),
            stream: Duration::from_millis(500),
            streams: 2,
            burst: Duration::from_millis(250),
            bursts: 3,
            overload: Duration::from_secs(1),
            overloads: 1,
            recovery_watch: Duration::from_millis(500),
            before_reset: Duration::from_millis(500),
            reset_watch: Duration::from_millis(1500),
        }
    }

    /// How long nothing is sent between two trials, at most.
    #[must_use]
    pub fn pause(&self) -> Duration {
        self.drain.saturating_add(self.settle)
    }

    /// # Errors
    /// [`Failure::Refused`] when a duration or count is out of its range.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let durations = [
            ("warm-up", self.warm_up),
            ("drain", self.drain),
            ("trial of the search", self.search_trial),
            ("trial", self.trial),
            ("search", self.search),
            ("trial of the loss rate", self.loss_trial),
            ("latency stream", self.stream),
            ("longest burst", self.burst),
            ("overload", self.overload),
            ("recovery watch", self.recovery_watch),
            ("forwarding before a reset", self.before_reset),
            ("reset watch", self.reset_watch),
        ];
        refuse_unless(self.settle <= MOST, || {
            format!("a rest of {:?} is out of range: give at most 24 hours", self.settle)
        })?;
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
