//! Several routers side by side: the device's two interfaces enter; network namespaces leave, each a router with an interface
//! of its own at either (macvlan), as the jails of a multi-tenant router have them.
//!
//! Frames are told apart by their destination's MAC address. The first tenant has the device's own, so that a tester
//! sees one router; the others have those that follow [`FIRST`].

use lab::netlink::Netlink;
use lab::{Namespace, Result, SIDES, Site, bring_up, plan, quiet_namespace};
use wire::MacAddress;

use super::routing;
use super::spec::Parameters;
use super::{Parameter, SpecError};

/// As many as there are addresses.
const MOST: u8 = 200;
/// What the second tenant's addresses end in, less one.
const FIRST: u8 = 16;

pub(super) const JAILS: Parameter = Parameter {
    key: "jails",
    values: "a number from 1 to 200, and only beside gro, queues and cores",
    meaning: "namespaces that route side by side, with MAC addresses of their own: the device's, and those from 02:4c:6e:72:01:11 and 02:4c:6e:72:02:11 on (default none)",
};

/// How many tenants `parameters` ask for of a router that may have some.
pub(super) fn read(parameters: &Parameters, may: bool) -> Result<Option<u8>, SpecError> {
    parameters.get(JAILS.key, |text| text.parse().ok().filter(|count| may && (1..=MOST).contains(count)))
}

/// Builds so many tenants at the interfaces of `site`. They are gone when they are dropped.
pub(super) fn start(site: &Site, count: u8) -> Result<Vec<Namespace>> {
    site.namespace.netlink(|netlink| {
        // What is addressed to an interface itself does not reach those on it.
        let others = site.indexes().into_iter().zip([1, 2]).map(|(index, link)| (index, plan::mac(link, 3)));
        others.into_iter().try_for_each(|(index, mac)| netlink.set_mac(index, mac))
    })?;
    (0..count).map(|number| tenant(site, number)).collect()
}

fn tenant(site: &Site, number: u8) -> Result<Namespace> {
    let tenant = quiet_namespace("1")?;
    site.namespace.netlink(|netlink| add_interfaces(netlink, site, number, &tenant))?;
    let interfaces = bring_up(&tenant, SIDES.map(|side| side.interface))?;
    routing::configure(&Site { namespace: &tenant, interfaces: &interfaces, core: site.core })?;
    Ok(tenant)
}

fn add_interfaces(netlink: &Netlink, site: &Site, number: u8, tenant: &Namespace) -> Result<()> {
    for ((interface, side), link) in site.interfaces.iter().zip(SIDES).zip([1, 2]) {
        let mac: MacAddress = match number {
            0 => side.interface_mac,
            number => plan::mac(link, FIRST + number),
        };
        netlink.add_macvlan((side.interface, mac, interface.mtu), interface.index, tenant.fd())?;
    }
    Ok(())
}
