//! The kernel engine: frames are generated, received and counted by XDP programs.
//!
//! A frame table and two ports enter; counts per interval leave. `generate.bpf.c` paces and
//! sends, `receive.bpf.c` counts; `generator` and `receiver` are their user-space halves.

mod generator;
mod port;
pub mod precedence;
mod program;
mod receiver;
mod rows;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use nix::sched::{CloneFlags, setns};
use traffic::{Apart, FrameTable};

pub use generator::Generator;
pub use receiver::Receiver;

use crate::live::{INTERVALS, Live, Machinery, Received, Sent};
use crate::timeline;
use crate::{Capabilities, Error, Order, StreamTotals, Timeline, Totals};

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
pub type XdpEngine = Live<Kernel>;

/// The kernel's programs, which send and receive.
pub struct Kernel {
    generator: Generator,
    receiver: Receiver,
    apart: Apart,
    /// Whether it was told that a port cannot go on: what is on its way can still be waited for.
    told: bool,
}

impl XdpEngine {
    /// Attaches the receiver to both ports and starts idle workers.
    ///
    /// # Errors
    /// As [`Receiver::attach`] and [`Generator::start`].
    pub fn start(config: &Config<'_>) -> Result<Self, Error> {
        let (streams, apart) = (config.table.streams(), config.table.apart);
        let receiver =
            Receiver::attach_for(&config.ports, config.namespace, streams, config.cores.len(), apart)?;
        let generator = Generator::start(config.table, &config.ports, config.namespace, config.cores)?;
        let kernel = Kernel { generator, receiver, apart, told: false };
        Self::new(kernel, config.table.directions(), Arc::clone(&config.stop))
    }

    /// How each port runs the receiver: `native` or `generic`.
    #[must_use]
    pub fn modes(&self) -> Vec<&'static str> {
        self.machinery().receiver.modes()
    }
}

impl Machinery for Kernel {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "xdp", max_frame_size: MAX_FRAME, unseen: &UNSEEN }
    }

    fn announce(&mut self, slot: u64, order: &Order, start: u64) -> Result<(), Error> {
        if slot >= INTERVALS as u64 {
            self.receiver.forget(slot)?;
        }
        self.generator.begin(slot, order, start)
    }

    fn check(&mut self) -> Result<(), Error> {
        if self.told {
            return self.generator.check_workers();
        }
        let checked = self.generator.check().and_then(|()| self.receiver.check());
        self.told = checked.is_err();
        checked
    }

    fn give_way(&mut self) {
        self.generator.give_way();
    }

    fn reached(&self) -> u64 {
        self.generator.reached()
    }

    fn begun(&self, slot: u64) -> Result<Vec<Option<u64>>, Error> {
        self.generator.begun(slot)
    }

    fn sent(&self, slot: u64, direction: usize) -> Result<Sent, Error> {
        self.generator.sent(slot, direction)
    }

    fn received(&self, slot: u64, direction: usize) -> Result<Received, Error> {
        self.receiver.received(slot, direction)
    }

    fn timeline(&self, direction: usize, start: u64, end: u64) -> Result<Option<Timeline>, Error> {
        let (sent, received) = (self.generator.bins(direction)?, self.receiver.bins(direction)?);
        Ok(timeline::of(&sent, &received, start, end))
    }

    fn totals(&self, direction: usize) -> Result<Totals, Error> {
        let lateness = self.generator.lateness(direction)?;
        Ok(Totals { lateness, refused: Some(0), ..self.receiver.totals(direction)? })
    }

    fn streams(&self, direction: usize) -> Result<Vec<StreamTotals>, Error> {
        let streams = 0..self.apart.streams;
        streams
            .map(|stream| {
                // What arrived is read first, so that it is never more than what was sent.
                let mut totals = self.receiver.stream(stream, direction)?;
                let (frames, bytes) = self.generator.stream_sent(stream, direction)?;
                totals.add_sent(frames, bytes);
                Ok(totals)
            })
            .collect()
    }
}

/// The two ports' indexes as the programs want them; 0 for one that is not there.
pub(crate) fn indexes(ports: &[PortRef]) -> [u32; DIRECTIONS] {
    let index = |port: usize| ports.get(port).map_or(0, |port| port.index);
    [index(0), index(1)]
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
pub(crate) fn in_namespace<T: Send>(
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
