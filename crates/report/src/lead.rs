//! The sentence that a report begins with: a comparison enters; what stands out in it leaves, in words, with
//! the figures that it rests on.

use std::cmp::Ordering;

use results::bench::LABELS;
use results::record::{LimitedBy, RateInterval};
use wire::human::pps;

use crate::comparison::{Comparison, Row};
use crate::evidence;
use crate::figures::capitalized;
use crate::outcome::{Kind, Mark, Outcome};

/// Intervals that overlap and are no further apart than this, from end to end, are about the same rate.
const ALIKE: f64 = 1.15;

/// What a report begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    /// The sentence, without a full stop.
    pub sentence: String,
    /// The figures behind it.
    pub figures: String,
}

impl Lead {
    /// Of the test that asks most of a device: the smallest frames in one direction. `None` without any rate. Tests that a
    /// bench repeated are left out: the bench says what their repeats prove.
    pub fn of(comparison: &Comparison) -> Option<Self> {
        let rows = comparison.rows().filter(|row| !is_repeated_in_bench(row));
        let rows = rows.map(rates).filter(|rates| !rates.is_empty());
        let rates = rows.min_by(|a, b| hardest(a, b))?;
        let by_rate = |a: &&Rate, b: &&Rate| a.run.headline_pps().total_cmp(&b.run.headline_pps());
        let (slowest, fastest) = (rates.iter().min_by(by_rate)?, rates.iter().max_by(by_rate)?);
        // Devices are compared with the first, where that is slower for sure.
        let other = rates.first().filter(|first| first.is_below(fastest)).unwrap_or(slowest);
        Some(if rates.len() == 1 { single(fastest) } else { pair(other, fastest, rates.len()) })
    }
}

/// Whether a bench repeated the test of `row`.
fn is_repeated_in_bench(row: &Row) -> bool {
    let of_bench = |run: &&Outcome| LABELS.iter().all(|label| run.record.labels.contains_key(*label));
    row.cells.iter().any(|cell| cell.runs.iter().filter(|run| of_bench(run)).count() > 1)
}

/// A device's rate in a test.
struct Rate<'a> {
    run: &'a Outcome<'a>,
}

/// The devices of `row` that have a rate.
fn rates<'a>(row: &'a Row<'a>) -> Vec<Rate<'a>> {
    let cells = row.cells.iter().filter_map(|cell| cell.median());
    cells.filter(|run| run.is_rate() && run.headline_pps() > 0.0).map(|run| Rate { run }).collect()
}

impl<'a> Rate<'a> {
    /// What a reader calls it.
    fn name(&self) -> String {
        let label = self.run.record.device();
        match label.as_str() {
            "linux-router" => "the kernel's router".to_owned(),
            "linux-bridge" => "the kernel's bridge".to_owned(),
            "xdp-router" => "the XDP router".to_owned(),
            "xdp-xconnect" => "the XDP cross connect".to_owned(),
            _ => label,
        }
    }

    /// The same at the beginning of a sentence; a device's own name stays as it is.
    fn subject(&self) -> String {
        let name = self.name();
        if name.starts_with("the ") { capitalized(&name) } else { name }
    }

    /// What it does with frames.
    fn verb(&self) -> &'static str {
        if self.run.record.finding.generator().is_some() { "sends" } else { "forwards" }
    }

    /// Where its rate lies.
    fn bounds(&self) -> RateInterval {
        let exact = self.run.headline_pps();
        self.run.interval.unwrap_or(RateInterval { lower_pps: exact, upper_pps: Some(exact) })
    }

    /// Whether the device may do more than was measured.
    fn is_at_least(&self) -> bool {
        self.run.marks.contains(&Mark::Tester) || self.bounds().upper_pps.is_none()
    }

    /// Whether its interval ends below where that of `other` begins.
    fn is_below(&self, other: &Self) -> bool {
        self.bounds().upper_pps.is_some_and(|upper| upper < other.bounds().lower_pps)
    }

    fn carried_all(&self) -> bool {
        let directions = &self.run.record.directions;
        !directions.is_empty() && directions.iter().all(|it| it.limited_by == LimitedBy::LineRate)
    }

    fn at_load(&self) -> String {
        let profile = &self.run.record.profile;
        let size = match profile.tunables.get("size").map(String::as_str) {
            Some("imix") => "with IMIX".to_owned(),
            _ if profile.mean_frame_size.fract() == 0.0 => format!("at {} bytes", profile.mean_frame_size),
            _ => format!("at {:.0} bytes on average", profile.mean_frame_size),
        };
        let way = if profile.bidirectional { " in both directions" } else { "" };
        format!("{size}{way}")
    }

    /// What its rate is held at, in words.
    fn held(&self) -> String {
        match Kind::of(self.run.record) {
            Kind::Curves if evidence::rises(self.run.record) => {
                format!("max rate at {}", evidence::threshold(&[self.run.record]))
            }
            Kind::Curves => "highest forwarded rate".to_owned(),
            _ => format!("load that passed {}", self.run.goal.as_deref().unwrap_or("the goal")),
        }
    }
}

