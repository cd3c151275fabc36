//! Which of a record's figures is compared: a name and a record enter, a [`Reading`] leaves.
//!
//! Directions are added up, as in all reports; of latencies the slower direction counts.

use std::fmt;
use std::str::FromStr;

use results::record::{
    Direction, Distribution, Finding, Irregular, LatencyTest, LimitedBy, LoadLatency, Phase, Record, Sample,
    StallRange, StallSearch, StallVerdict,
};

use crate::figures::plain_duration;

/// A name that is no figure of a record, with those that are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unknown(String);

/// A record that has not the figure that was asked for, with those that it has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{id} has no {metric}; it has: {}", known.join(", "))]
pub struct Missing {
    /// The record's.
    id: String,
    metric: Metric,
    known: Vec<String>,
}

/// Loads within this share of a ramp's limit are near it.
const NEAR: f64 = 0.1;
/// Percentiles lie in a bucket of a histogram that is a 32nd of them wide.
const BUCKET: f64 = 1.0 / 32.0;

/// What is said of better and of worse rates and times.
pub const SPEED: [&str; 2] = ["faster", "slower"];

/// A figure that records have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// What a search found for a goal: `ndr`, `pdr` or another.
    Goal(String),
    /// The highest load at or below the loss threshold, of a ramp.
    MaxRate,
    /// The highest rate that came back, of a ramp or a saturation; of a generator, that arrived.
    MaxForwarded,
    /// The throughput of RFC 2544.
    Throughput,
    /// The share that a soak lost.
    Loss,
    /// The share of the loads of a stall search at which the device stalls, by their logarithms.
    Stalls,
    /// A latency at a load.
    Latency(Delay, Option<String>),
}

/// Which figure of a distribution; percentiles by their place in [`results::record::Percentiles`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// Its mean.
    Mean,
    /// One of its percentiles.
    Percentile(usize),
}

/// What a record says.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The figure: frames a second, nanoseconds or a share.
    pub value: f64,
    /// By what share of it the truth may be off, however often it is measured.
    pub resolution: f64,
    /// What makes it doubtful, in words.
    pub doubts: Vec<String>,
    /// Whether the truth may lie above it: the load's target or the tester ended the measurement, and not the device.
    pub is_open: bool,
}

/// The percentiles' names.
fn percentiles() -> impl Iterator<Item = &'static str> {
    results::record::Percentiles::KINDS.into_iter().map(|(name, _)| name)
}

impl FromStr for Metric {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        let (name, load) = text.split_once('@').map_or((text, None), |(name, load)| (name, Some(load)));
        let metric = match name {
            "max_rate" | "max_lossless" => Self::MaxRate,
            "max_forwarded" => Self::MaxForwarded,
            "throughput" => Self::Throughput,
            "loss" => Self::Loss,
            "stalls" => Self::Stalls,
            "" => {
                return Err(Unknown("a metric needs a name, like ndr, max_forwarded or latency_p99".into()));
            }
            _ => match name.strip_prefix("latency_") {
                Some(figure) => {
                    return delay(figure).map(|delay| Self::Latency(delay, load.map(str::to_owned)));
                }
                None => Self::Goal(name.to_owned()),
            },
        };
        match load {
            None => Ok(metric),
            Some(_) => Err(Unknown(format!("'{text}': only latencies have a load, as in latency_p99@50%"))),
        }
    }
}

fn delay(figure: &str) -> Result<Delay, Unknown> {
    if figure == "mean" {
        return Ok(Delay::Mean);
    }
    percentiles().position(|name| name == figure).map(Delay::Percentile).ok_or_else(|| {
        let known: Vec<&str> = percentiles().collect();
        Unknown(format!("'{figure}' is no figure of latency; there are: mean, {}", known.join(", ")))
    })
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Goal(goal) => f.write_str(goal),
            Self::MaxRate => f.write_str("max_rate"),
            Self::MaxForwarded => f.write_str("max_forwarded"),
            Self::Throughput => f.write_str("throughput"),
            Self::Loss => f.write_str("loss"),
            Self::Stalls => f.write_str("stalls"),
            Self::Latency(delay, load) => {
                let name = match delay {
                    Delay::Mean => "mean",
                    Delay::Percentile(at) => percentiles().nth(*at).unwrap_or("percentile"),
                };
                write!(f, "latency_{name}")?;
                load.as_ref().map_or(Ok(()), |load| write!(f, "@{load}"))
            }
        }
    }
}

