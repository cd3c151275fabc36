//! Starts DPDK with what the machine has, and opens ports.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dpdk::{Config, Dpdk, Memory, Pool, Port, PortConfig, Queues};

use crate::Error;

/// What all pools of a run need at most, in MiB.
const MEBIBYTES: u32 = 512;
/// Places of each queue that a driver is asked for.
const DESCRIPTORS: u16 = 1024;
/// How long the other end of a port may take to appear.
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts DPDK, once in a process: on hugepages where enough are free, else in ordinary memory,
/// which network cards (`cards`, PCI addresses) cannot do with. What it does beside moving frames
/// runs on `core`.
///
/// # Errors
/// [`Error::Failed`] when DPDK does not start, [`Error::Refused`] when cards have no hugepages.
pub fn start(core: usize, cards: &[String]) -> Result<(Arc<Dpdk>, Memory), Error> {
    let memory = Memory::choose(MEBIBYTES, cards)?;
    Ok((Dpdk::start(&Config { core, memory, cards: cards.to_vec() })?, memory))
}

/// A port that runs.
#[derive(Debug)]
pub struct Opened {
    /// Its queues.
    pub queues: Queues,
    /// The port.
    pub port: Port,
}

impl Opened {
    /// Opens `device` and starts it.
    ///
    /// # Errors
    /// When there is no such device, or it refuses a setting.
    pub fn new(dpdk: &Arc<Dpdk>, device: &str, config: &PortConfig, pool: &Pool) -> Result<Self, Error> {
        let mut port = Port::probe(dpdk, device)?;
        let queues = port.start(config, pool)?;
        Ok(Self { queues, port })
    }
}

/// Waits until the links of all `ports` are up.
///
/// # Errors
/// [`Error::Port`] when one stays down.
pub fn wait_for_links<'a>(ports: impl IntoIterator<Item = &'a Opened>) -> Result<(), Error> {
    let deadline = Instant::now() + PATIENCE;
    for opened in ports {
        while !opened.port.link().is_none_or(|link| link.up) {
            if Instant::now() > deadline {
                let name = opened.port.facts().map_or_else(|_| "?".to_owned(), |facts| facts.name);
                return Err(Error::Port(format!(
                    "the link of port {name} stays down: is its other end there, and does it use the same socket?"
                )));
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
    Ok(())
}

/// A port with so many queues each way, for frames of up to `longest` bytes, without FCS.
#[must_use]
pub fn port_config(queues: usize, longest: usize) -> PortConfig {
    PortConfig { rx_queues: queues, tx_queues: queues, descriptors: DESCRIPTORS, max_frame: longest as u16 }
}
