//! Route netlink without an async surface: links, addresses, routes and neighbours enter as
//! plain values; what the kernel holds of them leaves the same way.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

use futures_util::StreamExt;
use netlink_packet_route::link::{
    BridgeStpState, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, LinkXdp,
    MacVlanMode, XdpAttached,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{RouteMessage, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use rtnetlink::{
    AddressMessageBuilder, Handle, LinkBridge, LinkMacVlan, LinkMessageBuilder, LinkUnspec, LinkVlan,
    RouteMessageBuilder,
};
use tokio::runtime::{Builder, Runtime};
use wire::MacAddress;

use crate::error::{Error, Needs, Result};

mod route;

pub use route::{Route, TABLE_MAIN};

const CREATE: u16 = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;

/// A connection to the network namespace it was opened in.
#[derive(Debug)]
pub struct Netlink {
    runtime: Runtime,
    handle: Handle,
}

/// One end of a veth pair to be made.
#[derive(Debug)]
pub struct VethEnd<'a> {
    /// What it will be called.
    pub name: &'a str,
    /// Its index in its namespace.
    pub index: u32,
    /// Its MAC address.
    pub mac: MacAddress,
    /// Its MTU, in bytes.
    pub mtu: u32,
    /// Queues that it receives by, each of which one core at a time serves.
    pub receive_queues: u32,
}

/// What the kernel says of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its index in its namespace.
    pub index: u32,
    /// What it is called.
    pub name: String,
    /// Its MAC address.
    pub mac: MacAddress,
    /// Its MTU, in bytes.
    pub mtu: u32,
    /// Whether it is up.
    pub up: bool,
    /// Whether the other end is there too.
    pub carrier: bool,
    /// Ethernet or not (a tunnel, the loopback).
    pub ethernet: bool,
    /// What it is, if it is no hardware: `veth`, `bridge`, …
    pub kind: Option<String>,
    /// The bridge or bond it belongs to.
    pub controller: Option<u32>,
    /// The interface that it is a VLAN (or the like) of.
    pub parent: Option<u32>,
    /// How an XDP program is attached: `native` or `generic`.
    pub xdp: Option<&'static str>,
}

/// An entry of the neighbour table that has a link-layer address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The index of the interface that it is reached by.
    pub interface: u32,
    /// Its IP address.
    pub address: IpAddr,
    /// Its MAC address.
    pub mac: MacAddress,
    /// Whether it never expires.
    pub permanent: bool,
    /// Whether the kernel would use it without asking again.
    pub valid: bool,
}

impl Netlink {
    /// Connects to the network namespace of the calling thread.
    pub fn open() -> Result<Self> {
        let error = |cause| {
            Error::kernel("cannot open a netlink socket", cause, Needs::NetAdmin, "Raise 'ulimit -n'")
        };
        let runtime = Builder::new_current_thread().enable_io().build().map_err(error)?;
        let entered = runtime.enter();
        let (connection, handle, _) = rtnetlink::new_connection().map_err(error)?;
        runtime.spawn(connection);
        drop(entered);
        Ok(Self { runtime, handle })
    }

