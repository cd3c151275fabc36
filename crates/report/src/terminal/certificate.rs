//! The certificate as a table: checks enter, columns of text leave.

use results::certificate::{Certificate, Check, Verdict};

use super::Look;
use super::columns::{Align, Columns, Text};
use crate::certificate::{bound, conclusion, error, measured, truth, unwatched, verdict};

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
    lines.extend(unwatched(certificate).map(|words| Look::Warning.paint(&format!("  {words}"), colour)));
    lines.push(Look::Title.paint(&conclusion(certificate), colour));
    lines.join("\n") + "\n"
}

fn figures(check: &Check) -> [Text; 6] {
    let look = if check.verdict == Verdict::Passed { Look::Plain } else { Look::Warning };
    [
        Text::plain(&truth(check)),
        Text::plain(&measured(check)),
        Text::new(&error(check), look),
        Text::new(&bound(check), Look::Faint),
        Text::new(&verdict(check), look),
        Text::new(&check.dut, Look::Faint),
    ]
}

#[cfg(test)]
mod tests {
    use results::certificate::Unit;
    use results::fixtures::Scenario;
    use results::record::Status;

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
        let said = "host interference was not monitored: not permitted";
        assert!(text.contains(said) && text.contains("unless the machine was disturbed"), "{text}");
    }
}
