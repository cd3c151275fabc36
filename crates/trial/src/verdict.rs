//! The verdict on each direction: final samples and totals enter, [`Direction`]s leave. Pure.
//!
//! **Lossy.** One lost frame of 100 is 1 %, and says nothing. So consecutive samples are pooled
//! into windows until a window holds 1/threshold frames, and a window is lossy when
//! lost > threshold × offered + 1. The one frame of grace is the most that a device which drops
//! exactly every (1/threshold)th frame can exceed its share by, wherever a window begins. A
//! sample is lossy when its window is. So a loss of up to twice the threshold shows only in
//! samples of several thousand frames, and a greater one in windows of any size. With a
//! threshold of 0 every sample is its own window and there is no grace.
//!
//! **Highest rate at or below the threshold**: walk back from the end over the final run of lossy
//! samples; the highest rate offered before it, in a sample that is not lossy, is the result. From
//! lossy samples below the device recovered: they are counted, and do not set the limit. So is a final run of at
//! most a tenth of the hold: nine tenths of it were held.
//!
//! **Rates.** An interval is bounded by readings of a clock, whose jitter would favour the
//! shortest; so a rate offered is never taken above the one intended, and what was forwarded is
//! the same share of it as of the frames.
//!
//! **Limit.** The tester, if it fell more than 1 % short of what was intended in the first sample
//! of the final lossy run and in most of the first five; else the device. Without such a run the
//! line rate, if the target was reached within 1 % and the tester did not fall short in most samples that it was
//! asked for in; else the tester.
//!
//! **Forwarded rate.** The highest mean over windows of at least 0.5 s, so that one burst is no
//! peak; also what came back in the sample that set the rate above, which thus exceeds it by
//! no more than the loss threshold and a few frames.

mod evidence;

use std::collections::BTreeMap;
use std::ops::Range;

use engine::Totals;
use results::record::{Direction, DirectionSample, LimitedBy, Phase, Sample, Stall};
use stats::Histogram;

use crate::sample::in_words;
use wire::size::{pps_to_l1_bps, pps_to_l2_bps};

/// How near to a target counts as reaching it, and how much less than intended as falling short.
const TOLERANCE: f64 = 0.01;
/// The shortest window of a forwarded rate.
const PEAK_WINDOW_S: f64 = 0.5;
/// A tester at its limit sends in bursts, and a device may lose some of that, but not this share.
const OVERLOAD: f64 = 0.05;
/// How many samples say what set a limit.
const WITNESSES: usize = 5;
/// How many silent samples make a stall, and lossy ones a limit in a run that was cut short.
const ENOUGH_SAMPLES: usize = 3;

/// The name of a direction in records: `0->1` or `1->0`.
#[must_use]
pub fn direction_name(direction: usize) -> String {
    if direction == 0 { "0->1".into() } else { "1->0".into() }
}

/// What a run is judged by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judge {
    /// More than this share of its frames lost makes a sample lossy.
    pub loss_threshold: f64,
    /// The line rate (L1) of each direction, in bits a second.
    pub line_rate_bps: f64,
    /// What the load was to reach; `None` when it was as much as the tester could.
    pub target_pps: Option<f64>,
    /// Whether the run came to its end.
    pub complete: bool,
}

impl Judge {
    /// The verdict on each direction that `totals` has.
    #[must_use]
    pub fn directions(&self, samples: &[Sample], totals: &[Totals]) -> Vec<Direction> {
        let verdict = |(direction, totals)| self.direction(samples, direction, totals);
        totals.iter().enumerate().map(verdict).collect()
    }

    fn direction(&self, samples: &[Sample], direction: usize, totals: &Totals) -> Direction {
        let points = Point::measured(samples, direction);
        let lossy = self.lossy(&points);
        let finding = self.find(&points, &lossy);
        let stalled = stall(samples, direction);
        let peak = peak(&points, finding.best.as_ref());
        let frame_size = mean_frame_size(&points);
        let l1_bps = pps_to_l1_bps(peak, frame_size);
        let line_share = if self.line_rate_bps > 0.0 { l1_bps / self.line_rate_bps } else { 0.0 };
        let limited_by =
            if stalled.is_some() { LimitedBy::Dut } else { self.limit(&points, &finding, line_share) };
        Direction {
            name: direction_name(direction),
            max_rate_pps: finding.lossless_pps(),
            unshared_rate_pps: None,
            max_forwarded_pps: peak,
            l1_bps,
            l2_bps: pps_to_l2_bps(peak, frame_size),
            line_rate_percent: line_share * 100.0,
            limited_by,
            results: BTreeMap::new(),
            stalled,
            lossy_samples_below: finding.recovered,
            evidence: evidence::of(&points, &lossy, &finding, limited_by, self.loss_threshold),
            offered: totals.offered,
            refused: totals.refused,
            forwarded: totals.forwarded,
            unsent: totals.unsent,
            untaken: in_words(totals.untaken),
            duplicates: totals.duplicates,
            reordered: totals.reordered,
            returned: totals.returned,
            foreign: totals.foreign,
            lateness_ns: buckets(&totals.lateness),
            latency_ns: buckets(&totals.latency),
        }
    }

