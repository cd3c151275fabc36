//! A table of routes in the words of `ip route`: its lines enter, one after the other; routes leave, or the lines that
//! are none, each with what to write instead.
//!
//! ```text
//! 10.0.0.0/24 via 10.1.0.2 dev wan
//! default nexthop via 10.1.0.2 weight 3 nexthop via 10.7.0.2
//! blackhole 192.168.0.0/16
//! ```
//!
//! A million lines say where packets go in a handful of ways. So each way, which is what follows a prefix, is understood
//! once.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Read};
use std::net::IpAddr;
use std::sync::Arc;

use toml::Spanned;

use super::document::{HopEntry, MOST_PROBLEMS, Problems};
use super::routes::{Shared, Sorted};
use super::validate::{self, Names, Own};
use super::{Config, IpPrefix, Problem, Route};
use crate::fib::{Address, Prefix};

/// The most bytes of a line.
const LONGEST: u64 = 16 << 10;
/// The most letters of a reason.
const LONGEST_REASON: usize = 300;
/// The most routes of a table.
const MOST_ROUTES: usize = 1 << 24;
/// The most ways that are remembered.
const MOST_WAYS: usize = 1 << 16;
/// Words of `ip route` that say nothing to this router, each with the word that follows it.
const UNUSED: [&str; 9] = ["proto", "metric", "scope", "src", "pref", "mtu", "advmss", "expires", "nhid"];
/// Those that stand alone; a backslash is where `ip -oneline` has joined two lines.
const UNUSED_ALONE: [&str; 4] = ["onlink", "offload", "trap", "\\"];

/// Routes of one version of IP, with their lines.
type Lines<A> = Vec<(Prefix<A>, u32, Arc<Route>)>;

/// The routes of a table that belongs to `config`.
///
/// # Errors
/// What is wrong with the first lines that are wrong.
pub(super) fn read(config: &Config, table: impl BufRead) -> Result<Sorted, Vec<Problem>> {
    let misread = HashSet::new();
    let names = Names(&config.interfaces, &misread);
    let mut reader = Reader {
        config,
        own: Own::of(&names),
        names,
        ways: HashMap::new(),
        shared: Shared::default(),
        ip4: Vec::new(),
        ip6: Vec::new(),
        problems: Vec::new(),
    };
    reader.read(table);
    let sorted = (sorted(reader.ip4, &mut reader.problems), sorted(reader.ip6, &mut reader.problems));
    reader.problems.sort_by_key(|problem| problem.line);
    if reader.problems.is_empty() { Ok(sorted) } else { Err(reader.problems) }
}

/// What is read of a table so far.
struct Reader<'a> {
    config: &'a Config,
    names: Names<'a>,
    own: Own,
    /// By their words.
    ways: HashMap<String, Way>,
    shared: Shared,
    ip4: Lines<u32>,
    ip6: Lines<u128>,
    /// The first ones.
    problems: Vec<Problem>,
}

/// Where packets go.
#[derive(Clone)]
enum Way {
    Drop,
    Via {
        is_ip4: bool,
        route: Arc<Route>,
    },
    /// The kernel's own route to the network of an address: the router has it by the address, too.
    OfAddress,
}

