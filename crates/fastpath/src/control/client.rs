//! The other end of a router's control socket: requests enter, answers leave.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::control::place;
use crate::control::protocol::{Answer, Reply, Request, Show};
use crate::control::show::errors::Errors;
use crate::control::show::interfaces::Interfaces;
use crate::control::show::runtime::Runtime;

/// How long a router may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No router listens there.
    #[error("cannot connect to fastpath at {path} ({cause}): start one, or name its socket (--socket)")]
    Connect {
        /// The socket.
        path: PathBuf,
        /// What the kernel answered.
        cause: io::Error,
    },
    /// The connection broke.
    #[error("fastpath does not answer: {0}; has it ended?")]
    Broken(#[from] io::Error),
    /// The answer is not one to the question.
    #[error("unexpected reply: fastpath and fastpathctl are of different versions; use two of one build")]
    Strange,
    /// The router says no, and why.
    #[error("{0}")]
    Refused(String),
}

/// A connection to a router.
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// To the one in control at `socket`.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub fn connect(socket: &Path) -> Result<Self, Error> {
        Self::connect_within(socket, PATIENCE)
    }

    /// To the one in control at `socket`, which may take as long as `patience` for each answer, not zero.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub fn connect_within(socket: &Path, patience: Duration) -> Result<Self, Error> {
        let connect = || {
            let stream = place::connect(socket)?;
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            Ok(stream)
        };
        let stream = connect().map_err(|cause| Error::Connect { path: socket.to_owned(), cause })?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// [`Error`].
    pub fn ask(&mut self, request: &Request) -> Result<Answer, Error> {
        let mut line = serde_json::to_vec(request).map_err(io::Error::from)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)?;
        line.clear();
        self.stream.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        match serde_json::from_slice(&line) {
            Ok(Reply::Answer(answer)) => Ok(answer),
            Ok(Reply::Error(reason)) => Err(Error::Refused(reason)),
            Err(_) => Err(Error::Strange),
        }
    }

    /// What each worker does.
    ///
    /// # Errors
    /// [`Error`].
    pub fn runtime(&mut self) -> Result<Runtime, Error> {
        match self.ask(&Request::Show(Show::Runtime))? {
            Answer::Runtime(runtime) => Ok(runtime),
            _ => Err(Error::Strange),
        }
    }

    /// Interfaces and what went through them.
    ///
    /// # Errors
    /// [`Error`].
    pub fn interfaces(&mut self) -> Result<Interfaces, Error> {
        match self.ask(&Request::Show(Show::Interfaces))? {
            Answer::Interfaces(interfaces) => Ok(interfaces),
            _ => Err(Error::Strange),
        }
    }

    /// Why packets went no further.
    ///
    /// # Errors
    /// [`Error`].
    pub fn errors(&mut self) -> Result<Errors, Error> {
        match self.ask(&Request::Show(Show::Errors))? {
            Answer::Errors(errors) => Ok(errors),
            _ => Err(Error::Strange),
        }
    }
}
