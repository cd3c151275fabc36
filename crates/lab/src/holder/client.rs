//! The other side of the socket: a lab's name enters; what it tells, its namespaces or its end
//! leave.

use std::io::{self, IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};
use std::{fs, thread};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, getsockopt, recvmsg, sockopt::PeerCredentials};

use super::{Info, PATIENCE, PREFIX, address, is_name, is_trusted};
use crate::error::HolderError;
use crate::namespace::{Namespace, contain};

/// One of the two namespaces of a lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where the tester's ports are.
    Tester,
    /// Where the device under test is.
    Dut,
}

/// How long a lab may take to come down.
const DOWN_PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read.
const ANSWER_LIMIT: usize = 64 << 10;

/// The labs of this machine that this user may use, by name.
#[must_use]
pub fn list() -> Vec<Info> {
    // Labs that end while they are asked, or belong to others, are not listed.
    names().iter().filter_map(|name| serde_json::from_str(&ask(name, "info").ok()?).ok()).collect()
}

/// Runs a command inside a lab, with this process's terminal, and returns how it ended.
///
/// # Errors
/// [`HolderError`], when there is no such lab or no such command.
pub fn execute(name: &str, side: Side, command: &[String]) -> Result<ExitStatus, HolderError> {
    let (program, arguments) = command.split_first().ok_or_else(|| HolderError::Command {
        command: String::new(),
        cause: io::ErrorKind::NotFound.into(),
    })?;
    let mut child = Command::new(program);
    child.args(arguments);
    contain(&mut child, namespaces(name, side)?);
    child.status().map_err(|cause| HolderError::Command { command: program.clone(), cause })
}

/// The tester's side of the lab called `name`: its namespace, and the names of the two ports there.
///
/// # Errors
/// [`HolderError`], when there is no such lab, or it says something else.
pub fn tester(name: &str) -> Result<(Namespace, Vec<String>), HolderError> {
    let answer = ask(name, "info")?;
    let info: Info = serde_json::from_str(&answer)
        .map_err(|_| HolderError::Refused { name: name.to_owned(), reason: printable(&answer) })?;
    let namespace = Namespace::of(namespaces(name, Side::Tester)?);
    Ok((namespace, info.ports.into_iter().map(|(port, _)| port).collect()))
}

