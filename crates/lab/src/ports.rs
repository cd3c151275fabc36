//! Two real interfaces with a device in between that is not ours: their names enter, two ports
//! leave, checked to be safe to send on, with the address that their frames go to.

use std::collections::BTreeSet;
use std::net::IpAddr;

use genetlink::ethtool::{self, Ethtool};
use nix::net::if_::if_nametoindex;
use wire::MacAddress;

use crate::error::{PortsError, Result};
use crate::interface_counters::{self, InterfaceCounters};
use crate::namespace::on_own_thread;
use crate::neighbour;
use crate::netlink::{Link, Netlink, Route};
use crate::session;

/// A tester's interface.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its index in its network namespace.
    pub ifindex: u32,
    /// Its own address.
    pub mac: MacAddress,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Its speed in bits a second, where the kernel says so.
    pub speed_bps: Option<f64>,
    /// Its driver, where the kernel says so.
    pub driver: Option<String>,
    /// Where frames that leave by it are addressed to.
    pub next_hop_mac: MacAddress,
}

/// Two interfaces of the calling thread's network namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct RealPorts {
    ports: [Port; 2],
}

impl RealPorts {
    /// What the kernel counted at them. To be called in the network namespace they are in.
    ///
    /// # Errors
    /// [`crate::Error`], when one of them is gone.
    pub fn interface_counters(&self) -> Result<Vec<InterfaceCounters>> {
        let [zero, one] = &self.ports;
        Ok(interface_counters::read([&zero.name, &one.name])?.into())
    }

    /// Checks the interfaces `names` and finds out where frames are addressed to: to the MAC
    /// address of `gateways`, asked for by the kernel (ARP, neighbour discovery), or to the
    /// other port for a device that carries frames unchanged.
    ///
    /// Interfaces that carry a default route or this login are refused unless `force` is 2 or
    /// more.
    ///
    /// # Errors
    /// [`PortsError`], or [`crate::Error::Kernel`] without the capabilities.
    pub fn open(names: [&str; 2], gateways: [Option<IpAddr>; 2], force: u8) -> Result<Self> {
        // A netlink session has a runtime of its own, which must not meet the caller's.
        on_own_thread(|| {
            let netlink = Netlink::open()?;
            let links = netlink.links()?;
            let [zero, one] = names.map(|name| usable(&links, name));
            let (zero, one) = (zero?, one?);
            if zero.index == one.index {
                return Err(PortsError::Same(zero.name.clone()).into());
            }
            refuse_what_is_in_use(&netlink, &links, &[zero, one], force)?;
            let next_hop = |link: &Link, gateway: Option<IpAddr>, other: &Link| match gateway {
                Some(gateway) => neighbour::resolve(&netlink, link, gateway),
                None => Ok(other.mac),
            };
            Ok(Self {
                ports: [
                    describe(zero, next_hop(zero, gateways[0], one)?),
                    describe(one, next_hop(one, gateways[1], zero)?),
                ],
            })
        })
    }

    /// The ports.
    #[must_use]
    pub fn ports(&self) -> &[Port; 2] {
        &self.ports
    }
}

/// Where frames that leave by a single port are addressed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To this address.
    Mac(MacAddress),
    /// To this neighbour, whose MAC address the kernel finds out.
    Gateway(IpAddr),
}

/// One interface of the calling thread's network namespace to send on, checked as
/// [`RealPorts::open`] checks two.
///
/// # Errors
/// As [`RealPorts::open`].
pub fn open_port(name: &str, destination: Destination, force: u8) -> Result<Port> {
    on_own_thread(|| {
        let netlink = Netlink::open()?;
        let links = netlink.links()?;
        let link = usable(&links, name)?;
        refuse_what_is_in_use(&netlink, &links, &[link], force)?;
        let mac = match destination {
            Destination::Mac(mac) => mac,
            Destination::Gateway(gateway) => neighbour::resolve(&netlink, link, gateway)?,
        };
        Ok(describe(link, mac))
    })
}

/// Refuses what of `names` are interfaces that this machine needs itself, as [`RealPorts::open`] refuses them.
/// What is no interface of the calling thread's network namespace is left to the code that opens it.
///
/// # Errors
/// [`PortsError::InUse`], or [`crate::Error::Kernel`] when the kernel does not say what there is.
pub fn refuse_names_in_use(names: &[&str], force: u8) -> Result<()> {
    on_own_thread(|| {
        // The kernel finds an interface by its alternative names, too.
        let indexes: Vec<u32> = names.iter().filter_map(|name| if_nametoindex(*name).ok()).collect();
        let netlink = Netlink::open()?;
        let links = netlink.links()?;
        let wanted: Vec<&Link> = links.iter().filter(|link| indexes.contains(&link.index)).collect();
        refuse_what_is_in_use(&netlink, &links, &wanted, force)
    })
}

/// Refuses interfaces that this machine needs itself, unless told twice.
fn refuse_what_is_in_use(netlink: &Netlink, links: &[Link], wanted: &[&Link], force: u8) -> Result<()> {
    if force >= 2 {
        return Ok(());
    }
    let in_use = interfaces_in_use(netlink, links)?;
    wanted.iter().try_for_each(|link| refuse_if_in_use(link, &in_use).map_err(Into::into))
}

/// Looks up in the calling thread's network namespace what else a port is.
pub(crate) fn describe(link: &Link, next_hop_mac: MacAddress) -> Port {
    let speed = Ethtool::open().ok().and_then(|ethtool| ethtool.speed(&link.name).0);
    let driver = ethtool::driver(&link.name).ok().and_then(|driver| driver.name);
    Port {
        name: link.name.clone(),
        ifindex: link.index,
        mac: link.mac,
        mtu: link.mtu,
        speed_bps: speed.map(|megabits| f64::from(megabits) * 1e6),
        driver: driver.or_else(|| link.kind.clone()),
        next_hop_mac,
    }
}