impl Metric {
    /// What reports name first of a record.
    #[must_use]
    pub fn headline(record: &Record) -> Self {
        match &record.finding {
            Finding::Search(search) => {
                Self::Goal(search.results.keys().next().map_or("ndr", String::as_str).to_owned())
            }
            Finding::Latency(..) => Self::Latency(Delay::Percentile(2), None),
            Finding::Rfc2544(..) => Self::Throughput,
            Finding::Soak(_) => Self::Loss,
            Finding::Stall(_) => Self::Stalls,
            _ => Self::MaxForwarded,
        }
    }

    /// What the figures are, in words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Latency(..) => format!("{self}, nanoseconds"),
            Self::Loss => "loss, share of the frames offered".to_owned(),
            Self::Stalls => {
                "stalls, share of the loads, on a logarithmic scale, at which it stalls".to_owned()
            }
            _ => format!("{self}, frames a second"),
        }
    }

    /// `value` for people.
    #[must_use]
    pub fn show(&self, value: f64) -> String {
        match self {
            Self::Latency(..) => plain_duration(value),
            Self::Loss => format!("{:.4} %", value * 100.0),
            Self::Stalls => format!("{:.1} %", value * 100.0),
            _ => wire::human::pps(value),
        }
    }

    /// The unit, for machines.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match self {
            Self::Latency(..) => "ns",
            Self::Loss | Self::Stalls => "share",
            _ => "pps",
        }
    }

    /// Whether figures are frames a second.
    #[must_use]
    pub fn is_rate(&self) -> bool {
        !matches!(self, Self::Latency(..) | Self::Loss | Self::Stalls)
    }

    /// Whether smaller figures are better, as of latencies and losses.
    #[must_use]
    pub fn less_is_better(&self) -> bool {
        matches!(self, Self::Latency(..) | Self::Loss | Self::Stalls)
    }

    /// What is said of better and of worse figures.
    #[must_use]
    pub fn comparatives(&self) -> [&'static str; 2] {
        match self {
            Self::Loss => ["loses less", "loses more"],
            Self::Stalls => ["stalls less", "stalls more"],
            _ => SPEED,
        }
    }

    /// What `record` says.
    ///
    /// # Errors
    /// [`Missing`] if it has no such figure.
    pub fn read(&self, record: &Record) -> Result<Reading, Missing> {
        let found = match self {
            Self::Goal(goal) => goal_reading(record, goal),
            Self::MaxRate | Self::MaxForwarded => self.of_curve(record),
            Self::Throughput => throughput(record),
            Self::Loss => loss(record),
            Self::Stalls => record.finding.stall_search().and_then(stalls),
            Self::Latency(delay, load) => latency(record, *delay, load.as_deref()),
        };
        let found = found.filter(|reading| reading.value.is_finite());
        found.ok_or_else(|| Missing { id: record.id.clone(), metric: self.clone(), known: known(record) })
    }

    fn of_curve(&self, record: &Record) -> Option<Reading> {
        if !has_curve(record) || record.directions.is_empty() {
            return None;
        }
        let sum = |value: fn(&Direction) -> f64| record.directions.iter().map(value).sum::<f64>();
        let (value, resolution) = match self {
            Self::MaxRate => (sum(|direction| direction.max_rate_pps), step(record)),
            _ => (sum(|direction| direction.max_forwarded_pps), 0.0),
        };
        let mut doubts = disturbances(record);
        for direction in &record.directions {
            doubts.extend(match record.finding.generator() {
                Some(found) if !found.across => far_end(direction.limited_by),
                _ => limit(direction.limited_by),
            });
            doubts.extend(direction.stalled.map(|_| "the device stalled".to_owned()));
        }
        let is_within = record.finding.generator().is_some_and(|found| !found.across);
        let is_open =
            !is_within && record.directions.iter().any(|direction| is_open(direction.limited_by, None));
        Some(Reading { value, resolution, doubts: distinct(doubts), is_open })
    }
}

/// The doubt about a ramp or a saturation that other activity on the host may have changed.
const INTERFERENCE: &str = "host interference may have changed it";

/// Whether `record` is of a load that rises or stays.
fn has_curve(record: &Record) -> bool {
    matches!(record.finding, Finding::Ramp(_) | Finding::Saturate | Finding::Generator(_))
}

