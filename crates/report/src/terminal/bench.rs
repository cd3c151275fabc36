//! What a bench found, for people: a row for each cell's repeats, what their medians are worth as
//! bandwidth, what a packet costs each node, and what they prove.

use super::columns::Text;
use super::{Look, Repeats, compare, links, nodes, repeats};
use crate::bench::{Bench, Cell, Test};
use crate::links::{CAPTION, rows};
use crate::nodes::{caption, graphs, table};

/// The tables of `bench`, one below the other.
#[must_use]
pub fn bench(bench: &Bench, colour: bool) -> String {
    let row = |test: &Test, cell: &Cell| Repeats {
        name: format!("{}/{}", cell.dut.name, test.name()),
        values: cell.values(),
        doubts: cell.doubts(),
    };
    let cells = bench.tests.iter().flat_map(|test| test.cells.iter().map(move |cell| row(test, cell)));
    let cells: Vec<Repeats> = cells.collect();
    let metric = bench.metric.to_string();
    let mut parts = vec![repeats(&metric, &cells, |value| bench.metric.show(value), colour)];
    let worth: Vec<_> = rows(bench).into_iter().map(|row| (row.name(), row.cells)).collect();
    if !worth.is_empty() {
        let table = links::columns(Text::new("median", Look::Title), worth).render(colour);
        parts.push(format!("{table}{}\n", Look::Faint.paint(CAPTION, colour)));
    }
    for graph in graphs(bench) {
        let table = nodes::by_load(&table(&graph), colour);
        parts.push(format!("{table}{}\n", Look::Faint.paint(&caption(), colour)));
    }
    let scaling = crate::scaling::sentences(bench);
    if !scaling.is_empty() {
        parts.push(scaling.join("\n") + "\n");
    }
    for contrast in bench.contrasts() {
        let judged: Vec<_> = contrast.judged().map(|(_, judged)| judged.clone()).collect();
        if !judged.is_empty() {
            parts.push(compare(&bench.compared(&contrast), &judged, colour));
        }
    }
    parts.join("\n")
}
