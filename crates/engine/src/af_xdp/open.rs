//! Opens an interface: its name and what it is for enter, sockets at its queues leave.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use wire::signature::{self, MAGIC};
use wire::{ethernet, size, vlan};
use xsk::{Config, Interface, Mode, Opened, Program, Wanted};

use super::queues::{Receiving, Sending};
use super::{BusyPoll, Options, Port};
use crate::Error;
use crate::refusal::Mtu;
use crate::user_space::{Queues, WhenFull};
use crate::xdp::{PortRef, in_namespace};

/// How long a link may take to come up: drivers restart it when a program is attached.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a frame beside what the MTU counts: the Ethernet header and one VLAN tag.
const BESIDE_MTU: usize = ethernet::LENGTH + vlan::LENGTH;

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It sends, and receives our own frames.
    Engine,
    /// It only sends.
    Send,
    /// It only receives our own frames.
    Receive,
    /// It only receives, all frames but those by which the kernel finds neighbours.
    ReceiveAll,
}

/// How a port is opened.
#[derive(Clone, Copy)]
pub struct Opening<'a> {
    pub namespace: Option<BorrowedFd<'a>>,
    pub options: Options,
    /// Bytes of the longest frame, without FCS.
    pub longest: usize,
    /// What buffers hold at first.
    pub fill: u8,
    pub purpose: Purpose,
    /// Queues that frames leave by.
    pub senders: usize,
}

/// Opens the sockets of `port`: one at each queue that frames leave by or arrive at.
///
/// # Errors
/// Why that is impossible, with the remedy.
pub fn open(port: &PortRef, opening: &Opening<'_>) -> Result<(Port, Queues<Sending, Receiving>), Error> {
    in_namespace(opening.namespace, || open_here(port, opening))
}

fn open_here(port: &PortRef, opening: &Opening<'_>) -> Result<(Port, Queues<Sending, Receiving>), Error> {
    let interface = Arc::new(Interface::find(&port.name)?);
    let (sends, receives) = match opening.purpose {
        Purpose::Engine => (true, true),
        Purpose::Send => (true, false),
        Purpose::Receive | Purpose::ReceiveAll => (false, true),
    };
    let longest_by_mtu = interface.mtu()? + BESIDE_MTU;
    if sends {
        check_length(&interface, opening.longest)?;
    }
    let queues = interface.queues();
    let senders = if sends { opening.senders } else { 0 };
    if senders > queues.transmit as usize {
        return Err(Error::Refused(format!(
            "{senders} cores send, and interface {name} has fewer queues to send by ({}): use fewer cores, or give it \
             more queues (ethtool -L {name} combined {senders})",
            queues.transmit,
            name = port.name
        )));
    }
    let receivers = if receives { queues.receive } else { 0 };
    // The program first: drivers that need no copies want one before the sockets.
    let program =
        receives.then(|| Program::attach(&interface, wanted(opening.purpose), longest_by_mtu)).transpose()?;
    let mut longest = opening.longest.min(longest_by_mtu);
    if !sends && longest > xsk::MAX_LENGTH && !xsk::has_large_frames() {
        // What is longer is dropped, and counted as such.
        longest = xsk::MAX_LENGTH;
    }
    let mut found = Queues { transmit: Vec::new(), receive: Vec::new(), when_full: WhenFull::Waits };
    let polls = match opening.options.busy_poll {
        BusyPoll::Cards => !interface.hands_over_at_once(),
        BusyPoll::Always => true,
        BusyPoll::Never => false,
    };
    let (mut watches, mut mode, mut busy_polls) = (Vec::new(), Mode::ZeroCopy, polls);
    let mut why_copies = None;
    for queue in 0..receivers.max(senders as u32) {
        let config = Config {
            longest,
            sends: (queue as usize) < senders,
            receives: queue < receivers,
            copying: opening.options.copying,
            busy_poll: polls,
            fill: opening.fill,
            ..Config::new()
        };
        let mut socket = xsk::open(&interface, queue, &config)?;
        if let (true, Some(program)) = (config.receives, &program) {
            program.add(&socket)?;
        }
        let Opened { sender, receiver, .. } = &mut socket;
        found.transmit.extend(sender.take().map(|sender| Sending::new(sender, &interface)));
        found.receive.extend(receiver.take().map(Receiving::new));
        if socket.mode == Mode::Copy {
            mode = Mode::Copy;
        }
        why_copies = why_copies.or(socket.why_copies);
        // By a socket that only sends copies, no driver is asked to work.
        busy_polls &= socket.busy_polls && (receives || socket.mode == Mode::ZeroCopy);
        watches.push(socket.watch.clone());
    }
    let mtu = sends.then(|| Mtu::of(&interface)).transpose()?;
    let (counted_by, looked) = (None, Instant::now());
    Ok((Port { interface, program, counted_by, watches, mode, why_copies, busy_polls, mtu, looked }, found))
}

fn wanted(purpose: Purpose) -> Wanted {
    match purpose {
        Purpose::ReceiveAll => Wanted::Everything,
        _ => Wanted::Trailer { length: signature::LENGTH as u32, begins: MAGIC },
    }
}

/// Refuses frames that the interface does not send.
fn check_length(interface: &Interface, longest: usize) -> Result<(), Error> {
    let mtu = interface.mtu()?;
    if longest > mtu + BESIDE_MTU {
        let name = interface.name();
        return Err(Error::Refused(format!(
            "frames of {} bytes are longer than the MTU of interface {name} allows, which is {mtu}: raise it \
             (ip link set {name} mtu {}), or choose a smaller --size",
            longest + usize::from(size::FCS),
            longest - ethernet::LENGTH
        )));
    }
    Ok(())
}

/// Waits until all are up.
///
/// # Errors
/// [`Error::Port`] when one stays down.
pub fn wait_until_up(ports: &[&Port]) -> Result<(), Error> {
    let deadline = Instant::now() + PATIENCE;
    for port in ports {
        while !port.interface.is_up()? {
            if Instant::now() > deadline {
                let name = port.interface.name();
                return Err(Error::Port(format!(
                    "interface {name} is down, or has no carrier: set it up (ip link set {name} up); is its cable \
                     in, and its other end up?"
                )));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}
