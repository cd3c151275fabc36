//! Makes a bare namespace a router: forwarding, addresses, routes and static neighbours, as in
//! the review that Linerate reproduces ("Notes on Linux").

use super::Site;
use crate::error::Result;
use crate::plan::SIDES;
use crate::settings;

pub(super) fn configure(site: &Site) -> Result<()> {
    site.namespace.netlink(|netlink| {
        settings::set("ipv4/ip_forward", "1")?;
        settings::set("ipv6/conf/all/forwarding", "1")?;
        for (interface, side) in site.interfaces.iter().zip(SIDES) {
            settings::set(&format!("ipv6/conf/{}/disable_ipv6", interface.name), "0")?;
            for (address, prefix) in side.interface_addresses.into_iter().zip(side.prefixes) {
                netlink.add_address(interface.index, address, prefix)?;
            }
            for (address, (network, prefix)) in side.port_addresses.into_iter().zip(side.networks) {
                netlink.add_neighbour(interface.index, address, side.port_mac)?;
                netlink.add_route(network, prefix, address)?;
            }
        }
        Ok(())
    })
}
