//! A short search for a limit of which a ramp showed where it lies: the verdict on a ramp enters; a search that
//! begins there leaves, and afterwards the same verdict with the interval that trials narrowed.
//!
//! **One meaning.** The search looks for what the ramp looks for, the highest load at or below the loss
//! threshold, and by trials at a constant load: no queue hides an overload in them, and no step is its width.
//! In two directions it is the load of each of them at which all together lose no more.
//!
//! **Which interval stands.** That of the search, where it has both bounds and is narrower than the ramp's, or
//! where the highest load passed. Else the ramp's. Where the two do not overlap, the host or the device changed
//! between them: then the interval reaches over both. A search that saw only another state of the host than the
//! usual one proves no upper bound of the usual one: there the ramp's stays, if it is higher.

use std::time::Duration;

use results::record::{self, Direction, GoalResult, Irregular, LimitedBy, RateInterval};

use super::controller::LONGEST_SHARE;
use super::{Search, State};
use crate::session::{Session, Stop};
use crate::{Conditions, Goal, Strategy as _, WarmUp};

/// What a search finds whose loss is that of a ramp.
const NAME: &str = "limit";
/// How wide the interval is to become, where trials need not be longer for it.
const WIDTH: f64 = 0.01;
/// The widest that it may be asked to become.
const WIDEST: f64 = 0.1;
/// How long trials are that only find the way, those that decide, and all together that decide at one load.
const TRIALS: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(250), Duration::from_secs(1)];
/// Frames that a queue may hold that is to hide no more than half of the width.
const QUEUE: f64 = 256.0;
/// An interval that interference left wider than asked for by no more than this needs no mark.
const NEGLIGIBLE: f64 = 0.02;
/// How much around what the ramp shows is searched if that is wrong.
const AROUND: f64 = 0.5;

impl Search {
    /// A search of at most `duration` for the limit that `directions` show of a ramp to `target_pps`, without a warm-up;
    /// `None` where they show that the device has none.
    pub(crate) fn after_ramp(
        conditions: &Conditions,
        target_pps: f64,
        duration: Duration,
        directions: &[Direction],
    ) -> Option<Self> {
        let has_limit = |it: &Direction| matches!(it.limited_by, LimitedBy::Dut | LimitedBy::Unknown);
        let is_done = directions.iter().any(|it| it.stalled.is_some() || it.limited_by == LimitedBy::Tester);
        if is_done || !directions.iter().any(has_limit) {
            return None;
        }
        let limits = || directions.iter().filter_map(|it| it.evidence?.limit);
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(target_pps, f64::min);
        let forwarded_pps = least(&mut directions.iter().map(|it| it.max_forwarded_pps));
        // Not the lower bound: that is low where frames were lost in passing, far below the limit.
        let passed_pps = least(&mut directions.iter().map(|it| it.max_rate_pps));
        let passed_pps = if passed_pps > 0.0 { passed_pps } else { forwarded_pps };
        let failed_pps = least(&mut limits().filter_map(|it| it.upper_pps)).max(passed_pps);
        let conditions =
            Conditions { warm_up: WarmUp { duration: Duration::ZERO, ..conditions.warm_up }, ..*conditions };
        Self::near(&conditions, (passed_pps, failed_pps), target_pps, duration)
    }

    /// A search of at most `duration` for a limit that is expected between the two rates of `expected`, and lies below
    /// `target_pps`, all in frames a second of each direction; `None` where that is no search. Its one goal is called
    /// `limit`, and loses what `conditions` allow.
    #[must_use]
    pub fn near(
        conditions: &Conditions,
        expected: (f64, f64),
        target_pps: f64,
        duration: Duration,
    ) -> Option<Self> {
        let (passed_pps, _) = expected;
        if duration.is_zero() || !(passed_pps > 0.0 && target_pps > passed_pps * (1.0 + WIDTH)) {
            return None;
        }
        let goal = goal(conditions.loss_threshold, passed_pps, duration);
        // The first trials send a few frames at least.
        let least_pps = 10.0 / goal.initial_trial_duration.as_secs_f64();
        let search = Self {
            conditions: *conditions,
            goals: vec![goal],
            min_pps: (passed_pps * AROUND).max(least_pps).min(passed_pps),
            max_pps: target_pps,
            expected: Some(expected),
            max_duration: duration,
        };
        search.check().is_ok().then_some(search)
    }

    /// Goes on with `session` as this search; what it found is there however it ends.
    pub(crate) fn continue_with(
        &self,
        session: &mut Session,
        directions: usize,
    ) -> (State, Result<(), Stop>) {
        let mut state = State::new(self, directions);
        state.began = session.elapsed();
        let end = state.drive(self, session);
        (state, end)
    }
}