    /// Creates a veth pair: `ours` here, `theirs` in another namespace. Both ends are down.
    pub fn add_veth(&self, ours: &VethEnd, theirs: &VethEnd, namespace: BorrowedFd) -> Result<()> {
        let mut peer = end(LinkMessageBuilder::<LinkUnspec>::new(), theirs).build();
        peer.attributes.push(LinkAttribute::NetNsFd(namespace.as_raw_fd()));
        let veth = LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(InfoKind::Veth)
            .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)));
        let message = end(veth, ours).build();
        self.change(
            &format!("cannot create the veth pair {}–{}", ours.name, theirs.name),
            RouteNetlinkMessage::NewLink(message),
            CREATE,
        )
    }

    /// Moves an interface into another namespace, where it is down and has no addresses.
    pub fn move_link(&self, index: u32, namespace: BorrowedFd) -> Result<()> {
        let mut message = LinkUnspec::new_with_index(index).build();
        message.attributes.push(LinkAttribute::NetNsFd(namespace.as_raw_fd()));
        self.change(
            &format!("cannot move interface {index} into another namespace"),
            RouteNetlinkMessage::SetLink(message),
            NLM_F_ACK,
        )
    }

    /// Creates a bridge that forwards at once: no spanning tree, no multicast snooping.
    pub fn add_bridge(&self, name: &str, mac: MacAddress, mtu: u32) -> Result<()> {
        let message = LinkMessageBuilder::<LinkBridge>::new(name)
            .stp_state(BridgeStpState::Disabled)
            .forward_delay(0)
            .mcast_snooping(false)
            .mtu(mtu)
            .address(mac.0.to_vec())
            .build();
        self.change(
            &format!("cannot create the bridge {name}"),
            RouteNetlinkMessage::NewLink(message),
            CREATE,
        )
    }

    /// Creates a VLAN interface over `parent`.
    pub fn add_vlan(&self, name: &str, parent: u32, id: u16) -> Result<()> {
        let message = LinkVlan::new(name, parent, id).build();
        self.change(
            &format!("cannot create the VLAN interface {name}"),
            RouteNetlinkMessage::NewLink(message),
            CREATE,
        )
    }

    /// Creates an interface over `parent` in another namespace, which takes the frames that are addressed to it: its name, MAC
    /// address and MTU.
    pub fn add_macvlan(
        &self,
        (name, mac, mtu): (&str, MacAddress, u32),
        parent: u32,
        namespace: BorrowedFd,
    ) -> Result<()> {
        let link = LinkMacVlan::new(name, parent, MacVlanMode::Private);
        self.add_over(link.address(mac.0.to_vec()).mtu(mtu).build(), parent, namespace)
    }

    /// Creates an interface over `parent` in another namespace, which takes all frames of `parent` and has its MAC
    /// address: its name and MTU.
    pub fn add_stand_in(&self, (name, mtu): (&str, u32), parent: u32, namespace: BorrowedFd) -> Result<()> {
        let link = LinkMacVlan::new(name, parent, MacVlanMode::Passthrough);
        self.add_over(link.mtu(mtu).build(), parent, namespace)
    }

    fn add_over(&self, mut message: LinkMessage, parent: u32, namespace: BorrowedFd) -> Result<()> {
        message.attributes.push(LinkAttribute::NetNsFd(namespace.as_raw_fd()));
        self.change(
            &format!("cannot create an interface over interface {parent} in another namespace"),
            RouteNetlinkMessage::NewLink(message),
            CREATE,
        )
    }

    /// Makes `bridge` the controller of `port`.
    pub fn add_bridge_port(&self, bridge: u32, port: u32) -> Result<()> {
        let message = LinkUnspec::new_with_index(port).controller(bridge).build();
        self.change(
            &format!("cannot put interface {port} into the bridge"),
            RouteNetlinkMessage::SetLink(message),
            NLM_F_ACK,
        )
    }

    /// Gives an interface another MAC address.
    pub fn set_mac(&self, index: u32, mac: MacAddress) -> Result<()> {
        let message = LinkUnspec::new_with_index(index).address(mac.0.to_vec()).build();
        self.change(
            &format!("cannot give interface {index} the address {mac}"),
            RouteNetlinkMessage::SetLink(message),
            NLM_F_ACK,
        )
    }

    /// Gives an interface another MTU, in bytes.
    pub fn set_mtu(&self, index: u32, mtu: u32) -> Result<()> {
        let message = LinkUnspec::new_with_index(index).mtu(mtu).build();
        self.change(
            &format!("cannot give interface {index} the MTU {mtu}"),
            RouteNetlinkMessage::SetLink(message),
            NLM_F_ACK,
        )
    }

    /// Sets an interface up.
    pub fn set_up(&self, index: u32) -> Result<()> {
        let message = LinkUnspec::new_with_index(index).up().build();
        self.change(
            &format!("cannot set interface {index} up"),
            RouteNetlinkMessage::SetLink(message),
            NLM_F_ACK,
        )
    }

    /// Sets an interface down. The kernel forgets its routes, neighbours and IPv6 addresses.
    pub fn set_down(&self, index: u32) -> Result<()> {
        let message = LinkUnspec::new_with_index(index).down().build();
        self.change(
            &format!("cannot set interface {index} down"),
            RouteNetlinkMessage::SetLink(message),
            NLM_F_ACK,
        )
    }

    /// Gives an interface an address and the prefix it is reached by.
    pub fn add_address(&self, index: u32, address: IpAddr, prefix: u8) -> Result<()> {
        let message = match address {
            IpAddr::V4(v4) => {
                AddressMessageBuilder::<Ipv4Addr>::new().index(index).address(v4, prefix).build()
            }
            IpAddr::V6(v6) => {
                AddressMessageBuilder::<Ipv6Addr>::new().index(index).address(v6, prefix).build()
            }
        };
        self.change(
            &format!("cannot add the address {address}/{prefix}"),
            RouteNetlinkMessage::NewAddress(message),
            CREATE,
        )
    }

    /// Adds a route through a gateway to the main table.
    pub fn add_route(&self, destination: IpAddr, prefix: u8, gateway: IpAddr) -> Result<()> {
        let what = format!("cannot add the route {destination}/{prefix} via {gateway}");
        let message = RouteMessageBuilder::<IpAddr>::new()
            .destination_prefix(destination, prefix)
            .and_then(|route| route.gateway(gateway))
            .map_err(|error| Error::Unexpected(format!("{what}: {error}")))?
            .build();
        self.change(&what, RouteNetlinkMessage::NewRoute(message), CREATE)
    }

    /// Adds a neighbour that never expires.
    pub fn add_neighbour(&self, index: u32, address: IpAddr, mac: MacAddress) -> Result<()> {
        let mut message = NeighbourMessage::default();
        let (family, destination) = match address {
            IpAddr::V4(v4) => (AddressFamily::Inet, NeighbourAddress::Inet(v4)),
            IpAddr::V6(v6) => (AddressFamily::Inet6, NeighbourAddress::Inet6(v6)),
        };
        message.header.family = family;
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.header.kind = RouteType::Unspec;
        message.attributes = vec![
            NeighbourAttribute::Destination(destination),
            NeighbourAttribute::LinkLayerAddress(mac.0.to_vec()),
        ];
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
        self.change(
            &format!("cannot add the neighbour {address} at {mac}"),
            RouteNetlinkMessage::NewNeighbour(message),
            flags,
        )
    }

    /// Tells the bridge of port `index` that `mac` is behind it.
    pub fn add_forwarding_entry(&self, index: u32, mac: MacAddress) -> Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Bridge;
        message.header.ifindex = index;
        message.header.state = NeighbourState::Noarp;
        message.header.kind = RouteType::Unspec;
        message.header.flags = NeighbourFlags::Controller;
        message.attributes = vec![NeighbourAttribute::LinkLayerAddress(mac.0.to_vec())];
        self.change(
            &format!("cannot add {mac} to the bridge's forwarding table"),
            RouteNetlinkMessage::NewNeighbour(message),
            CREATE,
        )
    }

    /// The interface called `name`, if there is one.
    pub fn link(&self, name: &str) -> Result<Option<Link>> {
        Ok(self.links()?.into_iter().find(|link| link.name == name))
    }

    /// The interface called `name`.
    pub fn expect_link(&self, name: &str) -> Result<Link> {
        self.link(name)?.ok_or_else(|| Error::Unexpected(format!("the interface {name} has disappeared")))
    }

    /// Every interface of the namespace.
    pub fn links(&self) -> Result<Vec<Link>> {
        let answers =
            self.dump("cannot list the interfaces", RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
        Ok(answers
            .iter()
            .filter_map(|answer| match answer {
                RouteNetlinkMessage::NewLink(message) => Some(parse_link(message)),
                _ => None,
            })
            .collect())
    }

    /// The unicast routes of the main table.
    pub fn routes(&self) -> Result<Vec<Route>> {
        Ok(self.route_messages()?.iter().filter_map(Route::of).collect())
    }

    /// All routes, as the kernel tells them.
    pub(crate) fn route_messages(&self) -> Result<Vec<RouteMessage>> {
        let mut routes = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RouteMessage::default();
            message.header.address_family = family;
            for answer in self.dump("cannot list the routes", RouteNetlinkMessage::GetRoute(message))? {
                if let RouteNetlinkMessage::NewRoute(route) = answer {
                    routes.push(route);
                }
            }
        }
        Ok(routes)
    }

    /// The interface that the kernel would send to `address` by.
    pub fn interface_towards(&self, address: IpAddr) -> Result<Option<u32>> {
        let full = if address.is_ipv4() { 32 } else { 128 };
        let what = format!("cannot look up the route to {address}");
        let message = RouteMessageBuilder::<IpAddr>::new()
            .destination_prefix(address, full)
            .map_err(|error| Error::Unexpected(format!("{what}: {error}")))?
            .build();
        let answers = self.request(&what, RouteNetlinkMessage::GetRoute(message), 0);
        Ok(answers?.iter().find_map(|answer| match answer {
            RouteNetlinkMessage::NewRoute(route) => route::interfaces(route).first().copied(),
            _ => None,
        }))
    }

    /// The neighbours whose link-layer address is known.
    pub fn neighbours(&self) -> Result<Vec<Neighbour>> {
        let message = RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default());
        let answers = self.dump("cannot list the neighbours", message)?;
        Ok(answers
            .iter()
            .filter_map(|answer| match answer {
                RouteNetlinkMessage::NewNeighbour(message) => parse_neighbour(message),
                _ => None,
            })
            .collect())
    }

    pub(crate) fn change(&self, what: &str, message: RouteNetlinkMessage, flags: u16) -> Result<()> {
        self.request(what, message, flags).map(drop)
    }

    pub(crate) fn dump(&self, what: &str, message: RouteNetlinkMessage) -> Result<Vec<RouteNetlinkMessage>> {
        self.request(what, message, NLM_F_DUMP)
    }

    /// Sends one request and collects its answers.
    fn request(
        &self,
        what: &str,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<Vec<RouteNetlinkMessage>> {
        let mut message = NetlinkMessage::from(message);
        message.header.flags = NLM_F_REQUEST | flags;
        let mut handle = self.handle.clone();
        self.runtime.block_on(async move {
            let mut answers =
                handle.request(message).map_err(|error| Error::Unexpected(format!("{what}: {error}")))?;
            let mut collected = Vec::new();
            while let Some(answer) = answers.next().await {
                match answer.payload {
                    NetlinkPayload::InnerMessage(inner) => collected.push(inner),
                    NetlinkPayload::Error(error) if error.code.is_some() => {
                        return Err(Error::kernel(
                            what,
                            error.to_io(),
                            Needs::NetAdmin,
                            "'linerate doctor' shows what this kernel lacks",
                        ));
                    }
                    _ => {}
                }
            }
            Ok(collected)
        })
    }
}

