//! One reference device between the ports: its name enters; what was sent, what returned and
//! what the machine did meanwhile leave.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use engine::{Counts, Engine, Load, Totals};
use monitor::Bounds;
use traffic::{Directions, Profile, Tunables};
use trial::{Conditions, Noise, Observer, Outcome, Strategy, Surroundings, WarmUp};

use crate::Testbed;
use crate::machine::Machine;
use crate::target::{EngineName, Target};

/// The line rate, unless a check asks for another.
pub const LINE_RATE: f64 = 10e9;
/// How long the last frames may take.
const DRAIN: Duration = Duration::from_millis(200);

/// What all stands have in common.
pub struct Host {
    /// Set by someone else to end the run.
    pub stop: Arc<AtomicBool>,
    unwatched: RefCell<Option<String>>,
}

impl Host {
    pub fn new(stop: Arc<AtomicBool>) -> Self {
        Self { stop, unwatched: RefCell::default() }
    }

    /// Why nothing watched the machine on some stand, if so.
    pub fn unwatched(&self) -> Option<String> {
        self.unwatched.borrow().clone()
    }

    /// Watches the machine on a stand, if that is possible.
    fn watch(&self, testbed: &Testbed, engine: &dyn Engine) -> Watch {
        let machine = Machine::watch(testbed, engine, Bounds::default());
        if let Err(error) = &machine {
            self.unwatched.borrow_mut().get_or_insert_with(|| error.to_string());
        }
        Watch { machine: machine.ok(), pauses: Vec::new() }
    }
}

/// A device with an engine and a watch over the machine. Fields are dropped in this order.
pub struct Stand {
    watch: Watch,
    engine: Box<dyn Engine>,
    testbed: Testbed,
    dut: String,
}

/// What became of a load in all directions, final.
pub struct Sent {
    pub intended: f64,
    pub offered: u64,
    pub forwarded: u64,
    pub noise: Noise,
}

impl Sent {
    /// Frames that did not return.
    pub fn lost(&self) -> u64 {
        self.offered.saturating_sub(self.forwarded)
    }

    /// What the machine did, if that accounts for the loss of so many frames.
    pub fn excuse(&self, frames: f64) -> Option<String> {
        let cost = self.noise.cost * self.intended.max(1.0);
        (frames <= cost).then(|| {
            let words =
                self.noise.disturbed.clone().unwrap_or_else(|| "short pauses of the cores".to_owned());
            format!("{words}: up to {cost:.0} frames may be lost to that")
        })
    }
}

impl Stand {
    /// 64-byte frames in one flow through `dut`, a device of the lab.
    pub fn open(dut: &str, directions: Directions, line_rate: f64, host: &Host) -> Result<Self> {
        Self::over(Target::lab(dut.parse()?, line_rate), dut, directions, host)
    }

    /// The same through the same device in user space: by DPDK, or by shared memory where this program was
    /// built without DPDK.
    pub fn in_user_space(dut: &str, directions: Directions, host: &Host) -> Result<Self> {
        let engine = if cfg!(feature = "dpdk") { EngineName::Dpdk } else { EngineName::Memif };
        Self::over(Target::started(dut.parse()?, engine, LINE_RATE), dut, directions, host)
    }

    fn over(target: Target, dut: &str, directions: Directions, host: &Host) -> Result<Self> {
        let profile = Profile::builtin("bench", &Tunables::default())?;
        let testbed = Testbed::open(&target, usize::from(profile.largest_size()))?;
        let table = profile.table(&testbed.endpoints(), directions);
        let (engine, _) = testbed.start_any_engine(&table, &host.stop)?;
        let watch = host.watch(&testbed, &*engine);
        Ok(Self { watch, engine, testbed, dut: dut.to_owned() })
    }

    /// The device, as `--dut` takes it.
    pub fn dut(&self) -> &str {
        &self.dut
    }

    /// Offers `load` for `duration`, and waits for the last frames.
    pub fn send(&mut self, load: Load, duration: Duration) -> Result<Sent> {
        self.watch.noise(Load::Idle);
        let interval = self.engine.begin(load)?;
        self.engine.wait(duration)?;
        self.engine.begin(Load::Idle)?;
        self.engine.wait(DRAIN)?;
        // The cores idled in the drain, which says nothing of the load.
        let noise = self.watch.noise(Load::Max);
        let counts = self.engine.counts(interval)?;
        let sum = |field: fn(&Counts) -> u64| counts.iter().map(field).sum();
        Ok(Sent {
            intended: counts.iter().map(|counts| counts.intended).sum(),
            offered: sum(|counts| counts.offered),
            forwarded: sum(|counts| counts.forwarded),
            noise,
        })
    }

