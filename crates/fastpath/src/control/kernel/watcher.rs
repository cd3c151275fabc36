//! Follows the kernel's tables on a thread of its own: a network namespace enters, changes leave.
//!
//! The thread listens first and reads the tables then, so that nothing falls between. It reads them again
//! whenever it cannot know what changed: when notifications came faster than it took them (`ENOBUFS`), and
//! when the kernel changes routes without telling (see `Mirror::notified`). When the kernel refuses, it says so,
//! opens its sockets again and reads the tables. What vanished meanwhile is announced like anything else.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use netlink_packet_core::DecodeError;
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::LinkMessage;
use netlink_packet_route::neighbour::NeighbourMessage;
use netlink_packet_route::route::RouteMessage;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::pipe;

use super::candidates::Agreement;
use super::message::{self, Told};
use super::mirror::Mirror;
use super::netlink::Socket;
use super::{Change, Error};

/// Changes that are handed over at once.
const BATCH: usize = 1024;
/// Batches that wait for who takes them. When more do, notifications wait in the kernel; when those are
/// too many, the tables are read again. So memory stays bounded, whichever side is slow.
const BATCHES: usize = 16;
/// Notifications that may wait in the kernel, in bytes as it counts them: some ten thousand routes.
const BACKLOG: usize = 32 << 20;
/// How long after a doubt the tables are read again: others often follow at once.
const SETTLE: Duration = Duration::from_millis(20);
/// How long after a failure sockets are opened again. After each further one that is doubled, up to the last.
const RETRY: Duration = Duration::from_millis(20);
const RETRY_LAST: Duration = Duration::from_secs(5);
/// By which the kernel says whether it names what nexthop objects lead to.
const COMPATIBLE: &str = "/proc/sys/net/ipv4/nexthop_compat_mode";

/// Follows the kernel's tables until it is dropped.
pub struct Watcher {
    changes: Option<Receiver<Vec<Change>>>,
    /// Closed to end the thread.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    health: Arc<Counters>,
}

/// How well the kernel's tables can be followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// How many times the tables were read, the first time included.
    pub readings: u64,
    /// How many times notifications were lost because too many came at once.
    pub overruns: u64,
    /// How many times the kernel refused, so that sockets were opened again.
    pub failures: u64,
    /// Messages of the kernel that could not be understood.
    pub unreadable: u64,
}

#[derive(Default)]
struct Counters {
    readings: AtomicU64,
    overruns: AtomicU64,
    failures: AtomicU64,
    unreadable: AtomicU64,
}

impl Watcher {
    /// Begins to follow the tables of the calling thread's network namespace. First come all addresses,
    /// neighbours and routes that are there, then [`Change::Synchronised`], then what changes.
    ///
    /// # Errors
    /// [`Error::Refused`] where the kernel gives no socket or thread; [`Error::NextHopObjects`].
    pub fn start() -> Result<Self, Error> {
        Self::with_backlog(BACKLOG)
    }

