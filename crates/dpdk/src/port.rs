//! A port: a device's name enters, a port that can be started leaves, and what it says of itself.

use std::ffi::{CStr, CString};
use std::sync::{Arc, OnceLock, PoisonError, Weak};

use crate::af_xdp;
use crate::environment::Dpdk;
use crate::error::Error;
use crate::pool::Pool;
use crate::queue::{Queues, RxQueue, TxQueue};
pub use crate::running::Link;
use crate::running::{COMING_AND_GOING, Running};
use crate::shim;

/// What a port is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its driver, as in `net_memif`.
    pub driver: String,
    /// Its name, as in `net_memif0`.
    pub name: String,
    /// Its address.
    pub mac: [u8; 6],
    /// Most receive queues.
    pub rx_queues: usize,
    /// Most transmit queues.
    pub tx_queues: usize,
    /// Bytes that a frame carries now, without Ethernet header and FCS.
    pub mtu: u16,
    /// The longest frame that it could carry, FCS included; `None` where it does not say.
    pub max_frame: Option<usize>,
    /// The processor it is at, where that is known.
    pub socket: Option<i32>,
}

/// How a port runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Receive queues, among which arriving flows are spread by addresses and ports.
    pub rx_queues: usize,
    /// Transmit queues.
    pub tx_queues: usize,
    /// Places of each queue; the driver may have others.
    pub descriptors: u16,
    /// The longest frame, without FCS.
    pub max_frame: u16,
}

/// What a port counted since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames that arrived.
    pub received: u64,
    /// Frames that left.
    pub sent: u64,
    /// Bytes of the former.
    pub received_bytes: u64,
    /// Bytes of the latter.
    pub sent_bytes: u64,
    /// Frames for which the receive queue had no room.
    pub missed: u64,
    /// Frames that arrived broken.
    pub receive_errors: u64,
    /// Frames that could not be sent.
    pub send_errors: u64,
    /// Frames for which there was no buffer.
    pub no_buffer: u64,
}

/// One of the further counters that a driver has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The driver's name for it.
    pub name: String,
    /// Since the port started.
    pub value: u64,
}

/// Bytes of a frame that its MTU does not count, but for the FCS.
const HEADER: u16 = 14;
/// The FCS.
const FCS: usize = 4;
/// Drivers that state a length, and carry whatever fits their buffers.
const UNBOUNDED: [&str; 3] = ["net_memif", "net_null", "net_ring"];

/// A port, which stops and is forgotten with the last of its queues.
#[derive(Debug)]
pub struct Port(Arc<Running>);

/// A port seen from beside, which does not keep it.
#[derive(Clone, Debug)]
pub struct Watch(Weak<Running>);

impl Watch {
    /// As [`Port::facts`]'s name and [`Port::stats`]; `None` once the port is gone.
    ///
    /// # Errors
    /// [`Error::Port`] when the driver does not say.
    pub fn stats(&self) -> Option<Result<(String, Stats), Error>> {
        let port = Port(self.0.upgrade()?);
        Some(port.stats().map(|stats| (port.0.name.clone(), stats)))
    }
}

impl Port {
    /// Makes the device known that `device` names: a driver with its arguments
    /// (`net_memif0,role=server,…`) or the PCI address of a card that DPDK was started with.
    ///
    /// # Errors
    /// [`Error::Device`] when there is no such device or driver, or it refuses its arguments.
    pub fn probe(dpdk: &Arc<Dpdk>, device: &str) -> Result<Self, Error> {
        let text = CString::new(device).map_err(|_| Error::Text(device.to_owned()))?;
        let _alone = COMING_AND_GOING.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: DPDK is started and the text outlives the call.
        let number = dpdk
            .listen(|| unsafe { shim::linerate_probe(text.as_ptr()) })
            .map_err(|(cause, said)| Error::Device { device: device.to_owned(), cause, said })?;
        let name = device.split(',').next().unwrap_or_default().to_owned();
        let interface = af_xdp::interface(device).map(str::to_owned);
        let (number, dpdk, program) = (number as u16, Arc::clone(dpdk), OnceLock::new());
        Ok(Self(Arc::new(Running { number, name, dpdk, interface, program })))
    }

    /// What the port is.
    ///
    /// # Errors
    /// [`Error::Port`] when the driver does not say.
    pub fn facts(&self) -> Result<Facts, Error> {
        // SAFETY: the struct holds only numbers and texts, for which zero is valid.
        let mut facts: shim::linerate_facts = unsafe { std::mem::zeroed() };
        // SAFETY: the port exists and `facts` can be written.
        self.0.ask("questions", || unsafe { shim::linerate_facts(self.0.number, &raw mut facts) })?;
        Ok(Facts {
            driver: text(&facts.driver),
            name: text(&facts.name),
            mac: facts.mac,
            rx_queues: usize::from(facts.rx_queues),
            tx_queues: usize::from(facts.tx_queues),
            mtu: facts.mtu,
            max_frame: max_frame(&facts),
            socket: Some(facts.socket).filter(|socket| *socket >= 0),
        })
    }

