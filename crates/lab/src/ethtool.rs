//! The few ethtool requests a lab needs: an interface's name and a feature enter, its state or
//! driver leaves. The legacy one-word requests suffice, and every kernel has them.

use std::ffi::{c_char, c_void};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::error::{Error, Needs, Result};

/// An offload that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    /// Generic receive offload: the kernel merges received frames of one flow.
    Gro,
    /// Checksums of sent frames are left to the device. On a veth, which has no wire, that
    /// means that they are never filled in.
    TxChecksum,
    /// The device splits what TCP sends.
    Tso,
    /// The kernel splits late what UDP and TCP send.
    Gso,
}

impl Feature {
    /// The requests that set and get it (`linux/ethtool.h`).
    const fn requests(self) -> (u32, u32) {
        match self {
            Self::Gro => (0x2c, 0x2b),
            Self::TxChecksum => (0x17, 0x16),
            Self::Tso => (0x1f, 0x1e),
            Self::Gso => (0x24, 0x23),
        }
    }
}

const GET_DRIVER: u32 = 0x03;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    request: u32,
    data: u32,
}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct Driver {
    request: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// Makes requests in the network namespace it was opened in.
pub(crate) struct Ethtool {
    socket: OwnedFd,
}

impl Ethtool {
    /// Opens a socket in the network namespace of the calling thread.
    pub fn open() -> Result<Self> {
        let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
            .map_err(|errno| Error::kernel("cannot open a socket", errno, Needs::NetAdmin, "Raise 'ulimit -n'"))?;
        Ok(Self { socket })
    }

    /// Switches `feature` of `interface`.
    pub fn set(&self, interface: &str, feature: Feature, on: bool) -> Result<()> {
        let mut value = Value { request: feature.requests().0, data: u32::from(on) };
        self.request(interface, &format!("cannot switch {feature:?} of {interface}"), &mut value)
    }

    /// Whether `feature` of `interface` is on.
    pub fn get(&self, interface: &str, feature: Feature) -> Result<bool> {
        let mut value = Value { request: feature.requests().1, data: 0 };
        self.request(interface, &format!("cannot read {feature:?} of {interface}"), &mut value)?;
        Ok(value.data != 0)
    }

    /// The name of the driver of `interface`, if it says so.
    pub fn driver(&self, interface: &str) -> Option<String> {
        let mut driver = Driver { request: GET_DRIVER, driver: [0; 32], rest: [0; 160] };
        self.request(interface, "", &mut driver).ok()?;
        let name = driver.driver.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(name).into_owned()).filter(|name| !name.is_empty())
    }

    fn request<T: Request>(&self, interface: &str, what: &str, request: &mut T) -> Result<()> {
        let error = |cause: std::io::Error| {
            Error::kernel(what, cause, Needs::NetAdmin, "The interface's driver may not have this setting")
        };
        // SAFETY: an all-zero ifreq is valid: it holds only integers, arrays and a union of them.
        let mut call: libc::ifreq = unsafe { std::mem::zeroed() };
        if interface.len() >= call.ifr_name.len() {
            return Err(error(std::io::ErrorKind::NotFound.into()));
        }
        for (slot, byte) in call.ifr_name.iter_mut().zip(interface.bytes()) {
            *slot = byte as c_char;
        }
        call.ifr_ifru.ifru_data = std::ptr::from_mut(request).cast::<c_char>();
        let argument = std::ptr::from_mut(&mut call).cast::<c_void>();
        // SAFETY: the argument is an ifreq whose data points to a structure of the size that the
        // kernel expects for this request (see Request); both outlive the call.
        let answer = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL, argument) };
        if answer < 0 { Err(error(std::io::Error::last_os_error())) } else { Ok(()) }
    }
}

const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// A structure that `SIOCETHTOOL` reads and fills in.
///
/// # Safety
/// It is `repr(C)`, begins with the request's number and is as large as the kernel takes it to
/// be for every number it is given.
unsafe trait Request {}
// SAFETY: struct ethtool_value, for the get and set requests of Feature.
unsafe impl Request for Value {}
// SAFETY: struct ethtool_drvinfo, for GET_DRIVER.
unsafe impl Request for Driver {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        let ethtool = Ethtool::open().unwrap();
        assert!(ethtool.get("no-such-if", Feature::Gro).is_err());
        assert!(ethtool.get("a-name-longer-than-sixteen-bytes", Feature::Gro).is_err());
        assert_eq!(ethtool.driver("no-such-if"), None);
        assert_eq!(std::mem::size_of::<Driver>(), 196);
    }
}
