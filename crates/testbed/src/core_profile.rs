//! Where a device's core spends its time: a device, a steady load and a profiler enter; folded stacks of the core,
//! taken while the load held, leave.
//!
//! Never in a run that measures, since sampling takes time of the same core.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use engine::{Engine, Load};
use explain::flame::perf::{self, FREQUENCY_HZ, Profiler, Recording};
use explain::flame::{Captions, Folded};
use results::record::{DirectionSample, Phase, Sample, Status};
use serde_json::json;
use traffic::{Directions, Profile};
use trial::{Conditions, Observer, ObserverError, Outcome, Saturate, Silent, Strategy as _, WarmUp};
use wire::human;
use wire::rate::Rate;
use wording::usage::misuse;

use crate::Testbed;
use crate::control::Control;
use crate::progress::Progress;
use crate::remote_device::RemoteDevice;
use crate::remote_stacks::RemoteStacks;
use crate::target::Target;

/// Fewer samples of a working core than this show nothing.
const ENOUGH: u64 = 100;
/// How long saturation is offered to learn what a share is of.
const SATURATION: Duration = Duration::from_secs(1);
/// How long traffic is sent first, to prove that it passes, and how much.
const WARM_UP: (Duration, Rate) = (Duration::from_millis(500), Rate::Pps(1_000.0));
/// How long one sample of the load is.
const STEP: Duration = Duration::from_millis(500);
/// How long to wait for the last frames.
const DRAIN: Duration = Duration::from_millis(200);

/// A load that stays the same, as a person asks for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SteadyLoad {
    /// In each direction.
    Rate(Rate),
    /// Of what the device forwards when saturated, above 0, at most 1.
    Share(f64),
}

/// What is sent while a core is sampled.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The frames.
    pub profile: &'a Profile,
    /// One or both.
    pub directions: Directions,
    /// How many of them.
    pub load: SteadyLoad,
    /// How long the core is sampled.
    pub duration: Duration,
}

/// Where the time of one device's core went.
pub struct CoreProfile {
    /// The device.
    pub name: String,
    /// The load, in words.
    pub load: String,
    /// The stacks of the core at work.
    pub folded: Folded,
    idle: u64,
    /// The share of the device's own threads, 0 to 1, and what samples are of; where its core is on this machine.
    here: Option<(f64, &'static str)>,
    offered: u64,
    forwarded: u64,
    /// What it rests on, in one line.
    pub basis: String,
    /// What else is to be known of it.
    pub notes: Vec<String>,
}

impl CoreProfile {
    /// What a drawing of it says of itself.
    #[must_use]
    pub fn captions(&self) -> Captions {
        Captions {
            title: match self.here {
                Some(_) => format!("Where the core of {} works, {}", self.name, self.load),
                None => format!("Where the cores of {} work, {}", self.name, self.load),
            },
            basis: self.basis.clone(),
            notes: self.notes.clone(),
        }
    }

    /// What it rests on, for machines.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        json!({
            "dut": self.name,
            "load": self.load,
            "event": self.here.map(|(_, event)| event),
            "frequency_hz": self.here.map(|_| FREQUENCY_HZ),
            "samples": self.folded.samples(),
            "idle_samples": self.idle,
            "own_share": self.here.map(|(own_share, _)| own_share),
            "offered": self.offered,
            "forwarded": self.forwarded,
        })
    }
}

/// Loads a device, and samples its core meanwhile; all cores of one that is another computer, by its driver.
///
/// # Errors
/// Wrong use where nobody can sample the device; else why the load failed or too few samples were taken.
pub fn take(request: &Request<'_>, target: &Target, stop: &Arc<AtomicBool>) -> Result<CoreProfile> {
    let mut testbed = Testbed::open(target, usize::from(request.profile.largest_size()))?;
    testbed.prepare()?;
    match (testbed.lab(), testbed.remote()) {
        (Some(lab), _) => here(request, &testbed, lab, stop),
        (None, Some(device)) => there(request, &testbed, device, stop),
        (None, None) => Err(misuse(
            "the core of a device is known only on this machine: give a device of the lab, --dut, or --dut-host and \
             --dut-driver of another computer",
        )),
    }
}