    /// Starts the port. What arrives is kept in `pool`; all of it is received, to whom it may be
    /// addressed, where the driver can do that.
    ///
    /// # Errors
    /// [`Error::TooMany`] queues, or [`Error::Port`] when the driver refuses a setting.
    pub fn start(&mut self, config: &PortConfig, pool: &Pool) -> Result<Queues, Error> {
        let facts = self.facts()?;
        let too_many = |what, most, asked| Error::TooMany { port: self.0.name.clone(), what, most, asked };
        if config.rx_queues > facts.rx_queues {
            return Err(too_many("receive queues", facts.rx_queues, config.rx_queues));
        }
        if config.tx_queues > facts.tx_queues {
            return Err(too_many("transmit queues", facts.tx_queues, config.tx_queues));
        }
        let (port, rx, tx) = (self.0.number, config.rx_queues as u16, config.tx_queues as u16);
        let asked = usize::from(config.max_frame) + FCS;
        if let Some(most) = facts.max_frame.filter(|most| asked > *most) {
            return Err(too_many("bytes for a frame", most, asked));
        }
        // A driver that does not say how much it could carry has no use for the number either.
        let wanted = config.max_frame.saturating_sub(HEADER);
        let mtu = if facts.max_frame.is_none() { facts.mtu } else { wanted.max(facts.mtu) };
        let running = &self.0;
        // SAFETY: the port exists and does not run yet.
        let configure = || unsafe { shim::linerate_configure(port, rx, tx, mtu) };
        running.ask("its numbers of queues", configure)?;
        for queue in 0..rx {
            // SAFETY: as above, and the pool outlives the queue, which holds it.
            running.ask("a receive queue", || unsafe {
                shim::linerate_rx_queue(port, queue, config.descriptors, pool.pointer())
            })?;
        }
        for queue in 0..tx {
            // SAFETY: as above.
            running.ask("a transmit queue", || unsafe {
                shim::linerate_tx_queue(port, queue, config.descriptors)
            })?;
        }
        // SAFETY: the port is set up.
        running.ask("to start", || unsafe { shim::linerate_port_start(port) })?;
        running.hold_program()?;
        // SAFETY: the port runs. Drivers of virtual devices have no filter to switch off.
        let _ = running.ask("all frames", || unsafe { shim::linerate_promiscuous(port) });
        let receive = |index| RxQueue { port: Arc::clone(running), index, _pool: pool.clone() };
        let send = |index| TxQueue { port: Arc::clone(running), index };
        Ok(Queues { receive: (0..rx).map(receive).collect(), send: (0..tx).map(send).collect() })
    }

    /// The link as it is now; `None` where the driver does not say.
    #[must_use]
    pub fn link(&self) -> Option<Link> {
        self.0.link()
    }

    /// What it is called, as in `net_memif0`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The same port from beside.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch(Arc::downgrade(&self.0))
    }

    /// What it counted.
    ///
    /// # Errors
    /// [`Error::Port`] when the driver does not say.
    pub fn stats(&self) -> Result<Stats, Error> {
        // SAFETY: the struct holds only numbers, for which zero is valid.
        let mut stats: shim::linerate_stats = unsafe { std::mem::zeroed() };
        // SAFETY: the port exists and `stats` can be written.
        self.0.ask("its counters", || unsafe { shim::linerate_stats(self.0.number, &raw mut stats) })?;
        Ok(Stats {
            received: stats.received,
            sent: stats.sent,
            received_bytes: stats.received_bytes,
            sent_bytes: stats.sent_bytes,
            missed: stats.missed,
            receive_errors: stats.receive_errors,
            send_errors: stats.send_errors,
            no_buffer: stats.no_mbuf,
        })
    }

    /// What else the driver counted.
    ///
    /// # Errors
    /// [`Error::Port`] when the driver does not say.
    pub fn counters(&self) -> Result<Vec<Counter>, Error> {
        let mut counters: Vec<shim::linerate_counter> = Vec::new();
        loop {
            let room = counters.len() as u32;
            // SAFETY: the port exists, and there are `room` places.
            let count = self.0.ask("its further counters", || unsafe {
                shim::linerate_counters(self.0.number, counters.as_mut_ptr(), room)
            })? as usize;
            if count <= counters.len() {
                counters.truncate(count);
                let counters = counters.iter();
                return Ok(counters.map(|c| Counter { name: text(&c.name), value: c.value }).collect());
            }
            // SAFETY: the struct holds only numbers and text, for which zero is valid.
            counters.resize_with(count, || unsafe { std::mem::zeroed() });
        }
    }
}

/// The longest frame, FCS included, by what the driver says of frames and of MTUs.
fn max_frame(facts: &shim::linerate_facts) -> Option<usize> {
    if UNBOUNDED.contains(&text(&facts.driver).as_str()) {
        return None;
    }
    let by_mtu = usize::from(facts.max_mtu) + usize::from(HEADER) + FCS;
    let bounds =
        [(facts.max_mtu > 0).then_some(by_mtu), (facts.max_frame > 0).then_some(facts.max_frame as usize)];
    bounds.into_iter().flatten().min()
}

/// A text that ends in zero.
fn text(bytes: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = bytes.iter().map(|byte| byte.cast_unsigned()).collect();
    CStr::from_bytes_until_nul(&bytes).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}
