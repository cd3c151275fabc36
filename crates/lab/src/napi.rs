//! NAPI on threads of its own: an interface enters, the kernel thread that receives for it
//! leaves, pinned to a core.
//!
//! Without this, whoever sends into a veth also does the receiver's work: the device under test
//! would run on the generator's core.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use rtnetlink::sys::Socket;
use rtnetlink::sys::protocols::NETLINK_GENERIC;

use crate::error::{Error, Needs, Result};

/// A kernel thread that receives for one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NapiThread {
    /// The interface.
    pub interface: String,
    /// The thread's process id.
    pub pid: i32,
    /// The core it is pinned to, if it is.
    pub core: Option<usize>,
}

/// Finds the threads of one lab's interfaces.
#[derive(Debug)]
pub(crate) struct ThreadFinder {
    /// Threads that were there before the lab: interfaces of another lab have the same names.
    strangers: BTreeSet<i32>,
}

impl ThreadFinder {
    /// Call this before any interface of the lab exists.
    pub fn new() -> Self {
        Self { strangers: threads_named("").into_iter().collect() }
    }

    /// The threads that receive for an interface of the calling thread's network namespace.
    ///
    /// The kernel tells since 6.8. Before, the name must do: `napi/INTERFACE-ID`.
    pub fn find(&self, interface: &str, index: u32) -> Vec<i32> {
        match ask_kernel(index) {
            Some(pids) if !pids.is_empty() => pids,
            _ => self.find_by_name(interface),
        }
    }

    fn find_by_name(&self, interface: &str) -> Vec<i32> {
        let mut pids = threads_named(interface);
        pids.retain(|pid| !self.strangers.contains(pid));
        pids
    }
}

/// Makes NAPI of `interface`, in the calling thread's network namespace, run on threads.
pub(crate) fn set_threaded(interface: &str) -> Result<()> {
    let path = threaded_path(interface);
    fs::write(&path, "1").map_err(|cause| {
        Error::kernel(
            format!("cannot set {}", path.display()),
            cause,
            Needs::NetAdmin,
            "Threaded NAPI needs Linux 5.12 or later and a driver with NAPI",
        )
    })
}

/// Whether NAPI of `interface`, in the calling thread's network namespace, runs on threads.
pub(crate) fn is_threaded(interface: &str) -> bool {
    fs::read_to_string(threaded_path(interface)).is_ok_and(|state| state.trim() != "0")
}

fn threaded_path(interface: &str) -> PathBuf {
    PathBuf::from(format!("/sys/class/net/{interface}/threaded"))
}

/// Pins a thread to a core.
pub(crate) fn pin(pid: i32, core: usize) -> Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core).and_then(|()| sched_setaffinity(Pid::from_raw(pid), &cores)).map_err(|errno| {
        Error::kernel(
            format!("cannot pin the kernel thread {pid} to core {core}"),
            errno,
            Needs::SysNice,
            "In a container, kernel threads can be out of reach: run on the machine itself",
        )
    })
}

/// The core a thread is pinned to, if it is pinned to one.
pub(crate) fn core_of(pid: i32) -> Option<usize> {
    let cores = sched_getaffinity(Pid::from_raw(pid)).ok()?;
    let mut set = (0..CpuSet::count()).filter(|core| cores.is_set(*core).unwrap_or(false));
    set.next().filter(|_| set.next().is_none())
}

/// The kernel threads called `napi/INTERFACE-…`; of every interface if that is empty.
fn threads_named(interface: &str) -> Vec<i32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            // A kernel thread has no command line; anyone may take its name.
            is_napi_thread(&name, interface)
                && fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|command| command.is_empty())
        })
        .collect()
}

fn is_napi_thread(name: &str, interface: &str) -> bool {
    let Some((of, id)) = name.trim_end().strip_prefix("napi/").and_then(|rest| rest.rsplit_once('-')) else {
        return false;
    };
    (interface.is_empty() || of == interface) && !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())
}

// Generic netlink, family "netdev": the numbers of linux/netlink.h, genetlink.h and netdev.h.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_DUMP: u16 = 0x300;
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_NAPI_GET: u8 = 11;
const NETDEV_A_NAPI_IFINDEX: u16 = 1;
const NETDEV_A_NAPI_PID: u16 = 4;
const HEADERS: usize = 16 + 4;

