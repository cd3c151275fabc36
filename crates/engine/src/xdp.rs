//! The kernel engine: frames are generated, received and counted by XDP programs.
//!
//! A frame table and two ports enter; counts per interval leave. `generate.bpf.c` paces and
//! sends, `receive.bpf.c` counts; `generator` and `receiver` are their user-space halves.

mod generator;
pub mod precedence;
mod program;
mod receiver;
mod timeline;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use libbpf_rs::libbpf_sys::{bpf_xdp_query, bpf_xdp_query_opts};
use nix::sched::{CloneFlags, setns};
use nix::time::{ClockId, clock_gettime};
use traffic::FrameTable;

pub use generator::{Generator, Sent};
pub use receiver::{Received, Receiver};

use crate::{Capabilities, Counts, Engine, Error, Interval, Load, Timeline, Totals};

/// Intervals whose counts are kept, as in `shared.h`.
const INTERVALS: usize = 4096;
/// Directions, as in `shared.h`.
const DIRECTIONS: usize = 2;
/// The largest frame, FCS included, that a page holds beside the bookkeeping of a live frame: 4096
/// bytes less 256 of headroom, 112 of `xdp_page_head` and 320 of `skb_shared_info`, and the FCS.
pub const MAX_FRAME: usize = 3412;
/// What the time stamps cannot see.
const UNSEEN: [&str; 2] = [
    "the clock is read when a kernel program writes the frame and when one sees it at the other port: what the tester's queues, cards, interrupt moderation and line add in between is part of every figure, and cannot be told from what the device adds",
    "frames that are due together share a reading of the clock, up to eight of them, and leave in batches: up to about 5 us of a figure are the tester's",
];
/// How often a waiting engine looks whether it should stop.
const POLL: Duration = Duration::from_millis(20);

/// An interface of the tester.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRef {
    /// Its name.
    pub name: String,
    /// Its index in its namespace.
    pub index: u32,
}

/// What an [`XdpEngine`] is made of.
pub struct Config<'a> {
    /// Port 0 and port 1.
    pub ports: [PortRef; 2],
    /// The network namespace they are in; `None` for the current one.
    pub namespace: Option<BorrowedFd<'a>>,
    /// The cores that generate, one worker each.
    pub cores: &'a [usize],
    /// What to send.
    pub table: &'a FrameTable,
    /// Set by someone else to end the run.
    pub stop: Arc<AtomicBool>,
}

/// The kernel engine on two ports. Dropping it ends its workers and detaches its programs.
pub struct XdpEngine {
    generator: Generator,
    receiver: Receiver,
    directions: usize,
    stop: Arc<AtomicBool>,
    /// Whether a wait has said so already.
    interrupted: bool,
    made: u64,
    /// When each interval was asked for (nanoseconds, monotonic clock), and its load.
    asked: Vec<(u64, Load)>,
    /// What was sent in each direction in the intervals before `settled_until`.
    settled: Vec<Sent>,
    settled_until: Interval,
}

impl XdpEngine {
    /// Attaches the receiver to both ports and starts idle workers.
    ///
    /// # Errors
    /// As [`Receiver::attach`] and [`Generator::start`].
    pub fn start(config: &Config<'_>) -> Result<Self, Error> {
        let streams = 1 + config.table.rows.iter().map(|row| usize::from(row.stream)).max().unwrap_or(0);
        let receiver = Receiver::attach(&config.ports, config.namespace, streams, config.cores.len())?;
        let generator = Generator::start(config.table, &config.ports, config.namespace, config.cores)?;
        let directions = config.table.directions();
        Ok(Self {
            generator,
            receiver,
            directions,
            stop: Arc::clone(&config.stop),
            interrupted: false,
            made: monotonic()?,
            asked: Vec::new(),
            settled: vec![Sent::default(); directions],
            settled_until: 0,
        })
    }

    /// How each port runs the receiver: `native` or `generic`.
    #[must_use]
    pub fn modes(&self) -> &[&'static str] {
        self.receiver.modes()
    }

    /// How long `interval` lasted, or lasts until now, in seconds: what the workers say, on average.
    /// One that has not moved on ends it when the next is asked for: it has yet to hear of that.
    fn length_of(&self, interval: Interval) -> Result<f64, Error> {
        let slot = slot_number(interval);
        let begun = self.generator.begun(slot)?;
        let ended = match self.asked.get(interval as usize + 1) {
            Some((asked, _)) => {
                let moved_on = self.generator.begun(slot + 1)?.into_iter();
                moved_on.map(|begun| begun.unwrap_or(*asked)).collect()
            }
            None => vec![monotonic()?; begun.len()],
        };
        let lengths = begun
            .iter()
            .zip(&ended)
            .map(|(begun, ended)| begun.map_or(0, |begun| ended.saturating_sub(begun)));
        Ok(lengths.sum::<u64>() as f64 / begun.len() as f64 / 1e9)
    }

    /// Adds up the intervals that all workers have left, before their places are used again.
    fn settle(&mut self) -> Result<(), Error> {
        while slot_number(self.settled_until) < self.generator.reached() {
            for direction in 0..self.directions {
                let sent = self.sent(self.settled_until, direction)?;
                self.settled[direction].frames += sent.frames;
                self.settled[direction].unsent += sent.unsent;
            }
            self.settled_until += 1;
        }
        Ok(())
    }

    /// What the workers sent of `interval` in `direction`; unsent frames, which they count for
    /// all directions together, are shared out.
    fn sent(&self, interval: Interval, direction: usize) -> Result<Sent, Error> {
        let sent = self.generator.sent(slot_number(interval), direction)?;
        let unsent = self.generator.sent(slot_number(interval), 0)?.unsent;
        let share = unsent / self.directions as u64;
        let rest = if direction == 0 { unsent % self.directions as u64 } else { 0 };
        Ok(Sent { unsent: share + rest, ..sent })
    }
}

