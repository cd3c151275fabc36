//! What the samples of one direction prove: its points with their losses and what the host did
//! meanwhile enter, [`Evidence`] leaves. Pure.
//!
//! **Excused.** A sample is excused when it was affected by other activity on the host, and lost no
//! more than the threshold in its undisturbed milliseconds; where these are not known, no more than
//! that activity may account for. An excused sample proves no loss; what passed, passed.
//!
//! **Limit of a ramp.** The upper bound is the lowest load of the final lossy run that is not
//! excused, and above which no more came back: a device that later forwards more than a load at
//! which it lost frames was disturbed there. The lower bound is the highest load that passed, but
//!
//! - no more than came back in the first samples above it: a queue hides an overload until it is full;
//! - nothing above a lossy sample below it that is not excused: such a device has no single limit.
//!
//! **Interference matters** to a ramp that the device limited, where it moved the upper bound by more
//! than one part in fifty or hid it; to one that the tester limited, where most of its last samples were
//! affected; to a saturation, where it left too few half seconds unaffected.

use results::record::{Evidence, LimitedBy, LossBegan, Phase, RateInterval, Undisturbed};

use super::{Finding, PEAK_WINDOW_S, Point};

/// The samples above a limit that say what comes back there.
const WITNESSES: usize = 3;
/// By how much interference may move an upper bound before that is worth a word.
const NEGLIGIBLE: f64 = 0.02;
/// The share of its half seconds that must be unaffected for a saturation to stand.
const ENOUGH_WINDOWS: f64 = 0.5;

/// What `points` prove, of which `lossy` are lossy, when they were judged as in `finding` and limited by
/// `limited_by`; `None` where they are of trials.
pub(super) fn of(
    points: &[Point],
    lossy: &[bool],
    finding: &Finding,
    limited_by: LimitedBy,
    loss_threshold: f64,
) -> Option<Evidence> {
    if points.is_empty() || points.iter().any(|point| !matches!(point.phase, Phase::Ramp | Phase::Hold)) {
        return None;
    }
    let affected = points.iter().filter(|point| point.sample_noise.is_some()).count();
    let rises = points.iter().any(|point| point.phase == Phase::Ramp);
    let view = View { points, lossy, finding, loss_threshold };
    let (limit, forwarded, matters) = if rises {
        let (limit, matters) = view.limit(limited_by);
        (Some(limit), None, matters)
    } else {
        let (forwarded, matters) = spread(points);
        (None, forwarded, matters)
    };
    Some(Evidence {
        limit,
        ramp: None,
        second: None,
        forwarded,
        loss_began: view.loss_began(),
        samples: points.len(),
        affected,
        interference_matters: matters && affected > 0,
    })
}

struct View<'a> {
    points: &'a [Point<'a>],
    lossy: &'a [bool],
    finding: &'a Finding<'a>,
    loss_threshold: f64,
}

