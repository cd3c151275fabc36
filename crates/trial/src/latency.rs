//! Latency at chosen loads: the whole distribution of the time between departure and return, for
//! each direction.
//!
//! Loads are shares of a reference, by default of the PDR, which a search finds first in the same
//! run; or rates. Each is offered in a trial of its own, the lowest first. A distribution is the
//! difference of two readings of the engine's histogram, both after a drain: it holds every frame
//! of the trial that came back, and no other. A disturbed trial is repeated twice at most; the
//! least disturbed one stays, marked.

use std::time::Duration;

use engine::{Engine, Totals, UNTOLD};
use results::record::{
    self, DirectionSample, Distribution, Finding, LatencyTest, LoadLatency, Percentiles, Phase, Sample,
};
use stats::Histogram;
use wire::human;

use crate::conditions::{check_rate, refuse_unless};
use crate::search::{Search, State};
use crate::session::{Session, Stop};
use crate::verdict::direction_name;
use crate::{Conditions, Failure, Observer, Outcome, Strategy, strategy};

/// How often a load is tried until nothing disturbs it.
const ATTEMPTS: usize = 3;
/// The most loads.
const MAX_LOADS: usize = 100;
/// The load of an unloaded device: so low that hardly a frame meets another.
const UNLOADED_PPS: f64 = 1_000.0;
/// The same as a share of what the device bears, where that is less.
const UNLOADED_SHARE: f64 = 0.01;

/// Distributions at chosen loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// How it measures.
    pub conditions: Conditions,
    /// What shares refer to.
    pub reference: Reference,
    /// The loads, in any order.
    pub loads: Vec<ChosenLoad>,
    /// How long each is offered.
    pub duration: Duration,
    /// What the line carries, in frames a second of each direction: no load above is offered.
    pub max_pps: f64,
}

/// The load that shares refer to.
#[derive(Clone, Debug, PartialEq)]
pub enum Reference {
    /// Frames a second in each direction.
    Given(f64),
    /// What this search finds for its first goal. It is left out where no load is a share.
    Searched(Search),
}

/// A load to measure at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChosenLoad {
    /// 1,000 frames a second, or 1 % of the reference if that is known and less.
    Unloaded,
    /// A share of the reference; above 1 it is an overload.
    Share(f64),
    /// Frames a second in each direction.
    Rate(f64),
}

impl ChosenLoad {
    /// The default: unloaded, 10 %, 50 % and 90 % of the reference, and an overload.
    pub const DEFAULT: [Self; 5] =
        [Self::Unloaded, Self::Share(0.1), Self::Share(0.5), Self::Share(0.9), Self::Share(1.1)];

    /// What it is called.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Unloaded => "unloaded".to_owned(),
            Self::Share(share) => format!("{}%", strategy::percent(share)),
            Self::Rate(pps) => human::pps(pps),
        }
    }

    fn pps(self, reference: Option<f64>) -> f64 {
        match self {
            Self::Unloaded => {
                reference.map_or(UNLOADED_PPS, |reference| UNLOADED_PPS.min(reference * UNLOADED_SHARE))
            }
            Self::Share(share) => reference.unwrap_or_default() * share,
            Self::Rate(pps) => pps,
        }
    }

    fn share(self) -> Option<f64> {
        if let Self::Share(share) = self { Some(share) } else { None }
    }

    fn check(self) -> Result<(), Failure> {
        match self {
            Self::Unloaded => Ok(()),
            Self::Share(share) => refuse_unless(share.is_finite() && share > 0.0, || {
                format!("a load of {} cannot be measured: the share must be greater than 0", self.name())
            }),
            Self::Rate(pps) => check_rate("load", "pps", pps),
        }
    }
}

impl Strategy for Latency {
    fn describe(&self) -> record::Strategy {
        let loads: Vec<String> = self.loads.iter().map(|load| load.name()).collect();
        let reference = match &self.reference {
            Reference::Given(pps) => human::pps(*pps),
            Reference::Searched(search) => format!("the PDR, searched for {:?}", search.max_duration),
        };
        let own =
            [("loads", loads.join(",")), ("of", reference), ("duration", format!("{:?}", self.duration))];
        let mut strategy = strategy::describe("latency", own, &self.conditions);
        strategy.parameters.extend(self.search().into_iter().flat_map(Search::describe_goals));
        strategy
    }

    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome {
        let directions = engine.directions();
        let unseen = engine.capabilities().unseen.iter().chain(&UNTOLD).map(|words| (*words).to_owned());
        let mut found = LatencyTest { unseen: unseen.collect(), ..LatencyTest::default() };
        let mut session = Session::new(engine, observer);
        let checked = self.check();
        let searched = checked.is_ok().then(|| self.search()).flatten();
        let mut searched = searched.map(|search| (search, State::new(search, directions)));
        let end = checked.map_err(Stop::from).and_then(|()| {
            found.reference_pps = self.find_reference(&mut session, searched.as_mut())?;
            found.searched = searched.is_some();
            self.measure_all(&mut session, &mut found)
        });
        let found = Finding::Latency(Some(found), None);
        let mut outcome = session.finish(end, &self.conditions.judge(None), self.conditions.drain, found);
        if let (Finding::Latency(_, search), Some((_, state))) = (&mut outcome.finding, searched) {
            *search = Some(state.conclude(&mut outcome.directions));
        }
        outcome
    }

    fn planned(&self) -> Duration {
        let before = self.search().map_or(self.conditions.warm_up.duration, Search::planned);
        let loads = u32::try_from(self.loads.len()).unwrap_or(u32::MAX);
        let each = self.duration.saturating_add(self.conditions.drain);
        before.saturating_add(each.saturating_mul(loads))
    }