/// A device of the lab.
fn here(
    request: &Request<'_>,
    testbed: &Testbed,
    lab: &lab::Lab,
    stop: &Arc<AtomicBool>,
) -> Result<CoreProfile> {
    let profiler = Profiler::find().map_err(|reason| anyhow!(reason))?;
    let core = lab.placement().dut;
    let prepare = |longest| profiler.record(core, longest).map_err(|reason| anyhow!(reason));
    let Loaded { load, held, sampler: recording, notes } =
        under_load(request, testbed, lab.dut().name(), stop, prepare)?;
    let samples = recording.end().map_err(|reason| anyhow!(reason))?;
    let own = own_threads(testbed)?;
    let folded = Folded::of_device(&samples.script, &own).map_err(|reason| anyhow!(reason))?;
    let (folded, idle) = at_work(folded)?;
    let own_share = folded.share_of(&own);
    // A halted core takes no cycles, so those tell nothing of idleness; time does, whether or not the
    // kernel takes samples of it.
    let worked = (profiler.event != "cycles").then(|| {
        let share = folded.samples() as f64 / (f64::from(FREQUENCY_HZ) * held.seconds).max(1.0);
        format!(", which worked {:.0} % of the time", share.min(1.0) * 100.0)
    });
    let basis = format!(
        "{} samples of {} at {FREQUENCY_HZ} Hz on core {core}{}; {:.1} % of them in the device's threads; {}",
        human::count(folded.samples()),
        profiler.event,
        worked.unwrap_or_default(),
        own_share * 100.0,
        held.in_words(),
    );
    let mut all = vec![request.in_words()];
    all.extend(testbed.notes());
    all.extend(profiler.why.as_ref().map(|why| {
        format!("samples are of time (cpu-clock), not of cycles: {why}; what runs with interrupts off is counted where they come on again")
    }));
    if perf::symbols_are_hidden() {
        all.push(
            "the kernel hides its functions' names: run as root, with 'sysctl kernel.kptr_restrict=0'"
                .to_owned(),
        );
    }
    all.extend(samples.lost);
    all.extend(notes);
    Ok(CoreProfile {
        name: lab.dut().to_string(),
        load,
        folded,
        idle,
        here: Some((own_share, profiler.event)),
        offered: held.offered,
        forwarded: held.forwarded,
        basis,
        notes: all,
    })
}

/// A device that is another computer.
fn there(
    request: &Request<'_>,
    testbed: &Testbed,
    device: &RemoteDevice,
    stop: &Arc<AtomicBool>,
) -> Result<CoreProfile> {
    let prepare = |_| device.stacks(request.duration);
    let Loaded { load, held, sampler, notes } = under_load(request, testbed, device.driver(), stop, prepare)?;
    let (folded, idle) = at_work(sampler.end()?)?;
    let host = device.describe_remote().host;
    let basis = format!(
        "{} samples of all cores of {host} at work, taken there by the driver {}; {}",
        human::count(folded.samples()),
        device.driver(),
        held.in_words(),
    );
    let mut all = vec![request.in_words()];
    all.extend(testbed.notes());
    all.extend(notes);
    Ok(CoreProfile {
        name: host,
        load,
        folded,
        idle,
        here: None,
        offered: held.offered,
        forwarded: held.forwarded,
        basis,
        notes: all,
    })
}

/// What was sampled while a load held.
struct Loaded<S> {
    /// The load, in words.
    load: String,
    held: Held,
    sampler: S,
    notes: Vec<String>,
}

/// What was sent meanwhile.
struct Held {
    offered: u64,
    forwarded: u64,
    seconds: f64,
}

