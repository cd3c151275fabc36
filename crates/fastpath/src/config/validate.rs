//! What was read becomes what the router is to be: entries enter; the configuration leaves, with a note
//! of everything that contradicts itself or cannot be.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::path::PathBuf;

use toml::Spanned;
use wire::{MacAddress, vlan};

use super::document::{
    Document, HopEntry, InterfaceEntry, NeighbourEntry, Problems, RouteEntry, WorkersEntry,
};
use super::{Attachment, Config, Device, Hop, Interface, IpPrefix, Role, Route, SOCKET, Workers};
use crate::counters::INTERFACES;
use crate::subnet::Subnet;

/// Bytes that a packet may have, where nothing is said.
const MTU: u16 = 1500;
/// RFC 791: every module must forward 68 bytes. The most is what jumbo frames hold.
const MTUS: std::ops::RangeInclusive<u32> = 68..=9216;
/// More threads than any machine should give to one router.
const MAX_WORKERS: usize = 64;
/// The longest name of a file that a socket can have.
const MAX_SOCKET: usize = 107;
/// The longest name of an interface in the kernel.
const MAX_TAP: usize = 15;
/// The most that the weights of a route's hops may add up to.
const MAX_WEIGHT: u32 = 256;

/// The configuration, which is one if there are no problems.
pub(super) fn config(document: Document, problems: &mut Problems) -> Config {
    let socket = socket(&document, problems);
    if !document.names_workers {
        problems.add(document.end, "no core is named for the workers: write [workers] and cores = [1]");
    }
    let workers = document.workers.as_ref().map(|entry| workers(entry, problems)).unwrap_or_default();
    let misread = document.misread.clone();
    let interfaces = Interfaces::read(&document.interfaces, misread, problems);
    let routes_from_kernel = routes_from_kernel(&document, &interfaces, problems);
    let mut config = Config {
        socket,
        workers,
        routes_from_kernel,
        interfaces: interfaces.all,
        routes: BTreeMap::new(),
        neighbours: BTreeMap::new(),
    };
    let names = Names(&config.interfaces, &interfaces.misread);
    let routes = routes(&document.routes, &names, problems);
    let neighbours = neighbours(&document.neighbours, &names, problems);
    config.routes = routes;
    config.neighbours = neighbours;
    config
}

