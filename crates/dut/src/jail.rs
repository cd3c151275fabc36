//! A router in a jail: the device's two interfaces enter; a network namespace of its own leaves, into which they are moved,
//! as FreeBSD's VNET jails have it, or which is behind them and routes in their place. Containers are joined to the
//! world in this way:
//!
//! ```text
//! device's namespace                     jail
//!   dut0 ── bridge0 ── out0 ─── veth ─── jail0
//!   dut1 ── bridge1 ── out1 ─── veth ─── jail1
//! ```
//!
//! The jail's interfaces have the addresses that the device's would have, so a tester sees no
//! difference. They have no NAPI of their own: what enters the jail is worked on where it came
//! from, on the device's core.

use lab::netlink::{Link, Netlink, VethEnd};
use lab::plan;
use lab::{Namespace, Result, Site};
use lab::{SIDES, Side};
use lab::{bring_up, quiet_namespace};

use super::routing;

/// What joins one of the device's interfaces to the jail.
#[derive(Clone, Copy)]
struct Gate {
    bridge: &'static str,
    outside: &'static str,
    inside: &'static str,
    /// Tells the addresses and indexes of the two gates apart.
    number: u8,
}

const GATES: [Gate; 2] = [
    Gate { bridge: "bridge0", outside: "out0", inside: "jail0", number: 1 },
    Gate { bridge: "bridge1", outside: "out1", inside: "jail1", number: 2 },
];

/// Builds the jail and moves the interfaces at `site` into it, where they are up.
pub(super) fn move_in(site: &Site) -> Result<(Namespace, [Link; 2])> {
    let jail = quiet_namespace("1")?;
    site.namespace.netlink(|netlink| {
        site.indexes().into_iter().try_for_each(|index| netlink.move_link(index, jail.fd()))
    })?;
    let interfaces = bring_up(&jail, SIDES.map(|side| side.interface))?;
    Ok((jail, interfaces))
}

/// Builds the jail and opens it to the interfaces at `site`. It is gone when it is dropped.
pub(super) fn start(site: &Site) -> Result<Namespace> {
    let jail = quiet_namespace("1")?;
    site.namespace.netlink(|netlink| {
        for (gate, (interface, side)) in GATES.iter().zip(site.interfaces.iter().zip(SIDES)) {
            gate.open(netlink, interface, side, &jail)?;
        }
        Ok(())
    })?;
    let interfaces = bring_up(&jail, GATES.map(|gate| gate.inside))?;
    routing::configure(&Site { namespace: &jail, interfaces: &interfaces, core: site.core })?;
    Ok(jail)
}

impl Gate {
    /// Leads what comes in at `interface` into the jail.
    fn open(self, netlink: &Netlink, interface: &Link, side: Side, jail: &Namespace) -> Result<()> {
        let mtu = interface.mtu;
        let mac = |host| plan::mac(self.number, host);
        netlink.add_bridge(self.bridge, mac(4), mtu)?;
        let bridge = netlink.expect_link(self.bridge)?.index;
        let index = |base: u32| base + u32::from(self.number);
        let outside = VethEnd { name: self.outside, index: index(30), mac: mac(5), mtu, receive_queues: 1 };
        let inside =
            VethEnd { name: self.inside, index: index(40), mac: side.interface_mac, mtu, receive_queues: 1 };
        netlink.add_veth(&outside, &inside, jail.fd())?;
        // A bridge keeps what is addressed to one of its own ports.
        netlink.set_mac(interface.index, mac(3))?;
        for (port, behind) in [(interface.index, side.port_mac), (outside.index, inside.mac)] {
            netlink.add_bridge_port(bridge, port)?;
            netlink.add_forwarding_entry(port, behind)?;
        }
        netlink.set_up(outside.index)?;
        netlink.set_up(bridge)
    }
}
