//! What a forwarded frame costs the device, by load: a testbed and conditions enter; a strategy leaves.
//!
//! Three loads are offered one after the other: a low one, as much as the tester can, and half of what
//! came back then. Meanwhile the clocks of the threads that do the device's work are read. A load that
//! the machine disturbed is offered again, a few times in all, and its least disturbed attempt counts.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use anyhow::Result;
use engine::{Engine, Load};
use explain::cost::{self, Counted, Used};
use explain::cycles::Cycles;
use monitor::gauges::{self, Watts};
use results::record::{self, Cost, Finding, LoadCost, Node, NodeRuntimes, Phase, Sample, Status};
use trial::verdict::Judge;
use trial::{Conditions, Failure, Observer, ObserverError, Outcome, Saturate, Strategy, strategy};
use wire::human;

use crate::Testbed;

/// The middle load, as a share of what is forwarded at saturation.
const MIDDLE: f64 = 0.5;
/// How often loads that the machine disturbed are offered again, all of them together.
const REPEATS: usize = 3;

/// The strategy.
pub struct CostTest {
    conditions: Conditions,
    low_pps: f64,
    duration: Duration,
    /// What receiving costs the device's core, nanoseconds a frame, where that is known.
    receive_cost_ns: Option<f64>,
    meter: RefCell<Meter>,
    found: RefCell<Vec<LoadCost>>,
}

impl CostTest {
    /// The costs of a device that `threads` do the work of: at the load of the warm-up, at saturation and
    /// between, each for `duration`.
    ///
    /// # Errors
    /// When the kernel does not tell how long threads run.
    pub fn new(
        testbed: &Testbed,
        threads: Vec<i32>,
        conditions: Conditions,
        duration: Duration,
    ) -> Result<Self> {
        Ok(Self {
            conditions,
            low_pps: conditions.warm_up.pps,
            duration,
            receive_cost_ns: testbed.receive_cost_ns(),
            meter: RefCell::new(Meter::new(threads, &testbed.energy().watts)?),
            found: RefCell::default(),
        })
    }

    /// One load. Traffic is known to pass once the low one did.
    fn load(&self, load: Load) -> Saturate {
        let mut conditions = self.conditions;
        if load != Load::Rate(self.low_pps) {
            conditions.warm_up.duration = Duration::ZERO;
        }
        Saturate { conditions, load, duration: self.duration }
    }

    /// Offers one load, again while the machine disturbs it and repeats are left, and keeps the costs
    /// of the attempt with the fewest disturbed samples. `None` when it did not come to its end.
    fn measure(
        &self,
        name: &str,
        load: Load,
        engine: &mut dyn Engine,
        observer: &mut dyn Observer,
        all: &mut Whole,
    ) -> Option<LoadCost> {
        let mut best: Option<Attempt> = None;
        let mut attempts = 0;
        let complete = loop {
            attempts += 1;
            let later = engine.now().saturating_sub(all.started);
            let (outcome, attempt) = self.attempt(name, load, engine, observer);
            let complete = outcome.status == Status::Complete;
            all.add(outcome, later);
            let disturbed = attempt.as_ref().is_some_and(|attempt| attempt.disturbed > 0);
            let better = |attempt: &Attempt| best.as_ref().is_none_or(|it| attempt.disturbed < it.disturbed);
            // What an attempt has that was cut short counts only if there is no other.
            if let Some(attempt) = attempt.filter(|attempt| better(attempt) && (complete || attempts == 1)) {
                best = Some(attempt);
            }
            if !complete || !disturbed || all.repeats == 0 {
                break complete;
            }
            all.repeats -= 1;
        };
        if attempts > 1 {
            all.note(format!(
                "{name}: offered {attempts} times, since the machine disturbed it; the least disturbed counts"
            ));
        }
        let cost = best?.cost;
        self.found.borrow_mut().push(cost.clone());
        complete.then_some(cost)
    }

