//! fastpath, our own router: a program. In the lab it forwards between `dut0` and `dut1` by AF_XDP, where who
//! opened the lab starts it; here are the two interfaces made ready for it.

use lab::{Addressing, Result, Running, Site};
use wire::vlan;

use super::routes::{self, ROUTES};
use super::spec::Parameters;
use super::user_space::{addressing, mode};
use super::{Description, Device, Kind, Parameter, SpecError};

pub(super) const KIND: Kind = Kind {
    description: Description {
        name: "fastpath",
        summary: "our own vector router, by AF_XDP, or between two ports in shared memory (--engine memif)",
        parameters: &[MODE, VLAN, ROUTES, ACL],
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

/// The parameter that gives it an access list.
const ACL: Parameter = Parameter {
    key: "acl",
    values: "a number of rules up to 9999, where it routes",
    meaning: "rules of an access list at both interfaces that match nothing, before one that permits all (default no list)",
};
/// The most rules of a list, but for the last one.
const MOST_RULES: usize = fastpath::acl::RULES - 1;

#[derive(Debug)]
struct Fastpath {
    addressing: Addressing,
}

fn parse(parameters: &Parameters) -> Result<Box<dyn Device>, SpecError> {
    let addressing = addressing(mode(parameters, &["router", "bridge", "xconnect"])?);
    let is_router = addressing == Addressing::Device;
    parameters.get(VLAN.key, |text| text.parse::<u16>().ok().filter(|id| (1..=vlan::MAX_ID).contains(id)))?;
    parameters
        .get(ACL.key, |text| text.parse::<usize>().ok().filter(|rules| is_router && *rules <= MOST_RULES))?;
    routes::read(parameters, is_router)?;
    Ok(Box::new(Fastpath { addressing }))
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
