//! The way of a generator through a device: a testbed enters; the addresses of its two ends leave, and for a program that needs an
//! answer a network stack of its own at each, as two computers would have them.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context, Result};
use lab::{Addressing, Lab, Namespace, SIDES, Stack, StandIn};
use testbed::Testbed;
use wording::usage::misuse;

/// The device that is between, unless the user names another.
pub const DEVICE: &str = "linux-router";
/// The one that nothing comes out of.
pub const NOTHING_COMES_OUT: &str = "sink";
/// Addresses behind the two ports, to which every router here has routes.
const BEHIND: [Ipv4Addr; 2] = [Ipv4Addr::new(16, 0, 0, 1), Ipv4Addr::new(48, 0, 0, 1)];
/// Two addresses of one network, for the two ends of a bridge (RFC 2544, appendix C), and the length of its prefix.
const BRIDGED: ([Ipv4Addr; 2], u8) = ([Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 19, 0, 1)], 15);

/// A way through a device.
pub struct Across {
    /// The sender's address and the receiver's.
    pub addresses: [Ipv4Addr; 2],
    ends: Option<[StandIn; 2]>,
}

impl Across {
    /// The way between the ports of `testbed`. Without `gateways`, what is between real ports carries frames unchanged.
    ///
    /// # Errors
    /// What a port lacks, with the remedy; or that the kernel refuses a step.
    pub fn open(testbed: &Testbed, needs_answer: bool, gateways: Option<[IpAddr; 2]>) -> Result<Self> {
        if !needs_answer {
            return Ok(Self { addresses: BEHIND, ends: None });
        }
        let [near, far] = stacks(testbed, gateways)?;
        let home = testbed.lab().map(Lab::tester_namespace);
        let [zero, one] = testbed.ports();
        let ends = [StandIn::start(zero, home, near)?, StandIn::start(one, home, far)?];
        Ok(Self { addresses: [near.address, far.address], ends: Some(ends) })
    }

    /// Where the sender runs, and where what answers it does.
    pub fn ends(&self) -> Option<[&Namespace; 2]> {
        self.ends.as_ref().map(|ends| ends.each_ref().map(StandIn::namespace))
    }
}

/// What the two ends have: the addresses of the ports at a router, two of one network at a bridge.
fn stacks(testbed: &Testbed, gateways: Option<[IpAddr; 2]>) -> Result<[Stack; 2]> {
    match (testbed.lab(), gateways) {
        (Some(lab), _) if lab.dut().addressing() == Addressing::Device => {
            let stack = |side: lab::Side| -> Result<Stack> {
                let [address, gateway] = [side.port_addresses[0], side.interface_addresses[0]].map(v4);
                Ok(Stack { address: address?, prefix: side.prefixes[0], gateway: Some(gateway?) })
            };
            let [zero, one] = SIDES.map(stack);
            Ok([zero?, one?])
        }
        (None, Some(gateways)) => {
            let [zero, one] = testbed.ports();
            Ok([of_port(&zero.name, gateways[0])?, of_port(&one.name, gateways[1])?])
        }
        _ => {
            let (addresses, prefix) = BRIDGED;
            Ok(addresses.map(|address| Stack { address, prefix, gateway: None }))
        }
    }
}

/// What a real port has, in front of a router.
fn of_port(name: &str, gateway: IpAddr) -> Result<Stack> {
    let (address, prefix) = ports::address_of(name)?.with_context(|| {
        format!("{name} has no IPv4 address: give it one of the device's network, as in 'ip address add 100.65.1.2/24 dev {name}'")
    })?;
    Ok(Stack { address, prefix, gateway: Some(v4(gateway)?) })
}

fn v4(address: IpAddr) -> Result<Ipv4Addr> {
    match address {
        IpAddr::V4(v4) => Ok(v4),
        IpAddr::V6(_) => {
            Err(misuse(format!("datagrams go over IPv4: give --gateways of IPv4, not {address}")))
        }
    }
}
