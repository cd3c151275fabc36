//! What the terminal shows: a board enters, a frame of text leaves. Pure.

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph, Row, Table};
use results::record::{DirectionSample, Sample};
use wire::human;

use crate::{About, Board, Steering};

/// The charts show so many samples.
const DRAWN: usize = 400;
/// And so many nodes are listed, the most expensive first.
const NODES: usize = 12;

/// All that is drawn.
#[derive(Debug)]
pub struct View {
    about: About,
    state: String,
    samples: Vec<Arc<Sample>>,
    nodes: Vec<(String, f64)>,
    steering: Option<Steering>,
    /// Why a key did nothing.
    said: &'static str,
}

/// One line of a chart.
struct Curve {
    name: &'static str,
    colour: Color,
    points: Vec<(f64, f64)>,
}

impl View {
    /// What is on `board` now; `said` is the reason why the last key did nothing.
    pub fn of(board: &Board, said: &'static str) -> Self {
        let page = board.since(0);
        let first = page.samples.len().saturating_sub(DRAWN);
        let samples: Vec<_> = page.samples.into_iter().skip(first).collect();
        let state = match (page.running, page.run) {
            (true, _) => page.phase,
            (false, 0) => "waits for a run",
            (false, _) => "ended",
        };
        let mut nodes = page.nodes;
        nodes.sort_by(|a, b| b.1.total_cmp(&a.1));
        nodes.truncate(NODES);
        let end = samples.last().map_or(0.0, |last| last.at_s + last.duration_s);
        let planned = page.about.planned_s;
        let of = if planned > 0.0 { format!(" of {planned:.0} s at most") } else { String::new() };
        let state = format!("{}: {state}, {end:.0} s{of}", page.about.strategy);
        Self { about: page.about, state, samples, nodes, steering: page.steering, said }
    }

    /// Draws all of it.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let directions = self.samples.last().map_or(0, |last| last.directions.len());
        let rows = Layout::vertical([
            Constraint::Length(2),
            Constraint::Fill(3),
            Constraint::Fill(2),
            Constraint::Length(directions as u16 + 3),
            Constraint::Length(if self.nodes.is_empty() {
                0
            } else {
                (self.nodes.len() as u16).div_ceil(2) + 2
            }),
            Constraint::Length(2),
        ]);
        let [title, rate, below, last, nodes, keys] = rows.areas(frame.area());
        let name =
            Line::from(Span::styled(self.about.name.as_str(), Style::new().add_modifier(Modifier::BOLD)));
        frame.render_widget(Paragraph::new(vec![name, Line::from(self.state.as_str())]), title);
        let sum =
            |of: fn(&DirectionSample) -> f64| self.points(move |it| Some(it.directions.iter().map(of).sum()));
        let rates = [
            Curve { name: "offered", colour: Color::Yellow, points: sum(|it| it.offered_pps) },
            Curve { name: "forwarded", colour: Color::Green, points: sum(|it| it.forwarded_pps) },
        ];
        chart(frame, rate, "rate of all directions:", &rates, human::pps);
        let [loss, latency] = Layout::horizontal([Constraint::Fill(1); 2]).areas(below);
        let lost = self.points(|it| {
            let offered: u64 = it.directions.iter().map(|it| it.offered).sum();
            let forwarded: u64 = it.directions.iter().map(|it| it.forwarded).sum();
            Some(offered.saturating_sub(forwarded) as f64 / offered.max(1) as f64)
        });
        chart(frame, loss, "", &[Curve { name: "loss", colour: Color::Red, points: lost }], share);
        let worst = |of: fn(&results::record::Latency) -> u64| {
            self.points(move |it| {
                it.directions.iter().filter_map(|it| it.latency.as_ref()).map(of).max().map(|ns| ns as f64)
            })
        };
        let times = [
            Curve { name: "p99", colour: Color::Magenta, points: worst(|it| it.p99_ns) },
            Curve { name: "p50", colour: Color::Cyan, points: worst(|it| it.p50_ns) },
        ];
        chart(frame, latency, "latency:", &times, time);
        self.draw_last(frame, last);
        self.draw_nodes(frame, nodes);
        self.draw_keys(frame, keys);
    }

    /// A value of each sample that has one, by its time.
    fn points(&self, of: impl Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
        self.samples.iter().filter_map(|sample| Some((sample.at_s, of(sample)?))).collect()
    }

    fn draw_last(&self, frame: &mut Frame<'_>, area: Rect) {
        let last = self.samples.last();
        let directions = last.map(|last| last.directions.as_slice()).unwrap_or_default();
        let rows = directions.iter().zip(["0→1", "1→0"]).map(|(it, way)| {
            let latency = it.latency.as_ref();
            let of = |value: Option<u64>| value.map_or(String::new(), |ns| time(ns as f64));
            Row::new([
                way.to_owned(),
                human::pps(it.intended_pps),
                human::pps(it.offered_pps),
                human::pps(it.forwarded_pps),
                if it.offered > 0 { share(it.loss_ratio) } else { String::new() },
                of(latency.map(|it| it.p50_ns)),
                of(latency.map(|it| it.p99_ns)),
            ])
        });
        let head = Row::new(["", "load", "offered", "forwarded", "loss", "p50", "p99"]);
        let widths = [4, 13, 13, 13, 9, 10, 10].map(Constraint::Length);
        let disturbed = last.and_then(|last| last.disturbed.as_deref());
        let title = match disturbed {
            Some(cause) => format!("the last sample, disturbed by the machine: {cause}"),
            None => "the last sample; frames on their way count as lost".to_owned(),
        };
        let head = head.style(Style::new().add_modifier(Modifier::DIM));
        frame
            .render_widget(Table::new(rows, widths).header(head).block(Block::bordered().title(title)), area);
    }

    fn draw_nodes(&self, frame: &mut Frame<'_>, area: Rect) {
        let rows = self.nodes.chunks(2).map(|pair| {
            Row::new(pair.iter().flat_map(|(node, clocks)| [node.clone(), format!("{clocks:.1}")]))
        });
        let widths =
            [Constraint::Fill(1), Constraint::Length(10), Constraint::Fill(1), Constraint::Length(10)];
        let block = Block::bordered().title("clocks a packet, by node");
        frame.render_widget(Table::new(rows, widths).block(block), area);
    }

    fn draw_keys(&self, frame: &mut Frame<'_>, area: Rect) {
        let load = match self.steering {
            Some(Steering { percent, paused }) => {
                let state = if paused { "paused at" } else { "load" };
                let goes_on = if paused { "go on" } else { "pause" };
                format!("{state} {percent:.1} % of the line rate   space {goes_on}   + - load by 5 %   ")
            }
            None => String::new(),
        };
        let keys = format!("{load}q leave the view   Ctrl-C end");
        let dim = Style::new().add_modifier(Modifier::DIM);
        let said = Span::styled(self.said, Style::new().fg(Color::Red));
        frame
            .render_widget(Paragraph::new(vec![Line::from(said), Line::from(Span::styled(keys, dim))]), area);
    }
}