impl Reader<'_> {
    fn read(&mut self, mut table: impl BufRead) {
        let mut bytes = Vec::new();
        for line in 1.. {
            bytes.clear();
            // No line fills memory, and what follows one that is too long cannot be told.
            let torn = match table.by_ref().take(LONGEST).read_until(b'\n', &mut bytes) {
                Ok(0) => return,
                Ok(_) if bytes.len() as u64 == LONGEST && !bytes.ends_with(b"\n") => {
                    Some(format!("a line of more than {LONGEST} bytes: is this a table of routes?"))
                }
                Ok(_) => None,
                Err(error) => Some(format!("it cannot be read on: {error}")),
            };
            let is_last = torn.is_some();
            let wrong = torn.or_else(|| self.line(line, &bytes).err());
            self.problems.extend(wrong.map(|reason| Problem { line, reason: shown(&reason) }));
            if is_last {
                return;
            }
            if self.problems.len() == MOST_PROBLEMS {
                let reason =
                    "so many mistakes are enough: mend those above, and more may be found below".to_owned();
                return self.problems.push(Problem { line: line + 1, reason });
            }
        }
    }

    /// Takes up what a line says.
    fn line(&mut self, line: usize, bytes: &[u8]) -> Result<(), String> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| "it is no text: write a route, like 10.0.0.0/24 via 10.1.0.2")?;
        let text = text.split_once('#').map_or(text, |(text, _)| text).trim();
        if text.is_empty() {
            return Ok(());
        }
        let (first, rest) = cut(text);
        let (destination, way) = match first {
            "blackhole" => {
                let (destination, rest) = cut(rest);
                for_unused(rest)?;
                (destination, Way::Drop)
            }
            "unreachable" | "prohibit" | "throw" | "local" | "broadcast" | "multicast" => {
                return Err(format!(
                    "routes of the kind '{first}' are not for a table: write blackhole, or leave it out"
                ));
            }
            "nexthop" => {
                return Err(
                    "this goes on with the line above: write each route in one line (ip -oneline route)"
                        .to_owned(),
                );
            }
            destination => (destination, self.way(rest)?),
        };
        let prefix = prefix(destination, &way)?;
        let route = match way {
            Way::OfAddress => return Ok(()),
            Way::Drop => self.shared.one(Route::Drop),
            Way::Via { is_ip4, route } if is_ip4 == matches!(prefix, IpPrefix::Ip4(_)) => route,
            Way::Via { .. } => {
                return Err(format!(
                    "{prefix} leads to a gateway of the other version of IP: write one of the same"
                ));
            }
        };
        self.note(line, prefix, route)
    }

    fn note(&mut self, line: usize, prefix: IpPrefix, route: Arc<Route>) -> Result<(), String> {
        if let Some(reason) = self.own.reason(prefix) {
            return Err(reason);
        }
        if self.config.routes.get(prefix).is_some() {
            return Err(format!("{prefix} has a [[route]] in the configuration, too: keep one"));
        }
        if self.ip4.len() + self.ip6.len() == MOST_ROUTES {
            return Err(format!(
                "a table has at most {MOST_ROUTES} routes: leave out those that others cover"
            ));
        }
        // There are fewer lines than that in what is read of a file.
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        match prefix {
            IpPrefix::Ip4(prefix) => self.ip4.push((prefix, line, route)),
            IpPrefix::Ip6(prefix) => self.ip6.push((prefix, line, route)),
        }
        Ok(())
    }

    /// The way that follows a prefix.
    fn way(&mut self, words: &str) -> Result<Way, String> {
        if let Some(way) = self.ways.get(words) {
            return Ok(way.clone());
        }
        let way = self.understand(words)?;
        if self.ways.len() < MOST_WAYS {
            self.ways.insert(words.to_owned(), way.clone());
        }
        Ok(way)
    }

    fn understand(&mut self, text: &str) -> Result<Way, String> {
        let mut hops: Vec<HopEntry> = Vec::new();
        let mut device = None;
        let mut words = text.split_ascii_whitespace();
        let mut is_of_address = false;
        // Whether a nexthop has begun and its gateway is still to come.
        let mut lacks_gateway = false;
        while let Some(word) = words.next() {
            let mut next = || words.next().ok_or_else(|| format!("nothing stands after '{word}'"));
            if lacks_gateway && word != "via" {
                break;
            }
            match word {
                "via" => {
                    lacks_gateway = false;
                    let gateway = next()?;
                    let gateway = if ["inet", "inet6"].contains(&gateway) { next()? } else { gateway };
                    hops.push(HopEntry {
                        gateway: spanned(gateway.to_owned()),
                        interface: None,
                        weight: None,
                    });
                }
                "dev" => {
                    let name = Some(spanned(next()?.to_owned()));
                    match hops.last_mut() {
                        Some(hop) => hop.interface = name,
                        None => device = name,
                    }
                }
                "weight" => {
                    let text = next()?;
                    let weight = text.parse().map_err(|_| format!("weight {text}: write a whole number"))?;
                    let hop = hops.last_mut().ok_or("a weight stands before its gateway: write it behind")?;
                    hop.weight = Some(spanned(weight));
                }
                "nexthop" => lacks_gateway = true,
                "proto" => is_of_address |= next()? == "kernel",
                word if UNUSED.contains(&word) => _ = next()?,
                word if UNUSED_ALONE.contains(&word) => {}
                word => return Err(unknown(word)),
            }
        }
        match hops.first_mut() {
            _ if lacks_gateway => {
                return Err("a nexthop without a gateway: write nexthop via 10.1.0.2".into());
            }
            Some(first) => first.interface = first.interface.take().or(device),
            None if is_of_address => return Ok(Way::OfAddress),
            None => {
                return Err(
                    "no gateway is named: write one, like via 10.1.0.2, or blackhole before the prefix"
                        .into(),
                );
            }
        }
        self.via(&hops)
    }

    fn via(&mut self, hops: &[HopEntry]) -> Result<Way, String> {
        let mut problems = Problems::default();
        let route = validate::via(0, hops, None, &self.names, &mut problems);
        let reasons = problems.reasons();
        let Some(route) = route.filter(|_| reasons.is_empty()) else { return Err(reasons.join("; ")) };
        let Route::Via(hops) = &route else { return Ok(Way::Drop) };
        let is_ip4 = hops.iter().all(|hop| hop.gateway.is_ipv4());
        if !is_ip4 && hops.iter().any(|hop| hop.gateway.is_ipv4()) {
            return Err("gateways of both versions of IP: write some of one".to_owned());
        }
        Ok(Way::Via { is_ip4, route: self.shared.one(route) })
    }
}

