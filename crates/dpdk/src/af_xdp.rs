//! What `net_af_xdp` would leave at an interface after `kill -9`: the XDP program that it attached enters, and the
//! same program at the end of a file descriptor leaves, with which the kernel takes it away.
//!
//! The driver attaches by netlink: such a program stays until somebody removes it, and swallows what arrives
//! meanwhile. So it is attached anew, by a link (Linux 5.9; before, it stays as the driver attached it). A
//! dispatcher of libxdp's, which others may use too, stays as it is; `shim.c` asks libxdp for none.

use std::ffi::{CStr, c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use libbpf_rs::libbpf_sys::{
    BPF_XDP, XDP_FLAGS_UPDATE_IF_NOEXIST, bpf_link_create, bpf_obj_get_info_by_fd, bpf_prog_get_fd_by_id,
    bpf_prog_info, bpf_xdp_attach, bpf_xdp_detach, bpf_xdp_query_id,
};
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;

use crate::error::errno;

/// The driver, with which its devices' names begin.
const DRIVER: &str = "net_af_xdp";
/// What libxdp has several programs called by.
const DISPATCHER: &CStr = c"xdp_dispatcher";

/// The kernel's name of the interface that `device` is, if the driver has it.
pub(crate) fn interface(device: &str) -> Option<&str> {
    let arguments = device.strip_prefix(DRIVER)?.split(',').skip(1);
    arguments.filter_map(|argument| argument.strip_prefix("iface=")).last()
}

/// Attaches the program of `interface`, which a port of the driver's uses, by a link; `None` where it cannot be.
/// To be dropped before the port is closed.
///
/// # Errors
/// When the interface has no program any longer.
pub(crate) fn hold(interface: &str) -> Result<Option<OwnedFd>, Errno> {
    let index = if_nametoindex(interface)?.cast_signed();
    let Some(program) = attached(index)? else { return Ok(None) };
    // One that a link holds already is refused here.
    // SAFETY: no options are given.
    if unsafe { bpf_xdp_detach(index, 0, ptr::null()) } < 0 {
        return Ok(None);
    }
    // SAFETY: the program's descriptor is open, and no options are given.
    let link = unsafe { bpf_link_create(program.as_raw_fd(), index, BPF_XDP, ptr::null()) };
    if let Ok(link) = owned(link) {
        return Ok(Some(link));
    }
    // SAFETY: as above.
    let again =
        unsafe { bpf_xdp_attach(index, program.as_raw_fd(), XDP_FLAGS_UPDATE_IF_NOEXIST, ptr::null()) };
    if again < 0 { Err(errno(again)) } else { Ok(None) }
}

/// The program at the interface of this number, unless it is a dispatcher.
fn attached(index: c_int) -> Result<Option<OwnedFd>, Errno> {
    let mut id = 0;
    // SAFETY: `id` can be written.
    let found = unsafe { bpf_xdp_query_id(index, 0, &raw mut id) };
    if found < 0 || id == 0 {
        return Ok(None);
    }
    // SAFETY: a number enters and a new descriptor leaves.
    let program = owned(unsafe { bpf_prog_get_fd_by_id(id) })?;
    let mut info = bpf_prog_info::default();
    let mut length = size_of::<bpf_prog_info>() as u32;
    let place: *mut c_void = (&raw mut info).cast();
    // SAFETY: `length` bytes at `place` can be written, and the kernel is asked for no lists.
    let told = unsafe { bpf_obj_get_info_by_fd(program.as_raw_fd(), place, &raw mut length) };
    if told < 0 {
        return Err(errno(told));
    }
    // SAFETY: the kernel ends the name in a zero byte, and it is all zeros otherwise.
    let name = unsafe { CStr::from_ptr(info.name.as_ptr()) };
    Ok((name != DISPATCHER).then_some(program))
}

/// A new descriptor, or why there is none.
fn owned(result: c_int) -> Result<OwnedFd, Errno> {
    if result < 0 {
        return Err(errno(result));
    }
    // SAFETY: it is open, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_the_driver_name_their_interface() {
        assert_eq!(interface("net_af_xdp0,iface=eth1,queue_count=2"), Some("eth1"));
        assert_eq!(interface("net_af_xdp_eth1,queue_count=2,iface=eth1"), Some("eth1"));
        for other in
            ["net_af_packet0,iface=eth1", "net_af_xdp0", "net_af_xdp0,xdp_prog=iface=eth1", "0000:01:00.0"]
        {
            assert_eq!(interface(other), None, "{other}");
        }
    }
}