/// The number that workers and frames know an interval by: 0 is the idle one they start with.
fn slot_number(interval: Interval) -> u64 {
    interval + 1
}

impl Engine for XdpEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "xdp", max_frame_size: MAX_FRAME, unseen: &UNSEEN }
    }

    fn directions(&self) -> usize {
        self.directions
    }

    fn begin(&mut self, load: Load) -> Result<Interval, Error> {
        self.settle()?;
        let interval = self.asked.len() as Interval;
        let slot = slot_number(interval);
        if slot >= INTERVALS as u64 {
            self.receiver.forget(slot)?;
        }
        let start = monotonic()?;
        self.generator.begin(slot, load, start)?;
        self.asked.push((start, load));
        Ok(interval)
    }

    fn wait(&mut self, duration: Duration) -> Result<(), Error> {
        let end = monotonic()? + duration.as_nanos() as u64;
        loop {
            if !self.interrupted && self.stop.load(Ordering::SeqCst) {
                self.interrupted = true;
                return Err(Error::Interrupted);
            }
            self.generator.check_workers()?;
            let left = Duration::from_nanos(end.saturating_sub(monotonic()?));
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(POLL));
        }
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(monotonic().unwrap_or(self.made).saturating_sub(self.made))
    }

    fn counts(&mut self, interval: Interval) -> Result<Vec<Counts>, Error> {
        let Some((_, load)) = self.asked.get(interval as usize).copied() else {
            return Err(Error::Refused(format!("interval {interval} has not begun")));
        };
        let age = self.asked.len() as u64 - interval;
        if age >= INTERVALS as u64 {
            return Err(Error::Refused(format!("interval {interval} is too old: {INTERVALS} are kept")));
        }
        (0..self.directions)
            .map(|direction| {
                let sent = self.sent(interval, direction)?;
                let received = self.receiver.received(slot_number(interval), direction)?;
                Ok(Counts {
                    intended: match load {
                        Load::Idle => 0.0,
                        Load::Rate(pps) => pps * self.length_of(interval)?,
                        Load::Burst { frames, .. } => frames as f64,
                        Load::Max => sent.frames as f64,
                    },
                    offered: sent.frames,
                    offered_bytes: sent.bytes + 4 * sent.frames,
                    forwarded: received.frames,
                    forwarded_bytes: received.bytes + 4 * received.frames,
                    unsent: sent.unsent,
                    latency_min: received.latency_min,
                    latency_max: received.latency_max,
                    latency_sum: received.latency_sum,
                })
            })
            .collect()
    }

    fn timeline(&mut self, interval: Interval) -> Result<Option<Vec<Timeline>>, Error> {
        let Some((start, _)) = self.asked.get(interval as usize).copied() else { return Ok(None) };
        let end = monotonic()?;
        (0..self.directions)
            .map(|direction| {
                let (sent, received) = (self.generator.bins(direction)?, self.receiver.bins(direction)?);
                Ok(timeline::of(&sent, &received, start, end))
            })
            .collect()
    }

    fn totals(&mut self) -> Result<Vec<Totals>, Error> {
        (0..self.directions)
            .map(|direction| {
                let mut totals = self.receiver.totals(direction)?;
                totals.offered = self.settled[direction].frames;
                totals.unsent = self.settled[direction].unsent;
                for interval in self.settled_until..self.asked.len() as Interval {
                    let sent = self.sent(interval, direction)?;
                    totals.offered += sent.frames;
                    totals.unsent += sent.unsent;
                }
                totals.lateness = self.generator.lateness(direction)?;
                Ok(totals)
            })
            .collect()
    }
}

/// The two ports' indexes as the programs want them; 0 for one that is not there.
fn indexes(ports: &[PortRef]) -> [u32; DIRECTIONS] {
    let index = |port: usize| ports.get(port).map_or(0, |port| port.index);
    [index(0), index(1)]
}

/// What the kernel says of XDP on interface `index`, in the current namespace.
fn xdp_state(index: u32) -> Option<bpf_xdp_query_opts> {
    let mut state =
        bpf_xdp_query_opts { sz: size_of::<bpf_xdp_query_opts>() as _, ..bpf_xdp_query_opts::default() };
    // SAFETY: `state` is valid for writes and says its own size.
    (unsafe { bpf_xdp_query(index as i32, 0, &raw mut state) } == 0).then_some(state)
}

/// Nanoseconds of the monotonic clock, the one that XDP programs read.
pub fn monotonic() -> Result<u64, Error> {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_err(|error| Error::Failed(format!("the monotonic clock cannot be read: {error}")))?;
    Ok(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Moves the calling thread into `namespace`, if there is one.
fn enter_namespace(namespace: Option<BorrowedFd>) -> Result<(), Error> {
    let Some(namespace) = namespace else { return Ok(()) };
    setns(namespace, CloneFlags::CLONE_NEWNET).map_err(|error| {
        Error::Refused(format!(
            "cannot enter a network namespace: {error}; run as root, or with CAP_SYS_ADMIN"
        ))
    })
}

/// Runs `work` on a thread of its own inside `namespace`, so that the caller stays where it is.
fn in_namespace<T: Send>(
    namespace: Option<BorrowedFd>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            enter_namespace(namespace)?;
            work()
        });
        thread.join().unwrap_or_else(|_| Err(Error::Failed("a thread panicked; this is a defect".into())))
    })
}
