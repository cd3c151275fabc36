//! The thread that probes one core: nothing enters; how fast the core ran, how promptly it served
//! and how far it was from the others leaves, for any stretch of the last minutes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lab::napi::{self, Turn};
use lab::{Error, Needs, Result};

use crate::handover::Handover;
use crate::past::Past;
use crate::speed;
use crate::usual::Usual;

/// How often a core is probed, all at the same time. The probe takes its core for about 30 µs; the
/// first core's may wait some 100 µs more for the others'.
const EVERY: Duration = Duration::from_millis(100);
/// How late the kernel may wake a probe to save power, so that those of all cores come together.
const SLACK_NS: u64 = 1_000;

/// What is usual on each core.
static USUAL: Usual = Usual::new();

/// One waking of the thread.
#[derive(Clone, Copy, Debug)]
struct Burst {
    /// How much later than asked for it ran.
    delay: Duration,
    /// How long the fixed work took.
    timing: Duration,
}

/// What a probe saw in a stretch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// The core's speed as a share of the usual one; `None` if it was not probed.
    pub(super) speed_index: Option<f64>,
    /// The longest that the thread waited for the core when it should have run.
    pub(super) wake_delay: Duration,
    /// How quickly a cache line came and went between the first core and this, as a share of the
    /// usual; `None` of the first core, or if they did not meet.
    pub(super) nearness: Option<f64>,
}

/// Whom a probe meets.
#[derive(Debug)]
enum Role {
    /// The first core's meets each of the others in turn.
    Host(Vec<Arc<Handover>>),
    /// The others meet the first.
    Guest { handover: Arc<Handover>, turn: u64, guests: u64 },
}

impl Role {
    fn meet(&self, round: u64) {
        match self {
            Self::Host(guests) => {
                let at = usize::try_from(round).unwrap_or_default().checked_rem(guests.len());
                at.and_then(|at| guests.get(at)).iter().for_each(|guest| guest.host(round));
            }
            Self::Guest { handover, turn, guests } if round % guests == *turn => handover.join(round),
            Self::Guest { .. } => {}
        }
    }

    fn handover(&self) -> Option<&Handover> {
        match self {
            Self::Host(_) => None,
            Self::Guest { handover, .. } => Some(handover),
        }
    }
}

#[derive(Debug)]
struct Shared {
    role: Role,
    /// When the first round is.
    begin: Instant,
    ended: AtomicBool,
    bursts: Past<Burst>,
}

/// The running thread. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Probe {
    core: usize,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Probe {
    /// A probe for each of `cores`.
    pub(super) fn start_all(cores: &[usize]) -> Result<Vec<Self>> {
        let Some((first, others)) = cores.split_first() else { return Ok(Vec::new()) };
        let handovers: Vec<_> = others.iter().map(|core| Arc::new(Handover::new(*core))).collect();
        let guest = |(turn, handover): (u64, &Arc<Handover>)| Role::Guest {
            handover: Arc::clone(handover),
            turn,
            guests: others.len() as u64,
        };
        let guests: Vec<Role> = (0..).zip(&handovers).map(guest).collect();
        let roles = [Role::Host(handovers)].into_iter().chain(guests);
        let begin = Instant::now() + EVERY / 10;
        let all = [first].into_iter().chain(others).zip(roles);
        all.map(|(core, role)| Self::start(*core, role, begin)).collect()
    }

    fn start(core: usize, role: Role, begin: Instant) -> Result<Self> {
        let shared = Arc::new(Shared { role, begin, ended: AtomicBool::default(), bursts: Past::new() });
        let (ready, started) = mpsc::channel();
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name(format!("probe/{core}"))
            .spawn(move || {
                let pinned = napi::pin(0, core, Turn::BeforeAll);
                let stay = pinned.is_ok();
                let _ = ready.send(pinned);
                if stay {
                    theirs.watch(core);
                }
            })
            .map_err(|cause| {
                Error::kernel("cannot start a thread", cause, Needs::SysNice, "Raise 'ulimit -u'")
            })?;
        let probe = Self { core, shared, thread: Some(thread) };
        let died = || Error::Unexpected(format!("the thread that probes core {core} ended"));
        started.recv().map_err(|_| died())??;
        Ok(probe)
    }

    pub(super) fn core(&self) -> usize {
        self.core
    }

    /// What was seen from `from` to `to`. A stretch too short to have a burst of its own is
    /// judged by the last one before its end.
    pub(super) fn between(&self, from: Instant, to: Instant) -> Seen {
        let bursts = self.shared.bursts.between(from, to);
        Seen {
            speed_index: USUAL.index(self.core, bursts.iter().map(|burst| burst.timing).collect()),
            wake_delay: bursts.iter().map(|burst| burst.delay).max().unwrap_or_default(),
            nearness: self.shared.role.handover().and_then(|handover| handover.index(from, to)),
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn watch(&self, core: usize) {
        // Where that is refused, they meet less often.
        _ = nix::sys::prctl::set_timerslack(SLACK_NS);
        let (mut round, mut due) = (1, self.begin);
        loop {
            thread::park_timeout(due.saturating_duration_since(Instant::now()));
            if self.ended.load(Ordering::Acquire) {
                return;
            }
            let at = Instant::now();
            let Some(delay) = at.checked_duration_since(due) else { continue };
            self.role.meet(round);
            let timing = speed::measure();
            USUAL.remember(core, timing);
            self.bursts.add(at, Burst { delay, timing });
            // A round that was slept through is left out.
            let past = self.begin.elapsed().as_nanos() / EVERY.as_nanos();
            round = u64::try_from(past).unwrap_or_default() + 2;
            due = self.begin + EVERY * u32::try_from(round - 1).unwrap_or(u32::MAX);
        }
    }
}
