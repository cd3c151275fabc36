//! Which cores a run is on: the target enters, a placement leaves.

use anyhow::Result;
use hardware::System;
use lab::Placement;
use lab::placement::Wishes;
use wording::usage::misuse;

use crate::target::{Place, Target};

/// Places what sends and receives, and the device where Linerate starts it.
pub fn choose(target: &Target) -> Result<Placement> {
    let wishes = Wishes {
        workers: 0,
        generate: target.cores.clone(),
        receive: target.receive_cores.clone().unwrap_or_default(),
        dut: target.dut_core,
        dut_workers: target.place.dut_workers(),
        node: node(&System::here(), &target.place),
    };
    let host = lab::placement::host().map_err(lab::Error::from)?;
    Placement::choose(&host, &wishes).map_err(|error| misuse(error.to_string()))
}

/// The NUMA node of both ports; none where they have no card, or are on two.
fn node(system: &System, place: &Place) -> Option<usize> {
    let [zero, one] = match place {
        Place::Ports(ports) => ports.names.each_ref().map(|name| system.card(name).node),
        Place::Named(named) => named.ports.each_ref().map(|port| system.node_of_pci(port)),
        Place::Lab(_) | Place::Started(_) | Place::Testers(_) => return None,
    };
    zero.filter(|node| one == Some(*node))
}