    /// Offers one load once.
    fn attempt(
        &self,
        name: &str,
        load: Load,
        engine: &mut dyn Engine,
        observer: &mut dyn Observer,
    ) -> (Outcome, Option<Attempt>) {
        let mut meter = self.meter.borrow_mut();
        let mut metered = Metered { observer, meter: &mut meter, begun: None, used: None };
        let outcome = self.load(load).run(engine, &mut metered);
        let Some((duration, used, (nodes, nodes_s))) = metered.used else { return (outcome, None) };
        let held = || outcome.samples.iter().filter(|sample| sample.phase == Phase::Hold);
        let directions = || held().flat_map(|sample| &sample.directions);
        let cost = cost::cost(
            name,
            &Counted {
                duration,
                offered: directions().map(|direction| direction.offered).sum(),
                forwarded: directions().map(|direction| direction.forwarded).sum(),
                used,
                nodes_s: (!nodes.is_empty()).then_some(nodes_s.as_secs_f64()),
                nodes,
                disturbed: held().find_map(|sample| sample.disturbed.clone()),
            },
        );
        let disturbed = held().filter(|sample| sample.disturbed.is_some()).count();
        (outcome, Some(Attempt { cost, disturbed }))
    }
}

/// What one attempt at a load cost.
struct Attempt {
    cost: LoadCost,
    /// Samples that the machine disturbed.
    disturbed: usize,
}

/// All loads that were offered so far, as one outcome.
struct Whole {
    started: Duration,
    /// How often a load may still be offered again.
    repeats: usize,
    outcome: Outcome,
}

impl Whole {
    /// Nothing was offered yet.
    fn new(started: Duration) -> Self {
        let outcome = Outcome {
            samples: Vec::new(),
            directions: Vec::new(),
            finding: Finding::Cost(None),
            status: Status::Complete,
            failure: None,
            notes: Vec::new(),
        };
        Self { started, repeats: REPEATS, outcome }
    }

    /// Adds what began `later` than the first.
    fn add(&mut self, outcome: Outcome, later: Duration) {
        let later = later.as_secs_f64();
        let moved = |sample: Sample| Sample { at_s: sample.at_s + later, ..sample };
        self.outcome.samples.extend(outcome.samples.into_iter().map(moved));
        (self.outcome.status, self.outcome.failure) = (outcome.status, outcome.failure);
        outcome.notes.into_iter().for_each(|note| self.note(note));
    }

    /// Adds something that a reader should know, once.
    fn note(&mut self, note: String) {
        if !self.outcome.notes.contains(&note) {
            self.outcome.notes.push(note);
        }
    }
}

impl CostTest {
    /// Offers the low load, saturation and the middle; `None` when one did not come to its end.
    fn measure_all(
        &self,
        engine: &mut dyn Engine,
        observer: &mut dyn Observer,
        all: &mut Whole,
    ) -> Option<()> {
        self.measure("low", Load::Rate(self.low_pps), engine, observer, all)?;
        let saturation = self.measure("saturation", Load::Max, engine, observer, all)?;
        if saturation.forwarded == 0 {
            all.note("nothing came back at saturation, so there is no middle load to measure".to_owned());
            return Some(());
        }
        let middle_pps = saturation.forwarded_pps / engine.directions().max(1) as f64 * MIDDLE;
        self.measure("middle", Load::Rate(middle_pps), engine, observer, all).map(drop)
    }

    fn judge(&self, status: Status) -> Judge {
        Judge {
            loss_threshold: self.conditions.loss_threshold,
            line_rate_bps: self.conditions.line_rate_bps,
            target_pps: None,
            complete: status == Status::Complete,
        }
    }
}

/// Samples in the order of their loads, as a verdict takes them.
fn rising(samples: &[Sample]) -> Vec<Sample> {
    let offered =
        |sample: &Sample| -> f64 { sample.directions.iter().map(|direction| direction.offered_pps).sum() };
    let mut rising = samples.to_vec();
    rising.sort_by(|one, other| offered(one).total_cmp(&offered(other)));
    rising
}

impl Strategy for CostTest {
    fn describe(&self) -> record::Strategy {
        let own = [("low", human::pps(self.low_pps)), ("duration", format!("{:?}", self.duration))];
        strategy::describe("cost", own, &self.conditions)
    }

