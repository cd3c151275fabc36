//! Whether the tester kept to its schedule: how late departures were enters, a disturbance leaves.

use stats::Histogram;

/// Departures later than this make the load burstier than it was asked for.
const LATE_NS: u64 = 1_000_000;
/// This share of them is forgiven.
const FORGIVEN: f64 = 0.001;
/// A tester that gives up a larger share of the frames is not held up but at its limit, which
/// is another finding.
const AT_ITS_LIMIT: f64 = 0.01;

/// What disturbed a trial in which `sent` frames left, as late as `lateness` says in ns, and `unsent`
/// were given up; `None` if that is in order.
pub(crate) fn disturbance(lateness: &Histogram, sent: u64, unsent: u64) -> Option<String> {
    let late: u64 =
        lateness.buckets().filter(|(at_least, _)| *at_least >= LATE_NS).map(|(_, count)| count).sum();
    let share = late as f64 / lateness.total().max(1) as f64;
    let held_up = share > FORGIVEN && unsent as f64 <= (sent + unsent) as f64 * AT_ITS_LIMIT;
    held_up.then(|| format!("{:.1} % of the departures were more than 1 ms late", share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(count: u64) -> Histogram {
        let mut lateness = Histogram::default();
        lateness.record(2_000, 10_000 - count);
        lateness.record(2_000_000, count);
        lateness
    }

    #[test]
    fn one_late_departure_in_a_thousand_is_forgiven() {
        assert_eq!(disturbance(&Histogram::default(), 0, 0), None);
        assert_eq!(disturbance(&late(10), 10_000, 0), None);
        let told = disturbance(&late(150), 10_000, 0);
        assert_eq!(told.as_deref(), Some("1.5 % of the departures were more than 1 ms late"));
    }

    #[test]
    fn a_tester_at_its_limit_is_not_disturbed() {
        assert!(disturbance(&late(150), 1_010_000, 0).is_some());
        assert_eq!(disturbance(&late(9_000), 10_000, 5_000), None);
    }
}
