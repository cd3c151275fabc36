//! What a run proves of its headline, in words: a record enters; the interval of the headline, where losses
//! began and what other activity on the host did leave, the same for the terminal, the page and exports.

use results::Record;
use results::record::{Direction, Evidence, Finding, LimitedBy, Phase, RateInterval, Sample, Status};
use stats::{Confidence, Pooled};
use wire::human::{count, pps};

use crate::figures::loss;

/// What a rate is held at, as `≤ 0.1 % loss`; without a loss threshold `no loss`.
pub fn threshold(records: &[&Record]) -> String {
    let mut thresholds = records.iter().map(|record| record.strategy.loss_threshold);
    match thresholds.next() {
        None => "≤ threshold loss".to_owned(),
        Some(first) if thresholds.any(|other| (other - first).abs() > f64::EPSILON) => {
            "≤ threshold loss".to_owned()
        }
        Some(0.0) => "no loss".to_owned(),
        Some(share) => format!("≤ {} % loss", trimmed(share * 100.0)),
    }
}

/// A number without zeros at its end.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Both bounds in one unit, like `1.08–1.12 Mpps`; `≥ 1.08 Mpps` without an upper bound.
#[must_use]
pub fn bounds(interval: RateInterval) -> String {
    let RateInterval { lower_pps, upper_pps } = interval;
    let Some(upper) = upper_pps else { return format!("≥ {}", pps(lower_pps)) };
    let (factor, unit) = unit_of(upper);
    format!("{} {unit}", between(lower_pps / factor, upper / factor))
}

/// So many digits before the point are more than a bound beside a headline has.
const FAR_BEYOND: f64 = 1e4;

/// Both bounds in the unit of `headline_pps`, which is not repeated: `1.08–1.12`. One that is far beyond the headline, as
/// beside 0, has a unit of its own.
pub fn bounds_beside(interval: RateInterval, headline_pps: f64) -> String {
    let (factor, _) = unit_of(headline_pps);
    if interval.upper_pps.is_some_and(|upper| upper >= factor * FAR_BEYOND) {
        return bounds(interval);
    }
    let lower = interval.lower_pps / factor;
    interval.upper_pps.map_or_else(|| format!("≥ {lower:.2}"), |upper| between(lower, upper / factor))
}

/// The unit that people read a rate in, and what it stands for.
fn unit_of(rate: f64) -> (f64, String) {
    let text = pps(rate);
    let unit = text.split_once(' ').map_or("", |(_, unit)| unit);
    let factor = match unit.chars().next() {
        Some('T') => 1e12,
        Some('G') => 1e9,
        Some('M') => 1e6,
        Some('k') => 1e3,
        _ => 1.0,
    };
    (factor, unit.to_owned())
}

/// Two digits after the point, or as many more as tell the bounds apart.
fn between(lower: f64, upper: f64) -> String {
    let text = |digits: usize| (format!("{lower:.digits$}"), format!("{upper:.digits$}"));
    let differ = (2..=4).map(text).find(|(lower, upper)| lower != upper);
    let (lower, upper) = differ.unwrap_or_else(|| text(2));
    format!("{lower}–{upper}")
}

/// The interval of the headline of a ramp or a saturation, all directions added up; `None` where it has none.
pub fn interval(record: &Record) -> Option<RateInterval> {
    let all: Option<Vec<RateInterval>> = record.directions.iter().map(headline).collect();
    all.filter(|all| !all.is_empty()).map(|all| added_up(&all))
}

/// The interval of one direction's headline: where its limit lies if the load rose, else the spread of
/// what was forwarded.
pub fn headline(direction: &Direction) -> Option<RateInterval> {
    let evidence = direction.evidence?;
    evidence.limit.or(evidence.forwarded)
}

/// Whether the load rose, so that the highest load at or below the loss threshold is what was looked for.
pub fn rises(record: &Record) -> bool {
    record.samples.iter().any(|sample| sample.phase == Phase::Ramp)
}

/// Whether the interval of the headline is that of a search after a ramp.
pub fn is_searched(record: &Record) -> bool {
    record.directions.iter().any(|direction| direction.evidence.is_some_and(|it| it.ramp.is_some()))
}

/// What a search after a ramp came to, in words; `None` without one.
pub fn searched(record: &Record) -> Option<String> {
    let Finding::Ramp(Some(search)) = &record.finding else { return None };
    let seconds = search.trials.iter().map(|trial| trial.duration_s).sum::<f64>();
    let trials = match search.trials.len() {
        1 => "1 trial".to_owned(),
        trials => format!("{} trials", count(trials as u64)),
    };
    let ramps: Option<Vec<RateInterval>> = record.directions.iter().map(|it| it.evidence?.ramp).collect();
    let end = match ramps.filter(|ramps| !ramps.is_empty()) {
        Some(ramps) => format!("narrowed the interval; the ramp alone: {}", bounds(added_up(&ramps))),
        None => "did not narrow the interval".to_owned(),
    };
    let second = second(record).map_or_else(String::new, |found| {
        format!("; a second search, later and with the device set up anew: {}", bounds(found))
    });
    Some(format!("a search of {trials}, {seconds:.1} s in all, {end}{second}"))
}