/// The figures that `record` has.
fn known(record: &Record) -> Vec<String> {
    let mut known: Vec<String> = record.finding.results().keys().cloned().collect();
    if has_curve(record) {
        known.extend(["max_rate", "max_forwarded"].map(str::to_owned));
    }
    if record.finding.rfc2544().is_some_and(|test| test.throughput.is_some()) {
        known.push("throughput".to_owned());
    }
    known.extend(record.finding.soak().into_iter().map(|_| "loss".to_owned()));
    known.extend(record.finding.stall_search().into_iter().map(|_| "stalls".to_owned()));
    for load in record.finding.latency().into_iter().flat_map(|test| &test.loads) {
        known.extend(["mean", "p50", "p99"].map(|figure| format!("latency_{figure}@{}", load.name)));
    }
    if known.is_empty() { vec!["nothing to compare".to_owned()] } else { known }
}

fn goal_reading(record: &Record, goal: &str) -> Option<Reading> {
    let result = record.finding.results().get(goal)?;
    let mut doubts: Vec<String> = limit(result.limited_by).into_iter().collect();
    doubts.extend(result.disturbed.then(|| "host interference affected it".to_owned()));
    doubts.extend(result.irregular.filter(|_| !result.disturbed).map(irregular));
    Some(Reading {
        value: result.pps,
        resolution: width(result.pps, result.upper_pps),
        doubts: distinct(doubts),
        is_open: is_open(result.limited_by, result.irregular),
    })
}

fn throughput(record: &Record) -> Option<Reading> {
    let found = record.finding.rfc2544()?.throughput?;
    let mut doubts: Vec<String> = limit(found.limited_by).into_iter().collect();
    doubts.extend(found.irregular.map(irregular));
    let resolution = width(found.pps, found.upper_pps);
    let value = found.pps * record.directions.len().max(1) as f64;
    let is_open = is_open(found.limited_by, found.irregular);
    Some(Reading { value, resolution, doubts: distinct(doubts), is_open })
}

fn loss(record: &Record) -> Option<Reading> {
    let soak = record.finding.soak()?;
    let offered: u64 = soak.directions.iter().map(|direction| direction.offered).sum();
    let lost: u64 = soak.directions.iter().map(|direction| direction.lost).sum();
    let mut doubts = disturbances(record);
    if soak.hiccup_count > 0 {
        doubts.push(format!("the tester was held up {} times", soak.hiccup_count));
    }
    Some(Reading { value: lost as f64 / offered as f64, resolution: 0.0, doubts, is_open: false })
}

/// How much of the logarithmic way from the lowest to the highest load lies in ranges of stalls. An edge lies somewhere
/// between two loads that were tried: their middle counts, and half their distance is in doubt.
fn stalls(search: &StallSearch) -> Option<Reading> {
    let whole = (search.highest_pps / search.lowest_pps).ln();
    let half_way =
        |tried: f64, beyond: Option<f64>| beyond.map_or(0.0, |beyond| (beyond / tried).ln().abs() / 2.0);
    let edges = |range: &StallRange| {
        half_way(range.from_pps, range.above_pps) + half_way(range.to_pps, range.below_pps)
    };
    let of = |verdict: StallVerdict| search.ranges.iter().filter(move |range| range.verdict == verdict);
    let stalled: f64 =
        of(StallVerdict::Stalls).map(|range| (range.to_pps / range.from_pps).ln() + edges(range)).sum();
    // The sum of no numbers is -0.
    let stalled = stalled + 0.0;
    let value = match (whole > 0.0, of(StallVerdict::Stalls).count()) {
        (true, _) => (stalled / whole).clamp(0.0, 1.0),
        // One load alone.
        (false, stalling) => f64::from(u8::from(stalling > 0)),
    };
    let doubtful: f64 = of(StallVerdict::Stalls).map(edges).sum();
    let mut doubts = Vec::new();
    if search.stuck {
        doubts.push("the device did not forward again, and the search ended".to_owned());
    }
    if of(StallVerdict::Unknown).count() > 0 {
        doubts.push("what it does at some loads is not known".to_owned());
    }
    let resolution = if stalled > 0.0 { (doubtful / stalled).min(1.0) } else { 0.0 };
    (!search.ranges.is_empty()).then_some(Reading { value, resolution, doubts, is_open: false })
}

fn latency(record: &Record, delay: Delay, load: Option<&str>) -> Option<Reading> {
    let load = chosen(record.finding.latency()?, load)?;
    let figure = |direction: &Distribution| match delay {
        Delay::Mean => (direction.forwarded > 0).then_some(direction.mean_ns),
        Delay::Percentile(at) => direction.percentiles.values().get(at).copied().flatten(),
    };
    let value = load.directions.iter().filter_map(figure).reduce(f64::max)?;
    let resolution = if delay == Delay::Mean { 0.0 } else { BUCKET };
    let disturbed = load.disturbed.iter().map(|what| format!("host interference affected it: {what}"));
    Some(Reading { value, resolution, doubts: disturbed.collect(), is_open: false })
}

