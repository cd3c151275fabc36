//! What a frame costs from memory to the port: a generator enters; a table of the steps, and one of the frames that were
//! built in each size by each number of cores, leave.

use results::record::{BuiltFrames, Generator};
use wire::human::pps;

use super::Look;
use super::columns::{Align, Columns, Text};
use crate::waterfall::{Step, meaning, places, sizes, steps};

/// Both tables; nothing where only a program was measured.
pub fn tables(found: &Generator, colour: bool) -> String {
    let mut text = String::new();
    if !found.waterfall.is_empty() {
        text.push_str(&costs(found).render(colour));
    }
    if !found.built.is_empty() {
        text.push_str(&built(&found.built).render(colour));
    }
    text
}

fn costs(found: &Generator) -> Columns {
    let mut columns = Columns::new([Align::Right, Align::Right, Align::Right, Align::Left]);
    let head = ["rate of one core", "time per frame", "more than building it", ""];
    columns.row(Text::new("  step", Look::Faint), head.map(|name| Text::new(name, Look::Faint)));
    for Step { name, pps: rate, ns, more_ns } in steps(found) {
        let figures =
            [pps(rate), format!("{ns:.1} ns"), more_ns.map_or_else(String::new, |ns| format!("{ns:+.1} ns"))];
        let cells = figures.map(|figure| Text::plain(&figure)).into_iter();
        columns.row(Text::plain(&format!("  {name}")), cells.chain([Text::new(meaning(&name), Look::Faint)]));
    }
    columns
}

/// A row for each place and size, a column for each number of cores.
fn built(built: &[BuiltFrames]) -> Columns {
    let most = built.iter().map(|frames| frames.cores.len()).max().unwrap_or(0);
    let mut columns = Columns::new((0..=most).map(|_| Align::Right));
    let cores =
        (1..=most).map(|count| if count == 1 { "1 core".to_owned() } else { format!("{count} cores") });
    let head = std::iter::once("size".to_owned()).chain(cores);
    columns.row(Text::new("  place", Look::Faint), head.map(|name| Text::new(&name, Look::Faint)));
    for place in places(built) {
        for size in sizes(built) {
            let figure = |count: usize| {
                let is_it =
                    |it: &&BuiltFrames| it.onto == place && it.frame_size == size && it.cores.len() == count;
                built.iter().find(is_it).map_or_else(|| "-".to_owned(), |found| pps(found.pps))
            };
            let cells = std::iter::once(format!("{size:.0} B")).chain((1..=most).map(figure));
            columns.row(Text::plain(&format!("  {place}")), cells.map(|cell| Text::plain(&cell)));
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;

    #[test]
    fn each_step_says_what_it_costs_beside_building() {
        let record = Scenario::default().waterfall();
        insta::assert_snapshot!(tables(record.finding.generator().unwrap(), false));
    }
}
