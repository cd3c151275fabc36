//! What a device does with more load than it can take: the samples of a ramp enter; what it still forwards then
//! leaves.

use results::Record;
use results::record::{Phase, Sample};
use wire::human::pps;

use crate::evidence;
use crate::figures::percent;

/// A device that forwards less than this share of its maximum rate when overloaded has collapsed.
const COLLAPSE: f64 = 0.9;
/// A load counts as overload from this multiple of the maximum rate on.
const OVERLOAD: f64 = 1.1;
/// Loads from this share of the highest one on are looked at together.
const TOP: f64 = 0.95;
/// Fewer samples than this prove nothing.
const FEWEST: usize = 3;

/// What a device forwards of the highest loads that were offered, all directions added up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overload {
    /// Frames a second, the median of the samples at these loads.
    pub forwarded_pps: f64,
    /// That as a share of the maximum rate, 0 or more.
    pub share: f64,
}

impl Overload {
    /// Of a ramp whose load rose well above `headline_pps`, the maximum rate; `None` of any other run, of a device
    /// that stalled, and where too few samples were free of interference.
    pub fn of(record: &Record, headline_pps: f64) -> Option<Self> {
        let stalled = record.directions.iter().any(|direction| direction.stalled.is_some());
        if stalled || !evidence::rises(record) || headline_pps <= 0.0 {
            return None;
        }
        let measured = || record.samples.iter().filter(|it| matches!(it.phase, Phase::Ramp | Phase::Hold));
        let highest = measured().map(offered).fold(0.0, f64::max);
        if highest < headline_pps * OVERLOAD {
            return None;
        }
        let top = measured().filter(|it| it.disturbed.is_none() && offered(it) >= highest * TOP);
        let mut top: Vec<f64> = top.map(forwarded).collect();
        top.sort_by(f64::total_cmp);
        let forwarded_pps = *top.get(top.len() / 2).filter(|_| top.len() >= FEWEST)?;
        Some(Self { forwarded_pps, share: forwarded_pps / headline_pps })
    }

    /// The same, if the device collapsed.
    pub fn collapse(record: &Record, headline_pps: f64) -> Option<Self> {
        Self::of(record, headline_pps).filter(|found| found.share < COLLAPSE)
    }

    /// For beside the maximum rate.
    pub fn words(&self) -> String {
        format!(
            "falls to {} under overload (−{})",
            pps(self.forwarded_pps),
            percent((1.0 - self.share) * 100.0)
        )
    }
}

fn offered(sample: &Sample) -> f64 {
    sample.directions.iter().map(|direction| direction.offered_pps).sum()
}

fn forwarded(sample: &Sample) -> f64 {
    sample.directions.iter().map(|direction| direction.forwarded_pps).sum()
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;
    use crate::outcome::Outcome;

    fn collapse(record: &Record) -> Option<Overload> {
        Overload::collapse(record, Outcome::new(record).headline_pps())
    }

    /// The device forwards `share` of what it did, from twice its capacity on.
    fn collapsing(share: f64) -> Record {
        let mut record = Scenario::default().record();
        for direction in record.samples.iter_mut().flat_map(|sample| &mut sample.directions) {
            if direction.offered_pps > 2.2e6 {
                direction.forwarded_pps *= share;
            }
        }
        record
    }

    #[test]
    fn a_device_that_forwards_half_under_overload_has_collapsed() {
        let found = collapse(&collapsing(0.5)).unwrap();
        assert!((0.49..0.53).contains(&found.share), "{found:?}");
        assert_eq!(found.words(), "falls to 549.41 kpps under overload (−48%)");
    }

    #[test]
    fn a_device_that_holds_its_rate_has_not() {
        let record = Scenario::default().record();
        assert!(Overload::of(&record, Outcome::new(&record).headline_pps()).unwrap().share > 0.98);
        assert_eq!(collapse(&record), None);
    }

    #[test]
    fn what_was_never_overloaded_or_always_disturbed_proves_nothing() {
        let large = Scenario { frame_size: 1514.0, ..Scenario::default() }.record();
        assert_eq!(Overload::of(&large, Outcome::new(&large).headline_pps()), None);
        let mut disturbed = collapsing(0.5);
        disturbed.samples.iter_mut().for_each(|sample| sample.disturbed = Some("another task".to_owned()));
        assert_eq!(collapse(&disturbed), None);
        assert_eq!(collapse(&Scenario::default().search()), None);
    }
}
