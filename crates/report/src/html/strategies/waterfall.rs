//! What a frame costs from memory to the port: a record enters; a table of the steps and one of the frames that were
//! built leave.

use results::Record;
use results::record::BuiltFrames;
use wire::human::pps;

use super::{Table, TableCell, TableRow};
use crate::waterfall::{Step, meaning, places, sizes, steps};

/// Both tables of a record that has steps.
pub fn tables(record: &Record) -> Vec<Table> {
    let Some(found) = record.finding.generator().filter(|found| !found.waterfall.is_empty()) else {
        return Vec::new();
    };
    let costs = Table {
        caption: "What a frame of 64 bytes costs one core, from memory to the port".to_owned(),
        head: ["Rate of one core", "Time per frame", "More than building it", "What happens"]
            .map(str::to_owned)
            .into(),
        rows: steps(found).into_iter().map(step).collect(),
    };
    let mut tables = vec![costs];
    if !found.built.is_empty() {
        tables.push(built(&found.built));
    }
    tables
}

fn step(Step { name, pps: rate, ns, more_ns }: Step) -> TableRow {
    let more = more_ns.map_or_else(|| "–".to_owned(), |ns| format!("{ns:+.1} ns"));
    let cells = [pps(rate), format!("{ns:.1} ns"), more, meaning(&name).to_owned()];
    TableRow { name, nested: false, cells: TableCell::all(cells, false) }
}

fn built(built: &[BuiltFrames]) -> Table {
    let most = built.iter().map(|frames| frames.cores.len()).max().unwrap_or(0);
    let cores =
        (1..=most).map(|count| if count == 1 { "1 core".to_owned() } else { format!("{count} cores") });
    let mut rows = Vec::new();
    for place in places(built) {
        for size in sizes(built) {
            let figure = |count: usize| {
                let is_it =
                    |it: &&BuiltFrames| it.onto == place && it.frame_size == size && it.cores.len() == count;
                built.iter().find(is_it).map_or_else(|| "–".to_owned(), |found| pps(found.pps))
            };
            let cells = std::iter::once(format!("{size:.0} B")).chain((1..=most).map(figure));
            rows.push(TableRow {
                name: place.to_owned(),
                nested: false,
                cells: TableCell::all(cells, false),
            });
        }
    }
    Table {
        caption: "Frames built and not sent, by place, size and number of cores".to_owned(),
        head: std::iter::once("Size".to_owned()).chain(cores).collect(),
        rows,
    }
}