impl Held {
    fn of(outcome: &Outcome) -> Self {
        let held = || outcome.samples.iter().filter(|sample| sample.phase == Phase::Hold);
        let sum = |count: fn(&DirectionSample) -> u64| -> u64 {
            held().flat_map(|sample| &sample.directions).map(count).sum()
        };
        Self {
            offered: sum(|it| it.offered),
            forwarded: sum(|it| it.forwarded),
            seconds: held().map(|sample| sample.duration_s).sum(),
        }
    }

    fn in_words(&self) -> String {
        format!(
            "{:.1} % of {} lost",
            (1.0 - self.forwarded as f64 / self.offered.max(1) as f64) * 100.0,
            human::pps(self.offered as f64 / self.seconds.max(f64::MIN_POSITIVE)),
        )
    }
}

impl Request<'_> {
    fn in_words(&self) -> String {
        format!("the load is of the profile {}, for {:?}", self.profile.name(), self.duration)
    }
}

/// Offers the load that is asked for, and has what `prepare` makes sample meanwhile, which must last that long at most.
fn under_load<S: Sampler>(
    request: &Request<'_>,
    testbed: &Testbed,
    name: &str,
    stop: &Arc<AtomicBool>,
    prepare: impl FnOnce(Duration) -> Result<S>,
) -> Result<Loaded<S>> {
    let table = request.profile.table(&testbed.endpoints(), request.directions);
    let steady = Steady::plan(request, testbed, table.mean_frame_size())?;
    let (mut engine, _) = testbed.start_any_engine(&table, stop)?;
    // Begun before the load and before this thread takes its place beside the generator.
    let mut sampler = prepare(steady.planned())?;
    let control = Control::beside(testbed.generating_cores());
    let outcome = steady.run(&mut *engine, &mut sampler, name);
    drop(control);
    let outcome = match outcome {
        Ok(outcome) => outcome,
        // First, since a load ends when what samples does.
        Err(error) => return Err(sampler.why_it_ended().unwrap_or(error)),
    };
    Ok(Loaded { load: steady.load_in_words(), held: Held::of(&outcome), sampler, notes: outcome.notes })
}

/// The samples of a device at work, and how many show it idle.
fn at_work(folded: Folded) -> Result<(Folded, u64)> {
    let (folded, idle) = folded.without_idle();
    if folded.samples() < ENOUGH {
        bail!(
            "only {} samples show the device's core at work, and {idle} show it idle: sample for longer \
             (--duration), or with more load (--rate)",
            folded.samples()
        );
    }
    Ok((folded, idle))
}

/// What samples while a load holds.
trait Sampler {
    /// Samples from now on.
    fn begin(&mut self);
    /// Samples no more from now on.
    fn pause(&mut self);
    /// Whether it has ended too early.
    fn has_ended(&mut self) -> bool;
    /// Why it has, if it did.
    fn why_it_ended(self) -> Option<anyhow::Error>;
}

impl Sampler for Recording {
    fn begin(&mut self) {
        Recording::begin(self);
    }

    fn pause(&mut self) {
        Recording::pause(self);
    }

    fn has_ended(&mut self) -> bool {
        Recording::has_ended(self)
    }

    fn why_it_ended(self) -> Option<anyhow::Error> {
        self.end().err().map(|reason| anyhow!(reason))
    }
}

impl Sampler for RemoteStacks {
    fn begin(&mut self) {
        RemoteStacks::begin(self);
    }

    /// It ends by itself when the load does.
    fn pause(&mut self) {}

    fn has_ended(&mut self) -> bool {
        self.has_failed()
    }

    fn why_it_ended(self) -> Option<anyhow::Error> {
        if self.has_failed() { self.end().err() } else { None }
    }
}

/// The names of the threads that do the device's work, as samples show them.
fn own_threads(testbed: &Testbed) -> Result<Vec<String>> {
    let name = |pid: i32| fs::read_to_string(format!("/proc/{pid}/comm"));
    let names = testbed.dut_work()?.into_iter().filter_map(|pid| name(pid).ok());
    Ok(names.collect())
}

