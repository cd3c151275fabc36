//! The access lists of a configuration: entries enter; rules leave, by the names of their lists, with a note of what
//! cannot be.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use toml::Spanned;
use wire::{ipv4, ipv6};

use super::is_name;
use crate::control::config::IpPrefix;
use crate::control::config::document::{AccessListEntry, Problems, RuleEntry};
use crate::dataplane::acl::key::{SCTP, has_ports, has_type};
use crate::dataplane::acl::{Addresses, Carried, RULES, Rule};
use crate::fib::{self, Prefix};

/// The most access lists.
const LISTS: usize = 64;
/// The most rules of all of them.
const ALL_RULES: usize = 40_000;

/// Protocols that have a name here, and the name.
const PROTOCOLS: [(&str, u8); 5] =
    [("tcp", ipv4::TCP), ("udp", ipv4::UDP), ("sctp", SCTP), ("icmp", ipv4::ICMP), ("icmp6", ipv6::ICMP)];

pub(super) fn access_lists(
    entries: &[AccessListEntry],
    problems: &mut Problems,
) -> BTreeMap<String, Vec<Rule>> {
    let mut read = BTreeMap::new();
    let mut count = 0;
    for entry in entries {
        let (at, name) = (entry.name.span().start, entry.name.get_ref());
        if !is_name(name) {
            let reason = format!(
                "'{name}' is no name for an access list: write up to 32 letters, digits, - and _, like from-lan"
            );
            problems.add(at, reason);
        }
        if entry.rules.len() > RULES {
            let reason = format!(
                "{name} has {} rules: write {RULES} at most, and longer prefixes or ranges of ports for several",
                entry.rules.len()
            );
            problems.add(at, reason);
            continue;
        }
        count += entry.rules.len();
        let rules: Vec<_> = entry.rules.iter().filter_map(|entry| rule(entry, problems)).collect();
        if read.insert(name.clone(), rules).is_some() {
            problems.add(at, format!("there are two access lists '{name}': give each a name of its own"));
        }
    }
    let last = entries.last().map_or(0, |entry| entry.name.span().start);
    if entries.len() > LISTS {
        let reason = format!(
            "{} access lists: a router has at most {LISTS}; several interfaces may share one",
            entries.len()
        );
        problems.add(last, reason);
    }
    if count > ALL_RULES {
        let reason = format!(
            "{count} rules in all access lists: a router has at most {ALL_RULES}; several interfaces may share a list"
        );
        problems.add(last, reason);
    }
    read
}

fn rule(entry: &RuleEntry, problems: &mut Problems) -> Option<Rule> {
    let addresses = addresses(entry, problems);
    let carried = carried(entry, problems);
    Some(Rule { action: entry.action, addresses: addresses?, carried: carried? })
}

fn addresses(entry: &RuleEntry, problems: &mut Problems) -> Option<Addresses> {
    let mut prefix = |written: &Option<Spanned<String>>| -> Option<Option<IpPrefix>> {
        let Some(written) = written else { return Some(None) };
        problems.check(written.span().start, written.get_ref().parse()).map(Some)
    };
    let (source, destination) = (prefix(&entry.source), prefix(&entry.destination));
    let all4 = || Prefix::new(0u32, 0);
    let all6 = || Prefix::new(0u128, 0);
    let addresses: Result<_, fib::Error> = match (source?, destination?) {
        (None, None) => Ok(Addresses::Any),
        (Some(IpPrefix::Ip4(source)), Some(IpPrefix::Ip4(destination))) => {
            Ok(Addresses::Ip4 { source, destination })
        }
        (Some(IpPrefix::Ip4(source)), None) => {
            all4().map(|destination| Addresses::Ip4 { source, destination })
        }
        (None, Some(IpPrefix::Ip4(destination))) => {
            all4().map(|source| Addresses::Ip4 { source, destination })
        }
        (Some(IpPrefix::Ip6(source)), Some(IpPrefix::Ip6(destination))) => {
            Ok(Addresses::Ip6 { source, destination })
        }
        (Some(IpPrefix::Ip6(source)), None) => {
            all6().map(|destination| Addresses::Ip6 { source, destination })
        }
        (None, Some(IpPrefix::Ip6(destination))) => {
            all6().map(|source| Addresses::Ip6 { source, destination })
        }
        (Some(source), Some(destination)) => {
            let at = entry.destination.as_ref().map_or(0, |written| written.span().start);
            let reason = format!(
                "{source} and {destination} are of two versions of IP: write two of the same, or two rules"
            );
            problems.add(at, reason);
            return None;
        }
    };
    addresses.ok()
}

