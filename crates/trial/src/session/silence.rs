//! Whether the device fell silent for good: the totals enter when they are read, a stall leaves. Pure.

use std::time::Duration;

use engine::Totals;

use crate::verdict::direction_name;

/// A device that returned nothing for this long, and for three intervals, has stalled.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which stalls end a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndOnStall {
    /// That of all directions at once.
    All,
    /// That of any direction.
    Any,
    /// None: the device may recover.
    Never,
}

/// When each direction was last seen to return frames.
#[derive(Debug)]
pub(crate) struct Silence {
    pub(crate) ends: EndOnStall,
    /// By direction: when, and how many frames ports had been handed by then.
    returned: Vec<(Duration, u64)>,
}

/// Frames that a port was handed: a device that takes none is as silent as one that returns none.
fn handed(totals: &Totals) -> u64 {
    totals.offered + totals.untaken.total()
}

impl Silence {
    pub(crate) fn new(now: Duration, directions: usize) -> Self {
        Self { ends: EndOnStall::All, returned: vec![(now, 0); directions] }
    }

    /// Silence counts anew from `now`, as when a load begins.
    pub(crate) fn restart(&mut self, now: Duration, totals: &[Totals]) {
        self.returned = totals.iter().map(|totals| (now, handed(totals))).collect();
    }

    /// The totals were read at `now`; `before` is what they were the last time.
    pub(crate) fn read(&mut self, now: Duration, totals: &[Totals], before: &[Totals]) {
        for ((totals, before), returned) in totals.iter().zip(before).zip(&mut self.returned) {
            if totals.forwarded > before.forwarded {
                *returned = (now, handed(totals));
            }
        }
    }

    /// Says so if the device had stalled by `now`, when the totals were read: frames returned once, but
    /// none for long, though the tester went on. A `step` is how long an interval is.
    pub(crate) fn stalled(&self, now: Duration, totals: &[Totals], step: Duration) -> Option<String> {
        let patience = PATIENCE.max(step * 3);
        let each = || totals.iter().zip(&self.returned);
        let is_silent = |returned: Duration| now.saturating_sub(returned) >= patience;
        let any_returned = || totals.iter().any(|totals| totals.forwarded > 0);
        let went_on = || each().any(|(totals, (_, then))| handed(totals) > *then);
        let all = || each().all(|(_, (returned, _))| is_silent(*returned));
        let one = || {
            each().position(|(totals, (returned, then))| {
                totals.forwarded > 0 && handed(totals) > *then && is_silent(*returned)
            })
        };
        let what = match self.ends {
            EndOnStall::Never => return None,
            _ if any_returned() && went_on() && all() => "nothing came back".to_owned(),
            EndOnStall::All => return None,
            EndOnStall::Any => format!("{}: nothing came back", direction_name(one()?)),
        };
        Some(format!("ended early: {what} for {PATIENCE:?} or more"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const STEP: Duration = Duration::from_millis(100);

    fn totals(counted: [(u64, u64); 2]) -> [Totals; 2] {
        counted.map(|(offered, forwarded)| Totals { offered, forwarded, ..Totals::default() })
    }

    /// A device whose second direction fell silent after a second.
    fn silent_after_a_second(ends: EndOnStall) -> Silence {
        let mut silence = Silence { ends, ..Silence::new(Duration::ZERO, 2) };
        silence.restart(Duration::ZERO, &totals([(0, 0); 2]));
        silence.read(SECOND, &totals([(100, 100), (100, 90)]), &totals([(0, 0); 2]));
        silence.read(7 * SECOND, &totals([(700, 700), (700, 90)]), &totals([(100, 100), (100, 90)]));
        silence
    }

    #[test]
    fn one_direction_may_fall_silent_alone() {
        let now = totals([(700, 700), (700, 90)]);
        let said = |ends| silent_after_a_second(ends).stalled(7 * SECOND, &now, STEP);
        assert_eq!(said(EndOnStall::All), None);
        assert_eq!(said(EndOnStall::Never), None);
        let any = said(EndOnStall::Any);
        assert_eq!(any.as_deref(), Some("ended early: 1->0: nothing came back for 5s or more"));
    }

    #[test]
    fn all_are_silent_only_after_the_last_of_them_and_long_steps_take_longer() {
        let silence = silent_after_a_second(EndOnStall::All);
        let now = totals([(1200, 700), (1200, 90)]);
        assert_eq!(silence.stalled(11 * SECOND, &now, STEP), None);
        assert!(silence.stalled(12 * SECOND, &now, STEP).is_some());
        assert_eq!(silence.stalled(12 * SECOND, &now, 2 * SECOND), None);
    }

    #[test]
    fn a_tester_that_sends_nothing_and_a_device_that_never_answered_are_no_stall() {
        let silence = silent_after_a_second(EndOnStall::Any);
        assert_eq!(silence.stalled(20 * SECOND, &totals([(700, 700), (100, 90)]), STEP), None);
        let never = Silence::new(Duration::ZERO, 2);
        assert_eq!(never.stalled(20 * SECOND, &totals([(700, 0), (700, 0)]), STEP), None);
    }
}
