//! Counts of one interval enter, the record's [`Sample`] leaves.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::{Counts, Interval, Load, Untaken};
use results::record::{DirectionSample, Latency, Phase, Sample};
use stats::Histogram;
use wire::size::{pps_to_l1_bps, pps_to_l2_bps};

use crate::undisturbed::left_out;

/// One interval as the engine counted it.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) interval: Interval,
    pub(crate) phase: Phase,
    pub(crate) load: Load,
    /// Since the engine was made.
    pub(crate) began: Duration,
    pub(crate) ended: Duration,
    /// Whether it lasted for less than a tenth of its planned time.
    pub(crate) hardly_began: bool,
    pub(crate) dut_core_busy: Option<f64>,
    pub(crate) disturbed: Option<String>,
    /// The share of its frames whose loss that may account for, 0 to 1.
    pub(crate) noise: Option<f64>,
    /// Whether that lasted all the time.
    pub(crate) lasting: bool,
    /// One for each direction.
    pub(crate) counts: Vec<Counts>,
}

/// Frames that tell of the device, those that left undisturbed where that is known, in the direction with
/// the fewest: a share of them is a share of any.
pub(crate) fn fewest_judged(sample: &Sample) -> u64 {
    let judged = |it: &DirectionSample| it.undisturbed.map_or(it.offered, |undisturbed| undisturbed.offered);
    sample.directions.iter().map(judged).min().unwrap_or_default()
}

/// Frames that left in all directions.
pub(crate) fn offered(sample: &Sample) -> u64 {
    sample.directions.iter().map(|direction| direction.offered).sum()
}

/// Frames lost in all directions.
pub(crate) fn lost(sample: &Sample) -> u64 {
    sample.directions.iter().map(|direction| direction.offered.saturating_sub(direction.forwarded)).sum()
}

/// Frames lost in interruptions whose time is known, in all directions.
pub(crate) fn lost_in_interruptions(sample: &Sample) -> u64 {
    let lost = |direction: &DirectionSample| {
        left_out(direction.offered.saturating_sub(direction.forwarded), direction.undisturbed)
    };
    sample.directions.iter().filter_map(lost).sum()
}

/// Median and 99th percentile of what returned between two readings of the histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Percentiles {
    p50_ns: u64,
    p99_ns: u64,
}

impl Percentiles {
    /// `None` when nothing returned.
    pub(crate) fn of(histogram: &Histogram) -> Option<Self> {
        let (p50_ns, p99_ns) = (histogram.percentile(50.0)?, histogram.percentile(99.0)?);
        Some(Self { p50_ns, p99_ns })
    }
}

impl Measured {
    /// Whether no frame was due in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.iter().all(|counts| counts.offered == 0 && counts.unsent == 0)
    }

    /// How long the interval was: by what the engine intended to send at its rate, because the
    /// engine's own bounds are those that the counts belong to; else by our clock around it. So is an interval of less than
    /// one frame: a worker that had no core for all of it notes it as a nanosecond, and a frame of it would be 1 Gpps.
    fn duration_s(&self) -> f64 {
        let intended = self.counts.first().map_or(0.0, |counts| counts.intended);
        match self.load {
            Load::Rate(pps) if pps > 0.0 && intended >= 1.0 => intended / pps,
            _ => self.ended.saturating_sub(self.began).as_secs_f64(),
        }
    }

    /// The sample of a run that started at `started`. `percentiles` has one for each direction.
    ///
    /// Minimum, mean and maximum are exact for the frames that *left* in the interval; the
    /// percentiles are of the frames that *returned* about that time (the engine keeps one
    /// histogram, not one for each interval), bounded by the exact minimum and maximum.
    pub(crate) fn sample(&self, started: Duration, percentiles: &[Option<Percentiles>]) -> Sample {
        let duration_s = self.duration_s();
        let directions = self.counts.iter().enumerate().map(|(direction, counts)| {
            let percentiles = percentiles.get(direction).copied().flatten();
            direction_sample(counts, self.load, duration_s, percentiles)
        });
        Sample {
            at_s: self.began.saturating_sub(started).as_secs_f64(),
            duration_s,
            phase: self.phase,
            dut_core_busy: self.dut_core_busy,
            disturbed: self.disturbed.clone(),
            noise: self.noise,
            directions: directions.collect(),
        }
    }
}

