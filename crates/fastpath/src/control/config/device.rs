//! The devices of interfaces, as people write them: `KIND` or `KIND:key=value,…`.

use std::fmt;
use std::str::FromStr;

use memif::{Role, Socket};

use super::port::Port;

/// What an interface sends and receives by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// Nothing ever arrives; what is sent is gone.
    Null,
    /// Memory that is shared with another process.
    Memif(Memif),
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
/// The most queues of a device.
const QUEUES: u16 = 64;
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
            "af_xdp" | "dpdk" if !cfg!(feature = "dpdk") => Err(format!(
                "this fastpath was built without DPDK, of which '{kind}' is: build it with \
                 `cargo build --release -p fastpath --features dpdk`"
            )),
            "af_xdp" => Port::af_xdp(rest).map(Self::Port),
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
    let unsealed = match keys.get("unsealed") {
        None | Some("false") => false,
        Some("true") => true,
        Some(other) => return Err(format!("unsealed={other}: write true or false")),
    };
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
            Self::Port(port) => port.fmt(formatter),
        }
    }
}

/// What stands after the colon.
pub(super) struct Keys<'a> {
    kind: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Keys<'a> {
    pub fn parse(kind: &'a str, text: &'a str) -> Result<Self, String> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let pair = part.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
            let Some((key, value)) = pair else {
                return Err(format!("'{part}' says nothing of {kind}: write key=value, with commas between"));
            };
            if pairs.iter().any(|(before, _)| *before == key) {
                return Err(format!("{kind} has {key} twice: keep one"));
            }
            pairs.push((key, value));
        }
        Ok(Self { kind, pairs })
    }

    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn number(&self, key: &str, usual: u32) -> Result<u32, String> {
        let Some(text) = self.get(key) else { return Ok(usual) };
        text.parse().map_err(|_| format!("{key}={text}: write a whole number"))
    }

    /// Queues to receive from.
    pub fn queues(&self) -> Result<u16, String> {
        let queues = u16::try_from(self.number("queues", 1)?).ok();
        let queues = queues.filter(|queues| (1..=QUEUES).contains(queues));
        queues.ok_or(format!("so many queues are none or too many: write 1 to {QUEUES}"))
    }

    /// Whether all keys are among `known`.
    pub fn none_but(&self, known: &[&str]) -> Result<(), String> {
        match self.pairs.iter().find(|(key, _)| !known.contains(key)) {
            None => Ok(()),
            Some((key, _)) if known.is_empty() => {
                Err(format!("{} takes nothing after its name: leave '{key}' out", self.kind))
            }
            Some((key, _)) => Err(format!("{} has no '{key}': it has {}", self.kind, known.join(", "))),
        }
    }
}
