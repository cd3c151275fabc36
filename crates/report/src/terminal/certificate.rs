//! The certificate as a table: checks enter, columns of text leave.

use results::certificate::{Certificate, Check, Unit, Verdict};
use results::record::Status;
use wire::human::count;

use super::Look;
use super::columns::{Align, Columns, Text};

/// What was true, what was measured, and the error; what is not certain is explained below.
#[must_use]
pub fn certificate(certificate: &Certificate, colour: bool) -> String {
    let mut columns = Columns::new([Align::Right; 4].into_iter().chain([Align::Left; 2]));
    let head = ["truth", "measured", "error", "bound", "verdict", "device"];
    columns.row(Text::plain(""), head.map(|name| Text::new(name, Look::Faint)));
    for check in &certificate.checks {
        columns.row(Text::plain(&format!("  {}", check.name)), figures(check));
    }
    let mut lines = vec![columns.render(colour).trim_end().to_owned()];
    let explained = certificate.checks.iter().filter_map(|check| Some((check, check.reason.as_ref()?)));
    lines.extend(explained.map(|(check, reason)| {
        let look = if check.verdict == Verdict::Passed { Look::Faint } else { Look::Warning };
        look.paint(&format!("  {}, {}: {reason}", check.name, verdict(check)), colour)
    }));
    lines.extend(certificate.unwatched.as_ref().map(|why| {
        let words = format!("  nothing watched the machine, so what disturbed it is not known: {why}");
        Look::Warning.paint(&words, colour)
    }));
    lines.push(Look::Title.paint(&conclusion(certificate), colour));
    lines.join("\n") + "\n"
}

fn figures(check: &Check) -> [Text; 6] {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| figure(check.unit, value));
    let look = if check.verdict == Verdict::Passed { Look::Plain } else { Look::Warning };
    [
        Text::plain(&figure(check.unit, check.truth)),
        Text::plain(&number(check.measured)),
        Text::new(&check.error.map_or_else(|| "-".to_owned(), |error| signed(check.unit, error)), look),
        Text::new(&figure(check.unit, check.bound), Look::Faint),
        Text::new(&verdict(check), look),
        Text::new(&check.dut, Look::Faint),
    ]
}

fn verdict(check: &Check) -> String {
    let word = match check.verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::Undecided => "undecided",
    };
    if check.attempts > 1 { format!("{word} ({} attempts)", check.attempts) } else { word.to_owned() }
}

fn figure(unit: Unit, value: f64) -> String {
    let whole = || count(value.abs().round() as u64);
    match unit {
        Unit::Pps => format!("{} pps", whole()),
        Unit::Frames => whole(),
        Unit::Share => format!("{:.3} %", value.abs() * 100.0),
        Unit::Ns => format!("{:.2} us", value.abs() / 1e3),
    }
}

/// With its sign, unless it is shown as zero.
fn signed(unit: Unit, value: f64) -> String {
    let text = figure(unit, value);
    let zero = !text.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    let sign = if zero {
        ""
    } else if value < 0.0 {
        "-"
    } else {
        "+"
    };
    format!("{sign}{text}")
}

fn conclusion(certificate: &Certificate) -> String {
    let [passed, failed, undecided] =
        [Verdict::Passed, Verdict::Failed, Verdict::Undecided].map(|verdict| certificate.count(verdict));
    let counts =
        format!("{passed} passed, {failed} failed, {undecided} undecided in {:.0} s", certificate.elapsed_s);
    let meaning = match certificate.holds() {
        true if undecided == 0 => "the tester measures what is true here",
        true => "what was decided is true; the machine was too busy for the rest",
        false if certificate.status != Status::Complete => "interrupted, so this certifies nothing",
        false if failed > 0 && certificate.unwatched.is_some() => {
            "do not trust what this tester measures here, unless the machine was disturbed"
        }
        false if failed > 0 => "do not trust what this tester measures here",
        false => "the machine was too busy to decide anything: quiet it, and run this again",
    };
    format!("{counts}: {meaning}")
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;

    fn check(name: &str, unit: Unit, truth: f64, measured: Option<f64>, verdict: Verdict) -> Check {
        Check {
            name: name.to_owned(),
            dut: "calibrated".to_owned(),
            unit,
            truth,
            measured,
            interval: None,
            error: measured.map(|measured| measured - truth),
            bound: truth * 0.005,
            verdict,
            reason: (verdict == Verdict::Undecided).then(|| "the machine was busy".to_owned()),
            attempts: if verdict == Verdict::Undecided { 3 } else { 1 },
        }
    }

    fn shown() -> Certificate {
        Certificate {
            schema: results::certificate::SCHEMA.to_owned(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            elapsed_s: 21.4,
            status: Status::Complete,
            command: Vec::new(),
            environment: Scenario::default().record().environment,
            seed: 7,
            quick: true,
            unwatched: None,
            checks: vec![
                check("capacity", Unit::Pps, 300e3, Some(299_100.0), Verdict::Passed),
                check("frames lost", Unit::Frames, 1_000.0, Some(1_000.0), Verdict::Passed),
                check("loss ratio", Unit::Share, 0.01, Some(0.012), Verdict::Failed),
                check("delay", Unit::Ns, 50e3, None, Verdict::Undecided),
            ],
        }
    }

    #[test]
    fn truth_stands_beside_what_was_measured() {
        insta::assert_snapshot!(certificate(&shown(), false));
    }

    #[test]
    fn it_says_so_if_nothing_watched_the_machine() {
        let unwatched = Some("not permitted".to_owned());
        let text = certificate(&Certificate { unwatched, ..shown() }, false);
        let said = "nothing watched the machine, so what disturbed it is not known: not permitted";
        assert!(text.contains(said) && text.contains("unless the machine was disturbed"), "{text}");
    }
}
