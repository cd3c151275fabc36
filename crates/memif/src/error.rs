//! What can go wrong.

use std::io;

/// Why an interface cannot be opened or driven.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting that the protocol does not allow.
    #[error("memif: {0}")]
    Config(String),
    /// The socket cannot be made.
    #[error("memif: cannot listen at {socket}: {source}{}", remedy(.source))]
    Listen {
        /// Where.
        socket: String,
        /// Why.
        source: io::Error,
    },
    /// Waiting for the control channel failed.
    #[error("memif: cannot wait for the control channel: {0}")]
    Wait(io::Error),
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => "; somebody else listens there: end that or choose another socket",
        io::ErrorKind::NotFound => "; does its directory exist?",
        io::ErrorKind::PermissionDenied => "; may this user write to its directory?",
        _ => "",
    }
}

/// Why there is no connection with a peer, or no longer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// It closed the control channel.
    #[error("the peer has gone")]
    Gone,
    /// It said so.
    #[error("the peer disconnects: {0}")]
    Said(String),
    /// It did what the protocol forbids, or asked for what we do not have.
    #[error("the peer is refused: {0}")]
    Refused(&'static str),
    /// The kernel refused something.
    #[error("the connection fails: {0}")]
    System(String),
}

impl From<io::Error> for Reason {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Self::Gone,
            _ => Self::System(error.to_string()),
        }
    }
}

impl From<nix::Error> for Reason {
    fn from(error: nix::Error) -> Self {
        io::Error::from(error).into()
    }
}
