//! The ramp: warm-up, a linear rise from zero to a target as a staircase, hold, drain.
//!
//! The method of TRex's ramp: one pass finds the highest load that the device held with no more loss than the
//! threshold, and shows the whole curve up to the target. How precise it is:
//! - to one stair: `target_pps` divided by the number of steps;
//! - a device that queues hides an overload until its queue is full. A queue of Q frames adds
//!   about `sqrt(2·Q·target / rise)` frames a second to the lossless rate, with `rise` in
//!   seconds: the excess of a linear rise fills the queue after `sqrt(2·Q·rise / target)` s. Rise
//!   longer for devices with deep queues.
//!
//! A short search after it narrows the interval: see [`crate::search`].

use std::time::Duration;

use engine::{Engine, Load};
use results::record::{self, Finding, Phase};
use wire::human;

use crate::conditions::{check_rate, refuse_unless};
use crate::search::{Search, State};
use crate::session::{Session, Stop};
use crate::{Conditions, Failure, Observer, Outcome, Strategy, strategy};

/// The lowest rate that engines send at, in frames a second.
const LOWEST_PPS: f64 = 1.0;

/// A linear rise of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// How it measures.
    pub conditions: Conditions,
    /// Frames a second in each direction that the load rises to.
    pub target_pps: f64,
    /// How long it rises.
    pub rise: Duration,
    /// How long it stays at the target.
    pub hold: Duration,
    /// How long the limit that it shows is searched for after that, at most; zero for not at all.
    pub search: Duration,
}

impl Strategy for Ramp {
    fn describe(&self) -> record::Strategy {
        let own = [
            ("target", human::pps(self.target_pps)),
            ("ramp-duration", format!("{:?}", self.rise)),
            ("hold-duration", format!("{:?}", self.hold)),
        ];
        let mut strategy = strategy::describe("ramp", own, &self.conditions);
        if !self.search.is_zero() {
            strategy.parameters.extend(strategy::parameters([("search", format!("{:?}", self.search))]));
        }
        strategy
    }

    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome {
        let mut session = Session::new(engine, observer);
        let judge = self.conditions.judge(Some(self.target_pps));
        let mut searched = None;
        let end = self.drive(&mut session).and_then(|()| {
            let directions = judge.directions(session.samples(), session.totals());
            let search = Search::after_ramp(&self.conditions, self.target_pps, self.search, &directions);
            let (state, end) =
                search.map(|search| search.continue_with(&mut session, directions.len())).unzip();
            searched = state;
            end.unwrap_or(Ok(()))
        });
        let mut outcome = session.finish(end, &judge, self.conditions.drain, Finding::Ramp(None));
        // Trials are kept as such: samples are the curve.
        outcome.samples.retain(|sample| sample.phase != Phase::Trial);
        outcome.finding = Finding::Ramp(searched.map(|state: State| state.narrow(&mut outcome.directions)));
        outcome
    }

    fn planned(&self) -> Duration {
        let rises = self.conditions.around(self.rise.saturating_add(self.hold));
        // The last drain may begin when the time of the search is over.
        let drain = if self.search.is_zero() { Duration::ZERO } else { self.conditions.drain };
        rises.saturating_add(self.search).saturating_add(drain)
    }

    fn check(&self) -> Result<(), Failure> {
        self.conditions.check()?;
        check_rate("target load", "pps", self.target_pps)?;
        self.conditions.check_phase("rise", self.rise)?;
        self.conditions.check_phase("hold", self.hold)?;
        self.conditions.check_phase("search", self.search)?;
        refuse_unless(!(self.rise + self.hold).is_zero(), || {
            "a ramp that neither rises nor holds measures nothing: give it a duration".into()
        })
    }
}

impl Ramp {
    fn drive(&self, session: &mut Session) -> Result<(), Stop> {
        self.check()?;
        session.warm_up(&self.conditions)?;
        // A search tells states of the host apart: less depends on the pass where one follows.
        let part = if self.search.is_zero() { 1 } else { 2 };
        session.wait_out_noise(self.rise.saturating_add(self.hold) / part)?;
        session.run(Phase::Ramp, &self.stairs(), self.rise)?;
        let target = Load::Rate(self.target_pps);
        session.run(Phase::Hold, &self.conditions.constant(target, self.hold), self.hold)?;
        session.drain(self.conditions.drain)?;
        session.judge_interrupted()
    }

    /// The loads of the rise: equal steps, the last one at the target. None is below what engines can send.
    fn stairs(&self) -> Vec<Load> {
        let steps = self.conditions.intervals(self.rise);
        let rate = |step| (self.target_pps * step as f64 / steps as f64).max(LOWEST_PPS);
        (1..=steps).map(|step| Load::Rate(rate(step))).collect()
    }
}
