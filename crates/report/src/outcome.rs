//! What a report says of one run: a record enters, its directions added up and its marks leave,
//! once for each figure that the run found.

use results::record::{
    Direction, Finding, GoalResult, Irregular, LimitedBy, LoadLatency, LossPattern, Phase, RateInterval,
    Record, Sample, SoakDirection, Status,
};
use wire::human::pps;
use wire::size;

use crate::evidence;
use crate::figures::{duration, loss, percent};
use crate::overload::Overload;
use crate::{stalls, waterfall};

/// What a run's figures are, by its strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Samples of a load that rises or stays: ramps and saturations.
    Curves,
    Search,
    Latency,
    Rfc2544,
    Soak,
    Stall,
    /// What a frame costs from memory to the port.
    Waterfall,
}

impl Kind {
    pub fn of(record: &Record) -> Self {
        match &record.finding {
            Finding::Search(_) => Self::Search,
            Finding::Latency(..) => Self::Latency,
            Finding::Rfc2544(..) => Self::Rfc2544,
            Finding::Soak(_) => Self::Soak,
            Finding::Stall(_) => Self::Stall,
            Finding::Generator(Some(found)) if !found.waterfall.is_empty() => Self::Waterfall,
            Finding::Ramp(_)
            | Finding::Saturate
            | Finding::Generator(_)
            | Finding::Cost(_)
            | Finding::Other => Self::Curves,
        }
    }
}

/// What the tests of RFC 2544 are compared by.
pub const THROUGHPUT: &str = "RFC 2544";

/// Something that a reader must know before using a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// The tester could not offer more.
    Tester,
    /// The device stopped forwarding.
    Stalled,
    /// Other activity on the host may have changed the result.
    Interference,
    /// A search could not narrow the interval as asked for.
    Irregular,
    /// The run did not come to its end.
    Unfinished,
    /// The run could not be carried out.
    Failed,
}

impl Mark {
    /// What stands before the figure.
    pub fn prefix(self) -> &'static str {
        if self == Self::Tester { "≥" } else { "" }
    }

    /// What stands behind the figure.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Tester => "",
            Self::Stalled => "!",
            Self::Interference => "~",
            Self::Irregular => "?",
            Self::Unfinished => "…",
            Self::Failed => "×",
        }
    }

    /// The footnote.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Tester => "limited by the tester: the device may forward more",
            Self::Stalled => "stalled: the device stopped forwarding and did not begin again",
            Self::Interference => {
                "interference: other activity on this host may have changed the result; its interval is wider"
            }
            Self::Irregular => "search did not reach the requested precision; see the search table",
            Self::Unfinished => "unfinished: interrupted or still running, the device may forward more",
            Self::Failed => "failed: the run could not be carried out; its verdict says why",
        }
    }

    /// Its sign alone, as the footnote begins with it.
    pub fn sign(self) -> &'static str {
        if self == Self::Tester { self.prefix() } else { self.suffix() }
    }
}

/// The figures of one run, of a search those of one goal. Rates are summed over directions.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// The run.
    pub record: &'a Record,
    /// What was looked for, where it is not the highest rate: the goal of a search, for instance.
    pub goal: Option<String>,
    /// What to compare instead of the share of line rate, in words.
    pub text: Option<String>,
    /// Highest rate that came back; of a goal, what came back of the load that passed.
    pub forwarded_pps: f64,
    /// Highest offered load at or below the loss threshold; of a goal, the load that passed.
    pub limit_pps: f64,
    /// Where the headline lies, by the run's own evidence, where that is known.
    pub interval: Option<RateInterval>,
    /// The figure to compare as L1: the highest rate that came back, or the load that passed.
    pub l1_bps: f64,
    /// The same as L2.
    pub l2_bps: f64,
    /// `l1_bps` as percent of one direction's line rate: 200 at most when there are two.
    pub line_rate_percent: f64,
    /// What limited it, in words; both where the directions differ.
    pub limited_by: String,
    /// In the order of [`Mark`].
    pub marks: Vec<Mark>,
    /// Whether there are figures at all.
    pub has_figures: bool,
}