/// The first word, and what follows it.
fn cut(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    (first, rest.trim_start())
}

fn spanned<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

/// A reason as it is told: what a line holds may be long, and no text.
fn shown(reason: &str) -> String {
    reason.chars().map(|letter| if letter.is_control() { '?' } else { letter }).take(LONGEST_REASON).collect()
}

/// That no word says more of a route that leads nowhere.
fn for_unused(text: &str) -> Result<(), String> {
    let mut words = text.split_ascii_whitespace();
    while let Some(word) = words.next() {
        match word {
            word if UNUSED.contains(&word) => _ = words.next(),
            "dev" => _ = words.next(),
            word if UNUSED_ALONE.contains(&word) => {}
            word => return Err(unknown(word)),
        }
    }
    Ok(())
}

fn unknown(word: &str) -> String {
    format!(
        "unknown word '{word}': a route is written like 10.0.0.0/24 via 10.1.0.2 dev wan; via, dev, nexthop, weight and \
         blackhole count"
    )
}

/// The prefix of a destination: an address alone is a host, and `default` is everything of its gateway's version.
fn prefix(text: &str, way: &Way) -> Result<IpPrefix, String> {
    let text = match (text, way) {
        ("default", Way::Via { is_ip4: false, .. }) => "::/0",
        ("default", _) => "0.0.0.0/0",
        ("", _) => return Err("no prefix is named: write one like 10.0.0.0/24".to_owned()),
        (text, _) => text,
    };
    if text.contains('/') {
        return text.parse().map_err(|error: super::prefix::ParseError| error.to_string());
    }
    let host = match text.parse() {
        Ok(IpAddr::V4(address)) => Prefix::new(u32::from(address), u32::WIDTH).map(IpPrefix::Ip4),
        Ok(IpAddr::V6(address)) => Prefix::new(u128::from(address), u128::WIDTH).map(IpPrefix::Ip6),
        Err(_) => {
            return Err(format!("'{text}' is no destination: write a prefix like 10.0.0.0/24, or default"));
        }
    };
    host.map_err(|error| error.to_string())
}

/// The routes by prefix, each prefix once.
fn sorted<A: Address>(mut lines: Lines<A>, problems: &mut Vec<Problem>) -> Vec<(Prefix<A>, Arc<Route>)> {
    lines.sort_unstable_by_key(|&(prefix, line, _)| (prefix, line));
    for pair in lines.windows(2) {
        let [(before, first, _), (prefix, line, _)] = pair else { continue };
        if before == prefix && problems.len() < MOST_PROBLEMS {
            let reason = format!(
                "{prefix} has a route in line {first}, too: keep one, with several nexthops if need be"
            );
            problems.push(Problem { line: *line as usize, reason });
        }
    }
    lines.into_iter().map(|(prefix, _, route)| (prefix, route)).collect()
}

#[cfg(test)]
mod tests;
