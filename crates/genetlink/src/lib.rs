//! Netlink without an async runtime, the little that is needed of it here: a generic family's name, a
//! command and attributes enter, or a message of route netlink; the attributes of each answer leave.
//!
//! The kernel answers at once; a request whose answer does not come within [`PATIENCE`], or is longer than
//! 16 MiB, fails.

pub mod ethtool;
pub mod netdev;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use netlink_sys::Socket;
use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_ROUTE};
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeVal;

// The numbers of linux/netlink.h and linux/genetlink.h.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_DUMP: u16 = 0x300;
const NLA_F_NESTED: u16 = 0x8000;
const NLA_TYPE: u16 = 0x3fff;
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// How long an answer may take.
pub const PATIENCE: Duration = Duration::from_secs(5);

const MESSAGE_HEADER: usize = 16;
/// The header of generic netlink: command, version and two reserved bytes.
const GENERIC_HEADER: usize = 4;
/// Bytes of all answers to one request.
const MOST: usize = 16 << 20;

/// Whether a request has one answer or one for each object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// One.
    One,
    /// One for each object.
    Each,
}

/// A connection to one family, in the network namespace it was opened in.
pub struct Family {
    socket: Socket,
    id: u16,
}

impl Family {
    /// Connects to the family called `name`, in the network namespace of the calling thread.
    ///
    /// The kernel is asked for each name once a process: for a family that it does not have it starts modprobe, every
    /// time, on whichever core is free.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when the kernel had no such family at the first call.
    pub fn open(name: &'static str) -> io::Result<Self> {
        static KNOWN: Mutex<BTreeMap<&str, Option<u16>>> = Mutex::new(BTreeMap::new());
        let controller = Self { socket: open_socket(NETLINK_GENERIC)?, id: GENL_ID_CTRL };
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let id = match known.get(name) {
            Some(id) => *id,
            None => *known.entry(name).or_insert(controller.id_of(name)?),
        };
        let id = id.ok_or(Errno::ENOENT)?;
        Ok(Self { id, ..controller })
    }

    /// What the kernel calls the family `name`, if it has that; for its controller to answer.
    fn id_of(&self, name: &str) -> io::Result<Option<u16>> {
        let attributes = attribute(CTRL_ATTR_FAMILY_NAME, &[name.as_bytes(), b"\0"].concat());
        let answers = match self.request(CTRL_CMD_GETFAMILY, Answers::One, &attributes) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            answers => answers?,
        };
        let id = answers.iter().find_map(|answer| find(answer, CTRL_ATTR_FAMILY_ID)?.try_into().ok());
        id.map(|id| Some(u16::from_ne_bytes(id))).ok_or(io::ErrorKind::InvalidData.into())
    }

    /// Sends a command and returns the attributes of each answer.
    ///
    /// # Errors
    /// What the kernel refuses it with.
    pub fn request(&self, command: u8, answers: Answers, attributes: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let flags = if answers == Answers::Each { NLM_F_DUMP } else { NLM_F_ACK };
        let body = [&[command, 1, 0, 0], attributes].concat();
        let bodies = exchange(&self.socket, &message(self.id, NLM_F_REQUEST | flags, &body))?;
        Ok(bodies.iter().map(|body| body.get(GENERIC_HEADER..).unwrap_or_default().to_vec()).collect())
    }
}

/// Sends one message of route netlink, as `RTM_GETLINK` is, in the network namespace of the calling thread.
/// `body` and each answer are a family's header (of a link, `struct ifinfomsg`) with attributes behind it.
///
/// # Errors
/// What the kernel refuses it with.
pub fn request_route(kind: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    exchange(&open_socket(NETLINK_ROUTE)?, &message(kind, NLM_F_REQUEST | NLM_F_ACK, body))
}

fn open_socket(protocol: isize) -> io::Result<Socket> {
    let socket = Socket::new(protocol)?;
    let patience = TimeVal::new(PATIENCE.as_secs().cast_signed(), 0);
    setsockopt(&socket, sockopt::ReceiveTimeout, &patience)?;
    Ok(socket)
}

