//! A program as an engine: what it sends is counted by the kernel, at the port that it sends by
//! and at the other end of that cable, whatever it is.
//!
//! It has one load, as fast as it can. Frames bear no numbers, so an interval's are those that were
//! counted while it lasted: some hundred on their way may count for the next one at the far end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use engine::{Capabilities, Counts, Engine, Error, Interval, Load, Totals};
use lab::{CoreClock, Lab, Placement};

use super::process::{Process, Said};
use super::program::{Launch, Program};
use crate::stop;

/// How long a program has to begin to send.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a server has to listen.
const SERVER_PATIENCE: Duration = Duration::from_secs(5);
/// How often to look; seldom, since cores are being measured.
const LOOK: Duration = Duration::from_millis(20);
/// Packets that no generator sends by itself: when there are more, it sends.
const ENOUGH: u64 = 1_000;
/// The state of a socket that listens, in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// A program that sends into a lab.
pub struct ProgramEngine<'a> {
    lab: &'a Lab,
    stop: Arc<AtomicBool>,
    /// Whether the user's wish to stop was told.
    told: bool,
    clock: Instant,
    name: &'static str,
    process: Process,
    /// What must run at the far end, while it must.
    _server: Option<Process>,
    mean_frame_size: f64,
    /// What was counted before it began.
    before: Count,
    /// What was counted when each interval began.
    marks: Vec<Count>,
    /// Whether it was asked to end.
    asked: bool,
    core: usize,
    /// Its core's use since the first interval began.
    core_clock: Option<CoreClock>,
    core_busy: Option<f64>,
}

/// What a program leaves when it has ended.
#[derive(Debug)]
pub struct Left {
    pub said: Said,
    /// The packets that left from its start to its end.
    pub left: u64,
    /// Those that a full queue refused meanwhile.
    pub refused: u64,
    /// How busy its core was while it was measured, 0 to 1, where that is known.
    pub core_busy: Option<f64>,
}

/// The packets counted so far at both ends of the cable of port 0.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    left: u64,
    /// By a full queue, instead of leaving.
    refused: u64,
    arrived: u64,
}

impl Count {
    fn take(lab: &Lab) -> lab::Result<Self> {
        let counters = lab.interface_counters()?;
        let [port, _, device, _] = counters.as_slice() else { return Ok(Self::default()) };
        Ok(Self { left: port.sent, refused: port.send_dropped, arrived: device.received })
    }

    /// What the program offered: what a full queue refuses was offered, too.
    fn offered(self) -> u64 {
        self.left + self.refused
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            left: self.left.saturating_sub(earlier.left),
            refused: self.refused.saturating_sub(earlier.refused),
            arrived: self.arrived.saturating_sub(earlier.arrived),
        }
    }
}

