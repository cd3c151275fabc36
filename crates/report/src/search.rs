//! What a search found, in words: a record enters, the rows of its table and what is not regular
//! of them leave. The terminal and the page show the same.

use results::Record;
use results::record::{GoalResult, Irregular, LimitedBy};
use wire::human::count;

use crate::outcome::limited_by;

/// The columns of [`Row::figures`].
pub const HEAD: [&str; 5] =
    ["lower bound (pps)", "upper bound (pps)", "width", "forwarded (pps)", "limited by"];

/// What was found for a goal, of all directions or of one.
pub struct Row<'a> {
    /// The goal's name, or the direction's.
    pub name: &'a str,
    /// Whether it is a single direction of the goal above.
    pub nested: bool,
    /// The texts under [`HEAD`].
    pub figures: [String; 5],
    /// Whether the interval is not what was asked for.
    pub irregular: bool,
    /// Whether the tester, not the device, set the limit.
    pub by_tester: bool,
}

/// A row for each goal; for each direction too, where there are two.
pub fn rows(record: &Record) -> Vec<Row<'_>> {
    let single = record.directions.len() < 2;
    let mut rows = Vec::new();
    for (goal, result) in record.finding.results() {
        rows.push(row(goal, false, result));
        for direction in record.directions.iter().filter(|_| !single) {
            rows.extend(direction.results.get(goal).map(|result| row(&direction.name, true, result)));
        }
    }
    rows
}

fn row<'a>(name: &'a str, nested: bool, result: &GoalResult) -> Row<'a> {
    let apart = result.upper_pps.map(|upper| (1.0 - result.lower_pps / upper) * 100.0);
    Row {
        name,
        nested,
        figures: [
            whole(result.lower_pps),
            result.upper_pps.map_or_else(|| "-".to_owned(), whole),
            apart.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.2} %")),
            whole(result.conditional_throughput_pps),
            limited_by(result.limited_by).to_owned(),
        ],
        irregular: result.irregular.is_some(),
        by_tester: result.limited_by == LimitedBy::Tester,
    }
}

/// Whole frames a second: bounds may differ in the fourth digit only.
fn whole(pps: f64) -> String {
    count(pps.round() as u64)
}

/// What a reader must know of results that are not regular.
pub fn remarks(record: &Record) -> Vec<String> {
    let irregular =
        record.finding.results().iter().filter_map(|(goal, result)| Some((goal, result, result.irregular?)));
    irregular
        .map(|(goal, result, irregular)| format!("{goal}: {}", meaning(irregular, result.disturbed)))
        .collect()
}

/// Why a result is not regular, in words.
pub fn meaning(irregular: Irregular, disturbed: bool) -> &'static str {
    match irregular {
        _ if disturbed => {
            "host interference affected too many trials; the interval is based on clean trials only"
        }
        Irregular::MaxLoadIsLowerBound => {
            "upper bound not found: the maximum offered load passed, the device can do at least this"
        }
        Irregular::MinLoadIsUpperBound => {
            "lower bound not found: the minimum offered load failed, the device can do at most this"
        }
        Irregular::Wide => "the interval is wider than requested",
        Irregular::Preliminary => "preliminary: from less trial time than requested",
    }
}
