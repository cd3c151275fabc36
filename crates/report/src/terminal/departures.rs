//! How far behind their schedule frames left, a line for each direction that had one; or how many of them were given
//! up, where the tester could not keep to it.

use results::Record;
use stats::Histogram;

use crate::figures::{duration, percent};

/// A tester that gives up a larger share of the frames was at its limit: the delay of the others says how long it waits
/// before it gives up.
const AT_ITS_LIMIT: f64 = 0.01;

/// The lines; none for a direction whose departures had no time.
pub fn lines(record: &Record) -> impl Iterator<Item = String> {
    let alone = record.directions.len() == 1;
    record.directions.iter().enumerate().filter_map(move |(way, direction)| {
        let of = if alone { String::new() } else { format!("{} ", direction.name) };
        let given_up = given_up(record, way);
        if given_up > AT_ITS_LIMIT {
            let share = percent(given_up * 100.0);
            return Some(format!(
                "{of}unsent: {share} of the frames that were due, beyond the tester's own limit"
            ));
        }
        let mut lateness = Histogram::default();
        direction.lateness_ns.iter().for_each(|(late, count)| lateness.record(*late, *count));
        let within = |share| lateness.quantile(share).map(duration);
        let (half, most, all) = (within(0.5)?, within(0.99)?, within(1.0)?);
        Some(format!("{of}transmit delay: p50 {half}, p99 {most}, max {all}"))
    })
}

/// The share of the frames of direction `way` that were not sent because it was too late for them, 0 to 1.
fn given_up(record: &Record, way: usize) -> f64 {
    let samples = || record.samples.iter().filter_map(|sample| sample.directions.get(way));
    let too_late = |sample: &results::record::DirectionSample| {
        sample.unsent.saturating_sub(sample.untaken.values().sum())
    };
    let due: u64 = samples().map(|sample| sample.offered + sample.unsent).sum();
    samples().map(too_late).sum::<u64>() as f64 / due.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn record(lateness_ns: Vec<(u64, u64)>) -> Record {
        let mut record = results::fixtures::Scenario::default().record();
        record.directions[0].lateness_ns = lateness_ns;
        record.samples.iter_mut().flat_map(|sample| &mut sample.directions).for_each(|it| it.unsent = 0);
        record
    }

    fn said(record: &Record) -> Vec<String> {
        lines(record).collect()
    }

    #[test]
    fn the_spread_is_told_where_departures_had_a_time() {
        let mut record = record(vec![(10, 980), (1024, 19), (8_000_000, 1)]);
        assert_eq!(said(&record), ["transmit delay: p50 11 ns, p99 1.0 µs, max 8.1 ms"]);
        record.directions.push(record.directions[0].clone());
        assert!(said(&record)[1].starts_with("0->1 transmit delay"));
        assert_eq!(said(&super::tests::record(Vec::new())), Vec::<String>::new());
    }

    #[test]
    fn a_tester_at_its_limit_tells_what_it_gave_up_instead() {
        let mut record = record(vec![(5_000_000, 1000)]);
        let due = record.samples.iter().map(|sample| sample.directions[0].offered).sum::<u64>();
        let last = &mut record.samples.last_mut().unwrap().directions[0];
        last.unsent = due;
        assert_eq!(said(&record), ["unsent: 50% of the frames that were due, beyond the tester's own limit"]);
        // What a port did not take was not late.
        let last = &mut record.samples.last_mut().unwrap().directions[0];
        last.untaken = BTreeMap::from([("its queue was full".to_owned(), due)]);
        assert!(said(&record)[0].starts_with("transmit delay"));
    }
}
