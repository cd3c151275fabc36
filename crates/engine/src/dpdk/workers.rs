//! The workers: ports and a frame table enter, threads that send and count leave.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dpdk::{Dpdk, Pool, Port};
use stats::Histogram;
use traffic::FrameTable;

use super::board::Board;
use super::ports::PortsWatch;
use super::receiver::Receiver;
use super::sender::{Outlet, Sender, WhenFull};
use super::setup::{Opened, longest, port_config, room, wait_for_links};
use super::tally::Tally;
use crate::build_rate::pin;
use crate::builder::Builder;
use crate::live::{INTERVALS, Live, Machinery, Received, Sent, monotonic};
use crate::pacing::{Announced, Schedule};
use crate::xdp::precedence;
use crate::{Capabilities, Error, Load, Timeline, Totals, refusal, timeline};

/// The largest frame, FCS included.
pub const MAX_FRAME: usize = 9216;
/// Most workers: as many as a signature tells apart.
const MAX_WORKERS: usize = 128;
/// Buffers for what a worker sends: a card keeps a queue full of them.
const SENDING: u32 = 4095;
/// Buffers for what arrives, for each queue.
const RECEIVING: u32 = 4095;
/// How long workers may take to begin.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a link may be down in the middle of a run: what is due meanwhile is unsent.
const LINK_PATIENCE: Duration = Duration::from_secs(2);

/// What the time stamps cannot see.
const UNSEEN: [&str; 2] = [
    "the clock is read when a frame is built and when a burst has been received: what queues, cards and line add in between is part of every figure, and cannot be told from what the device adds",
    "frames that are due together share a reading of the clock, up to 64 of them, in both directions: up to some microseconds of a figure are the tester's",
];

/// What a [`DpdkEngine`] is made of.
pub struct Config<'a> {
    /// DPDK, started.
    pub dpdk: &'a Arc<Dpdk>,
    /// Port 0 and port 1: drivers with their arguments, or PCI addresses.
    pub devices: [&'a str; 2],
    /// The cores that send, one worker each.
    pub send_cores: &'a [usize],
    /// The cores that receive, and share the queues that arrive; those that send also receive where none
    /// are named.
    pub receive_cores: &'a [usize],
    /// What to send.
    pub table: &'a FrameTable,
    /// Set by someone else to end the run.
    pub stop: Arc<AtomicBool>,
}

/// The user-space engine on two ports. Dropping it ends its workers and closes its ports.
pub type DpdkEngine = Live<Workers>;

/// Threads that send and receive.
pub struct Workers {
    board: Arc<Board>,
    senders: Vec<Arc<Tally>>,
    receivers: Vec<Arc<Tally>>,
    threads: Vec<Option<JoinHandle<Result<(), Error>>>>,
    directions: usize,
    ports: [Port; 2],
    /// Since when each port's link has been down.
    down: [Option<Instant>; 2],
}

impl DpdkEngine {
    /// Opens both ports and starts idle workers.
    ///
    /// # Errors
    /// When the table does not fit this engine, a port cannot be used or has no other end, or a worker
    /// does not start.
    pub fn start(config: &Config<'_>) -> Result<Self, Error> {
        let workers = Workers::start(config)?;
        Self::new(workers, config.table.directions(), Arc::clone(&config.stop))
    }

    /// The two ports.
    #[must_use]
    pub fn ports(&self) -> &[Port; 2] {
        &self.machinery().ports
    }

    /// The two ports from beside.
    #[must_use]
    pub fn watch(&self) -> PortsWatch {
        let workers = self.machinery();
        PortsWatch::new(&workers.ports, workers.senders.clone())
    }
}

/// One thread's work.
struct Worker {
    core: usize,
    /// Whether cores are left for everyone else.
    others: bool,
    dpdk: Arc<Dpdk>,
    board: Arc<Board>,
    tally: Arc<Tally>,
    sender: Option<Sender>,
    receivers: Vec<Receiver>,
}

impl Worker {
    fn run(mut self) -> Result<(), Error> {
        pin(self.core)?;
        let _registered = self.dpdk.register_thread()?;
        let _turns = precedence::in_turns(self.others)?;
        while !self.board.is_stopped() {
            if let Some(sender) = &mut self.sender {
                sender.send(&self.board, &self.tally, monotonic()?);
            }
            for receiver in &mut self.receivers {
                receiver.receive(&self.tally)?;
            }
        }
        Ok(())
    }
}