fn socket(document: &Document, problems: &mut Problems) -> PathBuf {
    let Some(entry) = &document.control else { return SOCKET.into() };
    let text = entry.socket.get_ref();
    if !text.starts_with('/') || text.len() > MAX_SOCKET || text.contains('\0') {
        let reason = format!(
            "'{text}' is no file for a socket: write a path from / on, of {MAX_SOCKET} bytes at most"
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

/// The interfaces of a configuration.
struct Interfaces {
    all: Vec<Interface>,
    /// The names of those that were not understood.
    misread: HashSet<String>,
}

/// What an interface and a VLAN have in common.
struct Common<'a> {
    mtu: Option<&'a Spanned<u32>>,
    up: Option<bool>,
    tap: Option<&'a Spanned<bool>>,
    addresses: &'a [Spanned<String>],
    bridge: Option<&'a Spanned<String>>,
    cross_connect: Option<&'a Spanned<String>>,
}

impl Interfaces {
    fn read(entries: &[InterfaceEntry], misread: HashSet<String>, problems: &mut Problems) -> Self {
        let mut read = Self { all: Vec::new(), misread };
        let bridges = bridges(entries);
        let mut checks = Checks { bridges: &bridges, networks: Vec::new(), connects: Vec::new() };
        for entry in entries {
            read.interface(entry, &mut checks, problems);
        }
        if read.all.len() > INTERFACES {
            let reason = format!("{} interfaces: a router has at most {INTERFACES}", read.all.len());
            problems.add(entries.last().map_or(0, |entry| entry.name.span().start), reason);
        }
        for (at, from, to) in checks.connects {
            read.check_cross_connect(at, &from, &to, problems);
        }
        read
    }

    fn interface(&mut self, entry: &InterfaceEntry, checks: &mut Checks, problems: &mut Problems) {
        let name = entry.name.get_ref();
        let at = entry.name.span().start;
        if !is_name(name) {
            let reason = format!(
                "'{name}' is no name for an interface: write up to 32 letters, digits, - and _, like lan"
            );
            problems.add(at, reason);
        }
        if self.all.iter().any(|other| other.name == *name) || self.misread.contains(name) {
            problems.add(at, format!("there are two interfaces '{name}': give each a name of its own"));
            return;
        }
        let device = problems.check(entry.device.span().start, entry.device.get_ref().parse::<Device>());
        let mac = mac(entry, problems);
        if let Some(reason) = device.as_ref().and_then(|device| self.socket_taken(device)) {
            problems.add(entry.device.span().start, reason);
        }
        let common = Common {
            mtu: entry.mtu.as_ref(),
            up: entry.up,
            tap: entry.tap.as_ref(),
            addresses: &entry.addresses,
            bridge: entry.bridge.as_ref(),
            cross_connect: entry.cross_connect.as_ref(),
        };
        let (Some(device), Some(mac)) = (device, mac) else {
            self.misread.insert(name.clone());
            return;
        };
        let mut parent = checks.common(name, &Attachment::Device(device), mac, &common, MTU, problems);
        parent.rss = entry.rss;
        let mtu = parent.mtu;
        self.all.push(parent);
        for entry in &entry.vlan {
            let id = *entry.id.get_ref();
            let most = vlan::MAX_ID;
            let Some(id) = u16::try_from(id).ok().filter(|id| (1..=most).contains(id)) else {
                problems.add(entry.id.span().start, format!("VLAN {id}: write one of 1 to {most}"));
                continue;
            };
            let common = Common {
                mtu: entry.mtu.as_ref(),
                up: entry.up,
                tap: entry.tap.as_ref(),
                addresses: &entry.addresses,
                bridge: entry.bridge.as_ref(),
                cross_connect: entry.cross_connect.as_ref(),
            };
            let attachment = Attachment::Vlan { parent: name.clone(), id };
            let full = format!("{name}.{id}");
            if self.all.iter().any(|other| other.name == full) {
                problems.add(entry.id.span().start, format!("{name} has two VLANs {id}: keep one"));
                continue;
            }
            self.all.push(checks.common(&full, &attachment, mac, &common, mtu, problems));
        }
    }

    /// Why a device cannot have the socket that it names.
    fn socket_taken(&self, device: &Device) -> Option<String> {
        let socket = device.socket()?;
        let has = |other: &&Interface| matches!(&other.attachment, Attachment::Device(other) if other.socket() == Some(socket));
        let name = &self.all.iter().find(has)?.name;
        Some(format!("{name} has the socket {socket} already: give each device one of its own"))
    }

    /// Whether a cross connect leads to another interface that takes frames.
    fn check_cross_connect(&self, at: usize, from: &str, to: &str, problems: &mut Problems) {
        let reason = match self.all.iter().find(|other| other.name == to) {
            Some(_) if from == to => {
                format!("{from} cannot be its own cross connect: name another interface")
            }
            Some(other) if matches!(other.role, Role::Bridge(_)) => {
                format!(
                    "{to} is a port of a bridge: connect {from} with another interface, or leave its bridge out"
                )
            }
            Some(_) => return,
            None if is_misread(&self.misread, to) => return,
            None => format!("there is no interface '{to}': {}", known(&self.all)),
        };
        problems.add(at, reason);
    }
}

/// What is noted of one interface to be compared with the others.
struct Checks<'a> {
    bridges: &'a HashMap<String, u16>,
    networks: Vec<(IpPrefix, String)>,
    /// Place, from, to.
    connects: Vec<(usize, String, String)>,
}

impl Checks<'_> {
    fn common(
        &mut self,
        name: &str,
        attachment: &Attachment,
        mac: MacAddress,
        common: &Common,
        mtu: u16,
        problems: &mut Problems,
    ) -> Interface {
        let mtu = common.mtu.map_or(mtu, |written| self::mtu(written, problems));
        let role = self.role(name, common, problems);
        if let (true, Some(first)) = (role != Role::Router, common.addresses.first()) {
            let reason =
                format!("{name} does not route, so it takes no addresses: leave them or its role out");
            problems.add(first.span().start, reason);
        }
        let addresses =
            common.addresses.iter().filter_map(|written| self.address(name, written, problems)).collect();
        let tap = tap(name, common, &role, problems);
        let (name, attachment) = (name.to_owned(), attachment.clone());
        let up = common.up.unwrap_or(true);
        Interface { name, attachment, mac, mtu, up, tap, rss: false, addresses, role }
    }

    fn role(&mut self, name: &str, common: &Common, problems: &mut Problems) -> Role {
        match (common.bridge, common.cross_connect) {
            (None, None) => Role::Router,
            (Some(_), Some(connect)) => {
                let reason =
                    format!("{name} is a port of a bridge and has a cross connect: leave one of them out");
                problems.add(connect.span().start, reason);
                Role::Router
            }
            (Some(bridge), None) => {
                let text = bridge.get_ref();
                if !is_name(text) {
                    let reason = format!("'{text}' is no name for a bridge: write letters, digits, - and _");
                    problems.add(bridge.span().start, reason);
                }
                Role::Bridge(self.bridges.get(text).copied().unwrap_or_default())
            }
            (None, Some(other)) => {
                self.connects.push((other.span().start, name.to_owned(), other.get_ref().clone()));
                Role::CrossConnect(other.get_ref().clone())
            }
        }
    }

    fn address(&mut self, name: &str, written: &Spanned<String>, problems: &mut Problems) -> Option<Subnet> {
        let at = written.span().start;
        let subnet: Subnet = problems.check(at, written.get_ref().parse())?;
        let address = subnet.address;
        if !may_be_a_host(address) || !subnet.is_host(address) {
            problems.add(at, format!("no interface can have the address {subnet}: write one of a host"));
            return None;
        }
        let network = problems.check(at, IpPrefix::of(subnet))?;
        let is_within = |other: &IpPrefix| network.holds(other.address()) || other.holds(network.address());
        if let Some((other, of)) = self.networks.iter().find(|(other, _)| is_within(other)) {
            // Several addresses of one network at one interface are usual.
            if of != name || *other != network {
                let reason =
                    format!("{subnet} overlaps with {other} of {of}: give each a network of its own");
                problems.add(at, reason);
                return None;
            }
        }
        self.networks.push((network, name.to_owned()));
        Some(subnet)
    }
}

