//! The certificate of the tester: devices whose truth is known enter, what was measured of them
//! stands beside it.

use serde::{Deserialize, Serialize};

use crate::record::{Environment, Status};

/// The schema that [`Certificate`] is written as.
pub const SCHEMA: &str = "linerate/certificate/1";

/// What one run of `linerate verify` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// How long it took, in seconds.
    pub elapsed_s: f64,
    /// How it ended.
    pub status: Status,
    /// The exact command.
    pub command: Vec<String>,
    /// Where it ran.
    pub environment: Environment,
    /// What the unknown capacities were drawn from: the same seed draws them again.
    pub seed: u64,
    /// Whether it was the short form.
    pub quick: bool,
    /// Why nothing watched the machine, at least in some checks: what disturbed them is then not
    /// known, and a failure may be the machine's. Absent if it was watched throughout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwatched: Option<String>,
    /// One for each figure that was compared with the truth.
    pub checks: Vec<Check>,
}

impl Certificate {
    /// How many checks came to `verdict`.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|check| check.verdict == verdict).count()
    }

    /// Whether the tester may be trusted as far as this certificate goes: it came to its end,
    /// something was decided, and nothing failed. Undecided checks are no evidence either way.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.status == Status::Complete && self.count(Verdict::Failed) == 0 && self.count(Verdict::Passed) > 0
    }
}

/// One figure beside the truth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What was measured, like `capacity`.
    pub name: String,
    /// The device, as `--dut` takes it.
    pub dut: String,
    /// What the figures are in.
    pub unit: Unit,
    /// The expected value, in `unit`.
    pub truth: f64,
    /// What was measured, in `unit`; absent if nothing was.
    pub measured: Option<f64>,
    /// The interval that the measurement claims to hold the truth, where it claims one: its end
    /// is absent if nothing bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, Option<f64>)>,
    /// Measured value less expected value, in `unit`.
    pub error: Option<f64>,
    /// How large the error may be, in `unit`.
    pub bound: f64,
    /// What it came to.
    pub verdict: Verdict,
    /// Why it is undecided or failed, in words; or what the attempts before it were spoiled by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How often it was measured.
    pub attempts: usize,
}

/// What figures are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Frames a second.
    Pps,
    /// Frames.
    Frames,
    /// A share of the frames, 0 to 1.
    Share,
    /// Nanoseconds.
    Ns,
}

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The error is within the bound.
    Passed,
    /// It is not, and the machine does not account for it.
    Failed,
    /// The machine disturbed every attempt so much that it proves nothing.
    Undecided,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(status: Status, verdicts: &[Verdict]) -> Certificate {
        let check = |verdict: &Verdict| Check {
            name: "capacity".to_owned(),
            dut: "calibrated:rate=300kpps".to_owned(),
            unit: Unit::Pps,
            truth: 300e3,
            measured: Some(299e3),
            interval: None,
            error: Some(-1e3),
            bound: 1_500.0,
            verdict: *verdict,
            reason: None,
            attempts: 1,
        };
        Certificate {
            schema: SCHEMA.to_owned(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            elapsed_s: 1.0,
            status,
            command: vec!["linerate".to_owned(), "verify".to_owned()],
            environment: Environment {
                linerate: "0".to_owned(),
                kernel: "6".to_owned(),
                os: "an os".to_owned(),
                cpu: "a cpu".to_owned(),
                cores: 2,
                memory_bytes: 1,
                hypervisor: None,
                host: None,
            },
            seed: 7,
            quick: true,
            unwatched: None,
            checks: verdicts.iter().map(check).collect(),
        }
    }

    #[test]
    fn only_what_passed_is_evidence_and_one_failure_undoes_it() {
        use Verdict::{Failed, Passed, Undecided};
        let holds = |status, verdicts: &[Verdict]| certificate(status, verdicts).holds();
        assert!(holds(Status::Complete, &[Passed, Undecided]));
        assert!(!holds(Status::Complete, &[Passed, Failed]));
        assert!(!holds(Status::Complete, &[Undecided, Undecided]));
        assert!(!holds(Status::Complete, &[]));
        assert!(!holds(Status::Interrupted, &[Passed]));
    }

    #[test]
    fn a_certificate_is_read_as_it_was_written() {
        let written = certificate(Status::Complete, &[Verdict::Passed]);
        let text = serde_json::to_string(&written).unwrap();
        assert_eq!(serde_json::from_str::<Certificate>(&text).unwrap(), written);
        assert!(text.contains(r#""verdict":"passed""#) && text.contains(r#""unit":"pps""#), "{text}");
    }
}
