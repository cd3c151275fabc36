//! Ports that are taps: a port's plan enters; an interface leaves whose frames a program exchanges that opens it by its name.
//!
//! It stays while nobody has it open, and goes with its namespace.

use std::fs::File;
use std::os::fd::AsRawFd;

use nix::libc;

use crate::error::{Error, Needs, Result};
use crate::netlink::Netlink;
use crate::plan::Side;

const DEVICE: &str = "/dev/net/tun";

mod ioctl {
    use nix::libc;

    nix::ioctl_write_ptr_bad!(set_interface, libc::TUNSETIFF, libc::ifreq);
    // Its argument is a number and no pointer.
    nix::ioctl_write_int_bad!(set_persistent, libc::TUNSETPERSIST);
}

/// Makes the port of `side` a tap in the network namespace of the calling thread, down, with an MTU in bytes.
pub(crate) fn create(netlink: &Netlink, side: &Side, mtu: u32) -> Result<()> {
    let failed = |cause: std::io::Error| {
        let remedy = "Load the module tun (modprobe tun), or give the container /dev/net/tun";
        Error::kernel(format!("cannot make {} a tap", side.port), cause, Needs::NetAdmin, remedy)
    };
    let device = File::options().read(true).write(true).open(DEVICE).map_err(failed)?;
    // SAFETY: all fields of an `ifreq` are numbers and arrays of them, which may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    for (to, byte) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(side.port.bytes()) {
        *to = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request is a whole `ifreq` that lives until the call returns.
    unsafe { ioctl::set_interface(device.as_raw_fd(), &raw const request) }
        .map_err(|errno| failed(errno.into()))?;
    // SAFETY: the argument is a number.
    unsafe { ioctl::set_persistent(device.as_raw_fd(), 1) }.map_err(|errno| failed(errno.into()))?;
    let index = netlink.expect_link(side.port)?.index;
    netlink.set_mac(index, side.port_mac)?;
    netlink.set_mtu(index, mtu)
}
