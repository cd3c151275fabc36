//! The control channel's socket: addresses enter, messages and files go both ways. Nothing here waits.

use std::fs::{self, File, TryLockError};
use std::io::{self, IoSlice};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind, connect,
    listen, sendmsg, socket,
};

use crate::closer::{Closer, Held};
use crate::config::Socket;
use crate::error::Reason;
use crate::layout::{MESSAGE, Message};

/// Clients that may wait to be accepted.
const BACKLOG: i32 = 8;
/// Files that may come with one message: as many as the kernel lets anybody send (`SCM_MAX_FD`), since it opens
/// those that fit before it says that there were more. More than one is of no use, and all are closed.
const FILES: usize = 253;
/// Words of a control message with so many files; one word is as large as its header's alignment.
const CONTROL: usize = 2 + FILES.div_ceil(2);

fn address(socket: &Socket) -> io::Result<UnixAddr> {
    Ok(match socket {
        Socket::Path(path) => UnixAddr::new(path)?,
        Socket::Abstract(name) => UnixAddr::new_abstract(name.as_bytes())?,
    })
}

fn unconnected() -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    Ok(socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?)
}

/// Where clients are awaited; its file goes when this does.
pub struct Listener {
    socket: OwnedFd,
    _file: Option<SocketFile>,
}

/// A socket's file, known by its device and inode: another's at the same path is not ours.
struct SocketFile {
    path: PathBuf,
    inode: (u64, u64),
}

fn inode(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if inode(&self.path).is_ok_and(|inode| inode == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether `path` is a socket that nobody listens at.
fn is_stale(path: &Path, address: &UnixAddr) -> io::Result<bool> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return Ok(false);
    }
    Ok(connect(unconnected()?.as_raw_fd(), address) == Err(Errno::ECONNREFUSED))
}

/// How long another program may take to look for who listens at a socket in the same directory.
const OTHERS: Duration = Duration::from_secs(1);

