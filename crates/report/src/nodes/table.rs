//! The nodes of one device at its loads, as text: what they did enters; a line for each node and each sum, with
//! a figure for each load, leaves. The page, Markdown and the terminal show the same.

use std::collections::BTreeSet;

use wire::human::{count, pps};

use super::{Costs, Graph, Load, NodeCost, Part, place};

/// What the figures of a bench are.
const OF_A_BENCH: &str = "Clocks a packet of each node, and packets a call, in the run whose forwarding costs the \
                          median, from before its first frame until after its last: idle polling while nothing was \
                          sent is in it";
/// What clocks are, and the sums of them.
pub const CLOCKS: &str = "Forwarding is all from ethernet-input to output, without the device's input and tx. Clocks are \
                          those of the time stamp counter, which counts at one rate whatever the core's; the effective \
                          clock is what a thread's nodes counted in a second";

/// What stands below the table of a bench.
#[must_use]
pub fn caption() -> String {
    format!("{OF_A_BENCH}. {CLOCKS}")
}

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

/// A load.
pub struct Column<'a> {
    /// What it is called.
    pub name: String,
    /// What came back, in words.
    pub forwarded: String,
    /// What the nodes did.
    pub costs: &'a Costs<'a>,
    /// How far runs lie apart in what forwarding costs, in words.
    pub apart: String,
}

/// `graph` as text.
#[must_use]
pub fn table(graph: &Graph) -> Table {
    let column = |load| Column {
        name: Load::name(load, graph),
        forwarded: load.forwarded_pps().map(pps).unwrap_or_default(),
        costs: &load.costs,
        apart: apart(load),
    };
    Table::new(&graph.device, graph.loads.iter().map(column).collect())
}

impl Table {
    /// The nodes of `device` at each load.
    #[must_use]
    pub fn new(device: &str, columns: Vec<Column>) -> Self {
        let passed = columns.iter().flat_map(|column| column.costs.on_the_way().map(|node| node.name));
        let mut names: Vec<&str> = passed.collect::<BTreeSet<_>>().into_iter().collect();
        names.sort_by(|one, other| place(one).cmp(&place(other)));
        let line = |name: &str, figure: &dyn Fn(&Column) -> Figure| Line {
            name: name.to_owned(),
            figures: columns.iter().map(figure).collect(),
        };
        let told =
            |text: Option<String>| Figure { text: text.unwrap_or("–".to_owned()), ..Figure::default() };
        let ghz = |hz: f64| format!("{:.2} GHz", hz / 1e9);
        let node = |name| line(name, &|column| of_node(column.costs, column.costs.node(name)));
        let nodes = names.into_iter().map(node).collect();
        let sums = vec![
            line("forwarding nodes together", &|column| Figure {
                beside: column.apart.clone(),
                ..told(Some(clocks(column.costs.forwarding)))
            }),
            line("all without the input", &|column| told(Some(clocks(column.costs.without_polling)))),
            line("all, with idle polling", &|column| told(Some(clocks(column.costs.with_polling)))),
            line("effective clock", &|column| told(column.costs.clock_hz.map(ghz))),
        ];
        let head = columns.into_iter().map(|column| (column.name, column.forwarded)).collect();
        Self { device: device.to_owned(), head, nodes, sums }
    }
}

fn of_node(costs: &Costs, node: Option<&NodeCost>) -> Figure {
    let Some(node) = node else { return Figure { text: "–".to_owned(), ..Figure::default() } };
    let all = costs.without_polling * costs.packets as f64;
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
