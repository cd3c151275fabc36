//! What a forwarded frame cost the device, load by load.

use results::record::{Basis, Cost, LoadCost};
use wire::human::pps;

use super::columns::{Align, Columns, Text};
use super::{Look, nodes};
use crate::nodes::{CLOCKS, Column, Costs, Table};

/// A row for each load, and below what the figures include and what is missing.
pub fn table(found: &Cost, colour: bool) -> String {
    let mut columns = Columns::new([Align::Right; 7]);
    let head = ["offered", "forwarded", "core busy", "per frame", "cycles", "clock", "energy"];
    columns.row(Text::plain(""), head.map(|name| Text::new(name, Look::Faint)));
    for load in &found.loads {
        columns.row(Text::plain(&format!("  {}", load.name)), figures(load));
    }
    let mut text = columns.render(colour);
    let mut line = |words: &str| text.push_str(&format!("  {}\n", Look::Faint.paint(words, colour)));
    line(match found.basis {
        Basis::WithoutIdlePolling => {
            "basis: without idle polling, the device sleeps when it has nothing to do"
        }
        Basis::WithIdlePolling => "basis: busy-polling device (100 % CPU when idle)",
    });
    found.energy_source.iter().for_each(|source| line(&format!("energy: {source}")));
    found.missing.iter().for_each(|missing| line(&format!("not available: {missing}")));
    text + &by_node(found, colour)
}

/// What a frame cost each of the device's nodes, if it is a graph of them: work, told from idle polling.
fn by_node(found: &Cost, colour: bool) -> String {
    let mut loads: Vec<(&LoadCost, Costs)> = Vec::new();
    for load in &found.loads {
        loads.extend(Costs::of_nodes(&load.nodes, load.nodes_s, load.forwarded).map(|costs| (load, costs)));
    }
    if loads.is_empty() {
        return String::new();
    }
    let columns = loads.iter().map(|(load, costs)| Column {
        name: load.name.clone(),
        forwarded: pps(load.forwarded_pps),
        costs,
        apart: String::new(),
    });
    let table = Table::new("the device", columns.collect());
    format!("{}  {}\n", nodes::by_load(&table, colour), Look::Faint.paint(CLOCKS, colour))
}

fn figures(load: &LoadCost) -> [Text; 7] {
    let look = if load.disturbed.is_some() { Look::Warning } else { Look::Plain };
    let figure = |value: Option<f64>, show: fn(f64) -> String| match value {
        Some(value) => Text::new(&show(value), look),
        None => Text::new("-", Look::Faint),
    };
    [
        figure(Some(load.offered_pps), pps),
        figure(Some(load.forwarded_pps), pps),
        figure(Some(load.busy), |busy| format!("{:.1} %", busy * 100.0)),
        figure(load.ns_per_frame, |ns| format!("{ns:.0} ns")),
        figure(load.cycles_per_frame, |cycles| format!("{cycles:.0}")),
        figure(load.clock_hz, |hz| format!("{:.2} GHz", hz / 1e9)),
        figure(load.uj_per_frame, |uj| format!("{uj:.2} uJ")),
    ]
}

#[cfg(test)]
mod tests {
    use results::record::{Node, NodeRuntime};

    use super::*;

    #[test]
    fn of_a_graph_of_nodes_work_is_told_from_idle_polling() {
        let node = |name: &str, calls, clocks| Node {
            thread: "worker 0".to_owned(),
            name: name.to_owned(),
            before: NodeRuntime::default(),
            after: NodeRuntime { calls, vectors: 1_000, suspends: 0, clocks },
        };
        let nodes = vec![
            node("tx", 1_000, 800.0),
            node("device-input", 1 << 20, 2e6),
            node("ip4-lookup", 1_000, 500.0),
        ];
        let low = LoadCost {
            name: "low".to_owned(),
            nodes_s: Some(1.0),
            forwarded_pps: 1e3,
            nodes,
            ..LoadCost::default()
        };
        let found = Cost {
            basis: Basis::WithIdlePolling,
            loads: vec![low],
            energy_source: None,
            missing: Vec::new(),
        };
        let text = table(&found, false);
        let line = |name: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(name));
            line.and_then(|line| line.split_whitespace().last()).unwrap_or_default().to_owned()
        };
        assert_eq!(line("clocks by node"), "low", "{text}");
        assert_eq!(
            [line("device-input"), line("ip4-lookup"), line("tx")],
            ["2,000,000", "500", "800"],
            "{text}"
        );
        assert_eq!(
            [line("forwarding nodes"), line("all without"), line("all, with")],
            ["500", "1,300", "2,001,300"]
        );
        assert!(text.contains("2.00 GHz"), "{text}");
    }

    #[test]
    fn each_load_has_its_row_and_what_is_missing_is_named() {
        let load = |name: &str, forwarded_pps: f64, ns: f64| LoadCost {
            name: name.to_owned(),
            duration_s: 10.0,
            offered_pps: forwarded_pps,
            forwarded_pps,
            forwarded: (forwarded_pps * 10.0) as u64,
            busy: forwarded_pps * ns / 1e9,
            ns_per_frame: Some(ns),
            ..LoadCost::default()
        };
        let mut fast = load("saturation", 5.01e6, 199.4);
        (fast.cycles_per_frame, fast.clock_hz, fast.uj_per_frame) = (Some(437.9), Some(2.194e9), Some(3.79));
        let found = Cost {
            basis: Basis::WithoutIdlePolling,
            loads: vec![load("low", 1e3, 4_943.0), fast],
            energy_source: Some("19 W, as given".to_owned()),
            missing: vec!["cycles: there is no counter".to_owned()],
        };
        insta::assert_snapshot!(table(&found, false), @r"
                        offered  forwarded  core busy  per frame  cycles     clock   energy
          low         1.00 kpps  1.00 kpps      0.5 %    4943 ns       -         -        -
          saturation  5.01 Mpps  5.01 Mpps     99.9 %     199 ns     438  2.19 GHz  3.79 uJ
          basis: without idle polling, the device sleeps when it has nothing to do
          energy: 19 W, as given
          not available: cycles: there is no counter
        ");
    }
}
