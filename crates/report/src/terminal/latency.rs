//! What a latency test found: its distributions enter; tables of percentiles and a plot of them
//! leave.
//!
//! The plot's horizontal axis is that of `HdrHistogram`: each further nine of a percentile takes as
//! much room, because what matters of a latency is its tail. The vertical one is logarithmic.

use std::fmt::Write as _;

use results::record::{Distribution, LatencyTest, LoadLatency, Percentiles};
use stats::Histogram;
use wire::human::pps;

use super::Look;
use super::columns::{Align, Columns, Text};
use crate::figures::plain_duration as duration;

/// The tester fell short if it offered less than this share of the load.
const SHORTFALL: f64 = 0.99;
/// The nines of the last percentile in the plot: 99.99.
const NINES: f64 = 4.0;
/// What marks the loads in the plot, the lowest first.
const MARKS: &str = "abcdefghijklmnopqrstuvwxyz";

/// Delays, their variation, and what the figures do not tell.
pub fn tables(found: &LatencyTest, colour: bool) -> String {
    let mut text = String::new();
    if found.loads.is_empty() {
        return text;
    }
    if let Some(reference) = found.reference_pps {
        let origin = if found.searched { "the PDR found" } else { "as given" };
        let line = format!("  loads are shares of {} in each direction, {origin}", pps(reference));
        let _ = writeln!(text, "{}", Look::Faint.paint(&line, colour));
    }
    text.push_str(&delays(found).render(colour));
    text.push_str(&variation(found).render(colour));
    for unseen in &found.unseen {
        let _ = writeln!(text, "  {}", Look::Faint.paint(&format!("not seen: {unseen}"), colour));
    }
    text
}

fn delays(found: &LatencyTest) -> Columns {
    let mut columns = Columns::new([Align::Right; 10]);
    let head = ["offered", "lost", "min", "mean"].into_iter().chain(kinds()).chain(["max"]);
    columns.row(Text::new("  delay", Look::Title), head.map(|name| Text::new(name, Look::Faint)));
    for (load, direction, name) in rows(found) {
        let look = look(load, direction);
        let exact = |value: f64| if direction.forwarded > 0 { duration(value) } else { "-".to_owned() };
        let figures = [
            pps(direction.offered_pps),
            format!("{:.2} %", direction.loss_ratio * 100.0),
            exact(direction.min_ns as f64),
            exact(direction.mean_ns),
        ];
        let figures = figures.into_iter().chain(percentiles(direction.percentiles));
        let figures = figures.chain([exact(direction.max_ns as f64)]);
        columns.row(Text::new(&name, look), figures.map(|figure| Text::new(&figure, look)));
    }
    columns
}

/// The variation is the delay less the shortest one (RFC 5481 §4.2).
fn variation(found: &LatencyTest) -> Columns {
    let mut columns = Columns::new([Align::Right; 5]);
    columns
        .row(Text::new("  variation (PDV)", Look::Title), kinds().map(|name| Text::new(name, Look::Faint)));
    for (load, direction, name) in rows(found) {
        let look = look(load, direction);
        columns
            .row(Text::new(&name, look), percentiles(direction.pdv).map(|figure| Text::new(&figure, look)));
    }
    columns
}

fn kinds() -> impl Iterator<Item = &'static str> {
    Percentiles::KINDS.into_iter().map(|(name, _)| name)
}

fn percentiles(of: Percentiles) -> impl Iterator<Item = String> {
    of.values().into_iter().map(|value| value.map_or_else(|| "-".to_owned(), duration))
}

/// Every load and direction, with the name of its row.
fn rows(found: &LatencyTest) -> impl Iterator<Item = (&LoadLatency, &Distribution, String)> {
    found.loads.iter().flat_map(|load| {
        let single = load.directions.len() < 2;
        load.directions.iter().map(move |direction| {
            let name = if single { String::new() } else { format!(" {}", direction.name) };
            (load, direction, format!("    {}{name}", load.name))
        })
    })
}

