//! The workers: two open ports and a frame table enter, threads that send and count leave.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rights::system_calls::{Duty, give_up};
use stats::Histogram;
use traffic::{Apart, FrameTable};

use super::board::Board;
use super::receiver::Receiver;
use super::sender::{Outlet, Sender};
use super::tally::{Buckets, Tally};
use super::{Crew, Member, Ports, Queues, WhenFull};
use crate::build_rate::pin;
use crate::builder::Builder;
use crate::headway::{Headway, IdleTurns};
use crate::listening::{Listener, STREAMS, WORKERS, direction_at};
use crate::live::{INTERVALS, Live, Machinery, Received, Sent, monotonic};
use crate::pacing::{Announced, Schedule};
use crate::xdp::precedence;
use crate::{Capabilities, Error, Order, StreamTotals, Timeline, Totals, refusal, timeline};

/// Most workers: as many as a signature tells apart.
const MAX_WORKERS: usize = 128;
/// How long workers may take to begin.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a link may be down in the middle of a run: what is due meanwhile is unsent.
const LINK_PATIENCE: Duration = Duration::from_secs(2);

/// How long nothing must arrive between loads before a worker rests: longer than a device delays a frame.
const QUIET_NS: u64 = 20_000_000;
/// How long it rests before it looks again.
const NAP: Duration = Duration::from_micros(50);

/// What the time stamps cannot see.
const UNSEEN: [&str; 2] = [
    "the clock is read when a frame is built and when a burst has been received: what queues, cards and line add in between is part of every figure, and cannot be told from what the device adds",
    "frames that are due together share a reading of the clock, up to 64 of them, in both directions: up to some microseconds of a figure are the tester's",
];

/// The same where the kernel's program counts what arrives.
const UNSEEN_WITH_PROGRAM: [&str; 2] = [
    "the clock is read when a frame is built and when a kernel program sees it at the other port: what queues, cards, interrupt moderation and line add in between is part of every figure, and cannot be told from what the device adds",
    "frames that are due together share a reading of the clock when they leave, up to 64 of them: up to some microseconds of a figure are the tester's",
];

/// Threads that send and receive by two ports. Dropping them ends them, and then closes the ports.
pub struct Workers<P> {
    board: Arc<Board>,
    pub(crate) senders: Vec<Arc<Tally>>,
    receivers: Vec<Arc<Tally>>,
    threads: Vec<Option<JoinHandle<Result<(), Error>>>>,
    headway: Headway,
    directions: usize,
    apart: Apart,
    /// How many ports there are.
    count: usize,
    pub(crate) ports: P,
    /// Since when each port's link has been down.
    down: [Option<Instant>; 2],
}

/// One thread's work.
struct Worker<P: Ports> {
    core: usize,
    /// Whether cores are left for everyone else.
    others: bool,
    member: P::Member,
    board: Arc<Board>,
    tally: Arc<Tally>,
    sender: Option<Sender<P::Transmit>>,
    receivers: Vec<Receiver<P::Receive>>,
}

impl<P: Ports> Worker<P> {
    fn run(mut self) -> Result<(), Error> {
        pin(self.core)?;
        let _pass = self.member.enter()?;
        let _turns = precedence::in_turns(self.others)?;
        // It has opened all that it needs. Where the kernel filters no calls, `linerate doctor` says so.
        let _ = give_up(Duty::Frames);
        let mut turns = IdleTurns::default();
        let mut rest = Rest::default();
        while !self.board.is_stopped() {
            let mut found = false;
            if let Some(sender) = &mut self.sender {
                found = sender.send(&self.board, &self.tally, monotonic()?);
            }
            for receiver in &mut self.receivers {
                found |= receiver.receive(&self.tally)? > 0;
            }
            if found {
                turns.found_something();
                rest = Rest::default();
                continue;
            }
            let now = monotonic()?;
            self.tally.idle_ns.add(turns.found_nothing(now));
            let more_is_due = self.sender.as_ref().is_some_and(|sender| !sender.is_idle());
            if more_is_due || self.board.is_loaded() {
                rest = Rest::default();
            } else if rest.is_due(now) {
                thread::sleep(NAP);
            }
        }
        Ok(())
    }
}

/// When a worker without anything to do may leave its core to others: between loads, when frames no longer arrive.
/// Where there are few cores, what prepares the next load would wait for one.
#[derive(Debug, Default)]
struct Rest {
    /// Since when there has been nothing to do, in nanoseconds of the monotonic clock.
    since: Option<u64>,
}

