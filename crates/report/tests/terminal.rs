//! What people see in the terminal, from hand-made records.

use report::terminal;
use results::Record;
use results::fixtures::{Scenario, bench, oddities, searches};

#[test]
fn the_matrix_compares_devices() {
    insta::assert_snapshot!(terminal::matrix(&bench(), false));
}

#[test]
fn the_matrix_marks_what_a_figure_must_not_be_taken_for() {
    insta::assert_snapshot!(terminal::matrix(&oddities(), false));
}

#[test]
fn the_table_details_each_device() {
    insta::assert_snapshot!(terminal::table(&bench(), false));
}

#[test]
fn the_table_marks_too() {
    insta::assert_snapshot!(terminal::table(&oddities(), false));
}

#[test]
fn a_verdict_is_a_few_lines() {
    let both = Scenario { bidirectional: true, ..Scenario::default() }.record();
    let all: Vec<String> =
        std::iter::once(both).chain(oddities()).map(|record| terminal::verdict(&record, false)).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn a_plot_shows_where_forwarded_leaves_offered() {
    let ramp = Scenario::default().record();
    let stalled = &oddities()[0];
    let both = [&ramp, stalled].map(|record| terminal::plot(record, 60, 8, false));
    insta::assert_snapshot!(both.join("\n"));
}

#[test]
fn a_plot_of_a_search_shows_its_trials() {
    let plots: Vec<_> = searches().iter().map(|record| terminal::plot(record, 60, 8, false)).collect();
    insta::assert_snapshot!(plots.join("\n"));
    let mut record = searches().remove(0);
    assert_eq!(terminal::plot(&record, 10, 8, false), "");
    assert_eq!(terminal::plot(&record, 60, 0, false), "");
    let search = record.finding.search_mut().unwrap();
    search.trials.truncate(1);
    search.results.clear();
    assert!(terminal::plot(&record, 60, 1, false).contains("failed"));
}

#[test]
fn the_matrix_compares_searches_by_goal() {
    insta::assert_snapshot!(terminal::matrix(&searches(), false));
}

#[test]
fn a_plot_without_samples_or_room_is_empty() {
    let mut record = Scenario::default().record();
    assert_eq!(terminal::plot(&record, 10, 8, false), "");
    assert_eq!(terminal::plot(&record, 60, 0, false), "");
    record.samples.truncate(3);
    assert_eq!(terminal::plot(&record, 60, 8, false), "");
}

#[test]
fn colour_only_adds_escapes() {
    let records = oddities();
    let renderings: [fn(&[Record], bool) -> String; 4] = [
        terminal::matrix,
        terminal::table,
        |records, colour| terminal::verdict(&records[0], colour),
        |records, colour| terminal::plot(&records[0], 60, 8, colour),
    ];
    for render in renderings {
        let (plain, coloured) = (render(&records, false), render(&records, true));
        assert!(coloured.contains('\x1b') && !plain.contains('\x1b'));
        let stripped: Vec<_> = without_escapes(&coloured).lines().map(|l| l.trim_end().to_owned()).collect();
        assert_eq!(stripped, plain.lines().collect::<Vec<_>>());
    }
}

#[test]
fn no_records_are_no_panic() {
    assert!(terminal::matrix(&[], false).starts_with('\n'));
    assert!(terminal::table(&[], false).contains("directions"));
}

/// Without `ESC [ … m`.
fn without_escapes(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or("", |(_, rest)| rest))
}
