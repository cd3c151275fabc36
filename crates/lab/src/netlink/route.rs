//! The routes of a network namespace: the kernel's messages enter, routes to others leave.

use std::net::IpAddr;

use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};

/// The table that routes are in where nobody asks for another one.
pub const TABLE_MAIN: u32 = 254;

/// A route to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// `None` for a default route.
    pub destination: Option<(IpAddr, u8)>,
    /// Every interface it leads to.
    pub interfaces: Vec<u32>,
    /// The number of its table.
    pub table: u32,
}

impl Route {
    /// What the kernel tells of a route to others; `None` of one to this machine or to nobody.
    pub(super) fn of(message: &RouteMessage) -> Option<Self> {
        let table = message.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::Table(table) => Some(*table),
            _ => None,
        });
        if message.header.kind != RouteType::Unicast {
            return None;
        }
        let destination = message.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(v4)) => Some(IpAddr::from(*v4)),
            RouteAttribute::Destination(RouteAddress::Inet6(v6)) => Some(IpAddr::from(*v6)),
            _ => None,
        });
        let prefix = message.header.destination_prefix_length;
        Some(Self {
            destination: destination.filter(|_| prefix > 0).map(|address| (address, prefix)),
            interfaces: interfaces(message),
            table: table.unwrap_or(u32::from(message.header.table)),
        })
    }

    /// Whether it is a default route, or one of the few that share its work, as 0.0.0.0/1 and 128.0.0.0/1 or
    /// 2000::/3 do.
    pub fn is_default(&self) -> bool {
        self.destination.is_none_or(|(address, prefix)| prefix <= if address.is_ipv4() { 1 } else { 3 })
    }
}

/// Every interface that a route leads to.
pub(super) fn interfaces(message: &RouteMessage) -> Vec<u32> {
    message
        .attributes
        .iter()
        .flat_map(|attribute| match attribute {
            RouteAttribute::Oif(index) => vec![*index],
            RouteAttribute::MultiPath(hops) => hops.iter().map(|hop| hop.interface_index).collect(),
            _ => Vec::new(),
        })
        .collect()
}