/// The load that is asked for; else half of what the device bears, else the first.
fn chosen<'a>(test: &'a LatencyTest, load: Option<&str>) -> Option<&'a LoadLatency> {
    let find = |wanted: &dyn Fn(&LoadLatency) -> bool| test.loads.iter().find(|load| wanted(load));
    match load {
        Some(name) => find(&|load| load.name == name),
        None => find(&|load| load.share == Some(0.5)).or(test.loads.first()),
    }
}

/// The width of an interval as a share of its lower bound.
fn width(lower: f64, upper: Option<f64>) -> f64 {
    upper.filter(|_| lower > 0.0).map_or(0.0, |upper| (upper - lower).max(0.0) / lower)
}

/// How far the next step of a ramp is from the highest rate within the loss threshold, or the upper bound of the
/// search after it, as a share of it.
fn step(record: &Record) -> f64 {
    if let Some(limit) = crate::evidence::interval(record).filter(|_| crate::evidence::is_searched(record)) {
        return width(limit.lower_pps, limit.upper_pps);
    }
    let ramp = |sample: &&Sample| sample.phase == Phase::Ramp;
    let steps = record.directions.iter().enumerate().map(|(at, direction)| {
        let found = direction.max_rate_pps;
        let loads = record.samples.iter().filter(ramp).filter_map(|sample| sample.directions.get(at));
        let higher = loads.map(|load| load.offered_pps).filter(|load| *load > found);
        width(found, higher.reduce(f64::min))
    });
    steps.fold(0.0, f64::max)
}

/// Whether the truth may lie above a figure: the device did not end the measurement, or the highest load passed.
fn is_open(limited_by: LimitedBy, irregular: Option<Irregular>) -> bool {
    limited_by != LimitedBy::Dut || irregular == Some(Irregular::MaxLoadIsLowerBound)
}

fn limit(limited_by: LimitedBy) -> Option<String> {
    match limited_by {
        LimitedBy::Dut => None,
        LimitedBy::LineRate => Some("it reached the load's target: the device may do more".to_owned()),
        LimitedBy::Tester => Some("the tester limited it: the device may do more".to_owned()),
        LimitedBy::Unknown => Some("nothing proved an end".to_owned()),
    }
}

/// What a generator reached, the far end did not take in all of, where that lost some.
fn far_end(limited_by: LimitedBy) -> Option<String> {
    (limited_by == LimitedBy::Dut).then(|| "more left than arrived: the far end limited it".to_owned())
}

fn irregular(why: Irregular) -> String {
    match why {
        Irregular::MaxLoadIsLowerBound => "the highest load passed",
        Irregular::MinLoadIsUpperBound => "the lowest load failed",
        Irregular::Wide => "its interval is wider than asked for",
        Irregular::Preliminary => "it rests on less trial time than asked for",
    }
    .to_owned()
}

/// What other activity on the host did where it may have moved the figure; of records without evidence of
/// that: near the limit of a ramp, or most of the
/// time of a hold, of which the best half second counts.
fn disturbances(record: &Record) -> Vec<String> {
    if record.directions.iter().any(|direction| direction.evidence.is_some()) && has_curve(record) {
        return crate::evidence::interference(record).into_iter().map(|_| INTERFERENCE.to_owned()).collect();
    }
    let of = |phase| record.samples.iter().filter(move |sample| sample.phase == phase);
    let is_near = |sample: &&Sample| {
        record.directions.iter().zip(&sample.directions).any(|(found, load)| {
            let limit = found.max_rate_pps;
            (limit * (1.0 - NEAR)..=limit * (1.0 + NEAR)).contains(&load.offered_pps)
        })
    };
    let near = of(Phase::Ramp).filter(is_near).any(|sample| sample.disturbed.is_some());
    let disturbed = of(Phase::Hold).filter(|sample| sample.disturbed.is_some()).count();
    let most = disturbed * 2 > of(Phase::Hold).count();
    let near = near.then(|| "host interference near its limit".to_owned());
    near.or(most.then(|| "host interference in most of its samples".to_owned())).into_iter().collect()
}

fn distinct(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts.dedup();
    texts
}

#[cfg(test)]
mod tests {
    use results::fixtures::{Scenario, searches};

    use super::*;

