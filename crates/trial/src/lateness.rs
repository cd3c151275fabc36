//! Whether the tester kept to its schedule: how late departures were enters, noise leaves.

use stats::Histogram;

use crate::Noise;

/// Departures later than this make the load burstier than it was asked for.
const LATE_NS: u64 = 1_000_000;
/// This share of them is forgiven.
const FORGIVEN: f64 = 0.001;
/// A tester that gives up a larger share of the frames is not held up but at its limit, which
/// is another finding.
const AT_ITS_LIMIT: f64 = 0.01;
/// A tester that is this late, which pacing alone never is, was held up.
const HELD_UP_NS: u64 = 100_000;
/// A tester that was held up catches up faster than its rate by one part in fifteen, so it was held up
/// for that part of the time that it is late; and a little longer, since the end of it is not seen.
const CATCH_UP: f64 = 10.0;

/// Whether a tester that sent `sent` frames and gave up `unsent` was at its limit.
pub(crate) fn at_its_limit(sent: u64, unsent: u64) -> bool {
    unsent as f64 > (sent + unsent) as f64 * AT_ITS_LIMIT
}

/// The noise in a trial in which `sent` frames left, as late as `lateness` says in ns, and `unsent`
/// were given up. What is sent late comes on top of what is sent in time, so as much may be lost
/// at a device's limit.
pub(crate) fn noise(lateness: &Histogram, sent: u64, unsent: u64) -> Noise {
    let later = |than: u64| {
        let late = lateness.buckets().filter(|(at_least, _)| *at_least >= than);
        late.map(|(_, count)| count).sum::<u64>() as f64 / lateness.total().max(1) as f64
    };
    let share = later(LATE_NS);
    if at_its_limit(sent, unsent) {
        return Noise::default();
    }
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
        assert_eq!(noise(&Histogram::default(), 0, 0), Noise::default());
        assert_eq!(noise(&late(10), 10_000, 0).disturbed, None);
        let told = noise(&late(150), 10_000, 0);
        assert_eq!(told.disturbed.as_deref(), Some("1.5 % of the departures were more than 1 ms late"));
        assert!((told.cost - 0.0015).abs() < 1e-12);
    }

    #[test]
    fn a_tester_at_its_limit_is_not_disturbed() {
        assert!(noise(&late(150), 1_010_000, 0).disturbed.is_some());
        assert_eq!(noise(&late(9_000), 10_000, 5_000), Noise::default());
    }
}
