//! Which queues of an interface the packets take: two readings of its counters enter; rates, shares
//! and how even they are leave.
//!
//! A reading is of the best source that there is, and says which: the kernel's own counters of
//! each queue, or the driver's statistics, or what each core received of all interfaces.

mod cores;
mod ethtool;
mod netdev;
mod softnet;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

pub use ethtool::by_queue;

/// Where counters come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The kernel's statistics of each queue (`netdev` generic netlink, Linux 6.9).
    Netdev,
    /// The driver's statistics, told apart by their names (`ethtool -S`).
    Ethtool,
    /// What each core took in, of all interfaces together (`/proc/net/softnet_stat`).
    Softnet,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Netdev => "the kernel's counters of each queue (netdev-genl)",
            Self::Ethtool => "the driver's statistics (ethtool -S)",
            Self::Softnet => {
                "what each core took in of all interfaces (/proc/net/softnet_stat, /proc/softirqs)"
            }
        })
    }
}

/// What is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "number")]
pub enum Place {
    /// A queue that receives.
    Receive(u32),
    /// A queue that sends.
    Send(u32),
    /// A core.
    Core(u32),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Receive(number) => write!(f, "rx {number}"),
            Self::Send(number) => write!(f, "tx {number}"),
            Self::Core(number) => write!(f, "core {number}"),
        }
    }
}

impl Place {
    /// Whether packets are divided between the two.
    fn is_beside(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// What was counted at one place since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that it took.
    pub packets: u64,
    /// Packets that it had no room for, where that is counted.
    pub dropped: Option<u64>,
    /// Times that it was not done when its turn was over, where that is counted.
    pub squeezed: Option<u64>,
    /// Soft interrupts that received, where they are counted.
    pub soft_interrupts: Option<u64>,
}

impl Counters {
    fn since(self, earlier: Self) -> Self {
        let passed = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            packets: self.packets.saturating_sub(earlier.packets),
            dropped: passed(self.dropped, earlier.dropped),
            squeezed: passed(self.squeezed, earlier.squeezed),
            soft_interrupts: passed(self.soft_interrupts, earlier.soft_interrupts),
        }
    }
}

/// All places at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Where the counters come from.
    pub source: Source,
    /// What each place counted.
    pub counters: BTreeMap<Place, Counters>,
    /// Better sources, and why they tell nothing.
    pub missing: Vec<String>,
}

/// What happened between two readings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Usage {
    /// Where the counters come from.
    pub source: Source,
    /// The time between the readings, in seconds.
    pub seconds: f64,
    /// Each place, in order.
    pub places: Vec<PlaceUse>,
    /// How evenly packets were received, where any were.
    pub receive: Option<Balance>,
    /// How evenly packets were sent, where any were and that is counted.
    pub send: Option<Balance>,
    /// What the kernel does not tell, and why.
    pub missing: Vec<String>,
}

/// What one place did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlaceUse {
    /// The place.
    pub place: Place,
    /// Packets a second.
    pub pps: f64,
    /// Its share of what the places of its kind did, 0 to 1.
    pub share: f64,
    /// The cores that its interrupt or its thread may run on; empty where the kernel does not say.
    pub cores: Vec<usize>,
    /// Packets a second that it had no room for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped_pps: Option<f64>,
    /// Times a second that it was not done when its turn was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub squeezed_per_s: Option<f64>,
    /// Soft interrupts a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft_interrupts_per_s: Option<f64>,
}

/// How evenly packets are divided.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Balance {
    /// Packets a second, all places added up.
    pub pps: f64,
    /// The busiest place against the mean: max / mean − 1. 0 is even; n − 1 is all in one of n.
    pub imbalance: f64,
    /// The share of the ideal speed-up that is left when the busiest place limits the others:
    /// mean / max, the inverse of 1 + imbalance.
    pub efficiency: f64,
}

impl Balance {
    /// Of these rates; `None` where nothing happened.
    #[must_use]
    pub fn of(rates: &[f64]) -> Option<Self> {
        let sum: f64 = rates.iter().sum();
        let max = rates.iter().copied().fold(0.0, f64::max);
        let mean = sum / rates.len().max(1) as f64;
        (mean > 0.0).then(|| Self { pps: sum, imbalance: max / mean - 1.0, efficiency: mean / max })
    }
}

impl Reading {
    /// Reads the counters of the interface `name` with index `index`, of the calling thread's network
    /// namespace, from the best source that there is.
    ///
    /// # Errors
    /// When not even the cores' counters can be read, with the remedy.
    pub fn take(name: &str, index: u32) -> Result<Self, String> {
        let mut missing = Vec::new();
        match netdev::counters(index) {
            Ok(counters) => return Ok(Self { source: Source::Netdev, counters, missing }),
            Err(reason) => missing.push(format!("no counters of each queue from the kernel: {reason}")),
        }
        match ethtool::counters(name) {
            Ok(counters) => return Ok(Self { source: Source::Ethtool, counters, missing }),
            Err(reason) => missing.push(format!("no statistics of each queue from the driver: {reason}")),
        }
        let counters = softnet::counters()?;
        missing.push(format!("the cores' counters are not of {name} alone"));
        Ok(Self { source: Source::Softnet, counters, missing })
    }