impl<'a> Outcome<'a> {
    /// Everything that a run found: one outcome, or one for each goal.
    pub fn all(record: &'a Record) -> Vec<Self> {
        let whole = || Self::of_directions(record);
        match Kind::of(record) {
            Kind::Curves => vec![whole()],
            Kind::Search if record.finding.results().is_empty() => {
                vec![Self { has_figures: false, goal: Some("search".to_owned()), ..whole() }]
            }
            Kind::Search => record
                .finding
                .results()
                .iter()
                .map(|(goal, result)| Self::of_goal(record, goal, result))
                .collect(),
            Kind::Latency => {
                vec![Self { text: Some(latency(record)), goal: Some("latency".to_owned()), ..whole() }]
            }
            Kind::Soak => vec![Self { text: Some(lost(record)), goal: Some("soak".to_owned()), ..whole() }],
            Kind::Waterfall => {
                let text = record.finding.generator().and_then(waterfall::headline);
                vec![Self { text, goal: Some("waterfall".to_owned()), ..whole() }]
            }
            Kind::Stall => {
                let found = record.finding.stall_search().map_or_else(|| "-".to_owned(), stalls::headline);
                vec![Self { text: Some(found), goal: Some("stall".to_owned()), ..whole() }]
            }
            Kind::Rfc2544 => vec![Self::of_throughput(record)],
        }
    }

    /// What stands for the whole run: of several goals, the first.
    pub fn new(record: &'a Record) -> Self {
        Self::all(record).into_iter().next().unwrap_or_else(|| Self::of_directions(record))
    }

    fn of_directions(record: &'a Record) -> Self {
        let sum = |value: fn(&Direction) -> f64| record.directions.iter().map(value).sum();
        let mut limits: Vec<_> = record.directions.iter().map(|d| limited_by(d.limited_by)).collect();
        limits.dedup();
        Self {
            record,
            goal: None,
            text: None,
            forwarded_pps: sum(|d| d.max_forwarded_pps),
            limit_pps: sum(|d| d.max_rate_pps),
            interval: evidence::interval(record),
            l1_bps: sum(|d| d.l1_bps),
            l2_bps: sum(|d| d.l2_bps),
            line_rate_percent: sum(|d| d.line_rate_percent),
            limited_by: limits.join(", "),
            marks: marks(record, None),
            has_figures: !record.directions.is_empty(),
        }
    }

    fn of_goal(record: &'a Record, goal: &str, result: &GoalResult) -> Self {
        let frame_size = record.profile.mean_frame_size;
        let l1_bps = size::pps_to_l1_bps(result.pps, frame_size);
        Self {
            record,
            goal: Some(goal.to_owned()),
            text: None,
            forwarded_pps: result.conditional_throughput_pps,
            limit_pps: result.lower_pps,
            interval: Some(RateInterval { lower_pps: result.lower_pps, upper_pps: result.upper_pps }),
            l1_bps,
            l2_bps: size::pps_to_l2_bps(result.pps, frame_size),
            line_rate_percent: l1_bps / record.line_rate_bps * 100.0,
            limited_by: limited_by(result.limited_by).to_owned(),
            marks: marks(record, Some(result)),
            has_figures: true,
        }
    }

    fn of_throughput(record: &'a Record) -> Self {
        let goal = Some(THROUGHPUT.to_owned());
        let Some(found) = record.finding.rfc2544().and_then(|test| test.throughput) else {
            return Self { goal, has_figures: false, ..Self::of_directions(record) };
        };
        let ways = record.directions.len().max(1) as f64;
        let found_pps = found.pps * ways;
        let result = GoalResult {
            pps: found_pps,
            lower_pps: found_pps,
            upper_pps: found.upper_pps.map(|upper| upper * ways),
            conditional_throughput_pps: found_pps,
            irregular: found.irregular,
            disturbed: false,
            limited_by: found.limited_by,
        };
        Self { goal, ..Self::of_goal(record, "", &result) }
    }

    /// The share of line rate with its marks, like `≥97%` or `4.4%!`; `failed` without figures.
    pub fn marked_percent(&self) -> String {
        if !self.has_figures {
            return if self.marks.contains(&Mark::Failed) { "failed ×" } else { "…" }.to_owned();
        }
        match &self.text {
            Some(text) => self.marked(text),
            None => self.marked(&percent(self.line_rate_percent)),
        }
    }

    /// The figure that the run is known by: the highest load at or below the loss threshold of a load that
    /// rose, the load that passed a goal, else the highest rate that came back.
    pub fn headline_pps(&self) -> f64 {
        let is_limit = Kind::of(self.record) != Kind::Curves || evidence::rises(self.record);
        if is_limit { self.limit_pps } else { self.forwarded_pps }
    }

    /// Whether its headline is a rate: a latency or a loss is not.
    pub fn is_rate(&self) -> bool {
        self.has_figures && self.text.is_none()
    }

    /// What the device still forwards of more load than it can take, if that is far less than its headline.
    pub fn collapse(&self) -> Option<Overload> {
        Overload::collapse(self.record, self.headline_pps())
    }

