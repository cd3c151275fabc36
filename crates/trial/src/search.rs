//! The search: trials at chosen loads, until the highest load of every goal is known to a width.
//!
//! The method is multiple loss ratio search, draft-ietf-bmwg-mlrsearch-15: several goals share
//! all trials; short trials at wide steps find the way, and long ones decide near the result;
//! a goal's exceed ratio lets a majority of trials at one load outvote passing disturbances. The
//! draft's Controller is the `controller`, its Measurer is [`Search`], its Manager the caller.
//!
//! What we decided where the draft leaves it open:
//! - The load of a trial is that of each direction; its loss is that of all directions together.
//!   Results of single directions come from the same trials, by their own losses: where
//!   directions differ, the better one's interval is wider than asked for, and says so.
//! - Effective duration is trial duration: the drain between trials counts for no sum.
//! - Unsent frames are not lost frames. The draft adds them to the loss, and blames the device
//!   for what the tester could not do. Here a trial with more than 1 % unsent proves nothing,
//!   whatever it lost. It is repeated; if the tester never offered as much in full, what it can
//!   offer becomes the maximum, and a device that bears that is [`LimitedBy::Tester`]. Less
//!   than 1 % unsent lowers the result by as much.
//! - Every trial comes with an upper estimate of the noise: of the share of its frames that the
//!   machine may have cost. A loss beyond the goal's proves something only if it is more than
//!   that, too; else the trial is repeated, as long as all that were take no more than half of the
//!   time. What passed in spite of noise has passed.
//! - At low rates trials are long, few of them decide, and each may meet a disturbance that nobody saw. An
//!   overload lasts: a queue that is full stays full. So a loss that was over in the last quarter of such a
//!   trial counts for a third: it takes seven of them, not three, to prove that the device loses frames there.
//! - While the machine is in another state than usual, as when its cores are far apart, what is lost is
//!   told of that state alone.
//! - The search ends when its time is over, with the interval that it has by then. An upper bound is
//!   then made of trials at several loads: what is lost at one load is lost at all higher ones.

mod bursts;
mod controller;
mod database;
mod finding;
mod goal;
mod ladder;
mod near;
mod observed;
mod selector;
mod state;

use std::collections::BTreeMap;
use std::time::Duration;

use engine::{Engine, Load};
use results::record::{
    self, Direction, DirectionSample, Finding as Found, GoalResult, LimitedBy, Phase, Sample, Trial,
    TrialDirection, TrialVerdict,
};

use crate::conditions::{check_rate, refuse_unless};
use crate::outcome::passes;
use crate::session::{Session, Stop};
use crate::undisturbed::left_out;
use crate::{Conditions, Failure, Noise, Observer, Outcome, Strategy, strategy};
pub use bursts::Bursts;
use controller::{Controller, Ended, Limits, Step};
use database::Verdict;
pub use goal::Goal;
use ladder::Rung;
use observed::{TrialAt, observation, see, sum};
pub(crate) use observed::{fell_short, forwarded};
use state::{Books, named};

/// The longest search.
const MAX_SEARCH: Duration = Duration::from_secs(24 * 3600);
/// The share of a search's time that disturbed trials may take.
const REPEAT_SHARE: u32 = 2;
/// How often nothing comes back, of what came back before, until the device has stalled.
const SILENT_PROBES: usize = 3;
/// How long it is probed whether a device forwards anything.
const PROBE: Duration = Duration::from_millis(500);

/// A search for the highest loads that a device bears.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// How it measures; the loss threshold is not used, because every goal has its own.
    pub conditions: Conditions,
    /// What it is to find, at least one goal.
    pub goals: Vec<Goal>,
    /// The lowest load that may be tried, in frames a second of each direction.
    pub min_pps: f64,
    /// The highest one.
    pub max_pps: f64,
    /// Between which loads the result is expected, in frames a second of each direction: trials begin there, and go
    /// elsewhere where that proves wrong. `None` where nothing is known.
    pub expected: Option<(f64, f64)>,
    /// How long all takes at most, warm-up and drains included.
    pub max_duration: Duration,
}

