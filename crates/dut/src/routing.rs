//! Makes a bare namespace a router: forwarding, addresses, routes and static neighbours, as in
//! the review that Linerate reproduces ("Notes on Linux").

use lab::netlink::Netlink;
use lab::settings;
use lab::{Result, SIDES, Side, Site};

pub(super) fn configure(site: &Site) -> Result<()> {
    site.namespace.netlink(|netlink| {
        settings::set("ipv4/ip_forward", "1")?;
        settings::set("ipv6/conf/all/forwarding", "1")?;
        for (interface, side) in site.interfaces.iter().zip(SIDES) {
            settings::set(&format!("ipv6/conf/{}/disable_ipv6", interface.name), "0")?;
            for (address, prefix) in side.interface_addresses.into_iter().zip(side.prefixes) {
                netlink.add_address(interface.index, address, prefix)?;
            }
            reach(netlink, interface.index, side)?;
        }
        Ok(())
    })
}

/// The way to the tester's port, and to the networks beyond it.
fn reach(netlink: &Netlink, interface: u32, side: Side) -> Result<()> {
    for address in side.port_addresses {
        netlink.add_neighbour(interface, address, side.port_mac)?;
        let beyond = side.networks.into_iter().filter(|(to, _)| to.is_ipv4() == address.is_ipv4());
        for (network, prefix) in beyond {
            netlink.add_route(network, prefix, address)?;
        }
    }
    Ok(())
}
