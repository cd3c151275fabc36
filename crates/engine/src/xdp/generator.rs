//! The generator: a frame table and loads enter, frames leave by the ports.
//!
//! One worker a core; each is a thread that makes one long `BPF_PROG_RUN` call, since a call
//! costs some 25 ms to set up. The load changes through a map while the call goes on. Without a load
//! it goes on, too, and all other threads go before it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use libbpf_rs::Link;
use libbpf_rs::libbpf_sys::{bpf_prog_test_run_opts, bpf_test_run_opts};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use rights::system_calls::{Duty, give_up};
use stats::Histogram;
use traffic::FrameTable;

use super::port::{self, Port};
use super::precedence::{self, Way};
use super::program::{self, Loaded, generate};
use super::rows::{self, ROW_HEAD};
use super::{DIRECTIONS, INTERVALS, MAX_FRAME, PortRef, enter_namespace, in_namespace};
use crate::build_rate::pin;
use crate::live::Sent;
use crate::pacing::{Announced, Mode};
use crate::timeline::Bins;
use crate::{Error, Load, Order, Untaken, refusal};

/// Most workers, as in `shared.h`.
const MAX_WORKERS: usize = 16;
/// Most CPUs, as in `shared.h`.
const MAX_CPUS: usize = 512;
/// How long there must be no load before workers give way: a pause between two loads is shorter.
const PAUSE: Duration = Duration::from_millis(100);
/// Ends the kernel's long call; its handler does nothing.
const WAKE: Signal = Signal::SIGUSR2;
/// Bytes of a page, as in `generate.bpf.c`.
const PAGE: usize = 4096;
/// `BPF_F_TEST_XDP_LIVE_FRAMES` of `linux/bpf.h`.
const LIVE_FRAMES: u32 = 2;

/// Workers that send a frame table; they end when it is dropped.
pub struct Generator {
    // Workers first: they end before the program they run is unloaded.
    workers: Vec<Worker>,
    // And before the programs that count what becomes of their frames.
    _counting: [Link; 2],
    skeleton: Loaded<generate::GenerateSkel<'static>>,
    directions: usize,
    counted_streams: usize,
    ports: Vec<Port>,
    /// What was sent in each direction in the slots before `seen_until`, by which ports are judged.
    seen: [Sent; DIRECTIONS],
    seen_until: u64,
    /// The newest slot.
    newest: u64,
    /// Since when the newest slot has been without a load; `None` in a load.
    idle_since: Option<Instant>,
    /// Whether the workers let all other threads go before them.
    give_way: bool,
}

struct Worker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Error>>>,
    way: Way,
}

