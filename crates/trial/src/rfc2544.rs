//! The benchmarking tests of RFC 2544 (section 26) at one frame size, with their later updates.
//!
//! Which tests and how long enter; what each found, and where it deviates from the RFCs, leaves.
//! One file for each test; they share a session, and the throughput comes first because the others
//! depend on it.
//!
//! What we decided where the RFCs leave it open, or where we deviate:
//! - The throughput is found by our search with the goal that draft-ietf-bmwg-mlrsearch-15 calls
//!   equivalent to RFC 2544: full trials, not one lost frame forgiven.
//! - A load or burst that the tester could not send says nothing of the device and is marked.
//! - What the machine disturbed is repeated while there is time for it, then marked.
//! - All else that differs is a [`Deviation`] of the result.

mod back_to_back;
mod deviations;
mod hearing;
mod latency;
mod loss;
mod recovery;
mod reset;
mod throughput;
mod timing;
mod trials;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use engine::Engine;
use results::record::{self, Deviation, Finding, LimitedBy, Throughput};
use wire::size;

use crate::conditions::{check_rate, refuse_unless};
use crate::search::{Search, State};
use crate::session::{Session, Stop};
use crate::strategy::parameters;
use crate::{Conditions, Failure, Observer, Outcome, Strategy, WarmUp};
use hearing::{Heard, Hearing};
pub use timing::Timing;
use trials::{Repeat, Trials, falls_short};

/// How long one sample of the warm-up is.
const STEP: Duration = Duration::from_millis(100);
/// How often one trial is repeated at most because the machine disturbed it.
const RETRIES: usize = 3;
/// The share of the planned time, as a divisor, that such repeats may take on top.
const RETRY_SHARE: u32 = 4;
/// Where no test needs the throughput.
const NONE: Throughput =
    Throughput { pps: 0.0, upper_pps: None, limited_by: LimitedBy::Unknown, irregular: None };
/// Where the tester limited the throughput to less than this share of the line rate, no load
/// reaches the device's own limit.
const FAR: f64 = 0.9;
/// What ending takes beyond the last drain.
const SLACK: Duration = Duration::from_secs(2);
/// The longest run.
const MAX_RUN: Duration = Duration::from_secs(7 * 24 * 3600);

/// One of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Test {
    /// 26.1: the highest rate without loss.
    Throughput,
    /// 26.2: latency at that rate.
    Latency,
    /// 26.3: the share of frames lost, from line rate down.
    Loss,
    /// 26.4 and RFC 9004 section 6: the longest burst without loss.
    BackToBack,
    /// 26.5: how long losses outlast an overload.
    Recovery,
    /// 26.6 and RFC 6201 section 1.3: how long a reset interrupts forwarding.
    Reset,
}

