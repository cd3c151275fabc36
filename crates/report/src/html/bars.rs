//! The chart at the top of the page: a comparison enters; bars of each device's rate in each test leave, with
//! the intervals that they lie in, all on one scale, in places of an SVG.

use std::collections::BTreeMap;

use results::Record;
use results::record::{Phase, RateInterval};
use wire::human::pps;

use super::look::Look;
use super::{anchor, place};
use crate::comparison::{Comparison, Row};
use crate::figures::capitalized;
use crate::outcome::Outcome;

/// More bars than this nobody reads; the table has them all.
const MOST: usize = 60;
/// Widths for a screen and for a phone.
const WIDE: f64 = 820.0;
const NARROW: f64 = 358.0;
/// How wide a letter is at most in the mean, in pixels: fonts differ.
const LETTER: f64 = 7.6;
/// How high a bar is, and what it takes with the gap below it.
const BAR: f64 = 14.0;
const PITCH: f64 = 19.0;
/// A line of small text.
const LINE: f64 = 14.0;

/// The chart for a screen and for a phone.
pub struct Bars {
    /// What the bars are.
    pub title: String,
    pub wide: Picture,
    pub narrow: Picture,
}

/// A chart with its places, in pixels.
#[derive(Default)]
pub struct Picture {
    pub class: &'static str,
    pub width: f64,
    pub height: f64,
    /// Where the scale begins and ends.
    pub left: f64,
    pub right: f64,
    pub top: f64,
    /// Where the numbers of the scale stand, and what they are.
    pub ticks: Vec<(f64, String)>,
    pub unit: &'static str,
    /// Names of groups and tests: x, y, class and text.
    pub labels: Vec<(f64, f64, &'static str, String)>,
    /// The devices with their signs: x, y, look and name.
    pub legend: Vec<(f64, f64, Look, String)>,
    pub bars: Vec<Bar>,
}

/// One device in one test.
pub struct Bar {
    pub anchor: String,
    pub look: Look,
    /// Where it begins.
    pub x: f64,
    pub y: f64,
    pub width: f64,
    /// How far the load rose that was offered, and whether that is within the scale.
    pub offered: Option<(f64, bool)>,
    /// Where the directions meet, if there are two.
    pub meet: Option<f64>,
    /// Where the rate falls to under overload.
    pub falls_to: Option<f64>,
    /// The interval; an open one ends in an arrow.
    pub interval: Option<(f64, f64, bool)>,
    pub value: String,
    pub marked: bool,
    /// What the device does under overload.
    pub note: Option<String>,
}

impl Bar {
    pub const HEIGHT: f64 = BAR;

    /// Strokes over what is lost under overload: from x, y to x, y.
    pub fn hatching(&self) -> Vec<(f64, f64, f64, f64)> {
        let (from, end) = (self.falls_to.unwrap_or(f64::INFINITY), self.x + self.width);
        let strokes = (0..200).map(|at| from + f64::from(at) * 6.0).take_while(|x| *x < end);
        strokes
            .map(|x| {
                let rise = (end - x).min(BAR);
                (x, self.y + BAR, x + rise, self.y + BAR - rise)
            })
            .collect()
    }

    pub fn middle(&self) -> f64 {
        self.y + BAR / 2.0
    }
}

impl Bars {
    /// `None` without rates, or where they are too many to read.
    pub fn of(comparison: &Comparison, records: &[Record]) -> Option<Self> {
        let runs = || comparison.rows().flat_map(rates);
        let count = runs().count();
        if count == 0 || count > MOST {
            return None;
        }
        let highest = runs().map(|(_, run)| highest(run)).fold(0.0, f64::max);
        let draw = |class, width| Drawing::new(class, width, comparison, records, highest).picture;
        Some(Self {
            title: capitalized(&comparison.figure()),
            wide: draw("wide", WIDE),
            narrow: draw("narrow", NARROW),
        })
    }
}

/// The devices that have a rate in `row`, with their places in the comparison.
fn rates<'a>(row: &'a Row<'a>) -> impl Iterator<Item = (usize, &'a Outcome<'a>)> {
    let cells = row.cells.iter().enumerate();
    cells.filter_map(|(at, cell)| Some((at, cell.median().filter(|run| run.is_rate())?)))
}

/// What must be within the scale.
fn highest(run: &Outcome) -> f64 {
    let upper = run.interval.and_then(|interval| interval.upper_pps).unwrap_or(0.0);
    // An interval that interference made wide must not make all bars short.
    run.headline_pps().max(upper.min(run.headline_pps() * 1.5))
}