impl Generator {
    /// Loads `table` and starts one idle worker on each of `cores`; frames leave by `ports`,
    /// which are in `namespace`.
    ///
    /// # Errors
    /// When the table does not fit this engine, the kernel refuses the program, or a worker
    /// does not start.
    pub fn start(
        table: &FrameTable,
        ports: &[PortRef],
        namespace: Option<BorrowedFd>,
        cores: &[usize],
    ) -> Result<Self, Error> {
        check(table, ports, cores)?;
        let opened = in_namespace(namespace, || {
            let opened = ports.iter().take(DIRECTIONS).enumerate();
            opened
                .map(|(number, port)| Port::open(port, number < table.directions()))
                .collect::<Result<Vec<_>, _>>()
        })?;
        let lengths = || table.rows.iter().map(|row| usize::from(row.length));
        let page = lengths().max().unwrap_or(60).max(table.header_length);
        let skeleton = Loaded::load(generate::GenerateSkelBuilder::default(), |open| {
            if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
                rodata.port_ifindex = super::indexes(ports);
                rodata.worker_count = cores.len() as u32;
                rodata.row_count = table.rows.len() as u32;
                rodata.header_words = (table.header_length / 8) as u32;
                rodata.frame_length = page as u32;
                rodata.shortest_length = lengths().min().unwrap_or(60) as u32;
                rodata.one_length = lengths().all(|length| length == page);
                rodata.counted_streams = table.apart.streams as u32;
                rodata.spaced = !table.times.is_empty();
                for (worker, time) in rodata.first_times.iter_mut().enumerate().take(cores.len()) {
                    *time = table.first_time(worker, cores.len()).unwrap_or(0);
                }
                rodata.checksums = table.rows.iter().any(|row| row.checksum.is_some());
                for (worker, core) in cores.iter().enumerate() {
                    rodata.worker_of_cpu[*core] = worker as u8 + 1;
                }
                for (shared, port) in rodata.queue_is_the_devices.iter_mut().zip(&opened) {
                    *shared = port.has_the_devices_queue();
                }
            }
            let maps = &mut open.maps;
            maps.rows.set_value_size((ROW_HEAD + table.header_length) as u32)?;
            maps.rows.set_max_entries(table.rows.len() as u32)?;
            maps.distances.set_max_entries(table.times.len().max(1) as u32)?;
            maps.stream_sent
                .set_max_entries((cores.len() * table.apart.streams * DIRECTIONS).max(1) as u32)?;
            maps.sent_bins.set_max_entries((cores.len() * DIRECTIONS) as u32)?;
            maps.sent.set_max_entries((cores.len() * INTERVALS * DIRECTIONS) as u32)?;
            maps.lateness.set_max_entries((cores.len() * DIRECTIONS) as u32)
        })?;
        rows::load(&skeleton.maps.rows, table)?;
        rows::load_distances(&skeleton.maps.distances, &table.distances(cores.len()))?;
        in_namespace(namespace, || port::load(&skeleton.maps.ports, ports))?;
        program::write(&skeleton.maps.filling, 0, &generate::types::filling { bytes: [table.fill; PAGE] })?;
        let attach =
            |program: &libbpf_rs::ProgramMut<'_>| program.attach().map_err(|error| no_tracing(&error));
        let counting = [attach(&skeleton.progs.count_taken)?, attach(&skeleton.progs.count_refused)?];
        let mut generator = Self {
            workers: Vec::new(),
            _counting: counting,
            skeleton,
            directions: table.directions(),
            counted_streams: table.apart.streams,
            ports: opened,
            seen: [Sent::default(); DIRECTIONS],
            seen_until: 1,
            newest: 0,
            idle_since: Some(Instant::now()),
            give_way: false,
        };
        generator.start_workers(table, page, namespace, cores)?;
        generator.give_way();
        Ok(generator)
    }

    fn start_workers(
        &mut self,
        table: &FrameTable,
        page: usize,
        namespace: Option<BorrowedFd>,
        cores: &[usize],
    ) -> Result<(), Error> {
        install_wake_handler()?;
        for core in cores {
            let run = Run {
                program: self.skeleton.progs.generate.as_fd().as_raw_fd(),
                page: vec![table.fill; page],
                core: *core,
                others: thread::available_parallelism().is_ok_and(|online| online.get() > cores.len()),
                namespace: namespace.map(|fd| fd.try_clone_to_owned()).transpose().map_err(|error| {
                    Error::Failed(format!("cannot duplicate a file descriptor: {error}; close some files"))
                })?,
                stop: Arc::new(AtomicBool::new(false)),
            };
            let stop = Arc::clone(&run.stop);
            let (tell, told) = mpsc::channel();
            let thread = thread::Builder::new()
                .name(format!("generate-{core}"))
                .spawn(move || run.run(&tell))
                .map_err(|error| Error::Failed(format!("cannot start a thread: {error}")))?;
            let Ok(way) = told.recv() else {
                return Err(joined(thread));
            };
            self.workers.push(Worker { stop, thread: Some(thread), way });
        }
        self.wait_until_running()
    }

    /// Waits until every worker has taken up the idle load it starts with.
    fn wait_until_running(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            self.check_workers()?;
            if (0..self.workers.len()).all(|worker| self.interval_of(worker) == Some(0)) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Error::Failed(
                    "the kernel did not start generating within 5 s; another process may hold the core"
                        .into(),
                ));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The interval that all workers have come to: what they sent of those before is final.
    #[must_use]
    pub fn reached(&self) -> u64 {
        (0..self.workers.len()).map(|worker| self.interval_of(worker).unwrap_or(0)).min().unwrap_or(0)
    }

    /// The interval that `worker` has come to: the kernel has said what became of all frames before.
    fn interval_of(&self, worker: usize) -> Option<u64> {
        let bss = self.skeleton.maps.bss_data.as_deref()?;
        let place = &raw const bss.workers.get(worker)?.settled;
        // SAFETY: the place is inside the mapped memory of the map, valid while the skeleton is.
        unsafe { place.read_volatile() }.checked_sub(1)
    }

    /// Announces `interval`, the one after the last, whose load applies from `start` (nanoseconds,
    /// monotonic clock) or when the workers hear of it; after silence, a millisecond later.
    ///
    /// # Errors
    /// When the rate cannot be kept, the map cannot be written, or a worker is so far behind that the
    /// interval's place is still in use.
    pub fn begin(&mut self, interval: u64, order: &Order, start: u64) -> Result<(), Error> {
        if interval - self.reached().min(interval) >= INTERVALS as u64 {
            return Err(Error::Failed(format!(
                "a generating thread is {INTERVALS} intervals behind; another process may hold its core"
            )));
        }
        self.see_settled()?;
        self.newest = interval;
        for worker in 0..self.workers.len() {
            for direction in 0..DIRECTIONS {
                let place = sent_place(worker, interval, direction);
                program::write(&self.skeleton.maps.sent, place, &generate::types::sent::default())?;
            }
        }
        let load = kernel_load(Announced::of(order, self.directions, self.workers.len(), start)?);
        program::write(&self.skeleton.maps.loads, interval as usize % INTERVALS, &load)?;
        if let Some(bss) = self.skeleton.maps.bss_data.as_deref_mut() {
            let place = &raw mut bss.current_interval;
            // SAFETY: the place is inside the mapped memory of the map, valid and aligned.
            unsafe { place.write_volatile(interval) };
        }
        // Only now: this thread may be on a worker's core, and would wait behind it.
        match order {
            Order::Load(Load::Idle) => self.idle_since = Some(Instant::now()),
            _ => self.go_first(),
        }
        Ok(())
    }

    /// What all workers sent of `interval` in `direction`.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub fn sent(&self, interval: u64, direction: usize) -> Result<Sent, Error> {
        let mut sum = Sent::default();
        for worker in 0..self.workers.len() {
            let place = sent_place(worker, interval, direction);
            let sent: generate::types::sent = program::read(&self.skeleton.maps.sent, place)?;
            sum.add(&Sent {
                frames: sent.frames,
                bytes: sent.bytes,
                unsent: sent.unsent,
                untaken: Untaken::new(sent.untaken),
                refused: sent.refused,
            });
        }
        Ok(sum)
    }

    /// Frames that all workers sent of `stream`, which is counted apart, in `direction`, and their bytes without
    /// FCS.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub fn stream_sent(&self, stream: usize, direction: usize) -> Result<(u64, u64), Error> {
        let mut sum = (0, 0);
        for worker in 0..self.workers.len() {
            let place = (worker * self.counted_streams + stream) * DIRECTIONS + direction;
            let sent: generate::types::stream_sent = program::read(&self.skeleton.maps.stream_sent, place)?;
            sum = (sum.0 + sent.frames, sum.1 + sent.bytes);
        }
        Ok(sum)
    }

    /// The frames that left in `direction`, by when they left.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub fn bins(&self, direction: usize) -> Result<Vec<Bins>, Error> {
        let place = |worker| worker * DIRECTIONS + direction;
        (0..self.workers.len())
            .map(|worker| program::bins(&self.skeleton.maps.sent_bins, place(worker)))
            .collect()
    }

    /// When each worker began `interval` (nanoseconds, monotonic clock), if it has.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub fn begun(&self, interval: u64) -> Result<Vec<Option<u64>>, Error> {
        (0..self.workers.len())
            .map(|worker| {
                let place = sent_place(worker, interval, 0);
                let sent: generate::types::sent = program::read(&self.skeleton.maps.sent, place)?;
                Ok(Some(sent.begun).filter(|begun| *begun > 0))
            })
            .collect()
    }

    /// How late departures in `direction` were since the start.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub fn lateness(&self, direction: usize) -> Result<Histogram, Error> {
        let mut sum = Histogram::default();
        for worker in 0..self.workers.len() {
            let place = worker * DIRECTIONS + direction;
            let late: generate::types::histogram = program::read(&self.skeleton.maps.lateness, place)?;
            sum.add(&Histogram::from_counts(late.counts.to_vec()));
        }
        Ok(sum)
    }

    /// Whether all still goes well.
    ///
    /// # Errors
    /// When a worker has ended, with its reason; when a port cannot transmit any more; when the kernel does
    /// not say what became of frames.
    pub fn check(&mut self) -> Result<(), Error> {
        self.check_workers()?;
        self.check_reports()?;
        self.see_settled()?;
        for direction in 0..self.ports.len() {
            let mut sum = self.seen[direction];
            for slot in self.seen_until..=self.newest {
                sum.add(&self.sent(slot, direction)?);
            }
            self.ports[direction].check(sum.frames, sum.untaken)?;
        }
        if self.idle_since.is_some_and(|since| since.elapsed() >= PAUSE) && self.reached() == self.newest {
            self.give_way();
        }
        Ok(())
    }

    /// The workers whose threads have not ended: the number of one that has may be another's.
    fn alive(&self) -> impl Iterator<Item = &Worker> {
        self.workers
            .iter()
            .filter(|worker| worker.thread.as_ref().is_some_and(|thread| !thread.is_finished()))
    }

    /// Lets all other threads go before the workers, until there is a load again.
    pub fn give_way(&mut self) {
        if !std::mem::replace(&mut self.give_way, true) {
            self.alive().for_each(|worker| worker.way.give());
        }
    }

    /// Gives the workers back their precedence, for a load.
    fn go_first(&mut self) {
        self.idle_since = None;
        if std::mem::replace(&mut self.give_way, false) {
            self.alive().for_each(|worker| worker.way.take());
        }
    }

    /// Adds up the slots that are final, before their places are used again.
    fn see_settled(&mut self) -> Result<(), Error> {
        while self.seen_until < self.reached() {
            for direction in 0..self.directions {
                let sent = self.sent(self.seen_until, direction)?;
                self.seen[direction].add(&sent);
            }
            self.seen_until += 1;
        }
        Ok(())
    }

    fn check_reports(&self) -> Result<(), Error> {
        let Some(bss) = self.skeleton.maps.bss_data.as_deref() else { return Ok(()) };
        // SAFETY: the places are inside the mapped memory of the map, valid while the skeleton is.
        let unreported =
            |worker: usize| unsafe { (&raw const bss.workers[worker].unreported).read_volatile() };
        if (0..self.workers.len()).all(|worker| unreported(worker) == 0) {
            return Ok(());
        }
        Err(Error::Failed(
            "the kernel does not say what became of redirected frames, so they cannot be counted; use another \
             engine, or a kernel whose xdp tracepoints work"
                .into(),
        ))
    }

    /// Whether all workers still work.
    ///
    /// # Errors
    /// Why one ended.
    pub(super) fn check_workers(&mut self) -> Result<(), Error> {
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take_if(|thread| thread.is_finished()) {
                return Err(joined(thread));
            }
        }
        Ok(())
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        // They end at once then.
        self.go_first();
        for worker in &mut self.workers {
            worker.stop.store(true, Ordering::SeqCst);
            let Some(thread) = worker.thread.take() else { continue };
            while !thread.is_finished() {
                // SAFETY: the thread is not joined yet, so its handle is valid.
                unsafe { nix::libc::pthread_kill(thread.as_pthread_t() as _, WAKE as i32) };
                thread::sleep(Duration::from_millis(1));
            }
            let _ = thread.join();
        }
    }
}

