//! The Linux kernel as a bridge.

use lab::{Addressing, Queues, Result, Running, SIDES, Site, pass};
use wire::MacAddress;

use super::linux_router::GRO;
use super::queues::{self, CORES, QUEUES};
use super::spec::Parameters;
use super::{Description, Device, Kind, SpecError};

pub(super) const KIND: Kind = Kind {
    description: Description {
        name: "linux-bridge",
        summary: "the Linux kernel bridging, both ports' addresses known",
        parameters: &[GRO, QUEUES, CORES],
    },
    parse,
};

/// The bridge itself, which nobody talks to.
const NAME: &str = "bridge";
const MAC: MacAddress = MacAddress([0x02, b'L', b'n', b'r', 0, 1]);

#[derive(Debug)]
struct LinuxBridge {
    gro: bool,
    queues: Queues,
}

fn parse(parameters: &Parameters) -> Result<Box<dyn Device>, SpecError> {
    Ok(Box::new(LinuxBridge { gro: parameters.switch("gro", true)?, queues: queues::read(parameters)? }))
}

impl Device for LinuxBridge {
    fn addressing(&self) -> Addressing {
        Addressing::OtherPort
    }

    fn gro(&self) -> bool {
        self.gro
    }

    fn queues(&self) -> Queues {
        self.queues.clone()
    }

    fn start(&self, site: &Site) -> Result<Running> {
        let mtu = site.interfaces[0].mtu;
        site.namespace.netlink(|netlink| {
            netlink.add_bridge(NAME, MAC, mtu)?;
            let bridge = netlink.expect_link(NAME)?.index;
            for (interface, side) in site.interfaces.iter().zip(SIDES) {
                netlink.add_bridge_port(bridge, interface.index)?;
                // A port that only receives is never learned, and frames to it would be flooded
                // to the bridge itself too: that is another test than forwarding.
                netlink.add_forwarding_entry(interface.index, side.port_mac)?;
            }
            netlink.set_up(bridge)
        })?;
        if self.gro { Ok(Running::default()) } else { pass::start(site) }
    }
}
