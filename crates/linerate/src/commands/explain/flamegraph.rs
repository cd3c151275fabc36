//! `linerate explain flamegraph`: in which functions the device's core spends its time.
//!
//! A device is loaded steadily, and its core is sampled meanwhile: never in a run that measures, since
//! sampling takes time of the same core. Or two files of folded stacks enter. An SVG leaves, with the
//! folded stacks beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use dut::DutSpec;
use engine::Load;
use engine::xdp::XdpEngine;
use explain::flame::perf::{self, FREQUENCY_HZ, Profiler, Recording};
use explain::flame::{self, Captions, Folded};
use results::record::{Phase, Sample, Status};
use serde_json::json;
use testbed::Testbed;
use testbed::control::Control;
use testbed::progress::Progress;
use testbed::stop;
use testbed::target::Target;
use trial::{Conditions, Observer, ObserverError, Outcome, Saturate, Silent, Strategy as _, WarmUp};
use wire::human;
use wire::rate::Rate;
use wording::usage::misuse;

use crate::args::{self, Device, Traffic};
use crate::{Exit, run};

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

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    traffic: Traffic,
    #[command(flatten)]
    device: Device,
    /// Another device: draw --dut, red where it spends a larger share than this one
    #[arg(long, value_name = "DUT", conflicts_with = "ports")]
    against: Option<DutSpec>,
    /// Two files of folded stacks, without any load: draw the shares of B, red where they are larger
    /// than A's
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["against", "dut", "ports"])]
    difference: Option<Vec<PathBuf>>,
    /// The load in each direction: a rate (500kpps), a share of what the device forwards at most (50%),
    /// or max, as much as the tester can
    #[arg(long, value_name = "RATE|SHARE", default_value = "max", value_parser = load)]
    rate: Wanted,
    /// How long the core is sampled
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = args::duration)]
    duration: Duration,
    /// The drawing; the folded stacks are kept beside it
    #[arg(long, short, value_name = "FILE.svg", default_value = "flamegraph.svg")]
    output: PathBuf,
    /// Print what it rests on as JSON on standard output
    #[arg(long)]
    json: bool,
}

/// A load as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wanted {
    Rate(Rate),
    /// Of what the device forwards when saturated.
    Share(f64),
}

/// Reads a load such as `500kpps`, `50%` or `max`.
fn load(text: &str) -> Result<Wanted, String> {
    if text.ends_with('%') {
        return args::share_to_100(text).map(Wanted::Share);
    }
    args::rate(text).map(Wanted::Rate)
}

pub fn main(args: &Args) -> Result<Exit> {
    if args.output.extension().is_none_or(|ending| ending != "svg") {
        return Err(misuse(format!(
            "{} does not end in .svg: the drawing does, and the folded stacks beside it in .folded",
            args.output.display()
        )));
    }
    if let Some([before, after]) = args.difference.as_deref() {
        return between_files(args, before, after);
    }
    let stop = stop::flag()?;
    let profiler = Profiler::find().map_err(|reason| anyhow!(reason))?;
    let target = args.device.target_or("linux-router")?;
    let taken = take(args, &target, &profiler, &stop)?;
    let folded = args.output.with_extension("folded");
    write(&folded, &taken.folded.to_string())?;
    let Some(against) = &args.against else {
        let svg = flame::single(&taken.folded, &taken.captions()).map_err(|reason| anyhow!(reason))?;
        write(&args.output, &svg)?;
        show(args, &[&folded], &taken.captions(), json!([taken.json()]));
        return Ok(Exit::Done);
    };
    let against = target.with_dut(against.clone());
    let other = take(args, &against, &profiler, &stop)?;
    let others = args.output.with_extension("against.folded");
    write(&others, &other.folded.to_string())?;
    let mut captions = of_difference(
        (&format!("{} ({})", other.name, other.load), &other.folded),
        (&format!("{} ({})", taken.name, taken.load), &taken.folded),
    );
    for taken in [&other, &taken] {
        let basis = format!("{}: {}", taken.name, taken.basis);
        let new = taken.notes.iter().filter(|note| !captions.notes.contains(note)).cloned();
        let new: Vec<String> = std::iter::once(basis).chain(new).collect();
        captions.notes.extend(new);
    }
    draw_difference(args, &other.folded, &taken.folded, &captions)?;
    show(args, &[&folded, &others], &captions, json!([taken.json(), other.json()]));
    Ok(Exit::Done)
}

/// Draws how two files of folded stacks differ.
fn between_files(args: &Args, before: &Path, after: &Path) -> Result<Exit> {
    let read = |path: &Path| -> Result<Folded> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let folded = Folded::parse(&text);
        let folded = folded.map_err(|reason| misuse(format!("{}: {reason}", path.display())))?;
        if folded.samples() == 0 {
            return Err(misuse(format!("{} has no samples", path.display())));
        }
        Ok(folded)
    };
    let (one, other) = (read(before)?, read(after)?);
    let name = |path: &Path| path.display().to_string();
    let captions = of_difference((&name(before), &one), (&name(after), &other));
    draw_difference(args, &one, &other, &captions)?;
    show(args, &[], &captions, json!([]));
    Ok(Exit::Done)
}

