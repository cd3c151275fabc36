//! fastpath, our own router: a program. In the lab it forwards between `dut0` and `dut1` by AF_XDP, where who
//! opened the lab starts it; here are the two interfaces made ready for it.

use lab::{Addressing, Result, Running, Site};

use super::spec::Parameters;
use super::user_space::{ROUTER_OR_CABLE, router_or_cable};
use super::{Description, Device, Kind, SpecError};

pub(super) const KIND: Kind = Kind {
    description: Description {
        name: "fastpath",
        summary: "our own vector router, by AF_XDP, or between two ports in shared memory (--engine memif)",
        parameters: &[ROUTER_OR_CABLE],
    },
    parse,
};

#[derive(Debug)]
struct Fastpath {
    addressing: Addressing,
}

fn parse(parameters: &Parameters) -> Result<Box<dyn Device>, SpecError> {
    Ok(Box::new(Fastpath { addressing: router_or_cable(parameters)? }))
}

impl Device for Fastpath {
    fn addressing(&self) -> Addressing {
        self.addressing
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
