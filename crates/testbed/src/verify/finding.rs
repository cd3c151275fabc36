//! What one attempt saw enters; after as many attempts as it takes, a row of the certificate
//! leaves. Pure.

use results::certificate::{Check, Unit, Verdict};

/// A check that failed clearly must do so as often as this.
const CONVICTED: usize = 2;
/// An error that comes back to the digit as often as this is no accident of the machine's.
const SAME: usize = 3;

/// A figure of one attempt beside the truth.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What was measured.
    pub name: String,
    /// The device, as `--dut` takes it.
    pub dut: String,
    pub unit: Unit,
    pub truth: f64,
    /// `None` if nothing could be measured.
    pub measured: Option<f64>,
    /// Where the measurement says that the truth is, if it says so.
    pub interval: Option<(f64, Option<f64>)>,
    /// How far off it may be.
    pub bound: f64,
    /// Whether a search found it. A search only comes to values that it tries, so equal errors of two
    /// attempts say nothing.
    pub searched: bool,
    pub sight: Sight,
}

/// What an attempt is evidence of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// The figure is right.
    Within,
    /// It is wrong, and nothing but the tester accounts for that.
    Outside(String),
    /// It is wrong or missing, but the machine may be why.
    Unclear(String),
}

impl Finding {
    /// A figure that may be `bound` away from the truth; if it is further away, `excuse` says what
    /// the machine did to account for it.
    pub fn new(
        name: impl Into<String>,
        dut: &str,
        (unit, truth, measured): (Unit, f64, f64),
        bound: f64,
        excuse: impl FnOnce(f64) -> Option<String>,
    ) -> Self {
        let off = (measured - truth).abs();
        let sight = match off <= bound {
            true => Sight::Within,
            false => excuse(off).map_or_else(|| Sight::Outside(BEYOND.to_owned()), Sight::Unclear),
        };
        let (name, dut) = (name.into(), dut.to_owned());
        let (measured, interval, searched) = (Some(measured), None, false);
        Self { name, dut, unit, truth, measured, interval, bound, searched, sight }
    }

    fn error(&self) -> Option<f64> {
        self.measured.map(|measured| measured - self.truth)
    }
}

/// Why a figure is wrong, where nothing more can be said.
pub const BEYOND: &str = "the error is beyond its bound";

/// All attempts at one figure.
#[derive(Debug, Default)]
pub struct Attempts(Vec<Finding>);

impl Attempts {
    pub fn add(&mut self, finding: Finding) {
        self.0.push(finding);
    }

    /// What they come to. One clear failure asks for two attempts that are right, because not all
    /// that a machine does is seen; two are a failure.
    pub fn verdict(&self) -> Verdict {
        let passed = self.sights(|sight| *sight == Sight::Within);
        let failed = self.sights(|sight| matches!(sight, Sight::Outside(_)));
        if failed >= CONVICTED || (passed == 0 && self.repeats_itself()) {
            Verdict::Failed
        } else if passed > failed {
            Verdict::Passed
        } else {
            Verdict::Undecided
        }
    }

    fn sights(&self, of: impl Fn(&Sight) -> bool) -> usize {
        self.0.iter().filter(|finding| of(&finding.sight)).count()
    }

    /// Whether every attempt counted wrong by exactly the same.
    fn repeats_itself(&self) -> bool {
        let first = self.0.first().and_then(Finding::error);
        let same = |finding: &Finding| !finding.searched && finding.error() == first;
        self.0.len() >= SAME && first.is_some_and(|error| error != 0.0) && self.0.iter().all(same)
    }

