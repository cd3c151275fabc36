//! The loads that a search may offer, as rungs of a ladder. Pure.
//!
//! Neighbouring rungs have a constant ratio, so a relative width is a number of rungs anywhere;
//! rungs are whole numbers, so loads and widths are compared exactly.

/// Rungs in the narrowest width that is asked for. Widths are rounded down to whole rungs, so
/// they come out at most this part narrower.
const RUNGS_PER_WIDTH: f64 = 64.0;

/// A load: how many rungs it stands above the minimum.
pub(crate) type Rung = i64;

/// The loads from a minimum to a maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ladder {
    min_pps: f64,
    max_pps: f64,
    top: Rung,
}

impl Ladder {
    /// From `min_pps` to `max_pps`, both above 0 and in this order, for relative widths of
    /// `narrowest` (above 0, less than 1) or more.
    pub(crate) fn new(min_pps: f64, max_pps: f64, narrowest: f64) -> Self {
        let step = -(-narrowest).ln_1p() / RUNGS_PER_WIDTH;
        let top = ((max_pps / min_pps).ln() / step).ceil().max(1.0) as Rung;
        Self { min_pps, max_pps, top }
    }

    /// The highest rung; the lowest is 0.
    pub(crate) fn top(&self) -> Rung {
        self.top
    }

    /// Frames a second at `rung`.
    pub(crate) fn pps(&self, rung: Rung) -> f64 {
        match rung {
            ..=0 => self.min_pps,
            _ if rung >= self.top => self.max_pps,
            _ => self.min_pps * (rung as f64 * self.step()).exp(),
        }
    }

    /// The highest rung that is not above `pps`; the lowest rung when all are above.
    pub(crate) fn at_or_below(&self, pps: f64) -> Rung {
        if pps >= self.max_pps {
            return self.top;
        }
        // The logarithm may be off by a hair; the rung itself decides.
        let near = ((pps / self.min_pps).ln() / self.step()).round().clamp(0.0, self.top as f64) as Rung;
        let near = if self.pps(near) > pps { near - 1 } else { near };
        near.max(0)
    }

    /// The most rungs whose ends are no further apart than `relative` = 1 − lower / upper.
    pub(crate) fn width(&self, relative: f64) -> i64 {
        let rungs = -(-relative).ln_1p() / self.step();
        // A width of a whole number of rungs keeps it in spite of rounding.
        ((rungs + 1e-9).floor() as i64).max(1)
    }

    fn step(&self) -> f64 {
        (self.max_pps / self.min_pps).ln() / self.top as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ends_are_exact_and_steps_have_a_constant_ratio() {
        let ladder = Ladder::new(1_000.0, 14_880_952.0, 0.005);
        assert_eq!((ladder.pps(0), ladder.pps(ladder.top())), (1_000.0, 14_880_952.0));
        let ratio = |rung| ladder.pps(rung + 1) / ladder.pps(rung);
        assert!((ratio(10) - ratio(ladder.top() - 1)).abs() < 1e-12);
        assert!((ladder.width(0.005) - 64).abs() <= 1);
    }

    proptest! {
        #[test]
        fn a_rung_is_found_by_its_load(min in 1.0..1e6f64, range in 1.0001..1e5f64, narrow in 1e-4..0.5f64, at in 0.0..1.0f64) {
            let ladder = Ladder::new(min, min * range, narrow);
            let rung = (ladder.top() as f64 * at) as Rung;
            prop_assert_eq!(ladder.at_or_below(ladder.pps(rung)), rung);
            let pps = min * range * at;
            let below = ladder.at_or_below(pps);
            prop_assert!(ladder.pps(below) <= pps.max(min));
            prop_assert!(below == ladder.top() || ladder.pps(below + 1) > pps);
        }

        #[test]
        fn an_interval_of_a_width_is_no_wider(range in 1.1..1e5f64, narrow in 1e-4..0.1f64, wider in 1.0..8.0f64) {
            let ladder = Ladder::new(1e3, 1e3 * range, narrow);
            let relative = (narrow * wider).min(0.9);
            let width = ladder.width(relative);
            prop_assume!(width <= ladder.top());
            prop_assert!(1.0 - ladder.pps(0) / ladder.pps(width) <= relative + 1e-9);
        }
    }
}
