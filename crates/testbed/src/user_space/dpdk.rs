//! The tester's ports as ports of DPDK.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use engine::Engine;
use engine::dpdk::replay;
use engine::dpdk::{Dpdk, DpdkEngine};
use engine::replay::Carrier;
use engine::user_space::{Crew, room};
use memif::Socket;
use traffic::FrameTable;
use wording::usage::misuse;

use super::card::{self, is_card};
use super::link::{Link, Watch, arguments, counters};

/// Two ports.
pub struct Ports {
    dpdk: Arc<Dpdk>,
    devices: [String; 2],
}

impl Ports {
    /// The other ends of those who listen at `sockets`, for frames of up to `longest` bytes.
    ///
    /// # Errors
    /// When DPDK does not start.
    pub fn to(sockets: &[Socket; 2], longest: usize, core: usize) -> Result<Self> {
        let device = |number: usize| {
            let socket = arguments(&sockets[number]);
            format!("net_memif{number},role=client,id=0,bsize={},rsize=10,{socket}", room(longest))
        };
        Ok(Self { dpdk: start(core, &[])?, devices: [device(0), device(1)] })
    }

    /// Those that the user names: drivers with their arguments, or cards.
    ///
    /// # Errors
    /// When a card cannot be used, or DPDK does not start.
    pub fn named(devices: [String; 2], core: usize) -> Result<Self> {
        Ok(Self { dpdk: start(core, &devices)?, devices })
    }

    fn devices(&self) -> [&str; 2] {
        self.devices.each_ref().map(String::as_str)
    }
}

impl Link for Ports {
    fn start_engine(
        &self,
        table: &FrameTable,
        [send_cores, receive_cores]: [&[usize]; 2],
        stop: &Arc<AtomicBool>,
    ) -> Result<(Box<dyn Engine>, Watch)> {
        let crew = Crew { send_cores, receive_cores, table, stop: Arc::clone(stop) };
        let engine = DpdkEngine::start(&self.dpdk, self.devices(), &crew)?;
        let watch = engine.watch();
        Ok((Box::new(engine), Box::new(move || Ok(watch.read()?.map(|ports| ports.map(counters))))))
    }

    fn carrier(&self, longest: usize) -> Result<Box<dyn Carrier>> {
        Ok(Box::new(replay::carrier(&self.dpdk, self.devices(), longest)?))
    }

    fn devices(&self) -> &[String; 2] {
        &self.devices
    }
}

/// DPDK, which is started once in the life of a process, for the cards among `devices` of then; what it does
/// beside runs on `core`.
///
/// # Errors
/// When a card cannot be used, or DPDK does not start.
pub fn start(core: usize, devices: &[String]) -> Result<Arc<Dpdk>> {
    static STARTED: Mutex<Option<(Vec<String>, Arc<Dpdk>)>> = Mutex::new(None);
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let cards: Vec<String> = devices.iter().filter(|device| is_card(device)).cloned().collect();
    if let Some(refusal) = cards.iter().find_map(|card| card::refusal(Path::new(card::SYSFS), card)) {
        return Err(misuse(refusal));
    }
    if let Some((known, dpdk)) = &*started {
        if cards.iter().all(|card| known.contains(card)) {
            return Ok(Arc::clone(dpdk));
        }
        return Err(misuse("DPDK was started for other cards: run this apart, by a command of its own"));
    }
    let (dpdk, _) = engine::dpdk::start(core, &cards)?;
    *started = Some((cards, Arc::clone(&dpdk)));
    Ok(dpdk)
}