/// Where a second search placed the limit, all directions added up.
pub fn second(record: &Record) -> Option<RateInterval> {
    let seconds: Option<Vec<RateInterval>> = record.directions.iter().map(|it| it.evidence?.second).collect();
    seconds.filter(|seconds| !seconds.is_empty()).map(|seconds| added_up(&seconds))
}

/// How far the pairs of searches of a bench differ, and what that does to its intervals.
#[must_use]
pub fn second_searches(pooled: &Pooled) -> String {
    let confidence = Confidence::default();
    format!(
        "second searches, of {} limits: one search and the other differ by {:.1} % (standard deviation of one), so every \
         interval reaches over both and at least ±{:.1} % ({confidence} confidence)",
        pooled.pairs,
        pooled.deviation * 100.0,
        pooled.reach(confidence.error()) * 100.0,
    )
}

fn added_up(all: &[RateInterval]) -> RateInterval {
    RateInterval {
        lower_pps: all.iter().map(|it| it.lower_pps).sum(),
        upper_pps: all.iter().map(|it| it.upper_pps).sum(),
    }
}

/// The lowest load in all directions at which any frame was lost, of the direction in which that was lowest.
pub fn lowest_loss(record: &Record) -> Option<f64> {
    let began = record.directions.iter().filter_map(|direction| direction.evidence?.loss_began);
    began.map(|began| began.pps).reduce(f64::min)
}

/// Where losses began, for each direction in which that was at a lower load than its limit.
pub fn loss_began(record: &Record) -> Vec<String> {
    let alone = record.directions.len() == 1;
    let all = record.directions.iter().filter_map(|direction| {
        let of = if alone { String::new() } else { format!("{}: ", direction.name.replace("->", "→")) };
        Some(format!("{of}{}", direction_loss_began(direction)?))
    });
    all.collect()
}

fn direction_loss_began(direction: &Direction) -> Option<String> {
    let evidence = direction.evidence.filter(|evidence| evidence.limit.is_some())?;
    let began = evidence.loss_began.filter(|began| began.pps < direction.max_rate_pps)?;
    let excused = if began.excused { ", where other activity on this host may be the cause" } else { "" };
    let recovered = match direction.lossy_samples_below {
        0 => String::new(),
        1 => "; the device recovered from 1 lossy step".to_owned(),
        steps => format!("; the device recovered from {} lossy steps", count(steps as u64)),
    };
    Some(format!(
        "loss first began at {} ({} lost{excused}){recovered}",
        pps(began.pps),
        loss(began.loss_ratio)
    ))
}

/// Whether other activity on the host may have changed the result of a ramp or a saturation.
#[must_use]
pub fn may_have_changed(record: &Record) -> bool {
    let affected =
        record.samples.iter().filter(|sample| is_measured(sample)).any(|it| it.disturbed.is_some());
    let short = |direction: &&Direction| direction.limited_by != LimitedBy::LineRate;
    // Records without evidence say only whether there was any.
    record
        .directions
        .iter()
        .filter(short)
        .any(|it| it.evidence.map_or(affected, |it| it.interference_matters))
}

/// Whether `record` is to be preferred to `other`, a run of the same test: it came to its end, and nothing may
/// have changed its result, or it tells more precisely where that lies.
#[must_use]
pub fn is_clearer(record: &Record, other: &Record) -> bool {
    let width = |record: &Record| {
        let bounds = interval(record).and_then(|it| Some(it.upper_pps? - it.lower_pps));
        bounds.unwrap_or(f64::INFINITY)
    };
    record.status == Status::Complete && (!may_have_changed(record) || width(record) < width(other))
}

/// What other activity on the host did to a ramp or a saturation, how much and what to do; `None` where it
/// cannot have changed the result.
pub fn interference(record: &Record) -> Option<String> {
    let worst = record.directions.iter().filter_map(|direction| direction.evidence);
    let worst = worst.filter(|evidence| evidence.interference_matters).max_by_key(|it| it.affected)?;
    let Evidence { affected, samples, .. } = worst;
    let cause = worst_cause(record).map_or(String::new(), |cause| format!(" (worst: {cause})"));
    Some(format!(
        "~ interference: {} of {} samples were affected by other activity on this host{cause}, so the interval \
         is wider; measure again on a quieter host",
        count(affected as u64),
        count(samples as u64),
    ))
}

/// What the host did in the sample that it affected most.
fn worst_cause(record: &Record) -> Option<&str> {
    let measured = record.samples.iter().filter(|sample| is_measured(sample));
    let affected = measured.filter(|sample| sample.disturbed.is_some());
    let noise = |sample: &Sample| sample.noise.unwrap_or(1.0);
    affected.max_by(|a, b| noise(a).total_cmp(&noise(b)))?.disturbed.as_deref()
}

fn is_measured(sample: &Sample) -> bool {
    matches!(sample.phase, Phase::Ramp | Phase::Hold)
}

#[cfg(test)]
mod tests {
    use results::fixtures::{Scenario, oddities};

