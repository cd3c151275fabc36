//! What a search found for one goal: observations enter, a [`Finding`] leaves. Pure.

use results::record::{GoalResult, Irregular, LimitedBy};

use super::database::Database;
use super::goal::Target;
use super::ladder::{Ladder, Rung};
use super::selector::Range;

/// Under which circumstances a finding was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Circumstances {
    pub(crate) range: Range,
    /// Whether the highest load is what the tester could offer, not what was asked for.
    pub(crate) tester_limits: bool,
    /// Whether trials were disturbed.
    pub(crate) disturbed: bool,
}

/// The interval that holds the highest load of a goal, in frames a second of each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Finding {
    /// The relevant lower bound, as it was really offered.
    pub(crate) lower_pps: Option<f64>,
    /// The relevant upper bound.
    pub(crate) upper_pps: Option<f64>,
    /// What was forwarded at the lower bound.
    pub(crate) conditional_throughput_pps: Option<f64>,
    /// Why it is no regular result, if so.
    pub(crate) irregular: Option<Irregular>,
    /// Whether it is irregular, and disturbed trials may be why.
    pub(crate) disturbed: bool,
    pub(crate) limited_by: LimitedBy,
}

impl Finding {
    /// As the record has it, its rates times `factor`.
    pub(crate) fn result(&self, factor: f64) -> GoalResult {
        let lower_pps = self.lower_pps.unwrap_or(0.0) * factor;
        GoalResult {
            pps: lower_pps,
            lower_pps,
            upper_pps: self.upper_pps.map(|pps| pps * factor),
            conditional_throughput_pps: self.conditional_throughput_pps.unwrap_or(0.0) * factor,
            irregular: self.irregular,
            disturbed: self.disturbed,
            limited_by: self.limited_by,
        }
    }
}

/// What `database` says of the last of `targets`. Where it says nothing, the bounds of the
/// targets before stand in, and the finding is marked as preliminary. But on a machine that
/// disturbed trials only lower bounds do: a disturbance that went unnoticed makes frames get
/// lost, not pass. There an upper bound takes several trials, at whatever loads.
pub(crate) fn find(
    targets: &[Target],
    ladder: &Ladder,
    database: &Database,
    circumstances: Circumstances,
) -> Finding {
    let Circumstances { range, tester_limits, disturbed } = circumstances;
    let (mut lower, mut upper, mut preliminary) = (None, None, false);
    for (before, target) in targets.iter().rev().enumerate() {
        let bounds = database.bounds(target);
        let above = |load: &Rung| lower.is_none_or(|(lower, _)| *load > lower);
        if let (None, Some(load)) = (upper, bounds.upper.filter(above).filter(|_| before == 0 || !disturbed))
        {
            upper = Some(load);
            preliminary |= before > 0;
        }
        let below = |load: &Rung| upper.is_none_or(|upper| *load < upper);
        if let (None, Some(load)) = (lower, bounds.lower.filter(below)) {
            lower = Some((load, *target));
            preliminary |= before > 0;
        }
        let at_top = lower.is_some_and(|(load, _)| load >= range.ceiling);
        if at_top || upper.is_some_and(|load| load <= range.floor) {
            break;
        }
    }
    let at_top = lower.is_some_and(|(load, _)| load >= range.ceiling);
    if let (None, false, Some(goal)) = (upper, at_top, targets.last()) {
        upper = database.pooled_upper(goal, lower.map(|(load, _)| load));
        preliminary |= upper.is_some();
    }
    let width = targets.last().map_or(0, |target| target.width);
    let irregular = match (lower, upper) {
        (Some((load, _)), None) if load >= range.ceiling && !preliminary => {
            Some(Irregular::MaxLoadIsLowerBound)
        }
        (None, Some(load)) if load <= range.floor && !preliminary => Some(Irregular::MinLoadIsUpperBound),
        _ if preliminary => Some(Irregular::Preliminary),
        (Some((lower, _)), Some(upper)) if upper - lower <= width => None,
        _ => Some(Irregular::Wide),
    };
    let lower_pps = lower.map(|(load, target)| ladder.pps(load) * database.offered_share(load, &target));
    let passed = lower.map(|(load, target)| 1.0 - database.quantile_loss_ratio(load, &target));
    Finding {
        lower_pps,
        upper_pps: upper.map(|load| ladder.pps(load)),
        conditional_throughput_pps: lower_pps.zip(passed).map(|(pps, share)| pps * share),
        irregular,
        disturbed: disturbed && matches!(irregular, Some(Irregular::Wide | Irregular::Preliminary)),
        limited_by: match irregular {
            _ if upper.is_some() => LimitedBy::Dut,
            Some(Irregular::MaxLoadIsLowerBound) if tester_limits => LimitedBy::Tester,
            Some(Irregular::MaxLoadIsLowerBound) => LimitedBy::LineRate,
            _ => LimitedBy::Unknown,
        },
    }
}
