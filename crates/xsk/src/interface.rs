//! A network interface: its name enters; its state, MTU and queues leave.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::libc::{self, c_char, c_ulong};

use crate::{Error, MAX_QUEUES};

/// Asks how many queues there are (`linux/ethtool.h`).
const ETHTOOL_GCHANNELS: u32 = 0x3c;
/// Asks for the driver.
const ETHTOOL_GDRVINFO: u32 = 3;
/// Drivers whose transmit queue is the receive queue of whatever is at the other end.
const SHARED_QUEUE: [&str; 2] = ["veth", "tun"];

/// Queues of an interface, at least one of each kind and at most [`MAX_QUEUES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Those that frames arrive at.
    pub receive: u32,
    /// Those that frames leave by.
    pub transmit: u32,
}

/// An interface. It is asked in the network namespace that it was found in, from any thread.
#[derive(Debug)]
pub struct Interface {
    name: String,
    index: u32,
    control: OwnedFd,
}

/// Which frames an interface takes beside those for its own addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Those for every address: promiscuous mode.
    All,
    /// Those for every group: all multicast.
    Groups,
}

/// Has an interface take frames for others. It ends when this is dropped, and with this process.
#[derive(Debug)]
pub struct Membership {
    _socket: OwnedFd,
}

/// The answer to [`ETHTOOL_GCHANNELS`].
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    max: [u32; 4],
    receive: u32,
    transmit: u32,
    other: u32,
    combined: u32,
}

/// The answer to [`ETHTOOL_GDRVINFO`].
#[repr(C)]
struct Driver {
    command: u32,
    name: [u8; 32],
    rest: [u8; 160],
}

impl Interface {
    /// The interface of this name in the network namespace of the calling thread.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(name: &str) -> Result<Self, Error> {
        // SAFETY: it takes no pointers.
        let control = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if control < 0 {
            return Err(Error::last("making a socket"));
        }
        // SAFETY: the descriptor is open, and nobody else's.
        let control = unsafe { OwnedFd::from_raw_fd(control) };
        let mut found = Self { name: name.to_owned(), index: 0, control };
        found.index = found.current_index()?;
        Ok(found)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its index.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Whether it is up and has a carrier.
    ///
    /// # Errors
    /// [`Error::Vanished`] when it is not there any more.
    pub fn is_up(&self) -> Result<bool, Error> {
        let flags = self.flags()?;
        Ok(flags & libc::IFF_UP != 0 && flags & libc::IFF_RUNNING != 0)
    }

    /// Whether somebody set it down; one without a carrier is not.
    ///
    /// # Errors
    /// As [`Self::is_up`].
    pub fn is_set_down(&self) -> Result<bool, Error> {
        Ok(self.flags()? & libc::IFF_UP == 0)
    }

    fn flags(&self) -> Result<i32, Error> {
        if self.current_index()? != self.index {
            return Err(self.vanished());
        }
        let request = self.ask(libc::SIOCGIFFLAGS as c_ulong, |_| {})?;
        // SAFETY: the kernel wrote the flags.
        Ok(i32::from(unsafe { request.ifr_ifru.ifru_flags }))
    }

