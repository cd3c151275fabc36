//! An interface of the kernel by AF_XDP: a socket at each of its receive queues. Frames are lent where they
//! arrived; what is sent is copied, once. What takes a shortcut comes to no socket.

mod shortcuts;

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};

use xsk::{
    Config, Error, Interface, MAX_LENGTH, Membership, Mode, Others, Poster, Program, Receiver, Watch,
    WhyCopies,
};

pub use self::shortcuts::{Shortcuts, Taken};
use super::{Input, Output, Queues};
use crate::control::config::AfXdp;
use crate::control::show::hardware::{self, Copying, Link, Lost};
use crate::dataplane::vector::Frame;

/// Bytes of a frame before its packet, with two tags.
const HEADER: usize = 22;
/// Frames that are taken from an interface, or given to it, by one call of the kernel: as many each way, so that an
/// interface that is sent to, and polled by that, brings no more than is sent. 32 are what kernels before 6.17 send.
const BUDGET: u16 = 32;
/// Frames that wait for a worker at most. What arrives beyond, the kernel drops before it copies it.
const WAITING: u32 = 1024;

/// An interface as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The interface, and the queues that it receives from.
    pub device: AfXdp,
    /// Bytes that a packet may have, without link header.
    pub mtu: u16,
    /// How many workers send by it.
    pub workers: usize,
}

/// Why an interface cannot be opened: cause and remedy.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// What the kernel says.
    #[error(transparent)]
    Kernel(#[from] Error),
    /// It is set down.
    #[error("interface {0} is down: set it up first (ip link set dev {0} up)")]
    Down(String),
    /// It has fewer receive queues.
    #[error(
        "interface {name} receives by {has} queues, and queues={wanted} asks for more: give it more (ethtool -L \
         {name} combined {wanted}), or write queues={has}"
    )]
    Queues {
        /// The interface.
        name: String,
        /// How many it has.
        has: u32,
        /// How many are asked for.
        wanted: u16,
    },
    /// Packets are too long.
    #[error("by af_xdp packets have up to {most} bytes, and an MTU of {0} asks for more: write a smaller mtu", most = MAX_LENGTH - HEADER)]
    Mtu(u16),
}

impl Wanted {
    /// Opens the interface: its control end, and its queues.
    ///
    /// As the router's device number `device`; with `shortcuts`, packets can take them.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn open(&self, device: u16, shortcuts: Option<&Shortcuts>) -> Result<(Control, Queues), Refusal> {
        let longest = usize::from(self.mtu) + HEADER;
        if longest > MAX_LENGTH {
            return Err(Refusal::Mtu(self.mtu));
        }
        let AfXdp { interface: name, queues: wanted, busy_poll, .. } = &self.device;
        let interface = Interface::find(name)?;
        if interface.is_set_down()? {
            return Err(Refusal::Down(name.clone()));
        }
        let has = interface.queues().receive;
        if u32::from(*wanted) > has {
            return Err(Refusal::Queues { name: name.clone(), has, wanted: *wanted });
        }
        // The program first: drivers that need no copies want one before the sockets.
        let received = longest.max(interface.mtu()? + HEADER);
        let program = match shortcuts {
            None => Program::attach(&interface, xsk::Wanted::All, received)?,
            Some(shortcuts) => shortcuts.attach(&interface, device, received)?,
        };
        let config = Config {
            longest,
            busy_poll: busy_poll.unwrap_or_else(|| !interface.hands_over_at_once()),
            budget: BUDGET,
            receiving: WAITING,
            ..Config::new()
        };
        let (mut inputs, mut senders, mut watches) = (Vec::new(), Vec::new(), Vec::new());
        let mut copying = Copying { zero_copy: true, reason: None, busy_polls: true };
        for queue in 0..u32::from(*wanted) {
            let mut socket = xsk::open(&interface, queue, &config)?;
            program.add(&socket)?;
            copying.note(socket.mode, socket.why_copies, socket.busy_polls);
            watches.push(socket.watch.clone());
            let receiver = socket.receiver.take();
            inputs.extend(receiver.map(|receiver| Box::new(Lender { receiver }) as Box<dyn Input>));
            let sender = socket.sender.take();
            senders.extend(sender.map(|sender| Arc::new(Mutex::new(sender.into_poster()))));
        }
        let takers = senders.iter().cycle().take(self.workers.max(1));
        let taker = |poster: &Arc<Mutex<Poster>>| Taker { poster: Arc::clone(poster), stopped: false };
        let outputs = takers.map(|poster| Box::new(taker(poster)) as Box<dyn Output>).collect();
        // The router may have another MAC address than the interface; a driver that cannot take frames for it is no
        // reason not to start.
        let promiscuous = interface.take(Others::All).ok();
        let most_mtu = self.most_mtu();
        let control = Control { interface, program, _promiscuous: promiscuous, watches, copying, most_mtu };
        Ok((control, Queues { inputs, outputs }))
    }

    /// The largest MTU that its buffers have room for.
    fn most_mtu(&self) -> u16 {
        let longest = usize::from(self.mtu) + HEADER;
        let most = if longest <= SHORT { SHORT } else { MAX_LENGTH };
        (most - HEADER) as u16
    }
}

/// The longest frame of the smaller of two kinds of buffers: the kernel keeps 256 bytes free before it.
const SHORT: usize = 2048 - 256;

