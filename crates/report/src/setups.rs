//! Set-ups side by side, as the talk *Tuning FreeBSD for routing* shows them: what the same bench proves on each of
//! several machines enters; a table for each comparison leaves, with a line for each machine. Runs of different machines
//! are not compared with each other: the change is that on one machine.

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::json::comparison;
use crate::judgement::sentence;

/// One comparison on all machines.
#[derive(Debug)]
pub struct Table {
    /// What is compared, like `kernel router, one way`.
    pub title: String,
    /// What the figures are, in words.
    pub metric: String,
    /// The reference, and what is compared with it.
    pub columns: [String; 2],
    /// One for each machine that has it, in their order.
    pub rows: Vec<Row>,
}

/// One comparison on one machine.
#[derive(Debug)]
pub struct Row {
    /// The machine.
    pub setup: String,
    /// The medians of the reference's repeats and of what is compared with it.
    pub medians: [String; 2],
    /// What the repeats prove, in a sentence.
    pub verdict: String,
    /// The same for machines.
    proof: Value,
}

/// What the same bench proves on each machine: by name, the bench of each.
#[must_use]
pub fn tables(setups: &[(&str, &Bench)]) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for (setup, bench) in setups {
        for contrast in bench.contrasts() {
            let what = bench.compared(&contrast);
            for (member, judged) in contrast.judged() {
                let median =
                    |cell| bench.spread(cell).map_or_else(String::new, |it| bench.metric.show(it.median));
                let row = Row {
                    setup: (*setup).to_owned(),
                    medians: [median(contrast.reference.cell), median(member.cell)],
                    verdict: sentence(&what, judged),
                    proof: comparison(&what, judged),
                };
                let (title, columns) =
                    (contrast.title.clone(), [contrast.reference.name.to_owned(), member.name.to_owned()]);
                match tables.iter_mut().find(|table| table.title == title && table.columns == columns) {
                    Some(table) => table.rows.push(row),
                    None => {
                        tables.push(Table { title, metric: bench.metric.words(), columns, rows: vec![row] })
                    }
                }
            }
        }
    }
    tables
}

/// The tables for machines.
#[must_use]
pub fn document(tables: &[Table]) -> Value {
    let table = |table: &Table| {
        let row = |row: &Row| json!({ "setup": row.setup, "medians": row.medians, "comparison": row.proof });
        json!({
            "compared": table.title,
            "metric": table.metric,
            "reference": table.columns[0],
            "group": table.columns[1],
            "setups": table.rows.iter().map(row).collect::<Vec<_>>(),
        })
    };
    json!({ "schema": "linerate/compare-setups/1", "tables": tables.iter().map(table).collect::<Vec<_>>() })
}