impl Strategy for Search {
    fn describe(&self) -> record::Strategy {
        let own = [
            ("min-rate", wire::human::pps(self.min_pps)),
            ("max-rate", wire::human::pps(self.max_pps)),
            ("max-duration", format!("{:?}", self.max_duration)),
        ];
        let mut strategy = strategy::describe("search", own, &self.conditions);
        strategy.parameters.extend(self.describe_goals());
        strategy
    }

    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome {
        let directions = engine.directions();
        let mut session = Session::new(engine, observer);
        let checked = self.check();
        let mut state = checked.is_ok().then(|| State::new(self, directions));
        let end = checked.map_err(Stop::from).and_then(|()| match &mut state {
            Some(state) => state.drive(self, &mut session),
            None => Ok(()),
        });
        let judge = self.conditions.judge(Some(self.max_pps));
        let found = record::Search::default();
        let mut outcome = session.finish(end, &judge, self.conditions.drain, Found::Search(found));
        if let Some(state) = state {
            outcome.finding = Found::Search(state.conclude(&mut outcome.directions));
        }
        outcome
    }

    fn planned(&self) -> Duration {
        self.max_duration
    }

    /// Refuses goals that no search reaches, and limits that leave no room.
    fn check(&self) -> Result<(), Failure> {
        self.conditions.check()?;
        refuse_unless(!self.goals.is_empty(), || "a search without a goal finds nothing: give one".into())?;
        self.goals.iter().try_for_each(Goal::check)?;
        for (at, goal) in self.goals.iter().enumerate() {
            let mut before = self.goals.iter().take(at);
            refuse_unless(before.all(|other| other.name != goal.name), || {
                format!("two goals are called {}: give each a name of its own", goal.name)
            })?;
        }
        check_rate("minimum load", "pps", self.min_pps)?;
        check_rate("maximum load", "pps", self.max_pps)?;
        refuse_unless(self.min_pps < self.max_pps, || {
            format!(
                "the minimum load of {} is not below the maximum of {}: swap them",
                wire::human::pps(self.min_pps),
                wire::human::pps(self.max_pps)
            )
        })?;
        let shortest = self.goals.iter().map(|goal| goal.initial_trial_duration).min().unwrap_or_default();
        refuse_unless(self.min_pps * shortest.as_secs_f64() >= 1.0, || {
            format!(
                "at the minimum load of {} pps a trial of {shortest:?} sends no frame: raise the minimum",
                self.min_pps
            )
        })?;
        refuse_unless(self.max_duration <= MAX_SEARCH, || {
            format!("a search of {:?} is too long: give at most 24 hours", self.max_duration)
        })?;
        let first = self.goals.iter().map(|goal| goal.initial_trial_duration).max().unwrap_or_default();
        let least = self.conditions.around(first);
        refuse_unless(self.max_duration >= least, || {
            format!(
                "{:?} is no time for a search: warm-up, one trial and drains take {least:?}",
                self.max_duration
            )
        })
    }
}

/// What a search knows while it goes on.
#[derive(Debug)]
pub(crate) struct State {
    books: Books,
    goals: Vec<Goal>,
    directions: usize,
    trials: Vec<Trial>,
    /// The other state of the machine, in words, if it was ever in it.
    other: Option<String>,
    /// Frames that the device's queue holds, where it knows how frames came.
    queue: Option<u64>,
    /// When it began, since the session did.
    began: Duration,
}

impl State {
    pub(crate) fn new(search: &Search, directions: usize) -> Self {
        let limits = Limits {
            min_pps: search.min_pps,
            max_pps: search.max_pps,
            max_duration: search.max_duration,
            repeat_budget: search.max_duration / REPEAT_SHARE,
            overhead: search.conditions.drain,
        };
        let mut books = Books::new(Controller::new(search.goals.clone(), limits), directions);
        if let Some((lower_pps, upper_pps)) = search.expected {
            books.begin_between(lower_pps, upper_pps);
        }
        Self {
            books,
            goals: search.goals.clone(),
            directions,
            trials: Vec::new(),
            other: None,
            queue: None,
            began: Duration::ZERO,
        }
    }

    pub(crate) fn drive(&mut self, search: &Search, session: &mut Session) -> Result<(), Stop> {
        session.end_quiet_drains();
        self.drive_with(search, session, &mut |_, _| Ok(()))
    }

