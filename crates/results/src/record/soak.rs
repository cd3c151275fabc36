//! What a soak found: what went wrong in a long time at one load, when, and what the counters were.

use serde::{Deserialize, Serialize};

/// The findings of a soak. An interval is a sample of the record in the phase `hold`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Soak {
    /// The load asked for, of each direction, in frames per second.
    pub load_pps: f64,
    /// How long it was offered, in seconds.
    pub duration_s: f64,
    /// How long one interval is, in seconds: events within one interval are not distinguished.
    pub interval_s: f64,
    /// One for each direction.
    pub directions: Vec<SoakDirection>,
    /// When the tester or its machine was held up: what was lost then is not the device's fault.
    pub hiccups: Vec<Hiccup>,
    /// How many hiccups there were; the list ends at a thousand.
    pub hiccup_count: usize,
}

/// What one direction of a soak showed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SoakDirection {
    /// `0->1` or `1->0`.
    pub name: String,
    /// Frames that left.
    pub offered: u64,
    /// Frames of these that were lost.
    pub lost: u64,
    /// Frames of these that were lost in intervals that the tester's machine disturbed.
    pub lost_disturbed: u64,
    /// Intervals in which frames left.
    pub intervals: usize,
    /// Intervals of these in which frames were lost, disturbed ones left out.
    pub lossy_intervals: usize,
    /// How the losses are distributed over time.
    pub pattern: LossPattern,
    /// When nothing came back at all. The list ends at a thousand.
    pub stalls: Vec<SoakStall>,
    /// How many stalls there were.
    pub stall_count: usize,
    /// When frames were lost: runs of lossy intervals, stalls among them. The list ends at a thousand, and
    /// is empty where the pattern is [`LossPattern::Steady`].
    pub losses: Vec<LossEvent>,
    /// How many such runs there were.
    pub loss_count: usize,
    /// The period of the losses, if they have one; with [`LossPattern::Steady`], if each n-th frame is
    /// lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<LossPeriod>,
    /// How the latency changed over time; absent where too few intervals tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<LatencyDrift>,
}

/// How losses are spread over a soak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LossPattern {
    /// None but in disturbed intervals.
    #[default]
    None,
    /// Now and then, without a period that shows.
    Scattered,
    /// At equal distances.
    Periodic,
    /// In most intervals.
    Steady,
}

/// A time in which nothing came back of what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SoakStall {
    /// When it began, since the run's start; to an interval.
    pub from_s: f64,
    /// When frames came back again, in seconds; absent if none did until the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
    /// Frames that had come back by then, since the run's start.
    pub after_frames: u64,
    /// Whether the tester's machine was disturbed or held up meanwhile: then it may be to blame.
    pub disturbed: bool,
    /// What was counted.
    pub counters: EventCounters,
}

/// A run of intervals in which frames were lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LossEvent {
    /// When its first interval began, since the run's start.
    pub from_s: f64,
    /// When its last interval ended, in seconds.
    pub until_s: f64,
    /// Whether it falls on the period of the losses.
    pub on_period: bool,
    /// What was counted.
    pub counters: EventCounters,
}

/// What was counted from the run's start until an event, and during it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EventCounters {
    /// Until it began.
    pub before: Counted,
    /// From its first interval to its last.
    pub during: Counted,
}

/// The counters of one direction over a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counted {
    /// Frames that left the tester.
    pub offered: u64,
    /// Frames of these that came back.
    pub forwarded: u64,
    /// Frames that the tester gave up sending.
    pub unsent: u64,
    /// What the device counted itself, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceCounted>,
}

/// What the device under test counted in one direction. Read when intervals end, so frames that
/// were inside at that moment are counted in one and not yet in the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeviceCounted {
    /// Frames that it received.
    pub received: u64,
    /// Frames of these that it sent on.
    pub forwarded: u64,
}

/// The period of losses, and what speaks for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LossPeriod {
    /// What one loss is as far as any other from the next in.
    #[serde(default)]
    pub measure: Measure,
    /// From one loss to the next, in seconds.
    pub period_s: f64,
    /// When the first loss of the period was, since the run's start.
    pub phase_s: f64,
    /// Frames offered in one period: what a device that counts them would drop one of.
    pub frames: f64,
    /// Losses that fall on the period, to an interval.
    pub on_period: usize,
    /// Losses in all: runs of lossy intervals, or where most intervals are lossy, frames.
    pub losses: usize,
    /// Periods in which there was one, as a share.
    pub occupied: f64,
    /// The chance that as many losses at random times would fall so on any period.
    pub chance: f64,
}

/// What is equally long from each loss to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The time; at a constant load that cannot be told from a number of frames.
    #[default]
    Time,
    /// The number of frames offered, and not the time: the device counts.
    Frames,
}

/// How the mean latency changed over time: a straight line by Theil and Sen, which outliers do
/// not move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LatencyDrift {
    /// The slope of the line, in nanoseconds per second.
    pub slope: f64,
    /// The lower end of its 99 % confidence interval, in nanoseconds per second.
    pub slope_lower: f64,
    /// The upper end of its 99 % confidence interval, in nanoseconds per second.
    pub slope_upper: f64,
    /// Where the line begins, in nanoseconds.
    pub from_ns: f64,
    /// Where it ends, in nanoseconds.
    pub to_ns: f64,
    /// Whether the interval leaves out zero, and the change is more than 1 %.
    pub significant: bool,
}

/// A time in which the tester or its machine was held up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Hiccup {
    /// When its first interval began, since the run's start.
    pub from_s: f64,
    /// When its last interval ended, in seconds.
    pub until_s: f64,
    /// Frames that the tester gave up sending, all directions added up.
    pub unsent: u64,
    /// Frames that were lost, all directions added up.
    pub lost: u64,
    /// What disturbed the machine, if it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}