impl Workers {
    fn start(config: &Config<'_>) -> Result<Self, Error> {
        let receive_cores =
            if config.receive_cores.is_empty() { config.send_cores } else { config.receive_cores };
        check(config.table, config.send_cores, receive_cores)?;
        let [zero, one] = open(config, config.send_cores.len().max(receive_cores.len()))?;
        wait_for_links([&zero, &one])?;
        let when_full = [when_full(&zero)?, when_full(&one)?];
        let board = Arc::new(Board::new());
        let mut workers = Self {
            board: Arc::clone(&board),
            senders: Vec::new(),
            receivers: Vec::new(),
            threads: Vec::new(),
            directions: config.table.directions(),
            ports: [zero.port, one.port],
            down: [None; 2],
        };
        let mut crew = Vec::new();
        let mut sending = zero.queues.send.into_iter().zip(one.queues.send);
        let count = config.send_cores.len();
        for (id, core) in config.send_cores.iter().enumerate() {
            let Some((zero, one)) = sending.next() else { continue };
            let pool = pool(config, SENDING)?;
            let outlet = |queue, when_full| Outlet::new(config.dpdk, queue, pool.clone(), when_full);
            let outlets = vec![outlet(zero, when_full[0]), outlet(one, when_full[1])];
            let builder = Builder::new(config.table, id, count);
            let sender = Sender::new(builder, Schedule::new(id, count), outlets);
            let worker = worker_on(&mut crew, config, &board, *core);
            worker.sender = Some(sender);
            workers.senders.push(Arc::clone(&worker.tally));
        }
        let streams = 1 + config.table.rows.iter().map(|row| usize::from(row.stream)).max().unwrap_or(0);
        let receiving = zero.queues.receive.into_iter().zip(one.queues.receive);
        for ((zero, one), core) in receiving.zip(receive_cores.iter().cycle()) {
            // Frames of direction 0 arrive at port 1.
            let receiver = |queue, direction| Receiver::new(config.dpdk, queue, direction, streams, count);
            let worker = worker_on(&mut crew, config, &board, *core);
            if worker.receivers.is_empty() {
                workers.receivers.push(Arc::clone(&worker.tally));
            }
            worker.receivers.extend([receiver(one, 0), receiver(zero, 1)]);
        }
        workers.spawn(crew)?;
        Ok(workers)
    }

    fn spawn(&mut self, crew: Vec<Worker>) -> Result<(), Error> {
        for worker in crew {
            let thread = thread::Builder::new()
                .name(format!("dpdk-{}", worker.core))
                .spawn(move || worker.run())
                .map_err(|error| Error::Failed(format!("cannot start a thread: {error}")))?;
            self.threads.push(Some(thread));
        }
        let deadline = Instant::now() + PATIENCE;
        while self.senders.iter().any(|tally| tally.slot().is_none()) {
            self.check()?;
            if Instant::now() > deadline {
                return Err(Error::Failed(
                    "a worker did not begin within 5 s; another process may hold its core".into(),
                ));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Fails when a link has been down for too long.
    fn check_links(&mut self) -> Result<(), Error> {
        for (port, down) in self.ports.iter().zip(&mut self.down) {
            if port.link().is_none_or(|link| link.up) {
                *down = None;
                continue;
            }
            if down.get_or_insert_with(Instant::now).elapsed() > LINK_PATIENCE {
                return Err(Error::Port(format!(
                    "the link of port {} went down, and did not come up for {LINK_PATIENCE:?}: \
                     did its other end stop? What was due meanwhile is unsent",
                    port.name()
                )));
            }
        }
        Ok(())
    }

    fn histogram<'a>(&self, of: impl Iterator<Item = &'a super::tally::Buckets>) -> Histogram {
        let mut sum = Histogram::default();
        of.for_each(|buckets| sum.add(&buckets.histogram()));
        sum
    }
}

/// The worker on `core`, a new one if there is none yet.
fn worker_on<'a>(
    crew: &'a mut Vec<Worker>,
    config: &Config<'_>,
    board: &Arc<Board>,
    core: usize,
) -> &'a mut Worker {
    let place = crew.iter().position(|worker| worker.core == core).unwrap_or_else(|| {
        let online = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let ours: BTreeSet<_> = config.send_cores.iter().chain(config.receive_cores).collect();
        crew.push(Worker {
            core,
            others: online > ours.len(),
            dpdk: Arc::clone(config.dpdk),
            board: Arc::clone(board),
            tally: Arc::new(Tally::new()),
            sender: None,
            receivers: Vec::new(),
        });
        crew.len() - 1
    });
    &mut crew[place]
}

/// Opens both ports with so many queues of each kind: the other end of a memif has as many receive
/// queues as this one has transmit queues, and the other way round.
fn open(config: &Config<'_>, queues: usize) -> Result<[Opened; 2], Error> {
    let port = port_config(queues, longest(config.table));
    let open = |device| -> Result<Opened, Error> {
        // Each port has its own: net_af_xdp takes 2,048 of a pool at the start, for each queue.
        let pool = pool(config, RECEIVING * queues as u32)?;
        Opened::new(config.dpdk, device, &port, &pool)
    };
    let [zero, one] = config.devices.map(open);
    Ok([zero?, one?])
}