    use super::*;

    #[test]
    fn bounds_have_one_unit() {
        let text = |lower_pps, upper_pps| bounds(RateInterval { lower_pps, upper_pps });
        assert_eq!(text(1.08e6, Some(1.123e6)), "1.08–1.12 Mpps");
        assert_eq!(text(998e3, Some(1.01e6)), "1.00–1.01 Mpps");
        assert_eq!(text(30_000.0, Some(30_300.0)), "30.00–30.30 kpps");
        assert_eq!(text(3.6e6, None), "≥ 3.60 Mpps");
        assert_eq!(text(1.096e6, Some(1.1e6)), "1.096–1.100 Mpps");
        assert_eq!(text(0.0, Some(400.0)), "0.00–400.00 pps");
    }

    #[test]
    fn bounds_beside_a_headline_have_its_unit() {
        let interval = |upper_pps| RateInterval { lower_pps: 930e3, upper_pps };
        assert_eq!(bounds_beside(interval(Some(1.3e6)), 930e3), "930.00–1300.00");
        assert_eq!(bounds_beside(interval(None), 1.1e6), "≥ 0.93");
        let nothing = RateInterval { lower_pps: 0.0, upper_pps: Some(4.51e6) };
        assert_eq!(bounds_beside(nothing, 0.0), "0.00–4.51 Mpps");
    }

    #[test]
    fn a_threshold_is_named_where_it_is_one() {
        let record = Scenario::default().record();
        let mut exact = record.clone();
        exact.strategy.loss_threshold = 0.0;
        assert_eq!(threshold(&[&record]), "≤ 0.1 % loss");
        assert_eq!(threshold(&[&exact]), "no loss");
        assert_eq!(threshold(&[&exact, &record]), "≤ threshold loss");
    }

    #[test]
    fn directions_are_added_up_and_one_without_a_bound_leaves_none() {
        let mut record = Scenario { bidirectional: true, ..Scenario::default() }.record();
        let one = headline(&record.directions[0]).unwrap();
        let both = interval(&record).unwrap();
        assert!(
            both.lower_pps > one.lower_pps * 1.9 && both.upper_pps.unwrap() > one.upper_pps.unwrap() * 1.9
        );
        record.directions[1].evidence.as_mut().unwrap().limit.as_mut().unwrap().upper_pps = None;
        assert_eq!(interval(&record).unwrap().upper_pps, None);
        record.directions[1].evidence = None;
        assert_eq!(interval(&record), None);
    }

    #[test]
    fn a_search_after_a_ramp_says_what_it_came_to() {
        let scenario = Scenario { bidirectional: true, ..Scenario::default() };
        assert_eq!(searched(&scenario.record()), None);
        let mut record = scenario.searched_ramp();
        let alone = bounds(interval(&scenario.record()).unwrap());
        let text = searched(&record).unwrap();
        assert!(text.ends_with(&format!("narrowed the interval; the ramp alone: {alone}")), "{text}");
        assert!(is_searched(&record) && interval(&record) != interval(&scenario.record()));
        for evidence in record.directions.iter_mut().filter_map(|it| it.evidence.as_mut()) {
            evidence.second = Some(RateInterval { lower_pps: 5e5, upper_pps: Some(5.1e5) });
        }
        assert!(searched(&record).unwrap().ends_with("set up anew: 1.00–1.02 Mpps"));
        record.directions.iter_mut().filter_map(|it| it.evidence.as_mut()).for_each(|it| it.ramp = None);
        record.directions[0].evidence.as_mut().unwrap().second = None;
        assert!(searched(&record).unwrap().ends_with("did not narrow the interval") && !is_searched(&record));
    }

    #[test]
    fn where_losses_began_is_said_where_it_is_below_the_limit() {
        let mut record = Scenario::default().record();
        assert!(loss_began(&record).is_empty(), "the next step is no news");
        record.directions[0].lossy_samples_below = 17;
        let began = &mut record.directions[0].evidence.as_mut().unwrap().loss_began.as_mut().unwrap();
        (began.pps, began.loss_ratio) = (379_000.0, 0.27);
        assert_eq!(
            loss_began(&record),
            ["loss first began at 379.00 kpps (27% lost); the device recovered from 17 lossy steps"]
        );
    }

    #[test]
    fn interference_is_a_line_only_where_it_may_have_changed_the_result() {
        assert_eq!(interference(&Scenario::default().record()), None);
        let below = Scenario { disturbed_at: Some(2), ramp_samples: 20, ..Scenario::default() }.record();
        assert_eq!(interference(&below), None);
        let at_the_limit = &oddities()[3];
        let line = interference(at_the_limit).unwrap();
        let calm = Scenario { ramp_samples: 20, ..Scenario::default() }.record();
        assert!(may_have_changed(at_the_limit) && !may_have_changed(&below) && !may_have_changed(&calm));
        assert!(is_clearer(&calm, at_the_limit) && !is_clearer(at_the_limit, &calm));
        assert!(line.starts_with("~ interference: 1 of 27 samples") && line.contains("on core 1"), "{line}");
    }
}
