//! How repeats of many configurations scatter: their figures enter, a row for each leaves.

use std::fmt::Write as _;

use super::Look;
use super::columns::{Align, Columns, Text};

/// The repeats of one configuration.
#[derive(Clone, Debug, Default)]
pub struct Repeats {
    /// The configuration's name.
    pub name: String,
    /// A figure of each repeat; may be none.
    pub values: Vec<f64>,
    /// What makes some of the figures doubtful, in words, and how many of them.
    pub doubts: Vec<(String, usize)>,
}

/// A row for each configuration: mean, standard deviation of the sample in percent of the mean,
/// median, least and most. `metric` says what the figures are, `show` writes one.
#[must_use]
pub fn repeats(metric: &str, rows: &[Repeats], show: impl Fn(f64) -> String, colour: bool) -> String {
    let mut columns = Columns::new([Align::Right; 6]);
    let head = ["mean", "deviation", "median", "least", "most", "repeats"];
    columns.row(Text::new(metric, Look::Title), head.map(|name| Text::new(name, Look::Faint)));
    for row in rows {
        columns.row(Text::plain(&row.name), cells(row, &show));
    }
    let mut text = columns.render(colour);
    for row in rows {
        for (doubt, count) in &row.doubts {
            let line = format!("{}: {count} of {} doubtful: {doubt}", row.name, row.values.len());
            let _ = writeln!(text, "{}", Look::Warning.paint(&line, colour));
        }
    }
    text
}

fn cells(row: &Repeats, show: &impl Fn(f64) -> String) -> [Text; 6] {
    let look = if row.doubts.is_empty() { Look::Plain } else { Look::Warning };
    let mut values = row.values.clone();
    values.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (values.first(), values.last()) else {
        return [(); 6].map(|()| Text::new("-", Look::Faint));
    };
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = match values.len() {
        1 => "-".to_owned(),
        _ if mean == 0.0 => "-".to_owned(),
        _ => format!("{:.2} %", (squares / (count - 1.0)).sqrt() / mean * 100.0),
    };
    let middle = |at: usize| values.get(at).copied().unwrap_or(mean);
    let median = (middle((values.len() - 1) / 2) + middle(values.len() / 2)) / 2.0;
    [
        Text::new(&show(mean), look),
        Text::new(&deviation, look),
        Text::new(&show(median), look),
        Text::new(&show(*least), look),
        Text::new(&show(*most), look),
        Text::plain(&values.len().to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, values: &[f64]) -> Repeats {
        Repeats { name: name.to_owned(), values: values.to_vec(), doubts: Vec::new() }
    }

    #[test]
    fn each_configuration_has_its_row() {
        let mut odd = row("b", &[5.0]);
        odd.doubts.push(("the tester limited it".to_owned(), 1));
        let rows = [row("a", &[4.0, 1.0, 3.0, 2.0]), odd, row("none", &[])];
        let text = repeats("rate", &rows, |value| format!("{value}"), false);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["rate", "mean", "deviation", "median", "least", "most", "repeats"]);
        assert_eq!(lines[1], ["a", "2.5", "51.64", "%", "2.5", "1", "4", "4"]);
        assert_eq!(lines[2], ["b", "5", "-", "5", "5", "5", "1"]);
        assert_eq!(lines[3], ["none", "-", "-", "-", "-", "-", "-"]);
        assert_eq!(lines[4].join(" "), "b: 1 of 1 doubtful: the tester limited it");
    }
}