impl Test {
    /// All of them, in the order they are run in.
    pub const ALL: [Self; 6] =
        [Self::Throughput, Self::Latency, Self::Loss, Self::BackToBack, Self::Recovery, Self::Reset];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::Loss => "loss",
            Self::BackToBack => "back-to-back",
            Self::Recovery => "recovery",
            Self::Reset => "reset",
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Test {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|test| test.name() == text)
            .ok_or_else(|| format!("'{text}' is no test: they are {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// The tests of RFC 2544 at one frame size, or one sequence of sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Rfc2544 {
    /// Which tests; the throughput is found too where another needs it.
    pub tests: BTreeSet<Test>,
    /// How long and how often.
    pub timing: Timing,
    /// The mean frame size in bytes, FCS included.
    pub frame_size: f64,
    /// The line rate (L1) of each direction, in bits a second.
    pub line_rate_bps: f64,
    /// The lowest load that is tried, in frames a second of each direction.
    pub min_pps: f64,
    /// In what the traffic and the testbed deviate from the RFCs.
    pub deviations: Vec<Deviation>,
}

impl Strategy for Rfc2544 {
    fn describe(&self) -> record::Strategy {
        let Timing { trial, loss_trial, stream, streams, burst, bursts, overload, overloads, .. } =
            self.timing;
        let tests: Vec<&str> = self.tests.iter().map(|test| test.name()).collect();
        record::Strategy {
            name: "rfc2544".to_owned(),
            parameters: parameters([
                ("tests", tests.join(",")),
                ("quick", if self.timing.quick { "yes: not conformant" } else { "no" }.to_owned()),
                ("trial", format!("{trial:?}")),
                ("loss trial", format!("{loss_trial:?}")),
                ("latency streams", format!("{streams} of {stream:?}")),
                ("bursts", format!("{bursts} of up to {burst:?}")),
                ("overloads", format!("{overloads} of {overload:?}")),
                ("pause", format!("{:?}", self.timing.pause())),
                ("min-rate", wire::human::pps(self.min_pps)),
            ]),
            loss_threshold: 0.0,
        }
    }

    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome {
        let heard = Heard::default();
        let mut hearing = Hearing::new(observer, &heard);
        let mut session = Session::new(engine, &mut hearing);
        let mut found = record::Rfc2544 {
            quick: self.timing.quick,
            deviations: self.all_deviations(),
            theoretical_pps: self.theoretical_pps(),
            ..record::Rfc2544::default()
        };
        let mut search = None;
        let end = self.check().map_err(Stop::from);
        let end = end.and_then(|()| self.drive(&mut session, &heard, &mut search, &mut found));
        found.name_what_is_missing(self.tests.iter().map(|test| test.name()));
        let judge = self.conditions().judge(Some(self.theoretical_pps()));
        let found = Finding::Rfc2544(Some(Box::new(found)), None);
        let mut outcome = session.finish(end, &judge, self.timing.drain, found);
        if let (Finding::Rfc2544(_, searched), Some(state)) = (&mut outcome.finding, search) {
            *searched = Some(state.conclude(&mut outcome.directions));
        }
        outcome
    }

    fn planned(&self) -> Duration {
        let base = self.base();
        base.saturating_add(base / RETRY_SHARE).saturating_add(self.timing.pause()).saturating_add(SLACK)
    }

    fn check(&self) -> Result<(), Failure> {
        refuse_unless(!self.tests.is_empty(), || "no test is asked for: name one".into())?;
        check_rate("frame size", "bytes", self.frame_size)?;
        check_rate("line rate", "bit/s", self.line_rate_bps)?;
        check_rate("minimum load", "pps", self.min_pps)?;
        refuse_unless(self.min_pps < self.theoretical_pps(), || {
            format!(
                "the line carries {} of these frames, no more than the minimum load of {}: raise the line rate, or choose smaller frames",
                wire::human::pps(self.theoretical_pps()),
                wire::human::pps(self.min_pps)
            )
        })?;
        self.timing.check()?;
        refuse_unless(self.planned() <= MAX_RUN, || {
            format!("tests of {:?} at one frame size are too long: give at most 7 days", self.planned())
        })?;
        self.search().check()
    }
}

impl Rfc2544 {
    /// The maximum theoretical frame rate, in each direction.
    #[must_use]
    pub fn theoretical_pps(&self) -> f64 {
        size::l1_bps_to_pps(self.line_rate_bps, self.frame_size)
    }

    fn conditions(&self) -> Conditions {
        Conditions {
            warm_up: WarmUp { pps: self.min_pps, duration: self.timing.warm_up },
            step: STEP,
            drain: self.timing.drain,
            loss_threshold: 0.0,
            line_rate_bps: self.line_rate_bps,
        }
    }

    /// Whether a test needs the throughput; only the loss rate does not.
    fn needs_throughput(&self) -> bool {
        self.tests.iter().any(|test| *test != Test::Loss)
    }

    /// What all takes at most if nothing is repeated.
    fn base(&self) -> Duration {
        let start = if self.needs_throughput() {
            self.search().max_duration.saturating_add(self.timing.settle)
        } else {
            self.conditions().around(Duration::ZERO)
        };
        self.tests.iter().fold(start, |sum, test| {
            sum.saturating_add(match test {
                Test::Throughput => Duration::ZERO,
                Test::Latency => self.latency_planned(),
                Test::Loss => self.loss_planned(),
                Test::BackToBack => self.back_to_back_planned(),
                Test::Recovery => self.recovery_planned(),
                Test::Reset => self.reset_planned(),
            })
        })
    }

    fn drive(
        &self,
        session: &mut Session,
        heard: &Heard,
        search: &mut Option<State>,
        found: &mut record::Rfc2544,
    ) -> Result<(), Stop> {
        let throughput = if self.needs_throughput() {
            let state = search.insert(State::new(&self.search(), session.directions()));
            let throughput = self.throughput(state, session)?;
            found.throughput = Some(throughput);
            throughput
        } else {
            session.warm_up(&self.conditions())?;
            NONE
        };
        let budget = self.base() / RETRY_SHARE;
        let prober = Search { max_duration: MAX_RUN, ..self.search() };
        let mut trials = Trials { session, timing: self.timing, prober, budget };
        for test in &self.tests {
            if let Some(reason) = self.pointless(*test, &throughput) {
                found.not_run.insert(test.to_string(), reason);
                continue;
            }
            match test {
                Test::Throughput => {}
                Test::Latency => self.latency(throughput.pps, &mut trials, &mut found.latency)?,
                Test::Loss => self.loss(&mut trials, &mut found.loss)?,
                Test::BackToBack => {
                    found.back_to_back = Some(self.back_to_back(throughput.pps, &mut trials)?);
                }
                Test::Recovery => {
                    self.recovery(throughput.pps, heard, &mut trials, &mut found.recovery)?;
                }
                Test::Reset => match self.reset(throughput.pps, heard, &mut trials)? {
                    Ok(reset) => found.reset = Some(reset),
                    Err(reason) => {
                        found.not_run.insert(test.to_string(), reason);
                    }
                },
            }
        }
        Ok(())
    }

    /// Why `test` would say nothing, if so.
    fn pointless(&self, test: Test, throughput: &Throughput) -> Option<String> {
        let of_line = throughput.pps / self.theoretical_pps();
        let by_tester = throughput.limited_by == LimitedBy::Tester && of_line < FAR;
        match test {
            Test::Throughput => None,
            Test::Loss | Test::BackToBack | Test::Recovery if by_tester => Some(format!(
                "the tester sends no more than {}, {:.0} % of the line rate, and the device bears that: no load reaches its limit; choose larger frames or a lower line rate",
                wire::human::pps(throughput.pps),
                of_line * 100.0
            )),
            Test::Loss => None,
            Test::BackToBack if of_line >= 1.0 - throughput::WIDTH => Some(
                "the throughput is the line rate, so no burst fills a buffer (RFC 9004 section 6.1)".into(),
            ),
            _ if throughput.pps > 0.0 => None,
            _ if throughput.upper_pps.is_some() => {
                Some("no load passed without loss, so there is no throughput to start from".into())
            }
            _ => Some("throughput unknown: the tester never achieved the requested rate".into()),
        }
    }
}

/// The mean; 0 of nothing.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
