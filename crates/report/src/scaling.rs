//! How a rate grows with workers, queues or cores: a bench whose axis counts them enters; the scaling law that fits, and what it
//! explains, leave in sentences.

use results::record::LimitedBy;
use stats::scaling::{Estimate, FEWEST, Scaling, Unfit};

use crate::bench::{Bench, Cell, Test};

/// The sentences on each line of figures over a `linear` axis; none where the bench has no such axis.
#[must_use]
pub fn sentences(bench: &Bench) -> Vec<String> {
    let Some(axis) = bench.description.axis.as_ref().filter(|axis| axis.linear) else { return Vec::new() };
    let show = |value| bench.metric.show(value);
    series(bench)
        .iter()
        .filter(|series| series.places.len() > 1)
        .map(|series| series.sentence(&axis.name, &show))
        .collect()
}

/// Cells that differ in the number on the axis only.
struct Series<'a> {
    name: String,
    places: Vec<(f64, &'a Cell<'a>)>,
}

/// Tests over devices that have numbers, or devices over tests that have.
fn series<'a>(bench: &'a Bench<'a>) -> Vec<Series<'a>> {
    let duts = &bench.description.duts;
    if duts.iter().any(|dut| dut.at.is_some()) {
        let of = |test: &'a Test<'a>| Series {
            name: test.title(),
            places: test.cells.iter().filter_map(|cell| Some((cell.dut.at?, cell))).collect(),
        };
        return bench.tests.iter().map(of).collect();
    }
    let mut directions: Vec<&str> = bench.tests.iter().map(|test| test.direction).collect();
    directions.dedup();
    directions.sort_unstable();
    directions.dedup();
    let mut all = Vec::new();
    for direction in directions {
        for (at, dut) in duts.iter().enumerate() {
            let tests = bench.tests.iter().filter(|test| test.direction == direction);
            let places = tests.filter_map(|test| Some((test.profile.at?, test.cells.get(at)?))).collect();
            all.push(Series { name: format!("{}, {}", dut.name, crate::bench::way(direction)), places });
        }
    }
    all
}

impl Series<'_> {
    fn sentence(&self, what: &str, show: &dyn Fn(f64) -> String) -> String {
        let name = &self.name;
        let figures = self
            .places
            .iter()
            .flat_map(|(at, cell)| cell.values().into_iter().map(move |value| (*at, value)));
        let points: Vec<(f64, f64)> = figures.filter(|(at, _)| *at >= 1.0).collect();
        let elsewhere = self.places.iter().filter(|(_, cell)| is_limited_elsewhere(cell)).count();
        if elsewhere > 0 {
            return format!(
                "{name}: no law of scaling is fitted, since at {elsewhere} of {} numbers of {what} the tester or the line was \
                 the limit, not the device",
                self.places.len()
            );
        }
        match Scaling::of(&points) {
            Ok(law) => format!("{name}: {}", in_words(&law, what, &points, show)),
            Err(Unfit::TooFew(there)) => format!(
                "{name}: how it scales cannot be said from {there} different numbers of {what}: measure {FEWEST} at least"
            ),
            Err(unfit @ Unfit::NotPositive) => format!("{name}: no law of scaling is fitted: {unfit}"),
        }
    }
}

/// Whether a figure of `cell` says nothing of the device.
fn is_limited_elsewhere(cell: &Cell) -> bool {
    let directions = cell.repeats.iter().flat_map(|repeat| &repeat.record.directions);
    directions
        .map(|direction| direction.limited_by)
        .any(|by| matches!(by, LimitedBy::Tester | LimitedBy::LineRate))
}

fn in_words(law: &Scaling, what: &str, points: &[(f64, f64)], show: &dyn Fn(f64) -> String) -> String {
    let most = points.iter().map(|(workers, _)| *workers).fold(1.0, f64::max);
    let share = law.at(most) / law.ideal(most) * 100.0;
    let mut text = format!(
        "{most} {what} do {share:.0} % of the linear ideal ({} of {})",
        show(law.at(most)),
        show(law.ideal(most))
    );
    text += &match law.crosstalk {
        Some(crosstalk) => format!(
            "; the Universal Scalability Law explains it by contention {} (work that only one does at a time) and crosstalk {} \
             (what each pair costs)",
            percent(&law.contention),
            percent(&crosstalk)
        ),
        None if is_proven(&law.contention) => format!(
            "; Amdahl's law explains it by contention {} (work that only one does at a time, like a lock)",
            percent(&law.contention)
        ),
        None => format!("; contention is not proven: Amdahl's law gives {}", percent(&law.contention)),
    };
    match (law.peak(), law.ceiling().filter(|_| is_proven(&law.contention))) {
        (Some(peak), _) => text += &format!("; it is highest with {:.0}, and falls beyond", peak.max(1.0)),
        (None, Some(ceiling)) => {
            text += &format!("; however many there are, not more than {}", show(ceiling))
        }
        (None, None) => {}
    }
    text + &format!("; the law leaves {:.1} % unexplained", law.misfit * 100.0)
}