/// Whether an interface has a tap, and can have one.
fn tap(name: &str, common: &Common, role: &Role, problems: &mut Problems) -> bool {
    let Some(written) = common.tap.filter(|written| *written.get_ref()) else { return false };
    let at = written.span().start;
    if *role != Role::Router {
        problems.add(at, format!("{name} does not route, so it takes no tap: leave that or its role out"));
    }
    if name.len() > MAX_TAP {
        let reason = format!("the kernel cannot have an interface '{name}': give it {MAX_TAP} bytes at most");
        problems.add(at, reason);
    }
    true
}

/// An MTU, if it is one.
pub(super) fn mtu(written: &Spanned<u32>, problems: &mut Problems) -> u16 {
    let number = *written.get_ref();
    if !MTUS.contains(&number) {
        let reason = format!("an MTU of {number}: write {} to {}", MTUS.start(), MTUS.end());
        problems.add(written.span().start, reason);
    }
    u16::try_from(number).unwrap_or(MTU)
}

/// The numbers of bridges, by their names.
fn bridges(entries: &[InterfaceEntry]) -> HashMap<String, u16> {
    let of_vlans = entries.iter().flat_map(|entry| &entry.vlan).filter_map(|vlan| vlan.bridge.as_ref());
    let of_devices = entries.iter().filter_map(|entry| entry.bridge.as_ref());
    let names: BTreeSet<&String> = of_devices.chain(of_vlans).map(Spanned::get_ref).collect();
    names.into_iter().cloned().zip(0..).collect()
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

/// The address of an interface: as written, or one that follows from its name and device.
fn mac(entry: &InterfaceEntry, problems: &mut Problems) -> Option<MacAddress> {
    match &entry.mac {
        Some(written) => unicast(written, problems),
        None => {
            let text = format!("{} {}", entry.name.get_ref(), entry.device.get_ref());
            // FNV-1a: Fowler, Noll and Vo. The first byte says: locally administered.
            let hash = text
                .bytes()
                .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
            let [a, b, c, d] = hash.to_be_bytes();
            Some(MacAddress([0x02, 0xfe, a, b, c, d]))
        }
    }
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
    fn router(&self, written: &Spanned<String>, problems: &mut Problems) -> Option<&Interface> {
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
    fn of_address(&self, address: IpAddr) -> Option<&Interface> {
        let on_subnet =
            |interface: &&Interface| interface.addresses.iter().any(|subnet| subnet.contains(address));
        self.0.iter().find(on_subnet)
    }
}

pub(super) fn routes(
    entries: &[RouteEntry],
    names: &Names,
    problems: &mut Problems,
) -> BTreeMap<IpPrefix, Route> {
    let mut read = BTreeMap::new();
    for entry in entries {
        let Some((prefix, route)) = route(entry, names, problems) else { continue };
        if let Some(reason) = own_route(prefix, names) {
            problems.add(entry.prefix.span().start, reason);
        }
        if read.insert(prefix, route).is_some() {
            let reason = format!("there are two routes of {prefix}: keep one, with several hops if need be");
            problems.add(entry.prefix.span().start, reason);
        }
    }
    read
}

/// Why a prefix can have no route but the one that every router gives it.
fn own_route(prefix: IpPrefix, names: &Names) -> Option<String> {
    let is_network = |subnet: &Subnet| IpPrefix::of(*subnet).is_ok_and(|network| network == prefix);
    let of = names.0.iter().find(|interface| interface.addresses.iter().any(is_network));
    if let Some(interface) = of {
        return Some(format!(
            "{prefix} is the network of {}: its route follows from the address",
            interface.name
        ));
    }
    let discarded = ["0.0.0.0/8", "127.0.0.0/8", "240.0.0.0/4", "224.0.0.0/4", "fe80::/10", "ff00::/8"];
    let is_discarded = discarded.contains(&prefix.to_string().as_str());
    is_discarded.then(|| format!("{prefix} is what nobody may send to by a router: leave its route out"))
}

fn route(entry: &RouteEntry, names: &Names, problems: &mut Problems) -> Option<(IpPrefix, Route)> {
    let at = entry.prefix.span().start;
    let prefix: Option<IpPrefix> = problems.check(at, entry.prefix.get_ref().parse());
    let route = match (&entry.via, entry.drop) {
        (None, true) => Some(Route::Drop),
        (Some(hops), false) if !hops.is_empty() => {
            let is_ip4 = prefix.map(|prefix| matches!(prefix, IpPrefix::Ip4(_)));
            let weights: u32 = hops
                .iter()
                .map(|hop| hop.weight.as_ref().map_or(1, |weight| *weight.get_ref()))
                .fold(0, u32::saturating_add);
            if weights > MAX_WEIGHT {
                problems
                    .add(at, format!("weights of {weights} in all: let them add up to {MAX_WEIGHT} at most"));
            }
            let read: Vec<_> = hops.iter().map(|hop| self::hop(hop, is_ip4, names, problems)).collect();
            read.into_iter().collect::<Option<Vec<_>>>().map(Route::Via)
        }
        _ => {
            let reason = "a route needs either via = [{ gateway = \"10.0.0.2\" }] or drop = true";
            problems.add(at, reason);
            None
        }
    };
    Some((prefix?, route?))
}

fn hop(entry: &HopEntry, is_ip4: Option<bool>, names: &Names, problems: &mut Problems) -> Option<Hop> {
    let at = entry.gateway.span().start;
    let text = entry.gateway.get_ref();
    let gateway: Option<IpAddr> = problems.check(
        at,
        text.parse().map_err(|_| format!("'{text}' is no address: write one like 10.0.0.2 or 2001:db8::2")),
    );
    let weight = entry.weight.as_ref().map_or(1, |weight| *weight.get_ref());
    if weight == 0 {
        problems.add(
            entry.weight.as_ref().map_or(at, |weight| weight.span().start),
            "a weight of 0: write 1 or more, or leave the hop out",
        );
    }
    let gateway = gateway?;
    if !may_be_a_host(gateway) {
        problems.add(
            at,
            format!("{gateway} is no host's address, so no gateway: write one that a neighbour has"),
        );
    }
    if is_ip4.is_some_and(|is_ip4| is_ip4 != gateway.is_ipv4()) {
        problems
            .add(at, format!("{gateway} is of another version of IP than the prefix: write one of the same"));
    }
    let interface = match &entry.interface {
        Some(written) => names.router(written, problems),
        None => {
            let found = names.of_address(gateway);
            if found.is_none() {
                let reason =
                    format!("{gateway} is in no interface's network: write interface = \"…\" beside it");
                problems.add(at, reason);
            }
            found
        }
    };
    Some(Hop { gateway, interface: interface?.name.clone(), weight: u16::try_from(weight).ok()? })
}

pub(super) fn neighbours(
    entries: &[NeighbourEntry],
    names: &Names,
    problems: &mut Problems,
) -> BTreeMap<(String, IpAddr), MacAddress> {
    let mut read = BTreeMap::new();
    for entry in entries {
        let at = entry.address.span().start;
        let text = entry.address.get_ref();
        let address = text
            .parse()
            .map_err(|_| format!("'{text}' is no address: write one like 10.0.0.2 or 2001:db8::2"));
        let address: Option<IpAddr> = problems.check(at, address);
        let interface = names.router(&entry.interface, problems);
        let mac = unicast(&entry.mac, problems);
        let (Some(address), Some(interface), Some(mac)) = (address, interface, mac) else { continue };
        if !may_be_a_host(address) {
            problems.add(at, format!("{address} is no host's address: write one that a neighbour has"));
        }
        if read.insert((interface.name.clone(), address), mac).is_some() {
            let reason = format!("{address} at {} is there twice: keep one", interface.name);
            problems.add(at, reason);
        }
    }
    read
}
