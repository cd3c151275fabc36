//! How far behind their schedule frames left, a line for each direction that had one.

use results::record::Direction;
use stats::Histogram;

use crate::figures::duration;

/// The line; nothing where no departure had a time, as in a run at full speed. `alone` leaves the
/// direction's name out.
pub fn line(direction: &Direction, alone: bool) -> Option<String> {
    let mut lateness = Histogram::default();
    direction.lateness_ns.iter().for_each(|(late, count)| lateness.record(*late, *count));
    let within = |share| lateness.quantile(share).map(duration);
    let (half, most, all) = (within(0.5)?, within(0.99)?, within(1.0)?);
    let of = if alone { String::new() } else { format!("{} ", direction.name) };
    Some(format!("{of}transmit delay: p50 {half}, p99 {most}, max {all}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direction(lateness_ns: Vec<(u64, u64)>) -> Direction {
        Direction { lateness_ns, ..results::fixtures::Scenario::default().record().directions.remove(0) }
    }

    #[test]
    fn the_spread_is_told_where_departures_had_a_time() {
        let spread = direction(vec![(10, 980), (1024, 19), (8_000_000, 1)]);
        assert_eq!(line(&spread, true).unwrap(), "transmit delay: p50 11 ns, p99 1.0 µs, max 8.1 ms");
        assert!(line(&spread, false).unwrap().starts_with("0->1 transmit delay"));
        assert_eq!(line(&direction(Vec::new()), true), None);
    }
}