/// The attributes of one end of a veth. It sends by one queue: a frame of another would take the same one
/// at the other end, which may have no such.
fn end<T>(builder: LinkMessageBuilder<T>, end: &VethEnd) -> LinkMessageBuilder<T> {
    builder
        .index(end.index)
        .name(end.name)
        .address(end.mac.0.to_vec())
        .mtu(end.mtu)
        .append_extra_attribute(LinkAttribute::NumTxQueues(1))
        .append_extra_attribute(LinkAttribute::NumRxQueues(end.receive_queues))
}

fn parse_link(message: &LinkMessage) -> Link {
    // A veth's other end may be in another namespace, where the same index means another link.
    let has_parent_elsewhere =
        message.attributes.iter().any(|attribute| matches!(attribute, LinkAttribute::LinkNetNsId(_)));
    let mut link = Link {
        index: message.header.index,
        up: message.header.flags.contains(LinkFlags::Up),
        carrier: message.header.flags.contains(LinkFlags::LowerUp),
        ethernet: u16::from(message.header.link_layer_type) == nix::libc::ARPHRD_ETHER,
        ..Link::default()
    };
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name.clone_from(name),
            LinkAttribute::Mtu(mtu) => link.mtu = *mtu,
            LinkAttribute::Address(bytes) => link.mac = parse_mac(bytes).unwrap_or_default(),
            LinkAttribute::LinkInfo(infos) => link.kind = parse_kind(infos),
            LinkAttribute::Controller(index) => link.controller = Some(*index),
            LinkAttribute::Link(index) if !has_parent_elsewhere => link.parent = Some(*index),
            LinkAttribute::Xdp(xdp) => link.xdp = parse_xdp(xdp),
            _ => {}
        }
    }
    link
}