/// Sends a message and returns the body of each answer.
fn exchange(socket: &Socket, message: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    socket.send(message, 0)?;
    let (mut collected, mut bytes) = (Vec::new(), 0);
    while bytes <= MOST {
        let (datagram, _) = socket.recv_from_full()?;
        bytes += datagram.len();
        let mut rest = datagram.as_slice();
        while let Some((kind, body, tail)) = split_message(rest) {
            match kind {
                NLMSG_DONE | NLMSG_ERROR => return verdict(body).map(|()| collected),
                _ => collected.push(body.to_vec()),
            }
            rest = tail;
        }
    }
    Err(io::ErrorKind::FileTooLarge.into())
}

/// A last message begins with the negative error number; 0 acknowledges.
fn verdict(body: &[u8]) -> io::Result<()> {
    match body.first_chunk().copied().map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(errno.saturating_neg())),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MESSAGE_HEADER + body.len());
    bytes.extend(((MESSAGE_HEADER + body.len()) as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]); // sequence number and port: one request at a time needs neither
    bytes.extend(body);
    bytes
}

/// One attribute, padded.
#[must_use]
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(((4 + value.len()) as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(aligned(bytes.len()), 0);
    bytes
}

/// One attribute that holds others.
#[must_use]
pub fn nested(kind: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | NLA_F_NESTED, &attributes.concat())
}

/// The value of the first attribute of this kind.
#[must_use]
pub fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

/// Kind and value of each attribute, as far as they are whole.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?) & NLA_TYPE;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The number that an attribute holds, if it is as long as one.
#[must_use]
pub fn number(value: &[u8]) -> Option<u64> {
    Some(match value.len() {
        1 => u64::from(value[0]),
        2 => u16::from_ne_bytes(value.try_into().ok()?).into(),
        4 => u32::from_ne_bytes(value.try_into().ok()?).into(),
        8 => u64::from_ne_bytes(value.try_into().ok()?),
        _ => return None,
    })
}

/// Splits the first message off: its kind, its body, what follows.
fn split_message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let body = bytes.get(MESSAGE_HEADER..length)?;
    Some((kind, body, bytes.get(aligned(length)..).unwrap_or_default()))
}

/// Netlink aligns to 4 bytes.
const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let inner = [attribute(7, b"abc"), attribute(9, &5_u32.to_ne_bytes())];
        let bytes = [message(0x20, 1, &nested(2, &inner)), message(NLMSG_DONE, 0, &[])].concat();
        let (kind, body, rest) = split_message(&bytes).unwrap();
        let outer = find(body, 2).unwrap();
        assert_eq!(kind, 0x20);
        assert_eq!(attributes(outer).collect::<Vec<_>>(), [(7, &b"abc"[..]), (9, &5_u32.to_ne_bytes()[..])]);
        assert_eq!(find(outer, 8), None);
        assert_eq!(split_message(rest).unwrap().0, NLMSG_DONE);
    }

    #[test]
    fn broken_messages_end_the_search() {
        for bytes in [&[][..], &[0; 3], &[0; 16], &[255; 40], &[4, 0, 0, 0, 1, 0, 0, 0]] {
            assert!(split_message(bytes).is_none(), "{bytes:?}");
            assert!(attributes(bytes).count() <= 2);
        }
        assert_eq!(find(&[0; 64], 1), None);
    }

    #[test]
    fn numbers_have_one_two_four_or_eight_bytes() {
        assert_eq!((number(&[7]), number(&7_u16.to_ne_bytes())), (Some(7), Some(7)));
        assert_eq!(number(&u32::MAX.to_ne_bytes()), Some(u32::MAX.into()));
        assert_eq!(number(&u64::MAX.to_ne_bytes()), Some(u64::MAX));
        assert_eq!((number(&[1, 2, 3]), number(&[])), (None, None));
    }

    #[test]
    fn the_kernel_answers_and_refuses() {
        assert!(Family::open("nlctrl").is_ok());
        // The second time it is known.
        for _ in 0..2 {
            let refused = Family::open("no-such-family").err().and_then(|error| error.raw_os_error());
            assert_eq!(refused, Some(nix::libc::ENOENT));
        }
        // Interface 1 is the loopback in every network namespace.
        let mut link = [0; 16];
        link[4] = 1;
        let (get, name) = (18, 3);
        let answers = request_route(get, &link).unwrap();
        assert_eq!(find(&answers[0][16..], name), Some(&b"lo\0"[..]));
        assert!(verdict(&[]).is_err());
        assert!(verdict(&0_i32.to_ne_bytes()).is_ok());
    }
}
