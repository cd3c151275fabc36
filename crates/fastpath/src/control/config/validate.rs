//! What was read becomes what the router is to be: entries enter; the configuration leaves, with a note
//! of everything that contradicts itself or cannot be.

mod access_lists;
mod bridges;
mod interfaces;
mod routes;
mod states;

use std::collections::{BTreeMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use toml::Spanned;
use wire::MacAddress;

use super::document::{Document, Problems, WorkersEntry};
use super::{Config, Interface, Role, SOCKET, Workers};

pub(crate) use self::access_lists::protocol_name;
use self::interfaces::Interfaces;
pub(super) use self::interfaces::mtu;
pub(super) use self::routes::{Own, neighbours, route, via};

/// More threads than any machine should give to one router.
const MAX_WORKERS: usize = 64;
/// The longest name of a file that a socket can have.
const MAX_SOCKET: usize = 107;

/// The configuration, which is one if there are no problems.
pub(super) fn config(document: Document, problems: &mut Problems) -> Config {
    let socket = socket(&document, problems);
    if !document.names_workers {
        problems.add(document.end, "no core is named for the workers: write [workers] and cores = [1]");
    }
    let workers = document.workers.as_ref().map(|entry| workers(entry, problems)).unwrap_or_default();
    let misread = document.misread.clone();
    let interfaces = Interfaces::read(&document.interfaces, misread, &document.named_lists, problems);
    let routes_from_kernel = routes_from_kernel(&document, &interfaces, problems);
    let mut config = Config {
        socket,
        workers,
        routes_from_kernel,
        metrics: metrics(&document, problems),
        interfaces: interfaces.all,
        bridges: bridges::bridges(&document, problems),
        access_lists: access_lists::access_lists(&document.access_lists, problems),
        states: states::settings(document.states.as_ref(), problems),
        routes_file: routes_file(&document, problems),
        routes: Arc::default(),
        neighbours: BTreeMap::new(),
    };
    states::check_workers(&config, &document.access_lists, problems);
    let names = Names(&config.interfaces, &interfaces.misread);
    let routes = routes::routes(&document.routes, &names, problems);
    let neighbours = neighbours(&document.neighbours, &names, problems);
    config.routes = Arc::new(routes);
    config.neighbours = neighbours;
    config
}

fn socket(document: &Document, problems: &mut Problems) -> PathBuf {
    let Some(entry) = &document.control else { return SOCKET.into() };
    let text = entry.socket.get_ref();
    let is_named = text.strip_prefix('@').is_some_and(|name| !name.is_empty());
    if !(text.starts_with('/') || is_named) || text.len() > MAX_SOCKET || text.contains('\0') {
        let reason = format!(
            "'{text}' is no socket: write a path from / on, or @ and a name, of {MAX_SOCKET} bytes at most"
        );
        problems.add(entry.socket.span().start, reason);
    }
    text.into()
}

fn workers(entry: &WorkersEntry, problems: &mut Problems) -> Workers {
    let mut cores = Vec::new();
    for core in entry.cores.get_ref() {
        if cores.contains(core.get_ref()) {
            problems.add(core.span().start, format!("core {} is there twice: keep one", core.get_ref()));
        }
        cores.push(*core.get_ref());
    }
    if cores.is_empty() || cores.len() > MAX_WORKERS {
        let reason = format!("{} workers: name 1 to {MAX_WORKERS} cores", cores.len());
        problems.add(entry.cores.span().start, reason);
    }
    Workers { cores, idle: entry.idle, precedence: entry.precedence }
}

fn routes_from_kernel(document: &Document, interfaces: &Interfaces, problems: &mut Problems) -> bool {
    let Some(written) = &document.routes_from_kernel else { return false };
    let may_have_taps = !interfaces.misread.is_empty() || interfaces.all.iter().any(|one| one.tap);
    if *written.get_ref() && !may_have_taps {
        let reason = "no interface has a tap, so that no route of the kernel leads anywhere: write tap = true \
                      at those that it is to route by, or leave routes-from-kernel out";
        problems.add(written.span().start, reason);
    }
    *written.get_ref()
}

fn routes_file(document: &Document, problems: &mut Problems) -> Option<PathBuf> {
    let written = document.routes_file.as_ref()?;
    let text = written.get_ref();
    if text.is_empty() || text.contains('\0') {
        problems.add(written.span().start, "no name of a file: write one like \"table.txt\"");
    }
    Some(text.into())
}

fn metrics(document: &Document, problems: &mut Problems) -> Option<SocketAddr> {
    let written = document.metrics.as_ref()?;
    let text = written.get_ref();
    let address = text.parse().map_err(|_| {
        format!("'{text}' is no address for metrics: write an IP address and a port, like 127.0.0.1:9482")
    });
    problems.check(written.span().start, address)
}

fn is_name(text: &str) -> bool {
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=32).contains(&text.len()) && text.bytes().all(sound)
}

fn may_be_a_host(address: IpAddr) -> bool {
    let reserved =
        matches!(address, IpAddr::V4(address) if address.octets()[0] == 0 || address.octets()[0] >= 240);
    !(address.is_unspecified() || address.is_loopback() || address.is_multicast() || reserved)
}

/// The MAC address of one station.
fn unicast(written: &Spanned<String>, problems: &mut Problems) -> Option<MacAddress> {
    let at = written.span().start;
    let mac: MacAddress = problems.check(at, written.get_ref().parse())?;
    if mac.0[0] & 1 == 1 || mac == MacAddress::default() {
        problems
            .add(at, format!("{mac} is no station's address: write one whose first byte is even, like 02"));
        return None;
    }
    Some(mac)
}

/// Whether an interface, or the one whose VLAN it is, was not understood.
fn is_misread(misread: &HashSet<String>, name: &str) -> bool {
    misread.contains(name.split_once('.').map_or(name, |(parent, _)| parent))
}

fn known(interfaces: &[Interface]) -> String {
    let names: Vec<&str> = interfaces.iter().map(|interface| interface.name.as_str()).collect();
    if names.is_empty() { "there are none".into() } else { format!("there are {}", names.join(", ")) }
}

/// The interfaces that others name, and the names of those that were not understood.
pub(super) struct Names<'a>(pub &'a [Interface], pub &'a HashSet<String>);

impl Names<'_> {
    /// The interface of this name.
    pub fn any(&self, written: &Spanned<String>, problems: &mut Problems) -> Option<&Interface> {
        let (at, name) = (written.span().start, written.get_ref());
        let found = self.0.iter().find(|interface| interface.name == *name);
        if found.is_none() && !is_misread(self.1, name) {
            problems.add(at, format!("there is no interface '{name}': {}", known(self.0)));
        }
        found
    }

    /// The interface of this name, if it routes.
    pub fn router(&self, written: &Spanned<String>, problems: &mut Problems) -> Option<&Interface> {
        let found = self.any(written, problems)?;
        if found.role != Role::Router {
            let reason =
                format!("{} does not route: name another interface, or leave its role out", found.name);
            problems.add(written.span().start, reason);
            return None;
        }
        Some(found)
    }

    /// The interface in whose network an address is.
    pub fn of_address(&self, address: IpAddr) -> Option<&Interface> {
        let on_subnet =
            |interface: &&Interface| interface.addresses.iter().any(|subnet| subnet.contains(address));
        self.0.iter().find(on_subnet)
    }
}
