//! Access lists: rules enter, in their order; for each packet, the first rule that matches it leaves, and each rule's
//! packets are counted.
//!
//! A packet that no rule matches is denied. Fragments but the first, which show no ports, match no rule with ports
//! or a type of ICMP; so do packets that end before them.
//!
//! Rules may keep states: then the packets of a flow that one has let begin pass without being looked up, in both
//! directions (see [`states`](crate::dataplane::states)).

pub mod classifier;
pub mod field;
pub mod key;
#[cfg(test)]
mod tests;

use std::fmt::{self, Debug, Formatter};
use std::ops::RangeInclusive;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Deserialize;

use self::classifier::{Classifier, NONE, Ranges};
use self::key::{ANY_PORT, ANY_SERVICE, NO_PORT, service};
use crate::dataplane::counters::Counter;
use crate::dataplane::states::First;
use crate::fib::{Address, Prefix};

/// The most rules of a list.
pub const RULES: usize = 10_000;
/// The most workers whose packets are counted by rule.
const WORKERS: usize = 64;

/// The number of the next list.
static EDITIONS: AtomicU32 = AtomicU32::new(1);

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It goes on.
    Permit,
    /// It goes on if it can begin a flow, whose packets then pass in both directions.
    KeepState,
    /// It is dropped.
    Deny,
}

/// The addresses that packets come from and go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Any of either version of IP.
    Any,
    /// Of IPv4.
    Ip4 {
        /// Where they come from.
        source: Prefix<u32>,
        /// Where they go to.
        destination: Prefix<u32>,
    },
    /// Of IPv6.
    Ip6 {
        /// Where they come from.
        source: Prefix<u128>,
        /// Where they go to.
        destination: Prefix<u128>,
    },
}

/// What packets carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carried {
    /// Anything that can be read.
    Any,
    /// This protocol.
    Protocol(u8),
    /// This protocol, which has ports (see [`key::has_ports`]), between these ports.
    Ports {
        /// The protocol.
        protocol: u8,
        /// Where they come from.
        source: RangeInclusive<u16>,
        /// Where they go to.
        destination: RangeInclusive<u16>,
    },
    /// This protocol, which has types (see [`key::has_type`]), with this type.
    Type {
        /// ICMP or ICMPv6.
        protocol: u8,
        /// The type of the message.
        kind: u8,
    },
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What becomes of the packets that it matches.
    pub action: Action,
    /// Their addresses.
    pub addresses: Addresses,
    /// What they carry.
    pub carried: Carried,
}

impl Rule {
    /// What it matches of IPv4.
    fn ranges4(&self) -> Option<Ranges<u32>> {
        match self.addresses {
            Addresses::Any => Some(self.ranges(0..=u32::MAX, 0..=u32::MAX)),
            Addresses::Ip4 { source, destination } => {
                Some(self.ranges(addresses4(source), addresses4(destination)))
            }
            Addresses::Ip6 { .. } => None,
        }
    }

    /// What it matches of IPv6.
    fn ranges6(&self) -> Option<Ranges<u128>> {
        match self.addresses {
            Addresses::Any => Some(self.ranges(0..=u128::MAX, 0..=u128::MAX)),
            Addresses::Ip6 { source, destination } => {
                Some(self.ranges(addresses6(source), addresses6(destination)))
            }
            Addresses::Ip4 { .. } => None,
        }
    }

    fn ranges<A>(&self, source: RangeInclusive<A>, destination: RangeInclusive<A>) -> Ranges<A> {
        let ports = |ports: &RangeInclusive<u16>| (u32::from(*ports.start()), u32::from(*ports.end()));
        let (service, source_port) = match &self.carried {
            Carried::Any => (ANY_SERVICE, ANY_PORT),
            Carried::Protocol(protocol) => (service(*protocol, 0)..=service(*protocol, NO_PORT), ANY_PORT),
            Carried::Ports { protocol, source, destination } => {
                let (first, last) = ports(destination);
                // A packet with such a service shows its source port, too: then any is any.
                let source = match ports(source) {
                    (0, last) if last == u32::from(u16::MAX) => ANY_PORT,
                    (first, last) => first..=last,
                };
                (service(*protocol, first)..=service(*protocol, last), source)
            }
            Carried::Type { protocol, kind } => {
                let only = service(*protocol, u32::from(*kind));
                (only..=only, ANY_PORT)
            }
        };
        Ranges { source, destination, service, source_port }
    }
}

fn addresses4(prefix: Prefix<u32>) -> RangeInclusive<u32> {
    prefix.address()..=prefix.address() | !u32::MAX.network(prefix.length())
}

fn addresses6(prefix: Prefix<u128>) -> RangeInclusive<u128> {
    prefix.address()..=prefix.address() | !u128::MAX.network(prefix.length())
}

/// Rules, ready to be looked up, and how many packets each matched.
pub struct AccessList {
    name: String,
    rules: Vec<Rule>,
    /// What becomes of the packets of each.
    actions: Box<[Action]>,
    /// Which list it is, of all that there have been.
    edition: u32,
    /// Whether a rule keeps states.
    keeps_states: bool,
    ip4: Classifier<u32>,
    ip6: Classifier<u128>,
    /// By worker, made when it has its first packets: by rule, and then those that none matched.
    counted: [OnceLock<Box<[Counter]>>; WORKERS],
    /// What all workers had counted when counting began.
    cleared: Mutex<Vec<u64>>,
}

