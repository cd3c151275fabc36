//! What a search found, as a table: a record enters, columns of text leave.

use results::Record;

use super::Look;
use super::columns::{Align, Columns, Text};
use crate::search::{HEAD, Row, rows};

/// A row for each goal; for each direction too, where there are two.
pub fn table(record: &Record) -> Columns {
    let mut columns = Columns::new([Align::Right; 4].into_iter().chain([Align::Left]));
    columns.row(Text::plain(""), HEAD.map(|name| Text::new(name, Look::Faint)));
    for row in rows(record) {
        let name = match row.nested {
            true => Text::plain(&format!("    {}", row.name)),
            false => Text::new(&format!("  {}", row.name), Look::Title),
        };
        columns.row(name, figures(&row));
    }
    columns
}

fn figures(row: &Row) -> [Text; 5] {
    let warning = |warn: bool| if warn { Look::Warning } else { Look::Plain };
    let [passed, failed, apart, forwarded, limit] = &row.figures;
    [
        Text::new(passed, warning(row.irregular)),
        Text::new(failed, warning(row.irregular)),
        Text::plain(apart),
        Text::plain(forwarded),
        Text::new(limit, warning(row.by_tester)),
    ]
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;
    use results::record::{Finding, GoalResult, Irregular, LimitedBy, Search};

    use super::*;
    use crate::search::remarks;

    fn result(lower_pps: f64, upper_pps: Option<f64>, irregular: Option<Irregular>) -> GoalResult {
        GoalResult {
            pps: lower_pps,
            lower_pps,
            upper_pps,
            conditional_throughput_pps: lower_pps * 0.998,
            irregular,
            disturbed: irregular == Some(Irregular::Wide),
            limited_by: if upper_pps.is_some() { LimitedBy::Dut } else { LimitedBy::Tester },
        }
    }

    #[test]
    fn intervals_stand_in_a_row_and_irregular_ones_are_explained() {
        let mut record = Scenario { bidirectional: true, ..Scenario::default() }.record();
        let goals = |factor: f64| {
            let ndr = result(1e6 * factor, Some(1.005e6 * factor), None);
            let soak = result(2e5 * factor, Some(9e5 * factor), Some(Irregular::Wide));
            let all = result(3e6 * factor, None, Some(Irregular::MaxLoadIsLowerBound));
            [("ndr", ndr), ("pdr", all), ("soak", soak)].map(|(name, result)| (name.to_owned(), result))
        };
        let results = goals(2.0).into();
        record.finding = Finding::Search(Search { results, ..Search::default() });
        record.directions.iter_mut().for_each(|direction| direction.results = goals(1.0).into());
        let text = format!("{}{}", table(&record).render(false), remarks(&record).join("\n"));
        insta::assert_snapshot!(text, @r"
                  lower bound (pps)  upper bound (pps)    width  forwarded (pps)  limited by
          ndr             2,000,000          2,010,000   0.50 %        1,996,000  DUT
            0->1          1,000,000          1,005,000   0.50 %          998,000  DUT
            1->0          1,000,000          1,005,000   0.50 %          998,000  DUT
          pdr             6,000,000                  -        -        5,988,000  tester
            0->1          3,000,000                  -        -        2,994,000  tester
            1->0          3,000,000                  -        -        2,994,000  tester
          soak              400,000          1,800,000  77.78 %          399,200  DUT
            0->1            200,000            900,000  77.78 %          199,600  DUT
            1->0            200,000            900,000  77.78 %          199,600  DUT
        pdr: upper bound not found: the maximum offered load passed, the device can do at least this
        soak: host interference affected too many trials; the interval is based on clean trials only
        ");
    }
}
