//! Where a device's core spends its time: a device, a steady load and a profiler enter; folded stacks of the core,
//! taken while the load held, leave.
//!
//! Never in a run that measures, since sampling takes time of the same core.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use engine::Load;
use engine::xdp::XdpEngine;
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
    own_share: f64,
    event: &'static str,
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
            title: format!("Where the core of {} works, {}", self.name, self.load),
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
            "event": self.event,
            "frequency_hz": FREQUENCY_HZ,
            "samples": self.folded.samples(),
            "idle_samples": self.idle,
            "own_share": self.own_share,
            "offered": self.offered,
            "forwarded": self.forwarded,
        })
    }
}

/// Loads a device, and samples its core meanwhile.
///
/// # Errors
/// Wrong use where the device's core is not on this machine; else why the load failed or too few samples were taken.
pub fn take(
    request: &Request<'_>,
    target: &Target,
    profiler: &Profiler,
    stop: &Arc<AtomicBool>,
) -> Result<CoreProfile> {
    let profile = request.profile;
    let mut testbed = Testbed::open(target, usize::from(profile.largest_size()))?;
    testbed.prepare()?;
    let Some(lab) = testbed.lab() else {
        return Err(misuse(
            "the core of a device is known only on this machine: give a device of the lab, --dut",
        ));
    };
    let table = profile.table(&testbed.endpoints(), request.directions);
    let steady = Steady::plan(request, &testbed, table.mean_frame_size())?;
    let mut engine = testbed.start_engine(&table, stop)?;
    let core = lab.placement().dut;
    // Begun before the load and before this thread takes its place beside the generator.
    let longest = steady.planned();
    let mut recording = profiler.record(core, longest).map_err(|reason| anyhow!(reason))?;
    let control = Control::beside(testbed.generating_cores());
    let outcome = steady.run(&mut engine, &mut recording, lab.dut().name());
    drop(control);
    // First, since a load ends when its recording does.
    let samples = recording.end().map_err(|reason| anyhow!(reason))?;
    let outcome = outcome?;
    let folded = Folded::of_perf_script(&samples.script).map_err(|reason| anyhow!(reason))?;
    let (folded, idle) = folded.without_idle();
    if folded.samples() < ENOUGH {
        bail!(
            "only {} samples show the device's core at work, and {idle} show it idle: sample for longer \
             (--duration), or with more load (--rate)",
            folded.samples()
        );
    }
    let held = || outcome.samples.iter().filter(|sample| sample.phase == Phase::Hold);
    let sum = |count: fn(&DirectionSample) -> u64| -> u64 {
        held().flat_map(|sample| &sample.directions).map(count).sum()
    };
    let (offered, forwarded) = (sum(|it| it.offered), sum(|it| it.forwarded));
    let seconds: f64 = held().map(|sample| sample.duration_s).sum();
    let own_share = folded.share_of(&own_threads(&testbed)?);
    // A halted core takes no cycles, so those tell nothing of idleness; time does, whether or not the
    // kernel takes samples of it.
    let worked = (profiler.event != "cycles").then(|| {
        let share = folded.samples() as f64 / (f64::from(FREQUENCY_HZ) * seconds).max(1.0);
        format!(", which worked {:.0} % of the time", share.min(1.0) * 100.0)
    });
    let basis = format!(
        "{} samples of {} at {FREQUENCY_HZ} Hz on core {core}{}; {:.1} % of them in the device's threads; {:.1} % of {} lost",
        human::count(folded.samples()),
        profiler.event,
        worked.unwrap_or_default(),
        own_share * 100.0,
        (1.0 - forwarded as f64 / offered.max(1) as f64) * 100.0,
        human::pps(offered as f64 / seconds.max(f64::MIN_POSITIVE)),
    );
    let mut notes =
        vec![format!("the load is of the profile {}, for {:?}", profile.name(), request.duration)];
    notes.extend(testbed.notes());
    notes.extend(profiler.why.as_ref().map(|why| {
        format!("samples are of time (cpu-clock), not of cycles: {why}; what runs with interrupts off is counted where they come on again")
    }));
    if perf::symbols_are_hidden() {
        notes.push(
            "the kernel hides its functions' names: run as root, with 'sysctl kernel.kptr_restrict=0'"
                .to_owned(),
        );
    }
    notes.extend(samples.lost);
    notes.extend(outcome.notes);
    Ok(CoreProfile {
        name: lab.dut().to_string(),
        load: steady.load_in_words(),
        folded,
        idle,
        own_share,
        event: profiler.event,
        offered,
        forwarded,
        basis,
        notes,
    })
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
    fn run(&self, engine: &mut XdpEngine, recording: &mut Recording, name: &str) -> Result<Outcome> {
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
        let mut sampled = Sampled { recording, progress };
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
struct Sampled<'a> {
    recording: &'a mut Recording,
    progress: Progress,
}

impl Observer for Sampled<'_> {
    fn phase(&mut self, phase: Phase, _planned: Duration) {
        self.progress.phase(phase);
        if phase == Phase::Hold {
            self.recording.begin();
        }
    }

    fn drain(&mut self, _planned: Duration) {
        self.recording.pause();
        self.progress.drain();
    }

    fn sample(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        self.progress.sample(sample);
        if self.recording.has_ended() {
            return Err("'perf record' ended before the load did".into());
        }
        Ok(())
    }
}
