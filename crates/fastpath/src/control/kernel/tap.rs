//! An interface in the kernel whose frames are the router's: what the router leaves to the kernel enters,
//! what the kernel sends by it leaves.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::errno::Errno;
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::uio::readv;
use nix::unistd::write;
use wire::MacAddress;

use super::Error;
use super::netlink::Socket;
use crate::dataplane::punt::Punt;

const DEVICE: &str = "/dev/net/tun";

mod ioctl {
    use nix::libc;

    nix::ioctl_write_ptr_bad!(set_interface, libc::TUNSETIFF, libc::ifreq);
    // _IOW('T', 226, int), of linux/if_tun.h.
    nix::ioctl_write_ptr!(set_carrier, b'T', 226, libc::c_int);
}

/// What a TAP device is to be.
#[derive(Clone, Debug)]
pub struct Settings<'a> {
    /// Its name in the kernel, of 1 to 15 bytes.
    pub name: &'a str,
    /// Its MAC address: that of the router's interface.
    pub mac: MacAddress,
    /// The longest packet that it carries, in bytes, without the Ethernet header.
    pub mtu: u32,
    /// Its addresses, each with the bits that its network has in common.
    pub addresses: &'a [(IpAddr, u8)],
}

/// What passed, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapCounters {
    /// The kernel took them.
    pub written: u64,
    /// The kernel sent them.
    pub read: u64,
    /// The kernel did not take them: somebody set the interface down, or removed it.
    pub down: u64,
    /// The kernel did not take them: it has no memory or room for them.
    pub full: u64,
    /// The kernel did not take them: they are no frames.
    pub malformed: u64,
    /// The kernel sent them, but they were longer than the room for them.
    pub too_long: u64,
}

#[derive(Default)]
struct Counters {
    written: AtomicU64,
    read: AtomicU64,
    down: AtomicU64,
    full: AtomicU64,
    malformed: AtomicU64,
    too_long: AtomicU64,
}

/// A TAP device. It goes when this is dropped, or when the process ends, however it ends.
///
/// Neither reading nor writing waits; any thread may do either.
pub struct Tap {
    device: File,
    name: String,
    index: u32,
    /// To the network namespace that the device was made in.
    control: Mutex<Socket>,
    counters: Counters,
}

impl Tap {
    /// Creates one in the network namespace of the calling thread. It is up.
    ///
    /// # Errors
    /// [`Error::Name`]; [`Error::Refused`], with what to do. Nothing is left behind then.
    pub fn create(settings: &Settings) -> Result<Self, Error> {
        let Settings { name, mac, mtu, addresses } = *settings;
        let what = || format!("cannot create the TAP device '{name}'");
        let device = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE);
        let device = device.map_err(|cause| {
            let remedy = "load the module tun (modprobe tun), or give the container the device /dev/net/tun";
            Error::refused(what(), cause, remedy)
        })?;
        let request = request(name)?;
        // SAFETY: the request is a whole `ifreq` that lives until the call returns.
        unsafe { ioctl::set_interface(device.as_raw_fd(), &raw const request) }.map_err(|errno| {
            let remedy = match errno {
                Errno::EBUSY | Errno::EEXIST => {
                    "there is an interface of this name: choose another, or remove it (ip link del)"
                }
                _ => "see the kernel's log (dmesg)",
            };
            Error::refused(what(), errno, remedy)
        })?;
        let asked = |cause: io::Error| Error::refused(what(), cause, "raise 'ulimit -n'");
        let index = if_nametoindex(name).map_err(|errno| asked(errno.into()))?;
        let control = Mutex::new(Socket::open().map_err(asked)?);
        let tap = Self { device, name: name.to_owned(), index, control, counters: Counters::default() };
        tap.set_mac(mac)?;
        tap.set_mtu(mtu)?;
        // IPv6 needs an interface that is up.
        tap.set_up(true)?;
        addresses.iter().try_for_each(|(address, length)| tap.add_address(*address, *length))?;
        Ok(tap)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's index of it, by which routes name it.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Hands a frame, which begins with its Ethernet header and has no FCS, to the kernel; says whether
    /// that took it.
    pub fn try_write(&self, frame: &[u8]) -> bool {
        let counter = match write(&self.device, frame) {
            Ok(_) => &self.counters.written,
            Err(Errno::EIO | Errno::EBADFD) => &self.counters.down,
            Err(Errno::EINVAL) => &self.counters.malformed,
            Err(_) => &self.counters.full,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        std::ptr::eq(counter, &raw const self.counters.written)
    }

    /// Takes the next frame that the kernel sends, if there is one, and says how long it is. One that
    /// is longer than `frame` is left out: there should be room for the MTU and 18 bytes.
    pub fn read(&self, frame: &mut [u8]) -> Option<usize> {
        loop {
            // A byte beyond shows whether there was more.
            let (room, mut beyond) = (frame.len(), [0]);
            let mut parts = [IoSliceMut::new(frame), IoSliceMut::new(&mut beyond)];
            match readv(&self.device, &mut parts) {
                Ok(length) if length > room => &self.counters.too_long,
                Ok(length) if length > 0 => {
                    self.counters.read.fetch_add(1, Ordering::Relaxed);
                    return Some(length);
                }
                Ok(_) | Err(_) => return None,
            }
            .fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What passed so far.
    #[must_use]
    pub fn counters(&self) -> TapCounters {
        let Counters { written, read, down, full, malformed, too_long } = &self.counters;
        let [written, read, down, full, malformed, too_long] =
            [written, read, down, full, malformed, too_long].map(|counter| counter.load(Ordering::Relaxed));
        TapCounters { written, read, down, full, malformed, too_long }
    }

    /// Has the kernel see a cable, or none: the state of the router's interface.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn set_carrier(&self, carrier: bool) -> Result<(), Error> {
        let carrier = libc::c_int::from(carrier);
        // SAFETY: the number lives until the call returns, which only reads it.
        let set = unsafe { ioctl::set_carrier(self.device.as_raw_fd(), &raw const carrier) };
        set.map(drop).map_err(|errno| {
            let what = format!("cannot set the carrier of '{}'", self.name);
            Error::refused(what, errno, "this needs Linux 5.0 and an interface that is up")
        })
    }

    /// Sets it up or down.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn set_up(&self, up: bool) -> Result<(), Error> {
        let mut message = self.link();
        message.header.flags = if up { LinkFlags::Up } else { LinkFlags::empty() };
        message.header.change_mask = LinkFlags::Up;
        let state = if up { "up" } else { "down" };
        self.set_link(message, &format!("set '{}' {state}", self.name), "see the kernel's log (dmesg)")
    }

    /// Gives it another MAC address.
    ///
    /// # Errors
    /// [`Error::Refused`], for one that is no station's.
    pub fn set_mac(&self, mac: MacAddress) -> Result<(), Error> {
        let mut message = self.link();
        message.attributes.push(LinkAttribute::Address(mac.0.to_vec()));
        let what = format!("give '{}' the MAC address {mac}", self.name);
        self.set_link(message, &what, "choose one of a single station, like 02:00:00:00:00:01")
    }

    /// Gives it another MTU, in bytes.
    ///
    /// # Errors
    /// [`Error::Refused`], for one that the kernel does not support.
    pub fn set_mtu(&self, mtu: u32) -> Result<(), Error> {
        let mut message = self.link();
        message.attributes.push(LinkAttribute::Mtu(mtu));
        self.set_link(message, &format!("give '{}' the MTU {mtu}", self.name), "choose one from 68 to 65521")
    }

    /// Gives it one more address, and the route to the network of its first `length` bits.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn add_address(&self, address: IpAddr, length: u8) -> Result<(), Error> {
        let message = RouteNetlinkMessage::NewAddress(self.address(address, length));
        let what = format!("give '{}' the address {address}/{length}", self.name);
        let remedy = "check that it is a host's address and the prefix no longer than it";
        self.change(message, NLM_F_CREATE | NLM_F_REPLACE, &what, remedy)
    }

