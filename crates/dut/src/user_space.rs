//! Devices that forward between ports of user space, so interfaces of the lab are no place for them: testpmd
//! and VPP. Who sends in user space starts them, with what is parsed here.

use lab::{Addressing, Error, Result, Running, Site, Workers};

use super::spec::Parameters;
use super::workers::{self, CORES, QUEUES, RSS, WORKERS};
use super::{Description, Device, Kind, Parameter, SpecError};

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
        parse(parameters, ["io", "macswap"])?;
        let workers = Workers::default();
        Ok(Box::new(Elsewhere { name: "testpmd", addressing: Addressing::OtherPort, workers }))
    },
};

pub(super) const VPP: Kind = Kind {
    description: Description {
        name: "vpp",
        summary: "VPP between two ports in shared memory, where it is installed (--engine memif)",
        parameters: &[ROUTER_OR_CABLE, WORKERS, CORES, QUEUES, RSS],
    },
    parse: |parameters| {
        let (addressing, mut workers) = (router_or_cable(parameters)?, workers::read(parameters)?);
        // Its main thread forwards only where it is alone.
        workers.beside = usize::from(workers.count > 1);
        Ok(Box::new(Elsewhere { name: "vpp", addressing, workers }))
    },
};

/// What a device does that may be a router or a cable.
pub(super) const ROUTER_OR_CABLE: Parameter = Parameter {
    key: "mode",
    values: "router or xconnect",
    meaning: "route IPv4 and IPv6, or connect the two ports as a cable would (default router)",
};

/// Where frames are addressed to of such a device.
pub(super) fn router_or_cable(parameters: &Parameters) -> Result<Addressing, SpecError> {
    Ok(match parse(parameters, ["router", "xconnect"])? {
        Some("xconnect") => Addressing::OtherPort,
        _ => Addressing::Device,
    })
}

/// The mode that is asked for, one of `modes`.
fn parse(parameters: &Parameters, modes: [&'static str; 2]) -> Result<Option<&'static str>, SpecError> {
    parameters.get("mode", |wanted| modes.into_iter().find(|mode| *mode == wanted))
}

#[derive(Debug)]
struct Elsewhere {
    name: &'static str,
    addressing: Addressing,
    workers: Workers,
}

impl Device for Elsewhere {
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