/// The highest load that was offered, all directions added up; `None` of a search, which chooses its loads.
fn offered(record: &Record) -> Option<f64> {
    let measured = record.samples.iter().filter(|it| matches!(it.phase, Phase::Ramp | Phase::Hold));
    let loads = measured.map(|it| it.directions.iter().map(|direction| direction.offered_pps).sum());
    loads.reduce(f64::max)
}

/// A chart that grows downwards.
struct Drawing<'a> {
    picture: Picture,
    records: &'a [Record],
    scale: Scale,
    unit: Unit,
    /// Where the next thing stands.
    y: f64,
}

/// What the bars are measured by.
#[derive(Clone, Copy)]
struct Scale {
    left: f64,
    right: f64,
    end_pps: f64,
}

impl Scale {
    fn at(&self, rate: f64) -> f64 {
        tenths(self.left + (rate / self.end_pps).clamp(0.0, 1.0) * (self.right - self.left))
    }
}

impl<'a> Drawing<'a> {
    fn new(
        class: &'static str,
        width: f64,
        comparison: &'a Comparison<'a>,
        records: &'a [Record],
        highest_pps: f64,
    ) -> Self {
        let is_wide = class == "wide";
        let rows = || comparison.rows().filter(|row| rates(row).next().is_some());
        let unit = Unit::of(highest_pps);
        let step = step(highest_pps, if is_wide { 6.0 } else { 3.0 });
        let longest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0) as f64 * LETTER;
        let labels = longest(&mut rows().map(|row| row.label.chars().count())).min(width * 0.3);
        let values = longest(&mut rows().flat_map(rates).map(|(_, run)| unit.value(run).chars().count()));
        let left = if is_wide { (labels + 16.0).round() } else { 1.0 };
        let right = (width - values - 14.0).max(left + width * 0.25).round();
        let end_pps = highest_pps * 1.02;
        let scale = Scale { left, right, end_pps };
        let ticks = (0..).map(|at| f64::from(at) * step).take_while(|tick| *tick <= end_pps);
        let ticks = ticks.map(|tick| (scale.at(tick), trimmed(tick / unit.factor))).collect();
        let picture = Picture { class, width, left, right, ticks, unit: unit.name, ..Picture::default() };
        let mut drawing = Self { picture, records, scale, unit, y: 16.0 };
        drawing.legend(comparison);
        for group in &comparison.groups {
            drawing.group(group.title, &group.rows, is_wide);
        }
        drawing.picture.height = drawing.y + 22.0;
        drawing
    }

    /// The devices' names, in as many lines as they need.
    fn legend(&mut self, comparison: &Comparison) {
        let mut x = 1.0;
        for (at, name) in comparison.duts.iter().enumerate() {
            let width = name.chars().count() as f64 * LETTER + 36.0;
            if x > 1.0 && x + width > self.picture.width {
                (x, self.y) = (1.0, self.y + 18.0);
            }
            self.picture.legend.push((x, self.y, Look::of(at), name.clone()));
            x += width;
        }
        self.y += 10.0;
        self.picture.top = self.y;
    }

    fn group(&mut self, title: &str, rows: &[Row], is_wide: bool) {
        let rows: Vec<&Row> = rows.iter().filter(|row| rates(row).next().is_some()).collect();
        if rows.is_empty() {
            return;
        }
        self.y += LINE + 4.0;
        self.picture.labels.push((0.0, self.y, "group", title.to_owned()));
        self.y += 8.0;
        for row in rows {
            let baseline = if is_wide { self.y + BAR - 3.0 } else { self.y + BAR - 2.0 };
            self.picture.labels.push((0.0, baseline, "test", row.label.clone()));
            if !is_wide {
                self.y += LINE + 3.0;
            }
            for (device, run) in rates(row) {
                self.bar(device, run);
            }
            self.y += 7.0;
        }
    }

    fn bar(&mut self, device: usize, run: &Outcome) {
        let scale = self.scale;
        let headline = run.headline_pps();
        let collapse = run.collapse();
        let parts: Vec<f64> = run.record.directions.iter().map(|it| it.max_rate_pps).collect();
        let meet =
            (parts.len() == 2 && headline > 0.0).then(|| parts[0] / parts.iter().sum::<f64>().max(1.0));
        let interval = run.interval.filter(|it| it.upper_pps.is_some() || it.lower_pps < headline);
        let bar = Bar {
            anchor: anchor(place(self.records, run.record)),
            look: Look::of(device),
            x: scale.left,
            y: self.y,
            width: tenths(scale.at(headline) - scale.left),
            offered: offered(run.record).map(|load| (scale.at(load), load <= scale.end_pps)),
            meet: meet.map(|share| scale.at(headline * share)),
            falls_to: collapse.map(|found| scale.at(found.forwarded_pps)),
            interval: interval.map(|it| {
                let upper = it.upper_pps.unwrap_or(headline);
                (scale.at(it.lower_pps), scale.at(upper), it.upper_pps.is_none() || upper > scale.end_pps)
            }),
            value: self.unit.value(run),
            marked: !run.marks.is_empty(),
            note: collapse.map(|found| found.words()),
        };
        self.y += if bar.note.is_some() { PITCH + LINE } else { PITCH };
        self.picture.bars.push(bar);
    }
}