    /// What happened since `earlier`, `seconds` ago; `cores` are those of each place. A place that
    /// was not there then has done nothing yet.
    #[must_use]
    pub fn since(&self, earlier: &Self, seconds: f64, cores: &BTreeMap<Place, Vec<usize>>) -> Usage {
        let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let passed = self.counters.iter().map(|(place, now)| {
            let then = earlier.counters.get(place).copied().unwrap_or(*now);
            (*place, now.since(then))
        });
        let passed: Vec<(Place, Counters)> = passed.collect();
        let beside = |place: Place| -> Vec<f64> {
            let beside = passed.iter().filter(|(other, _)| place.is_beside(*other));
            beside.map(|(_, counters)| rate(counters.packets)).collect()
        };
        let places = passed.iter().map(|(place, counters)| {
            let pps = rate(counters.packets);
            let sum: f64 = beside(*place).iter().sum();
            PlaceUse {
                place: *place,
                pps,
                share: if sum > 0.0 { pps / sum } else { 0.0 },
                cores: match place {
                    Place::Core(core) => vec![*core as usize],
                    _ => cores.get(place).cloned().unwrap_or_default(),
                },
                dropped_pps: counters.dropped.map(rate),
                squeezed_per_s: counters.squeezed.map(rate),
                soft_interrupts_per_s: counters.soft_interrupts.map(rate),
            }
        });
        let first = if self.source == Source::Softnet { Place::Core(0) } else { Place::Receive(0) };
        Usage {
            source: self.source,
            seconds,
            places: places.collect(),
            receive: Balance::of(&beside(first)),
            send: Balance::of(&beside(Place::Send(0))),
            missing: self.missing.clone(),
        }
    }
}

/// The cores that serve each queue of the interface with index `index`, of the calling thread's
/// network namespace; of queues that are left out the kernel does not say.
#[must_use]
pub fn cores(index: u32) -> BTreeMap<Place, Vec<usize>> {
    let Ok((queues, contexts)) = netdev::served_by(index) else { return BTreeMap::new() };
    let cores_of = |context: &netdev::Context| match (context.thread, context.interrupt) {
        (Some(thread), _) => cores::of_thread(thread),
        (None, Some(interrupt)) => cores::of_interrupt(interrupt),
        (None, None) => Vec::new(),
    };
    let queues = netdev::assign(&queues, &contexts);
    let served = queues.into_iter().map(|(place, context)| (place, cores_of(context)));
    served.filter(|(_, cores)| !cores.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading<const N: usize>(packets: [(Place, u64); N]) -> Reading {
        let counters =
            packets.map(|(place, packets)| (place, Counters { packets, ..Counters::default() })).into();
        Reading { source: Source::Netdev, counters, missing: Vec::new() }
    }

    #[test]
    fn the_balance_is_of_the_busiest_place() {
        let even = Balance::of(&[100.0; 8]).unwrap();
        assert_eq!((even.pps, even.imbalance, even.efficiency), (800.0, 0.0, 1.0));
        let one = Balance::of(&[0.0, 0.0, 300.0]).unwrap();
        assert!((one.imbalance - 2.0).abs() < 1e-12 && (one.efficiency - 1.0 / 3.0).abs() < 1e-12);
        // The first line of the tuning talk's tool: eight queues, about even.
        let talk = Balance::of(&[856e3, 862e3, 846e3, 843e3, 843e3, 843e3, 861e3, 854e3]).unwrap();
        assert!((talk.imbalance - 0.0129).abs() < 1e-4, "{talk:?}");
        assert_eq!(Balance::of(&[]), None);
        assert_eq!(Balance::of(&[0.0, 0.0]), None);
    }

    #[test]
    fn rates_are_by_the_time_that_passed_and_shares_within_a_kind() {
        let then = reading([(Place::Receive(0), 1_000), (Place::Receive(1), 5_000), (Place::Send(0), 7)]);
        let now = reading([
            (Place::Receive(0), 4_000),
            (Place::Receive(1), 6_000),
            (Place::Receive(2), 9_000), // new
            (Place::Send(0), 107),
        ]);
        let cores = [(Place::Receive(1), vec![3])].into();
        let usage = now.since(&then, 2.0, &cores);
        let figures: Vec<_> = usage.places.iter().map(|place| (place.pps, place.share)).collect();
        assert_eq!(figures, [(1_500.0, 0.75), (500.0, 0.25), (0.0, 0.0), (50.0, 1.0)]);
        assert_eq!(usage.places[1].cores, [3]);
        assert!((usage.receive.unwrap().imbalance - 1.25).abs() < 1e-12);
        assert_eq!(usage.send.unwrap().efficiency, 1.0);
        // Counters that were reset, and no time at all, are no rates.
        assert_eq!(then.since(&now, 1.0, &cores).places[0].pps, 0.0);
        assert!(now.since(&then, 0.0, &cores).receive.is_none());
    }

    #[test]
    fn the_loopback_is_read_from_some_source() {
        let index = nix::net::if_::if_nametoindex("lo").unwrap();
        let reading = Reading::take("lo", index).unwrap();
        assert_eq!(reading.source, Source::Softnet, "no driver counts its queues");
        assert_eq!(reading.missing.len(), 3, "{:?}", reading.missing);
        assert!(reading.counters.keys().all(|place| matches!(place, Place::Core(_))));
        assert!(!reading.counters.is_empty());
    }
}
