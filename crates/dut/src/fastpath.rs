//! fastpath, our own router: a program. In the lab it forwards between `dut0` and `dut1` by AF_XDP, where who
//! opened the lab starts it; here are the two interfaces made ready for it, and its parameters read.

use std::collections::BTreeMap;
use std::net::IpAddr;

use lab::{Addressing, Queues, Result, Running, Site, Workers};
use wire::vlan;

use super::access_list::{self, ACL, STATES};
use super::routes::{self, ROUTES};
use super::spec::Parameters;
use super::user_space::{addressing, mode};
use super::workers::{self, CORES, QUEUES, RSS, WORKERS};
use super::{Description, Device, Kind, Parameter, SpecError, firewall};

pub(super) const KIND: Kind = Kind {
    description: Description {
        name: "fastpath",
        summary: "our own vector router, by AF_XDP, or between two ports in shared memory (--engine memif)",
        parameters: &[MODE, VLAN, ROUTES, ACL, STATES, WORKERS, CORES, QUEUES, RSS, SHORTCUTS],
    },
    parse,
};

const MODE: Parameter = Parameter {
    key: "mode",
    values: "router, bridge or xconnect",
    meaning: "route IPv4 and IPv6, learn where stations are and bridge, or connect the two ports as a cable would (default router)",
};

/// The parameter that has it do so in a VLAN of both ports.
const VLAN: Parameter = Parameter {
    key: "vlan",
    values: "1 to 4094",
    meaning: "the tag that frames have at both ports, as with --vlan (default none)",
};

/// The parameter that has the kernel forward what needs no worker.
const SHORTCUTS: Parameter = Parameter {
    key: "shortcuts",
    values: "on or off; on goes with none of vlan, acl and another mode than router",
    meaning: "whether the kernel forwards packets to known destinations by itself, in XDP (default off)",
};

/// Whether the `parameters` of a device, which were read before, have the kernel do so.
pub(crate) fn has_shortcuts(parameters: &BTreeMap<String, String>) -> bool {
    parameters.get(SHORTCUTS.key).is_some_and(|text| text == "on")
}

#[derive(Debug)]
struct Fastpath {
    addressing: Addressing,
    workers: Workers,
    queues: u32,
    /// Rules that deny a source each.
    denying: usize,
}

fn parse(parameters: &Parameters) -> Result<Box<dyn Device>, SpecError> {
    let addressing = addressing(mode(parameters, &["router", "bridge", "xconnect"])?);
    let is_router = addressing == Addressing::Device;
    let id = |text: &str| text.parse::<u16>().ok().filter(|id| (1..=vlan::MAX_ID).contains(id));
    let vlan = parameters.get(VLAN.key, id)?;
    let rules = access_list::read(parameters, is_router)?;
    routes::read(parameters, is_router)?;
    let workers = workers::read(parameters)?;
    // Workers have to look at all packets then.
    if parameters.switch(SHORTCUTS.key, false)? && (!is_router || vlan.is_some() || rules.is_some()) {
        return Err(parameters.wrong_value(SHORTCUTS.key));
    }
    let queues = parameters.get(QUEUES.key, |text| text.parse().ok())?.unwrap_or(1);
    let denying = rules.map_or(0, |rules| rules.denying);
    Ok(Box::new(Fastpath { addressing, workers, queues, denying }))
}

impl Device for Fastpath {
    fn addressing(&self) -> Addressing {
        self.addressing
    }

    fn denied(&self) -> Vec<IpAddr> {
        firewall::last_sources(self.denying)
    }

    fn queues(&self) -> Queues {
        Queues { count: self.queues, cores: Vec::new() }
    }

    fn workers(&self) -> Workers {
        self.workers.clone()
    }

    /// A veth has NAPI with GRO or with an XDP program, and the router attaches its own only later. What it
    /// takes by AF_XDP is never merged.
    fn gro(&self) -> bool {
        true
    }

    fn start(&self, _: &Site) -> Result<Running> {
        Ok(Running::default())
    }
}