/// Which test asks more of its devices: most devices compared, one direction, the smallest frames, most flows;
/// before all, one in which they did not just carry everything.
fn hardest(a: &[Rate], b: &[Rate]) -> Ordering {
    let key = |rates: &[Rate]| {
        let profile = rates.first().map(|rate| &rate.run.record.profile);
        (
            rates.iter().all(Rate::carried_all),
            std::cmp::Reverse(rates.len()),
            profile.is_some_and(|it| it.bidirectional),
            profile.map_or(0.0, |it| it.mean_frame_size),
            std::cmp::Reverse(profile.map_or(0, |it| it.flows)),
        )
    };
    key(a).partial_cmp(&key(b)).unwrap_or(Ordering::Equal)
}

fn single(rate: &Rate) -> Lead {
    let at_least = if rate.is_at_least() { "at least " } else { "" };
    Lead {
        sentence: format!(
            "{} {} {at_least}{} {}",
            rate.subject(),
            rate.verb(),
            pps(rate.run.headline_pps()),
            rate.at_load()
        ),
        figures: format!("{}: {}.", capitalized(&rate.held()), rate.run.with_interval()),
    }
}

/// How many times the rate of a slower one of so many devices the fastest has.
fn pair(slower: &Rate, fastest: &Rate, devices: usize) -> Lead {
    let at = fastest.at_load();
    let figures = format!(
        "{}: {} against {}",
        capitalized(&fastest.held()),
        fastest.run.with_interval(),
        slower.run.with_interval()
    );
    let (slow, fast) = (slower.bounds(), fastest.bounds());
    if slower.carried_all() {
        let all = if devices == 2 { "Both devices".to_owned() } else { format!("All {devices} devices") };
        return Lead { sentence: format!("{all} carry the whole load {at}"), figures: figures + "." };
    }
    if !slower.is_below(fastest) {
        let within = slow.upper_pps.zip(fast.upper_pps).map(|(a, b)| a.max(b) / slow.lower_pps.max(1.0));
        let sentence = match devices {
            2 if within.is_some_and(|ratio| ratio < ALIKE) => {
                format!("{} and {} forward about as much {at}", fastest.subject(), slower.name())
            }
            2 => format!("No difference is proven between {} and {} {at}", fastest.name(), slower.name()),
            _ => format!("No device is proven faster than another {at}"),
        };
        return Lead { sentence, figures: figures + "; these intervals overlap." };
    }
    let low = fast.lower_pps / slow.upper_pps.unwrap_or(slow.lower_pps).max(1.0);
    // "At least" must hold wherever both rates lie.
    let ratio =
        if fastest.is_at_least() { low } else { fastest.run.headline_pps() / slower.run.headline_pps() };
    let high = fast.upper_pps.map(|upper| upper / slow.lower_pps.max(1.0));
    let between = match high {
        Some(high) => format!("{}–{} times", times(low), times(high)),
        None => format!("at least {} times", times(low)),
    };
    let at_least = if fastest.is_at_least() { "at least " } else { "" };
    Lead {
        sentence: format!(
            "{} {} {at_least}{} times what {} does {at}",
            fastest.subject(),
            fastest.verb(),
            times(ratio),
            slower.name()
        ),
        figures: format!("{figures}: {between}."),
    }
}