fn pool(config: &Config<'_>, frames: u32) -> Result<Pool, Error> {
    let mut pool = Pool::new(config.dpdk, frames, room(longest(config.table)) as u16, None)?;
    pool.fill(config.table.fill);
    Ok(pool)
}

fn when_full(opened: &Opened) -> Result<WhenFull, Error> {
    Ok(WhenFull::of(&opened.port.facts()?.driver))
}

/// Refuses what this engine cannot send.
fn check(table: &FrameTable, send: &[usize], receive: &[usize]) -> Result<(), Error> {
    refusal::frames(table, "dpdk", MAX_FRAME)?;
    let refuse = |text: String| Err(Error::Refused(text));
    if send.is_empty() || send.len().max(receive.len()) > MAX_WORKERS {
        return refuse(format!("{} workers are asked for: 1 to {MAX_WORKERS} are possible", send.len()));
    }
    for cores in [send, receive] {
        if let Some(core) =
            cores.iter().enumerate().find_map(|(i, core)| cores[..i].contains(core).then_some(core))
        {
            return refuse(format!("core {core} is named twice: one worker runs on a core"));
        }
    }
    refusal::shares(table, send.len())
}

impl Machinery for Workers {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "dpdk", max_frame_size: MAX_FRAME, unseen: &UNSEEN }
    }

    fn announce(&mut self, slot: u64, load: Load, start: u64) -> Result<(), Error> {
        if slot - self.reached().min(slot) >= INTERVALS as u64 {
            return Err(Error::Failed(format!(
                "a sending thread is {INTERVALS} intervals behind; another process may hold its core"
            )));
        }
        let load = Announced::new(load, self.directions, self.senders.len(), start)?;
        if slot >= INTERVALS as u64 {
            self.senders.iter().chain(&self.receivers).for_each(|tally| tally.forget(slot));
        }
        self.board.announce(slot, &load);
        Ok(())
    }

    fn check(&mut self) -> Result<(), Error> {
        for thread in &mut self.threads {
            if thread.as_ref().is_some_and(JoinHandle::is_finished) {
                return match thread.take().map(JoinHandle::join) {
                    Some(Ok(Err(error))) => Err(error),
                    _ => Err(Error::Failed("a worker ended; this is a defect, please report it".into())),
                };
            }
        }
        self.check_links()
    }

    fn reached(&self) -> u64 {
        self.senders.iter().map(|tally| tally.slot().unwrap_or(0)).min().unwrap_or(0)
    }

    fn begun(&self, slot: u64) -> Result<Vec<Option<u64>>, Error> {
        let begun = |tally: &Arc<Tally>| Some(tally.sent(slot, 0).begun.get()).filter(|begun| *begun > 0);
        Ok(self.senders.iter().map(begun).collect())
    }

    fn sent(&self, slot: u64, direction: usize) -> Result<Sent, Error> {
        let mut sum = Sent::default();
        self.senders.iter().for_each(|tally| tally.sent(slot, direction).add_to(&mut sum));
        Ok(sum)
    }

    fn received(&self, slot: u64, direction: usize) -> Result<Received, Error> {
        let mut sum = Received::default();
        self.receivers.iter().for_each(|tally| tally.received(slot, direction).add_to(&mut sum));
        Ok(sum)
    }

    fn timeline(&self, direction: usize, start: u64, end: u64) -> Result<Option<Timeline>, Error> {
        let sent: Vec<_> = self.senders.iter().map(|tally| tally.sent_bins[direction].bins()).collect();
        let received: Vec<_> =
            self.receivers.iter().map(|tally| tally.received_bins[direction].bins()).collect();
        Ok(timeline::of(&sent, &received, start, end))
    }

    fn totals(&self, direction: usize) -> Result<Totals, Error> {
        let lateness = self.histogram(self.senders.iter().map(|tally| &tally.lateness[direction]));
        let latency = self.histogram(self.receivers.iter().map(|tally| &tally.totals[direction].latency));
        let mut sum = Totals { lateness, latency, ..Totals::default() };
        for tally in &self.receivers {
            let total = &tally.totals[direction];
            sum.forwarded += total.frames.get();
            sum.duplicates += total.duplicates.get();
            sum.reordered += total.reordered.get();
            sum.returned += total.returned.get();
            sum.foreign += total.foreign.get();
        }
        Ok(sum)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.board.stop();
        for thread in self.threads.iter_mut().filter_map(Option::take) {
            let _ = thread.join();
        }
    }
}
