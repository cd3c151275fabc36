//! The configuration of a router: TOML enters; what the router is to be leaves, or all that is wrong with
//! it, each with its line and what to write instead. Nothing is touched here.

mod af_xdp;
mod device;
mod difference;
mod document;
mod keys;
mod port;
mod prefix;
mod routes;
mod set;
mod table;
mod validate;

use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use wire::MacAddress;

use crate::dataplane::acl::Rule;
use crate::dataplane::bridge::Settings;
use crate::dataplane::states;
use crate::subnet::Subnet;

pub use self::af_xdp::AfXdp;
pub use self::device::Device;
pub use self::difference::{Change, Fixed, difference};
pub use self::port::Port;
pub use self::prefix::IpPrefix;
pub use self::routes::Routes;
pub use self::set::changes_of;
pub(crate) use self::validate::protocol_name;

/// Where the control socket is unless the configuration says otherwise.
pub const SOCKET: &str = "/run/fastpath.sock";

/// A router as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The file of the control socket.
    pub socket: PathBuf,
    /// The threads that forward.
    pub workers: Workers,
    /// Whether the routes of the kernel's main table are the router's too.
    pub routes_from_kernel: bool,
    /// Where metrics are served, if they are.
    pub metrics: Option<SocketAddr>,
    /// By number; those with VLAN tags follow the one whose device they share.
    pub interfaces: Vec<Interface>,
    /// Bridges, by number: in the order of their names.
    pub bridges: Vec<Bridge>,
    /// Access lists, by their names.
    pub access_lists: BTreeMap<String, Vec<Rule>>,
    /// How access lists keep states of flows.
    pub states: states::Settings,
    /// The file whose routes are the router's too, as it is written: see [`Self::add_table`].
    pub routes_file: Option<PathBuf>,
    /// Routes; copies of a configuration share them.
    pub routes: Arc<Routes>,
    /// The addresses of neighbours that never change, by interface and network address.
    pub neighbours: BTreeMap<(String, IpAddr), MacAddress>,
}

/// The threads that forward.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workers {
    /// The core of each; at least one.
    pub cores: Vec<usize>,
    /// What they do when nothing arrives.
    pub idle: Idle,
    /// When they get their cores.
    pub precedence: Precedence,
}

/// What a worker does when nothing arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Idle {
    /// It asks again at once, and so uses all of its core.
    #[default]
    Poll,
    /// It sleeps for moments: a packet may wait for a tenth of a millisecond.
    Sleep,
}

/// When a worker gets its core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precedence {
    /// As any other thread.
    #[default]
    Ordinary,
    /// Before ordinary threads, as far as the kernel lets it.
    Urgent,
}

/// An interface as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name; `lan.7` for VLAN 7 of `lan`.
    pub name: String,
    /// What it sends by.
    pub attachment: Attachment,
    /// Its address.
    pub mac: MacAddress,
    /// Bytes that a packet may have, without link header.
    pub mtu: u16,
    /// Whether it takes and sends packets.
    pub up: bool,
    /// Whether the kernel has an interface of the same name, to which what is for itself goes.
    pub tap: bool,
    /// Whether the flows that arrive at its device are spread over the workers, whichever of them polls it;
    /// those of VLANs go with their device's.
    pub rss: bool,
    /// Its network addresses.
    pub addresses: Vec<Subnet>,
    /// What it does with what arrives.
    pub role: Role,
    /// What packets are held against.
    pub filters: Filters,
}

/// The names of an interface's access lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// That of packets that arrive.
    pub input: Option<String>,
    /// That of packets that are to leave.
    pub output: Option<String>,
}

/// What an interface sends by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// A device of its own.
    Device(Device),
    /// The device of another interface, with a tag.
    Vlan {
        /// The other interface.
        parent: String,
        /// The tag.
        id: u16,
    },
}

/// What an interface does with what arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It routes.
    Router,
    /// All frames leave by the interface of this name.
    CrossConnect(String),
    /// It is a port of the bridge of this number.
    Bridge(u16),
}

/// A bridge as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// Its name.
    pub name: String,
    /// How it is set.
    pub settings: Settings,
}

/// Where the packets of a route go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    /// To these neighbours, by flow; at least one.
    Via(Vec<Hop>),
    /// Nowhere.
    Drop,
}

/// A neighbour that packets go to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hop {
    /// Its address.
    pub gateway: IpAddr,
    /// The interface that it is reached by.
    pub interface: String,
    /// Its share, among those of the others.
    pub weight: u16,
}

/// What is wrong at a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// From 1 on.
    pub line: usize,
    /// The cause and the remedy.
    pub reason: String,
}

/// A configuration that cannot be used, with all that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where it stands.
    pub origin: String,
    /// At least one, in the order of lines.
    pub problems: Vec<Problem>,
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            let end = if at + 1 == self.problems.len() { "" } else { "\n" };
            write!(formatter, "{}:{}: {}{end}", self.origin, problem.line, problem.reason)?;
        }
        Ok(())
    }
}

impl Config {
    /// Reads `text`, which stands in the file `origin`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(origin: &str, text: &str) -> Result<Self, Error> {
        let mut problems = document::Problems::default();
        let config = document::read(text, &mut problems).map(|read| validate::config(read, &mut problems));
        let problems = problems.in_lines_of(text);
        config.filter(|_| problems.is_empty()).ok_or_else(|| Error { origin: origin.to_owned(), problems })
    }

    /// Takes over the routes of `table`, which is what the file `origin` holds: a line for each, in the words of
    /// `ip route`.
    ///
    /// # Errors
    /// What is wrong with its first lines that are wrong.
    pub fn add_table(&mut self, origin: &str, table: impl BufRead) -> Result<(), Error> {
        let read =
            table::read(self, table).map_err(|problems| Error { origin: origin.to_owned(), problems })?;
        Arc::make_mut(&mut self.routes).append(read);
        Ok(())
    }

    /// The interface of this name.
    #[must_use]
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }

    /// The longest MTU of an interface that has a device, and of its VLANs.
    #[must_use]
    pub fn longest_mtu(&self, interface: &Interface) -> u16 {
        let is_on_it = |other: &&Interface| matches!(&other.attachment, Attachment::Vlan { parent, .. } if *parent == interface.name);
        self.interfaces.iter().filter(is_on_it).map(|vlan| vlan.mtu).fold(interface.mtu, u16::max)
    }
}

#[cfg(test)]
mod tests;