    /// Takes an address from it.
    ///
    /// # Errors
    /// [`Error::Refused`], if it does not have it.
    pub fn remove_address(&self, address: IpAddr, length: u8) -> Result<(), Error> {
        let message = RouteNetlinkMessage::DelAddress(self.address(address, length));
        let what = format!("take the address {address}/{length} from '{}'", self.name);
        self.change(message, 0, &what, "'ip address' shows those that it has")
    }

    fn link(&self) -> LinkMessage {
        let mut message = LinkMessage::default();
        message.header.index = self.index;
        message
    }

    fn address(&self, address: IpAddr, length: u8) -> AddressMessage {
        let mut message = AddressMessage::default();
        message.header.index = self.index;
        message.header.prefix_len = length;
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        match address {
            IpAddr::V4(v4) => {
                message.header.family = AddressFamily::Inet;
                if length <= 30 {
                    let host_bits = u32::MAX.checked_shr(length.into()).unwrap_or(0);
                    let broadcast = Ipv4Addr::from_bits(v4.to_bits() | host_bits);
                    message.attributes.push(AddressAttribute::Broadcast(broadcast));
                }
            }
            IpAddr::V6(_) => {
                message.header.family = AddressFamily::Inet6;
                // The address is the router's in any case: there is nothing to wait for.
                message.header.flags = AddressHeaderFlags::Nodad;
            }
        }
        message
    }

    fn set_link(&self, message: LinkMessage, what: &str, remedy: &str) -> Result<(), Error> {
        self.change(RouteNetlinkMessage::SetLink(message), 0, what, remedy)
    }

    fn change(
        &self,
        message: RouteNetlinkMessage,
        flags: u16,
        what: &str,
        remedy: &str,
    ) -> Result<(), Error> {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = control.change(message, flags);
        changed.map_err(|cause| Error::refused(format!("cannot {what}"), cause, remedy))
    }
}

impl Punt for Tap {
    fn punt(&self, frame: &[u8]) -> bool {
        self.try_write(frame)
    }
}

/// To wait for frames with `poll`.
impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Asks for an interface of this name that is not there yet, for frames without a header before them.
fn request(name: &str) -> Result<libc::ifreq, Error> {
    let wrong = |byte: u8| b"/:%".contains(&byte) || byte.is_ascii_whitespace() || byte == 0;
    let names_itself = matches!(name, "" | "." | "..");
    if names_itself || name.len() >= libc::IFNAMSIZ || name.bytes().any(wrong) {
        return Err(Error::Name(name.to_owned()));
    }
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_TUN_EXCL;
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags as libc::c_short },
    };
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_names_are_refused() {
        for name in ["", ".", "..", "a/b", "tap%d", "a b", "sixteen-letters!", "eth0:1", "a\0"] {
            assert!(matches!(request(name), Err(Error::Name(refused)) if refused == name), "{name}");
        }
        assert!(request("fifteen-letters").is_ok());
    }
}