    /// The same, and does `after` each trial what the device needs before the next.
    pub(crate) fn drive_with(
        &mut self,
        search: &Search,
        session: &mut Session,
        after: &mut dyn FnMut(&mut Session, &Sample) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let drain = search.conditions.drain;
        session.warm_up(&search.conditions)?;
        while let Step::Measure { load, pps, duration } =
            self.books.next(session.elapsed().saturating_sub(self.began))
        {
            let bursts_before = session.bursts();
            let (sample, machine, own) =
                session.trial_apart(Phase::Trial, Load::Rate(pps), duration, drain)?;
            if forwarded(&sample) == 0 && machine.cost + own.cost < 1.0 {
                search.probe(session)?;
            }
            let bursts = bursts_before.zip(session.bursts()).map(|(then, now)| now.since(&then));
            self.take_in(load, pps, duration, &sample, (machine, own));
            if let Some((trial, bursts)) = self.trials.last_mut().zip(bursts) {
                trial.bursts = bursts.frames.into_iter().collect();
                self.queue = Some(bursts.queue);
            }
            if let Some(trial) = self.trials.last() {
                session.show_trial(trial, &self.results())?;
            }
            after(session, &sample)?;
        }
        if let Some(left_out) = self.left_out().filter(|frames| *frames > 0) {
            session.note(format!(
                "{left_out} frames lost during host interruptions were excluded from the result"
            ));
        }
        self.seen_bursts()
            .notes(self.names(), &self.books.findings())
            .into_iter()
            .for_each(|note| session.note(note));
        self.note_of_other_state().into_iter().for_each(|note| session.note(note));
        if let Some(ended) = self.books.ended() {
            session.note(reason(ended, search.max_duration));
        }
        Ok(())
    }

    /// Tells the controller what one trial saw, and keeps it for the record. The noise is the machine's,
    /// and that of the trial itself.
    fn take_in(
        &mut self,
        load: Rung,
        pps: f64,
        duration: Duration,
        sample: &Sample,
        (machine, own): (Noise, Noise),
    ) {
        let is_other = machine.hides_all();
        // What lasts is the other state itself, and no noise in it.
        let in_other = Noise { cost: machine.cost, ..Noise::default() }.and(own.clone());
        let noise = machine.clone().and(own);
        let measured_s = sample.duration_s;
        let sum = sum(&sample.directions);
        let trial = TrialAt { load, pps, duration, measured_s, noise: &noise };
        let all = observation(&trial, &sum, sample.directions.len());
        let fell_short = sample.directions.iter().any(|direction| fell_short(sample.duration_s, direction));
        let seen = |trial: &TrialAt| see(trial, sample, &sum, fell_short);
        if is_other {
            self.other = machine.disturbed.or_else(|| self.other.take());
            let passed = !fell_short && self.goals.iter().all(|goal| all.loss_ratio <= goal.loss_ratio);
            let other = TrialAt { noise: &in_other, ..trial };
            self.books.note_other(seen(&other), passed.then(|| seen(&trial)), duration);
        } else {
            self.books.note(seen(&trial));
        }
        let verdict = |goal: &Goal| match all.verdict(goal.loss_ratio) {
            _ if fell_short => TrialVerdict::TesterFellShort,
            Verdict::Low => TrialVerdict::LowLoss,
            Verdict::High => TrialVerdict::HighLoss,
            Verdict::Unclear => TrialVerdict::Disturbed,
        };
        let direction = |direction: &DirectionSample| TrialDirection {
            intended: direction.intended_pps * sample.duration_s,
            offered: direction.offered,
            forwarded: direction.forwarded,
            loss_ratio: direction.loss_ratio,
            undisturbed: direction.undisturbed,
        };
        self.trials.push(Trial {
            at_s: sample.at_s,
            duration_s: duration.as_secs_f64(),
            load_pps: pps,
            loss_ratio: sum.loss_ratio,
            verdicts: self.goals.iter().map(|goal| (goal.name.clone(), verdict(goal))).collect(),
            noise: noise.cost,
            disturbed: noise.disturbed,
            bursts: Vec::new(),
            directions: sample.directions.iter().map(direction).collect(),
        });
    }

    /// Frames whose loss counted for nothing, because something was interrupted when they left.
    fn left_out(&self) -> Option<u64> {
        let directions = self.trials.iter().flat_map(|trial| &trial.directions);
        let frames = directions.filter_map(|direction| {
            let lost = direction.offered.saturating_sub(direction.forwarded);
            left_out(lost, direction.undisturbed)
        });
        frames.reduce(|sum, frames| sum + frames)
    }

    /// What is found so far, all directions added up.
    pub(crate) fn results(&self) -> BTreeMap<String, GoalResult> {
        let findings = self.books.findings();
        let decided = self.seen_bursts().decided(&findings);
        named(self.names(), &findings, self.directions.max(1) as f64, &decided)
    }