    /// Where losses begin for good, and the best sample before.
    fn find<'a>(&self, points: &[Point<'a>], lossy: &[bool]) -> Finding<'a> {
        let kept = lossy.iter().rposition(|lossy| !lossy).map_or(0, |last| last + 1);
        let held = points.iter().filter(|point| point.phase == Phase::Hold).count();
        let excused = points.get(kept).is_some_and(|first| first.phase == Phase::Hold)
            && (points.len() - kept) * 10 <= held;
        let loss_begins = if excused { points.len() } else { kept };
        let before = || points.iter().zip(lossy).take(loss_begins);
        let best = before().filter(|(_, lossy)| !**lossy).map(|(point, _)| *point);
        let best = best.max_by(|a, b| a.offered_pps().total_cmp(&b.offered_pps()));
        let over = |point: &Point| point.sample.loss_ratio > self.loss_threshold;
        Finding {
            loss_begins,
            best,
            recovered: before().filter(|(point, lossy)| **lossy && over(point)).count(),
        }
    }

    /// Whether each sample is lossy.
    fn lossy(&self, points: &[Point]) -> Vec<bool> {
        let exact = self.loss_threshold > 0.0;
        let enough = if exact { 1.0 / self.loss_threshold } else { 0.0 };
        let grace = if exact { 1.0 } else { 0.0 };
        let mut lossy = vec![false; points.len()];
        for window in windows(points, enough) {
            let pooled = points.get(window.clone()).unwrap_or_default();
            let offered: u64 = pooled.iter().map(|point| point.sample.offered).sum();
            let lost: u64 = pooled.iter().map(Point::lost).sum();
            let verdict = lost as f64 > self.loss_threshold * offered as f64 + grace;
            lossy.iter_mut().take(window.end).skip(window.start).for_each(|lossy| *lossy = verdict);
        }
        lossy
    }

    fn limit(&self, points: &[Point], finding: &Finding, line_share: f64) -> LimitedBy {
        let lossy = points.get(finding.loss_begins..).unwrap_or_default();
        if !lossy.is_empty() {
            let witnesses = lossy.get(..WITNESSES).unwrap_or(lossy);
            let fell_short = witnesses.first().is_some_and(Point::fell_short) && short(witnesses);
            return if fell_short && !is_overload(witnesses) {
                LimitedBy::Tester
            } else if self.complete || lossy.len() >= ENOUGH_SAMPLES {
                LimitedBy::Dut
            } else {
                LimitedBy::Unknown
            };
        }
        let reached = self.target_pps.map_or(line_share, |target| finding.lossless_pps() / target);
        let last = points.get(points.len().saturating_sub(WITNESSES)..).unwrap_or_default();
        if !last.is_empty() && reached >= 1.0 - TOLERANCE && !self.short_at_target(points) {
            LimitedBy::LineRate
        } else if !last.is_empty() && (self.complete || short(last)) {
            LimitedBy::Tester
        } else {
            LimitedBy::Unknown
        }
    }

    /// Whether the tester fell short in most of the samples that asked for the target: a queue that is empty at first
    /// takes more than what leaves in the long run.
    fn short_at_target(&self, points: &[Point]) -> bool {
        let target = self.target_pps.unwrap_or(f64::INFINITY) * (1.0 - TOLERANCE);
        let asked: Vec<_> =
            points.iter().filter(|point| point.sample.intended_pps >= target).copied().collect();
        short(&asked)
    }
}

/// Whether the device lost so much that it was overloaded by what the tester did offer.
fn is_overload(points: &[Point]) -> bool {
    let offered: u64 = points.iter().map(|point| point.sample.offered).sum();
    let lost: u64 = points.iter().map(Point::lost).sum();
    lost as f64 > offered as f64 * OVERLOAD
}

/// One direction of one sample of the ramp or the hold.
#[derive(Clone, Copy, Debug)]
struct Point<'a> {
    phase: Phase,
    duration_s: f64,
    /// The share of its frames whose loss other activity on the host may account for, where there was any.
    sample_noise: Option<f64>,
    sample: &'a DirectionSample,
}

impl<'a> Point<'a> {
    /// All but the warm-up, and the trials of a search after a load that rose.
    fn measured(samples: &'a [Sample], direction: usize) -> Vec<Self> {
        let rises = samples.iter().any(|sample| sample.phase == Phase::Ramp);
        let is_measured = |phase| phase != Phase::WarmUp && !(rises && phase == Phase::Trial);
        let measured = samples.iter().filter(|sample| is_measured(sample.phase));
        let points = measured.filter_map(|sample| {
            let Sample { phase, duration_s, .. } = *sample;
            // Where nobody estimated it, it may account for all.
            let sample_noise = sample.disturbed.as_ref().map(|_| sample.noise.unwrap_or(1.0));
            sample.directions.get(direction).map(|sample| Self { phase, duration_s, sample_noise, sample })
        });
        points.collect()
    }

