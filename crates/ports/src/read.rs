//! The facts of one interface: its name enters, [`PortFacts`] leave.

use std::fs;

use results::record::{Controller, PortFacts};

use crate::Result;
use crate::ethtool::{self, Questions};
use crate::link::Link;
use crate::virtio;

/// Reads what the kernel and the driver say of the interface `name` in the network namespace of the calling
/// thread. What they do not tell is `None`; `/sys` must show the same namespace for the features of a virtio
/// device to be known. Nothing is changed, and no question waits longer than 5 s.
///
/// # Errors
/// [`crate::Error::Missing`], or [`crate::Error::Kernel`] when the kernel refuses to speak of it at all.
pub fn read(name: &str) -> Result<PortFacts> {
    let link = Link::by_name(name)?;
    let driver = genetlink::ethtool::driver(name).unwrap_or_default();
    let card = hardware::System::here().card(name);
    let mut facts = PortFacts {
        name: link.name,
        driver: driver.name.or(link.kind),
        driver_version: driver.version,
        firmware: driver.firmware,
        bus: driver.bus,
        up: link.up,
        carrier: link.carrier,
        mtu: link.mtu,
        controller: link.controller.map(|index| controller(name, index)),
        xdp_features: ethtool::xdp_features(link.index),
        xdp_program: link.xdp_program,
        virtio: fs::read_to_string(format!("/sys/class/net/{name}/device/features"))
            .ok()
            .and_then(|text| virtio::parse(&text)),
        cores: libbpf_rs::num_possible_cpus().ok().and_then(|cores| u32::try_from(cores).ok()).unwrap_or(1),
        node: card.node,
        interrupts: card.interrupts,
        ..PortFacts::default()
    };
    if let Some(driver) = Questions::open(name) {
        (facts.speed_mbps, facts.full_duplex) = driver.speed();
        facts.offloads = driver.offloads();
        facts.rings = driver.rings();
        facts.queues = driver.queues();
        facts.pause = driver.pause();
    }
    Ok(facts)
}

/// The interface that `name` belongs to; one that is in another namespace is known by its index only.
fn controller(name: &str, index: u32) -> Controller {
    match Link::by_index(name, index) {
        Ok(link) => Controller { name: link.name, kind: link.kind.unwrap_or_else(|| "device".to_owned()) },
        Err(_) => Controller { name: format!("interface {index}"), kind: "device".to_owned() },
    }
}
