//! The workers at work: each gets a thread on a core of its own, and forwards until it is told to stop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::{Pid, gettid};
use rights::system_calls::{Duty, give_up};
use scheduling::{Level, MOST_URGENT, Order, Policy, Slice};

use crate::control::config::{Idle, Precedence};
use crate::dataplane::counters::Counters;
use crate::dataplane::worker::Worker;

/// The calling thread.
const THIS: Pid = Pid::from_raw(0);
/// Turns without a frame after which a worker rests: the pause between two packets of a slow flow is longer.
const PATIENCE: u32 = 1000;
/// How long a worker that may sleep does so: what comes meanwhile comes to it together.
const NAP: Duration = Duration::from_micros(50);
/// How long it waits for frames at most once nothing came meanwhile, where its devices wake it: what the router wants of it
/// waits so long.
const WAIT: Duration = Duration::from_millis(1);

/// Why workers cannot work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The core is not one that this process may use.
    #[error("no worker can have core {core}: this process may use {usable}")]
    Core {
        /// As asked for.
        core: usize,
        /// Those that there are.
        usable: String,
    },
    /// A thread does not start.
    #[error("worker {number} does not start: {cause}; raise the limit of processes (ulimit -u)")]
    Start {
        /// From 0 on.
        number: usize,
        /// What the kernel answered.
        cause: io::Error,
    },
}

/// A worker that is to be.
pub struct Job {
    /// Its core.
    pub core: usize,
    /// It.
    pub worker: Worker,
    /// What it counts by.
    pub counters: Arc<Counters>,
}

/// A worker at work.
pub struct Running {
    /// Its core.
    pub core: usize,
    /// What it counts by.
    pub counters: Arc<Counters>,
    /// How the kernel knows its thread.
    pub thread: Pid,
    handle: JoinHandle<()>,
}

/// All workers; they stop when this is dropped.
pub struct Workers {
    /// By number.
    pub running: Vec<Running>,
    stop: Arc<AtomicBool>,
}

/// Checks that workers can have these cores.
///
/// # Errors
/// [`Error::Core`].
pub fn check(cores: &[usize]) -> Result<(), Error> {
    let usable = sched_getaffinity(THIS).unwrap_or_default();
    let is_usable = |core: usize| usable.is_set(core).unwrap_or(false);
    let Some(&core) = cores.iter().find(|core| !is_usable(**core)) else { return Ok(()) };
    let known: Vec<String> =
        (0..CpuSet::count()).filter(|core| is_usable(*core)).map(|core| core.to_string()).collect();
    Err(Error::Core { core, usable: known.join(", ") })
}

/// Starts workers.
///
/// # Errors
/// [`Error`]; those that were started have stopped then.
pub fn start(jobs: Vec<Job>, idle: Idle, precedence: Precedence) -> Result<Workers, Error> {
    let mut workers = Workers { running: Vec::new(), stop: Arc::new(AtomicBool::new(false)) };
    for (number, job) in jobs.into_iter().enumerate() {
        let Job { core, worker, counters } = job;
        let stop = Arc::clone(&workers.stop);
        let (told, ready) = mpsc::sync_channel(1);
        let work = move || {
            let pinned = pin(core);
            let is_pinned = pinned.is_ok();
            // Nobody listens any more only if the start was given up.
            let _ = told.send(pinned.map(|()| gettid()));
            if is_pinned {
                let patience = prefer(precedence, idle);
                // The program says where the kernel filters no calls.
                let _ = give_up(Duty::Frames);
                forward(worker, (idle, patience), &stop);
            }
        };
        let start_error = |cause| Error::Start { number, cause };
        let handle = thread::Builder::new().name(name(number)).spawn(work).map_err(start_error)?;
        let thread = ready.recv().map_err(|_| start_error(io::Error::other("its thread has ended")))?;
        let thread = thread.map_err(|errno| start_error(errno.into()))?;
        workers.running.push(Running { core, counters, thread, handle });
    }
    Ok(workers)
}

/// What the thread of a worker is called.
#[must_use]
pub fn name(number: usize) -> String {
    format!("worker {number}")
}

impl Workers {
    /// Whether all still work; none ends by itself, unless something is wrong with the program.
    #[must_use]
    pub fn all_work(&self) -> bool {
        self.running.iter().all(|worker| !worker.handle.is_finished())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for worker in self.running.drain(..) {
            // One that panicked has said so.
            let _ = worker.handle.join();
        }
    }
}

fn pin(core: usize) -> Result<(), Errno> {
    let mut cores = CpuSet::new();
    cores.set(core)?;
    sched_setaffinity(THIS, &cores)
}

/// Gives the calling thread precedence on its core, and says after how many turns without a frame it is to rest.
///
/// One that may sleep goes before all ordinary threads: those of the kernel that bring it frames have the core while it
/// rests, and bring as many as fit meanwhile. If they went first, under more load than it bears they would receive
/// frames all the time, for which it has none. It rests at once, since nothing arrives before. One that never sleeps would
/// be stopped in the real-time class. Without the right to more, a worker is as any other thread: `show threads`
/// tells.
fn prefer(precedence: Precedence, idle: Idle) -> u32 {
    if precedence == Precedence::Ordinary {
        return PATIENCE;
    }
    let first = Policy::RealTime { level: Level::Generator, order: Order::FirstInFirstOut };
    if idle == Idle::Sleep && scheduling::set(THIS, first).is_ok() {
        return 1;
    }
    let _ = scheduling::set(THIS, Policy::Ordinary { nice: MOST_URGENT, slice: Slice::Usual });
    PATIENCE
}

fn forward(mut worker: Worker, (idle, patience): (Idle, u32), stop: &AtomicBool) {
    let mut in_vain = 0;
    let mut napped = false;
    while !stop.load(Relaxed) {
        if worker.turn() > 0 {
            (in_vain, napped) = (0, false);
            continue;
        }
        in_vain = (in_vain + 1).min(patience);
        if in_vain < patience {
            continue;
        }
        match idle {
            Idle::Poll => std::hint::spin_loop(),
            // Waking costs the core's other threads more than the nap, so that it is not done for nothing.
            Idle::Sleep if napped && worker.wait(WAIT) => {}
            Idle::Sleep => {
                thread::sleep(NAP);
                napped = true;
            }
        }
    }
}
