//! Whether the latency changes over time: intervals enter, a straight line leaves. Pure.
//!
//! Disturbed intervals are left out. The others are pooled, the median of the means of each pool:
//! so that the line costs little, and one slow interval moves nothing. The latencies of a machine
//! that slows down for minutes are not independent of each other, so a change that the confidence
//! interval calls significant may still be the machine's: a longer soak tells.

use results::record::LatencyDrift;
use stats::Trend;
use stats::trend::median;

use super::interval::Interval;

/// The most points that the line is drawn through.
const MOST_POOLS: usize = 200;
/// A change of less than this share matters to nobody.
const SMALL: f64 = 0.01;

/// `None` when fewer than eight intervals tell.
pub(crate) fn drift(intervals: &[Interval]) -> Option<LatencyDrift> {
    let told = intervals.iter().filter(|interval| interval.measured && !interval.disturbed);
    let points: Vec<(f64, f64)> =
        told.filter_map(|told| Some((told.from_s + told.duration_s / 2.0, told.mean_ns?))).collect();
    let pools = points.chunks(points.len().div_ceil(MOST_POOLS).max(1));
    let pools: Vec<(f64, f64)> = pools.filter_map(pool).collect();
    let trend = Trend::of(&pools)?;
    let (from_ns, to_ns) = (trend.at(points.first()?.0), trend.at(points.last()?.0));
    let change = (to_ns - from_ns).abs();
    Some(LatencyDrift {
        slope: trend.slope,
        slope_lower: trend.slope_lower,
        slope_upper: trend.slope_upper,
        from_ns,
        to_ns,
        significant: trend.is_significant() && change > from_ns.abs() * SMALL,
    })
}

/// The middle of some points.
fn pool(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let mut values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    let middle = points.iter().map(|(at, _)| at).sum::<f64>() / points.len() as f64;
    Some((middle, median(&values)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A latency for each second.
    fn intervals(seconds: u64, latency: impl Fn(u64) -> f64) -> Vec<Interval> {
        let interval = |at: u64| Interval {
            from_s: at as f64,
            duration_s: 1.0,
            offered: 100,
            forwarded: 100,
            mean_ns: Some(latency(at)),
            measured: true,
            ..Interval::default()
        };
        (0..seconds).map(interval).collect()
    }

    /// From 0 to 999, without order.
    fn noise(at: u64) -> f64 {
        (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as f64 % 1000.0
    }

    #[test]
    fn a_latency_that_rises_by_a_nanosecond_a_second_is_seen() {
        let mut rising = intervals(3_600, |at| 20_000.0 + at as f64 + noise(at));
        for at in (0..3_600).step_by(10) {
            rising[at].mean_ns = Some(5e7);
        }
        let found = drift(&rising).unwrap();
        assert!(found.significant && (found.slope - 1.0).abs() < 0.05, "{found:?}");
        assert!(found.slope_lower <= 1.0 && 1.0 <= found.slope_upper, "{found:?}");
        assert!((found.to_ns - found.from_ns - 3_599.0).abs() < 200.0, "{found:?}");
    }

    #[test]
    fn noise_and_small_changes_are_no_drift() {
        let steady = drift(&intervals(3_600, |at| 20_000.0 + noise(at))).unwrap();
        assert!(!steady.significant, "{steady:?}");
        let small = drift(&intervals(100, |at| 20_000.0 + at as f64)).unwrap();
        assert!(!small.significant && small.slope_lower > 0.0, "{small:?}");
    }

    #[test]
    fn disturbed_intervals_and_a_warm_up_tell_nothing() {
        let mut some = intervals(100, |at| 20_000.0 + at as f64 * 1_000.0);
        some.iter_mut().take(95).for_each(|interval| interval.disturbed = true);
        assert_eq!(drift(&some), None);
        some.iter_mut().for_each(|interval| (interval.disturbed, interval.measured) = (false, false));
        assert_eq!(drift(&some), None);
        assert_eq!(drift(&[]), None);
    }
}