/// The threads of interface `index` as the kernel tells them; `None` where it does not.
fn ask_kernel(index: u32) -> Option<Vec<i32>> {
    let socket = Socket::new(NETLINK_GENERIC).ok()?;
    let name = attribute(CTRL_ATTR_FAMILY_NAME, b"netdev\0");
    let family = transact(&socket, &message(GENL_ID_CTRL, NLM_F_REQUEST, CTRL_CMD_GETFAMILY, &name))?;
    let family = family.iter().find_map(|answer| find(answer, CTRL_ATTR_FAMILY_ID)?.try_into().ok())?;
    let interface = attribute(NETDEV_A_NAPI_IFINDEX, &index.to_ne_bytes());
    let request = message(u16::from_ne_bytes(family), NLM_F_REQUEST | NLM_F_DUMP, NETDEV_CMD_NAPI_GET, &interface);
    let answers = transact(&socket, &request)?;
    Some(answers.iter().filter_map(|answer| word(find(answer, NETDEV_A_NAPI_PID)?)).collect())
}

fn word(bytes: &[u8]) -> Option<i32> {
    bytes.try_into().ok().map(i32::from_ne_bytes)
}

/// Sends a request and returns the attributes of each answer.
fn transact(socket: &Socket, request: &[u8]) -> Option<Vec<Vec<u8>>> {
    socket.send(request, 0).ok()?;
    let is_dump = request.get(6..8)? == (NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes();
    let mut answers = Vec::new();
    loop {
        let (datagram, _) = socket.recv_from_full().ok()?;
        let mut rest = datagram.as_slice();
        while let Some((kind, body, tail)) = split_message(rest) {
            match kind {
                NLMSG_DONE => return Some(answers),
                NLMSG_ERROR => return None,
                _ => answers.push(body.to_vec()),
            }
            rest = tail;
        }
        if !is_dump {
            return Some(answers);
        }
    }
}

fn message(kind: u16, flags: u16, command: u8, attributes: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADERS + attributes.len());
    bytes.extend(((HEADERS + attributes.len()) as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]); // sequence number and port: one request at a time needs neither
    bytes.extend([command, 1, 0, 0]);
    bytes.extend(attributes);
    bytes
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(((4 + value.len()) as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(aligned(bytes.len()), 0);
    bytes
}

/// Splits the first message off: its kind, its attributes, what follows.
fn split_message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let message = bytes.get(..length).filter(|message| message.len() >= 16)?;
    let tail = bytes.get(aligned(length)..).unwrap_or_default();
    Some((kind, message.get(HEADERS..).unwrap_or_default(), tail))
}

/// The value of the first attribute of this kind.
fn find(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(attributes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(attributes.get(2..4)?.try_into().ok()?);
        let value = attributes.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        attributes = attributes.get(aligned(length)..)?;
    }
}

/// Netlink aligns to 4 bytes.
const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_known_by_interface_and_number() {
        assert!(is_napi_thread("napi/dut0-8193\n", "dut0"));
        assert!(is_napi_thread("napi/dut0-8193\n", ""));
        assert!(!is_napi_thread("napi/dut0-8193", "dut"));
        assert!(!is_napi_thread("napi/dut0-x", "dut0"));
        assert!(!is_napi_thread("napi/dut0-", "dut0"));
        assert!(!is_napi_thread("ksoftirqd/0", ""));
    }

    #[test]
    fn what_is_written_can_be_read() {
        let attributes = [attribute(7, b"abc"), attribute(9, &5_u32.to_ne_bytes())].concat();
        let bytes = [message(0x20, 1, 3, &attributes), message(NLMSG_DONE, 0, 0, &[])].concat();
        let (kind, first, rest) = split_message(&bytes).unwrap();
        assert_eq!((kind, find(first, 7), find(first, 9)), (0x20, Some(&b"abc"[..]), Some(&5_u32.to_ne_bytes()[..])));
        assert_eq!(find(first, 8), None);
        assert_eq!(split_message(rest).unwrap().0, NLMSG_DONE);
    }

    #[test]
    fn broken_messages_end_the_search() {
        for bytes in [&[][..], &[0; 3], &[0; 16], &[255; 40], &[4, 0, 0, 0, 1, 0, 0, 0]] {
            assert!(split_message(bytes).is_none(), "{bytes:?}");
            assert!(find(bytes, 1).is_none_or(|value| value.len() <= bytes.len()));
        }
        assert_eq!(find(&[0; 64], 1), None);
    }
}
