//! The engine in user space on memifs of our own: two ends of shared memory enter, an idle engine leaves.
//!
//! Frames are built in the ring that the device receives from, and judged in the ring that it sends to:
//! nothing is copied. It needs no DPDK.

pub mod build_rate;
mod control;
mod queues;
pub mod replay;
pub mod stream;

use std::time::Duration;

use memif::{Config, Memif, Opened, Role, Socket};

use crate::Error;
use crate::live::Live;
use crate::user_space::workers::{check, start};
use crate::user_space::{Crew, MAX_FRAME, Member, Ports, Queues, WhenFull, Workers, longest, room};
use control::Controlled;
use queues::{Receiving, Sending};

pub use control::PortsWatch;

/// How long the other ends may take to connect.
const PATIENCE: Duration = Duration::from_secs(5);
/// Frames that a ring holds.
const RING: u16 = 1024;

/// One of the two ports: an end of a memif.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// What it is called.
    pub name: String,
    /// Whether it listens, or connects and brings the memory.
    pub role: Role,
    /// Where the control channel is.
    pub socket: Socket,
    /// The interface's number, the same at both ends.
    pub id: u32,
    /// What both ends must know; empty for nothing.
    pub secret: String,
    /// Whether memory that the client can take away is used all the same; see [`Config::unsealed`].
    pub unsealed: bool,
}

/// An end, and what controls it.
type Named = (End, Memif);

/// The engine on two memifs. Dropping it ends its workers and closes its ports.
pub type MemifEngine = Live<Workers<MemifPorts>>;

impl MemifEngine {
    /// Opens port 0 and port 1, waits until they are connected and starts the idle workers of `crew`.
    ///
    /// # Errors
    /// When the table does not fit this engine, an end cannot be used or has no other end, or a worker
    /// does not start.
    pub fn start(ends: [&End; 2], crew: &Crew<'_>) -> Result<Self, Error> {
        check::<MemifPorts>(crew)?;
        let (controlled, queues) = open(ends, crew.queues(), longest(crew.table), crew.table.fill)?;
        start(MemifPorts { controlled, whole: ends.map(|end| end.role == Role::Server) }, queues, crew)
    }

    /// Whether the other ends of port 0 and port 1 are there.
    #[must_use]
    pub fn are_up(&self) -> [bool; 2] {
        [0, 1].map(|port| self.machinery().ports.controlled.is_up(port))
    }

    /// The two ports from beside.
    #[must_use]
    pub fn watch(&self) -> PortsWatch {
        let workers = self.machinery();
        workers.ports.controlled.watch(workers.senders.clone())
    }
}

/// Counts what arrives at `ends`, one or two, by workers on `cores` with a queue each. Their other ends may come later.
///
/// # Errors
/// When an end cannot be opened, or a worker does not start.
pub fn listen(ends: &[&End], cores: &[usize]) -> Result<Workers<MemifPorts>, Error> {
    let longest = MAX_FRAME - usize::from(wire::size::FCS);
    let opened =
        ends.iter().map(|end| open_one(end, cores.len(), longest, 0)).collect::<Result<Vec<_>, _>>()?;
    let (ends, queues): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
    let ports = MemifPorts { controlled: Controlled::start(ends)?, whole: [false; 2] };
    Workers::listen(ports, queues.into_iter().map(|queues| queues.receive).collect(), cores)
}

/// Opens both ends with so many queues each way, for frames of up to `longest` bytes without FCS, and waits
/// for their other ends.
fn open(
    ends: [&End; 2],
    queues: usize,
    longest: usize,
    fill: u8,
) -> Result<(Controlled, [Queues<Sending, Receiving>; 2]), Error> {
    let [zero, one] = ends.map(|end| open_one(end, queues, longest, fill));
    let ((zero, zero_queues), (one, one_queues)) = (zero?, one?);
    let controlled = Controlled::start(vec![zero, one])?;
    controlled.wait(queues, PATIENCE)?;
    Ok((controlled, [zero_queues, one_queues]))
}

/// Opens one end; nobody looks after it yet.
fn open_one(
    end: &End,
    queues: usize,
    longest: usize,
    fill: u8,
) -> Result<(Named, Queues<Sending, Receiving>), Error> {
    let interface = Config {
        id: end.id,
        secret: end.secret.clone(),
        unsealed: end.unsealed,
        name: end.name.clone(),
        receive_queues: queues as u16,
        send_queues: queues as u16,
        ring_size: RING,
        buffer_size: room(longest) as u32,
        fill,
        ..Config::new(end.role, end.socket.clone())
    };
    let Opened { memif, receivers, senders } =
        Memif::open(interface).map_err(|error| Error::Port(error.to_string()))?;
    let queues = Queues {
        transmit: senders.into_iter().map(|sender| Sending::new(sender, longest)).collect(),
        receive: receivers.into_iter().map(Receiving::new).collect(),
        when_full: WhenFull::Lost,
    };
    Ok(((end.clone(), memif), queues))
}

/// Two memifs.
pub struct MemifPorts {
    controlled: Controlled,
    /// Whether frames are built in memory of the other end's, which may hold anything.
    whole: [bool; 2],
}

impl Ports for MemifPorts {
    const ENGINE: &'static str = "memif";
    type Transmit = Sending;
    type Receive = Receiving;
    type Member = Anyone;

    fn member(&self) -> Anyone {
        Anyone
    }

    fn name(&self, port: usize) -> &str {
        self.controlled.name(port)
    }

    fn is_up(&self, port: usize) -> bool {
        self.controlled.is_up(port)
    }

    fn holds_anything(&self) -> bool {
        self.whole.contains(&true)
    }

    fn check(&mut self) -> Result<(), Error> {
        self.controlled.check()
    }
}

/// Any thread may move frames.
#[derive(Clone, Copy, Debug)]
pub struct Anyone;

impl Member for Anyone {
    type Pass = ();

    fn enter(&self) -> Result<(), Error> {
        Ok(())
    }
}