    fn seen_bursts(&self) -> bursts::Seen<'_> {
        bursts::Seen { trials: &self.trials, queue: self.queue }
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.goals.iter().map(|goal| &goal.name)
    }

    /// Which results are of another state of the machine than the usual one, in words.
    fn note_of_other_state(&self) -> Option<String> {
        let of_other = self.books.of_other();
        let names: Vec<&str> =
            of_other.iter().filter_map(|place| self.names().nth(*place)).map(String::as_str).collect();
        let state = self.other.as_deref().filter(|_| !names.is_empty())?;
        Some(format!("{} measured while {state}: without that, the device may do more", names.join(" and ")))
    }

    /// What was found in all, and adds to each direction what was found there.
    pub(crate) fn conclude(self, directions: &mut [Direction]) -> record::Search {
        let decided = self.seen_bursts().decided(&self.books.findings());
        for (place, direction) in directions.iter_mut().enumerate() {
            direction.results = named(self.names(), &self.books.findings_in(place), 1.0, &decided);
            self.judge(direction);
        }
        self.found()
    }

    /// What was found, all directions added up.
    fn found(self) -> record::Search {
        let results = self.results();
        record::Search {
            disturbed: Some(results.values().any(|result| result.disturbed)),
            limited_by: Some(limit(results.values())),
            results,
            trials: self.trials,
        }
    }

    /// Replaces the parts of a ramp's verdict that make no sense for loads in no order.
    fn judge(&self, direction: &mut Direction) {
        let strictest = self.goals.iter().min_by(|a, b| a.loss_ratio.total_cmp(&b.loss_ratio));
        let strictest = strictest.and_then(|goal| direction.results.get(&goal.name));
        direction.max_rate_pps = strictest.map_or(0.0, |result| result.lower_pps);
        direction.lossy_samples_below = 0;
        direction.evidence = None;
        if direction.stalled.is_none() {
            direction.limited_by = limit(direction.results.values());
        }
    }
}

impl Search {
    /// Its goals, for the record.
    pub(crate) fn describe_goals(&self) -> impl Iterator<Item = (String, String)> {
        self.goals.iter().map(|goal| (format!("goal {}", goal.name), strategy::describe_goal(goal)))
    }

    /// How long it is probed at most whether a device forwards anything.
    pub(crate) fn probing(&self) -> Duration {
        (self.probe_length() + self.conditions.drain) * SILENT_PROBES as u32
    }

    fn probe_length(&self) -> Duration {
        PROBE.max(Duration::from_secs_f64(2.0 / self.min_pps))
    }

    /// Finds out why nothing came back in a trial: an overload that nothing survives, or a device
    /// that forwards nothing any more. The lowest load tells.
    pub(crate) fn probe(&self, session: &mut Session) -> Result<(), Stop> {
        let length = self.probe_length();
        for _ in 0..SILENT_PROBES {
            if session.elapsed() + length + self.conditions.drain > self.max_duration {
                return Ok(());
            }
            let (sample, _) = session.trial(Phase::WarmUp, self.min_pps, length, self.conditions.drain)?;
            if forwarded(&sample) > 0 {
                return Ok(());
            }
        }
        passes(session.totals())?;
        Err(Stop::Stalled(format!(
            "ended early: the device stopped forwarding, and nothing came back at the lowest load of {} either",
            wire::human::pps(self.min_pps)
        )))
    }
}

/// What limited several results together: the tester if it limited any, then the device, then
/// what is unknown.
fn limit<'a>(results: impl Iterator<Item = &'a GoalResult>) -> LimitedBy {
    let rank = |limit: &LimitedBy| match limit {
        LimitedBy::Tester => 0,
        LimitedBy::Dut => 1,
        LimitedBy::Unknown => 2,
        LimitedBy::LineRate => 3,
    };
    results.map(|result| result.limited_by).min_by_key(rank).unwrap_or(LimitedBy::Unknown)
}

fn reason(ended: Ended, max_duration: Duration) -> String {
    match ended {
        Ended::Time => format!(
            "the search ended when its {max_duration:?} were over: intervals may be wider than asked for; give it more time"
        ),
        Ended::Disturbed => format!(
            "too many trials hit host interference (retries used half of the {max_duration:?} budget). The interval is based on clean trials only. Use a quieter host or a larger --time-limit"
        ),
        Ended::Tester => {
            "the tester cannot even offer the minimum load: nothing can be said of the device".into()
        }
    }
}
