//! The devices of interfaces, as people write them: `KIND` or `KIND:key=value,…`.

use std::fmt;
use std::str::FromStr;

use memif::{Role, Socket};

use super::af_xdp::AfXdp;
use super::keys::Keys;
use super::port::Port;

/// What an interface sends and receives by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// Nothing ever arrives; what is sent is gone.
    Null,
    /// Memory that is shared with another process.
    Memif(Memif),
    /// An interface of the kernel.
    AfXdp(AfXdp),
    /// A port of DPDK.
    Port(Port),
}

/// A memif; it sends by as many queues as there are workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memif {
    /// Where the control channel is.
    pub socket: Socket,
    /// Which end this is.
    pub role: Role,
    /// The interface's number, the same at both ends.
    pub id: u32,
    /// Queues that it receives from.
    pub queues: u16,
    /// Descriptors of a ring.
    pub ring: u16,
    /// Bytes of a buffer.
    pub buffer: u32,
    /// What the peer must know or is told; empty for nothing.
    pub secret: String,
    /// Whether memory is taken that its peer can take away.
    pub unsealed: bool,
}

/// The kinds that there are.
const KINDS: [&str; 4] = ["null", "memif", "af_xdp", "dpdk"];
/// What can be said of a memif.
const MEMIF: [&str; 8] = ["socket", "role", "id", "queues", "ring", "buffer", "secret", "unsealed"];
/// The longest ring of a memif.
const RING: u16 = 16384;
/// The longest secret of a memif.
const SECRET: usize = 24;

impl Device {
    /// What nobody else can have, in words.
    #[must_use]
    pub fn claims(&self) -> Vec<String> {
        match self {
            Self::Null => Vec::new(),
            Self::Memif(memif) => vec![format!("the socket {}", memif.socket)],
            Self::AfXdp(interface) => interface.claims(),
            Self::Port(port) => port.claims(),
        }
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match kind {
            "null" => Keys::parse(kind, rest)?.none_but(&[]).map(|()| Self::Null),
            "memif" => memif(&Keys::parse(kind, rest)?).map(Self::Memif),
            "af_xdp" => AfXdp::parse(rest).map(Self::AfXdp),
            "dpdk" if !cfg!(feature = "dpdk") => Err("this fastpath was built without DPDK: build it with \
                 `cargo build --release -p fastpath --features dpdk`, or write af_xdp:eth1 for an interface of the \
                 kernel"
                .to_owned()),
            "dpdk" => Port::any(rest).map(Self::Port),
            _ => Err(format!("no device is called '{kind}': there are {}", KINDS.join(", "))),
        }
    }
}

fn memif(keys: &Keys) -> Result<Memif, String> {
    keys.none_but(&MEMIF)?;
    let socket = keys.get("socket").ok_or("a memif needs a socket: write memif:socket=/run/memif.sock")?;
    let socket = match socket.strip_prefix('@') {
        Some(name) if !name.is_empty() => Socket::Abstract(name.to_owned()),
        None if socket.starts_with('/') => Socket::Path(socket.into()),
        _ => return Err(format!("'{socket}' is no socket: write a path from / on, or @ and a name")),
    };
    let role = match keys.get("role") {
        None | Some("server") => Role::Server,
        Some("client") => Role::Client,
        Some(other) => return Err(format!("'{other}' is no role: write server or client")),
    };
    let unsealed = keys.flag("unsealed")?.unwrap_or(false);
    let ring = u16::try_from(keys.number("ring", 1024)?).ok();
    let ring = ring.filter(|ring| ring.is_power_of_two() && *ring <= RING);
    let secret = keys.get("secret").unwrap_or_default();
    let buffer = keys.number("buffer", 2048)?;
    if secret.len() > SECRET {
        return Err(format!("a secret of {} bytes: write {SECRET} at most", secret.len()));
    }
    if !(64..=65_536).contains(&buffer) {
        return Err(format!("buffers of {buffer} bytes: write 64 to 65536"));
    }
    Ok(Memif {
        socket,
        role,
        id: keys.number("id", 0)?,
        queues: keys.queues()?,
        ring: ring.ok_or(format!("there is no such ring: write a power of two up to {RING}"))?,
        buffer,
        secret: secret.to_owned(),
        unsealed,
    })
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => formatter.write_str("null"),
            Self::Memif(memif) => {
                let role = match memif.role {
                    Role::Server => "server",
                    Role::Client => "client",
                };
                write!(formatter, "memif {role} at {}, id {}", memif.socket, memif.id)
            }
            Self::AfXdp(interface) => interface.fmt(formatter),
            Self::Port(port) => port.fmt(formatter),
        }
    }
}