    /// The same with room for so many bytes of notifications in the kernel. With less room tables are read
    /// again more often.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn with_backlog(bytes: usize) -> Result<Self, Error> {
        // Kernels without nexthop objects have no such file.
        if fs::read_to_string(COMPATIBLE).is_ok_and(|text| text.trim() == "0") {
            return Err(Error::NextHopObjects);
        }
        let refused =
            |cause: io::Error| Error::refused("cannot watch the kernel's routes", cause, "raise 'ulimit -n'");
        let sockets = Sockets::open(bytes).map_err(refused)?;
        let (stopped, stop) = pipe().map_err(|errno| refused(errno.into()))?;
        let (output, changes) = sync_channel(BATCHES);
        let follower = Follower::new(sockets, bytes, stopped, output);
        let health = Arc::clone(&follower.health);
        let thread = thread::Builder::new().name("kernel-routes".to_owned()).spawn(|| follower.follow());
        let thread = thread.map_err(|cause| {
            Error::refused("cannot start a thread for the kernel's routes", cause, "raise 'ulimit -u'")
        })?;
        Ok(Self { changes: Some(changes), stop: Some(stop), thread: Some(thread), health })
    }

    /// The next changes, in order; none if none come within `patience`.
    ///
    /// # Errors
    /// [`Error::Died`].
    pub fn changes(&mut self, patience: Duration) -> Result<Vec<Change>, Error> {
        let changes = self.changes.as_ref().ok_or(Error::Died)?;
        match changes.recv_timeout(patience) {
            Ok(changes) => Ok(changes),
            Err(RecvTimeoutError::Timeout) => Ok(Vec::new()),
            Err(RecvTimeoutError::Disconnected) => Err(Error::Died),
        }
    }

    /// How well it goes.
    #[must_use]
    pub fn health(&self) -> Health {
        let Counters { readings, overruns, failures, unreadable } = &*self.health;
        let [readings, overruns, failures, unreadable] =
            [readings, overruns, failures, unreadable].map(|counter| counter.load(Ordering::Relaxed));
        Health { readings, overruns, failures, unreadable }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // One of both is what the thread waits for.
        self.changes = None;
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Both connections with the kernel.
struct Sockets {
    notifications: Socket,
    requests: Socket,
}

impl Sockets {
    fn open(backlog: usize) -> io::Result<Self> {
        Ok(Self { notifications: Socket::subscribe(backlog)?, requests: Socket::open()? })
    }
}

/// The thread.
struct Follower {
    sockets: Sockets,
    /// Bytes of notifications that may wait in the kernel.
    backlog: usize,
    stopped: OwnedFd,
    output: SyncSender<Vec<Change>>,
    mirror: Mirror,
    /// Not yet handed over.
    changes: Vec<Change>,
    /// When the tables are to be read.
    due: Option<Instant>,
    /// Not before.
    rested: Instant,
    health: Arc<Counters>,
}

/// Nobody wants to know any more.
struct Unwanted;

impl Follower {
    fn new(sockets: Sockets, backlog: usize, stopped: OwnedFd, output: SyncSender<Vec<Change>>) -> Self {
        Self {
            sockets,
            backlog,
            stopped,
            output,
            mirror: Mirror::new(),
            changes: Vec::new(),
            due: Some(Instant::now()),
            rested: Instant::now(),
            health: Arc::default(),
        }
    }

    /// Follows until nobody wants to know any more, whatever the kernel refuses meanwhile.
    fn follow(mut self) {
        let mut pause = RETRY;
        loop {
            let begun = Instant::now();
            let Err(error) = self.follow_until_refused() else { return };
            // After a good while it is another trouble.
            if begun.elapsed() > 2 * RETRY_LAST {
                pause = RETRY;
            }
            if self.refused(&error, pause).is_err() {
                return;
            }
            pause = (pause * 2).min(RETRY_LAST);
        }
    }

    fn follow_until_refused(&mut self) -> Result<(), Error> {
        loop {
            if self.due.is_some_and(|due| due <= Instant::now()) && self.read_tables()?.is_err() {
                return Ok(());
            }
            if self.wait()? || self.take_notifications()?.is_err() {
                return Ok(());
            }
        }
    }

    /// Waits for notifications, or until the tables are to be read; says whether to stop.
    fn wait(&self) -> Result<bool, Error> {
        let left = self.due.map(|due| due.saturating_duration_since(Instant::now()));
        // Rounded up, so as not to wake up before it is time.
        let timeout = left.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        let mut awaited = [
            PollFd::new(self.stopped.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.sockets.notifications.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut awaited, timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(awaited[0].any().unwrap_or(false)),
            Err(errno) => Err(failed("wait for the kernel's notifications", errno.into())),
        }
    }

    /// Takes all notifications that are there.
    fn take_notifications(&mut self) -> Result<Result<(), Unwanted>, Error> {
        loop {
            let (mut doubtful, mirror, changes) = (false, &mut self.mirror, &mut self.changes);
            let health = &self.health;
            let taken = self.sockets.notifications.notifications(|message| {
                let told = understood(message::read(message), health);
                doubtful |= mirror.notified(told, changes) == Agreement::Doubtful;
            });
            match taken {
                Ok(false) => return Ok(self.hand_over()),
                Ok(true) => {}
                Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => {
                    self.health.overruns.fetch_add(1, Ordering::Relaxed);
                    doubtful = true;
                }
                Err(error) => return Err(failed("receive the kernel's notifications", error)),
            }
            if doubtful && self.due.is_none() {
                self.due = Some(self.rested.max(Instant::now() + SETTLE));
            }
            if self.changes.len() >= BATCH && self.hand_over().is_err() {
                return Ok(Err(Unwanted));
            }
        }
    }

    /// Reads all tables. Notifications wait meanwhile, and repeat some of what was read. That does no harm,
    /// unless just then somebody replaces one of several routes of the same prefix and metric (no daemon
    /// makes such routes).
    fn read_tables(&mut self) -> Result<Result<(), Unwanted>, Error> {
        self.due = None;
        self.health.readings.fetch_add(1, Ordering::Relaxed);
        self.mirror.begin_reading();
        let begun = Instant::now();
        let mut of_one_moment = true;
        for table in tables() {
            let (mirror, changes, output) = (&mut self.mirror, &mut self.changes, &self.output);
            let health = &self.health;
            let mut wanted = Ok(());
            let read = self.sockets.requests.dump(table, |message| {
                mirror.read(understood(message::read(message), health), changes);
                if changes.len() >= BATCH {
                    wanted = hand_over(output, changes);
                }
            });
            of_one_moment &= read.map_err(|cause| failed("read the kernel's tables", cause))?;
            if wanted.is_err() {
                return Ok(wanted);
            }
        }
        // At most half of the time goes into reading.
        self.rested = Instant::now() + begun.elapsed();
        if of_one_moment {
            self.mirror.end_reading(&mut self.changes);
        } else {
            self.due = Some(self.rested);
        }
        Ok(self.hand_over())
    }

    /// Says what the kernel refused, waits, and has all tables read by new sockets.
    fn refused(&mut self, error: &Error, pause: Duration) -> Result<(), Unwanted> {
        self.health.failures.fetch_add(1, Ordering::Relaxed);
        self.changes.push(Change::Interrupted(error.to_string()));
        self.hand_over()?;
        let timeout = PollTimeout::try_from(pause).unwrap_or(PollTimeout::MAX);
        let mut stopped = [PollFd::new(self.stopped.as_fd(), PollFlags::POLLIN)];
        if poll(&mut stopped, timeout).is_ok_and(|awaited| awaited > 0) {
            return Err(Unwanted);
        }
        // Those of before refuse again.
        if let Ok(sockets) = Sockets::open(self.backlog) {
            self.sockets = sockets;
        }
        self.due = Some(Instant::now());
        Ok(())
    }

    fn hand_over(&mut self) -> Result<(), Unwanted> {
        hand_over(&self.output, &mut self.changes)
    }
}

fn hand_over(output: &SyncSender<Vec<Change>>, changes: &mut Vec<Change>) -> Result<(), Unwanted> {
    if changes.is_empty() {
        return Ok(());
    }
    output.send(std::mem::take(changes)).map_err(|_| Unwanted)
}

/// What a message says; one that cannot be understood says nothing, and is counted.
fn understood(told: Result<Told, DecodeError>, health: &Counters) -> Told {
    told.unwrap_or_else(|_| {
        health.unreadable.fetch_add(1, Ordering::Relaxed);
        Told::Nothing
    })
}

fn failed(what: &str, cause: io::Error) -> Error {
    Error::refused(
        format!("cannot {what}"),
        cause,
        "it is tried again; please report this if that does not help",
    )
}

/// The requests for all tables: interfaces first, of which the others speak, routes last.
fn tables() -> Vec<RouteNetlinkMessage> {
    let route = |family| {
        let mut message = RouteMessage::default();
        message.header.address_family = family;
        RouteNetlinkMessage::GetRoute(message)
    };
    vec![
        RouteNetlinkMessage::GetLink(LinkMessage::default()),
        RouteNetlinkMessage::GetAddress(AddressMessage::default()),
        RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default()),
        route(AddressFamily::Inet),
        route(AddressFamily::Inet6),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::candidates::Place;
    use super::super::message::Route;
    use super::super::{Path, RouteChange};
    use super::*;
    use crate::fib::Prefix;

    #[test]
    fn what_the_kernel_refuses_is_asked_again_and_what_went_meanwhile_is_told() {
        // A route of an earlier reading, which the kernel does not have: of a network for documents.
        let (prefix, path) = (Prefix::new(0xcb00_7100, 24).unwrap(), Path::Blackhole);
        let gone = Change::Route4(RouteChange { prefix, path: None });
        let broken = [
            Sockets { notifications: Socket::broken(), requests: Socket::open().unwrap() },
            Sockets { notifications: Socket::subscribe(BACKLOG).unwrap(), requests: Socket::broken() },
        ];
        for sockets in broken {
            let (stopped, stop) = pipe().unwrap();
            let (output, changes) = sync_channel(BATCHES);
            let mut follower = Follower::new(sockets, BACKLOG, stopped, output);
            let place = Some(Place::First);
            let route = Route { prefix, metric: 0, path: path.clone(), place, object: None };
            follower.mirror.read(Told::Route4(route), &mut Vec::new());
            let health = Arc::clone(&follower.health);
            let thread = thread::spawn(|| follower.follow());
            let mut told: Vec<Change> = Vec::new();
            let interrupted = |change: &Change| matches!(change, Change::Interrupted(_));
            let after = |told: &[Change]| {
                let at = told.iter().position(interrupted);
                at.is_some_and(|at| told[at..].contains(&Change::Synchronised))
            };
            while !after(&told) {
                told.extend(changes.recv_timeout(Duration::from_secs(20)).unwrap());
            }
            assert!(told.contains(&gone), "{told:?}");
            assert_eq!(health.failures.load(Ordering::Relaxed), 1);
            drop((stop, changes));
            thread.join().unwrap();
        }
    }
}