/// Curves over the time of the samples, from 0 up.
fn chart(frame: &mut Frame<'_>, area: Rect, title: &str, curves: &[Curve], words: impl Fn(f64) -> String) {
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let most = all().map(|(_, value)| *value).fold(0.0, f64::max);
    let top = if most > 0.0 { most * 1.05 } else { 1.0 };
    let begin = all().map(|(time, _)| *time).fold(f64::INFINITY, f64::min);
    let end = all().map(|(time, _)| *time).fold(0.0, f64::max);
    let begin = if begin.is_finite() { begin } else { 0.0 };
    let sets = curves.iter().map(|curve| {
        let set = Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line);
        set.name(curve.name).style(Style::new().fg(curve.colour)).data(&curve.points)
    });
    let time = Axis::default().bounds([begin, end.max(begin + 1.0)]);
    let time = time.labels([format!("{begin:.0} s"), format!("{:.0} s", end.max(begin + 1.0))]);
    let values = Axis::default().bounds([0.0, top]);
    let values = values.labels([words(0.0), words(top)]);
    let chart = Chart::new(sets.collect()).x_axis(time).y_axis(values);
    let names =
        curves.iter().map(|curve| Span::styled(format!(" {} ", curve.name), Style::new().fg(curve.colour)));
    let title: Line<'_> = std::iter::once(Span::raw(title)).chain(names).collect();
    // The title has the names.
    frame.render_widget(chart.legend_position(None).block(Block::bordered().title(title)), area);
}

fn share(ratio: f64) -> String {
    let percent = ratio * 100.0;
    if percent == 0.0 || percent >= 0.1 { format!("{percent:.1} %") } else { format!("{percent:.4} %") }
}

fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.1} us", ns / 1e3),
        ns if ns < 1e9 => format!("{:.1} ms", ns / 1e6),
        ns => format!("{:.1} s", ns / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use results::fixtures::Scenario;

    use super::*;

    fn drawn(board: &Board, said: &'static str, (width, height): (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| View::of(board, said).draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    fn board() -> Board {
        let board = Board::default();
        let record = Scenario { bidirectional: true, ..Scenario::default() }.record();
        let about = About {
            name: "linux-router".to_owned(),
            strategy: "saturate".to_owned(),
            line_rate_bps: 1e10,
            mean_frame_size: 64.0,
            planned_s: 60.0,
            ..About::default()
        };
        board.begin(about);
        let mut waiting: VecDeque<_> = record.samples.into_iter().map(Arc::new).collect();
        board.put(&mut waiting);
        board
    }

    #[test]
    fn a_run_is_shown_with_all_that_is_known_of_it() {
        let board = board();
        insta::assert_snapshot!(drawn(&board, "", (80, 30)));
        board.steer(Some(Steering { percent: 12.5, paused: true }));
        let nodes = [("ip4-lookup", 31.5), ("ip4-rewrite", 28.2), ("ethernet-input", 61.0)];
        board.lock().nodes =
            nodes.map(|(node, clocks)| (("worker".to_owned(), node.to_owned()), clocks)).into();
        insta::assert_snapshot!(drawn(&board, "the load cannot be changed now", (100, 34)));
    }

    #[test]
    fn no_size_and_no_sample_are_no_trouble() {
        let empty = Board::default();
        for size in [(0, 0), (1, 1), (7, 3), (20, 9), (300, 100)] {
            for board in [&empty, &board()] {
                let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
                terminal.draw(|frame| View::of(board, "no").draw(frame)).unwrap();
            }
        }
    }
}