    /// That figure as L1, as percent of one direction's line rate.
    pub fn headline_percent(&self) -> f64 {
        let l1_bps = size::pps_to_l1_bps(self.headline_pps(), self.record.profile.mean_frame_size);
        l1_bps / self.record.line_rate_bps * 100.0
    }

    /// The headline with its marks and, where it is known, the interval that it lies in: `1.10 Mpps~` and
    /// `1.08–1.12`.
    pub fn marked_rate(&self) -> (String, Option<String>) {
        match &self.text {
            _ if !self.has_figures => (self.marked_percent(), None),
            Some(text) => (self.marked(text), None),
            None => {
                let headline = self.headline_pps();
                let interval = self.shown_interval();
                (self.marked(&pps(headline)), interval.map(|it| evidence::bounds_beside(it, headline)))
            }
        }
    }

    /// Where the headline lies, if that says more than the headline itself.
    pub fn shown_interval(&self) -> Option<RateInterval> {
        // Where the tester is the limit, the headline itself says that it is a lower bound.
        let is_open = self.marks.contains(&Mark::Interference) && !self.marks.contains(&Mark::Tester);
        let is_news =
            |it: &RateInterval| it.upper_pps.is_some() || it.lower_pps < self.headline_pps() || is_open;
        self.interval.filter(is_news)
    }

    /// Both in one, like `1.10 Mpps~ (1.08–1.12)`.
    pub fn with_interval(&self) -> String {
        match self.marked_rate() {
            (rate, Some(interval)) => format!("{rate} ({interval})"),
            (rate, None) => rate,
        }
    }

    /// `figure` between the marks.
    pub fn marked(&self, figure: &str) -> String {
        let prefix: String = self.marks.iter().map(|mark| mark.prefix()).collect();
        let suffix: String = self.marks.iter().map(|mark| mark.suffix()).collect();
        format!("{prefix}{figure}{suffix}")
    }
}

/// The load of a latency test that stands for all: half of what the device bears, or the first one.
pub fn typical_load(record: &Record) -> Option<&LoadLatency> {
    let loads = &record.finding.latency()?.loads;
    loads.iter().find(|load| load.share == Some(0.5)).or(loads.first())
}

/// The latency at the typical load, in words.
fn latency(record: &Record) -> String {
    let Some(load) = typical_load(record) else { return "-".to_owned() };
    let p99 = load.directions.iter().filter_map(|direction| direction.percentiles.p99_ns).fold(0.0, f64::max);
    format!("p99 {} at {}", duration(p99), load.name)
}

/// The share that a soak lost, in words.
fn lost(record: &Record) -> String {
    let directions = || record.finding.soak().into_iter().flat_map(|soak| &soak.directions);
    let sum = |count: fn(&SoakDirection) -> u64| directions().map(count).sum::<u64>() as f64;
    let (lost, offered) = (sum(|d| d.lost), sum(|d| d.offered));
    let stalls = directions().map(|direction| direction.stall_count).sum::<usize>();
    match (stalls, lost) {
        (0, 0.0) => "nothing lost".to_owned(),
        (0, _) => format!("{} lost", loss(lost / offered.max(1.0))),
        (1, _) => "1 stall".to_owned(),
        _ => format!("{stalls} stalls"),
    }
}

/// The marks of a run, or of a search's result for one goal.
fn marks(record: &Record, result: Option<&GoalResult>) -> Vec<Mark> {
    let any = |test: fn(&Direction) -> bool| record.directions.iter().any(test);
    let (tester, disturbed, irregular) = match result {
        Some(result) => {
            let tester = result.limited_by == LimitedBy::Tester;
            let at_top = result.irregular == Some(Irregular::MaxLoadIsLowerBound);
            let irregular = result.irregular.is_some() && !result.disturbed && !at_top;
            (tester, result.disturbed, irregular)
        }
        None => {
            let curves = Kind::of(record) == Kind::Curves;
            let disturbed = if curves { evidence::may_have_changed(record) } else { by_machine(record) };
            // A generator's limit is what was looked for, unless it sent through a device.
            let judges = record.finding.generator().is_none_or(|found| found.across);
            let tester = judges && any(|d| d.limited_by == LimitedBy::Tester);
            (curves && tester, disturbed, false)
        }
    };
    let found = [
        (Mark::Tester, tester),
        (Mark::Stalled, any(|d| d.stalled.is_some())),
        (Mark::Interference, disturbed),
        (Mark::Irregular, irregular),
        (Mark::Unfinished, matches!(record.status, Status::Running | Status::Interrupted)),
        (Mark::Failed, record.status == Status::Failed),
    ];
    found.into_iter().filter_map(|(mark, applies)| applies.then_some(mark)).collect()
}

