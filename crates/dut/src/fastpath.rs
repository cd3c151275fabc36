//! fastpath, our own router: a program. In the lab it forwards between `dut0` and `dut1` by AF_XDP, where who
//! opened the lab starts it; here are the two interfaces made ready for it, and its parameters read.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use lab::{Addressing, Queues, Result, Running, Site, Workers};
use wire::vlan;

use super::routes::{self, ROUTES};
use super::spec::Parameters;
use super::user_space::{addressing, mode};
use super::workers::{self, CORES, QUEUES, RSS, WORKERS};
use super::{Description, Device, Kind, Parameter, SpecError, firewall};

pub(super) const KIND: Kind = Kind {
    description: Description {
        name: "fastpath",
        summary: "our own vector router, by AF_XDP, or between two ports in shared memory (--engine memif)",
        parameters: &[MODE, VLAN, ROUTES, ACL, STATES, WORKERS, CORES, QUEUES, RSS],
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
    values: "a number of rules up to 4999, where it routes",
    meaning: "rules of an access list at both interfaces that deny sources that no profile has, as many of IPv4 as of IPv6, before one that permits all (default no list)",
};
/// The parameter that has the list keep states.
const STATES: Parameter = Parameter {
    key: "states",
    values: "on or off, where it routes",
    meaning: "whether the last rule keeps a state of each flow, up to a million (default off)",
};
/// The most rules of a list for each IP version, but for the last one.
const MOST_RULES: usize = (fastpath::acl::RULES - 1) / 2;

/// Its access list, at both interfaces for what arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Rules that deny a source each, of each IP version, before one that permits all.
    pub denying: usize,
    /// Whether that one keeps states.
    pub keeps_states: bool,
}

impl Rules {
    /// What the parameters of the device say; `None` where it has no list.
    ///
    /// # Errors
    /// The key whose value is none for it.
    pub(crate) fn of(values: &BTreeMap<String, String>) -> Result<Option<Self>, &'static str> {
        let denying =
            values.get(ACL.key).map(|text| text.parse::<usize>().ok().filter(|rules| *rules <= MOST_RULES));
        let denying = denying.map(|rules| rules.ok_or(ACL.key)).transpose()?;
        let keeps_states = match values.get(STATES.key).map(String::as_str) {
            Some("on") => true,
            Some("off") | None => false,
            Some(_) => return Err(STATES.key),
        };
        if denying.is_none() && !keeps_states {
            return Ok(None);
        }
        Ok(Some(Self { denying: denying.unwrap_or_default(), keeps_states }))
    }
}

/// Ends the text of rules of which the last one keeps states.
const KEEPING: &str = "+states";

impl fmt::Display for Rules {
    /// What [`FromStr`] reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.denying, if self.keeps_states { KEEPING } else { "" })
    }
}

impl FromStr for Rules {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_suffix(KEEPING);
        Ok(Self { denying: number.unwrap_or(text).parse()?, keeps_states: number.is_some() })
    }
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
    parameters.get(VLAN.key, |text| text.parse::<u16>().ok().filter(|id| (1..=vlan::MAX_ID).contains(id)))?;
    let rules = Rules::of(parameters.values()).map_err(|key| parameters.wrong_value(key))?;
    // Only a router can have a list.
    if let Some(rules) = rules.filter(|_| !is_router) {
        return Err(parameters.wrong_value(if rules.keeps_states { STATES.key } else { ACL.key }));
    }
    routes::read(parameters, is_router)?;
    let workers = workers::read(parameters)?;
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
