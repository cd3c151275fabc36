//! A cross connect in user space that holds every frame for a known time, and reorders and
//! duplicates known shares of them: the truth about latency and order.
//!
//! One thread on the device's core reads both interfaces by packet sockets and does not sleep while
//! there is a load, so a frame leaves within about a microsecond of its time, at loads up to some
//! 50,000 frames a second.
//!
//! The time for which a frame is held is all that a delay adds: it begins where a frame without one
//! would leave, and both take the same way before and after that.

mod line;
mod socket;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lab::napi::{self, Turn};
use lab::{Addressing, Counters, Error, Needs, Result, Running, Site, pass};
use nix::unistd::gettid;

use super::spec::Parameters;
use super::{Description, Device, Kind, Parameter, SpecError};
use line::{Line, Rules, Share};
use socket::FrameSocket;

pub(super) const KIND: Kind = Kind {
    description: Description {
        name: "delayed",
        summary: "a cross connect in user space that holds frames for exactly so long, or changes their order",
        parameters: &[
            Parameter {
                key: "delay",
                values: "a time up to 1s, like 200us",
                meaning: "how long each frame is held, 16384 in each direction at most; not at all unless given",
            },
            Parameter {
                key: "alternate",
                values: "a number of frames",
                meaning: "only every second run of so many frames in each direction is held, not the first; all unless given",
            },
            Parameter {
                key: "reorder",
                values: "a share up to 50%, in steps of 0.0001%",
                meaning: "frames that leave after the next one, if that comes within 100 ms; none unless given",
            },
            Parameter {
                key: "duplicate",
                values: "a share up to 100%, in steps of 0.0001%",
                meaning: "frames that leave twice; none unless given",
            },
        ],
    },
    parse,
};

/// The longest delay.
const LONGEST: Duration = Duration::from_secs(1);
/// Frames that are read before it is looked whether others are due.
const BATCH: usize = 16;
/// The thread sleeps once nothing has come or been held for this long: before that, a wake-up would be
/// part of some latencies and not of others; later, the core would be missing to all who start or end
/// something there, each of whom took half a second.
const IDLE: Duration = Duration::from_millis(100);
/// How long it sleeps until it looks whether it is to end.
const NAP_MS: i32 = 10;

#[derive(Debug)]
struct Delayed(Rules);

fn parse(parameters: &Parameters) -> Result<Box<dyn Device>, SpecError> {
    let delay = |text: &str| humantime::parse_duration(text).ok().filter(|delay| *delay <= LONGEST);
    let share = |most: f64| move |text: &str| Share::parse(text, most);
    Ok(Box::new(Delayed(Rules {
        delay: parameters.get("delay", delay)?.unwrap_or_default(),
        alternate: parameters.get("alternate", |text| text.parse().ok())?,
        reorder: parameters.get("reorder", share(0.5))?.unwrap_or_default(),
        duplicate: parameters.get("duplicate", share(1.0))?.unwrap_or_default(),
    })))
}

impl Device for Delayed {
    fn addressing(&self) -> Addressing {
        Addressing::OtherPort
    }

    fn start(&self, site: &Site) -> Result<Running> {
        // For NAPI without GRO, which would merge frames.
        let running = pass::start(site)?;
        let sockets = site.namespace.run(|| {
            let [zero, one] = site.indexes();
            Ok([FrameSocket::open(zero)?, FrameSocket::open(one)?])
        })?;
        let counted = Arc::default();
        let forwarder = Forwarder { sockets, rules: self.0, counted: Arc::clone(&counted) };
        let thread = ForwarderThread::start(forwarder, site.core, counted)?;
        let threads = vec![thread.id];
        Ok(Running { counters: Some(Box::new(move || Ok(*counters(&thread.counted)))), threads, ..running })
    }
}

/// What the thread has counted, for others to read.
type Counted = Mutex<[Counters; 2]>;

fn counters(counted: &Counted) -> MutexGuard<'_, [Counters; 2]> {
    counted.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that forwards until it is dropped.
struct ForwarderThread {
    counted: Arc<Counted>,
    stop: Arc<AtomicBool>,
    /// The kernel's number of it.
    id: i32,
    thread: Option<JoinHandle<()>>,
}

impl ForwarderThread {
    fn start(forwarder: Forwarder, core: usize, counted: Arc<Counted>) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (tell, told) = sync_channel(1);
        let run = move || {
            let pinned = napi::pin(0, core, Turn::Meanwhile);
            let may_run = pinned.is_ok();
            let _ = tell.send(pinned.map(|()| gettid().as_raw()));
            if may_run {
                forwarder.run(&stopped);
            }
        };
        let thread = thread::Builder::new().name(KIND.description.name.to_owned()).spawn(run);
        let thread = thread.map_err(|cause| {
            Error::kernel("cannot start a thread", cause, Needs::SysAdmin, "Raise 'ulimit -u'")
        })?;
        match told.recv() {
            Ok(pinned) => pinned.map(|id| Self { counted, stop, id, thread: Some(thread) }),
            Err(_) => Err(Error::Unexpected("the device's thread ended as it began".to_owned())),
        }
    }
}

impl Drop for ForwarderThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Carries frames between two sockets.
struct Forwarder {
    sockets: [FrameSocket; 2],
    rules: Rules,
    counted: Arc<Counted>,
}

impl Forwarder {
    fn run(self, stop: &AtomicBool) {
        let [mut zero, mut one] = self.sockets;
        let mut lines = [Line::new(self.rules), Line::new(self.rules)];
        let mut told = [Counters::default(); 2];
        let mut busy = None;
        while !stop.load(Ordering::Relaxed) {
            carry(&mut zero, &one, &mut lines[0]);
            carry(&mut one, &zero, &mut lines[1]);
            let counted = [lines[0].counted(), lines[1].counted()];
            let holds = lines.iter().any(|line| !line.is_empty());
            if counted != told {
                *counters(&self.counted) = counted;
                told = counted;
                busy = Some(Instant::now());
            } else if !holds && busy.is_none_or(|busy| busy.elapsed() > IDLE) {
                socket::wait([&zero, &one], NAP_MS);
            }
        }
    }
}

/// Reads what has come in and sends what is due.
fn carry(from: &mut FrameSocket, to: &FrameSocket, line: &mut Line) {
    for _ in 0..BATCH {
        let Some(frame) = from.receive() else { break };
        // Broadcast and multicast is not load, and waits for nobody.
        if frame.first().is_some_and(|byte| byte & 1 == 1) {
            to.send(frame);
            continue;
        }
        // What is not held leaves at the very time from which it would be.
        let now = Instant::now();
        line.enter(frame, now);
        line.leave(now, |frame| to.send(frame));
    }
    if !line.is_empty() {
        line.leave(Instant::now(), |frame| to.send(frame));
    }
}