/// A ratio for reading.
fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 1.95 => format!("{ratio:.2}"),
        ratio if ratio < 9.95 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use results::Record;
    use results::fixtures::{Scenario, bench, oddities};

    use super::*;

    fn lead(records: &[Record]) -> Option<Lead> {
        Lead::of(&Comparison::new(records))
    }

    fn router(dut: &'static str, capacity_pps: f64) -> Record {
        Scenario { dut, capacity_pps, ..Scenario::default() }.record()
    }

    #[test]
    fn the_hardest_test_tells_how_many_times_faster_a_device_is() {
        let found = lead(&bench()).unwrap();
        assert_eq!(
            found.sentence,
            "The XDP router forwards 2.2 times what the kernel's router does at 64 bytes"
        );
        assert!(found.figures.starts_with("Max rate at ≤ 0.1 % loss: 2.3"), "{}", found.figures);
        assert!(found.figures.ends_with(" times."), "{}", found.figures);
    }

    #[test]
    fn repeated_tests_have_no_headline_beside_their_bench() {
        let mut runs = [1e6, 1e6, 2e6, 2e6]
            .map(|pps| router(if pps < 2e6 { "linux-router" } else { "xdp-router" }, pps));
        assert!(lead(&runs).is_some());
        for (at, run) in runs.iter_mut().enumerate() {
            run.labels.extend(LABELS.map(|label| (label.to_owned(), at.to_string())));
        }
        assert_eq!(lead(&runs), None);
    }

    #[test]
    fn a_difference_that_is_not_proven_is_not_claimed() {
        let found = lead(&[router("linux-router", 1_100_000.0), router("vpp", 1_105_000.0)]).unwrap();
        assert!(found.sentence.ends_with("forward about as much at 64 bytes"), "{}", found.sentence);
        assert!(found.figures.ends_with("these intervals overlap."), "{}", found.figures);
        let mut open = [router("linux-router", 1_100_000.0), router("vpp", 1_300_000.0)];
        for record in &mut open {
            record.directions[0].evidence.as_mut().unwrap().limit.as_mut().unwrap().upper_pps = None;
        }
        assert_eq!(
            lead(&open).unwrap().sentence,
            "No difference is proven between vpp and the kernel's router at 64 bytes"
        );
        let full = [router("linux-router", 9e6), router("xdp-router", 9e6)];
        assert_eq!(lead(&full).unwrap().sentence, "Both devices carry the whole load at 64 bytes");
    }

    #[test]
    fn of_several_devices_the_first_is_compared_with_unless_it_is_the_fastest() {
        let of = |devices: [(&'static str, f64); 3]| {
            lead(&devices.map(|(dut, capacity_pps)| router(dut, capacity_pps))).unwrap().sentence
        };
        let [kernel, xdp, ours] = [("linux-router", 1e6), ("xdp-router", 2e6), ("fastpath", 5e5)];
        let words = "forwards 2.1 times what the kernel's router does at 64 bytes";
        assert_eq!(of([kernel, xdp, ours]), format!("The XDP router {words}"));
        assert!(of([xdp, kernel, ours]).ends_with("what fastpath does at 64 bytes"));
        // The first may be as fast as the fastest: then the slowest is behind both.
        let close = of([("vpp", 1.99e6), xdp, ours]);
        assert!(close.ends_with("what fastpath does at 64 bytes"), "{close}");
    }

    #[test]
    fn one_device_has_its_rate_and_what_the_tester_limits_is_a_lower_bound() {
        let found = lead(&[router("linux-bridge", 1_100_000.0)]).unwrap();
        assert_eq!(found.sentence, "The kernel's bridge forwards 1.06 Mpps at 64 bytes");
        let limited = lead(&oddities()[1..2]).unwrap();
        assert!(limited.sentence.starts_with("sink forwards at least 2."), "{}", limited.sentence);
    }

    #[test]
    fn without_a_rate_there_is_no_sentence() {
        assert_eq!(lead(&oddities()[4..]), None);
        assert_eq!(lead(&[Scenario::default().latency_test()]), None);
    }
}
