//! fastpath, our own router: a program. In the lab it forwards between `dut0` and `dut1` by AF_XDP, where who
//! opened the lab starts it; here are the two interfaces made ready for it.

use lab::{Addressing, Queues, Result, Running, Site, Workers};

use super::spec::Parameters;
use super::user_space::{ROUTER_OR_CABLE, router_or_cable};
use super::workers::{self, CORES, QUEUES, RSS, WORKERS};
use super::{Description, Device, Kind, Parameter, SpecError};

pub(super) const KIND: Kind = Kind {
    description: Description {
        name: "fastpath",
        summary: "our own vector router, by AF_XDP, or between two ports in shared memory (--engine memif)",
        parameters: &[ROUTER_OR_CABLE, ACL, WORKERS, CORES, QUEUES, RSS],
    },
    parse,
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
    workers: Workers,
    queues: u32,
}

fn parse(parameters: &Parameters) -> Result<Box<dyn Device>, SpecError> {
    let addressing = router_or_cable(parameters)?;
    rules(parameters, addressing == Addressing::Device)?;
    let workers = workers::read(parameters)?;
    let queues = parameters.get(QUEUES.key, |text| text.parse().ok())?.unwrap_or(1);
    Ok(Box::new(Fastpath { addressing, workers, queues }))
}

/// The rules that do not match of its access list, if it has one, which only a router can have.
fn rules(parameters: &Parameters, routes: bool) -> Result<Option<usize>, SpecError> {
    parameters.get(ACL.key, |text| text.parse().ok().filter(|rules| routes && *rules <= MOST_RULES))
}

impl Device for Fastpath {
    fn addressing(&self) -> Addressing {
        self.addressing
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