impl AccessList {
    /// That of these rules, at most [`RULES`].
    #[must_use]
    pub fn new(name: &str, rules: Vec<Rule>) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            ip4: Classifier::new(&rules.iter().map(Rule::ranges4).collect::<Vec<_>>()),
            ip6: Classifier::new(&rules.iter().map(Rule::ranges6).collect::<Vec<_>>()),
            actions: rules.iter().map(|rule| rule.action).collect(),
            edition: EDITIONS.fetch_add(1, Relaxed),
            keeps_states: rules.iter().any(|rule| rule.action == Action::KeepState),
            rules,
            counted: [const { OnceLock::new() }; WORKERS],
            cleared: Mutex::default(),
        })
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its rules, in their order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// For IPv4.
    #[inline(always)]
    pub(crate) fn ip4(&self) -> &Classifier<u32> {
        &self.ip4
    }

    /// For IPv6.
    #[inline(always)]
    pub(crate) fn ip6(&self) -> &Classifier<u128> {
        &self.ip6
    }

    /// The number of the rule that a classifier has found: behind the last one where none was.
    #[inline(always)]
    pub(crate) fn rule(&self, found: u32) -> usize {
        (found as usize).min(self.rules.len())
    }

    /// What becomes of the packets of a rule; `None` for the number of no rule.
    #[inline(always)]
    pub(crate) fn action(&self, rule: usize) -> Option<Action> {
        self.actions.get(rule).copied()
    }

    /// Whether a rule keeps states.
    pub(crate) fn keeps_state(&self, rule: usize) -> bool {
        self.action(rule) == Some(Action::KeepState)
    }

    /// Whether any rule does.
    #[must_use]
    #[inline(always)]
    pub fn keeps_states(&self) -> bool {
        self.keeps_states
    }

    /// Which list it is: no other one has this number.
    #[inline(always)]
    pub(crate) fn edition(&self) -> u32 {
        self.edition
    }

    /// The rule that the first packet of a flow matches.
    pub(crate) fn rule_of(&self, first: &First) -> Option<usize> {
        let found = match *first {
            First::Ip4(key) => self.ip4.find(key),
            First::Ip6(key) => self.ip6.find(key),
        };
        (found != NONE).then_some(found as usize)
    }

    /// Bytes of what it is looked up by.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.ip4.memory() + self.ip6.memory()
    }

    /// The counters of a worker: by rule, and then of packets that none matched. They are that worker's alone.
    #[inline(always)]
    pub(crate) fn counters(&self, worker: u16) -> &[Counter] {
        let none = || (0..=self.rules.len()).map(|_| Counter::default()).collect();
        self.counted.get(usize::from(worker)).map_or(&[][..], |counted| &**counted.get_or_init(none))
    }

    /// How many packets each rule matched since counting began, at all workers, and how many none did.
    #[must_use]
    pub fn counts(&self) -> Vec<u64> {
        let before = self.cleared.lock().unwrap_or_else(PoisonError::into_inner);
        let before = before.iter().copied().chain(std::iter::repeat(0));
        self.all_counts().into_iter().zip(before).map(|(now, before)| now.wrapping_sub(before)).collect()
    }

    /// Counts from now on.
    pub fn clear(&self) {
        *self.cleared.lock().unwrap_or_else(PoisonError::into_inner) = self.all_counts();
    }

    fn all_counts(&self) -> Vec<u64> {
        let mut sums = vec![0u64; self.rules.len() + 1];
        for counters in self.counted.iter().filter_map(OnceLock::get) {
            sums.iter_mut().zip(counters).for_each(|(sum, counter)| *sum = sum.wrapping_add(counter.get()));
        }
        sums
    }
}

impl PartialEq for AccessList {
    /// Whether it is the same one.
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for AccessList {}

impl Debug for AccessList {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        write!(formatter, "AccessList({}, {} rules)", self.name, self.rules.len())
    }
}

/// The access lists of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// Of packets that arrive.
    pub input: Option<Arc<AccessList>>,
    /// Of packets that are to leave.
    pub output: Option<Arc<AccessList>>,
}

impl Filters {
    /// The list of packets that arrive, or of those that are to leave.
    #[must_use]
    #[inline(always)]
    pub fn of(&self, input: bool) -> Option<&Arc<AccessList>> {
        if input { self.input.as_ref() } else { self.output.as_ref() }
    }

    /// Whether one of them keeps states: then packets are looked at in both directions.
    #[must_use]
    #[inline(always)]
    pub fn keep_states(&self) -> bool {
        let keeps = |list: &Option<Arc<AccessList>>| list.as_ref().is_some_and(|list| list.keeps_states());
        keeps(&self.input) || keeps(&self.output)
    }

    /// Whether packets that arrive have to be looked at.
    #[must_use]
    pub fn look_at_input(&self) -> bool {
        self.input.is_some() || self.keep_states()
    }

    /// Whether packets that are to leave have to be looked at.
    #[must_use]
    pub fn look_at_output(&self) -> bool {
        self.output.is_some() || self.keep_states()
    }
}
