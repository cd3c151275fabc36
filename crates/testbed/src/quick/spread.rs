//! What two searches for one limit tell together: the records of a bench and of its second searches enter; intervals that
//! reach over both, and as far as such pairs differ in this bench, stand in the records. Pure.
//!
//! The interval of one search is true of the seconds in which it was measured. A device that is set up anew has other
//! memory, other caches and another minute of its host, and a limit some percent away. How far is known from all pairs of
//! the bench together ([`Pooled`]): by it every interval is widened.

use results::Record;
use results::record::RateInterval;
use stats::{Confidence, Pooled};

/// A limit that is not known to this width, as a share of itself, tells nothing of how far two searches differ.
const DECIDED: f64 = 0.1;

/// What `second`, a search of its own, found for each direction; `None` where it found nothing that counts.
#[must_use]
pub fn found(second: &Record) -> Option<RateInterval> {
    let result = second.finding.results().values().next()?;
    let ways = second.directions.len().max(1) as f64;
    let counts = result.lower_pps > 0.0 && !result.disturbed;
    counts.then_some(RateInterval {
        lower_pps: result.lower_pps / ways,
        upper_pps: result.upper_pps.map(|upper| upper / ways),
    })
}

/// Widens the intervals of `records` by what the second search for each found, where there was one, and by how far all
/// pairs differ. Says what that is; `None` where no pair tells.
pub fn settle(records: &mut [(Record, Option<RateInterval>)]) -> Option<Pooled> {
    let pairs: Vec<(f64, f64)> = records
        .iter()
        .filter_map(|(record, second)| Some((middle(searched_limit(record)?)?, middle((*second)?)?)))
        .collect();
    let pooled = Pooled::of(&pairs);
    for (record, second) in records.iter_mut() {
        let Some(second) = *second else { continue };
        for direction in &mut record.directions {
            let Some(evidence) = &mut direction.evidence else { continue };
            evidence.second = Some(second);
            evidence.limit = evidence.limit.map(|first| over_both(first, second, pooled));
            let upper_pps = evidence.limit.and_then(|limit| limit.upper_pps).unwrap_or(f64::INFINITY);
            direction.max_rate_pps = direction.max_rate_pps.min(upper_pps);
        }
    }
    pooled
}

/// The limit of the first direction of `record`: where a search found it, all have the same.
fn searched_limit(record: &Record) -> Option<RateInterval> {
    record.directions.first()?.evidence?.limit
}

/// The middle of an interval that is narrow enough to tell.
fn middle(interval: RateInterval) -> Option<f64> {
    let upper = interval.upper_pps.filter(|upper| *upper < interval.lower_pps * (1.0 + DECIDED))?;
    Some(f64::midpoint(interval.lower_pps, upper))
}

