//! The control channel's socket: addresses enter, messages and files go both ways. Nothing here waits.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr,
    accept4, bind, connect, listen, recvmsg, sendmsg, socket,
};

use crate::config::Socket;
use crate::error::Reason;
use crate::layout::{MESSAGE, Message};

/// Clients that may wait to be accepted.
const BACKLOG: i32 = 8;
/// Files that may come with one message; more than one is of no use, and all are closed.
const FILES: usize = 8;

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

impl Listener {
    /// Listens; a file that nobody listens at is replaced.
    pub fn new(at: &Socket) -> io::Result<Self> {
        let address = address(at)?;
        let socket = unconnected()?;
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

    /// The next client, if one waits.
    pub fn accept(&self) -> Option<Channel> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = accept4(self.socket.as_raw_fd(), flags).ok()?;
        // SAFETY: the kernel has just made it, for us alone.
        Some(Channel { socket: unsafe { OwnedFd::from_raw_fd(socket) } })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A control channel.
pub struct Channel {
    socket: OwnedFd,
}

impl Channel {
    /// Connects to who listens there.
    pub fn connect(to: &Socket) -> io::Result<Self> {
        let socket = unconnected()?;
        connect(socket.as_raw_fd(), &address(to)?)?;
        Ok(Self { socket })
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
    pub fn receive(&self) -> Result<Option<(Message, Option<OwnedFd>)>, Reason> {
        let mut bytes = [0; MESSAGE];
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let mut control = nix::cmsg_space!([i32; FILES]);
        let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
        let received = match recvmsg::<()>(self.socket.as_raw_fd(), &mut parts, Some(&mut control), flags) {
            Ok(received) => received,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut files = Vec::new();
        for part in received.cmsgs().into_iter().flatten() {
            if let ControlMessageOwned::ScmRights(rights) = part {
                // SAFETY: the kernel has just opened them, for us alone.
                files.extend(rights.into_iter().map(|file| unsafe { OwnedFd::from_raw_fd(file) }));
            }
        }
        let length = received.bytes;
        match length {
            0 => Err(Reason::Gone),
            MESSAGE => match Message::decode(&bytes) {
                Some(message) => Ok(Some((message, files.into_iter().next()))),
                None => Err(Reason::Refused("unknown message type")),
            },
            _ => Err(Reason::Refused("invalid message size")),
        }
    }
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
        assert!(Channel::connect(&socket).is_ok());
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
        let one = Channel::connect(&socket).unwrap();
        let other = listener.accept().unwrap();
        assert!(listener.accept().is_none());
        assert!(matches!(other.receive(), Ok(None)));
        let file = tempfile::tempfile().unwrap();
        one.send(&Message::Ack, None).unwrap();
        one.send(&Message::Connect("name".into()), Some(file.as_fd())).unwrap();
        assert!(matches!(other.receive(), Ok(Some((Message::Ack, None)))));
        assert!(matches!(other.receive(), Ok(Some((Message::Connect(_), Some(_))))));
        drop(one);
        assert!(matches!(other.receive(), Err(Reason::Gone)));
    }
}
