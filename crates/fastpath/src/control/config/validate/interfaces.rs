//! The interfaces of a configuration: entries enter; interfaces leave, with a note of what one cannot be or
//! have by itself, or beside the others.

use std::collections::{HashMap, HashSet};

use toml::Spanned;
use wire::{MacAddress, vlan};

use super::bridges::numbers;
use super::{is_misread, is_name, known, may_be_a_host, unicast};
use crate::control::config::document::{InterfaceEntry, Problems};
use crate::control::config::{Attachment, Device, Filters, Interface, IpPrefix, Role};
use crate::dataplane::counters::INTERFACES;
use crate::subnet::Subnet;

/// Bytes that a packet may have, where nothing is said.
const MTU: u16 = 1500;
/// RFC 791: every module must forward 68 bytes. The most is what jumbo frames hold.
const MTUS: std::ops::RangeInclusive<u32> = 68..=9216;
/// The longest name of an interface in the kernel.
const MAX_TAP: usize = 15;

/// The interfaces of a configuration.
pub(super) struct Interfaces {
    pub all: Vec<Interface>,
    /// The names of those that were not understood.
    pub misread: HashSet<String>,
}

/// What an interface and a VLAN have in common.
struct Common<'a> {
    mtu: Option<&'a Spanned<u32>>,
    up: Option<bool>,
    tap: Option<&'a Spanned<bool>>,
    addresses: &'a [Spanned<String>],
    bridge: Option<&'a Spanned<String>>,
    cross_connect: Option<&'a Spanned<String>>,
    access_list_in: Option<&'a Spanned<String>>,
    access_list_out: Option<&'a Spanned<String>>,
}

/// That of either's entry. A struct within both entries would need serde's `flatten`, which lets unknown fields
/// pass; so each has these fields of its own, and this is for both.
macro_rules! common {
    ($entry:expr) => {
        Common {
            mtu: $entry.mtu.as_ref(),
            up: $entry.up,
            tap: $entry.tap.as_ref(),
            addresses: &$entry.addresses,
            bridge: $entry.bridge.as_ref(),
            cross_connect: $entry.cross_connect.as_ref(),
            access_list_in: $entry.access_list_in.as_ref(),
            access_list_out: $entry.access_list_out.as_ref(),
        }
    };
}

impl Interfaces {
    /// Those of `entries`; `lists` are the names of access lists.
    pub fn read(
        entries: &[InterfaceEntry],
        misread: HashSet<String>,
        lists: &HashSet<String>,
        problems: &mut Problems,
    ) -> Self {
        let mut read = Self { all: Vec::new(), misread };
        let bridges = numbers(entries);
        let mut checks = Checks { bridges: &bridges, lists, networks: Vec::new(), connects: Vec::new() };
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
        if let Some(reason) = device.as_ref().and_then(|device| self.taken(device)) {
            problems.add(entry.device.span().start, reason);
        }
        let common = common!(entry);
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
            let common = common!(entry);
            let attachment = Attachment::Vlan { parent: name.clone(), id };
            let full = format!("{name}.{id}");
            if self.all.iter().any(|other| other.name == full) {
                problems.add(entry.id.span().start, format!("{name} has two VLANs {id}: keep one"));
                continue;
            }
            self.all.push(checks.common(&full, &attachment, mac, &common, mtu, problems));
        }
    }

    /// Why a device cannot have what it names.
    fn taken(&self, device: &Device) -> Option<String> {
        device.claims().into_iter().find_map(|claim| {
            let has = |other: &&Interface| matches!(&other.attachment, Attachment::Device(other) if other.claims().contains(&claim));
            let name = &self.all.iter().find(has)?.name;
            Some(format!("{name} has {claim} already: give each device one of its own"))
        })
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
    /// The names of access lists.
    lists: &'a HashSet<String>,
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
        let mut list = |written| self.access_list(name, written, &role, problems);
        let filters = Filters { input: list(common.access_list_in), output: list(common.access_list_out) };
        let (name, attachment) = (name.to_owned(), attachment.clone());
        let up = common.up.unwrap_or(true);
        Interface { name, attachment, mac, mtu, up, tap, rss: false, addresses, role, filters }
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

    /// The name of an access list, if there is one and the interface can have it.
    fn access_list(
        &self,
        name: &str,
        written: Option<&Spanned<String>>,
        role: &Role,
        problems: &mut Problems,
    ) -> Option<String> {
        let (at, list) = (written?.span().start, written?.get_ref());
        if *role != Role::Router {
            let reason =
                format!("{name} does not route, so it takes no access list: leave that or its role out");
            problems.add(at, reason);
        }
        if !self.lists.contains(list) {
            let reason = format!(
                "there is no access list '{list}': write [[access-list]] with name = \"{list}\" and its rules"
            );
            problems.add(at, reason);
        }
        Some(list.clone())
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
pub(crate) fn mtu(written: &Spanned<u32>, problems: &mut Problems) -> u16 {
    let number = *written.get_ref();
    if !MTUS.contains(&number) {
        let reason = format!("an MTU of {number}: write {} to {}", MTUS.start(), MTUS.end());
        problems.add(written.span().start, reason);
    }
    u16::try_from(number).unwrap_or(MTU)
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
