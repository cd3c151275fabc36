//! The two ports of a real testbed: their names enter; interfaces whose links are up leave.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use lab::{PortsError, RealPorts};

use crate::port;
use crate::target::Ports;

/// The ports, whose links may take so long to come up.
pub fn open(ports: &Ports, patience: Duration) -> Result<RealPorts> {
    let names = ports.names.each_ref().map(String::as_str);
    let gateways = ports.gateways.map_or([None; 2], |gateways| gateways.map(Some));
    let deadline = Instant::now() + patience;
    loop {
        match RealPorts::open(names, gateways, ports.force) {
            Err(lab::Error::Ports(PortsError::NoCarrier(_))) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(100));
            }
            opened => return opened.map_err(port::refused),
        }
    }
}
