//! How the kernel serves the AF_XDP sockets of this process: nothing enters; which there are leaves, and whether
//! it copies their frames.

use std::fs;
use std::mem::size_of;
use std::os::fd::RawFd;

use nix::libc::{SOL_XDP, XDP_OPTIONS, XDP_OPTIONS_ZEROCOPY, getsockopt, socklen_t, xdp_options};

/// The AF_XDP sockets of this process, and whether frames stay where the interface has them.
pub fn sockets() -> Vec<(RawFd, bool)> {
    let files = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = files.filter_map(|file| file.file_name().to_str()?.parse().ok());
    numbers.filter_map(|socket| Some((socket, is_zero_copy(socket)?))).collect()
}

/// Whether all `sockets` that are not among `before` are without copies; `None` where there are none.
pub fn are_zero_copy(sockets: &[(RawFd, bool)], before: &[(RawFd, bool)]) -> Option<bool> {
    let mut new = sockets.iter().filter(|socket| !before.contains(socket)).peekable();
    new.peek()?;
    Some(new.all(|(_, zero_copy)| *zero_copy))
}

/// `None` of what is no AF_XDP socket.
fn is_zero_copy(socket: RawFd) -> Option<bool> {
    let mut options = xdp_options { flags: 0 };
    let mut length = size_of::<xdp_options>() as socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `options`; a number that is no socket it refuses.
    let result =
        unsafe { getsockopt(socket, SOL_XDP, XDP_OPTIONS, (&raw mut options).cast(), &raw mut length) };
    (result == 0).then_some(options.flags & XDP_OPTIONS_ZEROCOPY != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_without_copies_if_all_its_sockets_are() {
        let before = [(3, false)];
        assert_eq!(are_zero_copy(&before, &before), None);
        assert_eq!(are_zero_copy(&[(3, false), (4, true), (5, true)], &before), Some(true));
        assert_eq!(are_zero_copy(&[(3, false), (4, true), (5, false)], &before), Some(false));
    }

    #[test]
    fn what_is_no_socket_of_af_xdp_is_none() {
        let (other, _) = std::os::unix::net::UnixStream::pair().unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&other);
        assert_eq!(is_zero_copy(number), None);
        assert!(sockets().iter().all(|(socket, _)| *socket != number));
    }
}
