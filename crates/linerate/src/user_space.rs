//! Ports of DPDK and what is between them: the device flags enter, two ports that an engine can open
//! leave, with testpmd between them where that is the device.

mod testpmd;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use engine::Engine;
use engine::dpdk::{Config, Dpdk, DpdkEngine, MAX_FRAME, PortCounted, PortsWatch};
use lab::{InterfaceCounters, Placement, Port};
use results::record;
use traffic::FrameTable;
use wire::MacAddress;

use crate::args::{Device, misuse};
use testpmd::Testpmd;

/// Two ports of DPDK, not yet open, and the device between them if it is ours.
pub struct UserSpace {
    ports: [Port; 2],
    devices: [String; 2],
    dpdk: Arc<Dpdk>,
    dut: Option<Testpmd>,
    /// The cores that receive, where they are not those that send.
    receive_cores: Vec<usize>,
    /// The ports of the engine that was started last.
    watch: RefCell<Option<PortsWatch>>,
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
        let mode = match (&named, &device.dut) {
            (Some(_), _) => None,
            (None, Some(dut)) if dut.name() == "testpmd" => {
                Some(dut.parameters().get("mode").map_or("io", String::as_str).to_owned())
            }
            (None, _) => {
                return Err(misuse(
                    "--engine dpdk has ports of its own: give --port0 and --port1, or --dut testpmd",
                ));
            }
        };
        let cores = placement.generate.first().copied().unwrap_or_default();
        let cards: Vec<String> =
            named.iter().flat_map(|(zero, one)| [zero, one]).filter(|name| is_card(name)).cloned().collect();
        let (dpdk, _) = engine::dpdk::start(cores, &cards)?;
        let (devices, dut) = match (named, mode) {
            (Some((zero, one)), _) => ([zero, one], None),
            (None, mode) => {
                // As many of each port as the engine opens.
                let queues = placement.generate.len().max(placement.receive_cores.len());
                let dut = Testpmd::start(&mode.unwrap_or_default(), placement.dut, queues, max_frame_size)?;
                (dut.other_ends(), Some(dut))
            }
        };
        let receive_cores = placement.receive_cores.clone();
        let ports = [port(0, &devices[0]), port(1, &devices[1])];
        Ok(Self { ports, devices, dpdk, dut, receive_cores, watch: RefCell::default() })
    }

    /// The ports, as far as they are known before they are open.
    pub fn ports(&self) -> &[Port; 2] {
        &self.ports
    }

    /// An idle engine that sends `table` between the ports, on `cores`.
    pub fn start_engine(
        &self,
        table: &FrameTable,
        cores: &[usize],
        stop: &Arc<AtomicBool>,
    ) -> Result<Box<dyn Engine>> {
        let [zero, one] = &self.devices;
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
        let device = self.dut.as_ref().map(Testpmd::counters).transpose()?;
        Ok(ports.map(port).into_iter().chain(device.into_iter().flatten()).collect())
    }

    /// What the device is called.
    pub fn dut_name(&self) -> &str {
        if self.dut.is_some() { "testpmd" } else { "ports" }
    }

    /// The device, for the record; `core` is the one for a device of ours.
    pub fn describe_dut(&self, core: usize) -> record::Dut {
        let text = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        record::Dut {
            name: self.dut_name().to_owned(),
            parameters: self.dut.as_ref().map(|dut| text(&[("mode", dut.mode())])).unwrap_or_default(),
            configuration: match &self.dut {
                Some(dut) => text(&[("command", dut.command())]),
                None => text(&[("port 0", &self.devices[0]), ("port 1", &self.devices[1])]),
            },
            core: self.dut.as_ref().map(|_| core),
            remote: None,
        }
    }
}

/// What is known of the port that `device` names. Its addresses are ours to choose: a device in user
/// space looks at none, or swaps them.
fn port(number: u8, device: &str) -> Port {
    let mac = |number| MacAddress([2, 0, 0, 0, number, 1]);
    let name = device.split(',').next().unwrap_or_default();
    let driver = name.trim_end_matches(|last: char| last.is_ascii_digit());
    Port {
        name: name.to_owned(),
        ifindex: 0,
        mac: mac(number),
        mtu: (MAX_FRAME - OVERHEAD) as u32,
        speed_bps: None,
        driver: (!is_card(name)).then(|| driver.to_owned()),
        next_hop_mac: mac(1 - number),
    }
}

/// Whether `device` is a PCI address, as in 0000:01:00.0.
fn is_card(device: &str) -> bool {
    let address = device.split(',').next().unwrap_or_default();
    address.contains(':') && address.chars().all(|c| c.is_ascii_hexdigit() || c == ':' || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_told_from_drivers() {
        assert!(is_card("0000:01:00.0") && is_card("01:00.1,arg=1"));
        assert!(!is_card("net_memif0,socket=/a:b") && !is_card("net_null0"));
    }

    #[test]
    fn a_port_is_named_after_its_device() {
        let port = port(1, "net_memif12,role=client");
        assert_eq!((port.name.as_str(), port.driver.as_deref()), ("net_memif12", Some("net_memif")));
        assert_ne!(port.mac, port.next_hop_mac);
    }
}
