//! What a search found: a record enters, a table of intervals leaves, and what is not regular of
//! them in words.

use results::Record;
use results::record::{GoalResult, Irregular, LimitedBy};
use wire::human::count;

use super::columns::{Align, Columns, Text};
use super::{Look, limited_by};

/// A row for each goal; for each direction too, where there are two.
pub fn table(record: &Record) -> Columns {
    let mut columns = Columns::new([Align::Right; 4].into_iter().chain([Align::Left]));
    let head = ["passed (pps)", "failed (pps)", "apart", "forwarded (pps)", "limited by"];
    columns.row(Text::plain(""), head.map(|name| Text::new(name, Look::Faint)));
    for (goal, result) in &record.results {
        columns.row(Text::new(&format!("  {goal}"), Look::Title), figures(result));
        let single = record.directions.len() < 2;
        for direction in record.directions.iter().filter(|_| !single) {
            if let Some(result) = direction.results.get(goal) {
                columns.row(Text::plain(&format!("    {}", direction.name)), figures(result));
            }
        }
    }
    columns
}

fn figures(result: &GoalResult) -> [Text; 5] {
    let look = if result.irregular.is_some() { Look::Warning } else { Look::Plain };
    let apart = result.upper_pps.map(|upper| (1.0 - result.lower_pps / upper) * 100.0);
    let limit = if result.limited_by == LimitedBy::Tester { Look::Warning } else { Look::Plain };
    [
        Text::new(&whole(result.lower_pps), look),
        Text::new(&result.upper_pps.map_or_else(|| "-".to_owned(), whole), look),
        Text::plain(&apart.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.2} %"))),
        Text::plain(&whole(result.conditional_throughput_pps)),
        Text::new(limited_by(result.limited_by), limit),
    ]
}

/// Whole frames a second: bounds may differ in the fourth digit only.
fn whole(pps: f64) -> String {
    count(pps.round() as u64)
}

/// What a reader must know of results that are not regular.
pub fn remarks(record: &Record) -> Vec<String> {
    let irregular =
        record.results.iter().filter_map(|(goal, result)| Some((goal, result, result.irregular?)));
    irregular.map(|(goal, result, irregular)| format!("{goal}: {}", meaning(result, irregular))).collect()
}

fn meaning(result: &GoalResult, irregular: Irregular) -> &'static str {
    match irregular {
        _ if result.disturbed => {
            "disturbed: the machine spoiled too many trials; the interval is what the others prove"
        }
        Irregular::MaxLoadIsLowerBound => "irregular: the highest load passed, the device may forward more",
        Irregular::MinLoadIsUpperBound => "irregular: the lowest load failed, the device forwards less",
        Irregular::Wide => "irregular: the interval is wider than asked for",
        Irregular::Preliminary => "irregular: preliminary, from less trial time than asked for",
    }
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;

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
        record.results = goals(2.0).into();
        record.directions.iter_mut().for_each(|direction| direction.results = goals(1.0).into());
        let text = format!("{}{}", table(&record).render(false), remarks(&record).join("\n"));
        insta::assert_snapshot!(text, @r"
                  passed (pps)  failed (pps)    apart  forwarded (pps)  limited by
          ndr        2,000,000     2,010,000   0.50 %        1,996,000  DUT
            0->1     1,000,000     1,005,000   0.50 %          998,000  DUT
            1->0     1,000,000     1,005,000   0.50 %          998,000  DUT
          pdr        6,000,000             -        -        5,988,000  tester
            0->1     3,000,000             -        -        2,994,000  tester
            1->0     3,000,000             -        -        2,994,000  tester
          soak         400,000     1,800,000  77.78 %          399,200  DUT
            0->1       200,000       900,000  77.78 %          199,600  DUT
            1->0       200,000       900,000  77.78 %          199,600  DUT
        pdr: irregular: the highest load passed, the device may forward more
        soak: disturbed: the machine spoiled too many trials; the interval is what the others prove
        ");
    }
}