/// What a difference says of itself.
fn of_difference((before, one): (&str, &Folded), (after, other): (&str, &Folded)) -> Captions {
    Captions {
        title: format!("{after}, against {before}"),
        basis: format!(
            "red: more in the function itself than in {before}, blue: less; {} samples against {}, of which {:.1} % are in stacks not drawn",
            human::count(other.samples()),
            human::count(one.samples()),
            one.share_without(other) * 100.0
        ),
        notes: Vec::new(),
    }
}

fn draw_difference(args: &Args, before: &Folded, after: &Folded, captions: &Captions) -> Result<()> {
    write(&args.output, &flame::difference(before, after, captions).map_err(|reason| anyhow!(reason))?)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Says what was drawn, and what it rests on.
fn show(args: &Args, folded: &[&Path], captions: &Captions, profiles: serde_json::Value) {
    eprintln!("{}\n  {}", captions.title, captions.basis);
    captions.notes.iter().for_each(|note| eprintln!("  note: {note}"));
    eprintln!("drawing: {}", args.output.display());
    folded.iter().for_each(|path| eprintln!("folded stacks: {}", path.display()));
    if args.json {
        let files: Vec<_> = folded.iter().map(|path| path.display().to_string()).collect();
        println!(
            "{}",
            json!({
                "svg": args.output.display().to_string(),
                "folded": files,
                "title": captions.title,
                "basis": captions.basis,
                "notes": captions.notes,
                "profiles": profiles,
            })
        );
    }
}

/// Where the time of one device's core went.
struct Taken {
    name: String,
    load: String,
    folded: Folded,
    idle: u64,
    own_share: f64,
    event: &'static str,
    offered: u64,
    forwarded: u64,
    basis: String,
    notes: Vec<String>,
}

impl Taken {
    fn captions(&self) -> Captions {
        Captions {
            title: format!("Where the core of {} works, {}", self.name, self.load),
            basis: self.basis.clone(),
            notes: self.notes.clone(),
        }
    }

    fn json(&self) -> serde_json::Value {
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
fn take(args: &Args, target: &Target, profiler: &Profiler, stop: &Arc<AtomicBool>) -> Result<Taken> {
    let profile = args.traffic.profile()?;
    let mut testbed = Testbed::open(target, usize::from(profile.largest_size()))?;
    testbed.prepare()?;
    let Some(lab) = testbed.lab() else {
        return Err(misuse(
            "the core of a device is known only on this machine: give a device of the lab, --dut",
        ));
    };
    let table = profile.table(&testbed.endpoints(), args.traffic.directions());
    let steady = Steady::plan(args, &testbed, table.mean_frame_size())?;
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
    let sum = |count: fn(&results::record::DirectionSample) -> u64| -> u64 {
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
    let mut notes = vec![format!("the load is of the profile {}, for {:?}", profile.name(), args.duration)];
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
    Ok(Taken {
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
    wanted: Wanted,
    /// The load, as far as it is known before it is offered.
    load: Load,
    duration: Duration,
}

impl Steady {
    fn plan(args: &Args, testbed: &Testbed, mean_frame_size: f64) -> Result<Self> {
        let (duration, rate) = WARM_UP;
        let steady = Self {
            conditions: Conditions {
                warm_up: WarmUp { pps: testbed.pps(rate, mean_frame_size)?, duration },
                step: STEP.min(args.duration),
                drain: DRAIN,
                loss_threshold: 0.001,
                line_rate_bps: testbed.line_rate_bps(),
            },
            wanted: args.rate,
            load: match args.rate {
                Wanted::Rate(Rate::Max) | Wanted::Share(_) => Load::Max,
                Wanted::Rate(rate) => Load::Rate(testbed.pps(rate, mean_frame_size)?),
            },
            duration: args.duration,
        };
        run::check(&steady.saturate(steady.load))?;
        Ok(steady)
    }

    fn saturate(&self, load: Load) -> Saturate {
        Saturate { conditions: self.conditions, load, duration: self.duration }
    }

    fn planned(&self) -> Duration {
        let whole = self.saturate(self.load).planned();
        if matches!(self.wanted, Wanted::Share(_)) { whole * 2 + SATURATION } else { whole }
    }

    fn load_in_words(&self) -> String {
        match (self.wanted, self.load) {
            (Wanted::Share(share), _) => {
                format!("at {:.0} % of what it forwards at most", share * 100.0)
            }
            (_, Load::Rate(pps)) => format!("at {}", human::pps(pps)),
            _ => "saturated".to_owned(),
        }
    }

    /// Offers the load; samples are taken while it holds.
    fn run(&self, engine: &mut XdpEngine, recording: &mut Recording, name: &str) -> Result<Outcome> {
        let load = match self.wanted {
            Wanted::Rate(_) => self.load,
            Wanted::Share(share) => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_read() {
        assert_eq!(load("max"), Ok(Wanted::Rate(Rate::Max)));
        assert_eq!(load("50%"), Ok(Wanted::Share(0.5)));
        assert_eq!(load("100%"), Ok(Wanted::Share(1.0)));
        assert_eq!(load("500kpps"), Ok(Wanted::Rate(Rate::Pps(500_000.0))));
        for text in ["", "%", "0%", "101%", "half", "-1kpps"] {
            assert!(load(text).is_err(), "{text}");
        }
    }
}