/// Why a worker's thread ended that should not have.
fn joined(thread: JoinHandle<Result<(), Error>>) -> Error {
    match thread.join() {
        Ok(Err(error)) => error,
        _ => Error::Failed("a generating thread ended; this is a defect, please report it".into()),
    }
}

/// Refuses what this engine cannot send.
fn check(table: &FrameTable, ports: &[PortRef], cores: &[usize]) -> Result<(), Error> {
    refusal::frames(table, "xdp", MAX_FRAME)?;
    let refuse = |text: String| Err(Error::Refused(text));
    if table.directions() > ports.len() {
        return refuse("load in both directions needs two ports".into());
    }
    if cores.is_empty() || cores.len() > MAX_WORKERS {
        return refuse(format!("{} workers are asked for: 1 to {MAX_WORKERS} are possible", cores.len()));
    }
    if let Some(core) = cores.iter().find(|core| **core >= MAX_CPUS) {
        return refuse(format!("core {core} is beyond the {MAX_CPUS} cores that the xdp engine knows"));
    }
    refusal::shares(table, cores.len())
}

/// A load as the kernel program wants it.
fn kernel_load(announced: Announced) -> generate::types::load {
    let Announced { start, gap, gap_fraction, frames, first, rows, mode } = announced;
    // As in `generate.bpf.c`.
    let mode = match mode {
        Mode::Idle => 0,
        Mode::Max => 1,
        Mode::Rate => 2,
        Mode::Burst => 3,
        Mode::Part => 4,
    };
    generate::types::load { start, gap, gap_fraction, frames, first, rows, mode }
}

