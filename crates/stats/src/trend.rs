//! A straight line through points that outliers do not move: the estimator of Theil and Sen.
//!
//! Points (x, y) enter; a [`Trend`] leaves. The slope is the median of the slopes of all pairs of
//! points; its confidence interval lies between two of these slopes, as many apart as the variance
//! of Kendall's tau says (P. K. Sen, Estimates of the regression coefficient based on Kendall's
//! tau, 1968). It holds for values that are independent of each other.

/// The standard normal deviate that leaves out 0.5 % on each side.
const DEVIATE_99: f64 = 2.575_829;
/// Points that a line needs.
const MIN_POINTS: usize = 8;

/// A line, y = intercept + slope · x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// The slope.
    pub slope: f64,
    /// The lower end of its 99 % confidence interval.
    pub slope_lower: f64,
    /// The upper end.
    pub slope_upper: f64,
    /// Where the line is at x = 0: the median of y − slope · x.
    pub intercept: f64,
}

impl Trend {
    /// The line through `points`. All pairs are looked at: a few hundred points take milliseconds.
    /// `None` for fewer than eight points, or all at the same x.
    #[must_use]
    pub fn of(points: &[(f64, f64)]) -> Option<Self> {
        if points.len() < MIN_POINTS {
            return None;
        }
        let pairs = points.iter().enumerate();
        let pairs = pairs.flat_map(|(at, one)| points.iter().skip(at + 1).map(move |other| (one, other)));
        let slopes = pairs.filter(|(one, other)| one.0 != other.0);
        let slopes = sorted(slopes.map(|(one, other)| (other.1 - one.1) / (other.0 - one.0)));
        let n = points.len() as f64;
        let reach = DEVIATE_99 * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
        let lower = ((slopes.len() as f64 - reach) / 2.0).max(0.0) as usize;
        let upper = slopes.len().checked_sub(1 + lower)?;
        let slope = median(&slopes)?;
        Some(Self {
            slope,
            slope_lower: *slopes.get(lower)?,
            slope_upper: *slopes.get(upper)?,
            intercept: median(&sorted(points.iter().map(|(x, y)| y - slope * x)))?,
        })
    }

    /// Where the line is at `x`.
    #[must_use]
    pub fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }

    /// Whether the confidence interval of the slope leaves out zero.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.slope_lower > 0.0 || self.slope_upper < 0.0
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The middle of sorted values, or the mean of the two there.
#[must_use]
pub fn median(sorted: &[f64]) -> Option<f64> {
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get((sorted.len() - 1) / 2)?;
    Some(f64::midpoint(*lower, *upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number from −1 to 1 that looks random (the mixing of `SplitMix64`).
    fn noise(seed: u64) -> f64 {
        let seed = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed >> 40) as f64 / f64::from(1 << 23) - 1.0
    }

    fn line(slope: f64, noisy: f64, seed: u64) -> Vec<(f64, f64)> {
        (0..60).map(|x| (x as f64, 100.0 + slope * x as f64 + noisy * noise(seed * 60 + x))).collect()
    }

    #[test]
    fn a_line_is_found_whatever_a_few_outliers_say() {
        let mut points = line(0.25, 0.0, 0);
        for at in [0, 7, 30, 58, 59] {
            points[at].1 = 1e9;
        }
        let trend = Trend::of(&points).unwrap();
        assert!((trend.slope - 0.25).abs() < 1e-9 && (trend.at(10.0) - 102.5).abs() < 1e-9, "{trend:?}");
        assert!(trend.is_significant());
    }

    #[test]
    fn the_interval_holds_the_slope_as_often_as_it_says() {
        let holds = |seed: &u64| {
            let trend = Trend::of(&line(0.05, 10.0, *seed)).unwrap();
            assert!(trend.slope_lower <= trend.slope && trend.slope <= trend.slope_upper);
            (trend.slope_lower..=trend.slope_upper).contains(&0.05)
        };
        let held = (0..500).filter(holds).count();
        assert!((485..500).contains(&held), "{held} of 500");
        let false_alarms =
            (0..500).filter(|seed| Trend::of(&line(0.0, 10.0, *seed)).unwrap().is_significant());
        assert!(false_alarms.count() <= 15);
    }

    #[test]
    fn too_few_points_tell_nothing() {
        assert_eq!(Trend::of(&line(1.0, 0.0, 0)[..7]), None);
        assert_eq!(Trend::of(&[(3.0, 1.0); 20]), None);
        assert_eq!(Trend::of(&[]), None);
        assert_eq!((median(&[]), median(&[1.0, 2.0])), (None, Some(1.5)));
    }
}