/// What is looked for near `pps`: with so wide an interval that no device's queue hides half of it from trials
/// that are not too long.
fn goal(loss_ratio: f64, pps: f64, duration: Duration) -> Goal {
    let [initial_trial_duration, final_trial_duration, duration_sum] = TRIALS;
    Goal {
        relative_width: width_near(pps, duration),
        initial_trial_duration,
        final_trial_duration,
        duration_sum,
        ..Goal::new(NAME, loss_ratio)
    }
}

/// The width that is asked for near `pps` of a search of `duration`.
fn width_near(pps: f64, duration: Duration) -> f64 {
    let longest_s = (duration / LONGEST_SHARE).as_secs_f64();
    (2.0 * QUEUE / (pps * longest_s)).clamp(WIDTH, WIDEST)
}

impl State {
    /// What was found, and puts the interval into the verdict on a ramp.
    pub(crate) fn narrow(self, directions: &mut [Direction]) -> record::Search {
        let elsewhere = !self.books.of_other().is_empty();
        let asked = self.goals.first().map_or(WIDTH, |goal| goal.relative_width);
        let found = self.found();
        if let Some(result) = found.results.get(NAME) {
            narrow(directions, result, &found, (asked, elsewhere));
        }
        found
    }
}

/// Puts the interval of `result`, all directions added up, into `directions` where it stands. `elsewhere` says
/// that it is of another state of the host than the usual one; `asked` is the width that was asked for.
fn narrow(
    directions: &mut [Direction],
    result: &GoalResult,
    found: &record::Search,
    (asked, elsewhere): (f64, bool),
) {
    let ways = directions.len().max(1) as f64;
    let limit =
        RateInterval { lower_pps: result.lower_pps / ways, upper_pps: result.upper_pps.map(|it| it / ways) };
    let width = |it: RateInterval| it.upper_pps.map_or(f64::INFINITY, |upper| upper - it.lower_pps);
    let before = directions.iter().map(|it| it.evidence.and_then(|it| it.limit).map_or(f64::INFINITY, width));
    let at_top = result.irregular == Some(Irregular::MaxLoadIsLowerBound);
    let is_narrower = width(limit) < before.fold(0.0, f64::max);
    if limit.lower_pps <= 0.0 || !(at_top || is_narrower) {
        return;
    }
    let affected = found.trials.iter().filter(|trial| trial.disturbed.is_some()).count();
    for (way, direction) in directions.iter_mut().enumerate() {
        let Some(evidence) = &mut direction.evidence else { continue };
        evidence.ramp = evidence.limit;
        evidence.limit = Some(evidence.ramp.map_or(limit, |ramp| over_both(ramp, limit, elsewhere)));
        evidence.samples += found.trials.len();
        evidence.affected += affected;
        let is_wide = evidence.limit.is_none_or(|it| width(it) > limit.lower_pps * (asked + NEGLIGIBLE));
        evidence.interference_matters = result.disturbed && affected > 0 && (elsewhere || is_wide);
        // Of a disturbed search less may have passed than the device bears.
        let held =
            if result.disturbed { direction.max_rate_pps.max(limit.lower_pps) } else { limit.lower_pps };
        direction.max_rate_pps = evidence.limit.and_then(|it| it.upper_pps).map_or(held, |it| held.min(it));
        direction.limited_by = result.limited_by;
        forwarded_at_least(direction, forwarded_pps(found, way, limit.lower_pps));
    }
}

/// The interval of a search, and where it does not overlap that of the ramp, one that reaches over both.
fn over_both(ramp: RateInterval, search: RateInterval, elsewhere: bool) -> RateInterval {
    let upper = |it: RateInterval| it.upper_pps.unwrap_or(f64::INFINITY);
    if upper(ramp) < search.lower_pps {
        RateInterval { lower_pps: ramp.lower_pps, ..search }
    } else if upper(search) < ramp.lower_pps || (elsewhere && upper(search) < upper(ramp)) {
        RateInterval { upper_pps: ramp.upper_pps, ..search }
    } else {
        search
    }
}

/// What came back of `load_pps` in the trials there, at most, in frames a second of one direction.
fn forwarded_pps(found: &record::Search, way: usize, load_pps: f64) -> f64 {
    let at_limit = found.trials.iter().filter(|trial| trial.load_pps <= load_pps * (1.0 + WIDTH));
    let ways = at_limit.filter_map(|trial| Some((trial, trial.directions.get(way)?)));
    let forwarded = ways.map(|(trial, it)| {
        let lost = it.undisturbed.map_or(it.loss_ratio, |clean| clean.loss_ratio().min(it.loss_ratio));
        trial.load_pps.min(load_pps) * (1.0 - lost)
    });
    forwarded.fold(0.0, f64::max)
}

/// A device that bears a load forwards as much: the highest forwarded rate is no lower than `pps`.
fn forwarded_at_least(direction: &mut Direction, pps: f64) {
    let factor = pps / direction.max_forwarded_pps;
    if factor > 1.0 && factor.is_finite() {
        direction.max_forwarded_pps = pps;
        direction.l1_bps *= factor;
        direction.l2_bps *= factor;
        direction.line_rate_percent *= factor;
    }
}
