//! Set-ups side by side, for people: a table for each comparison, with a line for each machine.

use super::Look;
use super::columns::{Align, Columns, Text};
use crate::setups::Table;

/// The tables, one below the other.
#[must_use]
pub fn setups(tables: &[Table], colour: bool) -> String {
    let mut parts = Vec::new();
    for table in tables {
        let mut columns = Columns::new([Align::Right, Align::Right, Align::Left]);
        let [reference, compared] = &table.columns;
        let head = [reference.as_str(), compared, "change"].map(|name| Text::new(name, Look::Title));
        columns.row(Text::new("set-up", Look::Title), head);
        for row in &table.rows {
            let [before, now] = &row.medians;
            columns.row(Text::plain(&row.setup), [before.as_str(), now, &row.verdict].map(Text::plain));
        }
        let title = Look::Title.paint(&format!("{}: {}", table.title, table.metric), colour);
        parts.push(format!("{title}\n{}", columns.render(colour)));
    }
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use results::bench::{Bench as Description, LABELS};
    use results::fixtures::Scenario;

    use super::*;
    use crate::bench::Bench;
    use crate::setups::{document, tables};

    /// Six repeats of a router with IPv4 and IPv6, of which the second is slower by the share `cost`.
    fn measured(cost: f64) -> Vec<results::Record> {
        let mut records = Vec::new();
        for (profile, capacity) in [("IPv4", 1e6), ("IPv6", 1e6 * (1.0 - cost))] {
            for repeat in 1..=6 {
                let capacity_pps = capacity * (1.0 + 0.002 * f64::from(repeat * 5 % 7));
                let mut record = Scenario { capacity_pps, ..Scenario::default() }.record();
                let values = ["ip".to_owned(), format!("router/{profile}/one"), repeat.to_string()];
                record.labels = LABELS.map(str::to_owned).into_iter().zip(values).collect();
                records.push(record);
            }
        }
        records
    }

    #[test]
    fn each_machine_has_a_line_in_the_table_of_a_comparison() {
        let records = [measured(0.2), measured(0.0)];
        let described = records.each_ref().map(|records| {
            let mut bench: Description = Description::all(Vec::new(), records).remove(0);
            assert!(bench.compare_with("IPv4"));
            bench
        });
        let benches = [0, 1].map(|at| Bench::new(&described[at], &records[at]).unwrap());
        let found = tables(&[("fast", &benches[0]), ("slow", &benches[1])]);
        assert_eq!(found.len(), 1);
        let text = setups(&found, false);
        insta::assert_snapshot!(text);
        let document = document(&found);
        assert_eq!(document["tables"][0]["setups"][0]["comparison"]["verdict"], "slower");
        assert_eq!(document["tables"][0]["setups"][1]["comparison"]["verdict"], "equal");
    }
}