/// To a tenth of a pixel.
fn tenths(place: f64) -> f64 {
    (place * 10.0).round() / 10.0
}

/// What all rates of a chart are written in.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Unit {
    name: &'static str,
    /// Frames a second that it stands for.
    factor: f64,
}

impl Unit {
    /// For a scale that ends at `end_pps`.
    fn of(end_pps: f64) -> Self {
        match end_pps {
            end if end >= 950e3 => Self { name: "Mpps", factor: 1e6 },
            end if end >= 950.0 => Self { name: "kpps", factor: 1e3 },
            _ => Self { name: "pps", factor: 1.0 },
        }
    }

    /// The headline of `run` with its marks and its interval.
    fn value(self, run: &Outcome) -> String {
        let figure = self.figure(run.headline_pps());
        let rate = run.marked(&format!("{figure} {}", self.name));
        match run.shown_interval() {
            Some(RateInterval { lower_pps, upper_pps: Some(upper_pps) }) => {
                format!("{rate} ({}–{})", self.figure(lower_pps), self.figure(upper_pps))
            }
            Some(RateInterval { lower_pps, .. }) => format!("{rate} (≥ {})", self.figure(lower_pps)),
            None => rate,
        }
    }

    /// Three digits, or more before the point.
    fn figure(self, rate: f64) -> String {
        let value = rate / self.factor;
        let decimals = if value < 0.9995 { 3 } else { 2 };
        format!("{value:.decimals$}")
    }
}

/// The distance of numbers on a scale that ends at `end`, so that there are about `count` of them.
fn step(end: f64, count: f64) -> f64 {
    let rough = (end / count).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|it| it * power).find(|it| *it >= rough);
    step.unwrap_or(power * 10.0)
}

/// Without zeros at its end.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What reads the chart aloud: a sentence for each bar, test by test.
pub fn spoken(comparison: &Comparison) -> String {
    let mut tests: BTreeMap<usize, String> = BTreeMap::new();
    for (at, row) in comparison.rows().enumerate() {
        for (device, run) in rates(row) {
            let text = tests.entry(at).or_insert_with(|| format!("{}:", row.label));
            let name = comparison.duts.get(device).map_or("", String::as_str);
            text.push_str(&format!(" {name} {};", pps(run.headline_pps())));
        }
    }
    tests.into_values().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use results::fixtures::bench;

    use super::*;

    #[test]
    fn all_bars_share_one_scale_and_stay_within_it() {
        let records = bench();
        let bars = Bars::of(&Comparison::new(&records), &records).unwrap();
        for picture in [&bars.wide, &bars.narrow] {
            assert_eq!(picture.bars.len(), 16);
            let longest = picture.bars.iter().map(|bar| bar.width).fold(0.0, f64::max);
            assert!(picture.left + longest <= picture.right, "a bar is beyond the scale");
            assert!(longest > (picture.right - picture.left) * 0.85, "the scale is too long");
            let per_pixel = |at: usize, rate: f64| picture.bars[at].width / rate;
            let rate = |record: &Record| Outcome::new(record).headline_pps();
            let (one, other) = (per_pixel(4, rate(&records[4])), per_pixel(5, rate(&records[5])));
            assert!((one / other - 1.0).abs() < 0.005, "two scales");
            assert!(picture.bars.windows(2).all(|pair| pair[1].y >= pair[0].y + BAR), "bars overlap");
        }
    }

    #[test]
    fn all_rates_have_one_unit() {
        let records = bench();
        let bars = Bars::of(&Comparison::new(&records), &records).unwrap();
        let values: Vec<&str> = bars.wide.bars.iter().map(|bar| bar.value.as_str()).collect();
        assert_eq!(values[0], "0.204 Mpps");
        assert_eq!(values[4], "1.06 Mpps (1.06–1.12)");
        assert!(values.iter().all(|value| value.contains("Mpps")), "{values:?}");
    }

    #[test]
    fn scales_have_round_numbers() {
        assert_eq!([step(2.4e6, 6.0), step(880e3, 3.0)], [5e5, 5e5]);
        assert_eq!([2.4e6, 880e3, 12.0].map(|end| Unit::of(end).name), ["Mpps", "kpps", "pps"]);
        assert_eq!([0.5, 2.0, 0.001].map(trimmed), ["0.5", "2", "0.001"]);
    }
}
