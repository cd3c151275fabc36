//! The engine on AF_XDP sockets: two interfaces of the kernel enter, an idle engine leaves.
//!
//! It sends by every card that the kernel has a driver for: no driver is unbound, and no hugepages are needed.
//! Without copies where the driver can, else the kernel copies. A frame is sent when the driver took it. One
//! that the driver dropped is unsent; at a veth, whose queue is the device's, it is sent and refused.

mod arrivals;
mod open;
mod queues;
pub mod replay;
pub mod stream;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use arrivals::CountedBy;
pub use xsk::{Copying, Mode, has_large_frames};
use xsk::{Interface, Program, Statistics, Watch, WhyCopies};

use crate::live::Live;
use crate::memif::Anyone;
use crate::refusal::Mtu;
use crate::user_space::workers::{check, start};
use crate::user_space::{Crew, Ports, Workers, longest};
use crate::xdp::{PortRef, Receiver};
use crate::{Error, refusal};
use open::{Opening, Purpose, open, wait_until_up};
use queues::{Receiving, Sending};

/// How often it is asked whether programs are still where they were attached: the kernel takes the lock of all
/// interfaces for it.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The largest frame, FCS included.
pub const MAX_FRAME: usize = xsk::LONGEST + wire::size::FCS as usize;

/// How the kernel shall serve the sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether frames may stay where they are.
    pub copying: Copying,
    /// When drivers work.
    pub busy_poll: BusyPoll,
    /// Who counts what arrives.
    pub counting: Counting,
}

/// Who counts what arrives at two ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// The kernel's program, unless [`Crew::receive_cores`] are named, frames need no copies or the port does not take
    /// it: then workers by sockets.
    #[default]
    Cheaper,
    /// Workers by sockets.
    Sockets,
}

/// Whether drivers work when a worker asks them to, instead of by interrupts (preferred busy polling, Linux 5.11). They
/// work by interrupts where the kernel has it not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BusyPoll {
    /// At cards; not at a veth or a tap, whose other end would then work on the worker's core.
    #[default]
    Cards,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

/// The engine on two interfaces. Dropping it ends its workers, closes its sockets and detaches its programs.
pub type AfXdpEngine = Live<Workers<AfXdpPorts>>;

impl AfXdpEngine {
    /// Opens `ports`, which are in `namespace` (`None` for the current one), and starts the idle workers of
    /// `crew`. There are two ports, or one that frames of direction 0 leave by.
    ///
    /// # Errors
    /// When the table does not fit this engine, an interface cannot be used or is down, or a worker does not
    /// start.
    pub fn start(
        ports: &[&PortRef],
        namespace: Option<BorrowedFd<'_>>,
        options: Options,
        crew: &Crew<'_>,
    ) -> Result<Self, Error> {
        check::<AfXdpPorts>(crew)?;
        let opening = |purpose| Opening {
            namespace,
            options,
            longest: longest(crew.table),
            fill: crew.table.fill,
            purpose,
            senders: crew.send_cores.len(),
        };
        match ports {
            [port] if crew.table.directions() == 1 => {
                let (port, queues) = open(port, &opening(Purpose::Send))?;
                wait_until_up(&[&port])?;
                let none = queues::none(crew.send_cores.len());
                start(AfXdpPorts { ports: vec![port], program: None }, [queues, none], crew)
            }
            [zero, one] => {
                // The program first: drivers that need no copies want one before the sockets.
                let (program, counted_by) = arrivals::choose(&[zero, one], namespace, options, crew);
                let open = |port: &PortRef, by: &CountedBy| {
                    let by_sockets = matches!(by, CountedBy::Sockets(_));
                    open(port, &opening(if by_sockets { Purpose::Engine } else { Purpose::Send }))
                };
                let (mut zero, from_zero) = open(zero, &counted_by[0])?;
                let (mut one, from_one) = open(one, &counted_by[1])?;
                wait_until_up(&[&zero, &one])?;
                [zero.counted_by, one.counted_by] = counted_by.map(Some);
                start(AfXdpPorts { ports: vec![zero, one], program }, [from_zero, from_one], crew)
            }
            _ => Err(Error::Refused("both directions need two ports".into())),
        }
    }

    /// How the kernel serves each port.
    #[must_use]
    pub fn modes(&self) -> Vec<Mode> {
        self.machinery().ports.ports.iter().map(|port| port.mode).collect()
    }

    /// Whether the driver of each port works when a worker asks it to.
    #[must_use]
    pub fn busy_polls(&self) -> Vec<bool> {
        self.machinery().ports.ports.iter().map(|port| port.busy_polls).collect()
    }

    /// How the kernel serves each port, why it copies, and who counts what arrives and why, for the record.
    #[must_use]
    pub fn modes_in_words(&self) -> Vec<String> {
        self.machinery().ports.ports.iter().map(Port::in_words).collect()
    }

    /// Who counts what arrives at each port; nobody at one that only sends.
    #[must_use]
    pub fn counted_by(&self) -> Vec<Option<&CountedBy>> {
        self.machinery().ports.ports.iter().map(|port| port.counted_by.as_ref()).collect()
    }

    /// What the sockets of each port counted.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn statistics(&self) -> Result<Vec<Statistics>, Error> {
        self.machinery().ports.ports.iter().map(Port::statistics).collect()
    }
}

impl From<xsk::Error> for Error {
    fn from(error: xsk::Error) -> Self {
        match error {
            xsk::Error::Vanished { .. } => Self::Port(error.to_string()),
            xsk::Error::Failed { .. } => Self::Failed(error.to_string()),
            _ => Self::Refused(error.to_string()),
        }
    }
}