    /// The longest packet in bytes, without the Ethernet header.
    ///
    /// # Errors
    /// As [`Self::is_up`].
    pub fn mtu(&self) -> Result<usize, Error> {
        let request = self.ask(libc::SIOCGIFMTU as c_ulong, |_| {})?;
        // SAFETY: the kernel wrote the MTU.
        Ok(usize::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0))
    }

    /// Its queues. A driver that does not say has one of each kind.
    #[must_use]
    pub fn queues(&self) -> Queues {
        let mut channels = Channels { command: ETHTOOL_GCHANNELS, ..Channels::default() };
        let data = (&raw mut channels).cast();
        // `channels` outlives the request, and has the size that the command fills.
        if self.ask(libc::SIOCETHTOOL as c_ulong, |request| request.ifr_ifru.ifru_data = data).is_err() {
            return Queues { receive: 1, transmit: 1 };
        }
        let count = |own: u32| own.saturating_add(channels.combined).clamp(1, MAX_QUEUES);
        Queues { receive: count(channels.receive), transmit: count(channels.transmit) }
    }

    /// Whether what it sends is in the receive queue of the other end at once, as with a veth: what is dropped
    /// then found no room there.
    #[must_use]
    pub fn hands_over_at_once(&self) -> bool {
        self.driver().is_some_and(|driver| SHARED_QUEUE.contains(&driver.as_str()))
    }

    /// Has it take frames for `others`, as long as the result is kept.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn take(&self, others: Others) -> Result<Membership, Error> {
        // SAFETY: it takes no pointers. Protocol 0: no frame arrives at it.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        let action = || format!("having interface {} take frames for others", self.name);
        let kind = match others {
            Others::All => libc::PACKET_MR_PROMISC,
            Others::Groups => libc::PACKET_MR_ALLMULTI,
        };
        if socket < 0 {
            return Err(Error::last(action()));
        }
        // SAFETY: the descriptor is open, and nobody else's.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let wanted = libc::packet_mreq {
            mr_ifindex: self.index.cast_signed(),
            mr_type: kind as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        // SAFETY: the socket is open, and the request has the size that is said.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_ADD_MEMBERSHIP,
                (&raw const wanted).cast(),
                mem::size_of_val(&wanted) as libc::socklen_t,
            )
        };
        if result < 0 { Err(Error::last(action())) } else { Ok(Membership { _socket: socket }) }
    }

    /// What its driver calls itself, where it says so.
    #[must_use]
    pub fn driver(&self) -> Option<String> {
        let mut driver = Driver { command: ETHTOOL_GDRVINFO, name: [0; 32], rest: [0; 160] };
        let data = (&raw mut driver).cast();
        // `driver` outlives the request, and has the size that the command fills.
        self.ask(libc::SIOCETHTOOL as c_ulong, |request| request.ifr_ifru.ifru_data = data).ok()?;
        let name = driver.name.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(String::from_utf8_lossy(name).into_owned())
    }

    /// The index that the kernel has for the name now.
    fn current_index(&self) -> Result<u32, Error> {
        let request = self.ask(libc::SIOCGIFINDEX as c_ulong, |_| {})?;
        // SAFETY: the kernel wrote the index.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex }.unsigned_abs())
    }

    /// Has the kernel answer `command` for this interface.
    fn ask(&self, command: c_ulong, prepare: impl FnOnce(&mut libc::ifreq)) -> Result<libc::ifreq, Error> {
        // SAFETY: the struct holds numbers and a pointer, for which zero is valid.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        if self.name.len() >= request.ifr_name.len() {
            return Err(self.vanished());
        }
        for (to, from) in request.ifr_name.iter_mut().zip(self.name.bytes()) {
            *to = from as c_char;
        }
        prepare(&mut request);
        // SAFETY: the socket is open, and the request is one for this command.
        let result = unsafe { libc::ioctl(self.control.as_raw_fd(), command as _, &raw mut request) };
        if result >= 0 {
            return Ok(request);
        }
        let error = io::Error::last_os_error();
        Err(match error.raw_os_error() {
            Some(libc::ENODEV | libc::ENXIO) => self.vanished(),
            _ => Error::of(format!("asking for the state of interface {}", self.name), error),
        })
    }

    fn vanished(&self) -> Error {
        Error::Vanished { interface: self.name.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_there_and_others_are_not() {
        let loopback = Interface::find("lo").unwrap();
        assert_eq!((loopback.name(), loopback.index()), ("lo", 1));
        assert!(loopback.mtu().unwrap() > 1500);
        assert!(loopback.driver().is_none() && !loopback.hands_over_at_once());
        assert_eq!(loopback.queues(), Queues { receive: 1, transmit: 1 });
        for name in ["no-such", "a-name-that-is-much-too-long", ""] {
            let text = Interface::find(name).map(|_| ()).unwrap_err().to_string();
            assert!(text.contains("ip link") || text.contains("fails"), "{text}");
        }
    }
}