fn look(load: &LoadLatency, direction: &Distribution) -> Look {
    if load.disturbed.is_some() || fell_short(load, direction) { Look::Warning } else { Look::Plain }
}

fn fell_short(load: &LoadLatency, direction: &Distribution) -> bool {
    direction.offered_pps < load.load_pps * SHORTFALL
}

/// What a reader must know before using a figure.
pub fn remarks(found: &LatencyTest) -> Vec<String> {
    let remarks = found.loads.iter().flat_map(|load| {
        let disturbed = load.disturbed.iter().map(|by| format!("{} was disturbed: {by}", load.name));
        let short = load.directions.iter().filter(|direction| fell_short(load, direction));
        let short = short.map(|direction| {
            let (offered, asked) = (pps(direction.offered_pps), pps(load.load_pps));
            format!("{}, {}: the tester offered {offered} instead of {asked}", load.name, direction.name)
        });
        disturbed.chain(short)
    });
    remarks.collect()
}

/// Delay against percentile, a plot of `width` by `height` characters for each direction.
pub fn plot(found: &LatencyTest, width: usize, height: usize, colour: bool) -> String {
    let directions = found.loads.iter().map(|load| load.directions.len()).max().unwrap_or_default();
    (0..directions).map(|direction| direction_plot(found, direction, width, height, colour)).collect()
}

/// One load's curve.
struct Curve<'a> {
    name: &'a str,
    mark: char,
    delays: Histogram,
    of: &'a Distribution,
}

impl Curve<'_> {
    /// The delay at `nines`: 1 is the 90th percentile, 2 the 99th. `None` where fewer than ten
    /// frames are beyond.
    fn at(&self, nines: f64) -> Option<f64> {
        let beyond = 10f64.powf(-nines);
        let enough = self.of.forwarded as f64 * beyond >= Percentiles::BEYOND as f64;
        let delay = self.delays.quantile(1.0 - beyond).filter(|_| enough)?;
        Some(delay.clamp(self.of.min_ns as f64, self.of.max_ns.max(self.of.min_ns) as f64).max(1.0))
    }
}

fn direction_plot(
    found: &LatencyTest,
    direction: usize,
    width: usize,
    height: usize,
    colour: bool,
) -> String {
    let curves: Vec<Curve> = curves(found, direction).collect();
    let delays = |nines: f64| curves.iter().filter_map(move |curve| curve.at(nines));
    let ends = || delays(0.0).chain((0..=NINES as usize).flat_map(|nines| delays(nines as f64)));
    let (lowest, highest) = (ends().fold(f64::INFINITY, f64::min), ends().fold(0.0, f64::max));
    let margin =
        [lowest, highest].map(|end| duration(end).chars().count()).into_iter().max().unwrap_or(0) + 1;
    let columns = width.saturating_sub(margin + 1);
    if columns < 2 || height < 2 || highest <= 0.0 {
        return String::new();
    }

    let span = (highest / lowest).ln().max(f64::EPSILON);
    let row_of = |delay: f64| {
        let share = ((delay / lowest).ln() / span).clamp(0.0, 1.0);
        height - 1 - (share * (height - 1) as f64).round() as usize
    };
    let mut canvas = vec![vec![' '; columns]; height];
    for x in 0..columns {
        let nines = NINES * x as f64 / (columns - 1) as f64;
        for curve in &curves {
            let row = curve.at(nines).and_then(|delay| canvas.get_mut(row_of(delay)));
            if let Some(tile) = row.and_then(|row| row.get_mut(x)) {
                *tile = curve.mark;
            }
        }
    }
    let mut text = String::new();
    if found.loads.iter().any(|load| load.directions.len() > 1) {
        let name = curves.first().map_or("", |curve| curve.of.name.as_str());
        let _ = writeln!(text, "{:margin$}{}", "", Look::Title.paint(name, colour));
    }
    for (at, line) in canvas.iter().enumerate() {
        let label = match at {
            0 => duration(highest),
            at if at + 1 == height => duration(lowest),
            _ => String::new(),
        };
        let line: String = line.iter().collect();
        let _ = writeln!(text, "{}", format!("{label:>width$} {line}", width = margin - 1).trim_end());
    }
    let legend: Vec<String> = curves.iter().map(|curve| format!("{} {}", curve.mark, curve.name)).collect();
    for line in [axis(columns), legend.join("  ")] {
        let _ = writeln!(text, "{:margin$}{}", "", Look::Faint.paint(&line, colour));
    }
    text
}