/// The interface called `name`, if frames can be sent on it.
fn usable<'a>(links: &'a [Link], name: &str) -> Result<&'a Link, PortsError> {
    let link = links.iter().find(|link| link.name == name).ok_or_else(|| {
        let known: Vec<&str> =
            links.iter().filter(|link| link.ethernet).map(|link| link.name.as_str()).collect();
        let known = match known.as_slice() {
            [] => "No Ethernet interface is here at all: 'ip link' lists what is".to_owned(),
            names => format!("There are: {}", names.join(", ")),
        };
        PortsError::Missing { name: name.to_owned(), known }
    })?;
    match link {
        Link { ethernet: false, .. } => Err(PortsError::NotEthernet(link.name.clone())),
        Link { up: false, .. } => Err(PortsError::Down(link.name.clone())),
        Link { carrier: false, .. } => Err(PortsError::NoCarrier(link.name.clone())),
        _ => Ok(link),
    }
}

/// What this machine needs an interface for.
struct InUse {
    what: String,
    interfaces: BTreeSet<u32>,
}

fn interfaces_in_use(netlink: &Netlink, links: &[Link]) -> Result<Vec<InUse>> {
    let default = netlink.routes()?.into_iter().filter(Route::is_default);
    // In any table: rules may lead this machine's own connections to another one than the main table.
    let default: Vec<u32> = default.flat_map(|route| route.interfaces).collect();
    let mut in_use =
        vec![InUse { what: "the default route".to_owned(), interfaces: beneath(links, &default) }];
    for peer in session::login_peers() {
        // A peer that cannot be reached is no peer whose connection could be cut.
        if let Ok(Some(interface)) = netlink.interface_towards(peer) {
            let what = format!("the SSH login from {peer}");
            in_use.push(InUse { what, interfaces: beneath(links, &[interface]) });
        }
    }
    Ok(in_use)
}

fn refuse_if_in_use(link: &Link, in_use: &[InUse]) -> Result<(), PortsError> {
    match in_use.iter().find(|use_| use_.interfaces.contains(&link.index)) {
        Some(use_) => Err(PortsError::InUse { name: link.name.clone(), what: use_.what.clone() }),
        None => Ok(()),
    }
}

/// `interfaces`, and all that carry their frames: the ports of a bridge or bond, the parent of
/// a VLAN.
fn beneath(links: &[Link], interfaces: &[u32]) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut open = interfaces.to_vec();
    while let Some(index) = open.pop() {
        if found.insert(index) {
            open.extend(links.iter().filter(|link| link.controller == Some(index)).map(|link| link.index));
            open.extend(links.iter().filter(|link| link.index == index).filter_map(|link| link.parent));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str) -> Link {
        Link { index, name: name.to_owned(), up: true, carrier: true, ethernet: true, ..Link::default() }
    }

    #[test]
    fn an_interface_under_the_default_route_is_in_use() {
        let links = [
            Link { controller: Some(3), ..link(1, "eth0") },
            link(2, "eth1"),
            link(3, "bond0"),
            Link { parent: Some(3), ..link(4, "bond0.100") },
        ];
        assert_eq!(beneath(&links, &[4]), [1, 3, 4].into());
        assert_eq!(beneath(&links, &[2]), [2].into());
        assert_eq!(beneath(&links, &[]), [].into());
        // A veth's parent is its peer, whose parent is the veth: the search ends all the same.
        let pair = [Link { parent: Some(2), ..link(1, "a") }, Link { parent: Some(1), ..link(2, "b") }];
        assert_eq!(beneath(&pair, &[1]), [1, 2].into());
    }

    #[test]
    fn routes_that_share_the_work_of_a_default_route_are_ones() {
        let is_default = |destination: Option<&str>| {
            let destination = destination.map(|text| {
                let (address, prefix) = text.split_once('/').unwrap();
                (address.parse().unwrap(), prefix.parse().unwrap())
            });
            Route { destination, interfaces: vec![1], table: 100 }.is_default()
        };
        assert!([None, Some("0.0.0.0/1"), Some("128.0.0.0/1"), Some("2000::/3")].into_iter().all(is_default));
        assert!(!["16.0.0.0/8", "fc00::/7", "128.0.0.0/2"].into_iter().any(|text| is_default(Some(text))));
    }

    #[test]
    fn an_interface_that_cannot_send_is_refused() {
        let links = [
            link(1, "eth0"),
            Link { up: false, ..link(2, "eth1") },
            Link { carrier: false, ..link(3, "eth2") },
            Link { ethernet: false, ..link(4, "tun0") },
        ];
        assert_eq!(usable(&links, "eth0").unwrap().index, 1);
        let refused = |name| usable(&links, name).unwrap_err().to_string();
        assert_eq!(refused("eth9"), "there is no interface 'eth9'. There are: eth0, eth1, eth2");
        let nothing = usable(&links[3..], "eth9").unwrap_err().to_string();
        assert!(
            nothing.ends_with("'eth9'. No Ethernet interface is here at all: 'ip link' lists what is"),
            "{nothing}"
        );
        assert_eq!(refused("eth1"), "'eth1' is down: set it up ('ip link set eth1 up')");
        assert!(refused("eth2").contains("has no link"));
        assert!(refused("tun0").contains("not an Ethernet"));
    }
}