/// Asks a lab to end, and waits until it is gone.
///
/// # Errors
/// [`HolderError`], when there is no such lab, or it does not end.
pub fn down(name: &str) -> Result<(), HolderError> {
    let answer = ask(name, "stop")?;
    if answer != "ok" {
        return Err(HolderError::Refused { name: name.to_owned(), reason: printable(&answer) });
    }
    let deadline = Instant::now() + DOWN_PATIENCE;
    while names().iter().any(|known| known == name) {
        if Instant::now() > deadline {
            let reason = format!("it is still there after {} s", DOWN_PATIENCE.as_secs());
            return Err(HolderError::Refused { name: name.to_owned(), reason });
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The names of the labs whose sockets the kernel knows of.
fn names() -> Vec<String> {
    parse_names(&fs::read_to_string("/proc/net/unix").unwrap_or_default())
}

/// Lines of `/proc/net/unix`: `Num RefCount Protocol Flags Type St Inode Path`. Only listening
/// sockets have the flag; accepted ones bear the same path. Anybody can open a socket of any name: only what
/// can be a lab's is a name.
fn parse_names(text: &str) -> Vec<String> {
    const LISTENING: &str = "00010000";
    let name = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let flags = words.nth(3)?;
        let name = words.nth(3)?.strip_prefix('@')?.strip_prefix(PREFIX)?;
        (flags == LISTENING && is_name(name)).then(|| name.to_owned())
    };
    let mut names: Vec<String> = text.lines().filter_map(name).collect();
    names.sort();
    names.dedup();
    names
}

/// Sends a request to the lab called `name`, if root or this user opened it: any user of this machine can take
/// the name, and would have root enter namespaces of that user's choice.
fn connect(name: &str, request: &str) -> Result<UnixStream, HolderError> {
    let broken = |cause| HolderError::Broken { name: name.to_owned(), cause };
    let mut stream = UnixStream::connect_addr(&address(name)?).map_err(|cause| match cause.kind() {
        io::ErrorKind::ConnectionRefused => {
            let known = names().join(", ");
            let known = if known.is_empty() { "none".to_owned() } else { known };
            HolderError::Unknown { name: name.to_owned(), known }
        }
        _ => broken(cause),
    })?;
    // Those of who listens, from when that began.
    let owner = getsockopt(&stream, PeerCredentials).map_err(|errno| broken(errno.into()))?.uid();
    if !is_trusted(owner) {
        return Err(HolderError::Foreign { name: name.to_owned(), owner });
    }
    stream.set_read_timeout(Some(PATIENCE)).map_err(broken)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(broken)?;
    stream.write_all(format!("{request}\n").as_bytes()).map_err(broken)?;
    Ok(stream)
}

/// One request, one line of answer.
fn ask(name: &str, request: &str) -> Result<String, HolderError> {
    let stream = connect(name, request)?;
    let answer = read_answer(&stream, Instant::now() + PATIENCE)
        .map_err(|cause| HolderError::Broken { name: name.to_owned(), cause })?;
    Ok(answer.trim_end().to_owned())
}

/// All that comes until the other end closes, which is to happen until `deadline`.
fn read_answer(mut stream: &UnixStream, deadline: Instant) -> io::Result<String> {
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let length = stream.read(&mut part)?;
        if length == 0 {
            return String::from_utf8(answer).map_err(|_| io::ErrorKind::InvalidData.into());
        }
        answer.extend_from_slice(part.get(..length).unwrap_or_default());
        if answer.len() > ANSWER_LIMIT {
            return Err(io::Error::other(format!("its answer is longer than {ANSWER_LIMIT} bytes")));
        }
    }
}

/// The network and mount namespaces of one side.
fn namespaces(name: &str, side: Side) -> Result<[OwnedFd; 2], HolderError> {
    let request = match side {
        Side::Tester => "namespace tester",
        Side::Dut => "namespace dut",
    };
    let broken = |cause: io::Error| HolderError::Broken { name: name.to_owned(), cause };
    let stream = connect(name, request)?;
    let mut text = [0; 256];
    let mut space = nix::cmsg_space!([i32; 2]);
    let (length, fds) = {
        let mut buffers = [IoSliceMut::new(&mut text)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let message = recvmsg::<()>(stream.as_raw_fd(), &mut buffers, Some(&mut space), flags)
            .map_err(|errno| broken(errno.into()))?;
        let mut fds = Vec::new();
        for control in message.cmsgs().map_err(|errno| broken(errno.into()))? {
            if let ControlMessageOwned::ScmRights(raw) = control {
                // SAFETY: the kernel has just made these descriptors for this process alone.
                fds.extend(raw.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
            }
        }
        (message.bytes, fds)
    };
    <[OwnedFd; 2]>::try_from(fds).map_err(|_| {
        let reason = String::from_utf8_lossy(text.get(..length).unwrap_or_default());
        HolderError::Refused { name: name.to_owned(), reason: printable(reason.trim_end()) }
    })
}

/// `text` without what a terminal would obey.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_listening_sockets() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 20001 @linerate-lab-bench-7\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03 20002 @linerate-lab-bench-7\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03 20003\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 20004 @linerate-lab-a\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 20005 /run/linerate-lab-b\n";
        assert_eq!(parse_names(text), ["a", "bench-7"]);
        assert!(parse_names("").is_empty());
        let hostile = "0: 00000002 00000000 00010000 0001 01 20001 @linerate-lab-\u{1b}[2J\n";
        assert!(parse_names(hostile).is_empty());
    }

    #[test]
    fn an_answer_is_bounded_in_length_and_time() {
        let read = |answer: &[u8], close: bool| {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let answer = answer.to_vec();
            let writer = thread::spawn(move || {
                // Fails when the reader has had enough.
                let _ = theirs.write_all(&answer);
                (!close).then_some(theirs)
            });
            let found = read_answer(&ours, Instant::now() + Duration::from_millis(200));
            drop(ours);
            drop(writer.join().unwrap());
            found.map_err(|error| error.to_string())
        };
        assert_eq!(read(b"ok\n", true), Ok("ok\n".to_owned()));
        assert!(read(&vec![b'a'; 2 * ANSWER_LIMIT], true).unwrap_err().contains("longer than 65536 bytes"));
        assert!(read(b"ok\n", false).is_err(), "it never closes");
        assert!(read(b"\xff", true).is_err());
    }

    #[test]
    fn a_lab_that_is_not_there_is_named() {
        let refused = ask("no-such-lab", "info").unwrap_err().to_string();
        assert!(refused.starts_with("there is no lab called 'no-such-lab'. There are: "), "{refused}");
        assert!(matches!(ask("no/name", "info"), Err(HolderError::Name(_))));
        assert!(matches!(ask("", "info"), Err(HolderError::Name(_))));
    }
}
