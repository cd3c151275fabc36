//! Where a control socket is: a path or `@` and a name enters; a listener or a connection leaves.
//!
//! A name without a file (unix(7), abstract sockets) leaves nothing behind however the router ends. It has no owner and
//! no mode either, so that both ends look who the other one is: root or the same user, or nobody.

use std::io;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::geteuid;

/// What a name without a file begins with.
const NAMED: u8 = b'@';

/// The name, if `place` is one and no file.
pub(super) fn name(place: &Path) -> Option<&[u8]> {
    place.as_os_str().as_bytes().strip_prefix(&[NAMED])
}

/// Listens at `place`.
pub(super) fn listen(place: &Path) -> io::Result<UnixListener> {
    match name(place) {
        Some(name) => UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?),
        None => UnixListener::bind(place),
    }
}

/// Connects to who listens at `place`, if that may be trusted.
pub(super) fn connect(place: &Path) -> io::Result<UnixStream> {
    let Some(name) = name(place) else { return UnixStream::connect(place) };
    let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
    check(&stream).map(|()| stream)
}

/// Refuses a connection to anybody but root and the own user.
pub(super) fn check(stream: &UnixStream) -> io::Result<()> {
    let (peer, own) = (getsockopt(&stream.as_fd(), PeerCredentials)?.uid(), geteuid().as_raw());
    if peer == 0 || peer == own {
        return Ok(());
    }
    let reason = format!("the other end is user {peer}, and only root and user {own} are trusted");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abstract_socket_needs_no_file_and_serves_only_its_own_user() {
        let name = format!("@/fastpath-place-{}", std::process::id());
        let place = Path::new(&name);
        assert!(connect(place).is_err(), "nobody listens");
        let listener = listen(place).unwrap();
        let ours = connect(place).unwrap();
        let (theirs, _) = listener.accept().unwrap();
        assert!(check(&ours).is_ok() && check(&theirs).is_ok());
        assert!(listen(place).is_err(), "it is taken");
        drop(listener);
        assert!(connect(place).is_err() && !place.exists());
    }
}
