//! Which load to try next for one goal: what is known enters, a load leaves. Pure.
//!
//! A goal is reached by way of wider targets. Each target begins with two *hints*: where the one
//! before it found its bounds, or what the first trial forwarded. In this order, whichever is
//! still open (strictly between the target's own bounds) is tried:
//! 1. the middle of the hints, if that splits them into widths that are narrow enough;
//! 2. the lower hint, then the higher one;
//! 3. when the hints proved wrong, away from them in steps that double;
//! 4. between the bounds, when that is nearer.

use std::time::Duration;

use super::database::{Bounds, Database};
use super::goal::Target;
use super::ladder::{Ladder, Rung};

/// The lowest and the highest load that may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) floor: Rung,
    pub(crate) ceiling: Rung,
}

/// Where a target may find its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    pub(crate) lower: Option<Rung>,
    pub(crate) upper: Option<Rung>,
}

/// A trial that a goal needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) load: Rung,
    pub(crate) duration: Duration,
}

/// The state of the search for one goal.
#[derive(Clone, Debug)]
pub(crate) struct Selector {
    targets: Vec<Target>,
    current: usize,
    hints: Hints,
}

impl Selector {
    /// Begins with the first of `targets`.
    pub(crate) fn new(targets: Vec<Target>, hints: Hints) -> Self {
        Self { targets, current: 0, hints }
    }

    /// The trial that this goal needs next; `None` when the goal is reached.
    pub(crate) fn nominate(
        &mut self,
        database: &Database,
        ladder: &Ladder,
        range: Range,
    ) -> Option<Candidate> {
        while let Some(target) = self.targets.get(self.current) {
            let bounds = database.bounds(target);
            if let Some(load) = next_load(target.width, bounds, self.hints, range) {
                let is_last = self.current + 1 == self.targets.len();
                let load = match database.unclear_between(bounds, target) {
                    None => Some(load),
                    Some(unclear) if is_last => Some(
                        above(target.width, bounds, unclear, range)
                            .or_else(|| below(target.width, bounds, unclear, range))
                            .unwrap_or(load),
                    ),
                    Some(unclear) => above(target.width, bounds, unclear, range),
                };
                if let Some(load) = load {
                    return Some(Candidate { load, duration: target.durations(ladder.pps(load)).0 });
                }
            }
            self.hints = Hints { lower: bounds.lower, upper: bounds.upper };
            self.current += 1;
        }
        None
    }
}

/// The load to try where noise keeps the loads from `low` to `high`, between `bounds`, from being
/// judged: further up, since the more a load exceeds what the device bears, the less can noise
/// account for the loss. In steps that double. `None` when there is none left.
fn above(width: i64, bounds: Bounds, (low, high): (Rung, Rung), range: Range) -> Option<Rung> {
    let next = high + width.max(2 * (high - low));
    match bounds.upper {
        Some(upper) => (upper - high > width).then(|| next.min(middle(width, high, upper))),
        None => (high < range.ceiling).then(|| next.min(range.ceiling)),
    }
}

/// The same further down, where the device's queue may bear what noise does.
fn below(width: i64, bounds: Bounds, (low, high): (Rung, Rung), range: Range) -> Option<Rung> {
    let next = low - width.max(2 * (high - low));
    match bounds.lower {
        Some(lower) => (low - lower > width).then(|| next.max(middle(width, lower, low))),
        None => (low > range.floor).then(|| next.max(range.floor)),
    }
}

/// The load to try next between `bounds`; `None` when they are no further apart than `width`, or
/// one of them is at the end of `range`.
fn next_load(width: i64, bounds: Bounds, hints: Hints, range: Range) -> Option<Rung> {
    let Bounds { lower, upper } = bounds;
    let narrow = lower.zip(upper).is_some_and(|(lower, upper)| upper - lower <= width);
    let at_end =
        lower.is_some_and(|lower| lower >= range.ceiling) || upper.is_some_and(|upper| upper <= range.floor);
    if narrow || at_end {
        return None;
    }
    let is_open = |load: &Rung| {
        (range.floor..=range.ceiling).contains(load)
            && lower.is_none_or(|lower| *load > lower)
            && upper.is_none_or(|upper| *load < upper)
    };
    let halved = hints.lower.zip(hints.upper).and_then(|(lower, upper)| {
        (width + 1..=2 * width).contains(&(upper - lower)).then(|| middle(width, lower, upper))
    });
    let hinted = [halved, hints.lower, hints.upper].into_iter().flatten().find(is_open);
    Some(hinted.unwrap_or_else(|| beyond(width, bounds, hints, range)))
}

/// The load to try when the hints are used up.
fn beyond(width: i64, bounds: Bounds, hints: Hints, range: Range) -> Rung {
    let away = |start: Option<Rung>, bound: Rung| start.map_or(0, |start| (bound - start).abs()).max(width);
    let up = |lower: Rung| lower + away(hints.lower.or(hints.upper), lower);
    let down = |upper: Rung| upper - away(hints.upper.or(hints.lower), upper);
    match (bounds.lower, bounds.upper) {
        (None, None) => range.ceiling,
        // An end of the range may itself be tried, and is rather than a load close to it.
        (Some(lower), None) => match up(lower) {
            load if load > range.ceiling - width => range.ceiling,
            load => load,
        },
        (None, Some(upper)) => match down(upper) {
            load if load < range.floor + width => range.floor,
            load => load,
        },
        (Some(lower), Some(upper)) => {
            let middle = middle(width, lower, upper);
            let moved_up = hints.upper.is_some_and(|hint| hint <= lower);
            let moved_down = hints.lower.is_some_and(|hint| hint >= upper);
            if moved_up {
                up(lower).min(middle)
            } else if moved_down {
                down(upper).max(middle)
            } else {
                middle
            }
        }
    }
}

