//! Ports of DPDK and what is between them: the device flags enter, two ports that an engine can open
//! leave, with a device of ours between them where that is asked for.

mod card;
mod counters;
mod dut;
pub mod fastpath;
pub mod forward;
mod private;
mod testpmd;
mod vpp;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use engine::Engine;
use engine::dpdk::replay::Ports;
use engine::dpdk::{Config, Dpdk, DpdkEngine, MAX_FRAME, PortCounted, PortsWatch};
use engine::replay::Carrier;
use lab::dut::Passed;
use lab::{InterfaceCounters, NapiThread, Placement, Port};
use results::record::{self, NodeRuntimes};
use traffic::FrameTable;
use wire::MacAddress;

use crate::args::{Device, misuse};
use crate::bench::is_installed;
use card::is_card;
use dut::{Dut, Paused, Site};

/// Two ports of DPDK, not yet open, and the device between them if it is ours.
pub struct UserSpace {
    ports: [Port; 2],
    devices: [String; 2],
    dpdk: Arc<Dpdk>,
    dut: Option<Dut>,
    /// The cores that receive, where they are not those that send.
    receive_cores: Vec<usize>,
    /// The ports of the engine that was started last.
    watch: RefCell<Option<PortsWatch>>,
    /// Where a device of ours is.
    site: Site,
}

/// A device without rules in the place of the one under test, which is held up meanwhile.
pub struct Cable<'a> {
    // Before the other goes on.
    device: Dut,
    _paused: Paused,
    of: &'a UserSpace,
}

/// Bytes of a frame that an MTU does not count.
const OVERHEAD: usize = 18;

impl UserSpace {
    /// Starts DPDK, and the device where it is ours; frames of up to `max_frame_size` bytes fit.
    pub fn open(device: &Device, placement: &Placement, max_frame_size: usize) -> Result<Self> {
        if device.ports.is_some() {
            return Err(misuse(
                "--ports are interfaces of the kernel: with --engine dpdk give --port0 and --port1",
            ));
        }
        let named = device.port0.clone().zip(device.port1.clone());
        let core = placement.generate.first().copied().unwrap_or_default();
        let site = Site {
            core: placement.dut,
            spare: spare(placement)?,
            // As many of each port as the engine opens.
            queues: placement.generate.len().max(placement.receive_cores.len()),
            max_frame_size,
        };
        let (devices, dut, dpdk) = match (named, &device.dut) {
            (Some((zero, one)), _) => {
                let devices = [zero, one];
                let dpdk = dpdk(core, &devices)?;
                (devices, None, dpdk)
            }
            (None, Some(spec)) => {
                let dut = Dut::start(spec, &site, [mac(0), mac(1)])?;
                (dut.other_ends(), Some(dut), dpdk(core, &[])?)
            }
            (None, None) => {
                return Err(misuse(
                    "--engine dpdk has ports of its own: give --port0 and --port1, or --dut calibrated, \
                     testpmd, vpp or fastpath",
                ));
            }
        };
        let next_hops = next_hops(device)?.or(dut.as_ref().and_then(Dut::next_hops));
        let ports = [0, 1].map(|number| port(number, &devices[usize::from(number)], next_hops));
        Ok(Self {
            ports,
            devices,
            dpdk,
            dut,
            receive_cores: placement.receive_cores.clone(),
            watch: RefCell::default(),
            site,
        })
    }

    /// The ports, as far as they are known before they are open.
    pub fn ports(&self) -> &[Port; 2] {
        &self.ports
    }

    /// DPDK, started.
    pub fn dpdk(&self) -> &Arc<Dpdk> {
        &self.dpdk
    }

    /// The devices that are the ports.
    pub fn devices(&self) -> &[String; 2] {
        &self.devices
    }

    /// An idle engine that sends `table` between the ports, on `cores`.
    pub fn start_engine(
        &self,
        table: &FrameTable,
        cores: &[usize],
        stop: &Arc<AtomicBool>,
    ) -> Result<Box<dyn Engine>> {
        self.engine_over(&self.devices, table, cores, stop)
    }

    fn engine_over(
        &self,
        [zero, one]: &[String; 2],
        table: &FrameTable,
        cores: &[usize],
        stop: &Arc<AtomicBool>,
    ) -> Result<Box<dyn Engine>> {
        let engine = DpdkEngine::start(&Config {
            dpdk: &self.dpdk,
            devices: [zero, one],
            send_cores: cores,
            receive_cores: &self.receive_cores,
            table,
            stop: Arc::clone(stop),
        })?;
        *self.watch.borrow_mut() = Some(engine.watch());
        Ok(Box::new(engine))
    }

    /// What was counted at the two ports of the engine that runs, and at a device of ours if it counts.
    pub fn interface_counters(&self) -> Result<Vec<InterfaceCounters>> {
        let Some(ports) = self.watch.borrow().as_ref().map(PortsWatch::read).transpose()?.flatten() else {
            return Ok(Vec::new());
        };
        let port = |port: PortCounted| InterfaceCounters {
            name: port.name,
            received: port.received,
            receive_dropped: port.receive_dropped,
            sent: port.sent,
            send_dropped: port.send_dropped,
        };
        let device = self.dut.as_ref().map(Dut::counters).transpose()?;
        Ok(ports.map(port).into_iter().chain(device.into_iter().flatten()).collect())
    }