fn carried(entry: &RuleEntry, problems: &mut Problems) -> Option<Carried> {
    let RuleEntry { protocol, source_port, destination_port, icmp_type, .. } = entry;
    let number = match protocol {
        None => None,
        Some(written) => Some(self::protocol(written, problems)?),
    };
    let mut needs = |at: usize, what: &str, has: fn(u8) -> bool, names: &str| {
        let fits = number.is_some_and(has);
        if !fits {
            problems.add(
                at,
                format!("a rule with {what} needs a protocol that has it: write protocol = {names}"),
            );
        }
        fits
    };
    if let Some(kind) = icmp_type {
        let at = kind.span().start;
        let fits = needs(at, "icmp-type", has_type, "\"icmp\" or \"icmp6\"");
        let Ok(kind) = u8::try_from(*kind.get_ref()) else {
            problems.add(at, format!("a type {} of ICMP: write 0 to 255", kind.get_ref()));
            return None;
        };
        return number.filter(|_| fits).map(|protocol| Carried::Type { protocol, kind });
    }
    let Some(first) = source_port.as_ref().or(destination_port.as_ref()) else {
        return Some(number.map_or(Carried::Any, Carried::Protocol));
    };
    let fits = needs(first.span().start, "ports", has_ports, "\"tcp\", \"udp\" or \"sctp\"");
    let source = ports(source_port.as_ref(), problems);
    let destination = ports(destination_port.as_ref(), problems);
    let protocol = number.filter(|_| fits)?;
    Some(Carried::Ports { protocol, source: source?, destination: destination? })
}

/// The number of a protocol, by its name or as it is.
fn protocol(written: &Spanned<String>, problems: &mut Problems) -> Option<u8> {
    let text = written.get_ref();
    let named = PROTOCOLS.iter().find(|(name, _)| name == text).map(|(_, number)| *number);
    let number = named.or_else(|| text.parse().ok());
    if number.is_none() {
        let names = PROTOCOLS.map(|(name, _)| name).join(", ");
        let reason = format!("'{text}' is no protocol: write {names} or a number from 0 to 255, like \"89\"");
        problems.add(written.span().start, reason);
    }
    number
}

/// A port or a range of ports; all where none is written.
fn ports(written: Option<&Spanned<String>>, problems: &mut Problems) -> Option<RangeInclusive<u16>> {
    let Some(written) = written else { return Some(0..=u16::MAX) };
    let text = written.get_ref();
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.parse::<u16>().ok().filter(|_| !text.starts_with('+'));
    let range = port(first).zip(port(last)).filter(|(first, last)| first <= last);
    if range.is_none() {
        let reason = format!("'{text}' is no port and no range of ports: write \"80\" or \"1024-65535\"");
        problems.add(written.span().start, reason);
    }
    range.map(|(first, last)| first..=last)
}

