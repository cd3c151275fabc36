//! A lab that others can look into: a running [`Lab`] enters, an abstract unix socket
//! `@linerate-lab-NAME` answers for it.
//!
//! The socket is no file, so nothing is left behind when the process ends. It speaks lines:
//!
//! | request | answer |
//! |---|---|
//! | `info` | one line of JSON, an [`Info`] |
//! | `namespace tester`, `namespace dut` | a line `ok`, with the network and the mount namespace as file descriptors |
//! | `stop` | a line `ok`, or the reason why not |
//!
//! Only root and the user who runs the lab are answered, and only a lab of root or of the user who asks is
//! believed.

mod client;

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{collections::BTreeMap, io::IoSlice};

use nix::sys::socket::{
    ControlMessage, MsgFlags, Shutdown, getsockopt, sendmsg, shutdown, sockopt::PeerCredentials,
};
use nix::unistd::getuid;
use serde::{Deserialize, Serialize};

pub use client::{Side, down, execute, list, tester};

use crate::error::{HolderError, Result};
use crate::lab::Lab;
use crate::namespace::Namespace;

/// What the sockets' names begin with, after the zero byte that makes them abstract.
const PREFIX: &str = "linerate-lab-";

/// A request is one short line; a client that says nothing is not waited for.
const REQUEST_LIMIT: u64 = 64;
const PATIENCE: Duration = Duration::from_secs(2);

/// What a lab tells of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// Its name.
    pub name: String,
    /// The process that holds it.
    pub pid: u32,
    /// The device under test, as in `--dut`.
    pub dut: String,
    /// What uses it, like `lab up` or `bench`.
    pub purpose: String,
    /// The tester's ports: name and MAC address.
    pub ports: Vec<(String, String)>,
    /// The core of the device.
    pub dut_core: usize,
    /// The device's configuration as found.
    pub configuration: BTreeMap<String, String>,
}

/// Answers for a lab on a thread of its own until it is dropped.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    thread: Option<JoinHandle<()>>,
    stops: Receiver<()>,
}

/// What the answering thread needs of the lab.
struct Service {
    info: String,
    tester: Namespace,
    device: Namespace,
    /// Where to say that the lab shall end; `None` where it ends with its bench.
    stop: Option<Sender<()>>,
}

impl Server {
    /// Offers `lab` under `name`. A `purpose` other than holding the lab, like `bench`, makes
    /// it refuse to stop.
    ///
    /// # Errors
    /// [`HolderError`], when the name is bad or taken.
    pub fn start(name: &str, lab: &Lab, purpose: Purpose) -> Result<Self> {
        let broken = |cause| HolderError::Broken { name: name.to_owned(), cause };
        let listener = UnixListener::bind_addr(&address(name)?).map_err(|cause| match cause.kind() {
            io::ErrorKind::AddrInUse => HolderError::Taken(name.to_owned()),
            _ => broken(cause),
        })?;
        let (sender, stops) = mpsc::channel();
        let service = Service {
            info: serde_json::to_string(&info(name, lab, purpose)?).map_err(|error| broken(error.into()))?,
            tester: lab.tester_namespace().try_clone()?,
            device: lab.dut_namespace().try_clone()?,
            stop: (purpose == Purpose::Hold).then_some(sender),
        };
        let accepting = listener.try_clone().map_err(broken)?;
        let thread = thread::Builder::new()
            .name("lab-holder".to_owned())
            .spawn(move || {
                // Ends when the listener is shut down.
                while let Ok((stream, _)) = accepting.accept() {
                    // A client that fails concerns only itself.
                    let _ = service.answer(&stream);
                }
            })
            .map_err(broken)?;
        Ok(Self { listener, thread: Some(thread), stops })
    }

    /// Waits until somebody asks the lab to stop.
    pub fn wait(&self) {
        // An error means that the answering thread has ended: there is nothing to wait for.
        let _ = self.stops.recv();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = shutdown(self.listener.as_raw_fd(), Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a lab is used for, which decides who ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It was set up to be looked at, until it is asked to stop.
    Hold,
    /// A bench uses it, and ends it.
    Bench,
}

/// Holds `lab` under `name` until it is asked to stop, and takes it down then.
///
/// # Errors
/// [`HolderError`], when the name is bad or taken.
pub fn hold(name: &str, lab: Lab) -> Result<()> {
    let server = Server::start(name, &lab, Purpose::Hold)?;
    server.wait();
    // The name stays taken until the lab is gone, so that who waits for that can watch it.
    drop(lab);
    drop(server);
    Ok(())
}

fn info(name: &str, lab: &Lab, purpose: Purpose) -> Result<Info> {
    Ok(Info {
        name: name.to_owned(),
        pid: std::process::id(),
        dut: lab.dut().to_string(),
        purpose: match purpose {
            Purpose::Hold => "lab up",
            Purpose::Bench => "bench",
        }
        .to_owned(),
        ports: lab.ports().iter().map(|port| (port.name.clone(), port.mac.to_string())).collect(),
        dut_core: lab.placement().dut,
        configuration: lab.dut_configuration()?,
    })
}

/// Whether a lab can be called `name`.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && name.len() <= 64 && name.chars().all(plain)
}

/// Whether what the user `uid` runs may be talked to.
fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == getuid().as_raw()
}

/// The socket of the lab called `name`.
fn address(name: &str) -> Result<SocketAddr, HolderError> {
    if !is_name(name) {
        return Err(HolderError::Name(name.to_owned()));
    }
    SocketAddr::from_abstract_name(format!("{PREFIX}{name}"))
        .map_err(|cause| HolderError::Broken { name: name.to_owned(), cause })
}

impl Service {
    fn answer(&self, mut stream: &UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        if !is_trusted(getsockopt(&stream, PeerCredentials)?.uid()) {
            return writeln!(stream, "only root and the user who runs the lab may use it");
        }
        let mut request = String::new();
        BufReader::new(io::Read::take(stream, REQUEST_LIMIT)).read_line(&mut request)?;
        match (request.trim_end(), &self.stop) {
            ("info", _) => writeln!(stream, "{}", self.info),
            ("namespace tester", _) => send_namespace(stream, &self.tester),
            ("namespace dut", _) => send_namespace(stream, &self.device),
            ("stop", Some(stop)) => {
                let _ = stop.send(());
                writeln!(stream, "ok")
            }
            ("stop", None) => writeln!(stream, "it belongs to a running bench, which ends it"),
            (other, _) => writeln!(stream, "there is no request '{}'", other.escape_debug()),
        }
    }
}

fn send_namespace(stream: &UnixStream, namespace: &Namespace) -> io::Result<()> {
    let raw = |fd: BorrowedFd| fd.as_raw_fd();
    let fds = [raw(namespace.fd()), raw(namespace.mount_fd())];
    let message = [IoSlice::new(b"ok\n")];
    sendmsg::<()>(
        stream.as_fd().as_raw_fd(),
        &message,
        &[ControlMessage::ScmRights(&fds)],
        MsgFlags::empty(),
        None,
    )?;
    Ok(())
}