impl<'a> ProgramEngine<'a> {
    /// Starts `program` as `launch` says, and returns when it sends.
    ///
    /// # Errors
    /// When it does not start, ends, or sends nothing: with what it said last.
    pub fn start(
        program: &'static dyn Program,
        launch: &Launch,
        lab: &'a Lab,
        mean_frame_size: f64,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self> {
        let Placement { generate, dut, .. } = lab.placement();
        let core = generate.first().copied().context("no core generates")?;
        let server = launch.server.as_ref().map(|words| serve(lab, *dut, words)).transpose()?;
        let before = Count::take(lab)?;
        let input = launch.input.as_ref().map(|input| input.bytes.as_slice());
        let process = Process::start(Some(lab.tester_namespace()), core, &launch.words, input)?;
        let mut engine = Self {
            lab,
            stop: Arc::clone(stop),
            told: false,
            clock: Instant::now(),
            name: program.name(),
            process,
            _server: server,
            mean_frame_size,
            before,
            marks: Vec::new(),
            asked: false,
            core,
            core_clock: None,
            core_busy: None,
        };
        engine.wait_for_packets()?;
        Ok(engine)
    }

    fn wait_for_packets(&mut self) -> Result<()> {
        while Count::take(self.lab)?.since(self.before).left < ENOUGH {
            if stop::is_set(&self.stop) {
                bail!("interrupted");
            }
            self.check()?;
            if self.clock.elapsed() > PATIENCE {
                self.process.interrupt();
                let why = words_of(&self.process.finish()?);
                bail!("{} sent nothing in {PATIENCE:?}: {why}", self.name);
            }
            thread::sleep(LOOK);
        }
        // A program may use XDP on the port, and the kernel then replaces the threads that receive.
        self.lab.pin()?;
        Ok(())
    }

    /// Refuses to go on when it has ended by itself.
    fn check(&mut self) -> Result<()> {
        if !self.asked && self.process.has_ended()? {
            bail!("{} ended by itself: {}", self.name, words_of(&self.process.said()?));
        }
        Ok(())
    }

    /// Asks the program to end, once: many end at once when they are asked again.
    fn ask(&mut self) {
        if !std::mem::replace(&mut self.asked, true) {
            self.process.interrupt();
        }
    }

    /// Ends the program.
    ///
    /// # Errors
    /// When it cannot be found out what it left.
    pub fn finish(mut self) -> Result<Left> {
        self.ask();
        let said = self.process.finish()?;
        let Count { left, refused, .. } = Count::take(self.lab)?.since(self.before);
        Ok(Left { said, left, refused, core_busy: self.core_busy })
    }

    fn counts_of(&self, count: Count) -> Counts {
        let bytes = |frames: u64| (frames as f64 * self.mean_frame_size) as u64;
        Counts {
            intended: count.offered() as f64,
            offered: count.offered(),
            offered_bytes: bytes(count.offered()),
            forwarded: count.arrived,
            forwarded_bytes: bytes(count.arrived),
            ..Counts::default()
        }
    }
}

impl Engine for ProgramEngine<'_> {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: self.name, max_frame_size: usize::from(wire::size::MAX), unseen: &[] }
    }

    fn directions(&self) -> usize {
        1
    }

    fn begin(&mut self, load: Load) -> Result<Interval, Error> {
        match load {
            Load::Max if self.core_clock.is_none() => self.core_clock = CoreClock::new(self.core).ok(),
            Load::Max => {}
            Load::Idle => {
                self.core_busy = self.core_clock.take().and_then(|mut clock| Some(clock.sample().ok()?.busy));
                self.ask();
            }
            Load::Rate(_) | Load::Burst { .. } => {
                return Err(Error::Refused(format!("{} sends as fast as it can, and at no rate", self.name)));
            }
        }
        self.marks.push(Count::take(self.lab).map_err(|error| failed(error.into()))?);
        Ok(self.marks.len() as Interval - 1)
    }

    fn wait(&mut self, duration: Duration) -> Result<(), Error> {
        let deadline = Instant::now() + duration;
        loop {
            if stop::is_set(&self.stop) && !self.told {
                self.told = true;
                return Err(Error::Interrupted);
            }
            self.check().map_err(failed)?;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(LOOK));
        }
    }

    fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    fn counts(&mut self, interval: Interval) -> Result<Vec<Counts>, Error> {
        let at = usize::try_from(interval).unwrap_or(usize::MAX);
        let began = self.marks.get(at).copied();
        let began = began.ok_or_else(|| Error::Failed(format!("interval {interval} has not begun")))?;
        let ended = match self.marks.get(at + 1) {
            Some(next) => *next,
            None => Count::take(self.lab).map_err(|error| failed(error.into()))?,
        };
        Ok(vec![self.counts_of(ended.since(began))])
    }

    /// Since the first interval began, as for every engine.
    fn totals(&mut self) -> Result<Vec<Totals>, Error> {
        let first = self.marks.first().copied().unwrap_or(self.before);
        let count = Count::take(self.lab).map_err(|error| failed(error.into()))?.since(first);
        Ok(vec![Totals { offered: count.offered(), forwarded: count.arrived, ..Totals::default() }])
    }
}

fn failed(error: anyhow::Error) -> Error {
    Error::Failed(format!("{error:#}"))
}

fn words_of(said: &Said) -> String {
    said.last_words().unwrap_or("it does not say why").to_owned()
}

/// Starts what must run at the far end, on the device's core, and waits until it listens.
fn serve(lab: &Lab, core: usize, words: &[String]) -> Result<Process> {
    let mut server = Process::start(Some(lab.dut_namespace()), core, words, None)?;
    let deadline = Instant::now() + SERVER_PATIENCE;
    let sockets =
        [4, 6].map(|version| format!("/proc/{}/net/tcp{}", server.id(), if version == 6 { "6" } else { "" }));
    let listens = |path: &String| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().any(|line| line.split_whitespace().nth(3) == Some(LISTENS))
    };
    while !sockets.iter().any(listens) {
        if server.has_ended()? || Instant::now() > deadline {
            server.interrupt();
            bail!("'{}' does not listen at the far end: {}", words.join(" "), words_of(&server.finish()?));
        }
        thread::sleep(LOOK);
    }
    Ok(server)
}