    /// The same of exactly so many frames in each direction.
    pub fn burst(&mut self, pps: f64, frames: u64) -> Result<Sent> {
        let margin = Duration::from_millis(20);
        self.send(Load::Burst { pps, frames }, Duration::from_secs_f64(frames as f64 / pps) + margin)
    }

    /// Offers bursts of so many frames at 2,000 a second for `duration`; the lowest mean latency of one
    /// of the first, third, fifth … and of the others, in ns: what else a machine does only ever adds.
    /// `None` if a frame was lost.
    pub fn alternate(&mut self, frames: u64, duration: Duration) -> Result<Option<[f64; 2]>> {
        const PPS: f64 = 2_000.0;
        let each = Duration::from_secs_f64(frames as f64 / PPS) + Duration::from_millis(10);
        let pairs = (duration.as_secs_f64() / each.as_secs_f64() / 2.0).ceil() as usize;
        self.watch.noise(Load::Idle);
        let mut bursts = Vec::new();
        for _ in 0..2 * pairs {
            bursts.push(self.engine.begin(Load::Burst { pps: PPS, frames })?);
            self.engine.wait(each)?;
        }
        self.engine.begin(Load::Idle)?;
        self.engine.wait(DRAIN)?;
        self.watch.noise(Load::Idle);
        let mut lowest = [f64::INFINITY; 2];
        for (number, burst) in bursts.into_iter().enumerate() {
            let counts = self.engine.counts(burst)?;
            let Some(counts) = counts.first().filter(|counts| counts.forwarded == frames) else {
                return Ok(None);
            };
            let mean = counts.latency_sum as f64 / frames as f64;
            lowest[number % 2] = mean.min(lowest[number % 2]);
        }
        Ok(Some(lowest))
    }

    /// Runs a strategy.
    pub fn run(&mut self, strategy: &dyn Strategy) -> Outcome {
        strategy.run(&mut *self.engine, &mut self.watch)
    }

    /// What the machine did since the stand was opened, in words.
    pub fn disturbed(&self) -> Option<String> {
        self.watch.machine.as_ref().and_then(Machine::note)
    }

    /// The longest time for which a core did not do our work since the stand was opened, the second longest and so on;
    /// none where the kernel does not tell.
    pub fn pauses(&self) -> Vec<Duration> {
        let mut pauses = self.watch.pauses.clone();
        pauses.sort_unstable_by(|one, other| other.cmp(one));
        pauses
    }

    /// All that was sent and returned, one for each direction.
    pub fn totals(&mut self) -> Result<Vec<Totals>> {
        Ok(self.engine.totals()?)
    }

    /// What the device itself counted, all directions added up; zeros if it does not count.
    pub fn device(&self) -> Result<lab::Counters> {
        if let Some([zero, one]) = self.testbed.passed() {
            return Ok(lab::Counters {
                frames: zero.frames + one.frames,
                bytes: zero.bytes + one.bytes,
                forwarded: zero.forwarded + one.forwarded,
                ..lab::Counters::default()
            });
        }
        let counted = self.testbed.lab().map(lab::Lab::dut_counters).transpose()?.flatten();
        let [zero, one] = counted.unwrap_or_default();
        Ok(lab::Counters {
            frames: zero.frames + one.frames,
            bytes: zero.bytes + one.bytes,
            forwarded: zero.forwarded + one.forwarded,
            reordered: zero.reordered + one.reordered,
            duplicated: zero.duplicated + one.duplicated,
            ..lab::Counters::default()
        })
    }

    /// How strategies measure here.
    pub fn conditions(&self) -> Conditions {
        Conditions {
            warm_up: WarmUp { pps: 2_000.0, duration: Duration::from_millis(200) },
            step: Duration::from_millis(50),
            drain: DRAIN,
            loss_threshold: 0.0,
            line_rate_bps: self.testbed.line_rate_bps(),
        }
    }
}

/// Asks after the machine, and keeps how long cores did not do our work.
struct Watch {
    machine: Option<Machine>,
    pauses: Vec<Duration>,
}

impl Observer for Watch {
    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Watch {
    fn noise(&mut self, load: Load) -> Noise {
        let noise = self.machine.as_mut().map(|machine| machine.noise(load)).unwrap_or_default();
        let taken = noise.interruptions.iter().flatten().map(|it| Duration::from_nanos(it.taken_ns));
        self.pauses.extend(taken);
        noise
    }
}
