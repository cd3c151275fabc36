//! Certificates of the tester: what was true and what was measured enter; tables with a picture of
//! each error leave.

use results::certificate::{Certificate, Check, Verdict};

use super::facts::{Fact, certificate_facts};
use crate::certificate::{bound, conclusion, error, measured, truth, unwatched, verdict};

/// One certificate.
pub struct Panel {
    /// Its day and time.
    pub when: String,
    pub quick: bool,
    /// What it is worth, in a sentence.
    pub conclusion: String,
    pub holds: bool,
    /// Why the machine was not watched, if it was not.
    pub unwatched: Option<String>,
    pub rows: Vec<Row>,
    pub facts: Vec<Fact>,
}

/// One figure beside the truth.
pub struct Row {
    pub name: String,
    pub dut: String,
    pub truth: String,
    pub measured: String,
    pub error: String,
    pub bound: String,
    pub verdict: String,
    /// `passed`, `failed` or `undecided`.
    pub class: &'static str,
    pub reason: Option<String>,
    pub plot: Plot,
}

/// An error against its bound. The picture is [`Plot::WIDTH`] pixels wide, with no error in its
/// middle.
pub struct Plot {
    /// Where the error stands; nowhere if nothing was measured.
    pub error: Option<f64>,
    /// Whether it is further away than the picture reaches.
    pub beyond: bool,
    /// From where to where the interval reaches that the measurement claims to hold the truth.
    pub claimed: Option<(f64, f64)>,
}

impl Plot {
    pub const WIDTH: f64 = 150.0;
    pub const MIDDLE: f64 = Self::WIDTH / 2.0;
    /// The bound is as far from the middle.
    pub const BOUND: f64 = 34.0;
    /// What stands further from the middle stands here.
    const EDGE: f64 = Self::MIDDLE - 6.0;

    fn new(check: &Check) -> Self {
        let place = |error: f64| place(error, check.bound);
        let claimed = check.interval.map(|(lower, upper)| {
            let upper = upper.map_or(f64::INFINITY, |upper| upper - check.truth);
            (Self::MIDDLE + place(lower - check.truth), Self::MIDDLE + place(upper))
        });
        let error = check.error.map(place);
        Self {
            error: error.map(|error| Self::MIDDLE + error),
            beyond: error.is_some_and(|error| error.abs() >= Self::EDGE),
            claimed,
        }
    }

    /// Where the band of errors within the bound begins.
    pub fn band(&self) -> f64 {
        Self::MIDDLE - Self::BOUND
    }

    /// Whether it reaches beyond the picture at its right.
    pub fn right(&self) -> bool {
        self.error.is_some_and(|error| error > Self::MIDDLE)
    }
}

/// How far from the middle an error stands. Where none is allowed, any is beyond the picture.
fn place(error: f64, bound: f64) -> f64 {
    let place = if error == 0.0 { 0.0 } else { error / bound * Plot::BOUND };
    place.clamp(-Plot::EDGE, Plot::EDGE)
}

pub fn panels(certificates: &[Certificate]) -> Vec<Panel> {
    certificates.iter().map(panel).collect()
}

fn panel(certificate: &Certificate) -> Panel {
    Panel {
        when: certificate.started.replace('T', " ").trim_end_matches('Z').to_owned() + " UTC",
        quick: certificate.quick,
        conclusion: conclusion(certificate),
        holds: certificate.holds(),
        unwatched: unwatched(certificate),
        rows: certificate.checks.iter().map(row).collect(),
        facts: certificate_facts(certificate),
    }
}

fn row(check: &Check) -> Row {
    let micro = |text: String| match text.as_str() {
        "-" => "–".to_owned(),
        _ => text.replace(" us", " µs").replace('-', "−"),
    };
    Row {
        name: check.name.clone(),
        dut: check.dut.clone(),
        truth: micro(truth(check)),
        measured: micro(measured(check)),
        error: micro(error(check)),
        bound: micro(bound(check)),
        verdict: verdict(check),
        class: match check.verdict {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::Undecided => "undecided",
        },
        reason: check.reason.clone(),
        plot: Plot::new(check),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_stand_where_they_belong() {
        let places = [(0.0, 10.0), (10.0, 10.0), (-5.0, 10.0), (90.0, 10.0), (0.0, 0.0), (-1.0, 0.0)];
        let places = places.map(|(error, bound)| place(error, bound));
        assert_eq!(places, [0.0, Plot::BOUND, -Plot::BOUND / 2.0, Plot::EDGE, 0.0, -Plot::EDGE]);
        assert!(place(f64::INFINITY, 5.0) == Plot::EDGE);
    }
}
