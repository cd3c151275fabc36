//! A program as an engine: what it sends is counted where it sends ([`super::ground`]), whatever it is.
//!
//! It has one load, as fast as it can. Frames bear no numbers, so an interval's are those that were
//! counted while it lasted: some hundred on their way may count for the next one at the far end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use engine::{Capabilities, Counts, Engine, Error, Interval, Load, Totals};
use monitor::CoreClock;
use programs::Said;
use testbed::stop;

use super::ground::{Count, Ground, words_of};

/// How long a program has to begin to send.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often to look; seldom, since cores are being measured.
const LOOK: Duration = Duration::from_millis(20);
/// Packets that no generator sends by itself: when there are more, it sends.
const ENOUGH: u64 = 1_000;

/// A program that sends.
pub struct ProgramEngine<'a> {
    ground: Box<dyn Ground + 'a>,
    stop: Arc<AtomicBool>,
    /// Whether the user's wish to stop was told.
    told: bool,
    clock: Instant,
    name: &'static str,
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

impl<'a> ProgramEngine<'a> {
    /// The program called `name`, which was started on `core` when `before` was counted: returns when it
    /// sends.
    ///
    /// # Errors
    /// When it ends, or sends nothing: with what it said last.
    pub fn start(
        name: &'static str,
        (ground, before): (Box<dyn Ground + 'a>, Count),
        core: usize,
        mean_frame_size: f64,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self> {
        let mut engine = Self {
            ground,
            stop: Arc::clone(stop),
            told: false,
            clock: Instant::now(),
            name,
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
        while self.ground.count()?.since(self.before).left < ENOUGH {
            if stop::is_set(&self.stop) {
                bail!("interrupted");
            }
            self.check()?;
            if self.clock.elapsed() > PATIENCE {
                self.ground.interrupt();
                let why = words_of(&self.ground.finish()?);
                bail!("{} sent nothing in {PATIENCE:?}: {why}", self.name);
            }
            thread::sleep(LOOK);
        }
        self.ground.settle()
    }

    /// Refuses to go on when it has ended by itself.
    fn check(&mut self) -> Result<()> {
        if !self.asked && self.ground.has_ended()? {
            bail!("{} ended by itself: {}", self.name, words_of(&self.ground.said()?));
        }
        Ok(())
    }

    /// Asks the program to end, once: many end at once when they are asked again.
    fn ask(&mut self) {
        if !std::mem::replace(&mut self.asked, true) {
            self.ground.interrupt();
        }
    }

    /// Ends the program.
    ///
    /// # Errors
    /// When it cannot be found out what it left.
    pub fn finish(mut self) -> Result<Left> {
        self.ask();
        let said = self.ground.finish()?;
        let Count { left, refused, .. } = self.ground.count()?.since(self.before);
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
        let mut mark = self.ground.count().map_err(failed)?;
        if self.marks.is_empty() {
            // What is still on the cable left before the run: it does not arrive in it.
            let sent = mark.since(self.before).left;
            mark.arrived = mark.arrived.max(self.before.arrived + sent);
        }
        self.marks.push(mark);
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
            None => self.ground.count().map_err(failed)?,
        };
        Ok(vec![self.counts_of(ended.since(began))])
    }

    /// Since the first interval began, as for every engine.
    fn totals(&mut self) -> Result<Vec<Totals>, Error> {
        let first = self.marks.first().copied().unwrap_or(self.before);
        let count = self.ground.count().map_err(failed)?.since(first);
        Ok(vec![Totals { offered: count.offered(), forwarded: count.arrived, ..Totals::default() }])
    }
}

fn failed(error: anyhow::Error) -> Error {
    Error::Failed(format!("{error:#}"))
}
