//! The nodes of one device at its loads, as text: a graph enters; a line for each node and each sum, with
//! a figure for each load, leaves. The page, Markdown and the terminal show the same.

use std::collections::BTreeSet;

use wire::human::{count, pps};

use super::{Graph, Load, NodeCost, Part, place};

/// What the figures are.
pub const CAPTION: &str = "Clocks a packet of each node, and packets a call, in the run whose forwarding costs the \
                           median, while load was offered. Forwarding is all from ethernet-input to output, without the \
                           device's input and tx. Clocks are those of the time stamp counter, which counts at one rate \
                           whatever the core's; the effective clock is what a thread's nodes counted in a second";

/// One device, load by load.
pub struct Table {
    /// As `--dut` takes it.
    pub device: String,
    /// What each load is called, and what came back.
    pub head: Vec<(String, String)>,
    /// Nodes in the order in which packets pass them.
    pub nodes: Vec<Line>,
    /// Sums over them.
    pub sums: Vec<Line>,
}

/// A node, or a sum.
pub struct Line {
    /// Its name.
    pub name: String,
    /// Load by load.
    pub figures: Vec<Figure>,
}

/// What stands in a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Clocks a packet, or what else the line has.
    pub text: String,
    /// Packets a call, or how far runs lie apart; it may be empty.
    pub beside: String,
    /// The node's share of all clocks but those of the input, in percent.
    pub share: f64,
}

/// `graph` as text.
#[must_use]
pub fn table(graph: &Graph) -> Table {
    let passed = graph.loads.iter().flat_map(|load| load.costs.on_the_way().map(|node| node.name));
    let mut names: Vec<&str> = passed.collect::<BTreeSet<_>>().into_iter().collect();
    names.sort_by(|one, other| place(one).cmp(&place(other)));
    let line = |name: &str, figure: &dyn Fn(&Load) -> Figure| Line {
        name: name.to_owned(),
        figures: graph.loads.iter().map(figure).collect(),
    };
    let told = |text: Option<String>| Figure { text: text.unwrap_or("–".to_owned()), ..Figure::default() };
    Table {
        device: graph.device.clone(),
        head: graph.loads.iter().map(|load| head(graph, load)).collect(),
        nodes: names
            .into_iter()
            .map(|name| line(name, &|load| of_node(load, load.costs.node(name))))
            .collect(),
        sums: vec![
            line("forwarding nodes together", &|load| Figure {
                beside: apart(load),
                ..told(Some(clocks(load.costs.forwarding)))
            }),
            line("all without the input", &|load| told(Some(clocks(load.costs.without_polling)))),
            line("all, with idle polling", &|load| told(Some(clocks(load.costs.with_polling)))),
            line("effective clock", &|load| {
                told(load.costs.clock_hz.map(|hz| format!("{:.2} GHz", hz / 1e9)))
            }),
        ],
    }
}

/// The name of a load, and what came back.
fn head(graph: &Graph, load: &Load) -> (String, String) {
    (load.name(graph), load.forwarded_pps().map(pps).unwrap_or_default())
}

fn of_node(load: &Load, node: Option<&NodeCost>) -> Figure {
    let Some(node) = node else { return Figure { text: "–".to_owned(), ..Figure::default() } };
    let all = load.costs.without_polling * load.costs.packets as f64;
    let share =
        if Part::of(node.name) == Part::Input || all <= 0.0 { 0.0 } else { node.clocks / all * 100.0 };
    Figure {
        text: clocks(node.per_packet()),
        beside: format!("{:.2} a call", node.vectors_per_call()),
        share: share.clamp(0.0, 100.0),
    }
}

/// How far the runs of a load lie apart.
fn apart(load: &Load) -> String {
    match load.runs {
        1 => "one run".to_owned(),
        _ => format!("{} – {}", clocks(load.range.0), clocks(load.range.1)),
    }
}

fn clocks(value: f64) -> String {
    if value < 99.95 { format!("{value:.1}") } else { count(value.round() as u64) }
}
