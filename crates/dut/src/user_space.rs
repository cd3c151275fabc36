//! Devices that forward between ports of user space, so interfaces of the lab are no place for them: testpmd
//! and VPP. Who sends in user space starts them, with what is parsed here.

use std::net::IpAddr;

use lab::{Addressing, Error, Result, Running, Site, Workers};

use super::access_list::{self, ACL, STATES};
use super::routes::{self, ROUTES};
use super::spec::Parameters;
use super::workers::{self, CORES, QUEUES, RSS, WORKERS};
use super::{Description, Device, Kind, Parameter, SpecError, firewall};

pub(super) const TESTPMD: Kind = Kind {
    description: Description {
        name: "testpmd",
        summary: "DPDK's testpmd between two ports in shared memory (--engine memif)",
        parameters: &[Parameter {
            key: "mode",
            values: "io or macswap",
            meaning: "send frames on as they are, or with their addresses swapped (default io)",
        }],
    },
    parse: |parameters| {
        mode(parameters, &["io", "macswap"])?;
        let workers = Workers::default();
        Ok(Box::new(Elsewhere { name: "testpmd", addressing: Addressing::OtherPort, workers, denying: 0 }))
    },
};

pub(super) const VPP: Kind = Kind {
    description: Description {
        name: "vpp",
        summary: "VPP between two ports in shared memory, where it is installed (--engine memif)",
        parameters: &[MODE, ROUTES, ACL, STATES, WORKERS, CORES, QUEUES, RSS],
    },
    parse: |parameters| {
        let addressing = addressing(mode(parameters, &["router", "xconnect"])?);
        let is_router = addressing == Addressing::Device;
        routes::read(parameters, is_router)?;
        let rules = access_list::read(parameters, is_router)?;
        let mut workers = workers::read(parameters)?;
        // Its main thread forwards only where it is alone.
        workers.beside = usize::from(workers.count > 1);
        let denying = rules.map_or(0, |rules| rules.denying);
        Ok(Box::new(Elsewhere { name: "vpp", addressing, workers, denying }))
    },
};

/// What VPP does.
const MODE: Parameter = Parameter {
    key: "mode",
    values: "router or xconnect",
    meaning: "route IPv4 and IPv6, or connect the two ports as a cable would (default router)",
};

/// Where frames are addressed to of a device in a mode: to a router, or through what only carries them.
pub(super) fn addressing(mode: Option<&str>) -> Addressing {
    if mode.is_none_or(|mode| mode == "router") { Addressing::Device } else { Addressing::OtherPort }
}

/// The mode that is asked for, one of `modes`.
pub(super) fn mode(
    parameters: &Parameters,
    modes: &[&'static str],
) -> Result<Option<&'static str>, SpecError> {
    parameters.get("mode", |wanted| modes.iter().copied().find(|mode| *mode == wanted))
}

#[derive(Debug)]
struct Elsewhere {
    name: &'static str,
    addressing: Addressing,
    workers: Workers,
    /// Rules that deny a source each.
    denying: usize,
}

impl Device for Elsewhere {
    fn denied(&self) -> Vec<IpAddr> {
        firewall::last_sources(self.denying)
    }

    fn addressing(&self) -> Addressing {
        self.addressing
    }

    fn workers(&self) -> Workers {
        self.workers.clone()
    }

    fn start(&self, _: &Site) -> Result<Running> {
        Err(Error::Engine { device: self.name, engine: "memif" })
    }
}