    /// The row: the figures of the attempt that stands for the verdict. `None` before the first.
    pub fn check(&self) -> Option<Check> {
        let verdict = self.verdict();
        let stands = |finding: &&Finding| match verdict {
            Verdict::Passed => finding.sight == Sight::Within,
            Verdict::Failed => matches!(finding.sight, Sight::Outside(_)),
            Verdict::Undecided => finding.sight != Sight::Within,
        };
        let finding = self.0.iter().rfind(stands).or(self.0.last())?;
        let spoiled = self.0.iter().rev().find_map(|finding| match &finding.sight {
            Sight::Within => None,
            Sight::Outside(why) | Sight::Unclear(why) => Some(why),
        });
        let reason = spoiled.map(|why| match verdict {
            Verdict::Passed => format!("an earlier attempt: {why}"),
            Verdict::Failed if !matches!(finding.sight, Sight::Outside(_)) => {
                format!("the same error {} times over", self.0.len())
            }
            Verdict::Failed | Verdict::Undecided => why.clone(),
        });
        Some(Check {
            name: finding.name.clone(),
            dut: finding.dut.clone(),
            unit: finding.unit,
            truth: finding.truth,
            measured: finding.measured,
            interval: finding.interval,
            error: finding.error(),
            bound: finding.bound,
            verdict,
            reason,
            attempts: self.0.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attempts that lost so many frames too many; `cost` of them are excused.
    fn attempts(lost: &[f64], cost: f64) -> Attempts {
        let mut attempts = Attempts::default();
        for lost in lost {
            let figures = (Unit::Frames, 100.0, 100.0 + lost);
            let excuse = |off: f64| (off <= cost).then(|| "the machine".to_owned());
            attempts.add(Finding::new("frames", "calibrated", figures, 0.0, excuse));
        }
        attempts
    }

    fn verdict(lost: &[f64], cost: f64) -> Verdict {
        attempts(lost, cost).verdict()
    }

    #[test]
    fn what_is_right_once_and_never_wrong_has_passed() {
        assert_eq!(verdict(&[0.0], 0.0), Verdict::Passed);
        assert_eq!(verdict(&[9.0, 0.0], 10.0), Verdict::Passed, "the first was disturbed");
    }

    #[test]
    fn what_the_machine_disturbed_neither_passes_nor_fails() {
        assert_eq!(verdict(&[], 0.0), Verdict::Undecided);
        assert_eq!(verdict(&[9.0, 8.0, 9.0, 3.0], 10.0), Verdict::Undecided);
        let check = attempts(&[9.0, 8.0], 10.0).check().unwrap();
        assert_eq!((check.error, check.attempts), (Some(8.0), 2));
        assert_eq!(check.reason.as_deref(), Some("the machine"));
    }

    #[test]
    fn a_clear_failure_must_be_confirmed_and_can_be_outvoted() {
        assert_eq!(verdict(&[9.0], 0.0), Verdict::Undecided);
        assert_eq!(verdict(&[9.0, 8.0], 0.0), Verdict::Failed);
        assert_eq!(verdict(&[9.0, 0.0], 0.0), Verdict::Undecided);
        assert_eq!(verdict(&[9.0, 0.0, 0.0], 0.0), Verdict::Passed);
        assert_eq!(verdict(&[9.0, 0.0, 8.0], 0.0), Verdict::Failed);
        let check = attempts(&[9.0, 0.0, 8.0], 0.0).check().unwrap();
        assert_eq!((check.error, check.reason.as_deref()), (Some(8.0), Some(BEYOND)));
    }

    #[test]
    fn an_error_that_repeats_itself_is_no_noise() {
        assert_eq!(verdict(&[1.0, 1.0], 10.0), Verdict::Undecided);
        assert_eq!(verdict(&[1.0, 1.0, 1.0], 10.0), Verdict::Failed);
        let check = attempts(&[1.0, 1.0, 1.0], 10.0).check().unwrap();
        assert_eq!(check.reason.as_deref(), Some("the same error 3 times over"));
        assert_eq!(verdict(&[1.0, 1.0, 1.0, 0.0], 10.0), Verdict::Passed);
    }

    #[test]
    fn equal_errors_of_a_search_are_only_the_values_that_it_tries() {
        let mut attempts = attempts(&[1.0, 1.0, 1.0], 10.0);
        for finding in &mut attempts.0 {
            finding.searched = true;
        }
        assert_eq!(attempts.verdict(), Verdict::Undecided);
    }
}
