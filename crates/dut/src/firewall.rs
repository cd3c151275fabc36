//! A firewall in the kernel's router: the parameters `firewall`, `rules` and `states` enter; a router whose rules drop packets
//! from sources that no profile has leaves, and the last of these sources, with which a few frames prove that the rules work.
//! Every kind of firewall drops the same sources, of IPv4 and of IPv6.
//!
//! No profile matches a rule, so a packet pays only for looking at the rules. With states, packets of known connections pass
//! before the rules, packets that begin a connection pass after them, and all others are dropped.

mod xdp;

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::time::Duration;

use lab::{Error, Result, Running, Site};

use super::spec::Parameters;
use super::{Parameter, SpecError};

/// How long a million rules may take, on a machine that others share.
const PATIENCE: Duration = Duration::from_secs(120);
/// The most bytes that the programs print.
const MOST: u64 = 1 << 20;
/// The most rules that are tried one after the other: with 100,000 a router forwards next to nothing.
const MOST_LISTED: usize = 100_000;
/// The most sources that are looked up.
const MOST_SET: usize = 1_000_000;

pub(super) const FIREWALL: Parameter = Parameter {
    key: "firewall",
    values: "nftables, nftables-set, iptables, flowtable or xdp, and only without a jail",
    meaning: "what drops packets from sources that no profile has: rules that are tried one after the other (nftables, iptables), a set that is looked up (nftables-set, and xdp before the kernel's stack), or rules that only the first packets of a flow meet (flowtable) (default none)",
};

pub(super) const RULES: Parameter = Parameter {
    key: "rules",
    values: "a number from 1 to 100000, with nftables-set and xdp to 1M, and only together with firewall=",
    meaning: "the number of sources that it drops packets from, for IPv4 and again for IPv6 (default 1)",
};

pub(super) const STATES: Parameter = Parameter {
    key: "states",
    values: "on or off, and only together with firewall=nftables, nftables-set or iptables",
    meaning: "whether it passes only packets of connections that it tracks, and those that begin one (default off)",
};

/// What filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nftables,
    NftablesSet,
    Iptables,
    Flowtable,
    Xdp,
}

/// A firewall that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Firewall {
    kind: Kind,
    rules: usize,
    has_states: bool,
}

/// What the parameters ask for; nothing where they name no firewall.
pub(super) fn read(parameters: &Parameters) -> Result<Option<Firewall>, SpecError> {
    let kind = |text: &str| {
        let named = [
            ("nftables", Kind::Nftables),
            ("nftables-set", Kind::NftablesSet),
            ("iptables", Kind::Iptables),
            ("flowtable", Kind::Flowtable),
            ("xdp", Kind::Xdp),
        ];
        named.into_iter().find(|(name, _)| *name == text).map(|(_, kind)| kind)
    };
    let kind = parameters.get(FIREWALL.key, kind)?;
    let most = match kind {
        None => 0,
        Some(Kind::NftablesSet | Kind::Xdp) => MOST_SET,
        Some(_) => MOST_LISTED,
    };
    let number = |text: &str| super::routes::scaled(text).filter(|rules| (1..=most).contains(rules));
    let rules = parameters.get(RULES.key, number)?.unwrap_or(1);
    let has_states = parameters.switch(STATES.key, false)?;
    if has_states && !matches!(kind, Some(Kind::Nftables | Kind::NftablesSet | Kind::Iptables)) {
        return Err(parameters.wrong_value(STATES.key));
    }
    Ok(kind.map(|kind| Firewall { kind, rules, has_states }))
}

/// The source of IPv4 that rule number `at`, from 0, drops packets from: a host of 10.0.0.0/8, which no profile has.
pub(crate) fn source_v4(at: usize) -> Ipv4Addr {
    // Less than 250 in each byte, as a bench in shell commands has them.
    Ipv4Addr::new(10, (at / 62_500 % 250) as u8, (at / 250 % 250) as u8, (at % 250) as u8)
}

/// The same of IPv6: a host of fd00::/64.
pub(crate) fn source_v6(at: usize) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xfd_u128 << 120 | at as u128)
}

/// The last sources that so many rules drop packets from.
pub(crate) fn last_sources(rules: usize) -> Vec<IpAddr> {
    let last = rules.checked_sub(1);
    last.map(|last| vec![source_v4(last).into(), source_v6(last).into()]).unwrap_or_default()
}

impl Firewall {
    /// The sources whose packets it must drop, as a few frames can prove.
    pub fn denied(&self) -> Vec<IpAddr> {
        last_sources(self.rules)
    }

    /// Puts it into the router at `site`; what holds it there leaves.
    pub fn start(&self, site: &Site) -> Result<Running> {
        match self.kind {
            Kind::Xdp => return xdp::start(site, self.rules),
            Kind::Iptables => {
                for (program, text) in [
                    ("iptables-legacy-restore", self.iptables(|at| source_v4(at).into())),
                    ("ip6tables-legacy-restore", self.iptables(|at| source_v6(at).into())),
                ] {
                    load(site, program, &[], &text)?;
                }
            }
            Kind::Nftables | Kind::NftablesSet | Kind::Flowtable => {
                load(site, "nft", &["-f", "-"], &self.nftables(site))?;
            }
        }
        Ok(Running::default())
    }

