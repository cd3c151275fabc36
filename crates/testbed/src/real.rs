//! The two ports of a real testbed: the device flags enter; interfaces whose links are up leave.

use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use lab::{PortsError, RealPorts};
use wording::usage::misuse;

use crate::port;
use crate::target::Target;

/// The two interfaces of `--ports`.
pub fn two(ports: &[String]) -> Result<[&str; 2]> {
    match ports {
        [zero, one] => Ok([zero, one]),
        _ => Err(misuse("--ports takes two interfaces, as in --ports eth1,eth2")),
    }
}

/// The device's own addresses at the ports, where they are given.
pub fn gateways(device: &Target) -> Result<[Option<IpAddr>; 2]> {
    match device.gateways.as_deref() {
        None => Ok([None, None]),
        Some([zero, one]) => Ok([Some(*zero), Some(*one)]),
        Some(_) => Err(misuse("--gateways takes two addresses, the device's at port 0 and at port 1")),
    }
}

/// The ports, whose links may take so long to come up.
pub fn open(
    names: [&str; 2],
    gateways: [Option<IpAddr>; 2],
    force: u8,
    patience: Duration,
) -> Result<RealPorts> {
    let deadline = Instant::now() + patience;
    loop {
        match RealPorts::open(names, gateways, force) {
            Err(lab::Error::Ports(PortsError::NoCarrier(_))) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(100));
            }
            opened => return opened.map_err(port::refused),
        }
    }
}
