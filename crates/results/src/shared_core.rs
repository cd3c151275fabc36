//! What the device's rates would be if the tester did not receive on its core: a record with the share of
//! the core that receiving took enters; corrected rates leave, beside the raw ones.
//!
//! A device that a core limits has what receiving leaves of it. At its limit that share is the same however
//! fast the core is: each frame costs the device's work and the receiver's, and both slow down together.

use wire::human::pps;

use crate::record::{Direction, LimitedBy, Record, Sample};

/// How busy the core must have been at the limit for the core to be the limit.
const BUSY: f64 = 0.9;
/// Samples at loads this near to the limit are at the limit.
const NEAR: f64 = 0.05;
/// More than this share leaves too little to tell.
const MOST: f64 = 0.9;

/// Adds the corrected rates, and a note of each.
pub fn correct(record: &mut Record) {
    let is_shared = record.tester.receive_core.is_some() && record.tester.receive_core == record.dut.core;
    let Some(share) = record.tester.receive_share.filter(|share| is_shared && (0.0..MOST).contains(share))
    else {
        return;
    };
    let samples = std::mem::take(&mut record.samples);
    let mut notes = Vec::new();
    for (place, direction) in record.directions.iter_mut().enumerate() {
        let is_limit = direction.limited_by == LimitedBy::Dut && direction.max_rate_pps > 0.0;
        if !is_limit || !was_busy(&samples, place, direction) {
            continue;
        }
        let unshared = direction.max_rate_pps / (1.0 - share);
        direction.unshared_rate_pps = Some(unshared);
        notes.push(format!(
            "{}: the tester's receiver took {:.0} % of the device's core: without it about {} instead of {}",
            direction.name,
            share * 100.0,
            pps(unshared),
            pps(direction.max_rate_pps),
        ));
    }
    record.samples = samples;
    record.notes.append(&mut notes);
}

/// Whether the device's core was busy at the loads about the limit of `direction`, in the median.
fn was_busy(samples: &[Sample], place: usize, direction: &Direction) -> bool {
    let near = |sample: &&Sample| {
        let load = sample.directions.get(place).map_or(0.0, |it| it.offered_pps);
        (load / direction.max_rate_pps - 1.0).abs() <= NEAR
    };
    let mut busy: Vec<f64> = samples.iter().filter(near).filter_map(|sample| sample.dut_core_busy).collect();
    busy.sort_by(f64::total_cmp);
    busy.get(busy.len() / 2).is_some_and(|busy| *busy >= BUSY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Scenario;

    fn record(share: Option<f64>, busy: f64) -> Record {
        let mut record = Scenario::default().record();
        record.tester.receive_share = share;
        record.tester.receive_core = record.dut.core;
        record.directions.iter_mut().for_each(|direction| direction.limited_by = LimitedBy::Dut);
        record.samples.iter_mut().for_each(|sample| sample.dut_core_busy = Some(busy));
        record
    }

    #[test]
    fn a_quarter_of_the_core_is_a_third_more() {
        let mut shared = record(Some(0.25), 0.99);
        correct(&mut shared);
        let direction = &shared.directions[0];
        let factor = direction.unshared_rate_pps.unwrap() / direction.max_rate_pps;
        assert!((factor - 4.0 / 3.0).abs() < 1e-9, "{factor}");
        assert!(shared.notes.last().unwrap().contains("took 25 % of the device's core: without it about"));
        assert!(!shared.samples.is_empty());
    }

    #[test]
    fn nothing_is_corrected_where_the_core_was_not_the_limit_or_the_share_is_not_known() {
        let mut apart = record(Some(0.25), 0.99);
        apart.tester.receive_core = Some(7);
        let mut elsewhere = record(Some(0.25), 0.99);
        elsewhere.directions.iter_mut().for_each(|it| it.limited_by = LimitedBy::LineRate);
        for mut record in
            [record(None, 0.99), record(Some(0.25), 0.5), record(Some(0.95), 1.0), apart, elsewhere]
        {
            correct(&mut record);
            assert!(record.directions.iter().all(|direction| direction.unshared_rate_pps.is_none()));
        }
    }
}
