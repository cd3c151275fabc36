//! The kernel beside the running router: interfaces that have a tap enter; the kernel sees them, what it
//! sends by them goes to a worker, and its routes come into the router if that is wanted.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::pipe;
use wire::{ethernet, vlan};

use crate::control::config::Interface;
use crate::control::kernel::{Change, Importer, Settings, Tap, Watcher};
use crate::control::router::Router;
use crate::control::show::hardware;
use crate::dataplane::punt;
use crate::dataplane::vector::MADE;
use crate::events::Injector;

/// Bytes of the longest packet that the kernel may send: with its link header and a tag, a worker can make it.
const MOST_MTU: u16 = (MADE - ethernet::LENGTH - vlan::LENGTH) as u16;
/// Frames of one tap that are taken before the next one has its turn.
const TURN: usize = 64;
/// Batches of routes that are taken at a time, so that clients of the router are not kept waiting.
const BATCHES: usize = 8;

/// What the router and the kernel have in common.
#[derive(Default)]
pub(super) struct Kernel {
    /// By the router's number of the interface.
    taps: BTreeMap<u16, Joined>,
    reader: Option<Reader>,
    importer: Importer,
    watcher: Option<Watcher>,
}

/// A tap, and the interface that it shows.
#[derive(Clone)]
struct Joined {
    tap: Arc<Tap>,
    /// Frames that the kernel sent, but for which the worker had no room.
    lost: Arc<AtomicU64>,
}

impl Kernel {
    /// Makes the kernel see an interface, which has no addresses yet.
    ///
    /// # Errors
    /// Those of [`Tap::create`].
    pub fn join(&mut self, router: &mut Router, number: u16, interface: &Interface) -> Result<()> {
        let Interface { name, mac, mtu, .. } = interface;
        let tap = Tap::create(&Settings { name, mac: *mac, mtu: mtu_of_tap(*mtu), addresses: &[] })?;
        let tap = Arc::new(tap);
        router.set_kernel(number, Some(punt::Kernel::new(tap.clone())))?;
        self.importer.join(tap.index(), number);
        self.taps.insert(number, Joined { tap, lost: Arc::default() });
        Ok(())
    }

    /// The tap of an interface, if it has one.
    pub fn tap(&self, number: u16) -> Option<&Tap> {
        self.taps.get(&number).map(|joined| &*joined.tap)
    }

    /// Has what the kernel sends by taps sent by `injector`, and follows the kernel's routes if they are
    /// wanted.
    ///
    /// # Errors
    /// When the kernel gives no thread or socket.
    pub fn start(&mut self, injector: Option<&Injector>, wants_routes: bool) -> Result<()> {
        if let Some(injector) = injector.filter(|_| !self.taps.is_empty()) {
            self.reader = Some(Reader::start(self.taps.clone(), injector.clone())?);
        }
        if wants_routes {
            self.watcher = Some(Watcher::start()?);
        }
        Ok(())
    }

    /// Brings what changed in the kernel's table into the router; what could not be done is said by `log`. Says
    /// whether more may have changed.
    ///
    /// # Errors
    /// When nobody takes what the kernel sends by taps any more.
    pub fn poll(&mut self, router: &mut Router, log: &dyn Fn(&str)) -> Result<bool> {
        if self.reader.as_ref().is_some_and(Reader::has_ended) {
            bail!(
                "the thread of the taps has failed, so the router stops: please report it, and what it said"
            );
        }
        for _ in 0..BATCHES {
            let Some(watcher) = &mut self.watcher else { return Ok(false) };
            match watcher.changes(Duration::ZERO) {
                Ok(changes) if changes.is_empty() => return Ok(false),
                Ok(changes) => self.import(&changes, router, log),
                Err(error) => {
                    log(&format!("the kernel's routes stay as they are from now on: {error}"));
                    self.watcher = None;
                }
            }
        }
        Ok(true)
    }

    /// Brings a batch of changes into the router. Of what is refused the first is said.
    fn import(&self, changes: &[Change], router: &mut Router, log: &dyn Fn(&str)) {
        let mut refused = None;
        for change in changes {
            if let Change::Interrupted(why) = change {
                log(&format!("the kernel's routes stay as they are until it works: {why}"));
            }
            refused = refused.or(self.importer.apply(change, router).err());
        }
        if let Some(error) = refused {
            log(&format!("a route of the kernel is not taken: {error}"));
        }
    }

    /// What users see of the taps.
    pub fn show(&self) -> Vec<hardware::Tap> {
        let show = |Joined { tap, lost }: &Joined| {
            let counted = tap.counters();
            hardware::Tap {
                name: tap.name().to_owned(),
                kernel_index: tap.index(),
                to_kernel: counted.written,
                refused: counted.down + counted.full + counted.malformed,
                from_kernel: counted.read,
                lost: counted.too_long + lost.load(Ordering::Relaxed),
            }
        };
        self.taps.values().map(show).collect()
    }
}

/// The MTU of the tap of an interface with this MTU.
pub(super) fn mtu_of_tap(mtu: u16) -> u32 {
    mtu.min(MOST_MTU).into()
}

/// The thread that takes what the kernel sends; it ends when this is dropped.
struct Reader {
    /// Closed to end the thread.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    fn start(taps: BTreeMap<u16, Joined>, injector: Injector) -> Result<Self> {
        let (stopped, stop) = pipe().context("cannot wait for the kernel's frames: raise 'ulimit -n'")?;
        let read = move || read(taps, &injector, &stopped);
        let thread = thread::Builder::new().name("taps".into()).spawn(read);
        let thread = thread.context("cannot start the thread of the taps: raise 'ulimit -u'")?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Whether it has ended though nobody told it to.
    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // If it panicked it has said so.
            let _ = thread.join();
        }
    }
}

/// Injects what the kernel sends until the other end of `stopped` is closed.
fn read(mut taps: BTreeMap<u16, Joined>, injector: &Injector, stopped: &OwnedFd) {
    let mut frame = vec![0; MADE];
    loop {
        let mut awaited = vec![PollFd::new(stopped.as_fd(), PollFlags::POLLIN)];
        awaited.extend(taps.values().map(|joined| PollFd::new(joined.tap.as_fd(), PollFlags::POLLIN)));
        match poll(&mut awaited, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(_) => return,
        }
        let mut found = awaited.iter().map(|of| of.revents().unwrap_or(PollFlags::empty()));
        if found.next().is_some_and(|stopped| !stopped.is_empty()) {
            return;
        }
        let found: Vec<PollFlags> = found.collect();
        let mut found = found.into_iter();
        taps.retain(|&number, joined| {
            let found = found.next().unwrap_or(PollFlags::empty());
            if found.contains(PollFlags::POLLIN) {
                take(number, joined, injector, &mut frame);
            }
            // Somebody removed it: nothing comes from it any more.
            !found.intersects(PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL)
        });
    }
}

/// Injects what the kernel has sent by a tap, up to its turn's end.
fn take(number: u16, joined: &Joined, injector: &Injector, frame: &mut [u8]) {
    for _ in 0..TURN {
        let Some(length) = joined.tap.read(frame) else { return };
        if !injector.inject(number, &frame[..length]) {
            joined.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}