/// Whether other activity on the host affected what was measured.
fn by_machine(record: &Record) -> bool {
    if let Some(test) = record.finding.latency() {
        return test.loads.iter().any(|load| load.disturbed.is_some());
    }
    let measured = |sample: &&Sample| matches!(sample.phase, Phase::Ramp | Phase::Hold);
    record.samples.iter().filter(measured).any(|sample| sample.disturbed.is_some())
}

/// The limit in words.
pub fn limited_by(limit: LimitedBy) -> &'static str {
    match limit {
        LimitedBy::Dut => "DUT",
        LimitedBy::LineRate => "target load",
        LimitedBy::Tester => "tester",
        LimitedBy::Unknown => "unknown",
    }
}

/// The limit of a throughput of RFC 2544 in words: its target load is line rate.
pub fn throughput_limited_by(limit: LimitedBy) -> &'static str {
    if limit == LimitedBy::LineRate { "line rate" } else { limited_by(limit) }
}

/// How losses are spread, in a word.
pub fn loss_pattern(pattern: LossPattern) -> &'static str {
    match pattern {
        LossPattern::None => "none",
        LossPattern::Scattered => "scattered",
        LossPattern::Periodic => "periodic",
        LossPattern::Steady => "steady",
    }
}

/// The status in words.
pub fn status(status: Status) -> &'static str {
    match status {
        Status::Running => "unfinished",
        Status::Complete => "complete",
        Status::Interrupted => "interrupted",
        Status::Failed => "failed",
    }
}

#[cfg(test)]
mod tests {
    use results::fixtures::{Scenario, oddities};

    use super::*;

    #[test]
    fn directions_are_added_up() {
        let scenario = Scenario { frame_size: 1514.0, bidirectional: true, ..Scenario::default() };
        let record = scenario.record();
        let outcome = Outcome::new(&record);
        assert_eq!(percent(outcome.line_rate_percent), "200%");
        assert_eq!(outcome.limited_by, "target load");
        assert!(outcome.marks.is_empty());
    }

    #[test]
    fn oddities_are_marked() {
        let records = oddities();
        let marks: Vec<_> = records.iter().map(|record| Outcome::new(record).marks).collect();
        let expected = [Mark::Stalled, Mark::Tester, Mark::Unfinished, Mark::Interference, Mark::Failed];
        assert_eq!(marks, expected.map(|mark| vec![mark]));
    }

    #[test]
    fn interference_is_marked_only_where_it_may_have_changed_the_result() {
        let mut record = Scenario::default().record();
        let last = record.samples.len() - 1;
        record.samples[last].disturbed = Some("two clocks of the host drifted apart by 3ms".to_owned());
        assert!(Outcome::new(&record).marks.is_empty(), "it is far from the limit");
        record.directions[0].evidence.as_mut().unwrap().interference_matters = true;
        assert_eq!(Outcome::new(&record).marks, [Mark::Interference]);
        record.directions[0].limited_by = LimitedBy::LineRate;
        assert!(Outcome::new(&record).marks.is_empty(), "the target was reached");
        // An old record does not say where it mattered.
        (record.directions[0].limited_by, record.directions[0].evidence) = (LimitedBy::Dut, None);
        assert_eq!(Outcome::new(&record).marks, [Mark::Interference]);
    }

    #[test]
    fn a_lower_bound_is_said_once() {
        let mut record =
            Scenario { tester_limit_pps: 2.2e6, capacity_pps: 9e6, ..Scenario::default() }.record();
        let evidence = record.directions[0].evidence.as_mut().unwrap();
        evidence.interference_matters = true;
        record.directions[0].max_rate_pps = evidence.limit.unwrap().lower_pps;
        let outcome = Outcome::new(&record);
        assert_eq!(outcome.marks, [Mark::Tester, Mark::Interference]);
        assert_eq!(outcome.with_interval(), outcome.marked_rate().0);
    }

    #[test]
    fn percent_reads_as_in_the_article() {
        let texts = [0.0, 4.37, 9.94, 9.96, 97.2, 192.4].map(percent);
        assert_eq!(texts, ["0.0%", "4.4%", "9.9%", "10%", "97%", "192%"]);
        let texts = [0.0, 0.000_012_3, 0.005, 0.0526, 0.5, 1.0].map(loss);
        assert_eq!(texts, ["0%", "0.0012%", "0.50%", "5.3%", "50%", "100%"]);
    }
}