    /// Puts what comes nearest to a cable in the place of the device, as long as the result lives; `None`
    /// where the device is not ours.
    pub fn cable(&self) -> Result<Option<Cable<'_>>> {
        let Some(dut) = &self.dut else { return Ok(None) };
        let paused = dut.pause();
        let device = Dut::start(&"calibrated".parse()?, &self.site, [mac(0), mac(1)])?;
        Ok(Some(Cable { device, _paused: paused, of: self }))
    }

    /// Whether the device is ours.
    pub fn has_own_dut(&self) -> bool {
        self.dut.is_some()
    }

    /// The threads of a device of ours.
    pub fn dut_threads(&self) -> Vec<NapiThread> {
        self.dut.as_ref().map(Dut::threads).unwrap_or_default()
    }

    /// What the nodes of a device of ours have done since it started, if it is a graph of them.
    pub fn nodes(&self) -> Result<NodeRuntimes> {
        self.dut.as_ref().map_or_else(|| Ok(NodeRuntimes::new()), Dut::nodes)
    }

    /// What a device of ours counted, if it counts: entered at port 0, entered at port 1.
    pub fn counted(&self) -> Option<[Passed; 2]> {
        self.dut.as_ref()?.counted()
    }

    /// What the tester's ceiling depends on, in words: its ports, but not what they are called.
    pub fn kind_of_ports(&self) -> String {
        match self.dut {
            Some(_) => format!("memif, frames of up to {} bytes", self.site.max_frame_size),
            None => self.devices.join(" and "),
        }
    }

    /// The ports for frames as they are, of up to `longest` bytes without FCS.
    pub fn carrier(&self, longest: usize) -> Result<Box<dyn Carrier>> {
        let [zero, one] = &self.devices;
        Ok(Box::new(Ports::open(&self.dpdk, [zero, one], longest)?))
    }

    /// What the device is called.
    pub fn dut_name(&self) -> &str {
        self.dut.as_ref().map_or("ports", Dut::name)
    }

    /// The device, for the record.
    pub fn describe_dut(&self) -> record::Dut {
        let text = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        record::Dut {
            name: self.dut_name().to_owned(),
            parameters: self.dut.as_ref().map(|dut| dut.parameters().clone()).unwrap_or_default(),
            configuration: match &self.dut {
                Some(dut) => dut.configuration().clone(),
                None => text(&[("port 0", &self.devices[0]), ("port 1", &self.devices[1])]),
            },
            core: self.dut.as_ref().map(|_| self.site.core),
            remote: None,
        }
    }
}

impl Cable<'_> {
    /// As [`UserSpace::start_engine`]. It is to be dropped before the cable.
    pub fn start_engine(
        &self,
        table: &FrameTable,
        cores: &[usize],
        stop: &Arc<AtomicBool>,
    ) -> Result<Box<dyn Engine>> {
        self.of.engine_over(&self.device.other_ends(), table, cores, stop)
    }
}

/// DPDK, which is started once in the life of a process, for the cards among `devices` of then.
fn dpdk(core: usize, devices: &[String]) -> Result<Arc<Dpdk>> {
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

/// A core that neither the tester nor a device of ours needs.
fn spare(placement: &Placement) -> Result<Option<usize>> {
    let Placement { generate, receive_cores, dut, .. } = placement;
    let online = lab::placement::online().map_err(lab::Error::from)?;
    Ok(online
        .into_iter()
        .find(|core| core != dut && !generate.contains(core) && !receive_cores.contains(core)))
}

/// The device's own addresses at port 0 and port 1, where it is a router.
fn next_hops(device: &Device) -> Result<Option<[MacAddress; 2]>> {
    match device.gateway_macs.as_deref() {
        None => Ok(None),
        Some([zero, one]) => Ok(Some([*zero, *one])),
        Some(_) => Err(misuse("--gateway-macs takes two addresses, the device's at port 0 and at port 1")),
    }
}

/// The address of the tester's port `number`.
fn mac(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, number, 1])
}

/// What is known of the port that `device` names. Its own address is ours to choose, since ports receive
/// what is addressed to anyone. Frames go to the device at `next_hops`, or to the other port: what is no
/// router looks at no addresses, or swaps them.
fn port(number: u8, device: &str, next_hops: Option<[MacAddress; 2]>) -> Port {
    let name = device.split(',').next().unwrap_or_default();
    let driver = name.trim_end_matches(|last: char| last.is_ascii_digit());
    Port {
        name: name.to_owned(),
        ifindex: 0,
        mac: mac(number),
        mtu: (MAX_FRAME - OVERHEAD) as u32,
        speed_bps: None,
        driver: (!is_card(name)).then(|| driver.to_owned()),
        next_hop_mac: next_hops.map_or(mac(1 - number), |hops| hops[usize::from(number)]),
    }
}

/// What keeps a load test by DPDK from being run, through the device `dut` or between ports of the user's.
pub fn refusal(dut: Option<&str>) -> Option<String> {
    match dut?.split(':').next()? {
        testpmd::NAME if !is_installed(testpmd::EXECUTABLE) => {
            Some(format!("{} is not installed; install it (Debian's package dpdk-dev)", testpmd::EXECUTABLE))
        }
        vpp::NAME => vpp::refusal(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_named_after_its_device() {
        let hops = [MacAddress([6; 6]), MacAddress([7; 6])];
        assert_eq!(port(1, "0000:01:00.0", Some(hops)).next_hop_mac, hops[1]);
        let port = port(1, "net_memif12,role=client", None);
        assert_eq!((port.name.as_str(), port.driver.as_deref()), ("net_memif12", Some("net_memif")));
        assert_ne!(port.mac, port.next_hop_mac);
    }
}