impl View<'_> {
    /// Where the limit lies, and whether interference may have moved it.
    fn limit(&self, limited_by: LimitedBy) -> (RateInterval, bool) {
        let lower_pps = self.lower();
        if matches!(limited_by, LimitedBy::LineRate | LimitedBy::Tester) {
            let held_up = limited_by == LimitedBy::Tester && self.is_affected_at_the_top();
            return (RateInterval { lower_pps, upper_pps: None }, held_up);
        }
        let upper_pps = self.upper(|point| self.is_excused(point));
        let (seen, proved) = (self.upper(|_| false), upper_pps);
        let moved = match (seen, proved) {
            (Some(seen), Some(proved)) => proved > seen * (1.0 + NEGLIGIBLE),
            (seen, proved) => seen.is_some() && proved.is_none(),
        };
        (RateInterval { lower_pps, upper_pps: upper_pps.map(|upper| upper.max(lower_pps)) }, moved)
    }

    /// Whether most of the last tenth of the samples was affected: what kept the tester from its target may
    /// have been the host.
    fn is_affected_at_the_top(&self) -> bool {
        let last = self.points.len().div_ceil(10);
        let affected = self.points.iter().rev().take(last).filter(|point| point.sample_noise.is_some());
        affected.count() * 2 > last
    }

    fn lower(&self) -> f64 {
        let best = self.finding.lossless_pps();
        let unexcused =
            |point: &&Point| point.sample.loss_ratio > self.loss_threshold && !self.is_excused_below(point);
        let below = self.judged().filter(|(point, lossy)| *lossy && unexcused(point));
        let gap = below.map(|(point, _)| point.offered_pps()).fold(f64::INFINITY, f64::min);
        let passed = self.judged().filter(|(point, lossy)| !lossy && point.offered_pps() < gap);
        let passed = passed.map(|(point, _)| point.offered_pps()).fold(0.0, f64::max);
        let above = self.failed().filter(|point| !self.is_excused(point)).take(WITNESSES);
        above.map(bears).fold(best.min(passed), f64::min)
    }

    /// The lowest load that failed, leaving out what is `excused`.
    fn upper(&self, excused: impl Fn(&Point) -> bool) -> Option<f64> {
        let failed: Vec<&Point> = self.failed().filter(|point| !excused(point)).collect();
        let stands = |at: usize, point: &&Point| {
            let above = failed.iter().skip(at + 1).take(WITNESSES);
            above.map(|point| bears(point)).fold(0.0, f64::max) <= point.offered_pps()
        };
        let lowest = failed.iter().enumerate().find(|(at, point)| stands(*at, point));
        lowest.map(|(_, point)| point.offered_pps())
    }

    /// The points before the final lossy run, and whether they are lossy.
    fn judged(&self) -> impl Iterator<Item = (&Point<'_>, bool)> {
        self.points.iter().zip(self.lossy.iter().copied()).take(self.finding.loss_begins)
    }

    /// The points of the final lossy run.
    fn failed(&self) -> impl Iterator<Item = &Point<'_>> {
        self.points.iter().skip(self.finding.loss_begins)
    }

    fn is_excused(&self, point: &Point) -> bool {
        let Some(noise) = point.sample_noise else { return false };
        match point.sample.undisturbed {
            // One frame of grace, as in windows of samples.
            Some(clean) => {
                let lost = clean.offered.saturating_sub(clean.forwarded);
                lost as f64 <= self.loss_threshold * clean.offered as f64 + 1.0
            }
            None => point.sample.loss_ratio <= noise + self.loss_threshold,
        }
    }

    /// Below the limit a queue that an interruption filled may take longer to empty than its undisturbed
    /// milliseconds allow for.
    fn is_excused_below(&self, point: &Point) -> bool {
        let all =
            point.sample_noise.is_some_and(|noise| point.sample.loss_ratio <= noise + self.loss_threshold);
        all || self.is_excused(point)
    }

    fn loss_began(&self) -> Option<LossBegan> {
        let lost = self.points.iter().filter(|point| point.lost() > 0);
        let first = lost.min_by(|a, b| a.offered_pps().total_cmp(&b.offered_pps()))?;
        Some(LossBegan {
            pps: first.offered_pps(),
            loss_ratio: first.sample.loss_ratio,
            excused: self.is_excused_below(first),
        })
    }
}

/// What the device forwarded at this load, in frames a second: in undisturbed milliseconds where these are
/// known.
fn bears(point: &Point) -> f64 {
    let share = |clean: Undisturbed| clean.forwarded as f64 / clean.offered.max(1) as f64;
    point.sample.undisturbed.map_or_else(|| point.forwarded_pps(), |clean| point.offered_pps() * share(clean))
}

/// The spread of what came back in half seconds that nothing affected, or in all where those are too
/// few; and whether they are.
fn spread(points: &[Point]) -> (Option<RateInterval>, bool) {
    let windows = half_seconds(points);
    let clean: Vec<f64> = windows.iter().filter(|(_, affected)| !affected).map(|(rate, _)| *rate).collect();
    let too_few = (clean.len() as f64) < windows.len() as f64 * ENOUGH_WINDOWS;
    let rates = if too_few { windows.iter().map(|(rate, _)| *rate).collect() } else { clean };
    let lower = rates.iter().copied().reduce(f64::min);
    let upper_pps = rates.iter().copied().reduce(f64::max);
    (lower.map(|lower_pps| RateInterval { lower_pps, upper_pps }), too_few)
}

/// Stretches of [`PEAK_WINDOW_S`], one after the other: what came back, in frames a second, and whether
/// any of their samples was affected. What remains at the end is left out unless it is all there is.
fn half_seconds(points: &[Point]) -> Vec<(f64, bool)> {
    let mut windows = Vec::new();
    let (mut frames, mut seconds, mut affected) = (0.0, 0.0, false);
    for point in points {
        frames += point.forwarded_pps() * point.duration_s;
        seconds += point.duration_s;
        affected |= point.sample_noise.is_some();
        if seconds >= PEAK_WINDOW_S {
            windows.push((frames / seconds, affected));
            (frames, seconds, affected) = (0.0, 0.0, false);
        }
    }
    if windows.is_empty() && seconds > 0.0 {
        windows.push((frames / seconds, affected));
    }
    windows
}

#[cfg(test)]
mod tests;