    fn lost(&self) -> u64 {
        self.sample.offered.saturating_sub(self.sample.forwarded)
    }

    fn offered_pps(&self) -> f64 {
        self.sample.offered_pps.min(self.sample.intended_pps)
    }

    fn forwarded_pps(&self) -> f64 {
        self.offered_pps() * self.sample.forwarded as f64 / self.sample.offered.max(1) as f64
    }

    /// Whether the tester sent less than it was asked to, by more than a frame.
    fn fell_short(&self) -> bool {
        let intended = self.sample.intended_pps * self.duration_s;
        (self.sample.offered as f64) < intended * (1.0 - TOLERANCE) - 1.0
    }
}

/// What the samples of one direction show.
#[derive(Debug)]
struct Finding<'a> {
    /// Where the final run of lossy samples begins; the number of samples if there is none.
    loss_begins: usize,
    /// The sample of the highest rate without loss before that.
    best: Option<Point<'a>>,
    /// Lossy samples before that, after which the device recovered.
    recovered: usize,
}

impl Finding<'_> {
    fn lossless_pps(&self) -> f64 {
        self.best.as_ref().map_or(0.0, Point::offered_pps)
    }
}

/// Whether the tester fell short in most of `points`.
fn short(points: &[Point]) -> bool {
    points.iter().filter(|point| point.fell_short()).count() * 2 > points.len()
}

/// Divides `points` into windows of at least `enough` frames; what remains at the end belongs to
/// the last one.
fn windows(points: &[Point], enough: f64) -> Vec<Range<usize>> {
    let mut windows: Vec<Range<usize>> = Vec::new();
    let (mut start, mut frames) = (0, 0);
    for (index, point) in points.iter().enumerate() {
        frames += point.sample.offered;
        if frames as f64 >= enough {
            windows.push(start..index + 1);
            (start, frames) = (index + 1, 0);
        }
    }
    if start < points.len() {
        let start = windows.pop().map_or(0, |last| last.start);
        windows.push(start..points.len());
    }
    windows
}

/// The highest forwarded rate: over windows of [`PEAK_WINDOW_S`], and of `best`.
fn peak(points: &[Point], best: Option<&Point>) -> f64 {
    let mut peak = best.map_or(0.0, Point::forwarded_pps);
    let (mut frames, mut seconds, mut oldest) = (0.0, 0.0, 0);
    let mut means = 0;
    for point in points {
        frames += point.forwarded_pps() * point.duration_s;
        seconds += point.duration_s;
        while let Some(old) = points.get(oldest).filter(|old| seconds - old.duration_s >= PEAK_WINDOW_S) {
            frames -= old.forwarded_pps() * old.duration_s;
            seconds -= old.duration_s;
            oldest += 1;
        }
        if seconds >= PEAK_WINDOW_S {
            peak = peak.max(frames / seconds);
            means += 1;
        }
    }
    // A run shorter than one window is one window.
    if means == 0 && seconds > 0.0 { peak.max(frames / seconds) } else { peak }
}

/// Bytes of the mean frame that came back, FCS included.
fn mean_frame_size(points: &[Point]) -> f64 {
    let sum = |value: fn(&DirectionSample) -> f64| -> f64 {
        points.iter().map(|point| value(point.sample) * point.duration_s).sum()
    };
    let (bits, frames) = (sum(|sample| sample.l2_bps), sum(|sample| sample.forwarded_pps));
    if frames > 0.0 { bits / 8.0 / frames } else { 0.0 }
}

/// When and after how many frames the device stopped for good: it forwarded before, and nothing
/// of what was offered in the last samples, of any phase.
fn stall(samples: &[Sample], direction: usize) -> Option<Stall> {
    let offered: Vec<(&Sample, &DirectionSample)> = samples
        .iter()
        .filter_map(|sample| Some((sample, sample.directions.get(direction)?)))
        .filter(|(_, direction)| direction.offered > 0)
        .collect();
    let silent = offered.iter().rev().take_while(|(_, direction)| direction.forwarded == 0).count();
    let before = offered.get(..offered.len() - silent)?;
    let (sample, last) = before.last().filter(|_| silent >= ENOUGH_SAMPLES)?;
    let share = (last.forwarded as f64 / last.offered as f64).min(1.0);
    Some(Stall {
        at_s: sample.at_s + sample.duration_s * share,
        after_frames: before.iter().map(|(_, direction)| direction.forwarded).sum(),
    })
}

fn buckets(histogram: &Histogram) -> Vec<(u64, u64)> {
    histogram.buckets().collect()
}

#[cfg(test)]
mod tests;
