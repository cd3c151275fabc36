//! The access list of a router that is a program: how many rules are wanted enters; the hosts that they deny leave, and
//! what the last rule does.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use lab::Result;

use super::spec::Parameters;
use super::{Parameter, SpecError, firewall};

/// The parameter that gives a router an access list.
pub(crate) const ACL: Parameter = Parameter {
    key: "acl",
    values: "a number of rules up to 4999, where it routes",
    meaning: "rules of an access list at both interfaces that deny sources that no profile has, as many of IPv4 as of IPv6, before one that permits all (default no list)",
};
/// The parameter that has the list keep states.
pub(crate) const STATES: Parameter = Parameter {
    key: "states",
    values: "on or off, where it routes",
    meaning: "whether the last rule keeps a state of each flow, up to a million (default off)",
};
/// How many flows it knows where it keeps states: as many as the profile with the most has, and some.
pub(crate) const MOST_STATES: u32 = 1 << 20;
/// The most rules of a list for each IP version, but for the last one.
const MOST_RULES: usize = (fastpath::acl::RULES - 1) / 2;

/// What the parameters of a device say, of which only a router can have a list.
///
/// # Errors
/// The key whose value is none for it.
pub(crate) fn read(parameters: &Parameters, is_router: bool) -> Result<Option<Rules>, SpecError> {
    let rules = Rules::of(parameters.values()).map_err(|key| parameters.wrong_value(key))?;
    match rules {
        Some(rules) if !is_router => {
            Err(parameters.wrong_value(if rules.keeps_states { STATES.key } else { ACL.key }))
        }
        rules => Ok(rules),
    }
}

/// Its access list, which each packet is held against once.
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

    /// The sources that its first rules deny: those of the kernel's firewalls.
    pub(crate) fn denied(self) -> impl Iterator<Item = IpAddr> {
        let both = |at| [firewall::source_v4(at).into(), firewall::source_v6(at).into()];
        (0..self.denying).flat_map(both)
    }

    /// Which packets are held against it at the interface at the tester's port `number`: those that come `in` there, or go
    /// `out`. States are an interface's, so that both directions of a flow need one place: port 1, as if the Internet were there.
    pub(crate) fn held_against(self, number: usize) -> &'static [&'static str] {
        match (self.keeps_states, number) {
            (false, _) => &["in"],
            (true, 1) => &["in", "out"],
            (true, _) => &[],
        }
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
