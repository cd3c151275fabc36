//! One direction of a soak, interval by interval: samples and the device's own counters enter, what
//! the findings are made from leaves. Pure.

use results::record::{Counted, DeviceCounted, Phase, Sample};

/// What the device had counted in each direction, from its start until a sample ended; `None` where
/// it does not count.
pub(crate) type Reading = Option<Vec<DeviceCounted>>;

/// One direction in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Interval {
    /// Since the run's start.
    pub(crate) from_s: f64,
    pub(crate) duration_s: f64,
    pub(crate) offered: u64,
    pub(crate) forwarded: u64,
    pub(crate) unsent: u64,
    pub(crate) mean_ns: Option<f64>,
    /// Whether the tester or its machine was held up.
    pub(crate) disturbed: bool,
    /// Whether it belongs to the soak, not to the warm-up.
    pub(crate) measured: bool,
    /// What the device had counted when it ended.
    pub(crate) device: Option<DeviceCounted>,
}

impl Interval {
    pub(crate) fn until_s(&self) -> f64 {
        self.from_s + self.duration_s
    }

    pub(crate) fn lost(&self) -> u64 {
        self.offered.saturating_sub(self.forwarded)
    }

    /// Whether frames left and none came back.
    pub(crate) fn is_silent(&self) -> bool {
        self.offered > 0 && self.forwarded == 0
    }

    /// How long frames passed in it, if they all passed before the first or after the last loss.
    pub(crate) fn passing_s(&self) -> f64 {
        self.duration_s * self.forwarded as f64 / self.offered.max(1) as f64
    }
}

/// Whether the tester or its machine was held up during a sample.
pub(crate) fn is_disturbed(sample: &Sample) -> bool {
    sample.disturbed.is_some() || sample.directions.iter().any(|direction| direction.unsent > 0)
}

/// `direction` of all `samples`; `readings` has one for each sample, as far as it goes.
pub(crate) fn intervals(samples: &[Sample], readings: &[Reading], direction: usize) -> Vec<Interval> {
    let each = samples.iter().enumerate().filter_map(|(at, sample)| {
        let counted = sample.directions.get(direction)?;
        let device = readings.get(at).and_then(|reading| reading.as_ref()?.get(direction).copied());
        Some(Interval {
            from_s: sample.at_s,
            duration_s: sample.duration_s,
            offered: counted.offered,
            forwarded: counted.forwarded,
            unsent: counted.unsent,
            mean_ns: counted.latency.map(|latency| latency.mean_ns),
            disturbed: is_disturbed(sample),
            measured: sample.phase == Phase::Hold,
            device,
        })
    });
    each.collect()
}

/// What was counted in `intervals`, which follow on `before`.
pub(crate) fn counted(before: Option<&Interval>, intervals: &[Interval]) -> Counted {
    let sum = |frames: fn(&Interval) -> u64| intervals.iter().map(frames).sum();
    let zero = Some(DeviceCounted::default());
    let first = before.map_or(zero, |before| before.device);
    let last = intervals.last().or(before).map_or(zero, |last| last.device);
    let device = first.zip(last).map(|(first, last)| DeviceCounted {
        received: last.received.saturating_sub(first.received),
        forwarded: last.forwarded.saturating_sub(first.forwarded),
    });
    Counted {
        offered: sum(|interval| interval.offered),
        forwarded: sum(|interval| interval.forwarded),
        unsent: sum(|interval| interval.unsent),
        device,
    }
}
