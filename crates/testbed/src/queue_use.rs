//! Which queues of the interfaces on the way the frames of a run take: readings before and after it
//! enter; what the record keeps leaves.

use std::time::Instant;

use explain::queues::{self, Reading, Usage};
use nix::net::if_::if_nametoindex;
use results::record::{InterfaceQueues, QueueUse};

use crate::Testbed;

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