fn curves(found: &LatencyTest, direction: usize) -> impl Iterator<Item = Curve<'_>> {
    let of = found.loads.iter().filter_map(move |load| Some((load, load.directions.get(direction)?)));
    of.zip(MARKS.chars().cycle()).map(|((load, of), mark)| {
        let buckets: Vec<_> = of.histogram_ns.iter().map(|(ns, count)| (*ns as usize, *count)).collect();
        Curve { name: &load.name, mark, delays: Histogram::from(buckets), of }
    })
}

/// The percentiles below the plot.
fn axis(columns: usize) -> String {
    let labels = ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"];
    let mut line = String::new();
    for (nines, label) in labels.iter().enumerate() {
        let place = (columns - 1) * nines / NINES as usize;
        let place = place.min(columns.saturating_sub(label.len()));
        let gap = place.saturating_sub(line.len()).max(usize::from(nines > 0));
        let _ = write!(line, "{:gap$}{label}", "");
    }
    line
}

#[cfg(test)]
mod tests {
    use results::Record;
    use results::fixtures::Scenario;
    use results::record::Finding;

    use super::*;

    fn found_mut(record: &mut Record) -> &mut LatencyTest {
        let Finding::Latency(Some(test), _) = &mut record.finding else { panic!("no latency test") };
        test
    }

    fn found(record: &Record) -> &LatencyTest {
        record.finding.latency().unwrap()
    }

    #[test]
    fn delays_and_their_variation_stand_in_rows() {
        let record = Scenario::default().latency_test();
        insta::assert_snapshot!(tables(found(&record), false));
        assert!(remarks(found(&record)).is_empty());
    }

    #[test]
    fn both_directions_and_what_spoils_a_figure_are_named() {
        let mut record =
            Scenario { bidirectional: true, disturbed_at: Some(2), ..Scenario::default() }.latency_test();
        let loads = &mut found_mut(&mut record).loads;
        loads[3].directions[1].offered_pps *= 0.8;
        loads[4].directions[0] = Distribution { name: "0->1".to_owned(), ..Distribution::default() };
        let text = format!("{}{}", tables(found(&record), false), remarks(found(&record)).join("\n"));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn each_nine_takes_as_much_room() {
        let record = Scenario::default().latency_test();
        insta::assert_snapshot!(plot(found(&record), 72, 14, false));
    }

    #[test]
    fn without_frames_or_room_there_is_nothing() {
        let mut record = Scenario { bidirectional: true, ..Scenario::default() }.latency_test();
        assert_eq!(plot(found(&record), 10, 14, false), "");
        assert_eq!(plot(found(&record), 72, 1, false), "");
        assert_eq!(plot(found(&record), 72, 14, false).matches("99.99 %").count(), 2);
        let test = found_mut(&mut record);
        test.loads
            .iter_mut()
            .flat_map(|load| &mut load.directions)
            .for_each(|of| *of = Distribution::default());
        assert_eq!(plot(found(&record), 72, 14, false), "");
        let nothing = LatencyTest { unseen: vec!["much".to_owned()], ..LatencyTest::default() };
        assert_eq!((plot(&nothing, 72, 14, false), tables(&nothing, false)), (String::new(), String::new()));
    }
}