/// Keeps others that do the same from the sockets in the directory of `path` until the file is dropped, so that no
/// two find the same one left behind and one removes what the other has just made. `None` when the directory cannot
/// be opened, or after a second: anybody may hold such a lock.
#[must_use]
pub fn lock_directory(path: &Path) -> Option<File> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = File::open(directory.unwrap_or_else(|| Path::new("."))).ok()?;
    let deadline = Instant::now() + OTHERS;
    while matches!(directory.try_lock(), Err(TryLockError::WouldBlock)) {
        if Instant::now() > deadline {
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
    Some(directory)
}

impl Listener {
    /// Listens; a file that nobody listens at is replaced.
    pub fn new(at: &Socket) -> io::Result<Self> {
        let address = address(at)?;
        let socket = unconnected()?;
        let _alone = match at {
            Socket::Path(path) => lock_directory(path),
            Socket::Abstract(_) => None,
        };
        let bound = bind(socket.as_raw_fd(), &address);
        match (bound, at) {
            (Err(Errno::EADDRINUSE), Socket::Path(path)) if is_stale(path, &address)? => {
                fs::remove_file(path)?;
                bind(socket.as_raw_fd(), &address)?;
            }
            (bound, _) => bound?,
        }
        let file = match at {
            Socket::Path(path) => Some(SocketFile { path: path.clone(), inode: inode(path)? }),
            Socket::Abstract(_) => None,
        };
        listen(&socket, Backlog::new(BACKLOG)?)?;
        Ok(Self { socket, _file: file })
    }

    /// The next client, if one waits, whose files `closer` is to close.
    pub fn accept(&self, closer: &Closer) -> Option<Channel> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = accept4(self.socket.as_raw_fd(), flags).ok()?;
        // SAFETY: the kernel has just made it, for us alone.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        Some(Channel { socket: closer.hold(socket), closer: closer.clone() })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A control channel.
pub struct Channel {
    /// With the files of messages that nobody received, which may have to be waited for when it is closed.
    socket: Held,
    closer: Closer,
}

impl Channel {
    /// Connects to who listens there, whose files `closer` is to close.
    pub fn connect(to: &Socket, closer: &Closer) -> io::Result<Self> {
        let socket = unconnected()?;
        connect(socket.as_raw_fd(), &address(to)?)?;
        Ok(Self { socket: closer.hold(socket), closer: closer.clone() })
    }

    /// Sends a message, with a file.
    pub fn send(&self, message: &Message, file: Option<BorrowedFd>) -> Result<(), Reason> {
        let bytes = message.encode();
        let files = [file.map_or(-1, |file| file.as_raw_fd())];
        let rights = [ControlMessage::ScmRights(&files)];
        let control = if file.is_some() { &rights[..] } else { &[] };
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        sendmsg::<()>(self.socket.as_raw_fd(), &[IoSlice::new(&bytes)], control, flags, None)?;
        Ok(())
    }

    /// The next message and the file that came with it; `None` when there is none now.
    pub fn receive(&self) -> Result<Option<(Message, Option<Held>)>, Reason> {
        let mut bytes = [0; MESSAGE];
        let received = match receive(self.socket.as_fd(), &mut bytes) {
            Ok(received) => received,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut files = received.files.into_iter().map(|file| self.closer.hold(file));
        let file = files.next();
        // All others are closed.
        files.for_each(drop);
        match received.length {
            0 => Err(Reason::Gone),
            _ if received.cut => Err(Reason::Refused("more than one message, or more files, can hold")),
            MESSAGE => match Message::decode(&bytes) {
                Some(message) => Ok(Some((message, file))),
                None => Err(Reason::Refused("unknown message type")),
            },
            _ => Err(Reason::Refused("invalid message size")),
        }
    }
}

/// What came at once.
struct Received {
    /// Bytes of the message.
    length: usize,
    files: Vec<OwnedFd>,
    /// Whether bytes or files were left out.
    cut: bool,
}

/// Receives a message with all files that the kernel opened for it, also where it says that it left some out,
/// as it does when there may be no more (`ulimit -n`).
fn receive(socket: BorrowedFd, bytes: &mut [u8; MESSAGE]) -> nix::Result<Received> {
    let mut control = [0_u64; CONTROL];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: all its fields are numbers and addresses, for which 0 is a value.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    // musl's lengths have 32 bits, glibc's are usize.
    header.msg_controllen = mem::size_of_val(&control) as _;
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: the header names memory of these lengths that lives until the call returns.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    let length = Errno::result(length)?;
    let mut files = Vec::new();
    // SAFETY: the kernel has filled the header in.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    // SAFETY: it is null or inside `control`, which is aligned for it.
    while let Some(message) = unsafe { next.as_ref() } {
        if (message.cmsg_level, message.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            // SAFETY: an address after the header, inside `control` or at its end.
            let data = unsafe { libc::CMSG_DATA(next) };
            #[allow(clippy::unnecessary_cast)] // musl's length has 32 bits
            let count =
                (message.cmsg_len as usize).saturating_sub(data as usize - next as usize) / size_of::<i32>();
            for at in 0..count {
                // SAFETY: the kernel has just opened it, for us alone; it wrote so many whole numbers.
                files.push(unsafe { OwnedFd::from_raw_fd(data.cast::<i32>().add(at).read_unaligned()) });
            }
        }
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(&raw const header, next) };
    }
    let cut = header.msg_flags & (libc::MSG_CTRUNC | libc::MSG_TRUNC) != 0;
    Ok(Received { length: length.unsigned_abs(), files, cut })
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str) -> (tempfile::TempDir, Socket) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        (directory, Socket::Path(path))
    }

    #[test]
    fn a_stale_file_is_replaced_and_ours_removed() {
        let (directory, socket) = at("s");
        let path = directory.path().join("s");
        // A listener that was killed leaves its file.
        let dead = unconnected().unwrap();
        bind(dead.as_raw_fd(), &address(&socket).unwrap()).unwrap();
        drop(dead);
        let listener = Listener::new(&socket).unwrap();
        assert!(path.exists());
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn who_listens_is_left_alone() {
        let (_directory, socket) = at("s");
        let first = Listener::new(&socket).unwrap();
        let second = Listener::new(&socket).err().unwrap();
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        assert!(Channel::connect(&socket, &Closer::new()).is_ok());
        drop(first);
    }

    #[test]
    fn a_file_of_another_kind_is_left_alone() {
        let (directory, socket) = at("s");
        fs::write(directory.path().join("s"), "text").unwrap();
        assert!(Listener::new(&socket).is_err());
        assert_eq!(fs::read_to_string(directory.path().join("s")).unwrap(), "text");
    }

    #[test]
    fn a_file_that_took_our_path_is_left_alone() {
        let (directory, socket) = at("s");
        let first = Listener::new(&socket).unwrap();
        fs::rename(directory.path().join("s"), directory.path().join("old")).unwrap();
        let second = Listener::new(&socket).unwrap();
        drop(first);
        assert!(directory.path().join("s").exists());
        drop(second);
    }

    #[test]
    fn messages_and_files_arrive_and_the_end_is_seen() {
        let (_directory, socket) = at("s");
        let listener = Listener::new(&socket).unwrap();
        let one = Channel::connect(&socket, &Closer::new()).unwrap();
        let other = listener.accept(&Closer::new()).unwrap();
        assert!(listener.accept(&Closer::new()).is_none());
        assert!(matches!(other.receive(), Ok(None)));
        let file = tempfile::tempfile().unwrap();
        one.send(&Message::Ack, None).unwrap();
        one.send(&Message::Connect("name".into()), Some(file.as_fd())).unwrap();
        assert!(matches!(other.receive(), Ok(Some((Message::Ack, None)))));
        assert!(matches!(other.receive(), Ok(Some((Message::Connect(_), Some(_))))));
        drop(one);
        // Another thread closes it.
        let deadline = Instant::now() + Duration::from_secs(10);
        while !matches!(other.receive(), Err(Reason::Gone)) {
            assert!(Instant::now() < deadline, "it is not closed");
        }
    }
}
