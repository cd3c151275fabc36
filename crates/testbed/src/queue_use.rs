//! Which queues of the interfaces on the way the frames of a run take: readings before and after it
//! enter; what the record keeps leaves. [`Queues`] are those of an interface here or of a device elsewhere, without a run.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use explain::queues::{self, Place, Reading, Usage};
use nix::net::if_::if_nametoindex;
use remote::{Counted, Device, Ssh};
use results::record::{InterfaceQueues, QueueUse, Remote};
use wording::usage::misuse;

use crate::{Testbed, remote_device};

/// The readings before a run.
pub struct Before {
    at: Instant,
    readings: Vec<(&'static str, u32, Reading)>,
}

/// The interfaces of the lab's device.
const INTERFACES: [&str; 2] = ["dut0", "dut1"];

/// Reads the queues of the lab's device. Other devices' cannot be seen from here, but for what a
/// remote one counts itself.
pub fn before(testbed: &Testbed) -> Option<Before> {
    let readings = inside(testbed, || {
        let read = |name: &'static str| {
            let index = if_nametoindex(name).ok()?;
            Some((name, index, Reading::take(name, index).ok()?))
        };
        INTERFACES.into_iter().filter_map(read).collect()
    })?;
    Some(Before { at: Instant::now(), readings })
}

/// What happened since.
pub fn after(testbed: &Testbed, before: &Before) -> Vec<InterfaceQueues> {
    let seconds = before.at.elapsed().as_secs_f64();
    let used = inside(testbed, || {
        let used = |(name, index, then): &(&'static str, u32, Reading)| {
            let now = Reading::take(name, *index).ok().filter(|now| now.source == then.source)?;
            Some(kept(name, &now.since(then, seconds, &queues::cores(*index))))
        };
        before.readings.iter().filter_map(used).collect()
    });
    used.unwrap_or_default()
}

fn inside<T: Send>(testbed: &Testbed, work: impl FnOnce() -> T + Send) -> Option<T> {
    testbed.lab()?.dut_namespace().run(|| Ok(work())).ok()
}

fn kept(interface: &str, usage: &Usage) -> InterfaceQueues {
    let queue = |place: &queues::PlaceUse| QueueUse {
        place: place.place.to_string(),
        pps: place.pps,
        share: place.share,
        cores: place.cores.clone(),
        dropped_pps: place.dropped_pps,
    };
    InterfaceQueues {
        interface: interface.to_owned(),
        source: usage.source.to_string(),
        queues: usage.places.iter().map(queue).collect(),
        receive_imbalance: usage.receive.map(|balance| balance.imbalance),
        send_imbalance: usage.send.map(|balance| balance.imbalance),
    }
}

/// What the queues of a device on another computer, and its cores, took in between two readings.
pub fn of_remote(
    remote: &Remote,
    (before, after): (&Counted, &Counted),
    seconds: f64,
) -> Vec<InterfaceQueues> {
    let options = || remote.options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let (before, after) =
        (remote_device::readings(options(), before), remote_device::readings(options(), after));
    since(&before, &after, seconds, &BTreeMap::new()).iter().map(|(name, usage)| kept(name, usage)).collect()
}

/// What happened between readings of the same names and sources.
fn since(
    before: &[(String, Reading)],
    after: &[(String, Reading)],
    seconds: f64,
    cores: &BTreeMap<Place, Vec<usize>>,
) -> Vec<(String, Usage)> {
    let usage = |(name, now): &(String, Reading)| {
        let (_, then) = before.iter().find(|(known, then)| known == name && then.source == now.source)?;
        Some((name.clone(), now.since(then, seconds, cores)))
    };
    after.iter().filter_map(usage).collect()
}

/// Queues that can be read at any time.
pub enum Queues {
    /// Of an interface in the calling thread's network namespace.
    Here {
        /// Its name.
        interface: String,
        /// Its number.
        index: u32,
    },
    /// Of the ports of a device, and its cores.
    There(Box<Device<Ssh>>),
}

impl Queues {
    /// Those of `interface`.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn here(interface: &str) -> Result<Self> {
        let index = if_nametoindex(interface).map_err(|_| {
            misuse(format!("there is no interface '{interface}' here: `ip link` lists those there are"))
        })?;
        Ok(Self::Here { interface: interface.to_owned(), index })
    }

    /// Those of the device that ssh reaches at `host`, whose `driver` takes `options`. Nothing is changed there.
    ///
    /// # Errors
    /// What is wrong with the driver, the connection or the device, with the remedy.
    pub fn there(host: &str, driver: &str, options: &[(String, String)], sudo: bool) -> Result<Self> {
        let plan = remote_device::plan(driver, options, None)?;
        Ok(Self::There(Box::new(Device::check(Ssh::connect(host, sudo)?, plan)?)))
    }

    /// What they took in so far, by the names of their interfaces; `cores` are the device's.
    ///
    /// # Errors
    /// When nobody tells, or the connection is lost.
    pub fn read(&mut self) -> Result<Vec<(String, Reading)>> {
        match self {
            Self::Here { interface, index } => {
                let reading = Reading::take(interface, *index).map_err(|reason| anyhow!(reason))?;
                Ok(vec![(interface.clone(), reading)])
            }
            Self::There(device) => {
                let counted = device.counters()?;
                let readings = remote_device::readings(device.plan().values(), &counted);
                if readings.is_empty() {
                    bail!(
                        "{}: its driver tells neither what its queues nor what its cores took in",
                        device.host()
                    );
                }
                Ok(readings)
            }
        }
    }

    /// What happened in so many `seconds` between two readings. What is read from another source than before, as when a
    /// driver was reset, is left out.
    #[must_use]
    pub fn since(
        &self,
        before: &[(String, Reading)],
        after: &[(String, Reading)],
        seconds: f64,
    ) -> Vec<(String, Usage)> {
        let cores = if let Self::Here { index, .. } = self { queues::cores(*index) } else { BTreeMap::new() };
        since(before, after, seconds, &cores)
    }
}
