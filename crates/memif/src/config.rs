//! How an interface is set up.

use std::fmt;
use std::path::PathBuf;

use crate::error::Error;
use crate::layout::{MAX_LOG2_RING_SIZE, Plan, SECRET};

/// Bytes of the longest frame that is received unless [`crate::Memif::set_longest_frame`] says otherwise: the
/// longest IP packet, with Ethernet's header and two tags.
pub const LONGEST_FRAME: u32 = 65_535 + 22;

/// Bytes of memory that a peer may always bring.
const MEMORY: u64 = 1 << 30;

/// Which end of the interface this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Listens; uses the client's memory.
    Server,
    /// Connects, and again when the server has gone; brings the memory.
    Client,
}

/// Where the control channel is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// A file.
    Path(PathBuf),
    /// A name in the abstract name space of the network namespace, as DPDK's `socket-abstract=yes` makes
    /// it: one zero byte, then the name, and no padding.
    Abstract(String),
}

impl fmt::Display for Socket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(formatter, "{}", path.display()),
            Self::Abstract(name) => write!(formatter, "@{name}"),
        }
    }
}

/// How an interface is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which end this is.
    pub role: Role,
    /// Where the control channel is; each server needs one of its own.
    pub socket: Socket,
    /// The interface's number, the same at both ends.
    pub id: u32,
    /// What the peer must know (as server) or is told (as client); at most 24 bytes, empty for nothing.
    pub secret: String,
    /// What the peer is told that this interface is called.
    pub name: String,
    /// Queues that this end receives from; at least one.
    pub receive_queues: u16,
    /// Queues that this end sends to; at least one.
    pub send_queues: u16,
    /// Descriptors of a ring, a power of two up to 16384. A server uses the client's, which it allows to
    /// be that many at most.
    pub ring_size: u16,
    /// Bytes of a buffer, as many as the longest frame has without FCS. A server uses the client's.
    pub buffer_size: u32,
    /// What all bytes of a client's buffers are at first, for those who build frames in the ring.
    pub fill: u8,
    /// Whether a server also takes memory that its client can take away again, such as DPDK's or VPP's huge
    /// pages, and as much of it as comes. Only for a client that is trusted: taking it away ends this process.
    pub unsealed: bool,
}

impl Config {
    /// One queue each way, 1024 descriptors with buffers of 2048 bytes, no secret, interface 0.
    #[must_use]
    pub fn new(role: Role, socket: Socket) -> Self {
        Self {
            role,
            socket,
            id: 0,
            secret: String::new(),
            name: "linerate".into(),
            receive_queues: 1,
            send_queues: 1,
            ring_size: 1024,
            buffer_size: 2048,
            fill: 0,
            unsealed: false,
        }
    }

    /// The binary logarithm of the ring size.
    pub(crate) fn log2_ring_size(&self) -> u8 {
        #[allow(clippy::cast_possible_truncation)] // at most 15
        let log2 = self.ring_size.trailing_zeros() as u8;
        log2
    }

    /// Bytes of memory that a client may bring in all: 1 GiB, or twice what this end's own settings ask for.
    pub(crate) fn most_memory(&self) -> u64 {
        if self.unsealed {
            return u64::MAX;
        }
        let rings = u64::from(self.receive_queues) + u64::from(self.send_queues);
        let buffers = rings * u64::from(self.ring_size) * u64::from(self.buffer_size);
        MEMORY.max(2 * buffers)
    }

    /// The secret as it stands in a message.
    pub(crate) fn secret(&self) -> [u8; SECRET] {
        let mut padded = [0; SECRET];
        padded.iter_mut().zip(self.secret.bytes()).for_each(|(to, from)| *to = from);
        padded
    }

    /// # Errors
    /// When the protocol cannot say what is wanted.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let no = |text: String| Err(Error::Config(text));
        if !self.ring_size.is_power_of_two() || self.log2_ring_size() > MAX_LOG2_RING_SIZE {
            return no(format!(
                "a ring of {} is impossible: choose a power of two up to 16384",
                self.ring_size
            ));
        }
        if self.receive_queues == 0 || self.send_queues == 0 {
            return no("no queues one way: choose at least one each way".into());
        }
        if self.buffer_size < 64 {
            return no(format!("buffers of {} bytes hold no frame: choose at least 64", self.buffer_size));
        }
        if self.secret.len() > SECRET {
            return no(format!(
                "a secret of {} bytes is too long: choose at most {SECRET}",
                self.secret.len()
            ));
        }
        let (to_server, to_client) = match self.role {
            Role::Server => (self.receive_queues, self.send_queues),
            Role::Client => (self.send_queues, self.receive_queues),
        };
        let plan =
            Plan { to_server, to_client, log2_size: self.log2_ring_size(), buffer_size: self.buffer_size };
        if u32::try_from(plan.size()).is_err() {
            return no("its memory would exceed 4 GiB: choose fewer queues, smaller rings or buffers".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_protocol_cannot_say_is_refused_with_a_remedy() {
        let good = Config::new(Role::Client, Socket::Abstract("x".into()));
        assert!(good.check().is_ok());
        for (bad, clue) in [
            (Config { ring_size: 1000, ..good.clone() }, "power of two"),
            (Config { ring_size: 32768, ..good.clone() }, "16384"),
            (Config { ring_size: 0, ..good.clone() }, "power of two"),
            (Config { send_queues: 0, ..good.clone() }, "at least one"),
            (Config { buffer_size: 0, ..good.clone() }, "at least 64"),
            (Config { secret: "s".repeat(25), ..good.clone() }, "at most 24"),
            (Config { ring_size: 16384, buffer_size: 1 << 20, ..good.clone() }, "4 GiB"),
        ] {
            let text = bad.check().unwrap_err().to_string();
            assert!(text.contains(clue), "{text}");
        }
    }
}
