//! A small plot of a run: a record enters, a few lines of braille leave, two by four dots a
//! character. Offered is dotted, forwarded is drawn through; directions are added up.

use std::fmt::Write as _;

use results::Record;
use results::record::{DirectionSample, Phase};
use wire::human::pps;

use super::Look;

/// The dots of a character, by column and row (Unicode's block U+2800).
const DOTS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
/// Every how many dots offered is drawn.
const DOTTED: usize = 4;

/// Offered and forwarded over time in `width` by `height` characters and a line below; empty if
/// nothing was measured yet or there is no room.
pub fn plot(record: &Record, width: usize, height: usize, colour: bool) -> String {
    let samples: Vec<_> = record.samples.iter().filter(|sample| sample.phase != Phase::WarmUp).collect();
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return String::new() };
    let (from, until) = (first.at_s, last.at_s + last.duration_s);
    let sum = |rate: fn(&DirectionSample) -> f64| -> Vec<f64> {
        samples.iter().map(|sample| sample.directions.iter().map(rate).sum()).collect()
    };
    let (offered, forwarded) = (sum(|d| d.offered_pps), sum(|d| d.forwarded_pps));
    let top = offered.iter().chain(&forwarded).copied().fold(0.0, f64::max);
    let label = pps(top);
    let margin = label.chars().count().max("0 pps".len()) + 1;
    let Some(columns) = width.checked_sub(margin + 1).filter(|columns| *columns > 0) else {
        return String::new();
    };
    if height == 0 || !top.is_finite() || top <= 0.0 || until <= from {
        return String::new();
    }

    // For each dot's column, the sample that covers its time.
    let dots = columns * 2;
    let sample_at = |dot: usize| {
        let time = from + (until - from) * (dot as f64 + 0.5) / dots as f64;
        samples.iter().rposition(|sample| sample.at_s <= time).unwrap_or(0)
    };
    let rows = height * 4;
    let row_of = |rate: f64| rows - 1 - ((rate / top * (rows - 1) as f64).round() as usize).min(rows - 1);
    let curve =
        |rates: &[f64]| -> Vec<usize> { (0..dots).map(|dot| row_of(rates[sample_at(dot)])).collect() };
    let canvas = Canvas::new(columns, height).draw(&curve(&offered), &curve(&forwarded));

    let mut text = String::new();
    for (at, line) in canvas.lines(colour).into_iter().enumerate() {
        let label = match at {
            0 => label.as_str(),
            at if at + 1 == height => "0 pps",
            _ => "",
        };
        let _ = writeln!(text, "{:>width$} {line}", label, width = margin - 1);
    }
    let seconds = format!("{:.0} s", until - from);
    let legend = "0 s  ⠄⠄ offered  ⠒⠒ forwarded";
    let gap = columns.saturating_sub(legend.chars().count() + seconds.len());
    let legend = format!("{:margin$}{legend}{:gap$}{seconds}", "", "");
    let _ = writeln!(text, "{}", Look::Faint.paint(legend.trim_end(), colour));
    text
}

/// One character: its dots, and whether forwarded is among them.
#[derive(Clone, Copy, Default)]
struct Tile {
    dots: u8,
    forwarded: bool,
}

struct Canvas {
    tiles: Vec<Vec<Tile>>,
}

impl Canvas {
    fn new(columns: usize, rows: usize) -> Self {
        Self { tiles: vec![vec![Tile::default(); columns]; rows] }
    }

    /// Draws both curves, given as a row of dots for each column of dots.
    fn draw(mut self, offered: &[usize], forwarded: &[usize]) -> Self {
        for (x, y) in offered.iter().enumerate().step_by(DOTTED) {
            self.dot(x, *y, false);
        }
        let mut before = forwarded.first().copied().unwrap_or(0);
        for (x, y) in forwarded.iter().copied().enumerate() {
            // Up to the row before, so that steps are joined.
            let (low, high) = if before < y { (before + 1, y) } else { (y, y.max(before.saturating_sub(1))) };
            (low..=high).for_each(|row| self.dot(x, row, true));
            before = y;
        }
        self
    }

    fn dot(&mut self, x: usize, y: usize, forwarded: bool) {
        if let Some(tile) = self.tiles.get_mut(y / 4).and_then(|row| row.get_mut(x / 2)) {
            tile.dots |= DOTS[x % 2][y % 4];
            tile.forwarded |= forwarded;
        }
    }

    fn lines(&self, colour: bool) -> Vec<String> {
        self.tiles.iter().map(|row| line(row, colour)).collect()
    }
}

/// A row of characters, painted in runs of one look.
fn line(row: &[Tile], colour: bool) -> String {
    let painted = |run: &[Tile]| {
        let text: String = run.iter().map(|tile| braille(tile.dots)).collect();
        let look =
            if run.first().is_some_and(|tile| tile.forwarded) { Look::Forwarded } else { Look::Offered };
        look.paint(&text, colour)
    };
    let line: String = row.chunk_by(|a, b| a.forwarded == b.forwarded).map(painted).collect();
    if colour { line } else { line.trim_end().to_owned() }
}

fn braille(dots: u8) -> char {
    if dots == 0 { ' ' } else { char::from_u32(0x2800 + u32::from(dots)).unwrap_or(' ') }
}