    /// Its rules as `nft` reads them: a table for IPv4 and one for IPv6, and with a flow table one for both.
    fn nftables(&self, site: &Site) -> String {
        let v4 = || (0..self.rules).map(|at| source_v4(at).to_string());
        let v6 = || (0..self.rules).map(|at| source_v6(at).to_string());
        if self.kind == Kind::Flowtable {
            let [zero, one] = site.interfaces;
            let devices = format!("{}, {}", zero.name, one.name);
            let table =
                format!("flowtable known {{ hook ingress priority filter; devices = {{ {devices} }}; }}\n");
            let rules =
                listed("ip", v4()) + &listed("ip6", v6()) + "meta l4proto { tcp, udp } flow add @known\n";
            return format!("table inet filter {{\n{table}{}}}\n", chain("accept", &rules));
        }
        let table = |family: &str, kind: &str, sources: &mut dyn Iterator<Item = String>| {
            let (set, rules) = if self.kind == Kind::NftablesSet {
                let elements: Vec<String> = sources.collect();
                let set =
                    format!("set denied {{ type {kind}; elements = {{ {} }}; }}\n", elements.join(", "));
                (set, format!("{family} saddr @denied drop\n"))
            } else {
                (String::new(), listed(family, sources))
            };
            let chain = if self.has_states {
                let known = "ct state established,related accept\n";
                chain("drop", &format!("{known}{rules}ct state new accept\n"))
            } else {
                chain("accept", &rules)
            };
            format!("table {family} filter {{\n{set}{chain}}}\n")
        };
        table("ip", "ipv4_addr", &mut v4()) + &table("ip6", "ipv6_addr", &mut v6())
    }

    /// Its rules as `iptables-restore` and `ip6tables-restore` read them.
    fn iptables(&self, source: impl Fn(usize) -> IpAddr) -> String {
        let policy = if self.has_states { "DROP" } else { "ACCEPT" };
        let state = |states: &str| match self.has_states {
            true => format!("-A FORWARD -m conntrack --ctstate {states} -j ACCEPT\n"),
            false => String::new(),
        };
        let mut rules = state("ESTABLISHED,RELATED");
        for at in 0..self.rules {
            // Writing to a string does not fail.
            let _ = writeln!(rules, "-A FORWARD -s {} -j DROP", source(at));
        }
        rules += &state("NEW");
        format!(
            "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD {policy} [0:0]\n:OUTPUT ACCEPT [0:0]\n{rules}COMMIT\n"
        )
    }
}

/// A chain that packets pass on their way through the router.
fn chain(policy: &str, rules: &str) -> String {
    format!("chain forward {{\ntype filter hook forward priority filter; policy {policy};\n{rules}}}\n")
}

/// A rule for each of the `sources`.
fn listed(family: &str, sources: impl Iterator<Item = String>) -> String {
    sources.fold(String::new(), |mut rules, source| {
        // Writing to a string does not fail.
        let _ = writeln!(rules, "{family} saddr {source} drop");
        rules
    })
}

/// Runs `program` in the router's namespace with `text`.
fn load(site: &Site, program: &str, arguments: &[&str], text: &str) -> Result<()> {
    let mut command = Command::new(program);
    command.args(arguments);
    site.namespace.contain(&mut command)?;
    let refused = |cause: String| {
        Error::Kernel {
        what: format!("cannot set the device's firewall by {program}"),
        cause: io::Error::other(cause),
        remedy: "Is the program installed, and does this kernel have what the firewall is made of? Choose another \
                 firewall otherwise"
            .to_owned(),
    }
    };
    let answer = programs::bounded::run(program, command, text.as_bytes(), PATIENCE, MOST);
    let answer = answer.map_err(|error| refused(format!("{error:#}")))?;
    let said: Vec<&str> = answer.complaints.lines().map(str::trim).take(3).collect();
    if answer.status.success() { Ok(()) } else { Err(refused(said.join("; "))) }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::DutSpec;

    use super::*;

    fn text(kind: Kind, rules: usize, has_states: bool) -> String {
        Firewall { kind, rules, has_states }.iptables(|at| source_v4(at).into())
    }

    #[test]
    fn the_last_source_of_each_version_is_what_frames_prove() {
        let denied = |text: &str| text.parse::<DutSpec>().unwrap().denied();
        assert!(denied("linux-router").is_empty());
        let of = |v4: &str, v6: &str| -> Vec<IpAddr> { vec![v4.parse().unwrap(), v6.parse().unwrap()] };
        assert_eq!(denied("linux-router:firewall=nftables"), of("10.0.0.0", "fd00::"));
        assert_eq!(denied("linux-router:firewall=xdp,rules=1000"), of("10.0.3.249", "fd00::3e7"));
        assert_eq!(denied("fastpath:acl=1000"), of("10.0.3.249", "fd00::3e7"));
        assert!(denied("fastpath:states=on").is_empty());
    }

    #[test]
    fn a_million_sources_are_different_ones() {
        assert_eq!((0..MOST_SET).map(source_v4).collect::<HashSet<_>>().len(), MOST_SET);
        assert_eq!(source_v4(MOST_SET - 1), Ipv4Addr::new(10, 15, 249, 249));
    }

    #[test]
    fn rules_of_iptables_stand_between_known_and_new_connections() {
        insta::assert_snapshot!(text(Kind::Iptables, 2, false), @r"
        *filter
        :INPUT ACCEPT [0:0]
        :FORWARD ACCEPT [0:0]
        :OUTPUT ACCEPT [0:0]
        -A FORWARD -s 10.0.0.0 -j DROP
        -A FORWARD -s 10.0.0.1 -j DROP
        COMMIT
        ");
        insta::assert_snapshot!(text(Kind::Iptables, 1, true), @r"
        *filter
        :INPUT ACCEPT [0:0]
        :FORWARD DROP [0:0]
        :OUTPUT ACCEPT [0:0]
        -A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
        -A FORWARD -s 10.0.0.0 -j DROP
        -A FORWARD -m conntrack --ctstate NEW -j ACCEPT
        COMMIT
        ");
    }
}