impl Rest {
    /// Whether there has been nothing to do for long enough at `now`.
    fn is_due(&mut self, now: u64) -> bool {
        now.saturating_sub(*self.since.get_or_insert(now)) > QUIET_NS
    }
}

/// An engine whose idle workers move frames by `ports`, which have these `queues`.
///
/// # Errors
/// When a worker does not start.
pub(crate) fn start<P: Ports + 'static>(
    ports: P,
    queues: [Queues<P::Transmit, P::Receive>; 2],
    crew: &Crew<'_>,
) -> Result<Live<Workers<P>>, Error> {
    let workers = Workers::start(ports, queues, crew)?;
    Live::new(workers, crew.table.directions(), Arc::clone(&crew.stop))
}

impl<P: Ports + 'static> Workers<P> {
    fn start(
        ports: P,
        [zero, one]: [Queues<P::Transmit, P::Receive>; 2],
        crew: &Crew<'_>,
    ) -> Result<Self, Error> {
        let cores: BTreeSet<_> = crew.send_cores.iter().chain(crew.receive_cores).collect();
        let mut roster = Roster::new(&ports, cores.len(), crew.table.apart);
        let whole = ports.holds_anything();
        let mut workers = Self::without_threads(ports, &roster, crew.table.directions(), 2);
        let count = crew.send_cores.len();
        let are_refused = [zero.when_full, one.when_full] == [WhenFull::Lost; 2];
        let sending = zero.transmit.into_iter().zip(one.transmit);
        for ((id, core), (to_zero, to_one)) in crew.send_cores.iter().enumerate().zip(sending) {
            let outlets = [Outlet::new(to_zero, zero.when_full), Outlet::new(to_one, one.when_full)];
            let builder = Builder::new(crew.table, id, count);
            let builder = if whole { builder.whole(crew.table) } else { builder };
            let worker = roster.on(*core);
            let schedule = Schedule::new(id, count).of(crew.table);
            worker.sender = Some(Sender::new(builder, schedule, outlets));
            workers.senders.push(Arc::clone(&worker.tally));
        }
        let streams = crew.table.streams();
        // Frames of direction 0 arrive at port 1.
        for (queues, direction) in [(one.receive, 0), (zero.receive, 1)] {
            let receivers = queues.into_iter().map(|queue| Receiver::new(queue, direction, streams, count));
            workers.receive(&mut roster, receivers, crew.receiving());
        }
        workers.headway.counts_refused = are_refused || P::COUNTS_REFUSED;
        workers.spawn(roster.workers)?;
        Ok(workers)
    }

    /// Workers on `cores` that send nothing, and share the queues that `ports` receive by: those of each port.
    ///
    /// # Errors
    /// When a worker does not start.
    pub(crate) fn listen(ports: P, receive: Vec<Vec<P::Receive>>, cores: &[usize]) -> Result<Self, Error> {
        check_cores(cores)?;
        let mut roster = Roster::new(&ports, cores.len(), Apart::default());
        let count = receive.len();
        let mut workers = Self::without_threads(ports, &roster, 2, count);
        for (port, queues) in receive.into_iter().enumerate() {
            let direction = direction_at(port, count);
            let receivers = queues.into_iter().map(|queue| Receiver::new(queue, direction, STREAMS, WORKERS));
            workers.receive(&mut roster, receivers, cores);
        }
        workers.spawn(roster.workers)?;
        Ok(workers)
    }

    fn without_threads(ports: P, roster: &Roster<P>, directions: usize, count: usize) -> Self {
        Self {
            board: Arc::clone(&roster.board),
            senders: Vec::new(),
            receivers: Vec::new(),
            threads: Vec::new(),
            headway: Headway::default(),
            directions,
            apart: roster.apart,
            count,
            ports,
            down: [None; 2],
        }
    }

    /// Shares `receivers` out among the workers on `cores`.
    fn receive(
        &mut self,
        roster: &mut Roster<P>,
        receivers: impl Iterator<Item = Receiver<P::Receive>>,
        cores: &[usize],
    ) {
        for (receiver, core) in receivers.zip(cores.iter().cycle()) {
            let worker = roster.on(*core);
            if worker.receivers.is_empty() {
                self.receivers.push(Arc::clone(&worker.tally));
            }
            worker.receivers.push(receiver);
        }
    }

    fn spawn(&mut self, crew: Vec<Worker<P>>) -> Result<(), Error> {
        self.headway.workers = crew.iter().map(|worker| (worker.core, Arc::clone(&worker.tally))).collect();
        for worker in crew {
            let thread = thread::Builder::new()
                .name(format!("{}-{}", P::ENGINE, worker.core))
                .spawn(move || worker.run())
                .map_err(|error| Error::Failed(format!("cannot start a thread: {error}")))?;
            self.threads.push(Some(thread));
        }
        let deadline = Instant::now() + PATIENCE;
        while self.senders.iter().any(|tally| tally.slot().is_none()) {
            self.check_threads()?;
            self.check_links()?;
            if Instant::now() > deadline {
                return Err(Error::Failed(
                    "a worker did not begin within 5 s; another process may hold its core".into(),
                ));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Fails when a worker has ended.
    fn check_threads(&mut self) -> Result<(), Error> {
        for thread in &mut self.threads {
            if thread.as_ref().is_some_and(JoinHandle::is_finished) {
                return match thread.take().map(JoinHandle::join) {
                    Some(Ok(Err(error))) => Err(in_a_run(error)),
                    _ => Err(Error::Failed("a worker ended; this is a defect, please report it".into())),
                };
            }
        }
        Ok(())
    }

    /// Fails when a link has been down for too long.
    fn check_links(&mut self) -> Result<(), Error> {
        self.ports.check().map_err(in_a_run)?;
        for (port, down) in self.down.iter_mut().enumerate() {
            if self.ports.is_up(port) {
                *down = None;
                continue;
            }
            if down.get_or_insert_with(Instant::now).elapsed() > LINK_PATIENCE {
                return Err(Error::Failed(format!(
                    "the link of port {} went down, and did not come up for {LINK_PATIENCE:?}: \
                     did its other end stop? What was due meanwhile is unsent",
                    self.ports.name(port)
                )));
            }
        }
        Ok(())
    }

    /// What arrived of the frames of `direction`.
    fn arrived(&self, direction: usize) -> Result<Totals, Error> {
        let in_kernel = self.ports.program().map(|program| program.totals(direction)).transpose()?;
        let mut sum = in_kernel.unwrap_or_default();
        sum.latency.add(&self.histogram(self.receivers.iter().map(|tally| &tally.totals[direction].latency)));
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

    fn receives(&self, worker: &Arc<Tally>) -> bool {
        self.receivers.iter().any(|tally| Arc::ptr_eq(tally, worker))
    }

    fn histogram<'a>(&self, of: impl Iterator<Item = &'a Buckets>) -> Histogram {
        let mut sum = Histogram::default();
        of.for_each(|buckets| sum.add(&buckets.histogram()));
        sum
    }
}

/// The workers that are to be started.
struct Roster<P: Ports> {
    /// Whether cores are left for everyone else.
    others: bool,
    member: P::Member,
    board: Arc<Board>,
    /// The streams that they count apart.
    apart: Apart,
    workers: Vec<Worker<P>>,
}

impl<P: Ports> Roster<P> {
    /// Nobody yet; there will be workers on so many cores.
    fn new(ports: &P, cores: usize, apart: Apart) -> Self {
        let online = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            others: online > cores,
            member: ports.member(),
            board: Arc::new(Board::new()),
            apart,
            workers: Vec::new(),
        }
    }

    /// The worker on `core`, a new one if there is none yet.
    fn on(&mut self, core: usize) -> &mut Worker<P> {
        let place = self.workers.iter().position(|worker| worker.core == core).unwrap_or_else(|| {
            self.workers.push(Worker {
                core,
                others: self.others,
                member: self.member.clone(),
                board: Arc::clone(&self.board),
                tally: Arc::new(Tally::new(self.apart)),
                sender: None,
                receivers: Vec::new(),
            });
            self.workers.len() - 1
        });
        &mut self.workers[place]
    }
}

/// Refuses what this engine cannot send.
///
/// # Errors
/// Why not, with the remedy.
pub(crate) fn check<P: Ports>(crew: &Crew<'_>) -> Result<(), Error> {
    let (table, send, receive): (&FrameTable, _, _) = (crew.table, crew.send_cores, crew.receiving());
    refusal::frames(table, P::ENGINE, P::MAX_FRAME)?;
    check_cores(send)?;
    check_cores(receive)?;
    refusal::shares(table, send.len())
}

/// Refuses cores of which there are none or too many, or one twice.
fn check_cores(cores: &[usize]) -> Result<(), Error> {
    let refuse = |text: String| Err(Error::Refused(text));
    if cores.is_empty() || cores.len() > MAX_WORKERS {
        return refuse(format!("{} workers are asked for: 1 to {MAX_WORKERS} are possible", cores.len()));
    }
    if let Some(core) =
        cores.iter().enumerate().find_map(|(i, core)| cores[..i].contains(core).then_some(core))
    {
        return refuse(format!("core {core} is named twice: one worker runs on a core"));
    }
    Ok(())
}

impl<P: Ports + 'static> Listener for Workers<P> {
    fn engine(&self) -> &'static str {
        P::ENGINE
    }

    /// A link that is down is none that frames arrive by, for now.
    fn check(&mut self) -> Result<(), Error> {
        self.check_threads()?;
        self.ports.check()
    }

    fn totals(&self, port: usize) -> Result<Totals, Error> {
        let mut totals = self.arrived(direction_at(port, self.count))?;
        totals.foreign += self.ports.passed(port)?;
        Ok(totals)
    }

    fn missed(&self, port: usize) -> Result<u64, Error> {
        self.ports.missed(port)
    }
}

