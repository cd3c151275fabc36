//! A certificate in words: checks enter, the texts of their figures leave. The terminal and the page
//! show the same.

use results::certificate::{Certificate, Check, Unit, Verdict};
use results::record::Status;
use wire::human::count;

/// What is true.
pub fn truth(check: &Check) -> String {
    figure(check.unit, check.truth)
}

/// What was measured, if anything was.
pub fn measured(check: &Check) -> String {
    check.measured.map_or_else(|| "-".to_owned(), |value| figure(check.unit, value))
}

/// The error with its sign, if anything was measured.
pub fn error(check: &Check) -> String {
    check.error.map_or_else(|| "-".to_owned(), |error| signed(check.unit, error))
}

/// How large the error may be.
pub fn bound(check: &Check) -> String {
    figure(check.unit, check.bound)
}

/// What a check came to, and after how many attempts.
pub fn verdict(check: &Check) -> String {
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

/// That nothing watched the machine, if so.
pub fn unwatched(certificate: &Certificate) -> Option<String> {
    let why = certificate.unwatched.as_ref()?;
    Some(format!("host interference was not monitored: {why}"))
}

/// What the certificate is worth, in a sentence.
pub fn conclusion(certificate: &Certificate) -> String {
    let [passed, failed, undecided] =
        [Verdict::Passed, Verdict::Failed, Verdict::Undecided].map(|verdict| certificate.count(verdict));
    let counts =
        format!("{passed} passed, {failed} failed, {undecided} undecided in {:.0} s", certificate.elapsed_s);
    let meaning = match certificate.holds() {
        true if undecided == 0 => "results on this host are within the stated bounds",
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
