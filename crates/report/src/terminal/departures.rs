//! How far behind their schedule frames left, a line for each direction that had one; or how many of them were given
//! up, where the tester could not keep to it.

use results::Record;
use results::record::AT_ITS_LIMIT;
use stats::Histogram;

use crate::figures::{duration, percent};

/// The lines; none for a direction whose departures had no time.
pub fn lines(record: &Record) -> impl Iterator<Item = String> {
    let alone = record.directions.len() == 1;
    record.directions.iter().filter_map(move |direction| {
        let of = if alone { String::new() } else { format!("{} ", direction.name) };
        let too_late = direction.too_late();
        if too_late > AT_ITS_LIMIT {
            let share = percent(too_late * 100.0);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn record(lateness_ns: Vec<(u64, u64)>) -> Record {
        let mut record = results::fixtures::Scenario::default().record();
        record.directions[0].lateness_ns = lateness_ns;
        record.directions[0].unsent = 0;
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
        let first = &mut record.directions[0];
        first.unsent = first.offered;
        assert_eq!(said(&record), ["unsent: 50% of the frames that were due, beyond the tester's own limit"]);
        // What a port did not take was not late.
        let first = &mut record.directions[0];
        first.untaken = BTreeMap::from([("its queue was full".to_owned(), first.unsent)]);
        assert!(said(&record)[0].starts_with("transmit delay"));
    }
}