/// Counts the frames of Linerate that arrive at `ports`, one or two, which are in `namespace`, by workers on `cores`
/// that share their queues. All other frames pass to the kernel.
///
/// # Errors
/// When an interface cannot be used, or a worker does not start.
pub fn listen(
    ports: &[&PortRef],
    namespace: Option<BorrowedFd<'_>>,
    options: Options,
    cores: &[usize],
) -> Result<Workers<AfXdpPorts>, Error> {
    let (purpose, longest) = (Purpose::Receive, xsk::LONGEST);
    let opening = Opening { namespace, options, longest, fill: 0, purpose, senders: 0 };
    let opened = ports.iter().map(|port| open(port, &opening)).collect::<Result<Vec<_>, _>>()?;
    let (ports, queues): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
    let receive = queues.into_iter().map(|queues| queues.receive).collect();
    Workers::listen(AfXdpPorts { ports, program: None }, receive, cores)
}

/// An interface with its sockets.
pub(crate) struct Port {
    interface: Arc<Interface>,
    /// What hands frames to the sockets, if it receives by these.
    program: Option<Program>,
    /// Who counts what arrives, where that was chosen.
    counted_by: Option<CountedBy>,
    /// Its sockets.
    watches: Vec<Watch>,
    mode: Mode,
    why_copies: Option<WhyCopies>,
    busy_polls: bool,
    /// What must stay as long as it sends.
    mtu: Option<Mtu>,
    /// When the program was looked at last.
    looked: Instant,
}

impl Port {
    fn mode_in_words(&self) -> &'static str {
        match (self.mode, self.why_copies, self.busy_polls) {
            (Mode::ZeroCopy, _, false) => "af_xdp, zero copy",
            (Mode::ZeroCopy, _, true) => "af_xdp, zero copy, busy polling",
            (Mode::Copy, None, false) => "af_xdp, copy",
            (Mode::Copy, None, true) => "af_xdp, copy, busy polling",
            (Mode::Copy, Some(WhyCopies::NotByDriver), false) => "af_xdp, copy (the driver has no zero copy)",
            (Mode::Copy, Some(WhyCopies::NotByDriver), true) => {
                "af_xdp, copy (the driver has no zero copy), busy polling"
            }
            (Mode::Copy, Some(WhyCopies::Refused(_)), false) => "af_xdp, copy (the driver refused zero copy)",
            (Mode::Copy, Some(WhyCopies::Refused(_)), true) => {
                "af_xdp, copy (the driver refused zero copy), busy polling"
            }
        }
    }

    fn in_words(&self) -> String {
        let by = self.counted_by.as_ref().map(|by| format!("; {by}"));
        format!("{}{}", self.mode_in_words(), by.unwrap_or_default())
    }

    fn is_up(&self) -> bool {
        self.interface.is_up().unwrap_or(false)
    }

    /// What all sockets counted together.
    fn statistics(&self) -> Result<Statistics, Error> {
        let mut sum = Statistics::default();
        for watch in &self.watches {
            let Some(one) = watch.read()? else { continue };
            sum.sent += one.sent;
            sum.send_dropped += one.send_dropped;
            sum.send_invalid += one.send_invalid;
            sum.received += one.received;
            sum.receive_dropped += one.receive_dropped;
            sum.malformed += one.malformed;
        }
        Ok(sum)
    }

    /// Fails when the interface is gone or was changed, or the kernel and the sockets do not understand each other.
    fn check(&mut self) -> Result<(), Error> {
        self.interface.is_up()?;
        self.mtu.iter().try_for_each(|mtu| mtu.check(&self.interface))?;
        if self.looked.elapsed() > LOOK_EVERY {
            self.looked = Instant::now();
            if self.program.as_ref().is_some_and(|program| !program.is_attached()) {
                return Err(Error::Failed(refusal::program_removed(self.interface.name())));
            }
        }
        let Statistics { send_invalid, malformed, .. } = self.statistics()?;
        if send_invalid + malformed > 0 {
            return Err(Error::Failed(format!(
                "the kernel refused {send_invalid} frames at interface {}, and {malformed} of its own were \
                 not understood; this is a defect, please report it",
                self.interface.name()
            )));
        }
        Ok(())
    }
}

/// One interface, or two.
pub struct AfXdpPorts {
    ports: Vec<Port>,
    /// What counts in the kernel what arrives at those of them where workers do not.
    program: Option<Receiver>,
}

impl Ports for AfXdpPorts {
    const ENGINE: &'static str = "af_xdp";
    const MAX_FRAME: usize = MAX_FRAME;
    const COUNTS_REFUSED: bool = true;
    type Transmit = Sending;
    type Receive = Receiving;
    type Member = Anyone;

    fn member(&self) -> Anyone {
        Anyone
    }

    fn name(&self, port: usize) -> &str {
        self.ports.get(port).map_or("?", |port| port.interface.name())
    }

    fn is_up(&self, port: usize) -> bool {
        self.ports.get(port).is_none_or(Port::is_up)
    }

    fn passed(&self, port: usize) -> Result<u64, Error> {
        let program = self.ports.get(port).and_then(|port| port.program.as_ref());
        Ok(program.map(Program::passed).transpose()?.unwrap_or(0))
    }

    fn missed(&self, port: usize) -> Result<u64, Error> {
        let statistics = self.ports.get(port).map(Port::statistics).transpose()?;
        Ok(statistics.map_or(0, |statistics| statistics.receive_dropped))
    }

    fn program(&self) -> Option<&Receiver> {
        self.program.as_ref()
    }

    fn check(&mut self) -> Result<(), Error> {
        self.ports.iter_mut().try_for_each(Port::check)?;
        self.program.as_mut().map_or(Ok(()), Receiver::check)
    }
}