impl<P: Ports + 'static> Machinery for Workers<P> {
    fn capabilities(&self) -> Capabilities {
        let unseen = if self.ports.program().is_some() { &UNSEEN_WITH_PROGRAM } else { &UNSEEN };
        Capabilities { name: P::ENGINE, max_frame_size: P::MAX_FRAME, unseen }
    }

    fn announce(&mut self, slot: u64, order: &Order, start: u64) -> Result<(), Error> {
        if slot - self.reached().min(slot) >= INTERVALS as u64 {
            return Err(Error::Failed(format!(
                "a sending thread is {INTERVALS} intervals behind; another process may hold its core"
            )));
        }
        let load = Announced::of(order, self.directions, self.senders.len(), start)?;
        if slot >= INTERVALS as u64 {
            self.senders.iter().chain(&self.receivers).for_each(|tally| tally.forget(slot));
            self.ports.program().map_or(Ok(()), |program| program.forget(slot))?;
        }
        self.board.announce(slot, &load);
        Ok(())
    }

    fn check(&mut self) -> Result<(), Error> {
        self.check_threads()?;
        self.check_links()
    }

    fn headway(&self) -> Headway {
        self.headway.clone()
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
        let in_kernel = self.ports.program().map(|program| program.received(slot, direction)).transpose()?;
        let mut sum = in_kernel.unwrap_or_default();
        self.receivers.iter().for_each(|tally| tally.received(slot, direction).add_to(&mut sum));
        Ok(sum)
    }

    fn timeline(&self, direction: usize, start: u64, end: u64) -> Result<Option<Timeline>, Error> {
        let sent: Vec<_> = self.senders.iter().map(|tally| tally.sent_bins[direction].bins()).collect();
        let mut received: Vec<_> =
            self.receivers.iter().map(|tally| tally.received_bins[direction].bins()).collect();
        received.extend(
            self.ports.program().map(|program| program.bins(direction)).transpose()?.unwrap_or_default(),
        );
        Ok(timeline::of(&sent, &received, start, end))
    }

    fn totals(&self, direction: usize) -> Result<Totals, Error> {
        let lateness = self.histogram(self.senders.iter().map(|tally| &tally.lateness[direction]));
        let refused = P::COUNTS_REFUSED.then_some(0);
        let mut sum = Totals { lateness, refused, ..self.arrived(direction)? };
        sum.foreign += self.ports.passed(1 - direction % 2)?;
        Ok(sum)
    }

    fn streams(&self, direction: usize) -> Result<Vec<StreamTotals>, Error> {
        let streams = (0..self.apart.streams).map(|number| {
            let in_kernel =
                self.ports.program().map(|program| program.stream(number, direction)).transpose()?;
            let mut sum = in_kernel.unwrap_or_default();
            // A worker may send, receive or both: each has one tally.
            let senders = self.senders.iter().filter(|tally| !self.receives(tally));
            for tally in self.receivers.iter().chain(senders) {
                if let Some(stream) = tally.stream(number as u8, direction) {
                    stream.add_to(&mut sum);
                }
            }
            Ok(sum)
        });
        streams.collect()
    }
}

impl<P> Drop for Workers<P> {
    fn drop(&mut self) {
        self.board.stop();
        for thread in self.threads.iter_mut().filter_map(Option::take) {
            let _ = thread.join();
        }
    }
}

/// What ends a run that had begun is a failure, also where it would have been a refusal before the first frame.
fn in_a_run(error: Error) -> Error {
    Error::Failed(error.to_string())
}