    fn planned(&self) -> Duration {
        let Conditions { warm_up, drain, .. } = self.conditions;
        warm_up.duration + drain + 3 * (self.duration + drain)
    }

    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome {
        let mut all = Whole::new(engine.now());
        // How far it came is in the outcome.
        let _ = self.measure_all(engine, observer, &mut all);
        let mut outcome = all.outcome;
        if let Ok(totals) = engine.totals() {
            outcome.directions = self.judge(outcome.status).directions(&rising(&outcome.samples), &totals);
        }
        let mut loads = self.found.take();
        if loads.is_empty() {
            return outcome;
        }
        loads.sort_by(|one, other| one.offered_pps.total_cmp(&other.offered_pps));
        if let Some(cost) = self.receive_cost_ns {
            outcome.notes.insert(0, format!(
                "receiving runs in the time of the device's threads: about {cost:.0} ns of each frame's cost are the tester's at saturation, and more at low loads"
            ));
        }
        let meter = self.meter.borrow();
        outcome.finding = Finding::Cost(Some(Cost {
            basis: cost::basis(&loads),
            loads,
            energy_source: meter.power.source.clone(),
            missing: meter.missing.iter().chain(&meter.power.missing).cloned().collect(),
        }));
        outcome
    }

    fn check(&self) -> Result<(), Failure> {
        self.load(Load::Rate(self.low_pps)).check()
    }
}

/// Reads what the device has used so far.
struct Meter {
    threads: Vec<i32>,
    cycles: Option<Cycles>,
    power: gauges::Meter,
    /// When the power was read last.
    read: Instant,
    /// Joules so far; `None` once they were not told.
    joules: Option<f64>,
    missing: Vec<String>,
}

impl Meter {
    /// A meter of `threads`, the device's.
    fn new(threads: Vec<i32>, watts: &Watts) -> Result<Self> {
        if !threads.iter().any(|pid| monitor::thread_time(*pid).is_some()) {
            anyhow::bail!(
                "the kernel does not tell how long the device's threads run: it needs CONFIG_SCHED_INFO"
            );
        }
        let mut missing = Vec::new();
        let cycles = Cycles::of(&threads).map_err(|reason| missing.push(format!("cycles: {reason}"))).ok();
        let power = gauges::Meter::open(watts);
        Ok(Self { threads, cycles, power, read: Instant::now(), joules: Some(0.0), missing })
    }

    fn read(&mut self) -> Used {
        self.read_power();
        Used {
            busy: self.threads.iter().filter_map(|pid| monitor::thread_time(*pid)).sum(),
            cycles: self.cycles.as_mut().and_then(Cycles::read),
            joules: self.joules,
        }
    }

    /// To be called now and then: counters of energy begin anew, and other meters are asked at moments.
    fn read_power(&mut self) {
        let now = Instant::now();
        let more = self.power.joules(now.duration_since(self.read));
        self.joules = self.joules.zip(more).map(|(joules, more)| joules + more);
        self.read = now;
    }
}

/// Reads the meter when a load begins and when it ends; passes all on to the real observer.
struct Metered<'a> {
    observer: &'a mut dyn Observer,
    meter: &'a mut Meter,
    begun: Option<(Instant, Used, (Instant, NodeRuntimes))>,
    used: Option<(Duration, Used, (Vec<Node>, Duration))>,
}

impl Metered<'_> {
    /// What the device's nodes have done, and when that was.
    fn nodes(&mut self) -> (Instant, NodeRuntimes) {
        let nodes = self.observer.ask(|around| around.nodes()).unwrap_or_default();
        (Instant::now(), nodes)
    }
}

impl Observer for Metered<'_> {
    fn next(&mut self) -> Option<&mut dyn Observer> {
        Some(self.observer)
    }

    fn phase(&mut self, phase: Phase, planned: Duration) {
        self.observer.phase(phase, planned);
        let nodes = self.nodes();
        self.begun = (phase == Phase::Hold).then(|| (Instant::now(), self.meter.read(), nodes));
    }

    fn drain(&mut self, planned: Duration) {
        if let Some((at, before, (nodes_at, nodes))) = self.begun.take() {
            let (time, used) = (at.elapsed(), self.meter.read().since(before));
            let (now, after) = self.nodes();
            self.used = Some((time, used, (Node::since(&nodes, after), now.duration_since(nodes_at))));
        }
        self.observer.drain(planned);
    }

    fn sample(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        self.meter.read_power();
        self.observer.sample(sample)
    }
}