    fn metric(text: &str) -> Metric {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn names_are_read_and_written() {
        for name in ["ndr", "max_rate", "throughput", "loss", "stalls", "latency_p99.9@50%", "latency_mean"] {
            assert_eq!(metric(name).to_string(), name);
        }
        assert!("latency_p98".parse::<Metric>().unwrap_err().0.contains("p99.99"));
        assert!("ndr@50%".parse::<Metric>().is_err() && "".parse::<Metric>().is_err());
    }

    #[test]
    fn each_strategy_has_its_headline() {
        let record = Scenario { bidirectional: true, ..Scenario::default() }.record();
        assert_eq!(Metric::headline(&record), Metric::MaxForwarded);
        let both: f64 = record.directions.iter().map(|direction| direction.max_forwarded_pps).sum();
        assert_eq!(metric("max_forwarded").read(&record).unwrap().value, both);
        let lossless = metric("max_rate").read(&record).unwrap();
        assert!(lossless.resolution > 0.0 && lossless.resolution < 0.1, "{lossless:?}");
        let refusal = metric("pdr").read(&record).unwrap_err().to_string();
        assert!(refusal.contains("has no pdr") && refusal.contains("max_rate"), "{refusal}");
    }

    #[test]
    fn a_stall_search_is_worth_the_share_of_the_loads_that_stall() {
        let range = |verdict, from_pps: f64, to_pps: f64, above_pps, below_pps| StallRange {
            verdict,
            from_pps,
            to_pps,
            above_pps,
            below_pps,
            ..StallRange::default()
        };
        let search =
            |ranges| StallSearch { lowest_pps: 100.0, highest_pps: 1e6, ranges, ..StallSearch::default() };
        let (stalls, forwards) = (StallVerdict::Stalls, StallVerdict::Forwards);
        // A decade of four, up to the middle between 900 and 1111 frames a second.
        let edge = [(900.0, Some(1e6 / 900.0)), (1e6 / 900.0, Some(900.0))];
        let below = range(stalls, 100.0, edge[0].0, None, edge[0].1);
        let above = range(forwards, edge[1].0, 1e6, edge[1].1, None);
        let reading = super::stalls(&search(vec![below, above])).unwrap();
        assert!((reading.value - 0.25).abs() < 1e-9 && reading.doubts.is_empty(), "{reading:?}");
        assert!(reading.resolution > 0.04 && reading.resolution < 0.05, "{reading:?}");
        let never = super::stalls(&search(vec![range(forwards, 100.0, 1e6, None, None)])).unwrap();
        assert_eq!((never.value, never.resolution), (0.0, 0.0));
        assert!(never.value.is_sign_positive(), "people read -0 %");
        let unknown =
            super::stalls(&search(vec![range(StallVerdict::Unknown, 100.0, 1e6, None, None)])).unwrap();
        assert_eq!(unknown.doubts.len(), 1);
        let one = StallSearch {
            lowest_pps: 5.0,
            highest_pps: 5.0,
            ranges: vec![range(stalls, 5.0, 5.0, None, None)],
            ..StallSearch::default()
        };
        assert_eq!(super::stalls(&one).unwrap().value, 1.0);
        assert_eq!(super::stalls(&search(Vec::new())), None);
        assert_eq!(metric("stalls").comparatives(), ["stalls less", "stalls more"]);
    }

    #[test]
    fn a_search_is_known_to_its_interval_and_doubts_are_said() {
        for record in searches() {
            let Some(result) = record.finding.results().get("ndr") else { continue };
            let reading = metric("ndr").read(&record).unwrap();
            assert_eq!(reading.value, result.pps);
            if let (Some(upper), true) = (result.upper_pps, result.pps > 0.0) {
                assert!((reading.resolution - (upper - result.pps) / result.pps).abs() < 1e-12);
            }
            let sound = result.limited_by == LimitedBy::Dut && result.irregular.is_none();
            assert_eq!(reading.doubts.is_empty(), sound, "{reading:?} {result:?}");
        }
        let ramp = Scenario::default().searched_ramp();
        let reading = metric("max_rate").read(&ramp).unwrap();
        assert!((reading.resolution - 0.002).abs() < 1e-4, "{reading:?}");
        let stalled = Scenario { stalled_from: Some(6), capacity_pps: 5e6, ..Scenario::default() }.record();
        let doubts = metric("max_forwarded").read(&stalled).unwrap().doubts;
        assert!(doubts.iter().any(|doubt| doubt.contains("stalled")), "{doubts:?}");
    }
}