fn sent_place(worker: usize, interval: u64, direction: usize) -> usize {
    (worker * INTERVALS + interval as usize % INTERVALS) * DIRECTIONS + direction
}

fn no_tracing(error: &libbpf_rs::Error) -> Error {
    Error::Refused(format!(
        "what really leaves cannot be counted, because the kernel does not let Linerate follow its XDP \
         tracepoints: {error:#}; run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
    ))
}

fn install_wake_handler() -> Result<(), Error> {
    extern "C" fn nothing(_: i32) {}
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler does nothing, so it is safe in any context.
    unsafe { sigaction(WAKE, &action) }
        .map(drop)
        .map_err(|error| Error::Failed(format!("cannot install a signal handler: {error}")))
}

/// What a worker's thread needs.
struct Run {
    program: RawFd,
    page: Vec<u8>,
    core: usize,
    /// Whether cores are left for everyone else.
    others: bool,
    namespace: Option<OwnedFd>,
    stop: Arc<AtomicBool>,
}

impl Run {
    /// Generates until told to stop; tells how it gives way.
    fn run(self, tell: &mpsc::Sender<Way>) -> Result<(), Error> {
        pin(self.core)?;
        let turns = precedence::in_turns(self.others)?;
        let _ = tell.send(turns.way());
        enter_namespace(self.namespace.as_ref().map(AsFd::as_fd))?;
        // It has opened all that it needs. Where the kernel filters no calls, `linerate doctor` says so.
        let _ = give_up(Duty::Frames);
        while !self.stop.load(Ordering::SeqCst) {
            let mut options = bpf_test_run_opts {
                sz: size_of::<bpf_test_run_opts>() as _,
                data_in: self.page.as_ptr().cast(),
                data_size_in: self.page.len() as u32,
                repeat: -1, // as unsigned: as long as possible
                flags: LIVE_FRAMES,
                ..bpf_test_run_opts::default()
            };
            // SAFETY: the page outlives the call, and the program's descriptor is open as long as
            // the generator, which joins this thread before it closes it.
            let result = unsafe { bpf_prog_test_run_opts(self.program, &raw mut options) };
            if result < 0 && -result != nix::libc::EINTR {
                return Err(run_error(-result));
            }
        }
        Ok(())
    }
}

fn run_error(errno: i32) -> Error {
    let errno = nix::errno::Errno::from_raw(errno);
    let remedy = match errno {
        nix::errno::Errno::EPERM => "run as root, or with CAP_BPF and CAP_NET_ADMIN",
        nix::errno::Errno::EINVAL => "generating frames in the kernel needs Linux 5.18 or newer",
        _ => "`linerate doctor` says what is missing",
    };
    Error::Failed(format!("the kernel refuses to generate frames: {}; {remedy}", errno.desc()))
}