    fn check(&self) -> Result<(), Failure> {
        self.conditions.check()?;
        self.conditions.check_phase("duration", self.duration)?;
        refuse_unless(!self.duration.is_zero(), || "--duration must be greater than 0".into())?;
        refuse_unless((1..=MAX_LOADS).contains(&self.loads.len()), || {
            format!("{} loads: give at least one and at most {MAX_LOADS}", self.loads.len())
        })?;
        check_rate("maximum load", "pps", self.max_pps)?;
        self.loads.iter().try_for_each(|load| load.check())?;
        match &self.reference {
            Reference::Given(pps) => check_rate("reference", "pps", *pps),
            Reference::Searched(_) => self.search().map_or(Ok(()), Search::check),
        }
    }
}

impl Latency {
    /// The search for the reference, if one is needed.
    #[must_use]
    pub fn search(&self) -> Option<&Search> {
        match &self.reference {
            Reference::Searched(search) if self.loads.iter().any(|load| load.share().is_some()) => {
                Some(search)
            }
            _ => None,
        }
    }

    /// The reference in frames a second of each direction, if any load needs it. Traffic passes
    /// after that.
    fn find_reference(
        &self,
        session: &mut Session,
        search: Option<&mut (&Search, State)>,
    ) -> Result<Option<f64>, Stop> {
        let Some((search, state)) = search else {
            session.warm_up(&self.conditions)?;
            return Ok(match self.reference {
                Reference::Given(pps) => Some(pps),
                Reference::Searched(_) => None,
            });
        };
        state.drive(search, session)?;
        let found = search.goals.first().and_then(|goal| state.results().get(&goal.name).copied());
        let found = found.map(|sum| sum.lower_pps / session.directions().max(1) as f64);
        let found = found.filter(|pps| *pps > 0.0);
        let found = found.ok_or_else(|| {
            Failure::Refused(
                "the search found no load that passes, so there is nothing to take shares of: give the reference, or the loads in frames a second".into(),
            )
        })?;
        Ok(Some(found))
    }

    fn measure_all(&self, session: &mut Session, found: &mut LatencyTest) -> Result<(), Stop> {
        let mut loads: Vec<_> =
            self.loads.iter().map(|load| (load.pps(found.reference_pps), *load)).collect();
        loads.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (pps, load) in loads {
            if pps > self.max_pps {
                session.note(format!(
                    "the load {} would be {}, more than the line carries: it was left out",
                    load.name(),
                    human::pps(pps)
                ));
                continue;
            }
            let measured = self.measure(session, load, pps)?;
            session.show_latency(found, &measured)?;
            found.loads.push(measured);
        }
        Ok(())
    }

    /// One load, repeated while it is disturbed.
    fn measure(&self, session: &mut Session, load: ChosenLoad, pps: f64) -> Result<LoadLatency, Stop> {
        let (mut cost, mut measured) = self.attempt(session, load, pps)?;
        for _ in 1..ATTEMPTS {
            if measured.disturbed.is_none() {
                break;
            }
            let (again_cost, again) = self.attempt(session, load, pps)?;
            if again.disturbed.is_none() || again_cost < cost {
                (cost, measured) = (again_cost, again);
            }
        }
        Ok(measured)
    }

    /// One trial of a load, and what noise may have cost it.
    fn attempt(&self, session: &mut Session, load: ChosenLoad, pps: f64) -> Result<(f64, LoadLatency), Stop> {
        let before = session.totals().to_vec();
        let (sample, noise) = session.trial(Phase::Trial, pps, self.duration, self.conditions.drain)?;
        let measured = LoadLatency {
            name: load.name(),
            share: load.share(),
            load_pps: pps,
            at_s: sample.at_s,
            duration_s: sample.duration_s,
            disturbed: noise.disturbed,
            directions: distributions(&sample, &before, session.totals()),
        };
        Ok((noise.cost, measured))
    }
}

/// What came back in a trial, from the totals before and after it.
fn distributions(sample: &Sample, before: &[Totals], after: &[Totals]) -> Vec<Distribution> {
    let totals = before.iter().zip(after).zip(&sample.directions).enumerate();
    let each = totals.map(|(direction, ((before, after), counted))| {
        distribution(direction_name(direction), counted, &after.latency.since(&before.latency))
    });
    each.collect()
}

fn distribution(name: String, counted: &DirectionSample, delays: &Histogram) -> Distribution {
    // What an earlier load left behind has been on its way for a whole drain: the slowest are its own.
    let delays = &delays.smallest(counted.forwarded);
    // The exact ones are missing when the first frame came back only after the trial.
    let bucket = |quantile| delays.quantile(quantile).unwrap_or_default();
    let (min_ns, mean_ns, max_ns) = counted.latency.map_or_else(
        || (bucket(0.0) as u64, mean(delays), bucket(1.0) as u64),
        |exact| (exact.min_ns, exact.mean_ns, exact.max_ns),
    );
    let within = |delay: f64| delay.clamp(min_ns as f64, max_ns.max(min_ns) as f64);
    let percentile = |share| delays.quantile(share).map(within);
    let frames = delays.total();
    Distribution {
        name,
        offered_pps: counted.offered_pps,
        offered: counted.offered,
        forwarded: frames,
        unsent: counted.unsent,
        loss_ratio: counted.loss_ratio,
        min_ns,
        mean_ns,
        max_ns,
        percentiles: Percentiles::of(frames, percentile),
        pdv: Percentiles::of(frames, |share| Some(percentile(share)? - min_ns as f64)),
        histogram_ns: delays.buckets().collect(),
    }
}

/// The mean of what a histogram holds, to the width of its buckets.
fn mean(delays: &Histogram) -> f64 {
    let sum: f64 = delays.buckets().map(|(delay, count)| delay as f64 * count as f64).sum();
    sum / delays.total().max(1) as f64
}