/// What a protocol is called, or its number.
pub(crate) fn protocol_name(protocol: u8) -> String {
    let named = PROTOCOLS.iter().find(|(_, number)| *number == protocol);
    named.map_or_else(|| protocol.to_string(), |(name, _)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::config::{Change, Config, Error, Filters, difference};
    use crate::dataplane::acl::Action;

    /// A router with an interface that has the list `from-lan`, and `more` of these rules.
    fn text(rules: &str) -> String {
        format!(
            "[workers]\ncores = [1]\n[[interface]]\nname = \"lan\"\ndevice = \"null\"\naccess-list-in = \"from-lan\"\n\
             [[access-list]]\nname = \"from-lan\"\nrules = [{rules}]\n"
        )
    }

    fn parse(text: &str) -> Result<Config, Error> {
        Config::parse("x.toml", text)
    }

    /// What is wrong, in one text.
    fn refused(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    fn prefix(address: [u8; 4], length: u8) -> Prefix<u32> {
        Prefix::new(u32::from_be_bytes(address), length).unwrap()
    }

    #[test]
    fn rules_are_read_as_they_are_written() {
        let config = parse(&text(
            r#"
            { action = "permit", protocol = "tcp", destination = "192.0.2.0/24", destination-port = "80-443" },
            { action = "permit", protocol = "icmp6", icmp-type = 128 },
            { action = "deny", source = "2001:db8::/32", destination = "2001:db8:1::/48" },
            { action = "permit", source = "10.0.0.0/8", protocol = "89" },
            { action = "permit" },
            "#,
        ))
        .unwrap();
        let destination = prefix([192, 0, 2, 0], 24);
        let expected = [
            Rule {
                action: Action::Permit,
                addresses: Addresses::Ip4 { source: prefix([0; 4], 0), destination },
                carried: Carried::Ports { protocol: 6, source: 0..=u16::MAX, destination: 80..=443 },
            },
            Rule {
                action: Action::Permit,
                addresses: Addresses::Any,
                carried: Carried::Type { protocol: 58, kind: 128 },
            },
            Rule {
                action: Action::Deny,
                addresses: Addresses::Ip6 {
                    source: Prefix::new(0x2001_0db8 << 96, 32).unwrap(),
                    destination: Prefix::new(0x2001_0db8_0001 << 80, 48).unwrap(),
                },
                carried: Carried::Any,
            },
            Rule {
                action: Action::Permit,
                addresses: Addresses::Ip4 {
                    source: prefix([10, 0, 0, 0], 8),
                    destination: prefix([0; 4], 0),
                },
                carried: Carried::Protocol(89),
            },
            Rule { action: Action::Permit, addresses: Addresses::Any, carried: Carried::Any },
        ];
        assert_eq!(config.access_lists["from-lan"], expected);
        assert_eq!(config.interfaces[0].filters, Filters { input: Some("from-lan".into()), output: None });
        assert_eq!((protocol_name(132), protocol_name(89)), ("sctp".to_owned(), "89".to_owned()));
    }

    #[test]
    fn what_is_no_rule_is_refused_with_what_to_write() {
        for (rule, clue) in [
            ("", "missing"),
            ("action = \"allow\"", "permit"),
            ("action = \"deny\", port = \"80\"", "port"),
            ("action = \"deny\", source = \"10.0.0.1/8\"", "is 10.0.0.0/8 meant?"),
            (
                "action = \"deny\", source = \"10.0.0.0/8\", destination = \"::/0\"",
                "two versions of IP: write two",
            ),
            ("action = \"deny\", protocol = \"ftp\"", "'ftp' is no protocol: write tcp, udp"),
            ("action = \"deny\", protocol = \"256\"", "or a number from 0 to 255"),
            (
                "action = \"deny\", destination-port = \"80\"",
                "a rule with ports needs a protocol that has it",
            ),
            ("action = \"deny\", protocol = \"icmp\", source-port = \"80\"", "write protocol = \"tcp\""),
            (
                "action = \"deny\", protocol = \"tcp\", source-port = \"81-80\"",
                "'81-80' is no port and no range",
            ),
            ("action = \"deny\", protocol = \"tcp\", destination-port = \"65536\"", "write \"80\" or"),
            (
                "action = \"deny\", protocol = \"udp\", icmp-type = 8",
                "write protocol = \"icmp\" or \"icmp6\"",
            ),
            ("action = \"deny\", protocol = \"icmp\", icmp-type = 256", "write 0 to 255"),
        ] {
            let said = refused(&text(&format!("{{ {rule} }}")));
            assert!(said.contains(clue) && said.lines().count() == 1, "{rule}: {said}");
        }
    }

    #[test]
    fn lists_that_cannot_be_are_refused_with_what_to_write() {
        let list = |name: &str| format!("[[access-list]]\nname = \"{name}\"\n");
        let rules = |count: usize| "{ action = \"permit\" },".repeat(count);
        let most = (0..5).map(|at| format!("{}rules = [{}]\n", list(&format!("l{at}")), rules(8001)));
        for (written, clue) in [
            (text("").replace("name = \"from-lan\"", "name = \"a b\""), "no name for an access list"),
            (text("") + &list("from-lan"), "two access lists 'from-lan'"),
            (
                text("").replace("in = \"from-lan\"", "out = \"from-wan\""),
                "there is no access list 'from-wan'",
            ),
            (text("").replace("access-list-in", "bridge = \"b\"\naccess-list-in"), "takes no access list"),
            (text(&rules(10_001)), "from-lan has 10001 rules: write 10000 at most"),
            (text("") + &most.collect::<String>(), "40005 rules in all access lists"),
            (text("") + &(0..64).map(|at| list(&format!("l{at}"))).collect::<String>(), "at most 64"),
        ] {
            let said = refused(&written);
            assert!(said.contains(clue), "{clue}: {said}");
        }
        // A list that cannot be read is there all the same.
        assert!(!refused(&text("{ action = \"allow\" }")).contains("there is no access list"));
    }

    #[test]
    fn a_reload_changes_lists_before_the_interfaces_that_have_them() {
        let old = parse(&text("{ action = \"permit\" }")).unwrap();
        assert_eq!(difference(&old, &old).unwrap(), []);
        let renamed = parse(&text("{ action = \"permit\" }").replace("from-lan", "lan-in")).unwrap();
        let filters = Filters { input: Some("lan-in".into()), output: None };
        assert_eq!(
            difference(&old, &renamed).unwrap(),
            [
                Change::AccessList("lan-in".into(), old.access_lists["from-lan"].clone()),
                Change::Filters("lan".into(), filters),
                Change::NoAccessList("from-lan".into()),
            ]
        );
        let denied = parse(&text("{ action = \"deny\" }")).unwrap();
        let rules = denied.access_lists["from-lan"].clone();
        assert_eq!(difference(&old, &denied).unwrap(), [Change::AccessList("from-lan".into(), rules)]);
    }
}