/// A load that stays the same while the core is sampled.
struct Steady {
    conditions: Conditions,
    wanted: SteadyLoad,
    /// The load, as far as it is known before it is offered.
    load: Load,
    duration: Duration,
}

impl Steady {
    fn plan(request: &Request<'_>, testbed: &Testbed, mean_frame_size: f64) -> Result<Self> {
        let (duration, rate) = WARM_UP;
        let steady = Self {
            conditions: Conditions {
                warm_up: WarmUp { pps: testbed.pps(rate, mean_frame_size)?, duration },
                step: STEP.min(request.duration),
                drain: DRAIN,
                loss_threshold: 0.001,
                line_rate_bps: testbed.line_rate_bps(),
            },
            wanted: request.load,
            load: match request.load {
                SteadyLoad::Rate(Rate::Max) | SteadyLoad::Share(_) => Load::Max,
                SteadyLoad::Rate(rate) => Load::Rate(testbed.pps(rate, mean_frame_size)?),
            },
            duration: request.duration,
        };
        steady.saturate(steady.load).check().map_err(|refused| misuse(refused.to_string()))?;
        Ok(steady)
    }

    fn saturate(&self, load: Load) -> Saturate {
        Saturate { conditions: self.conditions, load, duration: self.duration }
    }

    fn planned(&self) -> Duration {
        let whole = self.saturate(self.load).planned();
        if matches!(self.wanted, SteadyLoad::Share(_)) { whole * 2 + SATURATION } else { whole }
    }

    fn load_in_words(&self) -> String {
        match (self.wanted, self.load) {
            (SteadyLoad::Share(share), _) => {
                format!("at {:.0} % of what it forwards at most", share * 100.0)
            }
            (_, Load::Rate(pps)) => format!("at {}", human::pps(pps)),
            _ => "saturated".to_owned(),
        }
    }

    /// Offers the load; samples are taken while it holds.
    fn run(&self, engine: &mut dyn Engine, sampler: &mut impl Sampler, name: &str) -> Result<Outcome> {
        let load = match self.wanted {
            SteadyLoad::Rate(_) => self.load,
            SteadyLoad::Share(share) => {
                let saturated = Saturate { duration: SATURATION, ..self.saturate(Load::Max) };
                let outcome = require_complete(saturated.run(engine, &mut Silent))?;
                let most = outcome.directions.iter().map(|direction| direction.max_forwarded_pps);
                Load::Rate(most.fold(f64::INFINITY, f64::min) * share)
            }
        };
        let progress = Progress::new(name, self.planned());
        let mut sampled = Sampled { sampler, progress };
        let outcome = self.saturate(load).run(engine, &mut sampled);
        sampled.progress.finish();
        require_complete(outcome)
    }
}

/// The outcome of a load that held to the end.
fn require_complete(outcome: Outcome) -> Result<Outcome> {
    match outcome.status {
        Status::Complete => Ok(outcome),
        Status::Interrupted => bail!("interrupted: nothing is drawn"),
        _ => Err(anyhow!(outcome.reason().unwrap_or_else(|| "the load failed".to_owned()))),
    }
}

/// Lets samples be taken while the load holds, and only then.
struct Sampled<'a, S> {
    sampler: &'a mut S,
    progress: Progress,
}

impl<S: Sampler> Observer for Sampled<'_, S> {
    fn phase(&mut self, phase: Phase, _planned: Duration) {
        self.progress.phase(phase);
        if phase == Phase::Hold {
            self.sampler.begin();
        }
    }

    fn drain(&mut self, _planned: Duration) {
        self.sampler.pause();
        self.progress.drain();
    }

    fn sample(&mut self, _sample: &Sample) -> Result<(), ObserverError> {
        if self.sampler.has_ended() {
            return Err("what samples the device ended before the load did".into());
        }
        Ok(())
    }

    fn settled(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        self.progress.sample(sample);
        Ok(())
    }
}
