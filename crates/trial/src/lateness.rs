//! Whether the tester kept to its schedule: how late departures were enters, noise leaves.

use results::record::AT_ITS_LIMIT;
use stats::Histogram;

use crate::Noise;

/// Departures later than this make the load burstier than it was asked for.
const LATE_NS: u64 = 1_000_000;
/// This share of them is forgiven.
const FORGIVEN: f64 = 0.001;
/// A tester that is this late, which pacing alone never is, was held up.
const HELD_UP_NS: u64 = 100_000;
/// A tester that was held up catches up faster than its rate by one part in fifteen, so it was held up
/// for that part of the time that it is late; and a little longer, since the end of it is not seen.
const CATCH_UP: f64 = 10.0;

/// The noise in a trial whose frames left as late as `lateness` says in ns, while it was too late for the share
/// `too_late` of those that were due. What is sent late comes on top of what is sent in time, so as much may be
/// lost at a device's limit.
pub(crate) fn noise(lateness: &Histogram, too_late: f64) -> Noise {
    if too_late > AT_ITS_LIMIT {
        return Noise::default();
    }
    let later = |than: u64| {
        let late = lateness.buckets().filter(|(at_least, _)| *at_least >= than);
        late.map(|(_, count)| count).sum::<u64>() as f64 / lateness.total().max(1) as f64
    };
    let share = later(LATE_NS);
    let held_up = share > FORGIVEN;
    let words = || format!("{:.1} % of the departures were more than 1 ms late", share * 100.0);
    Noise { cost: later(HELD_UP_NS) / CATCH_UP, disturbed: held_up.then(words), ..Noise::default() }
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
        assert_eq!(noise(&Histogram::default(), 0.0), Noise::default());
        assert_eq!(noise(&late(10), 0.0).disturbed, None);
        let told = noise(&late(150), 0.0);
        assert_eq!(told.disturbed.as_deref(), Some("1.5 % of the departures were more than 1 ms late"));
        assert!((told.cost - 0.0015).abs() < 1e-12);
    }

    #[test]
    fn a_tester_at_its_limit_is_not_disturbed() {
        assert!(noise(&late(150), 0.01).disturbed.is_some());
        assert_eq!(noise(&late(9_000), 0.33), Noise::default());
    }
}