impl Copying {
    /// Takes account of one more socket.
    fn note(&mut self, mode: Mode, why: Option<WhyCopies>, busy_polls: bool) {
        self.busy_polls &= busy_polls;
        if mode == Mode::Copy {
            self.zero_copy = false;
            let reason = why.map(|why| match why {
                WhyCopies::NotByDriver => "the driver has no zero copy".to_owned(),
                WhyCopies::Refused(_) => "the driver refused zero copy".to_owned(),
            });
            self.reason = self.reason.take().or(reason);
        }
    }
}

/// The control end of an interface.
pub struct Control {
    interface: Interface,
    program: Program,
    /// Held so that frames for the router's address arrive.
    _promiscuous: Option<Membership>,
    watches: Vec<Watch>,
    copying: Copying,
    most_mtu: u16,
}

impl Control {
    /// How the kernel serves it.
    #[must_use]
    pub fn copying(&self) -> &Copying {
        &self.copying
    }

    /// The largest MTU that its buffers have room for.
    #[must_use]
    pub fn most_mtu(&self) -> u16 {
        self.most_mtu
    }

    /// The kernel's index of it.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.interface.index()
    }

    /// Whether packets that take shortcuts can come and go by it. What is at the other end of a veth may change that.
    #[must_use]
    pub fn can_have_shortcuts(&self) -> hardware::Shortcuts {
        let off = |reason: &str| hardware::Shortcuts::Off(reason.to_owned());
        match self.interface.takes_redirected() {
            _ if !self.program.is_native() => off("its driver has no XDP"),
            Some(true) => hardware::Shortcuts::On,
            Some(false) => off(
                "it takes no frames of XDP programs; a veth does once its other end has such a program or GRO",
            ),
            None => off(
                "the kernel does not say whether it takes frames of XDP programs: Linux 6.3 or newer does",
            ),
        }
    }

    /// Whether frames come and go by it, and why not. Asking takes a lock of the kernel's.
    #[must_use]
    pub fn link(&self) -> Link {
        let (name, down) = (self.interface.name(), Link::Down);
        match (self.interface.is_set_down(), self.interface.is_up()) {
            (Err(_), _) | (_, Err(_)) => {
                down(format!("the kernel has lost the interface {name}: restart the router once it is back"))
            }
            (Ok(true), _) => down(format!("set it up: ip link set dev {name} up")),
            (Ok(false), Ok(false)) => down("no peer is connected".into()),
            _ if !self.program.is_attached() => {
                down(format!("somebody detached the router's XDP program from {name}: restart the router"))
            }
            _ => Link::Up,
        }
    }

    /// Frames that were lost before a worker received them or after it had sent them; `None` where the kernel does
    /// not say.
    #[must_use]
    pub fn lost(&self) -> Option<Lost> {
        let mut lost = Lost::default();
        for watch in &self.watches {
            let Some(one) = watch.read().ok()? else { continue };
            lost.missed += one.receive_dropped;
            lost.errors += one.malformed;
            lost.unsent += one.send_dropped + one.send_invalid;
        }
        Some(lost)
    }
}

struct Lender {
    receiver: Receiver,
}

impl Input for Lender {
    fn receive(&mut self, frames: &mut [Frame]) -> usize {
        let received = self.receiver.receive_up_to(frames.len());
        let mut places = frames.iter_mut();
        let mut lent = 0;
        for index in 0..received {
            let Some((room, length)) = self.receiver.frame_mut(index) else { continue };
            let Some(place) = places.next() else { break };
            // SAFETY: the receiver lends the room until `release`, to us alone, and the frame is within it.
            *place = unsafe { Frame::new(room.as_mut_ptr(), length as u32, room.len() as u32) };
            lent += 1;
        }
        if lent == 0 {
            self.release();
        }
        lent
    }

    fn release(&mut self) {
        self.receiver.release();
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.receiver.readable()
    }
}

struct Taker {
    /// Workers share it where there are fewer than they are.
    poster: Arc<Mutex<Poster>>,
    /// Whether it stopped at a frame that is longer than the interface sends.
    stopped: bool,
}

impl Output for Taker {
    fn transmit(&mut self, frames: &[Frame]) -> usize {
        let mut poster = self.poster.lock().unwrap_or_else(PoisonError::into_inner);
        let posted = poster.post(frames.iter().map(Frame::bytes));
        self.stopped = posted.stopped_at_unfit;
        posted.taken
    }

    fn stopped_at_long(&self) -> bool {
        self.stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_without_copies_if_all_its_sockets_are() {
        let mut copying = Copying { zero_copy: true, reason: None, busy_polls: true };
        copying.note(Mode::ZeroCopy, None, true);
        assert_eq!(copying.to_string(), "zero-copy, busy polling");
        copying.note(Mode::Copy, Some(WhyCopies::NotByDriver), true);
        copying.note(Mode::ZeroCopy, None, false);
        assert_eq!(copying.to_string(), "copy (the driver has no zero copy)");
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_remedy() {
        let open = |interface: &str, queues, mtu| {
            let device = AfXdp { interface: interface.into(), queues, busy_poll: None, shortcuts: false };
            Wanted { device, mtu, workers: 1 }.open(0, None).map(|_| ()).unwrap_err().to_string()
        };
        assert!(open("lo", 1, 3819).contains("up to 3818 bytes"));
        assert!(open("none-such", 1, 1500).contains("ip link lists"));
        let device = AfXdp { interface: "lo".into(), queues: 1, busy_poll: None, shortcuts: false };
        let most = |mtu| Wanted { device: device.clone(), mtu, workers: 1 }.most_mtu();
        assert_eq!([60, 1770, 1771, 3818].map(most), [1770, 1770, 3818, 3818]);
    }
}
