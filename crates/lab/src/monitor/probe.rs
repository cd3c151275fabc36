//! The thread that probes one core: nothing enters; how fast the core ran and how promptly it
//! served leaves, for any stretch of the last minutes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::speed;
use crate::error::{Error, Needs, Result};
use crate::napi::{self, Turn};

/// How often a core is probed. The probe takes its core for about 20 µs.
const EVERY: Duration = Duration::from_millis(100);
/// Bursts that are kept.
const KEPT: usize = 4096;

/// One waking of the thread.
#[derive(Clone, Copy, Debug)]
struct Burst {
    at: Instant,
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
}

#[derive(Debug, Default)]
struct Shared {
    ended: AtomicBool,
    bursts: Mutex<VecDeque<Burst>>,
}

/// The running thread. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Probe {
    core: usize,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Probe {
    pub(super) fn start(core: usize) -> Result<Self> {
        let shared = Arc::new(Shared::default());
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
        let bursts: Vec<Burst> = {
            let bursts = self.shared.bursts.lock().unwrap_or_else(PoisonError::into_inner);
            let since = bursts.partition_point(|burst| burst.at < from);
            let until = bursts.partition_point(|burst| burst.at <= to);
            bursts.range(since.min(until.saturating_sub(1))..until).copied().collect()
        };
        Seen {
            speed_index: speed::index(self.core, bursts.iter().map(|burst| burst.timing).collect()),
            wake_delay: bursts.iter().map(|burst| burst.delay).max().unwrap_or_default(),
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
        let mut due = Instant::now();
        while !self.ended.load(Ordering::Acquire) {
            let at = Instant::now();
            let delay = at.saturating_duration_since(due);
            let timing = speed::measure();
            speed::remember(core, timing);
            self.add(Burst { at, delay, timing });
            due = at + EVERY;
            thread::park_timeout(due.saturating_duration_since(Instant::now()));
        }
    }

    fn add(&self, burst: Burst) {
        let mut bursts = self.bursts.lock().unwrap_or_else(PoisonError::into_inner);
        if bursts.len() == KEPT {
            bursts.pop_front();
        }
        bursts.push_back(burst);
    }
}