fn parse_kind(infos: &[LinkInfo]) -> Option<String> {
    infos.iter().find_map(|info| match info {
        LinkInfo::Kind(kind) => Some(kind.to_string()),
        _ => None,
    })
}

fn parse_xdp(attributes: &[LinkXdp]) -> Option<&'static str> {
    attributes.iter().find_map(|attribute| match attribute {
        LinkXdp::Attached(XdpAttached::Driver) => Some("native"),
        LinkXdp::Attached(XdpAttached::SocketBuffer) => Some("generic"),
        LinkXdp::Attached(XdpAttached::Hardware) => Some("offloaded"),
        LinkXdp::Attached(XdpAttached::Multiple) => Some("several"),
        _ => None,
    })
}

fn parse_neighbour(message: &NeighbourMessage) -> Option<Neighbour> {
    let address = message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(v4)) => Some(IpAddr::from(*v4)),
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(v6)) => Some(IpAddr::from(*v6)),
        _ => None,
    })?;
    let mac = message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(bytes) => parse_mac(bytes),
        _ => None,
    })?;
    let state = message.header.state;
    Some(Neighbour {
        interface: message.header.ifindex,
        address,
        mac,
        permanent: state == NeighbourState::Permanent,
        valid: matches!(
            state,
            NeighbourState::Permanent
                | NeighbourState::Reachable
                | NeighbourState::Stale
                | NeighbourState::Delay
                | NeighbourState::Probe
        ),
    })
}

fn parse_mac(bytes: &[u8]) -> Option<MacAddress> {
    bytes.try_into().ok().map(MacAddress)
}
