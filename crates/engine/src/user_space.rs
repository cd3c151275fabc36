//! What engines in user space share: frames are built in this process, and what came back is counted in it.
//!
//! A frame table and two ports with their queues enter; counts per interval leave. A worker is a thread on a
//! core of its own: it sends (`sender`), receives (`receiver`) or both, reads loads from a `board`, and
//! counts in a `tally` that nobody else writes. Ports are DPDK's (`dpdk`), memifs of our own
//! ([`crate::memif`]) or interfaces of the kernel ([`crate::af_xdp`]): a [`Ports`] says how frames leave by them
//! and arrive.

mod board;
pub(crate) mod build_rate;
mod carrier;
mod receiver;
mod sender;
mod stream;
pub(crate) mod tally;
pub(crate) mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use traffic::FrameTable;

use crate::Error;
use crate::xdp::Receiver;

pub use carrier::Pair;
pub use stream::Stream;
pub use workers::Workers;

/// The largest frame, FCS included.
pub const MAX_FRAME: usize = 9216;
/// Frames that leave or arrive together at most, and share a reading of the clock.
pub const BURST: usize = 64;

/// What is sent, and by which cores.
pub struct Crew<'a> {
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

impl Crew<'_> {
    /// The cores that receive.
    pub(crate) fn receiving(&self) -> &[usize] {
        if self.receive_cores.is_empty() { self.send_cores } else { self.receive_cores }
    }

    /// Queues of each kind that each port needs: the other end of a memif has as many receive queues as this
    /// one has transmit queues, and the other way round.
    pub(crate) fn queues(&self) -> usize {
        self.send_cores.len().max(self.receiving().len())
    }
}

/// Bytes of the longest frame of `table`, without FCS.
pub(crate) fn longest(table: &FrameTable) -> usize {
    table.rows.iter().map(|row| usize::from(row.length)).max().unwrap_or(0)
}

/// Bytes of a buffer that holds every frame of up to `longest` bytes; no less than half a page.
#[must_use]
pub fn room(longest: usize) -> usize {
    longest.next_multiple_of(64).max(2048)
}

/// A name for the socket of a memif, new each time: DPDK 22.11 goes on listening when a port is gone.
#[must_use]
pub fn socket_name() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    format!("/linerate-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed))
}

/// What becomes of a frame that a port has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The port's queue is the device's receive queue, in memory that both share: the device did not
    /// keep up, and the frame is lost as it would be at a card of its own.
    Lost,
    /// The queue is the tester's own: the frame waits, until it is too late and counts as unsent.
    Waits,
}

/// Where frames leave: a queue of a port, and memory that they are built in. One thread uses it.
pub trait Transmit: Send + 'static {
    /// Room for frame number `index` of those that are not sent yet, which has `length` bytes; `None` when
    /// there is none for now. Numbers come one after the other.
    fn place(&mut self, index: usize, length: usize) -> Option<&mut [u8]>;

    /// Sends the first `count` frames, and says how many left. The others are in front then if they wait,
    /// and forgotten if they are lost.
    fn send(&mut self, count: usize) -> usize;

    /// Of the frames that the last [`Self::send`] said to have left, those that were dropped.
    #[inline]
    fn dropped(&mut self) -> Dropped {
        Dropped::default()
    }

    /// Takes the last frames of the `count` that wait back, and says how many those are. The port may still
    /// send the others, which stay in front.
    fn recall(&mut self, count: usize) -> usize {
        count
    }

    /// Why a frame of `length` bytes can never be sent here, where that is known.
    fn refusal(&self, length: usize) -> Option<String> {
        let _ = length;
        None
    }

    /// Whether the other end is there.
    fn is_up(&self) -> bool;
}

/// Frames that a port took and that were then dropped at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Bit `i` is frame `i` of those that were handed over together.
    pub frames: u64,
    /// Who dropped them.
    pub by: DroppedBy,
}

/// Who dropped a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DroppedBy {
    /// The tester's own driver: it is unsent.
    #[default]
    Driver,
    /// The interface, because it was down or had no link: it is unsent.
    DownInterface,
    /// The device's receive queue, which the port hands frames to itself: it is sent, and refused.
    Device,
}

impl Dropped {
    /// Those that did not leave.
    #[must_use]
    pub fn unsent(self) -> u64 {
        if self.by == DroppedBy::Device { 0 } else { self.frames }
    }
}

/// Where frames arrive. One thread uses it.
pub trait Receive: Send + 'static {
    /// How many frames have arrived, up to [`BURST`]; they are there until they are released.
    fn receive(&mut self) -> usize;

    /// Frame `index` of those; `None` if it is in several pieces.
    fn frame(&self, index: usize) -> Option<&[u8]>;

    /// Gives all of them back.
    fn release(&mut self);
}

/// What a port, or its driver, counted since it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortCounted {
    /// The port.
    pub name: String,
    /// Frames that arrived.
    pub received: u64,
    /// Frames for which there was no room when they arrived, or that were broken.
    pub receive_dropped: u64,
    /// Frames that left.
    pub sent: u64,
    /// Frames that a full queue of the device's refused, as we counted: drivers do not.
    pub send_dropped: u64,
}

/// The queues of one port.
#[derive(Debug)]
pub struct Queues<T, R> {
    /// One for each core that sends, or more.
    pub transmit: Vec<T>,
    /// Those that arrive.
    pub receive: Vec<R>,
    /// What becomes of a frame that there is no room for.
    pub when_full: WhenFull,
}

/// Two ports that are open.
pub trait Ports: Sized {
    /// What `--engine` calls this kind.
    const ENGINE: &'static str;
    /// The largest frame, FCS included.
    const MAX_FRAME: usize = MAX_FRAME;
    /// Whether frames that the device's receive queue refused are counted by interval.
    const COUNTS_REFUSED: bool = false;
    /// How frames leave.
    type Transmit: Transmit;
    /// How they arrive.
    type Receive: Receive;
    /// What a thread that moves frames must be. Cheap to clone.
    type Member: Member;

    /// What a thread that works with these ports must be.
    fn member(&self) -> Self::Member;

    /// What port 0 or port 1 is called.
    fn name(&self, port: usize) -> &str;

    /// Whether the other end of port 0 or port 1 is there, as far as is known.
    fn is_up(&self, port: usize) -> bool;

    /// Frames that arrived at port 0 or port 1 and passed to somebody else before they were looked at.
    ///
    /// # Errors
    /// When that cannot be read.
    fn passed(&self, port: usize) -> Result<u64, Error> {
        let _ = port;
        Ok(0)
    }

    /// Frames that arrived at port 0 or port 1 and found no room, where the port counts them.
    ///
    /// # Errors
    /// When that cannot be read.
    fn missed(&self, port: usize) -> Result<u64, Error> {
        let _ = port;
        Ok(0)
    }

    /// What counts in the kernel what arrives at ports where workers do not receive.
    fn program(&self) -> Option<&Receiver> {
        None
    }

    /// Whether the places that frames are built in may hold anything, where others hold the payload.
    fn holds_anything(&self) -> bool {
        false
    }

    /// Why they cannot be used any longer, where there can be a reason.
    ///
    /// # Errors
    /// That.
    fn check(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// What lets a thread move frames.
pub trait Member: Clone + Send + 'static {
    /// Until when it may.
    type Pass;

    /// Lets this thread.
    ///
    /// # Errors
    /// Why it may not.
    fn enter(&self) -> Result<Self::Pass, Error>;
}