/// An interval that holds both, and the middle of them as far as it may be off.
fn over_both(first: RateInterval, second: RateInterval, pooled: Option<Pooled>) -> RateInterval {
    let lower_pps = first.lower_pps.min(second.lower_pps);
    let upper_pps = match (first.upper_pps, second.upper_pps) {
        (Some(one), Some(other)) => Some(one.max(other)),
        // One that found no bound in its time proves nothing against a bound above what it passed.
        (Some(one), None) if second.lower_pps < one => Some(one),
        (None, Some(other)) if first.lower_pps < other => Some(other),
        _ => None,
    };
    let both = RateInterval { lower_pps, upper_pps };
    let reach = pooled.map(|pooled| pooled.reach(Confidence::default().error()));
    let (Some(reach), Some(one), Some(other), Some(upper)) =
        (reach, middle(first), middle(second), upper_pps)
    else {
        return both;
    };
    let mean = (one * other).sqrt();
    RateInterval {
        lower_pps: lower_pps.min(mean / (1.0 + reach)),
        upper_pps: Some(upper.max(mean * (1.0 + reach))),
    }
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;

    fn interval(lower_pps: f64, upper_pps: f64) -> RateInterval {
        RateInterval { lower_pps, upper_pps: Some(upper_pps) }
    }

    /// Records whose limits are `first`, and what second searches found.
    fn bench(pairs: &[(RateInterval, Option<RateInterval>)]) -> Vec<(Record, Option<RateInterval>)> {
        let record = |first: RateInterval| {
            let mut record = Scenario::default().searched_ramp();
            record.directions.iter_mut().for_each(|it| it.evidence.as_mut().unwrap().limit = Some(first));
            record
        };
        pairs.iter().map(|(first, second)| (record(*first), *second)).collect()
    }

    fn limits(bench: &[(Record, Option<RateInterval>)]) -> Vec<RateInterval> {
        bench.iter().map(|(record, _)| searched_limit(record).unwrap()).collect()
    }

    #[test]
    fn an_interval_reaches_over_both_searches_and_as_far_as_pairs_differ() {
        let narrow = |pps: f64| interval(pps * 0.995, pps * 1.005);
        let pair = |one: f64, other: f64| (narrow(one), Some(narrow(other)));
        let mut records = bench(&[pair(1e6, 1.02e6), pair(2e6, 1.96e6), pair(5e5, 5.1e5), pair(8e5, 8e5)]);
        let pooled = settle(&mut records).unwrap();
        assert_eq!(pooled.pairs, 4);
        let reach = pooled.reach(0.05);
        assert!(reach > 0.02 && reach < 0.04, "{reach}");
        let found = limits(&records);
        // The pair that agreed is as uncertain as the others.
        assert!((found[3].lower_pps - 8e5 / (1.0 + reach)).abs() < 100.0, "{found:?}");
        for (limit, (one, other)) in
            found.iter().zip([(1e6, 1.02e6), (2e6, 1.96e6), (5e5, 5.1e5), (8e5, 8e5)])
        {
            for pps in [one * 0.995, one * 1.005, other * 0.995, other * 1.005] {
                assert!(limit.lower_pps <= pps && pps <= limit.upper_pps.unwrap(), "{limit:?} {pps}");
            }
        }
        let evidence = records[0].0.directions[0].evidence.unwrap();
        assert_eq!(evidence.second, Some(narrow(1.02e6)));
    }

    #[test]
    fn what_a_second_search_does_not_know_changes_no_bound() {
        let open = |lower_pps| Some(RateInterval { lower_pps, upper_pps: None });
        let mut records = bench(&[
            (interval(90.0, 100.0), None),
            (interval(90.0, 100.0), open(80.0)),
            (interval(90.0, 100.0), open(120.0)),
            (interval(50.0, 100.0), Some(interval(96.0, 97.0))),
            (RateInterval { lower_pps: 90.0, upper_pps: None }, Some(interval(95.0, 97.0))),
            (RateInterval { lower_pps: 99.0, upper_pps: None }, Some(interval(95.0, 97.0))),
        ]);
        // No two searches were narrow enough to be compared.
        assert_eq!(settle(&mut records), None);
        let expected =
            [interval(90.0, 100.0), interval(80.0, 100.0), RateInterval { lower_pps: 90.0, upper_pps: None }];
        assert_eq!(limits(&records)[..3], expected);
        let open = RateInterval { lower_pps: 95.0, upper_pps: None };
        assert_eq!(limits(&records)[3..], [interval(50.0, 100.0), interval(90.0, 97.0), open]);
        assert_eq!(records[0].0.directions[0].evidence.unwrap().second, None);
    }

    #[test]
    fn a_disturbed_search_does_not_count() {
        let mut record = Scenario { bidirectional: true, ..Scenario::default() }.search();
        let alone = *record.finding.results().values().next().unwrap();
        let of_each = found(&record).unwrap();
        assert!((of_each.lower_pps - alone.lower_pps / 2.0).abs() < 1e-6);
        if let results::record::Finding::Search(search) = &mut record.finding {
            search.results.values_mut().for_each(|result| result.disturbed = true);
        }
        assert_eq!(found(&record), None);
    }
}