fn direction_sample(
    counts: &Counts,
    load: Load,
    duration_s: f64,
    percentiles: Option<Percentiles>,
) -> DirectionSample {
    let rate = |frames: f64| if duration_s > 0.0 { frames / duration_s } else { 0.0 };
    let forwarded_pps = rate(counts.forwarded as f64);
    let frame_size = counts.forwarded_bytes as f64 / counts.forwarded.max(1) as f64;
    let lost = counts.offered.saturating_sub(counts.forwarded);
    DirectionSample {
        intended_pps: match load {
            Load::Idle => 0.0,
            Load::Rate(pps) => pps,
            Load::Max | Load::Burst { .. } => rate(counts.intended),
        },
        offered_pps: rate(counts.offered as f64),
        forwarded_pps,
        offered: counts.offered,
        forwarded: counts.forwarded,
        unsent: counts.unsent,
        untaken: in_words(counts.untaken),
        loss_ratio: lost as f64 / counts.offered.max(1) as f64,
        l1_bps: pps_to_l1_bps(forwarded_pps, frame_size),
        l2_bps: pps_to_l2_bps(forwarded_pps, frame_size),
        undisturbed: None,
        latency: percentiles.filter(|_| counts.forwarded > 0).map(|p| latency(counts, p)),
    }
}

/// Frames that a port did not take, by reason, as the record has them.
pub(crate) fn in_words(untaken: Untaken) -> BTreeMap<String, u64> {
    untaken.reasons().map(|(reason, frames)| (reason.to_owned(), frames)).collect()
}

/// Frames that ports did not take, in all directions.
pub(crate) fn untaken(sample: &Sample) -> u64 {
    sample.directions.iter().flat_map(|direction| direction.untaken.values()).sum()
}

fn latency(counts: &Counts, percentiles: Percentiles) -> Latency {
    let (min_ns, max_ns) = (counts.latency_min, counts.latency_max.max(counts.latency_min));
    Latency {
        min_ns,
        mean_ns: counts.latency_sum as f64 / counts.forwarded.max(1) as f64,
        p50_ns: percentiles.p50_ns.clamp(min_ns, max_ns),
        p99_ns: percentiles.p99_ns.clamp(min_ns, max_ns),
        max_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(load: Load, counts: Counts) -> Measured {
        Measured {
            interval: 0,
            phase: Phase::Ramp,
            load,
            began: Duration::from_millis(2_500),
            ended: Duration::from_millis(3_000),
            hardly_began: false,
            disturbed: None,
            noise: None,
            lasting: false,
            dut_core_busy: Some(0.5),
            counts: vec![counts],
        }
    }

    #[test]
    fn counts_become_rates() {
        let counts = Counts {
            intended: 1000.0,
            offered: 900,
            offered_bytes: 57_600,
            forwarded: 450,
            forwarded_bytes: 28_800,
            unsent: 100,
            untaken: Untaken { queue_full: 90, ..Untaken::default() },
            latency_min: 1_000,
            latency_max: 9_000,
            latency_sum: 900_000,
        };
        let mut histogram = Histogram::default();
        histogram.record(2_000, 99);
        histogram.record(50_000, 1);
        let percentiles = [Percentiles::of(&histogram)];
        let sample = measured(Load::Rate(2_000.0), counts).sample(Duration::from_millis(500), &percentiles);
        assert_eq!((sample.at_s, sample.duration_s), (2.0, 0.5));
        let direction = &sample.directions[0];
        assert_eq!((direction.intended_pps, direction.offered_pps), (2_000.0, 1_800.0));
        assert_eq!((direction.forwarded_pps, direction.loss_ratio), (900.0, 0.5));
        assert_eq!((direction.l1_bps, direction.l2_bps), (900.0 * 84.0 * 8.0, 900.0 * 64.0 * 8.0));
        assert_eq!(direction.untaken["the driver's transmit queue was full"], 90);
        let latency = direction.latency.unwrap();
        assert_eq!((latency.min_ns, latency.mean_ns, latency.max_ns), (1_000, 2_000.0, 9_000));
        assert!(latency.p50_ns.abs_diff(2_000) < 64 && latency.p99_ns.abs_diff(2_000) < 64);
    }

    #[test]
    fn the_engine_knows_best_how_long_an_interval_was() {
        let counts = Counts { intended: 480.0, offered: 480, ..Counts::default() };
        let sample = measured(Load::Rate(1_000.0), counts).sample(Duration::ZERO, &[]);
        assert_eq!((sample.duration_s, sample.directions[0].offered_pps), (0.48, 1_000.0));
        let sample = measured(Load::Max, counts).sample(Duration::ZERO, &[]);
        assert_eq!((sample.duration_s, sample.directions[0].offered_pps), (0.5, 960.0));
        let counts = Counts { intended: 5e-5, offered: 1, ..Counts::default() };
        let sample = measured(Load::Rate(50_000.0), counts).sample(Duration::ZERO, &[]);
        assert_eq!((sample.duration_s, sample.directions[0].offered_pps), (0.5, 2.0));
    }

    #[test]
    fn an_interval_without_frames_or_time_has_rates_of_zero() {
        let mut empty = measured(Load::Max, Counts::default());
        empty.ended = empty.began;
        let sample = empty.sample(Duration::from_secs(9), &[]);
        assert_eq!(sample.directions[0], DirectionSample::default());
        assert_eq!(sample.at_s, 0.0);
    }
}
