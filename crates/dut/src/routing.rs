//! Makes a bare namespace a router: forwarding, addresses, routes and static neighbours, as in
//! the review that Linerate reproduces ("Notes on Linux"), and a table of routes like the Internet's.

use std::io;
use std::process::Command;
use std::time::Duration;

use lab::netlink::Netlink;
use lab::settings;
use lab::{Error, Result, SIDES, Side, Site};

use super::routes;

/// How long the kernel may take for a million routes, on a machine that others share.
const PATIENCE: Duration = Duration::from_secs(120);
/// The most bytes that `ip` prints.
const MOST: u64 = 1 << 20;

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

/// Gives a configured router a table of `count` routes to the tester's port 1, behind which their gateways are.
pub(super) fn load(site: &Site, count: usize) -> Result<()> {
    let [_, side] = SIDES;
    let interface = &site.interfaces[1];
    site.namespace.netlink(|netlink| {
        let mut gateways = (0..routes::GATEWAYS).map(|number| routes::gateway(side, number));
        gateways.try_for_each(|gateway| netlink.add_neighbour(interface.index, gateway, side.port_mac))
    })?;
    let text = routes::text(count, side, |route, gateway| {
        format!("route add {}/{} via {gateway} dev {}", route.network, route.length, interface.name)
    });
    let mut command = Command::new("ip");
    command.args(["-batch", "-"]);
    site.namespace.contain(&mut command)?;
    let refused = |cause: String| Error::Kernel {
        what: format!("cannot give the device {count} routes"),
        cause: io::Error::other(cause),
        remedy: "Is iproute2 installed, and is there memory for them?".to_owned(),
    };
    let answer = programs::bounded::run("ip -batch", command, text.as_bytes(), PATIENCE, MOST);
    let answer = answer.map_err(|error| refused(format!("{error:#}")))?;
    if answer.status.success() { Ok(()) } else { Err(refused(answer.complaints.trim().replace('\n', "; "))) }
}
