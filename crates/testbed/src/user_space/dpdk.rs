//! The tester's ports as ports of DPDK.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use engine::Engine;
use engine::dpdk::replay;
use engine::dpdk::{Dpdk, DpdkEngine};
use engine::listening::Listener;
use engine::replay::Carrier;
use engine::user_space::{Crew, room};
use memif::Socket;
use traffic::FrameTable;
use wording::usage::misuse;

use super::card::{self, is_card};
use super::link::{Link, Watch, arguments, counters, socket_of_a_cable};
use crate::port;

/// Bytes of the longest frame that is counted, without FCS: what any driver takes.
const LONGEST: usize = 1514;

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
        let devices = [0, 1].map(|number| device(number, "client", &sockets[number], longest));
        Ok(Self { dpdk: start(core, &[])?, devices })
    }

    /// Both ends of one memif, for frames of up to `longest` bytes.
    ///
    /// # Errors
    /// When DPDK does not start.
    pub fn of_a_cable(longest: usize, core: usize) -> Result<Self> {
        let socket = socket_of_a_cable();
        let devices =
            [(0, "server"), (1, "client")].map(|(number, role)| device(number, role, &socket, longest));
        Ok(Self { dpdk: start(core, &[])?, devices })
    }

    /// Those that the user names: drivers with their arguments, or cards. Interfaces of the kernel that this
    /// machine needs itself are refused unless `force` is 2 or more.
    ///
    /// # Errors
    /// When a port would take such an interface, a card cannot be used, or DPDK does not start.
    pub fn named(devices: [String; 2], core: usize, force: u8) -> Result<Self> {
        refuse_in_use(&devices, force)?;
        Ok(Self { dpdk: start(core, &devices)?, devices })
    }

    fn devices(&self) -> [&str; 2] {
        self.devices.each_ref().map(String::as_str)
    }
}

/// What DPDK calls the tester's end of a memif, for frames of up to `longest` bytes.
fn device(number: usize, role: &str, socket: &Socket, longest: usize) -> String {
    let socket = arguments(socket);
    format!("net_memif{number},role={role},id=0,bsize={},rsize=10,{socket}", room(longest))
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

/// Counts what arrives at `devices`, one port of DPDK or two, in frames of up to 1518 bytes, on `cores`. Interfaces of
/// the kernel that this machine needs itself are refused unless `force` is 2 or more.
///
/// # Errors
/// As [`Ports::named`], or when a port cannot be opened.
pub fn listen(devices: &[String], cores: &[usize], force: u8) -> Result<Box<dyn Listener>> {
    refuse_in_use(devices, force)?;
    let dpdk = start(cores.first().copied().unwrap_or_default(), devices)?;
    let names: Vec<&str> = devices.iter().map(String::as_str).collect();
    Ok(Box::new(engine::dpdk::listen(&dpdk, &names, LONGEST, cores)?))
}

/// Refuses devices that would take an interface which this machine needs itself.
fn refuse_in_use(devices: &[String], force: u8) -> Result<()> {
    let cards = Path::new(card::SYSFS);
    let taken: Vec<String> = devices.iter().flat_map(|device| interfaces(cards, device)).collect();
    let taken: Vec<&str> = taken.iter().map(String::as_str).collect();
    lab::refuse_names_in_use(&taken, force).map_err(port::refused)
}

/// What `device` may take of the kernel's interfaces: those of a card that the kernel shares, and whatever an
/// argument names, as in `iface=`, `tx_iface=` and `remote=`; not every name is one of an interface.
fn interfaces(cards: &Path, device: &str) -> Vec<String> {
    let mut names = if is_card(device) { card::interfaces(cards, device) } else { Vec::new() };
    // A driver's argument may be a device of its own, in brackets.
    let arguments = device.split([',', '(', ')']).filter_map(|part| part.split_once('='));
    names.extend(arguments.map(|(_, value)| value.trim().to_owned()));
    names
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_may_name_an_interface() {
        let names = |device: &str| interfaces(Path::new("/none/such"), device);
        assert_eq!(names("net_af_xdp0,iface=eth0,start_queue=1"), ["eth0", "1"]);
        assert_eq!(names("net_pcap0,rx_pcap=in.pcap,tx_iface=eth0"), ["in.pcap", "eth0"]);
        assert_eq!(names("net_failsafe0,dev(net_af_packet0,iface=eth0)"), ["eth0"]);
        assert!(names("net_null0").is_empty() && names("0000:01:00.0").is_empty());
    }
}
