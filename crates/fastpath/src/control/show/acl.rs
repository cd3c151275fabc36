//! Access lists: lists, and interfaces as workers see them, enter.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::table::{self, Column};
use crate::control::config::protocol_name;
use crate::dataplane::acl::{self, Action, Addresses, Carried};
use crate::dataplane::forwarding::{Forwarding, Interface};
use crate::fib::{Address, Prefix};

/// Access lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessLists {
    /// By their names.
    pub access_lists: Vec<AccessList>,
}

/// An access list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessList {
    /// Its name.
    pub name: String,
    /// Interfaces whose packets are held against it when they arrive.
    pub input: Vec<String>,
    /// Interfaces whose packets are held against it before they leave.
    pub output: Vec<String>,
    /// Bytes of what it is looked up by.
    pub bytes: usize,
    /// How many rules it has.
    pub total: usize,
    /// The first of them, in their order.
    pub rules: Vec<Rule>,
    /// Packets that no rule matched, which are denied, but for neighbour discovery.
    pub unmatched: u64,
}

/// A rule of an access list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Packets that it matched, and no rule before it; of one that keeps states, all packets of the flows that it let begin.
    pub packets: u64,
    /// `permit`, `keep-state` or `deny`.
    pub action: String,
    /// Its protocol, by name or number; none if it is any.
    pub protocol: Option<String>,
    /// The prefix that packets come from; none if it is any.
    pub source: Option<String>,
    /// The port or ports that packets come from; none if they need have none.
    pub source_port: Option<String>,
    /// The prefix that packets go to; none if it is any.
    pub destination: Option<String>,
    /// The port or ports that packets go to; none if they need have none.
    pub destination_port: Option<String>,
    /// The type of ICMP; none if it is any.
    pub icmp_type: Option<u8>,
}

/// Lists with at most so many rules of each, and the interfaces of `forwarding` that have them.
#[must_use]
pub fn access_lists<'a>(
    lists: impl IntoIterator<Item = &'a Arc<acl::AccessList>>,
    forwarding: &Forwarding,
    most: usize,
) -> AccessLists {
    let list = |list: &Arc<acl::AccessList>| {
        let having = |of: fn(&Interface) -> Option<&Arc<acl::AccessList>>| {
            let interfaces = forwarding.interfaces.iter();
            let having = interfaces.filter(|interface| of(interface) == Some(list));
            having.map(|interface| interface.name.clone()).collect::<Vec<_>>()
        };
        let counts = list.counts();
        let rules = list.rules().iter().zip(&counts).take(most);
        AccessList {
            name: list.name().to_owned(),
            input: having(|interface| interface.filters.input.as_ref()),
            output: having(|interface| interface.filters.output.as_ref()),
            bytes: list.memory(),
            total: list.rules().len(),
            rules: rules.map(|(rule, packets)| self::rule(rule, *packets)).collect(),
            unmatched: counts.last().copied().unwrap_or_default(),
        }
    };
    AccessLists { access_lists: lists.into_iter().map(list).collect() }
}

fn rule(rule: &acl::Rule, packets: u64) -> Rule {
    let (source, destination) = match &rule.addresses {
        Addresses::Any => (None, None),
        Addresses::Ip4 { source, destination } => prefixes(*source, *destination),
        Addresses::Ip6 { source, destination } => prefixes(*source, *destination),
    };
    let mut shown = Rule {
        packets,
        action: action(rule.action).to_owned(),
        protocol: None,
        source,
        source_port: None,
        destination,
        destination_port: None,
        icmp_type: None,
    };
    match &rule.carried {
        Carried::Any => {}
        Carried::Protocol(protocol) => shown.protocol = Some(protocol_name(*protocol)),
        Carried::Ports { protocol, source, destination } => {
            shown.protocol = Some(protocol_name(*protocol));
            (shown.source_port, shown.destination_port) = (Some(ports(source)), Some(ports(destination)));
        }
        Carried::Type { protocol, kind } => {
            (shown.protocol, shown.icmp_type) = (Some(protocol_name(*protocol)), Some(*kind));
        }
    }
    shown
}

/// Two prefixes of one version of IP; one of all addresses is left out where the other tells the version.
fn prefixes<A: Address>(source: Prefix<A>, destination: Prefix<A>) -> (Option<String>, Option<String>) {
    let tells = |prefix: Prefix<A>, other: Prefix<A>| prefix.length() > 0 || other.length() == 0;
    let text = |prefix: Prefix<A>, other| tells(prefix, other).then(|| prefix.to_string());
    (text(source, destination), text(destination, source))
}

fn action(action: Action) -> &'static str {
    match action {
        Action::Permit => "permit",
        Action::KeepState => "keep-state",
        Action::Deny => "deny",
    }
}

fn ports(ports: &RangeInclusive<u16>) -> String {
    let (first, last) = (ports.start(), ports.end());
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

impl fmt::Display for AccessLists {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.access_lists.is_empty() {
            return writeln!(formatter, "there are no access lists");
        }
        for (at, list) in self.access_lists.iter().enumerate() {
            if at > 0 {
                writeln!(formatter)?;
            }
            list.fmt(formatter)?;
        }
        Ok(())
    }
}

impl fmt::Display for AccessList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Column::{Left, Right};
        let Self { name, input, output, bytes, total, rules, unmatched } = self;
        let at = |interfaces: &[String]| {
            if interfaces.is_empty() { "no interface".to_owned() } else { interfaces.join(", ") }
        };
        let (input, output) = (at(input), at(output));
        writeln!(formatter, "{name}: {total} rules in {bytes} bytes; in at {input}; out at {output}")?;
        let columns = [
            Right("Rule"),
            Right("Packets"),
            Left("Action"),
            Left("Protocol"),
            Left("Source"),
            Left("Destination"),
        ];
        let numbered = rules.iter().enumerate().map(|(at, rule)| {
            vec![
                (at + 1).to_string(),
                rule.packets.to_string(),
                rule.action.clone(),
                protocol(rule),
                end(rule.source.as_ref(), rule.source_port.as_ref()),
                end(rule.destination.as_ref(), rule.destination_port.as_ref()),
            ]
        });
        let default = vec!["default".to_owned(), unmatched.to_string(), action(Action::Deny).to_owned()];
        table::write(formatter, &columns, numbered.chain([default]))?;
        if rules.len() < *total {
            writeln!(formatter, "… and {} rules more: ask for {name} alone", total - rules.len())?;
        }
        Ok(())
    }
}

fn protocol(rule: &Rule) -> String {
    let name = rule.protocol.as_deref().unwrap_or("any");
    rule.icmp_type.map_or_else(|| name.to_owned(), |kind| format!("{name} type {kind}"))
}

fn end(prefix: Option<&String>, port: Option<&String>) -> String {
    let prefix = prefix.map_or("any", String::as_str);
    port.filter(|port| *port != "0-65535")
        .map_or_else(|| prefix.to_owned(), |port| format!("{prefix} port {port}"))
}