/// Whether it is above zero beyond chance.
fn is_proven(estimate: &Estimate) -> bool {
    estimate.interval.is_some_and(|(low, _)| low > 0.0)
}

/// A share with its interval.
fn percent(estimate: &Estimate) -> String {
    let value = estimate.value * 100.0;
    match estimate.interval {
        Some((low, high)) => format!("{value:.1} % (95 %: {:.1} to {:.1})", low * 100.0, high * 100.0),
        None => format!("{value:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use results::Record;
    use results::bench::{Axis, Bench as Description, Dut, LABELS, Profile};
    use results::fixtures::Scenario;

    use super::*;

    /// A bench of devices with so many workers and capacities, two repeats each.
    fn said(workers: &[(u32, f64)], line_rate_bps: f64) -> Vec<String> {
        let name = |workers: u32| format!("{workers} workers");
        let mut records: Vec<Record> = Vec::new();
        for (count, capacity_pps) in workers {
            for repeat in ["1", "2"] {
                let scenario = Scenario { capacity_pps: *capacity_pps, line_rate_bps, ..Scenario::default() };
                let mut record = scenario.record();
                record.id = format!("{count}-{repeat}");
                let values = ["scaling".to_owned(), format!("{}/64 B/one", name(*count)), repeat.to_owned()];
                record.labels = LABELS.into_iter().map(str::to_owned).zip(values).collect();
                records.push(record);
            }
        }
        let description = Description {
            schema: results::bench::SCHEMA.to_owned(),
            name: "scaling".to_owned(),
            title: "Workers".to_owned(),
            article_figure: None,
            command: Vec::new(),
            source: String::new(),
            repeats: 2,
            order: "by round".to_owned(),
            compare: results::bench::Compare::default(),
            baseline: None,
            axis: Some(Axis { name: "workers".to_owned(), linear: true }),
            duts: workers
                .iter()
                .map(|(count, _)| Dut { name: name(*count), at: Some(f64::from(*count)) })
                .collect(),
            profiles: vec![Profile { name: "64 B".to_owned(), at: None, directions: vec!["one".to_owned()] }],
        };
        sentences(&Bench::new(&description, &records).unwrap())
    }

    #[test]
    fn contention_is_named_with_what_bounds_it() {
        let amdahl = |n: f64| 2e6 * n / (1.0 + 0.25 * (n - 1.0));
        let [said] = said(&[(1, amdahl(1.0)), (2, amdahl(2.0)), (4, amdahl(4.0))], 10e9).try_into().unwrap();
        assert!(said.starts_with("64 B, one way: 4 workers do 57 % of the linear ideal ("), "{said}");
        assert!(
            said.contains("Amdahl's law explains it by contention 2") && said.contains("not more than 8."),
            "{said}"
        );
    }

    #[test]
    fn crosstalk_is_named_with_where_the_rate_is_highest() {
        let gunther = |n: f64| 2e6 * n / (1.0 + 0.02 * (n - 1.0) + 0.05 * n * (n - 1.0));
        let workers = [1, 2, 3, 4, 6, 8].map(|count| (count, gunther(f64::from(count))));
        let [said] = said(&workers, 10e9).try_into().unwrap();
        assert!(said.contains("and crosstalk 5.0 %") && said.contains("it is highest with 4"), "{said}");
    }

    #[test]
    fn two_numbers_of_workers_or_limits_elsewhere_prove_nothing() {
        let two = said(&[(1, 1e6), (2, 1.9e6)], 10e9);
        assert_eq!(
            two,
            [
                "64 B, one way: how it scales cannot be said from 2 different numbers of workers: measure 3 at least"
            ]
        );
        let [line] = said(&[(1, 1e6), (2, 2e6), (3, 9e6)], 2.5e9).try_into().unwrap();
        assert!(line.contains("at 1 of 3 numbers of workers the tester or the line was the limit"), "{line}");
    }
}