/// A load between `lower` and `upper`, more than `width` apart, so that halving goes on evenly: one
/// part is `width` times a power of two. The smaller part is the lower one, to stay conservative.
fn middle(width: i64, lower: Rung, upper: Rung) -> Rung {
    let gap = upper - lower;
    let doublings = (gap as f64 / (2 * width) as f64).log2().round();
    let part = (width as f64 * doublings.exp2()).round() as i64;
    lower + part.min(gap - part).clamp(1, gap - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RANGE: Range = Range { floor: 0, ceiling: 1_000 };

    fn next(bounds: (Option<Rung>, Option<Rung>), hints: (Option<Rung>, Option<Rung>)) -> Option<Rung> {
        let bounds = Bounds { lower: bounds.0, upper: bounds.1 };
        next_load(10, bounds, Hints { lower: hints.0, upper: hints.1 }, RANGE)
    }

    #[test]
    fn hints_come_first() {
        assert_eq!(next((None, None), (Some(500), Some(520))), Some(510), "halve");
        assert_eq!(next((None, Some(510)), (Some(500), Some(520))), Some(500), "refine the lower bound");
        assert_eq!(next((Some(510), None), (Some(500), Some(520))), Some(520), "refine the upper bound");
        assert_eq!(next((None, None), (Some(500), Some(540))), Some(500), "too far apart to halve");
        assert_eq!(next((Some(510), Some(520)), (Some(500), Some(520))), None, "narrow enough");
    }

    #[test]
    fn loads_that_noise_hides_are_fenced_in() {
        let up = |lower, upper, unclear| above(10, Bounds { lower, upper }, unclear, RANGE);
        let down = |lower, upper, unclear| below(10, Bounds { lower, upper }, unclear, RANGE);
        assert_eq!(up(None, None, (500, 500)), Some(510));
        assert_eq!(up(None, None, (500, 510)), Some(530), "steps double");
        assert_eq!(up(None, None, (500, 990)), Some(1_000), "the end of the range");
        assert_eq!(up(None, Some(560), (500, 530)), Some(540), "halving is nearer");
        assert_eq!(up(None, Some(540), (500, 530)), None, "narrow enough");
        assert_eq!(down(None, Some(540), (500, 530)), Some(440));
        assert_eq!(down(Some(440), Some(540), (500, 530)), Some(460));
        assert_eq!(down(Some(490), Some(540), (500, 530)), None, "nothing is left to try");
    }

    #[test]
    fn wrong_hints_are_left_in_steps_that_double() {
        let hints = (Some(500), Some(520));
        assert_eq!(next((Some(520), None), hints), Some(540));
        assert_eq!(next((Some(540), Some(900)), hints), Some(580));
        assert_eq!(next((Some(580), Some(900)), hints), Some(660));
        assert_eq!(next((Some(660), Some(700)), hints), Some(680), "halving is nearer");
        assert_eq!(next((None, Some(500)), hints), Some(480));
        assert_eq!(next((Some(100), Some(480)), hints), Some(440));
        assert_eq!(next((Some(990), None), hints), Some(1_000), "the end of the range");
        assert_eq!(next((None, Some(5)), hints), Some(0));
        assert_eq!(next((Some(1_000), None), hints), None);
        assert_eq!(next((None, Some(0)), hints), None);
    }

    proptest! {
        #[test]
        fn the_next_load_is_always_news(
            width in 1..200i64,
            lower in prop::option::of(0..1_000i64),
            gap in prop::option::of(1..1_000i64),
            hints in (prop::option::of(0..1_000i64), prop::option::of(0..1_000i64)),
        ) {
            let upper = gap.map(|gap| lower.unwrap_or(0) + gap).filter(|upper| *upper <= 1_000);
            let bounds = Bounds { lower, upper };
            if let Some(load) = next_load(width, bounds, Hints { lower: hints.0, upper: hints.1 }, RANGE) {
                prop_assert!((RANGE.floor..=RANGE.ceiling).contains(&load));
                prop_assert!(lower.is_none_or(|lower| load > lower));
                prop_assert!(upper.is_none_or(|upper| load < upper));
            }
        }

        #[test]
        fn halving_ends_after_the_fewest_rounds(width in 1..100i64, gap in 2..10_000i64) {
            let rounds_left = |gap: i64| (gap as f64 / width as f64).log2().ceil().max(0.0);
            prop_assume!(gap > width);
            let load = middle(width, 0, gap);
            prop_assert!(load <= gap - load || gap < 2 * width, "{load} of {gap}");
            prop_assert!(rounds_left(gap - load).max(rounds_left(load)) <= rounds_left(gap));
        }
    }
}
